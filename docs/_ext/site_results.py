"""The directive ``results``: rows of a table that a study's committed runs make, read when the page is made.

::

    ```{results} dfs_vs_converting/table_3
    :where: cluster=1; network=AlexNet
    network
    dfs_gap | .1f = DFS [%]
    {low:.2f} to {high:.2f} = gain
    ```

A line is a column of ``reports/STUDY/TABLE.csv``, with a format and a heading if wanted, or a template over columns.
``mapgap audit`` holds the file to the runs, so a page cannot say what they do not.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from docutils import nodes
from docutils.parsers.rst import directives
from site_catalogue import table
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

Row = Mapping[str, Any]
_COLUMN = re.compile(r"(?P<name>\w+)(\s*\|\s*(?P<form>\S+))?")


class Column(NamedTuple):
    """What a line of the directive asks for: a template over the columns of a row, and what stands above it."""

    template: str
    heading: str

    def cell(self, row: Row) -> str:
        """Its text in a row; a dash where a value is missing or no number is.

        Raises
        ------
        KeyError
            No such column.
        """
        try:
            return self.template.format_map(row) or "–"
        except ValueError:  # a format of numbers, and a cell that holds none
            return "–"


def column(line: str) -> Column:
    """A line of the directive.

    Raises
    ------
    ValueError
        It is neither a column nor a template.
    """
    what, _, heading = (part.strip() for part in line.partition(" = "))
    if "{" in what:
        return Column(what, heading)
    read = _COLUMN.fullmatch(what)
    if read is None:
        raise ValueError(f"expected COLUMN | FORMAT = HEADING, found {line!r}")
    return Column(f"{{{read['name']}:{read['form'] or ''}}}", heading or read["name"])


def value(text: str) -> Any:
    """A cell of the file: a whole number, a number, or its text."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def rows(path: Path, where: str) -> list[Row]:
    """The rows of a file that fulfil every condition ``COLUMN=VALUE``; conditions are separated by semicolons.

    Raises
    ------
    KeyError
        A condition on a column that there is not.
    """
    conditions = [tuple(each.strip().split("=", 1)) for each in where.split(";") if each.strip()]
    with path.open(encoding="utf-8", newline="") as stream:
        found = [row for row in csv.DictReader(stream) if all(row[name] == wanted for name, wanted in conditions)]
    return [{name: value(text) for name, text in row.items()} for row in found]


def cells(path: Path, where: str, lines: Sequence[str]) -> tuple[list[str], list[list[str]]]:
    """Headings, and the texts of all rows.

    Raises
    ------
    KeyError, ValueError
        A column that there is not; a line that cannot be read; no row.
    """
    columns = [column(line) for line in lines]
    found = rows(path, where)
    if not found:
        raise ValueError(f"no row of {path.name} with {where}")
    return [each.heading for each in columns], [[each.cell(row) for each in columns] for row in found]


class Results(SphinxDirective):
    """``{results} STUDY/TABLE``: some columns of a table of a study."""

    required_arguments = 1
    has_content = True
    option_spec = {"where": directives.unchanged}  # noqa: RUF012

    def run(self) -> list[nodes.Node]:
        path = Path(self.env.srcdir).parent / "reports" / f"{self.arguments[0]}.csv"
        self.env.note_dependency(str(path))
        try:
            head, body = cells(path, self.options.get("where", ""), list(self.content))
        except (OSError, KeyError, ValueError) as error:
            raise self.error(f"results {self.arguments[0]}: {error}") from error
        return [table(head, body, widths=[100 // len(head)] * len(head))]


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("results", Results)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
