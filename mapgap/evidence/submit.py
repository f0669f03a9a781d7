"""Enter what somebody else has found: a plan, the JSON of a run, or a certificate file.

Nothing of a submission is believed. A plan is evaluated on the library's instance; a certificate is checked, on the
library's instance, and packed anew. The bound of a run is a claim and is left out: only a certificate proves one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mapgap.catalogue import registry
from mapgap.catalogue.files import library_files, load_instance, load_plan
from mapgap.core import InputError, InstanceBase, PlanError, Status, Stop, suggest
from mapgap.evidence import check
from mapgap.evidence.entry import Entry, Origin
from mapgap.evidence.ledger import Ledger
from mapgap.evidence.prove import pack
from mapgap.execution.watch import verify
from mapgap.records.environment import revision, versions
from mapgap.records.files import replace_file
from mapgap.records.record import RunRecord

METHOD = "submitted"  #: under which name the ledger holds a submitted plan
NAMES = 200  #: characters of a submitter's name, at most


@dataclass(frozen=True)
class Submission:
    """What was entered.

    Attributes
    ----------
    what : {"plan", "certificate"}
    value : int
        Objective of the plan, or the bound that is proven.
    changes : list of str
        What improved, in words.
    """

    instance: str
    what: str
    value: int
    unit: str
    changes: list[str]


def submit(
    file: Path, *, by: str = "", instance: str | None = None, ledger: Path | None = None, dry_run: bool = False
) -> Submission:
    """Check a file and enter it into the ledger.

    Parameters
    ----------
    by : str
        Who found it, for the history.
    instance : str, optional
        Name of the library instance; without it, what the file says, or its name (``NAME.json``).
    dry_run : bool
        Check everything and write nothing.

    Raises
    ------
    InputError
        It cannot be read, is about no instance of the library, or improves nothing.
    PlanError
        It does not hold: the plan breaks rules, the checker refuses the proof, or it contradicts the ledger.
    """
    if not (by.isprintable() and len(by) <= NAMES):
        raise InputError(f"--by: expected a name of at most {NAMES} printable characters")
    book = Ledger.load(ledger)
    origin = Origin(by=f"submitted by {by}" if by else "submitted", source=file.name)
    try:
        data = check.read(file)
    except check.Refused as reason:
        raise InputError(f"{file}: {reason}") from reason
    if isinstance(data, dict) and {"instance", "bound", "proof"} <= set(data):
        return _certificate(file, data, instance, book, origin, dry_run=dry_run)
    return _plan(file, data, instance, book, origin, dry_run=dry_run)


def _plan(file: Path, data: Any, given: str | None, book: Ledger, origin: Origin, *, dry_run: bool) -> Submission:
    said = data.get("instance") if isinstance(data, dict) and "plan" in data else None
    instance = _instance(file, given or said or file.stem.replace("__", "@"))
    digest = data.get("instance_hash") if isinstance(data, dict) else None
    if digest not in (None, instance.content_hash):
        raise InputError(f"{file}: expected a plan of {instance.name} ({instance.content_hash}), found one of {digest}")
    problem = registry.problems()[instance.problem]
    plan = load_plan(file, problem.name)
    evaluation = verify(problem, instance, plan)
    if not evaluation.feasible or evaluation.objective is None:
        first, *more = evaluation.violations
        also = f", and {len(more)} more" if more else ""
        raise PlanError(f"{file}: the plan breaks a rule of {instance.name}: {first.rule}: {first.message}{also}")
    entry, value = book.entries.get(instance.name), evaluation.objective
    held = None if entry is None or entry.instance_hash != instance.content_hash else entry.plan
    if entry is not None and held is not None and entry.sign * value >= entry.sign * held.value:
        side = "below" if entry.sign > 0 else "above"
        raise InputError(f"{file}: expected a plan of {instance.name} {side} {held.value}, found one of {value}")
    record = _record(instance, METHOD, "baseline", Status.FEASIBLE, objective=value, plan=plan.to_json())
    changes = book.enter(instance.name, record, origin)
    if not dry_run:
        book.save()
    return Submission(instance.name, "plan", value, problem.unit(instance), changes)


def _certificate(
    file: Path, data: Mapping[str, Any], given: str | None, book: Ledger, origin: Origin, *, dry_run: bool
) -> Submission:
    said = data["instance"].get("name") if isinstance(data["instance"], dict) else None
    instance = _instance(file, given or str(said))
    try:
        check.check(data, instance.to_json())
    except check.Refused as reason:
        raise PlanError(f"{file}: the checker refuses it: {reason}") from reason
    bound = data["bound"]
    entry = book.entries.get(instance.name)
    if entry is not None and entry.instance_hash == instance.content_hash and not _proves_more(entry, bound):
        raise InputError(
            f"{file}: expected a proof of more than {instance.name} has "
            f"({'that there is no plan' if entry.infeasible else entry.certified}), found one of {bound}"
        )
    status = Status.INFEASIBLE if bound is None else Status.UNKNOWN
    record = _record(instance, "certificate", "bound", status, bound=bound)
    changes = book.enter_certificate(instance.name, record, origin)
    if not dry_run:
        replace_file(book.certificate_path(instance.name), pack(instance, bound, data["proof"]))
        book.save()
    return Submission(instance.name, "certificate", bound, record.unit, changes)


def _proves_more(entry: Entry, bound: int | None) -> bool:
    held = entry.certified
    if bound is None or entry.infeasible:
        return not entry.infeasible
    return held is None or entry.sign * bound > entry.sign * held


def _instance(file: Path, name: str) -> InstanceBase:
    known = library_files()
    base = str(name).partition("@")[0]
    if base not in known:
        raise InputError(
            f"{file}: expected something about an instance of the library, found {name!r}"
            f"{suggest(base, known)}; --instance names one"
        )
    return load_instance(name)


def _record(instance: InstanceBase, method: str, kind: str, status: Status, **found: Any) -> RunRecord:
    problem = registry.problems()[instance.problem]
    return RunRecord(
        instance=instance.name,
        instance_hash=instance.content_hash,
        problem=problem.name,
        sense=problem.sense,
        unit=problem.unit(instance),
        method=method,
        kind=kind,
        status=status,
        stop=Stop.DONE,
        started=datetime.now(UTC).isoformat(timespec="seconds"),
        versions=versions(),
        revision=revision(),
        **found,
    )
