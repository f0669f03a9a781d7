"""Pages as GitHub shows them: placeholders stay unseen, no bar in one cuts a row short, and commands are all there."""

import re
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from mapgap.reporting.prose import figures

ROOT = Path(__file__).parents[2]
if not (ROOT / "docs").is_dir():
    pytest.skip("the pages are not part of a wheel", allow_module_level=True)
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)


def shown(page):
    """The HTML of a page with comments, and the text that a reader sees of it outside code."""
    html = MarkdownIt("gfm-like", {"linkify": False}).render(page)
    prose = re.sub(r"<(pre|code)\b.*?</\1>", "", COMMENT.sub("", html), flags=re.DOTALL)
    return html, prose


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_readers_see_values_and_no_placeholders(path):
    page = path.read_text(encoding="utf-8")
    html, prose = shown(page)
    assert [mark for mark in ("<!--", "-->", "&lt;!--", "--&gt;", "/fig") if mark in prose] == []
    # A row with too many bars loses its last cells, and with them the end of a placeholder.
    assert len(re.findall(r"<!-- (?:fig|word): .*?<!-- /(?:fig|word) -->", html, re.DOTALL)) == len(figures(page))


@pytest.mark.parametrize(("bar", "whole"), [(r"\|", True), ("|", False)])
def test_a_bar_in_a_cell_has_to_be_escaped(bar, whole):
    html, prose = shown(f"| a | b |\n|---|---|\n| x | <!-- fig: study/t.gap max {bar} .1f -->3.2<!-- /fig --> % |\n")
    assert ("<!-- /fig -->" in html) is whole
    assert ("--" not in prose and "3.2 %" in prose) is whole
