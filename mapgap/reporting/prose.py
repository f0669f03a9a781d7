"""Figures in prose that are made from data: placeholders in Markdown, filled from the tables of committed studies.

A page says ``<!-- fig: SPEC -->text<!-- /fig -->``; readers see the text, :func:`filled` puts the value there, and
:func:`faults` finds where the two differ. A specification names a table, conditions on its rows, a column, how many
values become one, and a format::

    hybrid_pipeline/losses[network=BERT-small, environment=C].total max | .1f

In a cell of a table the bar is written ``\\|``, or it would end the cell. Conditions compare a column with ``=``,
``!=``, ``<``, ``<=``, ``>``, ``>=``. Values become one by ``only`` (the default: there is exactly one), ``min``,
``max``, ``mean``, ``median``, ``sum`` or ``count``, which needs no column.
The table ``ledger`` has an entry of the ledger per row.

A word that compares is made from data, too: ``<!-- word: SPEC > SPEC ? longer : shorter -->longer<!-- /word -->``; a
number may stand for a specification.

:func:`unsupported` finds measured figures with neither placeholder nor source: a block of text that cites somebody
else's figure, or states a setting, says where it is from in ``<!-- source: … -->``.
"""

from __future__ import annotations

import operator
import re
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mapgap.core import InputError, MissingExtra, suggest
from mapgap.evidence.audit import Fault

Row = Mapping[str, Any]
Tables = Callable[[str], Sequence[Row]]
"""The rows of a table by name; raises :class:`InputError` for a name that there is not."""

_PLACE = re.compile(r"```.*?```|<!-- (?P<kind>fig|word): (?P<spec>.*?) -->(?P<text>.*?)<!-- /(?P=kind) -->", re.DOTALL)
"""A placeholder; or a block of code, in which there are none."""
_WORD = re.compile(r"(?P<one>.+?) (?P<sign><=|>=|<|>|=|!=) (?P<other>.+?) \? (?P<then>.+?) : (?P<otherwise>.+)")
_SPEC = re.compile(
    r"(?P<table>[\w/]+)(\[(?P<where>[^\]]*)\])?(\.(?P<column>\w+))?(\s+(?P<how>\w+))?(\s*\\?\|\s*(?P<form>\S+))?"
)
_CONDITION = re.compile(r"(?P<column>\w+)\s*(?P<sign>!=|<=|>=|=|<|>)\s*(?P<value>.*)")
_SIGNS: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_FOLDS: Mapping[str, Callable[[Sequence[Any]], Any]] = {
    "min": min,
    "max": max,
    "mean": statistics.fmean,
    "median": statistics.median,
    "sum": sum,
    "count": len,
}
_MEASURED = re.compile(
    r"\d[\d,.]*\s?(%|×|percent|points?\b|times\b|-?fold\b|x\b|ns\b|µs\b|ms\b|s\b|seconds?\b|minutes?\b|hours?\b|GFLOPS\b)"
    r"|\b\d[\d,]* (of|out of) (the )?\d"
)
_HIDDEN = re.compile(
    r"```.*?```|`[^`\n]*`|\]\([^)]*\)|<!-- fig: .*?<!-- /fig -->|<!-- word: .*?<!-- /word -->", re.DOTALL
)


@dataclass(frozen=True)
class Figure:
    """A placeholder of a page, ``fig`` or ``word``: what it stands for and the text that is there."""

    spec: str
    text: str
    line: int
    kind: str = "fig"


def figures(page: str) -> list[Figure]:
    """All placeholders of a page's text, in order."""
    return [
        Figure(found["spec"], found["text"], page.count("\n", 0, found.start()) + 1, found["kind"])
        for found in _PLACE.finditer(page)
        if found["spec"] is not None
    ]


def word(spec: str, tables: Tables) -> str:
    """The word that a comparison chooses.

    Raises
    ------
    InputError
        It cannot be read; or as :func:`looked_up`.
    """
    read = _WORD.fullmatch(spec.strip())
    if read is None:
        raise InputError(f"word {spec!r}: expected SPEC < SPEC ? WORD : WORD")
    one, other = (_number(read[side].strip(), tables) for side in ("one", "other"))
    return read["then" if _SIGNS[read["sign"]](one, other) else "otherwise"].strip()


def _number(spec: str, tables: Tables) -> Any:
    try:
        return float(spec)
    except ValueError:
        return looked_up(spec, tables)


def value(spec: str, tables: Tables) -> str:
    """What a specification stands for, as text.

    Raises
    ------
    InputError
        As :func:`looked_up`; or the format is none of such a value.
    """
    found, form = looked_up(spec, tables), _read(spec)["form"]
    try:
        return format(found, form or "")
    except ValueError as error:
        raise InputError(f"figure {spec!r}: expected a format of {found!r}, found {form!r}") from error


