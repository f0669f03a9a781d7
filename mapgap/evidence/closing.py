"""Close the ledger: what is known of one instance is passed on to those that it says something of.

A plan is carried to another instance as its library proposes (``Library.carrying``) and evaluated there: if it is
better, it enters, whatever the idea behind it was. A bound is passed on only where the library has a proof
(``Library.implying``). Both are repeated until nothing improves. An optimum that is proven has nothing to gain, but
what others say of it is looked at all the same: a plan beyond its bound or a bound beyond its plan is a contradiction,
and an error.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mapgap.catalogue import registry
from mapgap.catalogue.files import load_instance, load_plan
from mapgap.core import InstanceBase, Library, PlanBase, PlanError, Problem, Status, Stop
from mapgap.evidence.entry import Entry, Origin
from mapgap.evidence.ledger import Ledger
from mapgap.execution.progress import Event, Tell, silence
from mapgap.execution.watch import verify
from mapgap.records.environment import revision, versions
from mapgap.records.record import RunRecord

METHOD = "close"  #: under which name the ledger holds what was passed on


@dataclass(frozen=True)
class Comparing(Event):
    """An instance is compared with all others of its problem."""

    instance: str


@dataclass(frozen=True)
class Step(Event):
    """An entry improves by another.

    Attributes
    ----------
    what : {"plan", "bound"}
    before : int or None
    after : int
    source : str
        The entry that says so.
    """

    instance: str
    what: str
    before: int | None
    after: int
    source: str

    def to_json(self) -> dict[str, Any]:
        return dict(vars(self))


def close(path: Path | None = None, *, check: bool = False, tell: Tell = silence) -> list[Step]:
    """Pass on plans and bounds within the ledger until nothing improves; what improved.

    Parameters
    ----------
    check : bool
        Write nothing: the steps are what could improve.
    tell : callable, optional
        Receives :class:`Comparing` and :class:`Step`.

    Raises
    ------
    InputError
        An entry whose instance or plan is not there.
    PlanError
        Two entries contradict each other.
    """
    book = Ledger.load(path)
    found: list[Step] = []
    for problem in sorted({entry.problem for entry in book.entries.values()}):
        library = registry.library(problem)
        if library.carrying is not None or library.implying is not None:
            found += _Closing(book, registry.problems()[problem], library, tell).run()
    if found and not check:
        book.save()
    return found


class _Closing:
    """The entries of one problem."""

    def __init__(self, book: Ledger, problem: Problem, library: Library, tell: Tell) -> None:
        self.book, self.problem, self.library, self.tell = book, problem, library, tell
        self.instances: dict[str, InstanceBase] = {}
        self.plans: dict[str, PlanBase] = {}
        for name, entry in sorted(book.entries.items()):
            if entry.problem != problem.name:
                continue
            instance = load_instance(name)
            if instance.content_hash != entry.instance_hash:
                continue  # the ledger is about an older instance of that name; `problems_of` says so
            self.instances[name] = instance
            if entry.plan is not None:
                self.plans[name] = load_plan(book.plan_path(name), problem.name)

    def run(self) -> list[Step]:
        """Until nothing improves; an entry is looked at again by the others when it has improved."""
        found: list[Step] = []
        sources = set(self.instances)
        while sources:
            steps = [step for target in self.instances for step in self._improve(target, sources - {target})]
            found += steps
            sources = {step.instance for step in steps}
        return found

    def _improve(self, target: str, sources: set[str]) -> Iterator[Step]:
        self.tell(Comparing(target))
        for source in sorted(sources):
            given = self.book.entries[source]
            if source in self.plans:
                for plan in self.library.carry(self.plans[source], self.instances[source], self.instances[target]):
                    yield from self._carried(target, source, plan)
            if given.bound is not None:
                value = self.library.imply(given.bound.value, self.instances[source], self.instances[target])
                if value is not None:
                    yield from self._implied(target, source, value)

    def _carried(self, target: str, source: str, plan: PlanBase) -> Iterator[Step]:
        entry = self.book.entries[target]
        evaluation = verify(self.problem, self.instances[target], plan)
        value, held = evaluation.objective, None if entry.plan is None else entry.plan.value
        if evaluation.feasible and value is not None and (held is None or entry.sign * value < entry.sign * held):
            record = self._record(entry, kind="baseline", objective=value, plan=plan.to_json())
            self._enter(target, source, record)
            self.plans[target] = plan
            yield self._told(Step(target, "plan", held, value, source))

    def _implied(self, target: str, source: str, value: int) -> Iterator[Step]:
        entry = self.book.entries[target]
        held = None if entry.bound is None else entry.bound.value
        if held is None or entry.sign * value > entry.sign * held:
            self._enter(target, source, self._record(entry, kind="bound", bound=value))
            yield self._told(Step(target, "bound", held, value, source))

    def _told(self, step: Step) -> Step:
        self.tell(step)
        return step

    def _enter(self, target: str, source: str, record: RunRecord) -> None:
        try:
            self.book.enter(target, record, Origin(by=f"{METHOD} from {source}"))
        except PlanError as error:
            raise PlanError(f"{error} (passed on from {source})") from error

    def _record(self, entry: Entry, **found: Any) -> RunRecord:
        return RunRecord(
            instance=entry.instance,
            instance_hash=entry.instance_hash,
            problem=entry.problem,
            sense=entry.sense,
            unit=entry.unit,
            method=METHOD,
            status=Status.FEASIBLE if "plan" in found else Status.UNKNOWN,
            stop=Stop.DONE,
            started=datetime.now(UTC).isoformat(timespec="seconds"),
            versions=versions(),
            revision=revision(),
            **found,
        )
