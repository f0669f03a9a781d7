"""The best-known ledger: per library instance the best verified plan, the best proven bound, and who found them.

``instances/best_known.yaml`` lists one entry per instance and objective; the plans lie beside it in
``instances/best_known/`` as files that ``mapgap check`` verifies, and certificates of bounds as files that ``mapgap
verify`` checks. Runs only ever improve an entry. Every plan is evaluated before it enters. A run that contradicts an
entry (a plan beyond the proven bound, a bound beyond the plan) is an error, and so is a regression: a run of the method
that proved the bound, with at least its budget, that proves clearly less.

Files are replaced as a whole, plans before the ledger: after a kill between the two a plan is better than its entry
says, never worse, and entering the run again repairs it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml
from pydantic import Field

from mapgap.catalogue import registry
from mapgap.catalogue.files import library_files, load_instance, load_model, load_plan, retarget
from mapgap.core import UNCONFIRMED, Certificate, InstanceBase, PlanError
from mapgap.evidence.contradictions import contradictions
from mapgap.evidence.entry import A_RUN, Entry, Finding, Origin, Strict
from mapgap.execution.watch import verify
from mapgap.records.files import replace_file
from mapgap.records.record import RunRecord, relative

CERTIFICATE = ".cert.json.gz"  #: how the names of certificate files end
TOLERANCE = 0.005  #: share by which a bound may fall behind the ledger's before it is a regression


def default_path() -> Path:
    """The ledger of the library."""
    return registry.folder("instances") / "best_known.yaml"


class _File(Strict):
    schema_version: int = Field(alias="schema", ge=1, le=1)
    entries: tuple[Entry, ...] = ()


@dataclass(frozen=True)
class Known:
    """What a ledger says of an instance, in short.

    Attributes
    ----------
    name, instance_hash, unit, sense : str
    plan, bound : int, optional
    certificate : str
        Grade of the optimum; empty where it is not proven.
    """

    name: str
    instance_hash: str = ""
    unit: str = ""
    sense: str = "min"
    plan: int | None = None
    bound: int | None = None
    certificate: str = ""

    @property
    def status(self) -> str:
        """In words: ``optimal (checked)``, ``gap 1.23%``, ``no bound``."""
        if self.plan is None:
            return "no plan"
        if self.plan == self.bound:
            return f"optimal ({self.certificate})" if self.certificate else "optimal"
        gap = relative(self.plan, self.bound, -1 if self.sense == "max" else 1)
        return "no bound" if gap is None else f"gap {100 * gap:.2f}%"


def glance(path: Path | None = None) -> dict[str, Known]:
    """Instance name to what the ledger says of it, read line by line: a list of instances waits for nothing else.

    Lines as :meth:`Ledger.save` writes them are read as they are; :meth:`Ledger.load` validates.
    """
    where = path or default_path()
    found: dict[str, Known] = {}
    values: dict[str, Any] = {}
    part = ""

    def close() -> None:
        if "name" in values:
            found[values["name"]] = Known(**values)

    for line in where.read_text(encoding="utf-8").splitlines() if where.exists() else ():
        key, _, text = line.strip().removeprefix("- ").partition(":")
        text = text.strip()
        if line.startswith("- instance:"):
            close()
            values, part = {"name": text}, ""
        elif line.startswith("    "):
            if key == "value" and part:
                values[part] = int(text)
        elif key in ("plan", "bound"):
            part = key
        elif key in ("instance_hash", "unit", "sense", "certificate"):
            values[key] = text.strip("'\"")
    close()
    return found


@dataclass
class Ledger:
    """The entries of a ledger file by instance name, and the plans that came with them."""

    path: Path
    entries: dict[str, Entry] = field(default_factory=dict)
    plans: dict[str, Mapping[str, Any]] = field(default_factory=dict)

    @classmethod
    def load(cls, path: Path | None = None) -> Ledger:
        """Read a ledger; an empty one if there is no file.

        Raises
        ------
        InputError
            Every finding with file, line and field.
        """
        where = path or default_path()
        if not where.exists():
            return cls(where)
        return cls(where, {entry.instance: entry for entry in load_model(where, _File).entries})

    def plan_path(self, name: str) -> Path:
        """Where the plan of an instance lies."""
        return self.path.with_suffix("") / f"{name.replace('@', '__')}.json"

    def certificate_path(self, name: str) -> Path:
        """Where the certificate of an instance lies."""
        return self.path.with_suffix("") / f"{name.replace('@', '__')}{CERTIFICATE}"

    def references(self, records: Iterable[RunRecord]) -> list[RunRecord]:
        """What is known of the instances of some runs: records of kind ``reference`` for
        :mod:`mapgap.reporting.analysis`."""
        known = {entry.instance_hash: entry for entry in self.entries.values()}
        found = []
        for digest, name in {r.instance_hash: r.instance for r in records}.items():
            entry = known.get(digest)
            for reference in () if entry is None else entry.references(name):
                if entry is not None and reference.objective is not None:
                    plan = load_plan(self.plan_path(entry.instance), entry.problem).to_json()
                    reference = replace(reference, plan=plan)
                found.append(reference)
        return found

    def save(self) -> None:
        """Write the plans that are new, then the file.

        Raises
        ------
        MapgapError
            Something cannot be written.
        """
        for name, plan in self.plans.items():
            replace_file(self.plan_path(name), (json.dumps(plan, separators=(",", ":")) + "\n").encode())
        entries = [self.entries[name].model_dump(mode="json", exclude_none=True) for name in sorted(self.entries)]
        for entry in entries:
            if not entry["history"]:
                del entry["history"]
        head = (
            "# Written by `mapgap bench`, `certify` and `prove` with `--update-ledger`, `ledger close` and `submit`; "
            "do not edit.\n"
        )
        text = yaml.safe_dump({"schema": 1, "entries": entries}, sort_keys=False, width=118, default_flow_style=None)
        replace_file(self.path, (head + text).encode())

    def update(self, records: Iterable[RunRecord], library: Mapping[str, str], source: str = "") -> list[str]:
        """Enter runs on library instances; returns what improved, in words.

        Parameters
        ----------
        library : mapping of str to str
            Content hash to name; runs on other instances are left out.
        source : str
            The file of the runs, for the history.

        Raises
        ------
        PlanError
            A run contradicts the ledger, or is a regression, or its plan is none of the instance's or has another
            objective than the run says. Nothing of that run is entered.
        """
        changes: list[str] = []
        for record in records:
            name = library.get(record.instance_hash)
            if name is not None and not record.error:
                changes += self.enter(name, record, Origin(source=source))
        return changes

    def enter(self, name: str, record: RunRecord, origin: Origin = A_RUN) -> list[str]:
        """Enter a plan, a bound or both; returns what improved, in words.

        Parameters
        ----------
        origin : Origin
            For the history: where they come from, if not from the method of the record alone.

        Raises
        ------
        PlanError
            As :meth:`update`.
        """
        entry = self.entries.get(name)
        if entry is None or entry.instance_hash != record.instance_hash:  # new, or the instance has changed
            keys = ("instance_hash", "problem", "unit", "sense")
            entry = Entry(instance=name, **{key: getattr(record, key) for key in keys})
        objective, bound, sign = record.objective, record.bound, entry.sign
        if record.notes.get(UNCONFIRMED):  # the word of one engine
            bound = None
        self._refuse(entry, record)
        _judge(name, record)
        changes = []
        better = objective is not None and (entry.plan is None or sign * objective < sign * entry.plan.value)
        if objective is not None and record.plan is not None and better:
            changes.append(f"{name}: plan {_value(entry.plan)} -> {objective} ({record.method})")
            entry.remember("plan", objective, record, origin)
            entry.plan = _finding(objective, record)
            self.plans[name] = record.plan
        if bound is not None and (entry.bound is None or sign * bound > sign * entry.bound.value):
            changes.append(f"{name}: bound {_value(entry.bound)} -> {bound} ({record.method})")
            entry.remember("bound", bound, record, origin)
            entry.bound = _finding(bound, record)
        if entry.proven:
            # A plan of one run that meets the bound of another is as proven as either.
            entry.raise_certificate(Certificate(record.certificate or Certificate.CLAIMED))
            if entry.checked_bound is not None:
                entry.check_in(entry.checked_bound)
        if entry.plan is not None or entry.bound is not None:
            self.entries[name] = entry
        return changes

    def enter_certificate(self, name: str, proof: RunRecord, origin: Origin = A_RUN) -> list[str]:
        """Enter the bound of a certificate file that was just checked; what improved, in words.

        Parameters
        ----------
        proof : RunRecord
            Of kind ``bound``: what is proven, and when.

        Raises
        ------
        PlanError
            The bound lies beyond the ledger's plan: the checker, its writer or the evaluator is wrong.
        """
        assert proof.bound is not None
        entry, changes = self.entries.get(name), []
        held = None if entry is None or entry.instance_hash != proof.instance_hash else entry.bound
        if entry is None or held is None or entry.sign * proof.bound > entry.sign * held.value:
            changes += self.enter(name, proof, origin)
            entry = self.entries[name]
        if entry.check_in(proof.bound):
            entry.remember("checked", proof.bound, proof, origin)
            grade = "" if entry.certificate is not Certificate.CHECKED else ", the optimum"
            changes.append(f"{name}: bound {proof.bound} checked{grade}")
        return changes

    @staticmethod
    def _refuse(entry: Entry, record: RunRecord) -> None:
        """Contradictions and regressions."""
        run = f"{entry.instance}: {record.method}"
        contrary = contradictions([record, *entry.references(record.instance)])
        if contrary:
            words = "; ".join(each.words for each in contrary)
            raise PlanError(f"{run} and the ledger (*) contradict each other: {words}")
        bound, sign = record.bound, entry.sign
        held = entry.bound
        if bound is None or held is None or held.method != record.method:
            return
        as_large = record.time_limit_s >= held.time_limit_s and record.workers >= held.workers
        if as_large and sign * (held.value - bound) > TOLERANCE * abs(held.value):
            raise PlanError(f"{run} proves {bound} only; within no larger budget it has proven {held.value} before")

    def problems_of(self, name: str, instance: InstanceBase | None = None) -> list[str]:
        """Everything that is wrong with an entry when it is verified anew; empty if it holds. The instance of that name
        may be handed in by those who have it."""
        entry = self.entries[name]
        instance = instance or load_instance(name)
        found = []
        if instance.content_hash != entry.instance_hash:
            return [f"{name}: the instance has changed ({entry.instance_hash} is now {instance.content_hash})"]
        if entry.plan is not None:
            plan = load_plan(self.plan_path(name), entry.problem)
            evaluation = verify(registry.problems()[entry.problem], instance, plan)
            if evaluation.objective != entry.plan.value or not evaluation.feasible:
                found.append(f"{name}: the plan has {evaluation.objective}, the ledger says {entry.plan.value}")
            if entry.bound is not None and entry.sign * entry.bound.value > entry.sign * entry.plan.value:
                found.append(f"{name}: bound {entry.bound.value} beyond the plan {entry.plan.value}")
        if entry.certificate is not None and not entry.proven:
            found.append(f"{name}: a certificate, although plan and bound do not meet")
        if entry.certified is not None and not self.certificate_path(name).is_file():
            found.append(f"{name}: bound {entry.certified} is checked, but there is no certificate file")
        return found


@lru_cache(maxsize=8)
def _instance(name: str) -> InstanceBase:
    return load_instance(name)


def _judge(name: str, record: RunRecord) -> None:
    """Evaluate the plan of a run anew."""
    run = f"{name}: {record.method}"
    if record.certificate == Certificate.CHECKED:
        raise PlanError(f"{run} says 'checked'; that is the word of a certificate file, never of a run")
    if record.plan is None:
        return
    problem, instance = registry.problems()[record.problem], _instance(name)
    if instance.content_hash != record.instance_hash:
        raise PlanError(f"{run} is about instance {record.instance_hash}, not {instance.content_hash}")
    try:
        plan = problem.plan_type.model_validate_json(json.dumps(record.plan))
    except ValueError as error:
        raise PlanError(f"{run} has something that is no plan of {problem.name}: {error}") from error
    evaluation = verify(problem, instance, plan)
    if not evaluation.feasible:
        raise PlanError(f"{run} has a plan that breaks {len(evaluation.violations)} rule(s)")
    if evaluation.objective != record.objective:
        raise PlanError(f"{run} says objective {record.objective}, but its plan has {evaluation.objective}")


def _value(finding: Finding | None) -> int | str:
    return "none" if finding is None else finding.value


def _finding(value: int, record: RunRecord) -> Finding:
    keys = ("method", "started", "time_limit_s", "workers")
    return Finding(value=value, versions=dict(record.versions), **{key: getattr(record, key) for key in keys})


def library_hashes() -> dict[str, str]:
    """Content hash to name of every library instance, under every objective of its problem."""
    found: dict[str, str] = {}
    for name in library_files():
        instance = load_instance(name)
        found.setdefault(instance.content_hash, name)
        for objective in registry.problems()[instance.problem].objectives:
            other = retarget(instance, objective)
            found.setdefault(other.content_hash, other.name)
    return found


def update_ledger(records: Iterable[RunRecord], path: Path | None = None, source: str = "") -> list[str]:
    """Enter runs into the ledger file, one after the other; what was entered before an error stays.

    Raises
    ------
    PlanError
        See :meth:`Ledger.update`.
    """
    ledger = Ledger.load(path)
    library = library_hashes()
    changes: list[str] = []
    try:
        for record in records:
            changes += ledger.update([record], library, source)
    finally:
        if changes:
            ledger.save()
    return changes
