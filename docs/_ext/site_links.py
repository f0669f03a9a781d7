"""After the build: every link of every page that stays in the site leads to a file, and its anchor to an element there.

This looks at the pages as they are served, so it also sees what was written as HTML: the ledger, its charts, the theme.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from sphinx.application import Sphinx
from sphinx.util import logging

log = logging.getLogger(__name__)
ELSEWHERE = ("http", "https", "mailto", "data", "javascript")


TAG = re.compile(r"<(\w+)\s[^<>]*>")
ATTRIBUTE = re.compile(r"""\s(id|name|href|src)\s*=\s*(?:"([^"]*)"|'([^']*)')""")


class _Page:
    """Links and anchors of a page. Patterns and no parser of HTML, which would take a tenth of the whole build."""

    def __init__(self, text: str) -> None:
        self.links: list[str] = []
        self.anchors: set[str] = set()
        for tag in TAG.finditer(text):
            for name, *values in ATTRIBUTE.findall(tag[0]):
                value = unescape("".join(values))
                if value and (name == "id" or (name == "name" and tag[1] == "a")):
                    self.anchors.add(value)
                elif value and name in ("href", "src"):
                    self.links.append(value)


@cache
def _read(path: Path) -> _Page:
    return _Page(path.read_text(encoding="utf-8"))


def broken(root: Path) -> Iterator[tuple[str, str]]:
    """``(page, link)`` of every link that leads nowhere; reports, which are files of their own, are not read."""
    for path in sorted(root.rglob("*.html")):
        if path.relative_to(root).parts[0] in ("reports", "_static"):
            continue
        for link in dict.fromkeys(_read(path).links):
            if not _leads(path, link):
                yield str(path.relative_to(root)), link


def _leads(path: Path, link: str) -> bool:
    parts = urlsplit(link)
    if parts.scheme in ELSEWHERE or parts.netloc:
        return True
    target = path if not parts.path else path.parent / unquote(parts.path)
    if not target.is_file():
        return False
    anchor = unquote(parts.fragment)
    return not anchor or target.suffix != ".html" or anchor in _read(target.resolve()).anchors


def _check(app: Sphinx, failed: Exception | None) -> None:
    if failed is None and app.builder.name == "html":
        _read.cache_clear()
        for page, link in broken(Path(app.outdir).resolve()):
            log.warning("%s: a link leads nowhere: %s", page, link)


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("build-finished", _check, priority=900)  # when reports have been copied
    return {"parallel_read_safe": True, "parallel_write_safe": True}
