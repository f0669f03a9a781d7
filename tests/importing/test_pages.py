"""The pages of docs/formats: their files are written, their commands run, and what they print is what the page says.

A block with a name is a file. A block ``text`` without one holds lines of what the command before it printed.
"""

import re
import shlex
from pathlib import Path

import pytest
from cli_support import inside

from mapgap.contract.seeds import some
from mapgap.importing import FORMATS
from mapgap.importing.cluster import load

FOLDER = Path(__file__).parents[2] / "docs" / "formats"
BLOCK = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.DOTALL | re.MULTILINE)
PAGES = sorted(path.name for path in FOLDER.glob("*.md")) if FOLDER.is_dir() else []


def run(line, where):
    """What a command line prints."""
    program, *arguments = shlex.split(line)
    if program == "python":
        assert arguments == ["-m", "mapgap.importing.models", "."], where
        pytest.importorskip("mapgap.importing.models").write(Path())
        return ""
    assert program == "mapgap", where
    done = inside(*arguments)
    assert done.returncode == 0, f"{where}: {done.stderr}"
    return done.stdout


@pytest.mark.in_turn
@pytest.mark.parametrize("page", some(4, PAGES))
def test_a_page_does_what_it_says(page, tmp_path, monkeypatch):
    pytest.importorskip("onnxruntime")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")
    text = (FOLDER / page).read_text(encoding="utf-8")
    blocks = BLOCK.findall(text)
    for _, name, content in blocks:
        if name:
            Path(name).write_text(content)
            assert "form: cluster" not in content or load(Path(name)).boards
    printed, commands = "", 0
    for kind, name, content in blocks:
        if kind == "console":
            lines = content.splitlines()
            printed = "".join(run(line, f"{page}: {line}") for line in lines)
            commands += len(lines)
        elif kind == "text" and not name:
            missing = [line for line in content.splitlines() if line.strip() not in printed]
            assert missing == [], f"{page}:\n{printed}"
    assert commands


def test_every_format_has_a_page_and_the_entry_names_it():
    if not PAGES:
        pytest.skip("the pages are not part of a wheel")
    entry = (FOLDER.parent / "measured_profiles.md").read_text(encoding="utf-8")
    assert all(f"formats/{page}" in entry for page in PAGES)
    pages = {"layer_graph": "onnx", "ort_profile": "onnx_runtime"}
    assert {pages.get(each.name, each.name) for each in FORMATS} <= {page.removesuffix(".md") for page in PAGES}
