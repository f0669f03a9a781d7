"""Make certificates: files from which :mod:`mapgap.evidence.check` sees that no plan is better than a bound.

The producer of a problem (``Library.proving``) searches for the proof; its word counts for nothing. What it found is
packed, unpacked and checked before a file is written, and a file that is there and checks is kept. Files are the same
bytes for the same proof, and are replaced as a whole, so a run over many instances can be killed and started again.
"""

from __future__ import annotations

import gzip
import io
import json
import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any

from mapgap.catalogue import registry
from mapgap.catalogue.files import find_instances, load_instance
from mapgap.core import Budget, Certificate, InputError, InstanceBase, Status, Stop
from mapgap.evidence import check
from mapgap.evidence.entry import Entry
from mapgap.evidence.ledger import CERTIFICATE, Ledger, library_names
from mapgap.evidence.verify import compiled_cases
from mapgap.execution.progress import Event, Tell, silence
from mapgap.records.environment import revision, versions
from mapgap.records.files import replace_file
from mapgap.records.record import RunRecord
from mapgap.records.runs import Runs


@dataclass(frozen=True)
class Searching(Event):
    """The search for a proof begins; without a bound, of that there is no plan; ``best``: of as much as can be."""

    instance: str
    bound: int | None
    best: bool = False


@dataclass(frozen=True)
class Outcome(Event):
    """What became of one instance.

    Attributes
    ----------
    bound : int or None
        What was to be proven; ``None`` where nothing said it, and for ``infeasible``.
    infeasible : bool
        What was to be proven is that there is no plan.
    file : Path or None
        The certificate; ``None`` if there is none.
    kept : bool
        It was there, and checks.
    refused : bool
        The checker refuses what the producer found: one of the two is wrong.
    reason : str
        Why there is no file.
    prove_s, check_s : float
    size : int
        Bytes of the file.
    """

    instance: str
    instance_hash: str
    problem: str
    sense: str
    unit: str
    bound: int | None = None
    file: Path | None = None
    kept: bool = False
    refused: bool = False
    reason: str = ""
    prove_s: float = 0.0
    check_s: float = 0.0
    size: int = 0
    infeasible: bool = False

    def to_json(self) -> dict[str, Any]:
        return {**vars(self), "file": None if self.file is None else str(self.file)}


@dataclass(frozen=True)
class Checking(Event):
    """A proof was found, and is followed by the standard library alone; along chains that can take long."""

    found: Outcome


def pack(instance: InstanceBase, bound: int | None, proof: Any) -> bytes:
    """The bytes of a certificate file; the same for the same proof."""
    data = {"schema": check.SCHEMA, "instance": instance.to_json(), "bound": bound, "proof": proof}
    packed = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", compresslevel=9, fileobj=packed, mtime=0) as stream:
        stream.write(json.dumps(data, separators=(",", ":")).encode())
    return packed.getvalue()


def prove(
    instance: InstanceBase, bound: int | None, budget: Budget, file: Path | None, *, tell: Tell = silence
) -> Outcome:
    """Search for a certificate, check it, write it; keep the file if it proves that much already.

    Parameters
    ----------
    bound : int or None
        ``None``: that there is no plan.
    file : Path or None
        ``None`` writes nothing: whether there is a certificate is all that is asked.

    Raises
    ------
    InputError
        The problem offers no certificates.
    MapgapError
        The file cannot be written.
    """
    blank = replace(untried(instance, bound), infeasible=bound is None)
    library = registry.library(instance.problem)
    if library.proving is None:
        known = ", ".join(name for name in registry.problems() if registry.library(name).proving is not None)
        raise InputError(
            f"{instance.name}: expected an instance of a problem with certificates ({known}), "
            f"found one of {instance.problem}"
        )
    began = time.perf_counter()
    if file is not None and _holds(file, blank):
        return replace(blank, file=file, kept=True, check_s=time.perf_counter() - began, size=file.stat().st_size)
    try:
        limit = check.NONE[blank.sense] if bound is None else bound
        proof = library.prove(instance.to_json(), limit, budget.start())
    except Exception as error:  # the producer's, of whatever kind: other instances go on
        return replace(blank, reason=f"{type(error).__name__}: {error}")
    proved = replace(blank, prove_s=time.perf_counter() - began)
    if proof is None:
        late = " within the time limit" if budget.exhausted else ""
        what = "that there is no plan" if bound is None else f"of bound {bound}"
        return replace(proved, reason=f"no proof {what} was found{late}")
    return _written(instance, proof, proved, file, tell)


