"""Every number that the five papers print, each with a verdict from committed runs or the reason why it has none.

Nothing is run: values are read from the tables of the other studies, by the specifications that figures in prose use.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from mapgap.core import InputError, MissingExtra
from mapgap.instances.published_numbers import papers, published_rows
from mapgap.reporting.prose import Tables, looked_up
from mapgap.reporting.report import Page, Section
from mapgap.reporting.study import Gathering
from mapgap.reporting.tables import Table, header
from mapgap.reporting.verdicts import WORDS, Verdict, judge, of_order
from mapgap.studies.published_numbers.entries import REASONS, Entry, Specs, entries_of

TITLES = {
    "asteroid": "Asteroid (MobiCom 2024)",
    "dhm": "DHM FPGA-GPU (SLOHA 2021)",
    "elfish": "ELFISH (2021)",
    "mtrain": "MTrain",
    "synergy": "Synergy (2024)",
}
MISSING = "no verdict yet"
"""Of a number that nobody has judged."""
BROKEN = "cannot be judged"
"""Of a number whose specification leads nowhere."""
SIGNS = {"positive": 1, "negative": -1}


def rows_of(paper: str, entries: Mapping[str, Entry], tables: Tables, faults: list[str]) -> list[dict[str, Any]]:
    """A row per number of a paper; what is wrong with its entries is added to ``faults``."""
    rows = []
    numbers = published_rows(paper)
    known = {number["id"] for number in numbers}
    faults += [f"{paper}: {key}: expected a number of the paper, found none" for key in entries if key not in known]
    for number in numbers:
        row = {"paper": paper, "id": number["id"], "where": number["where"], "what": number["what"]}
        row |= {"printed": _text(number["value"]), "unit": number["unit"], "status": number["status"]}
        entry = entries.get(number["id"])
        if entry is None:
            row |= {"verdict": MISSING}
        elif entry.none is not None:
            row |= {"verdict": "none", "reason": entry.none, "detail": entry.why or REASONS[entry.none]}
        else:
            row |= _judged(number, entry, tables, faults)
        rows.append(row)
    return rows


def _judged(number: Mapping[str, Any], entry: Entry, tables: Tables, faults: list[str]) -> dict[str, Any]:
    """What the committed tables make of a number, in all readings, and the verdict on the kindest one."""
    try:
        found = {name: _value(spec, tables) for name, spec in entry.specs().items()}
        verdicts = {name: _verdict(number, entry, value) for name, value in found.items()}
    except MissingExtra:  # nothing is judged by half of the tables
        raise
    except InputError as error:
        faults.append(f"{number['id']}: {error}")
        return {"verdict": BROKEN, "detail": str(error), "kind": entry.kind}
    kindest = min(verdicts, key=lambda name: verdicts[name].rank)
    others = [f"{name or 'else'}: {_text(value)}" for name, value in found.items() if name != kindest]
    detail = "; ".join(part for part in (verdicts[kindest].words, entry.why) if part)
    return {
        "kind": entry.kind,
        "reproduced": _text(found[kindest]),
        "reading": kindest,
        "others": "; ".join(others),
        "verdict": verdicts[kindest].word,
        "detail": detail,
        "source": "; ".join(" to ".join([spec] if isinstance(spec, str) else spec) for spec in entry.specs().values()),
    }


def _value(spec: Specs, tables: Tables) -> Any:
    return looked_up(spec, tables) if isinstance(spec, str) else [looked_up(each, tables) for each in spec]


def _verdict(number: Mapping[str, Any], entry: Entry, value: Any) -> Verdict:
    assert entry.kind is not None
    if entry.sign is not None:
        judge("order", 1, value)  # a number
        return of_order(SIGNS[entry.sign], value)
    return judge(entry.kind, number["value"], value, number["unit"])


def _text(value: Any) -> str:
    """A value as a reader wants it; intervals as their ends."""
    if isinstance(value, float):
        return f"{value:.4g}"
    return " to ".join(map(_text, value)) if isinstance(value, (list, tuple)) else str(value)


def counts(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Per paper: how many numbers are judged how, and how many are not, for which reason."""
    lines = []
    for paper in [*sorted({row["paper"] for row in rows}), "all"]:
        some = [row for row in rows if paper in ("all", row["paper"])]
        verdicts = Counter(row["verdict"] for row in some)
        reasons = Counter(row["reason"] for row in some if row.get("reason"))
        judged = sum(verdicts[word] for word in WORDS)
        line: dict[str, Any] = {"paper": paper, "numbers": len(some), "checkable": len(some) - sum(reasons.values())}
        line |= {"judged": judged} | {word: verdicts[word] for word in WORDS}
        line |= {"missing": verdicts[MISSING] + verdicts[BROKEN]} | {reason: reasons[reason] for reason in REASONS}
        lines.append(line)
    columns = header(
        "paper | numbers | checkable | judged: with a verdict"
        + "".join(f" | {word}" for word in WORDS)
        + f" | missing: {MISSING}"
        + "".join(f" | {reason}: none: {reason}" for reason in REASONS)
    )
    note = "; ".join(f"{reason}: {words}" for reason, words in REASONS.items())
    return Table("counts", "How many", columns, lines, f"Reasons why there is no verdict: {note}.")


def numbers(paper: str, rows: Sequence[dict[str, Any]]) -> Table:
    """All numbers of one paper."""
    columns = header(
        "what | printed | unit | reproduced: here | verdict | detail: by how much, or why | reason | reading "
        "| others: other readings | kind: judged as | where | status | id: number | source: from"
    )
    return Table(paper, f"Numbers of {TITLES.get(paper, paper)}", columns, rows)


def page(tables: Tables) -> Page:
    """The page with all numbers."""
    faults: list[str] = []
    by_paper = {paper: rows_of(paper, entries_of(paper), tables, faults) for paper in papers()}
    every = [row for rows in by_paper.values() for row in rows]
    count = counts(every)
    total = count.rows[-1]
    lead = [
        f"{total['numbers']} numbers are known of the five papers. {total['judged']} of {total['checkable']} checkable "
        f"rows have a verdict: {total['reproduced']} reproduced, {total['close']} close, {total['differs']} differ.",
        "Every value stands in a table of a committed study; the last column says where. Counts must be equal. Values "
        "are reproduced within 10 % and close within 25 %. Ratios near 1 are judged by what they gain: another sign "
        "differs, 25 % of the gain (or a point) is reproduced, 50 % close. Ranges are reproduced if they overlap by "
        "half of the shorter one, close if they overlap. Where a paper can be read in two ways, both values are given "
        "and the verdict is on the one that is kinder to the paper.",
    ]
    sections = [Section("How many", tables=[count])]
    sections += [Section(TITLES.get(paper, paper), tables=[numbers(paper, rows)]) for paper, rows in by_paper.items()]
    return Page("Published numbers", lead, sections, faults=faults)


STUDY = Gathering(
    name="published_numbers", title="All published numbers, each with a verdict", page=page, headline=("counts",)
)
