"""One heat map for a whole report: a line per heuristic, a column per class of instances, a panel per problem."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mapgap.records.runs import Runs
from mapgap.reporting.classes import Class, classify
from mapgap.reporting.losses import LEAST, NOTHING, Loss, interval, losses

STEPS = (LEAST, 1.0, 3.0, 10.0, 30.0, 100.0)
"""Percent at which the colour changes."""
THOUSAND = 1000.0
WHOLE = 9.95  # from here on no decimals


@dataclass(frozen=True)
class Cell:
    """What a field of the map shows: ``look`` is its class in the style sheet, ``words`` stand in a tooltip."""

    look: str
    text: str
    words: str


@dataclass(frozen=True)
class Line:
    """One heuristic."""

    method: str
    kind: str
    cells: Sequence[Cell]


@dataclass(frozen=True)
class Panel:
    """One problem; a column has a title and says how many instances it is about."""

    problem: str
    columns: Sequence[tuple[str, int]]
    lines: Sequence[Line]


def heat_map(records: Runs) -> list[Panel]:
    """The panels of all problems that have heuristics among the runs."""
    found = losses(records, classify(records))
    return [_panel(problem, [each for each in found if each.problem == problem]) for problem in _problems(found)]


def _problems(found: Sequence[Loss]) -> list[str]:
    return list(dict.fromkeys(each.problem for each in found))


def _panel(problem: str, found: Sequence[Loss]) -> Panel:
    groups = list(dict.fromkeys(each.group for each in found))  # in the order of the problem's objectives
    cells = {(each.method, each.group): each for each in found}
    kinds = {each.method: each.kind for each in found}
    order = sorted(kinds, key=lambda method: (kinds[method] != "published", *_rank(method, groups, cells), method))
    lines = [Line(method, kinds[method], [_cell(cells.get((method, group))) for group in groups]) for method in order]
    counts = {group: max(each.instances for each in found if each.group == group) for group in groups}
    return Panel(problem, [(group.title, counts[group]) for group in groups], lines)


def _rank(method: str, groups: Sequence[Class], cells: Mapping[tuple[str, Class], Loss]) -> tuple[int, float]:
    """First who is compared in most columns, then who loses least there, column by column."""
    known = [cells[method, group].at_least for group in groups if (method, group) in cells]
    values = [value for value in known if value is not None]
    return (-len(values), sum(values))


def _cell(loss: Loss | None) -> Cell:
    """One field."""
    if loss is None:
        return Cell("no", "", "not run")
    if loss.state == "none":
        return Cell("no", "", f"{loss.method} does not apply to {loss.group.title}")
    plans = f"{loss.plans} of {loss.applies}"
    worst = f"; worst {loss.worst:.1f} % on {loss.worst_instance}" if loss.worst is not None else ""
    head = f"{loss.method}, {loss.group.title}: "
    if loss.state != "loss" or loss.at_least is None:
        return Cell("few", f"{loss.plans}/{loss.applies}", f"{head}a plan on {plans} instances only{worst}")
    words = (
        f"{head}loses {interval(loss.at_least, loss.at_most)}, mean over the {loss.over} of {loss.instances} instances "
        f"that all compared methods solved; {loss.optimal} of {loss.plans} plans proven optimal{worst}"
    )
    level = sum(loss.at_least >= step for step in STEPS)
    return Cell(f"l{level}" + ("" if loss.exact else " open"), _short(loss), words)


def _short(loss: Loss) -> str:
    """The interval in as few characters as it can be read in."""
    low = _figure(loss.at_least or 0.0)
    if loss.at_most is None:
        return f"≥{low}"
    high = _figure(loss.at_most)
    return low if low == high else f"{low}–\u200b{high}"  # may be broken there


def _figure(percent: float) -> str:
    if percent >= THOUSAND:
        return f"{percent / THOUSAND:.1f}k"
    if NOTHING <= percent < LEAST:
        return "<.1"
    return f"{percent:.0f}" if percent >= WHOLE else f"{percent:.1f}".removesuffix(".0")