def climb(
    instance: InstanceBase,
    goal: int | None,
    budget: Budget,
    file: Path | None,
    checked: int | None = None,
    *,
    tell: Tell = silence,
) -> Outcome:
    """Search for a certificate of as good a bound as the budget allows, up to the goal; go on from that of the file.

    One of the same bound from which the next search has less to do takes its place as well.

    Parameters
    ----------
    goal : int
        The objective of a plan.
    file : Path or None
        ``None`` writes nothing. A file that proves as much is kept.
    checked : int, optional
        The bound that the ledger calls checked: of a file that proves it the checker alone has followed the proof
        before, and compiled loops do so again.

    Raises
    ------
    MapgapError
        The file cannot be written.
    """
    assert goal is not None
    blank = replace(untried(instance, goal), reason="no bound was proven within the time limit")
    began = time.perf_counter()
    standing = None if file is None else _standing(file, blank, checked=checked)
    start = None if standing is None else (standing["bound"], standing["proof"])
    check_s = time.perf_counter() - began
    try:
        found = registry.library(instance.problem).climb(instance.to_json(), goal, budget.start(), start)
    except Exception as error:  # the producer's, of whatever kind: other instances go on
        return replace(blank, reason=f"{type(error).__name__}: {error}")
    if found is not None:
        proved = replace(blank, bound=found[0], reason="", prove_s=time.perf_counter() - began - check_s)
        return _written(instance, found[1], proved, file, tell, standing)
    if file is None or standing is None:
        return blank
    size, bound = file.stat().st_size, standing["bound"]
    return replace(blank, bound=bound, file=file, kept=True, reason="", check_s=check_s, size=size)


def _written(
    instance: InstanceBase, proof: Any, proved: Outcome, file: Path | None, tell: Tell, start: Any = None
) -> Outcome:
    """Check what was found and write it, unless the file proves as much; it goes beyond ``start``."""
    data = pack(instance, proved.bound, proof)
    tell(Checking(proved))
    began = time.perf_counter()
    try:
        check.check(json.loads(gzip.decompress(data)), instance.to_json())
    except check.Refused as reason:
        return replace(proved, refused=True, reason=f"the checker refuses the proof: {reason}")
    proved = replace(proved, check_s=time.perf_counter() - began)
    # Somebody else may have proven more meanwhile.
    if file is not None and ((start is not None and _read(file) == start) or not _holds(file, proved)):
        replace_file(file, data)
    return replace(proved, file=file, size=len(data))


