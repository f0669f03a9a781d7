"""The best-known ledger: per library instance the best verified plan, the best proven bound, and who found them.

``instances/best_known.yaml`` lists one entry per instance and objective; the plans lie beside it in
``instances/best_known/`` as files that ``mapgap check`` verifies, and certificates of bounds as files that ``mapgap
verify`` checks. Runs only ever improve an entry. Every plan is evaluated before it enters. A run that contradicts an
entry (a plan beyond the proven bound, a bound beyond the plan) is an error, and so is a regression: a run of the method
that proved the bound, with at least its budget, that proves clearly less.

File and plans are made from ``instances/best_known.journal`` (:mod:`mapgap.evidence.journal`), a line per fact with its
plan. What several processes enter at once is all there; what has been entered survives a kill at any moment, and
whoever enters something next, or ``mapgap ledger rebuild``, makes files anew that are behind.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml
from pydantic import Field

from mapgap.catalogue import registry
from mapgap.catalogue.files import library_files, load_instance, load_model, load_plan, retarget
from mapgap.core import Certificate, InstanceBase, PlanError, Status
from mapgap.core.storage import make_folder
from mapgap.evidence import check, journal
from mapgap.evidence.contradictions import contradictions
from mapgap.evidence.entry import A_RUN, Entry, Fact, Finding, Origin, Strict
from mapgap.execution.watch import verify
from mapgap.records.files import held, replace_file
from mapgap.records.record import RunRecord, relative

CERTIFICATE = ".cert.json.gz"  #: how the names of certificate files end
WAIT_S = 600.0  #: for those who write to the ledger at the same time
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
    infeasible : str
        ``true`` where a certificate file proves that there is no plan.
    """

    name: str
    instance_hash: str = ""
    unit: str = ""
    sense: str = "min"
    plan: int | None = None
    bound: int | None = None
    certificate: str = ""
    infeasible: str = ""

    @property
    def status(self) -> str:
        """In words: ``optimal (checked)``, ``gap 1.23%``, ``no bound``, ``infeasible (checked)``."""
        if self.infeasible:
            return "infeasible (checked)"
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
        elif key in ("instance_hash", "unit", "sense", "certificate", "infeasible"):
            values[key] = text.strip("'\"")
    close()
    return found


