"""Directives that show docstrings as they stand in the code: ``docstring`` of anything, ``model`` of a model.

``{model} module:Class`` adds which method of the class makes which numbered row, so a page need not repeat either.
"""

from __future__ import annotations

import inspect
from importlib import import_module
from typing import Any

import numba
from docutils import nodes
from site_catalogue import table
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

numba.config.DISABLE_JIT = True  # here modules are imported for what they say; nothing is compiled for that


def named(reference: str) -> Any:
    """The module ``module``, or what ``module:name`` names in it."""
    module, _, name = reference.partition(":")
    owner = import_module(module)
    return getattr(owner, name) if name else owner


def shown(owner: Any) -> nodes.literal_block:
    """A docstring, letter for letter."""
    text = inspect.getdoc(owner) or ""
    return nodes.literal_block(text, text, language="text", classes=["docstring"])


class Docstring(SphinxDirective):
    """``{docstring} module`` or ``{docstring} module:Class``."""

    required_arguments = 1
    has_content = True  # a word for pages that show the block as it is written

    def run(self) -> list[nodes.Node]:
        return [shown(named(self.arguments[0]))]


class Program(SphinxDirective):
    """``{model} module:Class``: the program of a model as mathematics, and the method of every row."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        model = named(self.arguments[0])
        rows = [
            (f"({row.number})" + (" implied" if row.implied else ""), row.method)
            for row in sorted(model.rows(), key=lambda row: row.number)
        ]
        return [shown(model), table(("row", "method"), rows, widths=(30, 70))]


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("docstring", Docstring)
    app.add_directive("model", Program)  # "program" is one of Sphinx, which goes first
    return {"parallel_read_safe": True, "parallel_write_safe": True}
