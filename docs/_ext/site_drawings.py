"""Drawings of ``images/problems`` stand in the page itself, so that their text has the colour of the page's theme.

Of a card of an answer, ``images/overview_card_PROBLEM.svg``, both looks do, and the theme shows one.
"""

from __future__ import annotations

import posixpath
from html import escape
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

FOLDER, CARD = "images/problems/", "images/overview_card_"


def _draw(app: Sphinx, tree: nodes.document) -> None:
    here = posixpath.dirname(app.env.docname)
    for image in list(tree.findall(nodes.image)):
        place = posixpath.normpath(posixpath.join(here, image["uri"]))
        if place.startswith(FOLDER):
            path = Path(app.srcdir, place)
            app.env.note_dependency(str(path))
            svg = path.read_text(encoding="utf-8")
            image.parent.replace(image, nodes.raw("", f'<span class="drawing">{svg}</span>', format="html"))
        elif place.startswith(CARD):
            image.parent.replace(image, nodes.raw("", _card(app, Path(app.srcdir, place), image["alt"]), format="html"))


def _card(app: Sphinx, light: Path, words: str) -> str:
    found = []
    for look, path in (("light", light), ("dark", light.with_stem(f"{light.stem}_dark"))):
        app.env.note_dependency(str(path))
        named = f'<svg role="img" aria-label="{escape(words)}"'
        found.append(f'<span class="only-{look}">{path.read_text(encoding="utf-8").replace("<svg", named, 1)}</span>')
    return f'<span class="answer">{"".join(found)}</span>'


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("doctree-read", _draw, priority=100)  # before Sphinx collects the images to copy
    return {"parallel_read_safe": True, "parallel_write_safe": True}