@dataclass
class Ledger:
    """The entries of a ledger file by instance name, the plans that came with them, and what is not saved yet: facts,
    and the entries as they were before them."""

    path: Path
    entries: dict[str, Entry] = field(default_factory=dict)
    plans: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    facts: list[Fact] = field(default_factory=list)
    before: dict[str, Entry | None] = field(default_factory=dict)

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

    @property
    def journal_path(self) -> Path:
        """Where the facts are."""
        return self.path.with_suffix(journal.SUFFIX)

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
        """Enter what is new into the journal as it is by now, and make the plans and the file from it.

        Raises
        ------
        PlanError
            What was entered meanwhile and this contradict each other; nothing of this is entered.
        MapgapError
            Something cannot be written.
        """
        make_folder(self.path.parent)
        with held(self.journal_path, wait_s=WAIT_S, what="journal") as stream:
            lines = journal.read(self.journal_path)
            known, _, generations = journal.entries_of(lines.values())
            fresh: dict[bytes, journal.Line] = {journal.encoded(line): line for line in self._written(known)}
            for fact in self.facts:
                number = generations.get(fact.instance, 0)
                if fact.instance in known and known[fact.instance].instance_hash != fact.instance_hash:
                    number += 1
                fact = fact.model_copy(update={"generation": number})
                fresh[journal.encoded(fact)] = fact
            fresh = {key: line for key, line in fresh.items() if key not in lines}
            entries, plans, _ = journal.entries_of([*lines.values(), *fresh.values()])
            contrary = {
                name: words for name in {fact.instance for fact in self.facts} if (words := _apart(entries[name]))
            }
            if contrary:
                fresh = {key: line for key, line in fresh.items() if journal.name_of(line) not in contrary}
                entries, plans, _ = journal.entries_of([*lines.values(), *fresh.values()])
            if fresh:
                journal.append(self.journal_path, stream, fresh)
            self.entries, self.facts, self.before = entries, [], {}
            self.plans = {**self.plans, **{name: plan for name, plan in plans.items() if name not in contrary}}
            self.write()
        if contrary:
            raise PlanError("; ".join(contrary.values()))

    def _written(self, known: Mapping[str, Entry]) -> Iterator[journal.Written]:
        """Entries, as they were read, of which a journal does not know all: it is new, or somebody wrote them apart."""
        for name, entry in self.entries.items():
            written = self.before.get(name, entry)
            if written is not None and not (name in known and known[name].knows(written)):
                yield journal.Written(entry=written)

    def behind(self) -> list[Path]:
        """The files that are not what the journal says, and what this book knows besides."""
        lines = journal.read(self.journal_path).values()
        known, _, _ = journal.entries_of(lines)
        entries, plans, _ = journal.entries_of([*lines, *self._written(known)])
        made = {self.path: Ledger(self.path, entries).view()}
        made |= {self.plan_path(name): _packed(plan) for name, plan in plans.items()}
        return sorted(path for path, data in made.items() if not path.exists() or path.read_bytes() != data)

    def write(self) -> None:
        """Write the plans that are new, then the file; the journal learns of it when something is saved."""
        for name, plan in self.plans.items():
            path, data = self.plan_path(name), _packed(plan)
            if not path.exists() or path.read_bytes() != data:
                replace_file(path, data)
        replace_file(self.path, self.view())
        self.plans = {}

    def view(self) -> bytes:
        """The file."""
        entries = [self.entries[name].model_dump(mode="json", exclude_none=True) for name in sorted(self.entries)]
        for entry in entries:
            for key in ("infeasible", "history"):
                if not entry[key]:
                    del entry[key]
        head = (
            "# Written by `mapgap bench`, `certify` and `prove` with `--update-ledger`, `ledger close` and `submit`; "
            "do not edit.\n"
        )
        text = yaml.safe_dump({"schema": 1, "entries": entries}, sort_keys=False, width=118, default_flow_style=None)
        return (head + text).encode()

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

    def enter(
        self,
        name: str,
        record: RunRecord,
        origin: Origin = A_RUN,
        *,
        checked: int | None = None,
        infeasible: bool = False,
    ) -> list[str]:
        """Enter a plan, a bound or both; returns what improved, in words.

        Parameters
        ----------
        origin : Origin
            For the history: where they come from, if not from the method of the record alone.
        checked : int, optional
            A bound that a certificate file proves.
        infeasible : bool
            A certificate file proves that there is no plan; a run that says so enters nothing.

        Raises
        ------
        PlanError
            As :meth:`update`.
        """
        entry = self.entries.get(name)
        if entry is None or entry.instance_hash != record.instance_hash:  # new, or the instance has changed
            keys = ("instance_hash", "problem", "unit", "sense")
            entry = Entry(instance=name, **{key: getattr(record, key) for key in keys})
        self._refuse(entry, record)
        _judge(name, record)
        shown: dict[str, Any] = {"bound": record.sure_bound, "checked": checked, "infeasible": infeasible}
        if record.plan is not None:
            shown |= {"plan": record.objective, "witness": record.plan}
        if record.objective is not None and record.certificate is not None:
            shown["grade"] = Certificate(record.certificate)
        return self._take(name, entry, Fact.of(name, record, origin, **shown))

    def grade(self, name: str, grade: Certificate, record: RunRecord) -> None:
        """Raise the grade of an optimum that is held."""
        self._take(name, self.entries[name], Fact.of(name, record, grade=grade))

    def _take(self, name: str, entry: Entry, fact: Fact) -> list[str]:
        """Let an entry take a fact, which keeps only what was news; what improved, in words."""
        self.before.setdefault(name, None if name not in self.entries else self.entries[name].model_copy(deep=True))
        before, changes = entry.model_copy(), []
        taken = entry.take(fact)
        for what, old, new in (("plan", before.plan, fact.plan), ("bound", before.bound, fact.bound)):
            if what in taken:
                changes.append(f"{name}: {what} {_value(old)} -> {new} ({fact.method})")
        if "infeasible" in taken:
            changes.append(f"{name}: there is no plan, checked")
        if "checked" in taken:
            grade = "" if entry.certificate is not Certificate.CHECKED else ", the optimum"
            changes.append(f"{name}: bound {fact.checked} checked{grade}")
        left = {what: None for what in ("plan", "bound", "checked") if what not in taken}
        if "plan" in left:
            left["witness"] = None
        else:
            self.plans[name] = fact.witness
        if fact.grade is None or not entry.proven or before.certificate is entry.certificate:
            left["grade"] = None
        if entry.known:
            self.entries[name] = entry
        fact = fact.model_copy(update=left)
        if taken or fact.grade is not None:
            self.facts.append(fact)
        return changes

    def enter_certificate(self, name: str, proof: RunRecord, origin: Origin = A_RUN) -> list[str]:
        """Enter what a certificate file that was just checked proves, a bound or that there is no plan; what improved,
        in words.

        Parameters
        ----------
        proof : RunRecord
            Of kind ``bound``: what is proven, and when.

        Raises
        ------
        PlanError
            The ledger has a plan that cannot be: the checker, its writer or the evaluator is wrong.
        """
        if proof.status == Status.INFEASIBLE:
            return self.enter(name, proof, origin, infeasible=True)
        entry = self.entries.get(name)
        held = None if entry is None or entry.instance_hash != proof.instance_hash else entry.bound
        assert proof.bound is not None
        if entry is None or held is None or entry.sign * proof.bound > entry.sign * held.value:
            return self.enter(name, proof, origin, checked=proof.bound)
        return self._take(name, entry, Fact.of(name, proof, origin, checked=proof.bound))

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
        if entry.infeasible and _proven_in(self.certificate_path(name)) != "null":
            found.append(f"{name}: that there is no plan is checked, but its certificate is another or not there")
        if entry.certificate is not None and not entry.proven:
            found.append(f"{name}: a certificate, although plan and bound do not meet")
        proven = None if entry.certified is None else _proven_in(self.certificate_path(name))
        if entry.certified is not None and proven != str(entry.certified):
            found.append(f"{name}: bound {entry.certified} is checked, but its certificate is {proven or 'not there'}")
        return found


