"""The directive ``player``: searches on a small instance, step by step, from runs that are made when the page is."""

from __future__ import annotations

import json
import subprocess
import sys
from html import escape
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

COLUMNS = ("step", "who", "what", "plan", "bound")


def recorded(instance: str) -> dict[str, Any]:
    """What ``trail.py`` records of an instance."""
    command = [sys.executable, str(Path(__file__).with_name("trail.py")), instance]
    found: dict[str, Any] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return found


def table(trail: dict[str, Any]) -> str:
    """All steps, for those who do not see the picture, and without JavaScript."""
    head = "".join(f'<th scope="col">{each}</th>' for each in COLUMNS)
    rows = [
        (place, step["by"], step["words"], step["best"] or "", step["bound"] or "")
        for place, step in enumerate(trail["steps"], 1)
    ]
    body = "".join("<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows)
    return (
        f'<div class="table-wrapper"><table class="docutils"><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def shown(trail: dict[str, Any]) -> str:
    """The player as HTML; ``player.js`` draws it. The trail is data of the page."""
    data = json.dumps(trail, separators=(",", ":")).replace("<", "\\u003c")
    return (
        f'<div class="player"><script type="application/json">{data}</script></div>'
        f"<details><summary>All steps as a table</summary>{table(trail)}</details>"
    )


class Player(SphinxDirective):
    """``{player} INSTANCE``; the content is for pages that show no player."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        self.env.note_dependency(str(Path(__file__).with_name("trail.py")))
        return [nodes.raw("", shown(recorded(self.arguments[0])), format="html")]


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("player", Player)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
