"""Placeholders of figures (:mod:`mapgap.reporting.prose`) leave a page before it is read; their values stay."""

from __future__ import annotations

import re
from typing import Any

from sphinx.application import Sphinx

_MARK = re.compile(r"```.*?```|<!-- (?:fig: .*?|/fig|source: .*?) -->", re.DOTALL)


def plain(page: str) -> str:
    """The text as readers see it, line for line; blocks of code stay as they are.

    A bar in a placeholder (``| .1f``) would otherwise end the cell of a table.
    """
    return _MARK.sub(lambda mark: mark[0] if mark[0].startswith("`") else "\n" * mark[0].count("\n"), page)


def _read(app: Sphinx, page: str, source: list[str]) -> None:
    source[0] = plain(source[0])


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("source-read", _read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
