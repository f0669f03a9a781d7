"""Links of pages to what lies beside ``docs/``: a file becomes a page with its text, a report its committed page.

A page may say ``[the checker](../mapgap/evidence/check.py)``; the link then works in a checkout, where the project is
hosted, and on the site. A link to what is not there is a warning, as for pages.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

from docutils import nodes
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import TextLexer, get_lexer_for_filename
from pygments.util import ClassNotFound
from site_ledger import page_of as ledger_page
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

from mapgap.evidence.ledger import glance

LONGEST = 400_000  #: characters of a file that a page shows


def outside(docs: Path, page: str, target: str) -> str | None:
    """The path in the repository that a relative link of a page leads to; ``None`` if it stays in ``docs``.

    Parameters
    ----------
    docs : Path
        The folder of the pages.
    page : str
        Name of the page without suffix, relative to it.
    target : str
        As the link has it.
    """
    place = target.partition("#")[0]
    if not place or "://" in place or place.startswith("/"):
        return None
    found = posixpath.normpath(posixpath.join(docs.name, posixpath.dirname(page), place))
    if found.startswith((f"{docs.name}/", "..")) or found == docs.name:
        return None
    return found if (docs.parent / found).exists() else None


def page_of(path: str) -> str:
    """The page of the site that shows a file or folder of the repository."""
    parts = path.split("/")
    if parts[0] == "reports" and len(parts) == 3 and parts[2].startswith("report."):
        return f"reports/{parts[1]}/report"
    return f"files/{path.replace('/__init__.py', '/package.py')}"


def _redirect(app: Sphinx, tree: nodes.document) -> None:
    page = app.env.docname
    wanted: dict[str, set[str]] = _wanted(app.env)
    docs = Path(app.srcdir)
    for node in list(tree.findall(lambda each: isinstance(each, (addnodes.download_reference, addnodes.pending_xref)))):
        path = outside(docs, page, _target(node, docs, page))
        if path is None:
            continue
        wanted.setdefault(page, set()).add(path)
        target = app.builder.get_relative_uri(page, page_of(path))
        inner = [child.deepcopy() for child in node.children]
        link = nodes.reference("", "", *inner, refuri=target, internal=True)
        node.replace_self(link)


def _target(node: nodes.Element, docs: Path, page: str) -> str:
    """The link as the page has it; MyST makes a link to Markdown absolute and takes its suffix away."""
    target: str = node.get("reftarget", "")
    if node.get("refdomain") == "doc" and target.startswith(f"{docs.parent}/"):
        return posixpath.relpath(f"{target}.md", posixpath.dirname(docs / page))
    return target


def _wanted(env: BuildEnvironment) -> dict[str, set[str]]:
    if not hasattr(env, "site_files"):
        env.site_files = {}  # type: ignore[attr-defined]
    return env.site_files  # type: ignore[attr-defined,no-any-return]


def _purge(app: Sphinx, env: BuildEnvironment, page: str) -> None:
    _wanted(env).pop(page, None)


def shown(root: Path, path: str) -> str:
    """The text of a file with line numbers and colours, or the files of a folder, as HTML."""
    place = root / path
    if place.is_dir():
        files = sorted(each for each in place.rglob("*") if each.is_file() and "__pycache__" not in each.parts)
        return "".join(f"<h2>{escape(str(each.relative_to(place)))}</h2>{_coloured(each)}" for each in files)
    return _coloured(place)


def _coloured(place: Path) -> str:
    try:
        text = place.read_text(encoding="utf-8")[:LONGEST]
    except UnicodeDecodeError:
        return f"<p>{place.stat().st_size:,} bytes, no text.</p>"
    try:
        lexer = get_lexer_for_filename(place.name)
    except ClassNotFound:
        lexer = TextLexer()
    return str(highlight(text, lexer, HtmlFormatter(linenos="inline", anchorlinenos=True, lineanchors="L")))


def _pages(app: Sphinx) -> Iterator[tuple[str, dict[str, Any], str]]:
    root = Path(app.srcdir).parent
    for path in sorted(set().union(*_wanted(app.env).values())):
        if not page_of(path).startswith("reports/"):
            body = f"<h1><code>{escape(path)}</code></h1>{shown(root, path)}"
            yield page_of(path), {"title": path, "body": body, "parents": []}, "page.html"


def linked(report: str) -> str:
    """A report whose tables lead from an instance to its page in the ledger, which is there on the site alone."""
    known = glance()

    def link(cell: re.Match[str]) -> str:
        if cell["name"] not in known:
            return cell[0]
        return f'{cell["before"]}<a href="../../{ledger_page(cell["name"])}.html">{cell["name"]}</a>'

    return re.sub(r"(?P<before><t[dh][^<>]*>(?:<code>)?)(?P<name>[\w.@+-]+)(?=(?:</code>)?</t[dh]>)", link, report)


def _copy_reports(app: Sphinx, failed: Exception | None) -> None:
    """The committed pages of studies, which are self-contained files."""
    if failed is not None or app.builder.format != "html":
        return
    for report in (Path(app.srcdir).parent / "reports").glob("*/report.html"):
        target = Path(app.outdir) / "reports" / report.parent.name / report.name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(linked(report.read_text(encoding="utf-8")), encoding="utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("doctree-read", _redirect, priority=100)  # before Sphinx collects the files to download
    app.connect("env-purge-doc", _purge)
    app.connect("html-collect-pages", _pages)
    app.connect("build-finished", _copy_reports)
    return {"parallel_read_safe": False, "parallel_write_safe": True}
