"""Write one table as Markdown or CSV, with the same numbers in both."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mapgap.reporting.shown import inert, markdown


@dataclass(frozen=True)
class Column:
    """A column: ``key`` in the rows, ``title`` shown, ``form`` a format spec such as ``.2f`` (blank cells for None)."""

    key: str
    title: str
    form: str = ""


@dataclass(frozen=True)
class Table:
    """A titled table; ``note`` is printed below it."""

    name: str
    title: str
    columns: Sequence[Column]
    rows: Sequence[dict[str, Any]]
    note: str = ""

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


def _in_table(text: str) -> str:
    return markdown(text).replace("|", "\\|")
