"""An index of runs: what is known of every instance, and single runs by instance, method and options."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, overload

from mapgap.core import Status
from mapgap.records.record import RunRecord, plain, relative


@dataclass(frozen=True)
class InstanceFacts:
    """What all runs together know of one instance: best verified plan, best proven bound and who found them.

    A bound that is the word of an engine, confirmed by nobody, counts where there is no other one. It proves nothing.

    There is no bound where a plan refutes a run's bound or its INFEASIBLE: that run's engine is wrong, and nobody knows
    which others are (:mod:`mapgap.evidence.contradictions` names it).
    """

    name: str
    problem: str
    best: int | None
    best_by: str | None
    bound: int | None
    bound_by: str | None
    sign: int = 1
    sure: bool = True

    @property
    def gap(self) -> float | None:
        return relative(self.best, self.bound, self.sign)

    @property
    def proven(self) -> bool:
        return self.best is not None and self.best == self.bound and self.sure


def facts(records: Iterable[RunRecord]) -> dict[str, InstanceFacts]:
    """Best plan and best bound per instance hash, over all methods."""
    groups: dict[str, list[RunRecord]] = defaultdict(list)
    for record in records:
        groups[record.instance_hash].append(record)
    found = {}
    for key, group in groups.items():
        sign, sound = group[0].sign, [record for record in group if not record.error]
        plans = [(record.objective, record.method) for record in sound if record.objective is not None]
        bounds = [(record.sure_bound, record.method) for record in sound if record.sure_bound is not None]
        words = [(record.bound, f"{record.method}, unconfirmed") for record in sound if record.bound is not None]
        best, best_by = min(plans, key=lambda each: sign * each[0], default=(None, None))
        bound, bound_by = max(bounds or words, key=lambda each: sign * each[0], default=(None, None))
        beyond = best is not None and bound is not None and sign * bound > sign * best
        if beyond or (best is not None and any(record.status == Status.INFEASIBLE for record in sound)):
            bound, bound_by = None, None
        found[key] = InstanceFacts(
            group[0].instance, group[0].problem, best, best_by, bound, bound_by, sign, bool(bounds)
        )
    return found


class Runs(Sequence[RunRecord]):
    """Records in the order they came, with what studies and reports ask of them."""

    def __init__(self, records: Iterable[RunRecord] = ()) -> None:
        self._records = tuple(records)

    @overload
    def __getitem__(self, index: int) -> RunRecord: ...
    @overload
    def __getitem__(self, index: slice) -> Runs: ...
    def __getitem__(self, index: int | slice) -> RunRecord | Runs:
        return Runs(self._records[index]) if isinstance(index, slice) else self._records[index]

    def __len__(self) -> int:
        return len(self._records)

    def __iter__(self) -> Iterator[RunRecord]:
        return iter(self._records)

    def __add__(self, others: Iterable[RunRecord]) -> Runs:
        return Runs((*self._records, *others))

    def where(self, keep: Callable[[RunRecord], bool] = lambda record: True, **fields: Any) -> Runs:
        """The records with these values of their fields, for which ``keep`` holds."""
        return Runs(
            record
            for record in self._records
            if all(getattr(record, name) == value for name, value in fields.items()) and keep(record)
        )

    @cached_property
    def measured(self) -> Runs:
        """The runs, without the references to what was known before them."""
        return self.where(lambda record: record.kind != "reference")

    @cached_property
    def labelled(self) -> Runs:
        """The records with a method's options behind its name, where its runs differ in them: ``dp (order=best)``.

        Tables group by method. What a method does with an option may be quite another thing than what it does without.
        """
        given: dict[tuple[str, str], list[Mapping[str, Any]]] = defaultdict(list)
        for record in self._records:
            given[record.problem, record.method].append(plain(record.options))
        differing = {
            key: {name for options in found for name in options if any(o.get(name) != options[name] for o in found)}
            for key, found in given.items()
        }
        return Runs(_labelled(record, differing[record.problem, record.method]) for record in self._records)

    @cached_property
    def facts(self) -> dict[str, InstanceFacts]:
        """What is known of every instance, by content hash."""
        return facts(self._records)

    @cached_property
    def _by_name(self) -> dict[str, InstanceFacts]:
        # One instance may have two names, so every name leads to the hash.
        return {record.instance: self.facts[record.instance_hash] for record in self._records}

    @cached_property
    def _index(self) -> dict[tuple[str, str, str], RunRecord]:
        sound = [record for record in self._records if not record.error]
        return {
            (name, record.method, _canonical(record.options)): record
            for record in sound
            for name in (record.instance_hash, record.instance)
        }

    def fact(self, instance: str) -> InstanceFacts | None:
        """What is known of an instance, by name or content hash."""
        return self._by_name.get(instance) or self.facts.get(instance)

    def get(self, instance: str, method: str, **options: Any) -> RunRecord | None:
        """The last sound run of a method with exactly these options on an instance, by name or content hash."""
        return self._index.get((instance, method, _canonical(options)))

    def objective(self, instance: str, method: str, **options: Any) -> int | None:
        """Objective of the plan; ``None`` without a run or a plan."""
        record = self.get(instance, method, **options)
        return None if record is None else record.objective

    def term(self, instance: str, method: str, term: str, **options: Any) -> Any:
        """A term of the plan's evaluation; ``None`` without a run or a plan."""
        record = self.get(instance, method, **options)
        return None if record is None or record.objective is None else record.terms.get(term)

    def note(self, instance: str, method: str, note: str, **options: Any) -> Any:
        """A note of the method; ``None`` without a run."""
        record = self.get(instance, method, **options)
        return None if record is None else record.notes.get(note)

    def gap(self, instance: str, method: str, **options: Any) -> float | None:
        """Share by which the plan falls short of the best proven bound."""
        fact = self.fact(instance)
        return None if fact is None else relative(self.objective(instance, method, **options), fact.bound, fact.sign)


def _labelled(record: RunRecord, differing: Collection[str]) -> RunRecord:
    shown = [
        name if value is True else f"{name}={value}"
        for name, value in sorted(record.options.items())
        if name in differing
    ]
    return replace(record, method=f"{record.method} ({', '.join(shown)})") if shown else record


def _canonical(options: Mapping[str, Any]) -> str:
    return json.dumps(plain(options), sort_keys=True)