def prove_all(
    patterns: Sequence[str],
    budget: Budget,
    *,
    bound: int | None = None,
    infeasible: bool = False,
    share: float = 1.0,
    output: Path | None = None,
    ledger: Path | None = None,
    update: bool = False,
    tell: Tell = silence,
) -> list[Outcome]:
    """Certificates of instances; the budget holds for each.

    Parameters
    ----------
    patterns : sequence of str
        Instances: paths, names, or globs of either. A glob of names stands for all matching entries of the ledger,
        ``NAME@OBJECTIVE`` among them.
    bound : int, optional
        What to prove of the only instance; without it, what the ledger says: the optimum of an entry that is proven,
        the bound of an open one. Where the problem can climb, as good a bound as the budget allows of every entry that
        is not certified, up to its plan.
    infeasible : bool
        To be proven is that there is no plan.
    share : float
        Of an open entry's bound, how much of it is to be proven: what an engine takes hours for may have a short proof
        of almost as much.
    output : Path, optional
        A file for one instance, a folder for several; without it, beside the ledger's plans, or in the working folder
        for an instance that the ledger does not know.
    update : bool
        Enter what was proven into the ledger, at the end, also when interrupted.
    tell : callable, optional
        Receives :class:`Searching` and :class:`Outcome`.

    Raises
    ------
    InputError
        No such instance, no bound for the only one, a bound that the ledger's plan refutes, …
    PlanError
        A bound that was checked lies beyond the ledger's plan.
    """
    book = Ledger.load(ledger)
    names = matching(patterns, book)
    if bound is not None and len(names) > 1:
        raise InputError(f"--bound: expected one instance, found {len(names)}")
    if update and output is not None:
        raise InputError("--update-ledger: expected certificates beside the ledger's plans; leave out -o")
    entries = {entry.instance_hash: entry for entry in book.entries.values()}
    library = library_names(load_instance(name).content_hash for name in names) if update and infeasible else {}
    found: list[Outcome] = []
    try:
        for name in names:
            instance = load_instance(name)
            entry = entries.get(instance.content_hash)
            if update and (instance.content_hash not in library if infeasible else entry is None):
                where = "library" if infeasible else "ledger"
                raise InputError(f"--update-ledger: expected an instance of the {where}, found {name}")
            goal = None if infeasible or bound is not None or share < 1.0 else _goal(instance, entry)
            wanted = None if infeasible else _bound(instance, entry, bound, share) if goal is None else goal
            if wanted is None and not infeasible:
                missing = "the ledger knows no bound; expected --bound or --infeasible"
                if len(names) == 1:
                    raise InputError(f"{name}: {missing}")
                found.append(replace(untried(instance, None), reason=missing))
            else:
                tell(Searching(instance.name, wanted, goal is not None))
                held = library.get(instance.content_hash) if entry is None else entry.instance
                file = _file(instance, held, book, output, several=len(names) > 1)
                try:
                    known = None if entry is None or goal is None else entry.checked_bound
                    search = prove if goal is None else partial(climb, checked=known)
                    found.append(search(instance, wanted, replace(budget), file, tell=tell))
                except InputError as error:  # a problem without certificates
                    if len(names) == 1:
                        raise
                    found.append(replace(untried(instance, wanted), reason=str(error)))
            tell(found[-1])
    finally:
        if update:
            _enter(found, budget, ledger)
    return found


def prove_runs(
    records: Iterable[RunRecord], instances: Iterable[InstanceBase], budget: Budget, folder: Path, tell: Tell = silence
) -> list[Outcome]:
    """Certificates of what runs have proven of instances: optima, and that there is no plan; the budget holds for each.

    No search time contains it. Instances of problems without certificates, and open ones, are left out.
    """
    known, found = Runs(records), []
    for instance in {each.content_hash: each for each in instances}.values():
        fact = known.facts.get(instance.content_hash)
        runs = known.where(instance_hash=instance.content_hash, status=Status.INFEASIBLE)
        optimal = fact is not None and fact.proven
        if registry.library(instance.problem).proving is None or not (optimal or runs):
            continue
        bound = fact.bound if fact is not None and optimal else None
        tell(Searching(instance.name, bound))
        folder.mkdir(parents=True, exist_ok=True)
        name = f"{instance.name.replace('@', '__').replace('/', '_')}{CERTIFICATE}"
        found.append(prove(instance, bound, replace(budget), folder / name, tell=tell))
        tell(found[-1])
    return found


def matching(patterns: Iterable[str], book: Ledger) -> list[str]:
    """Names and paths that some patterns stand for, each once; a pattern without a match stands for itself."""
    found: list[str] = []
    for pattern in patterns:
        entries = [name for name in book.entries if fnmatchcase(name, pattern)]
        found += entries or find_instances(pattern) or [pattern]
    return list(dict.fromkeys(found))


def untried(instance: InstanceBase, bound: int | None) -> Outcome:
    """Nothing has been tried yet."""
    problem = registry.problems()[instance.problem]
    unit = problem.unit(instance)
    return Outcome(instance.name, instance.content_hash, problem.name, problem.sense, unit, bound)