def _proven_in(certificate: Path) -> str | None:
    """The bound that a certificate is of (``null``: that there is no plan), without a check of its proof; ``None`` if
    there is no such file."""
    try:
        read = re.search(rb'"bound":\s*(-?\d+|null)\s*,\s*"proof"', gzip.decompress(certificate.read_bytes()))
    except OSError:
        return None
    return None if read is None else read[1].decode()


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


def _apart(entry: Entry) -> str:
    """How a plan and a bound that were entered at the same time contradict each other; empty if they do not."""
    plan, bound = entry.plan, entry.bound
    if plan is not None and entry.infeasible:
        return (
            f"{entry.instance}: a certificate says that there is no plan, but {plan.method} has one of objective "
            f"{plan.value}; one of them was entered meanwhile"
        )
    if plan is None or bound is None or entry.sign * bound.value <= entry.sign * plan.value:
        return ""
    return (
        f"{entry.instance}: {bound.method} claims bound {bound.value}, but {plan.method} has a plan of objective "
        f"{plan.value}; one of them was entered meanwhile"
    )


def _packed(plan: Any) -> bytes:
    """The bytes of a plan's file."""
    return (json.dumps(plan, separators=(",", ":")) + "\n").encode()


def library_hashes() -> dict[str, str]:
    """Content hash to name of every library instance, under every objective of its problem: all are expanded."""
    found: dict[str, str] = {}
    for name in library_files():
        instance = load_instance(name)
        found.setdefault(instance.content_hash, name)
        for objective in registry.problems()[instance.problem].objectives:
            other = retarget(instance, objective)
            found.setdefault(other.content_hash, other.name)
    return found


def library_names(hashes: Iterable[str]) -> dict[str, str]:
    """Content hash to name, of those hashes that library instances have.

    Who may have one is read from the list beside the certificates, and is expanded to see. Only where the list does
    not know a hash, or a file has changed since, all of the library is.
    """
    wanted = set(hashes)
    path = check.beside("instances/best_known.sha256")
    lines = path.read_text().splitlines() if path is not None else []
    listed = {digest[:16]: name for digest, name in (line.split("  ", 1) for line in lines)}
    found = {each: listed[each] for each in wanted if each in listed}
    if found.keys() == wanted and all(load_instance(name).content_hash == each for each, name in found.items()):
        return found
    return {each: name for each, name in library_hashes().items() if each in wanted}


def update_ledger(records: Iterable[RunRecord], path: Path | None = None, source: str = "") -> list[str]:
    """Enter runs into the ledger file, one after the other; what was entered before an error stays.

    Raises
    ------
    PlanError
        See :meth:`Ledger.update`.
    """
    ledger, records = Ledger.load(path), list(records)
    library = library_names(record.instance_hash for record in records)
    changes: list[str] = []
    try:
        for record in records:
            changes += ledger.update([record], library, source)
    finally:
        if changes:
            ledger.save()
    return changes
