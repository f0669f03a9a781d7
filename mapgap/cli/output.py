"""What the command line prints: tables for people, JSON for machines, progress on standard error."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import Any

from rich import box
from rich.console import Console
from rich.status import Status as Spinner
from rich.table import Table
from rich.text import Text

from mapgap.core import InputError
from mapgap.records.record import relative

SHOW_AFTER_S = 1.0


def out() -> Console:
    """Standard output; wide where no terminal sets the width."""
    console = Console(soft_wrap=False, highlight=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = 160
    return console


def err() -> Console:
    return Console(stderr=True, soft_wrap=True, highlight=False)


def print_json(data: Any) -> None:
    """One JSON object on one line of standard output."""
    sys.stdout.write(json.dumps(data) + "\n")
    sys.stdout.flush()


def complain(problems: Iterable[str], *, label: str = "error") -> None:
    """Each problem on a line of standard error."""
    console = err()
    for text in problems:
        console.print(Text.assemble((f"{label}: ", "bold red" if label == "error" else "bold yellow"), text))


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]], *, right: Iterable[str] = ()) -> None:
    """A table that keeps numbers and short words on one line; text folds."""
    shown = Table(title=title, title_justify="left", title_style="bold", header_style="bold", box=box.SIMPLE_HEAD)
    for column in columns:
        short = column in right or column in ("method", "status", "stop", "kind", "name")
        shown.add_column(column, justify="right" if column in right else "left", overflow="fold", no_wrap=short)
    for row in rows:
        shown.add_row(*(Text(cell(value)) for value in row))
    out().print(shown)


def to_file(path: Path, flag: str = "-o") -> None:
    """Before any work: can a file of that name be written?

    Raises
    ------
    InputError
    """
    if path.is_dir():
        raise InputError(f"{flag} {path}: expected the name of a file, found a folder")
    if not path.resolve().parent.is_dir():
        raise InputError(f"{flag} {path}: expected a file in an existing folder")


def to_folder(path: Path, flag: str = "-o") -> None:
    """Before any work: is it a folder, or can it become one?

    Raises
    ------
    InputError
    """
    nearest = next(part for part in (path, *path.parents) if part.exists())
    if not nearest.is_dir():
        raise InputError(f"{flag} {path}: expected the name of a folder, found a file ({nearest})")


def facts(rows: Mapping[str, Any]) -> None:
    """Names and values in two columns; an absent value is left out."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in rows.items():
        if value not in (None, "", (), [], {}):
            grid.add_row(name, Text(cell(value)))
    out().print(grid)


def cell(value: Any) -> str:
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
    return str(value)


def percent(share: float | None) -> str | None:
    return None if share is None else f"{100 * share:.2f}%"


class Progress(AbstractContextManager["Progress"]):
    """A spinner with elapsed time, incumbent, bound and gap; on a terminal only, and only after a second."""

    def __init__(self, label: str) -> None:
        self.label = label
        self.console = err()
        self.began = time.perf_counter()
        self.spinner: Spinner | None = None

    def __call__(self, elapsed: float, objective: int | None, bound: int | None) -> None:
        if not self.console.is_terminal or time.perf_counter() - self.began < SHOW_AFTER_S:
            return
        parts = [f"{self.label}  {elapsed:.0f} s", f"incumbent {cell(objective)}", f"bound {cell(bound)}"]
        text = Text("  ".join([*parts, f"gap {percent(relative(objective, bound)) or '-'}"]))
        if self.spinner is None:
            self.spinner = self.console.status(text)
            self.spinner.start()
        self.spinner.update(text)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.spinner is not None:
            self.spinner.stop()


def certified(found: list[dict[str, Any]], as_json: bool) -> None:
    """The result of ``mapgap certify``: all of one instance, one line each of several."""
    if as_json:
        print_json(found[0] if len(found) == 1 else {"instances": found})
        return
    if len(found) > 1:
        rows = [
            [each["instance"], each["grade"] or "none", each["objective"], "; ".join(each["missing"])] for each in found
        ]
        table("certificates", ["instance", "certificate", "objective", "missing for a higher grade"], rows)
        return
    only = found[0]
    value = None if only["objective"] is None else f"{only['objective']:,} {only['unit']}"
    facts({"instance": only["instance"], "certificate": only["grade"] or "none", "objective": value})
    rows = [[run["instance"], run["method"], run["status"], run["objective"], run["bound"]] for run in only["runs"]]
    table("runs", ["instance", "method", "status", "objective", "bound"], rows)
    for reason in only["missing"]:
        print(f"missing for a higher grade: {reason}")


def attacked(search: Any, path: Path | None, as_json: bool) -> None:
    """The result of ``mapgap attack``."""
    hit = search.worst
    result = {
        "instances": search.tried,
        "nothing_found": search.failures,
        "worth_nothing": search.worthless,
        "worst": None if hit is None else hit.to_json(),
        "file": None if path is None else str(path),
    }
    if as_json:
        print_json(result)
        return
    worthless = f", on {search.worthless} only a plan worth 0" if search.worthless else ""
    print(f"{search.tried} instances; on {search.failures} the method found no plan although there is one{worthless}")
    if hit is None:
        print("no instance on which the loss factor is defined")
    else:
        loss = f"{hit.ratio:.4f}" if hit.proven else f"between {hit.ratio:.4f} and {hit.limit:.4f}"
        print(f"loss factor {loss}: {hit.method} {hit.value:,}, {hit.exact} {hit.plan:,} (bound {hit.bound:,})")
        print(path)