def _goal(instance: InstanceBase, entry: Entry | None) -> int | None:
    """Where a climb may end: at the plan of an entry that is not certified; ``None`` where the problem has no climb."""
    open_plan = None if entry is None or entry.certificate is Certificate.CHECKED else entry.plan
    return None if open_plan is None or registry.library(instance.problem).climbing is None else open_plan.value


def _bound(instance: InstanceBase, entry: Entry | None, bound: int | None, share: float) -> int | None:
    """What to prove."""
    if entry is None:
        return bound
    if bound is None:
        if entry.bound is None or (entry.plan is not None and entry.bound.value == entry.plan.value):
            return None if entry.bound is None else entry.bound.value
        return math.floor(entry.bound.value * share) if entry.sign > 0 else math.ceil(entry.bound.value / share)
    if entry.plan is not None and entry.sign * bound > entry.sign * entry.plan.value:
        side = "below" if entry.sign > 0 else "above"
        raise InputError(
            f"--bound {bound}: expected one that no plan is {side}, found a plan of {entry.plan.value} in the ledger"
        )
    return bound


def _file(instance: InstanceBase, held: str | None, book: Ledger, output: Path | None, *, several: bool) -> Path:
    """Where the certificate goes; ``held`` is the ledger's name of the instance, if it is, or is to be, there."""
    if output is not None:
        folder = several or output.is_dir() or not output.suffix
        return output / f"{instance.name.replace('@', '__')}{CERTIFICATE}" if folder else output
    if held is not None:
        return book.certificate_path(held)
    return Path(f"{instance.name.replace('@', '__').replace('/', '_')}{CERTIFICATE}")


def _read(file: Path) -> Any:
    """What is in a file; nothing if it cannot be read."""
    try:
        return check.read(file)
    except check.Refused:
        return None


def _standing(file: Path, wanted: Outcome, *, enough: bool = False, checked: int | None = None) -> Any:
    """The certificate in a file, if there is one of the instance that holds; or only if it proves as much as wanted.

    Compiled loops are believed of the bound that was ``checked`` before, and of no other one.
    """
    if not file.is_file():
        return None
    try:
        found = check.read(file)
        if enough and not _enough(found, wanted):
            return None  # whether it holds may take minutes
        known = checked is not None and isinstance(found, dict) and found.get("bound") == checked
        check.check(found, cases=compiled_cases(found) if known else None)
    except check.Refused:
        return None
    return found if check.instance_hash(found["instance"]) == wanted.instance_hash else None


def _enough(found: Any, wanted: Outcome) -> bool:
    """Whether a certificate says that it proves the bound."""
    bound = found.get("bound") if isinstance(found, dict) else None
    if wanted.bound is None or type(bound) is not int:
        return bound is None
    return bool((bound - wanted.bound) * (-1 if wanted.sense == "max" else 1) >= 0)


def _holds(file: Path, wanted: Outcome) -> bool:
    """Is there a file that proves the bound already?"""
    return _standing(file, wanted, enough=True) is not None


def _enter(found: Sequence[Outcome], budget: Budget, path: Path | None) -> None:
    """Into the ledger as it is now: other runs may have changed it."""
    book = Ledger.load(path)
    names = library_names(each.instance_hash for each in found if each.infeasible)
    names |= {entry.instance_hash: entry.instance for entry in book.entries.values()}
    started = datetime.now(UTC).isoformat(timespec="seconds")
    changes: list[str] = []
    for each in found:
        if each.file is not None and each.instance_hash in names:
            record = RunRecord(
                instance=each.instance,
                instance_hash=each.instance_hash,
                problem=each.problem,
                sense=each.sense,
                unit=each.unit,
                method="certificate",
                kind="bound",
                status=Status.INFEASIBLE if each.infeasible else Status.UNKNOWN,
                stop=Stop.PROVED,
                bound=check.read(each.file)["bound"],
                time_limit_s=budget.time_s,
                started=started,
                versions=versions(),
                revision=revision(),
            )
            changes += book.enter_certificate(names[each.instance_hash], record)
    if changes:
        book.save()