def _read(spec: str) -> re.Match[str]:
    read = _SPEC.fullmatch(spec.strip())
    if read is None:
        raise InputError(f"figure {spec!r}: expected TABLE[CONDITIONS].COLUMN FOLD | FORMAT")
    return read


def looked_up(spec: str, tables: Tables) -> Any:
    """What a specification stands for, before it is formatted.

    Raises
    ------
    InputError
        It cannot be read, names a table, column or fold that there is not, or no row answers (or, for ``only``,
        several).
    """
    read = _read(spec)
    how = read["how"] or "only"
    if how != "only" and how not in _FOLDS:
        raise InputError(
            f"figure {spec!r}: expected one of only, {', '.join(_FOLDS)}, found {how!r}{suggest(how, _FOLDS)}"
        )
    rows = tables(read["table"])
    for condition in filter(None, (each.strip() for each in (read["where"] or "").split(","))):
        rows = [row for row in rows if _holds(spec, row, condition)]
    values = [row for row in rows if read["column"] is None or _cell(spec, row, read["column"]) is not None]
    if how == "count":
        return len(values)
    if read["column"] is None:
        raise InputError(f"figure {spec!r}: expected a column")
    cells = [_cell(spec, row, read["column"]) for row in values]
    if not cells or (how == "only" and len(cells) > 1):
        raise InputError(f"figure {spec!r}: expected {'one value' if how == 'only' else 'values'}, found {len(cells)}")
    return cells[0] if how == "only" else _FOLDS[how](cells)


def _cell(spec: str, row: Row, column: str) -> Any:
    if column not in row:
        raise InputError(
            f"figure {spec!r}: expected a column of the table, found {column!r}{suggest(column, list(row))}"
        )
    return row[column]


def _holds(spec: str, row: Row, condition: str) -> bool:
    """Does a row fulfil a condition? A number is compared as one."""
    read = _CONDITION.fullmatch(condition)
    if read is None:
        raise InputError(f"figure {spec!r}: expected COLUMN = VALUE, found {condition!r}")
    cell = _cell(spec, row, read["column"])
    if cell is None:
        return False
    if isinstance(cell, (int, float)) and not isinstance(cell, bool):
        try:
            return _SIGNS[read["sign"]](cell, float(read["value"]))
        except ValueError as error:
            raise InputError(f"figure {spec!r}: expected a number, found {read['value']!r}") from error
    return _SIGNS[read["sign"]](str(cell), read["value"])


def filled(page: str, tables: Tables) -> str:
    """The text of a page with every placeholder's value in its place."""

    def of(found: re.Match[str]) -> str:
        if found["spec"] is None:
            return found[0]
        made = _MADE[found["kind"]](found["spec"], tables)
        return f"<!-- {found['kind']}: {found['spec']} -->{made}<!-- /{found['kind']} -->"

    return _PLACE.sub(of, page)


def emptied(page: str) -> str:
    """The text of a page without what its placeholders show."""

    def of(found: re.Match[str]) -> str:
        kind = found["kind"]
        return found[0] if found["spec"] is None else f"<!-- {kind}: {found['spec']} --><!-- /{kind} -->"

    return _PLACE.sub(of, page)


def faults(files: Iterable[Path], tables: Tables) -> Iterator[Fault]:
    """Placeholders whose text is not what the data say, and those that stand for nothing."""
    for file in files:
        for figure in figures(file.read_text(encoding="utf-8")):
            place = f"{file}:{figure.line}"
            try:
                found = _MADE[figure.kind](figure.spec, tables)
            except MissingExtra:  # the audit says of which report nothing was seen
                continue
            except InputError as error:
                yield Fault("figure", place, str(error))
                continue
            if found != figure.text:
                yield Fault("figure", place, f"says {figure.text}, the data say {found} ({figure.spec})")


_MADE: Mapping[str, Callable[[str, Tables], str]] = {"fig": value, "word": word}


def unsupported(page: str) -> list[tuple[int, str]]:
    """Line and text of measured figures that neither a placeholder nor a source supports.

    Code and links are no prose. A block is what empty lines enclose.
    """
    found = []
    shown = _HIDDEN.sub(lambda hidden: re.sub(r"[^\n]", " ", hidden[0]), page)
    start = 0
    for block in re.split(r"(\n\s*\n)", shown):
        if "<!-- source:" not in block:
            for each in _MEASURED.finditer(re.sub(r"<!--.*?-->", lambda hidden: " " * len(hidden[0]), block)):
                found.append((shown.count("\n", 0, start + each.start()) + 1, each[0]))
        start += len(block)
    return found
