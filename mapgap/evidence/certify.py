"""Raise the certificate of an optimum: two engines that agree, and a case split whose best case is the optimum.

One engine's OPTIMAL is a claim. ``certify`` solves the instance by exact methods of two different engines; then it
fixes one decision each way (the problem's ``cases``), solves every case, and checks that the best case equals the
optimum. Only if all of it holds is the certificate ``agreed``; exhaustive enumeration gives ``enumerated``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from mapgap.catalogue import registry
from mapgap.catalogue.files import find_instances, load_instance
from mapgap.core import DISTRUSTED, Budget, Certificate, InputError, InstanceBase, Method, PlanError, Status
from mapgap.evidence.contradictions import contradictions
from mapgap.evidence.ledger import Ledger, library_names
from mapgap.execution.progress import Event, Tell, silence
from mapgap.execution.run import run_uninterrupted
from mapgap.records.record import RunRecord


@dataclass(frozen=True)
class Solving(Event):
    """A method starts on the instance, or on a case of it."""

    method: str
    instance: str


@dataclass
class Certification:
    """What was tried and what it proves.

    Attributes
    ----------
    grade : Certificate or None
        ``None`` if no method proved an optimum.
    objective : int or None
    runs : list of RunRecord
        Of whole instances, then of cases.
    missing : list of str
        Why the grade is not higher.
    contradiction : bool
        Two proofs exclude each other.
    """

    instance: str
    instance_hash: str
    problem: str
    unit: str
    grade: Certificate | None = None
    objective: int | None = None
    runs: list[RunRecord] = field(default_factory=list)
    cases: list[dict[str, Any]] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    contradiction: bool = False

    def to_json(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            key: getattr(self, key) for key in ("instance", "instance_hash", "problem", "unit", "grade", "objective")
        }
        runs = [
            {key: getattr(run, key) for key in ("instance", "method", "status", "stop", "objective", "bound", "wall_s")}
            for run in self.runs
        ]
        found |= {"cases": self.cases, "missing": self.missing, "contradiction": self.contradiction, "runs": runs}
        return found


def exact_methods(problem: str) -> list[Method]:
    """Exact methods, strongest first."""
    found = [m for m in registry.methods(problem).values() if m.kind == "exact"]
    return sorted(found, key=lambda m: (-m.rank, m.name))


def certify(
    instance: InstanceBase,
    budget: Budget,
    *,
    plugins: tuple[Path, ...] = (),
    tell: Tell = silence,
) -> Certification:
    """Certify the optimum of an instance; ``budget`` holds for every single run.

    Raises
    ------
    PlanError
        Two methods, or a method and the case split, contradict each other: at least one of them is wrong.
    """
    problem = registry.problems()[instance.problem]
    found = Certification(instance.name, instance.content_hash, problem.name, problem.unit(instance))
    proofs: list[tuple[set[str], RunRecord]] = []

    def solve(method: Method, target: InstanceBase) -> RunRecord:
        fresh = Budget(budget.time_s, budget.memory_mb, budget.workers, budget.seed)
        tell(Solving(method.name, target.name))
        record = run_uninterrupted(target, method, fresh, plugins=plugins, tell=tell)
        if record.refuted:
            raise PlanError(f"{target.name}: {method.name}: {record.error}")
        found.runs.append(record)
        return record

    strongest: Method | None = None
    independent = False
    for method in exact_methods(problem.name):
        engines = set(method.engines or (method.name,))
        if strongest is not None and all(engines & others for others, _ in proofs):
            continue
        record = solve(method, instance)
        if record.notes.get(DISTRUSTED):  # another engine than the method's may have proven it
            _agree(found)
            continue
        if record.status in (Status.OPTIMAL, Status.INFEASIBLE):
            independent = any(not engines & others for others, _ in proofs)
            proofs.append((engines, record))
            strongest = strongest or method
            _agree(found)
        if independent:
            break
    if strongest is None:
        found.missing.append("no exact method proved an optimum within the budget")
        return found
    first = proofs[0][1]
    found.objective = first.objective
    enumerated = any(proof.certificate == Certificate.ENUMERATED for _, proof in proofs)
    found.grade = Certificate.ENUMERATED if enumerated else Certificate.CLAIMED
    if not independent:
        found.missing.append("a proof by a second method that shares no engine with the first")
    if _split(instance, strongest, first, found, solve) and independent and not enumerated:
        found.grade = Certificate.AGREED
    return found


def _agree(found: Certification) -> None:
    """The runs of the whole instance, so far."""
    contrary = contradictions(run for run in found.runs if run.instance_hash == found.instance_hash)
    if contrary:
        words = "; ".join(each.words for each in contrary)
        raise PlanError(f"{found.instance}: exact methods contradict each other: {words}")


def _split(
    instance: InstanceBase,
    method: Method,
    proof: RunRecord,
    found: Certification,
    solve: Callable[..., RunRecord],
) -> bool:
    """Whether the best case is the optimum; ``False`` with a reason where the split cannot be made or solved."""
    cases = registry.library(instance.problem).cases(instance)
    if not cases:
        found.missing.append("a case split: the problem offers none for this instance")
        return False
    values: list[int] = []
    sign = -1 if proof.sense == "max" else 1
    for case in cases:
        record = solve(method, case.instance)
        found.cases.append(
            {"case": case.label, "status": record.status, "objective": record.objective, "bound": record.bound}
        )
        if record.status not in (Status.OPTIMAL, Status.INFEASIBLE):
            found.missing.append(f"a case split: {case.label} is not solved within the budget")
            return False
        if record.objective is not None:
            values.append(record.objective)
    best = min(values, key=lambda value: sign * value, default=None)
    if best != proof.objective:
        raise PlanError(f"{instance.name}: {method.name} proves {proof.objective}, but its best case has {best}")
    return True


def certify_all(
    pattern: str,
    budget: Budget,
    *,
    ledger: Path | None = None,
    update: bool = False,
    tell: Tell = silence,
) -> list[Certification]:
    """Certify library or file instances, and enter every result into the ledger at once if asked (``update``).

    A contradiction on one of several instances does not stop the others; its certification says so in ``missing``.

    Raises
    ------
    InputError
        No such instance, or (``update``) one that is not of the library.
    PlanError
        A contradiction on the only instance.
    """
    instances = [load_instance(name) for name in find_instances(pattern) or [pattern]]
    library = library_names(each.content_hash for each in instances) if update else {}
    for instance in instances:
        if update and instance.content_hash not in library:
            raise InputError(f"--update-ledger: expected an instance of the library, found {instance.name}")
    found: list[Certification] = []
    for instance in instances:
        try:
            found.append(certify(instance, budget, tell=tell))
        except PlanError as error:
            if len(instances) == 1:
                raise
            problem = registry.problems()[instance.problem]
            failed = Certification(instance.name, instance.content_hash, problem.name, problem.unit(instance))
            found.append(replace(failed, missing=[str(error)], contradiction=True))
            continue
        if update:
            _enter(found[-1], library, ledger)
    return found


def _enter(found: Certification, library: Mapping[str, str], path: Path | None) -> None:
    book = Ledger.load(path)
    book.update([run for run in found.runs if run.instance_hash == found.instance_hash], library)
    entry = book.entries.get(library[found.instance_hash])
    if entry is not None and entry.certificate is not None and found.grade is not None:
        book.grade(entry.instance, found.grade, found.runs[0])
    book.save()
