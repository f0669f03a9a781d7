"""Formulas as MathML, made at build time by docutils: no script, no font, nothing is fetched."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import MathError, tex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging

log = logging.getLogger(__name__)


def mathml(node: nodes.Node, *, block: bool) -> str:
    """The MathML of a formula; a formula that cannot be read is a warning."""
    source = node.astext().strip()
    if block and r"\\" in source and r"\begin" not in source:
        source = rf"\begin{{aligned}}{source}\end{{aligned}}"
    try:
        return str(tex2mathml(source, as_block=block))
    except MathError as error:
        log.warning("formula: %s: %s", error, source, location=node)
        return source


def _inline(self: Any, node: nodes.math) -> None:
    self.body.append(mathml(node, block=False))
    raise nodes.SkipNode


def _display(self: Any, node: nodes.math_block) -> None:
    self.body.append(f'<div class="formula">{mathml(node, block=True)}</div>\n')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_html_math_renderer("mathml", (_inline, None), (_display, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
