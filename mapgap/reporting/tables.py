"""Tables: declared by the line of their header, written as Markdown or CSV with the same numbers in both.

A header is a line of columns with bars between them, each ``key: title; form``: the key in the rows, the title shown,
and a format specification such as ``.2f``. A key alone is its own title.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any, ParamSpec

from mapgap.reporting.shown import inert, markdown

LONG, FOLDED, HUGE = 12, 25, 150
"""Rows from which on a table has a filter, is folded, and is made by the page's script when it is opened."""
EXACT = 2**53
"""Integers below this are what they are in a browser."""
TIP = "_tip"
"""Key of what stands beside the pointer when it rests on a row."""
Rows = Iterator[dict[str, Any]]
P = ParamSpec("P")


@dataclass(frozen=True)
class Column:
    """A column: ``key`` in the rows, ``title`` shown, ``form`` a format spec such as ``.2f`` (blank cells for None)."""

    key: str
    title: str
    form: str = ""


def header(line: str) -> list[Column]:
    """The columns that the line of a header declares."""
    found = []
    for cell in line.split("|"):
        names, _, form = cell.strip().partition("; ")
        key, _, title = names.partition(": ")
        found.append(Column(key, title or key, form))
    return found


@dataclass(frozen=True)
class Table:
    """A titled table; ``note`` is printed below it. Long tables are folded; ``fold`` folds a short one, too."""

    name: str
    title: str
    columns: Sequence[Column]
    rows: Sequence[dict[str, Any]]
    note: str = ""
    fold: bool = False

    @property
    def is_long(self) -> bool:
        return len(self.rows) > LONG

    @property
    def is_folded(self) -> bool:
        return self.fold or len(self.rows) > FOLDED

    @property
    def is_huge(self) -> bool:
        return len(self.rows) > HUGE

    def json(self) -> str:
        """The rows for the page's script, numbers as such, and the decimals of each column; safe within an element."""
        digits = [int(c.form[1:-1]) if re.fullmatch(r"\.\d+f", c.form) else None for c in self.columns]
        rows = [[self._plain(row, c, k) for c, k in zip(self.columns, digits, strict=True)] for row in self.rows]
        data = {"digits": digits, "rows": rows}
        return json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")

    def _plain(self, row: dict[str, Any], column: Column, digits: int | None) -> str | int | float:
        value = row.get(column.key)
        if isinstance(value, int) and not isinstance(value, bool) and not column.form and abs(value) < EXACT:
            return value
        if isinstance(value, (int, float)) and digits is not None and math.isfinite(value):
            return round(value, digits)
        return self.cell(row, column)

    def cell(self, row: dict[str, Any], column: Column) -> str:
        """Formatted text of one cell; blank where there is no value."""
        value = row.get(column.key)
        if value is None:
            return ""
        return format(value, column.form) if column.form else str(value)

    def markdown(self) -> str:
        head = "| " + " | ".join(_in_table(c.title) for c in self.columns) + " |"
        numeric = [any(isinstance(r.get(c.key), (int, float)) for r in self.rows) for c in self.columns]
        rule = "|" + "|".join("---:" if right else "---" for right in numeric) + "|"
        body = ["| " + " | ".join(_in_table(self.cell(row, c)) for c in self.columns) + " |" for row in self.rows]
        parts = [f"### {markdown(self.title)}", "", head, rule, *body]
        if self.note:
            parts += ["", markdown(self.note)]
        return "\n".join(parts) + "\n"

    def csv(self) -> str:
        """Unrounded values, column keys as header."""
        stream = io.StringIO()
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow([inert(c.key) for c in self.columns])
        for row in self.rows:
            writer.writerow(["" if row.get(c.key) is None else inert(row.get(c.key)) for c in self.columns])
        return stream.getvalue()


def tabulated(
    name: str, title: str, line: str, note: str = "", *, fold: bool = False
) -> Callable[[Callable[P, Iterable[dict[str, Any]]]], Callable[P, Table]]:
    """Declares a table: what gives its rows becomes what gives the table, with the header that ``line`` declares."""
    columns = header(line)

    def declared(rows: Callable[P, Iterable[dict[str, Any]]]) -> Callable[P, Table]:
        @wraps(rows)
        def table(*args: P.args, **kwargs: P.kwargs) -> Table:
            return Table(name, title, columns, list(rows(*args, **kwargs)), note, fold)

        return table

    return declared


def _in_table(text: str) -> str:
    return markdown(text).replace("|", "\\|")
