"""Everything that a project's committed evidence claims, looked at again.

The ledger's plans are evaluated anew; so is the plan of every committed run. No run may contradict another one or the
ledger, none may know more than the ledger, and each must come from a clean revision with versions that the package
allows. What pages say in figures is audited by :mod:`mapgap.reporting.prose`.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import requires
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import InvalidVersion, Version

from mapgap.catalogue import registry
from mapgap.core import Certificate, InputError, InstanceBase
from mapgap.evidence.contradictions import contradictions
from mapgap.evidence.ledger import Ledger
from mapgap.execution.watch import verify
from mapgap.records.files import read_runs
from mapgap.records.record import RunRecord
from mapgap.records.runs import Runs


@dataclass(frozen=True)
class Fault:
    """Something that a committed file says and that does not hold.

    Attributes
    ----------
    kind : str
        ``ledger``, ``file``, ``instance``, ``plan``, ``trace``, ``contradiction``, ``withheld``, ``revision``,
        ``version``, ``table``, ``missing``, ``verdict``, ``picture``, ``figure``, ``unsupported`` or ``changed``.
    place : str
        File, and line or run.
    words : str
        What is said and what is found.
    """

    kind: str
    place: str
    words: str

    def __str__(self) -> str:
        return f"{self.place}: {self.words}"

    def to_json(self) -> dict[str, str]:
        return dict(vars(self))


LATE, LATE_S = 1.02, 0.05
"""What two clocks of a run may differ by."""


Evaluated = dict[tuple[str, str], tuple[int | None, int]]
"""Objective and number of broken rules of plans, by instance and plan."""


@dataclass
class RunAudit:
    """Audits files of runs against a ledger and the instances that they are about.

    Attributes
    ----------
    book : Ledger
    instance_of : callable
        The instance that a run is about; ``None`` if nobody has it.
    evaluated : dict
        The plans seen, which are not evaluated twice.
    """

    book: Ledger
    instance_of: Callable[[RunRecord], InstanceBase | None]
    evaluated: Evaluated = field(default_factory=dict)
    _known: dict[str, str] = field(init=False)
    _bounds: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    """Bounds of sound runs seen, by instance."""

    def __post_init__(self) -> None:
        self._known = {entry.instance_hash: name for name, entry in self.book.entries.items()}

    def faults(self, file: Path) -> Iterator[Fault]:
        """Everything that is wrong with one file of runs."""
        try:
            runs = read_runs(file)
        except InputError as error:
            yield Fault("file", str(file), str(error))
            return
        yield from self.of_plans(str(file), runs)
        yield from self.of_knowledge(str(file), runs)
        yield from of_origin(str(file), runs)
        for run in runs:
            yield from (Fault("trace", f"{file}: {run.instance} · {run.method}", words) for words in of_trace(run))

    def unwitnessed(self) -> Iterator[Fault]:
        """Bounds of the ledger that neither a certificate nor a run of the files seen shows."""
        for name, entry in self.book.entries.items():
            if entry.bound is None or entry.bound.value in {entry.checked_bound, *self._bounds[entry.instance_hash]}:
                continue
            if entry.certificate is not Certificate.CHECKED:
                words = f"{name}: the bound {entry.bound.value} is in no committed run and has no certificate"
                yield Fault("unsupported", str(self.book.path), words)

    def of_plans(self, place: str, runs: Iterable[RunRecord]) -> Iterator[Fault]:
        """Plans that are not what their runs say, each evaluated once."""
        for run in runs:
            if run.plan is None or run.refuted:
                continue
            here = f"{place}: {run.instance} · {run.method}"
            instance = self.instance_of(run)
            if instance is None:
                yield Fault("instance", here, f"no library and no study has the instance {run.instance_hash}")
                continue
            key = (run.instance_hash, json.dumps(run.plan, sort_keys=True))
            if key not in self.evaluated:
                problem = registry.problems()[run.problem]
                try:
                    plan = problem.plan_type.model_validate_json(json.dumps(run.plan))
                except ValueError as error:
                    yield Fault("plan", here, f"expected a plan of {run.problem}, found something else: {error}")
                    continue
                evaluation = verify(problem, instance, plan)
                self.evaluated[key] = (evaluation.objective, len(evaluation.violations))
            objective, broken = self.evaluated[key]
            if broken:
                yield Fault("plan", here, f"the plan breaks {broken} rule(s)")
            elif objective != run.objective:
                yield Fault("plan", here, f"the run says objective {run.objective}, its plan has {objective}")

    def of_knowledge(self, place: str, runs: Runs) -> Iterator[Fault]:
        """Runs that contradict each other or the ledger, and runs that know more than the ledger."""
        for each in contradictions([*runs, *self.book.references(runs)]):
            yield Fault("contradiction", place, str(each))
        for run in runs:
            name = self._known.get(run.instance_hash)
            if name is None or run.error:
                continue
            if run.bound is not None:
                self._bounds[run.instance_hash].add(run.bound)
            entry, here = self.book.entries[name], f"{place}: {name} · {run.method}"
            held = None if entry.plan is None else entry.plan.value
            if run.objective is not None and (held is None or entry.sign * run.objective < entry.sign * held):
                yield Fault("withheld", here, f"has a plan of {run.objective}, the ledger's best is {held}")
            held = None if entry.bound is None else entry.bound.value
            sure = run.sure_bound  # no other one is entered
            if sure is not None and (held is None or entry.sign * sure > entry.sign * held):
                yield Fault("withheld", here, f"proves the bound {sure}, the ledger's best is {held}")


def of_ledger(
    book: Ledger, named: Callable[[str], InstanceBase], names: Iterable[str] | None = None
) -> Iterator[Fault]:
    """Entries of a ledger (all, or these) that do not hold when they are verified anew on the instances so named."""
    for name in book.entries if names is None else names:
        for words in book.problems_of(name, named(name)):
            yield Fault("ledger", str(book.path), words)


def of_trace(run: RunRecord) -> Iterator[str]:
    """What a run's incumbents and bounds over time say against the run."""
    plans = [run.sign * point.objective for point in run.trace if point.objective is not None]
    bounds = [run.sign * point.bound for point in run.trace if point.bound is not None]
    if plans and run.objective is not None and min(plans) != run.sign * run.objective:
        yield f"its best incumbent is {run.sign * min(plans)}, its objective {run.objective}"
    if plans != sorted(plans, reverse=True) or bounds != sorted(bounds):
        yield "an incumbent or a bound is weaker than one before it"
    if bounds and run.bound is not None and bounds[-1] > run.sign * run.bound:
        yield f"it announced the bound {run.sign * bounds[-1]} and has {run.bound}"
    if run.trace and run.wall_s and run.trace[-1].time_s > LATE * run.wall_s + LATE_S:
        yield f"its last incumbent or bound came after {run.trace[-1].time_s:.2f} of {run.wall_s:.2f} s"


def of_origin(place: str, runs: Iterable[RunRecord]) -> Iterator[Fault]:
    """Runs of a modified revision, of none, or with versions that the package does not allow; one fault per cause."""
    causes: Counter[tuple[str, str]] = Counter()
    for run in runs:
        if run.revision is None or run.revision.endswith("-dirty"):
            causes["revision", f"expected a clean revision, found {run.revision or 'none'}"] += 1
        for package, version in run.versions.items():
            if not allowed(package, version):
                causes["version", f"expected {package} {_pins()[package]}, found {version}"] += 1
    for (kind, words), count in causes.items():
        yield Fault(kind, place, f"{words} ({count} run(s))")


def allowed(package: str, version: str) -> bool:
    """Does the package's own list of dependencies allow this version? Packages outside of it are not judged."""
    if package not in _pins():
        return True
    try:
        return Version(version) in Requirement(f"{package}{_pins()[package]}").specifier
    except InvalidVersion:
        return False


@cache
def _pins() -> dict[str, str]:
    """Package to version specifier, of the dependencies that every installation has."""
    found = [Requirement(text) for text in requires("mapgap") or ()]
    return {each.name: str(each.specifier) for each in found if each.marker is None and each.specifier}
