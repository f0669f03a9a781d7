"""The guides of docs: every block runs, in order, in one namespace, and prints what the page says."""

import contextlib
import io
import re
import shlex
from pathlib import Path

import matplotlib as mpl
import pytest
from cli_support import inside

DOCS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def run_python(code, where, namespace):
    """What the code prints."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, where, "exec"), namespace)
    return printed.getvalue()


def run_console(code, where, namespace):
    """What the command lines print."""
    printed = ""
    for line in code.splitlines():
        program, *arguments = shlex.split(line, comments=True)
        assert program == "mapgap", f"{where}: expected a command of mapgap, found {line}"
        done = inside(*arguments)
        assert done.returncode == 0, f"{where}: {done.stderr}"
        printed += done.stdout
    return printed


RUN = {"python": run_python, "console": run_console}


@pytest.mark.in_turn
@pytest.mark.parametrize("page", ["python.md", "exchange.md"])
def test_every_block_runs_and_prints_what_the_page_says(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    mpl.use("agg")
    text = (DOCS / page).read_text()
    namespace = {"__name__": "docs"}
    printed, where = "", ""
    blocks = 0
    for block in BLOCK.finditer(text):
        kind, code = block.groups()
        if kind == "text":
            lines = [line.rstrip() for line in printed.splitlines()]
            assert lines == [line.rstrip() for line in code.splitlines()], where
        else:
            where = f"{page}:{text[: block.start()].count(chr(10)) + 1}"
            printed = RUN[kind](code, where, namespace)
            blocks += 1
    assert blocks > 2
