"""Drawings of ``images/problems`` stand in the page itself, so that their text has the colour of the page's theme."""

from __future__ import annotations

import posixpath
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

FOLDER = "images/problems/"


def _draw(app: Sphinx, tree: nodes.document) -> None:
    here = posixpath.dirname(app.env.docname)
    for image in list(tree.findall(nodes.image)):
        place = posixpath.normpath(posixpath.join(here, image["uri"]))
        if place.startswith(FOLDER):
            path = Path(app.srcdir, place)
            app.env.note_dependency(str(path))
            svg = path.read_text(encoding="utf-8")
            image.parent.replace(image, nodes.raw("", f'<span class="drawing">{svg}</span>', format="html"))


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("doctree-read", _draw, priority=100)  # before Sphinx collects the images to copy
    return {"parallel_read_safe": True, "parallel_write_safe": True}
