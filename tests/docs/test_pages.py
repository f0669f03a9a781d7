"""Pages as GitHub shows them: placeholders stay unseen, no bar in one cuts a row short, and commands are all there."""

import re
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from typer.main import get_command

from mapgap.cli.app import app
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


def options(text):
    return set(re.findall(r"(?<![\w-])--?[a-z][\w-]*", text))


def test_the_page_of_the_command_line_names_every_command_and_option():
    page = (ROOT / "docs" / "command_line.md").read_text(encoding="utf-8")
    synopsis = re.split(r"\nmapgap (?=\w)", page.split("```")[1])[1:]
    said = {}
    for words in synopsis:
        said.setdefault(words.split()[0], set()).update(options(words))
    commands = {name: each for name, each in get_command(app).commands.items() if not each.hidden}  # an old name
    assert set(said) == set(commands)
    for name, command in commands.items():
        parameters = [each for part in getattr(command, "commands", {"": command}).values() for each in part.params]
        spellings = [{*each.opts, *each.secondary_opts} for each in parameters if each.opts[0].startswith("-")]
        assert [sorted(each) for each in spellings if not each & said[name]] == [], name
        assert said[name] <= set().union(*spellings), name
