"""Runs of one instance that cannot all be right.

A verified plan is a fact, for everybody can evaluate it again; a bound, OPTIMAL and INFEASIBLE are claims about all
plans. Two runs contradict each other if a plan lies beyond a bound, if one says INFEASIBLE and the other has a plan, or
if both say OPTIMAL with different objectives. The verified plan decides which of them is wrong: the one that claims.
Bounds alone never contradict each other, for all of them lie on the same side of the optimum.

A contradiction proves that an engine or a method is wrong, so it is never averaged over: every command that sees both
runs says so and exits with 5, and no gap is stated (:func:`mapgap.records.record.relative`,
:class:`mapgap.records.runs.InstanceFacts`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from mapgap.core import Status
from mapgap.records.record import RunRecord


@dataclass(frozen=True)
class Contradiction:
    """Two runs of one instance of which at least one is wrong.

    Attributes
    ----------
    claim, fact : RunRecord
        The run that claims something of all plans, and the run that refutes it.
    words : str
        ``exact claims bound 12, but greedy has a plan of objective 11``.
    """

    claim: RunRecord
    fact: RunRecord
    words: str

    def __str__(self) -> str:
        return f"{self.claim.instance}: {self.words}"


def contradictions(records: Iterable[RunRecord]) -> list[Contradiction]:
    """All contradictions among some runs, per instance (by content hash) and per claim; empty if none is seen.

    Runs that ended with an error claim nothing.
    """
    groups: dict[str, list[RunRecord]] = {}
    for record in records:
        if not record.error:
            groups.setdefault(record.instance_hash, []).append(record)
    return [found for group in groups.values() for found in _of_one_instance(group)]


def _of_one_instance(records: list[RunRecord]) -> list[Contradiction]:
    """Every claim against the best plan: whatever contradicts any plan contradicts that one."""
    sign = records[0].sign
    plans = [record for record in records if record.objective is not None]
    best = min(plans, key=lambda record: sign * (record.objective or 0), default=None)
    if best is None or best.objective is None:
        return []
    against = f"but {best.method} has a plan of objective {best.objective}"
    found = []
    for record in records:
        if record.bound is not None and sign * record.bound > sign * best.objective:
            found.append(Contradiction(record, best, f"{record.method} claims bound {record.bound}, {against}"))
        elif record.status == Status.INFEASIBLE:
            found.append(Contradiction(record, best, f"{record.method} claims INFEASIBLE, {against}"))
        elif record.status == Status.OPTIMAL and record.objective not in (None, best.objective):
            words = f"{record.method} claims OPTIMAL at {record.objective}, {against}"
            found.append(Contradiction(record, best, words))
    return found
