"""What the command line prints: tables for people, JSON for machines; messages on standard error.

Tables are laid out here rather than by Rich, which crops numbers where a line is too short (so that they look like
smaller ones) and takes longer over the list of instances than everything else that ``mapgap list`` does.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

import typer

from mapgap.core import InputError, printable, short
from mapgap.core.storage import kind_of, reason_of

WIDE = 160
"""Columns of a line where no terminal sets them: a file or a pipe has no width."""
NARROW = 12
"""Text folds to no fewer columns than this; then lines run over the edge."""
WHOLE = ("method", "status", "stop", "kind", "name")
"""Columns whose cells are names: they stay on one line."""


def say(text: str = "", end: str = "\n") -> None:
    """Text on standard output, at once; control characters in it are shown as what they are."""
    put(printable(text), end)


def put(text: str, end: str = "\n") -> None:
    """Text with styles on standard output, at once. A reader who has seen enough (``| head -1``) changes nothing else.

    Raises
    ------
    InputError
        Standard output is closed, or cannot be written to.
    """
    if sys.stdout is None:
        raise InputError("standard output: expected to be open, found closed")
    try:
        sys.stdout.write(text + end)
        sys.stdout.flush()
    except (OSError, ValueError) as error:
        with contextlib.suppress(OSError, ValueError):  # what is left in the buffer is for nobody
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):
            text = f"standard output: expected a place that can be written, found: {reason_of(error)}"
            raise InputError(text) from error


def styled(text: str, stream: TextIO, **style: Any) -> str:
    """The text in a style of :func:`typer.style`, where the stream is a terminal."""
    return typer.style(text, **style) if stream.isatty() and "NO_COLOR" not in os.environ else text


def print_json(data: Any) -> None:
    """One JSON object on one line of standard output."""
    put(json.dumps(data))


def complain(problems: Iterable[str], *, label: str = "error") -> None:
    """Each problem on a line of standard error."""
    if sys.stderr is None:
        return
    with contextlib.suppress(OSError, ValueError):  # nobody listens
        head = styled(f"{label}: ", sys.stderr, fg="red" if label == "error" else "yellow", bold=True)
        for text in problems:
            sys.stderr.write(f"{head}{printable(text)}\n")
        sys.stderr.flush()


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]], *, right: Iterable[str] = ()) -> None:
    """A table that keeps numbers and names on one line; text folds. A field's name is its heading."""
    right = set(right)
    cells = [[cell(value) for value in row] for row in rows]
    whole = [column in right or column in WHOLE for column in columns]
    widths = fitted([list(columns), *cells], whole, _width() - 3 * len(columns) - 1)
    aligned = [column in right for column in columns]
    head = [styled(line, sys.stdout, bold=True) for line in _lines(columns, widths, aligned)]
    body = [line for row in cells for line in _lines(row, widths, aligned)]
    rule = " " + "─".join("─" * (width + 2) for width in widths)
    put("\n".join([styled(printable(title), sys.stdout, bold=True), "", *head, rule, *body, ""]))


def facts(rows: Mapping[str, Any]) -> None:
    """Names and values in two columns; an absent value is left out."""
    shown = {name: cell(value) for name, value in rows.items() if value not in (None, "", (), [], {})}
    left = max(map(len, shown), default=0)
    lines = []
    for name, text in shown.items():
        first, *more = folded(text, max(NARROW, _width() - left - 2))
        lines.append(f"{styled(name.ljust(left), sys.stdout, bold=True)}  {first}")
        lines += [" " * (left + 2) + line for line in more]
    put("\n".join(lines))


def fitted(rows: Sequence[Sequence[str]], whole: Sequence[bool], room: int) -> list[int]:
    """Widths of columns: as wide as their cells; if that is too much, the widest of those that fold give way."""
    widths = [max((len(line) for row in rows for line in row[k].split("\n")), default=0) for k in range(len(whole))]
    while sum(widths) > room:
        folding = [k for k, fixed in enumerate(whole) if not fixed and widths[k] > NARROW]
        if not folding:
            break
        widest = max(folding, key=lambda k: widths[k])
        widths[widest] -= 1
    return widths


def folded(text: str, width: int) -> list[str]:
    """Lines of at most so many characters, broken at spaces where there are any."""
    found = []
    for line in text.split("\n"):
        found += (textwrap.wrap(line, width, break_on_hyphens=False) or [""]) if len(line) > width else [line]
    return found


def _lines(row: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> list[str]:
    """One row of a table."""
    columns = [folded(text, max(1, width)) for text, width in zip(row, widths, strict=True)]
    found = []
    for k in range(max(map(len, columns), default=0)):
        parts = [column[k] if k < len(column) else "" for column in columns]
        placed = [
            part.rjust(width) if aligned else part.ljust(width)
            for part, width, aligned in zip(parts, widths, right, strict=True)
        ]
        found.append(("  " + "   ".join(placed)).rstrip())
    return found


def _width() -> int:
    terminal = sys.stdout.isatty() or "COLUMNS" in os.environ
    return shutil.get_terminal_size().columns if terminal else WIDE


def cell(value: Any) -> str:
    """A value as people read it."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {cell(item)}" for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(cell(item) for item in value)
    return printable(str(value))


def percent(share: float | None) -> str | None:
    return None if share is None else f"{100 * share:.2f}%"


def to_file(path: Path, flag: str = "-o") -> None:
    """Before any work: can a file of that name be written?

    Raises
    ------
    InputError
    """
    kind, name = kind_of(path), f"{flag} {short(str(path))}"
    if kind not in ("a file", "nothing there", "a device"):
        raise InputError(f"{name}: expected the name of a file, found {kind}")
    if kind_of(os.path.dirname(os.path.realpath(path))) != "a folder":
        raise InputError(f"{name}: expected a file in an existing folder")


def to_folder(path: Path, flag: str = "-o") -> None:
    """Before any work: is it a folder, or can it become one?

    Raises
    ------
    InputError
    """
    nearest = next(
        (part for part in (path, *path.parents) if kind_of(part) not in ("nothing there", "not a directory")), Path()
    )
    kind, name = kind_of(nearest), f"{flag} {short(str(path))}"
    if kind != "a folder":
        raise InputError(f"{name}: expected the name of a folder, found {kind} ({short(str(nearest))})")
