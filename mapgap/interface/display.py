"""How results show themselves: tables in plain text and HTML, charts, lists of what exists."""

from __future__ import annotations

import html
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from mapgap.catalogue import registry
from mapgap.core import InputError, InstanceBase, PlanBase
from mapgap.core.storage import replace_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Item = TypeVar("Item")


class Listing(Mapping[str, Item], Generic[Item]):
    """Problems or methods by name, shown as a table."""

    def __init__(self, items: Mapping[str, Item], columns: Mapping[str, Callable[[Item], Any]]) -> None:
        self._items, self._columns = dict(items), dict(columns)

    def __getitem__(self, name: str) -> Item:
        return self._items[name]

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def _cells(self) -> list[list[Any]]:
        return [[name, *(read(item) for read in self._columns.values())] for name, item in self._items.items()]

    def __repr__(self) -> str:
        return "\n".join(table_text(["name", *self._columns], self._cells()))

    def _repr_html_(self) -> str:
        return table_html(["name", *self._columns], self._cells())


def cell(value: Any) -> str:
    """A value in a table for people."""
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def table_text(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[str]:
    """Lines of a table in plain text; numbers stand on the right."""
    cells = [list(columns), *([cell(value) for value in row] for row in rows)]
    widths = [max(len(line[k]) for line in cells) for k in range(len(columns))]
    right = [any(_is_number(row[k]) for row in rows) for k in range(len(columns))]
    return [
        "  ".join(
            text.rjust(w) if r else text.ljust(w) for text, w, r in zip(line, widths, right, strict=True)
        ).rstrip()
        for line in cells
    ]


def _is_number(value: Any) -> bool:
    return cell(value).strip("%").replace(",", "").replace(".", "").isdigit()


def table_html(
    columns: Sequence[str],
    rows: Sequence[Sequence[Any]],
    title: str = "",
    warnings: Sequence[str] = (),
    bold: Sequence[bool] = (),
) -> str:
    """A table that needs no style sheet; every text is escaped."""
    shout = "".join(f'<p style="color:#b00020"><b>Contradiction:</b> {html.escape(text)}</p>' for text in warnings)
    caption = f"<caption>{html.escape(title)}</caption>" if title else ""
    head = "".join(f"<th>{html.escape(column)}</th>" for column in columns)
    lines = []
    for k, row in enumerate(rows):
        style = ' style="font-weight:bold"' if bold and bold[k] else ""
        cells = "".join(
            f'<td style="text-align:{"right" if _is_number(value) else "left"}">{html.escape(cell(value))}</td>'
            for value in row
        )
        lines.append(f"<tr{style}>{cells}</tr>")
    top = f"<thead><tr>{head}</tr></thead>" if head else ""
    return f"{shout}<table>{caption}{top}<tbody>{''.join(lines)}</tbody></table>"


def quantity(value: int, unit: str) -> str:
    """``1,279 neurons``, ``1,279 × 1000 nJ``."""
    return f"{value:,} {'× ' if unit[:1].isdigit() else ''}{unit}"


def percent(share: float | None) -> str | None:
    return None if share is None else f"{100 * share:.2f}%"


@dataclass(frozen=True)
class Chart:
    """A chart of a plan that shows itself in a notebook.

    Attributes
    ----------
    figure : matplotlib.figure.Figure
    """

    figure: Figure

    def save(self, path: Path | str) -> Path:
        """Write it as SVG, PNG or PDF.

        Raises
        ------
        InputError
            Another suffix.
        """
        from mapgap.reporting import gantt  # matplotlib is wanted only here

        return gantt.save(self.figure, Path(path))

    def _repr_svg_(self) -> str:
        stream = io.StringIO()
        self.figure.savefig(stream, format="svg", bbox_inches="tight")
        return stream.getvalue()


def chart_of(instance: InstanceBase, plan: PlanBase, title: str) -> Chart:
    """The Gantt chart of a plan.

    Raises
    ------
    InputError
        The problem has no chart, or the plan has no timetable.
    """
    from mapgap.reporting import gantt  # matplotlib is wanted only here

    try:
        return Chart(gantt.plan_chart(registry.problems()[instance.problem], instance, plan, title))
    except InputError as error:
        raise InputError([text.removeprefix("--gantt: ") for text in error.problems]) from error


def write_text(path: Path, text: str) -> Path:
    """Write a file.

    Raises
    ------
    InputError
        It cannot be written.
    """
    replace_file(path, text.encode("utf-8", "replace"), parents=False)
    return path
