"""Check certificate files against the ledger: does every bound that it calls checked hold, and does its plan attain it?

No solver takes part: :mod:`mapgap.evidence.check` follows the proof, the evaluator of the problem prices the plan on
the instance that the file holds, and the content hash of that instance is the ledger's. Compiled loops of a problem are
believed where there are some, unless ``pure`` asks for the standard library alone; a certificate is only written, and
its bound only called checked in the ledger, when that has followed the proof. ``expand`` builds the library's instance
as well and compares it (the expansion of some problems uses NumPy).
"""

from __future__ import annotations

import ctypes
import glob
import json
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any

from mapgap.catalogue import registry
from mapgap.catalogue.files import load_instance, load_plan
from mapgap.core import InputError, short, suggest
from mapgap.core.storage import is_file, kind_of
from mapgap.evidence import check
from mapgap.evidence.entry import Entry
from mapgap.evidence.ledger import CERTIFICATE, Ledger
from mapgap.execution.progress import Event, Tell, silence
from mapgap.execution.watch import verify as evaluated
from mapgap.records.environment import cores

M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4  #: of ``malloc.h`` of glibc


@dataclass(frozen=True)
class Verdict(Event):
    """What one certificate file is worth.

    Attributes
    ----------
    infeasible : bool
        It proves that there is no plan; then ``bound`` is ``None``.
    instance : str
        The ledger's name for it, if it knows the instance; empty if the file says none.
    grade : str
        ``optimum`` if the ledger's plan attains the bound, ``bound`` if not, ``unknown`` if the ledger does not know
        the instance.
    reason : str
        Why it is refused; empty if it holds.
    compiled : bool
        Not by the standard library alone, but by compiled loops of the problem.
    """

    file: Path
    instance: str = ""
    instance_hash: str = ""
    bound: int | None = None
    infeasible: bool = False
    sense: str = ""
    unit: str = ""
    grade: str = "unknown"
    reason: str = ""
    compiled: bool = False
    seconds: float = 0.0

    @property
    def holds(self) -> bool:
        return not self.reason

    def to_json(self) -> dict[str, Any]:
        return {**vars(self), "file": str(self.file), "holds": self.holds}


class _Wrong(Exception):
    """The certificate is not what the ledger says."""


def verify(file: Path, book: Ledger, *, expand: bool = False, pure: bool = False) -> Verdict:
    """Check one file: its proof; and, of an instance of the ledger, hash, bound and plan."""
    began = time.perf_counter()
    verdict = Verdict(file)
    try:
        certificate = check.read(file)
        cases = None if pure else compiled_cases(certificate)
        verdict = replace(verdict, compiled=cases is not None)
        check.check(certificate, cases=cases)
        verdict = _compared(verdict, certificate, book, expand=expand)
    except (check.Refused, _Wrong, InputError) as reason:
        verdict = replace(verdict, reason=str(reason))
    except Exception as error:  # one file that nobody foresaw does not stop the others
        verdict = replace(verdict, reason=f"cannot be compared: {type(error).__name__}: {short(str(error), 300)}")
    return replace(verdict, seconds=time.perf_counter() - began)


def compiled_cases(certificate: Any) -> Any:
    """The compiled cases of its problem; ``None`` if there are none, or no such problem."""
    instance = certificate.get("instance") if isinstance(certificate, dict) else None
    problem = instance.get("problem") if isinstance(instance, dict) else None
    known = isinstance(problem, str) and problem in registry.problems()
    return registry.library(problem).compiled_cases() if known else None


def verify_all(
    patterns: Sequence[str],
    *,
    ledger: Path | None = None,
    expand: bool = False,
    pure: bool = False,
    tell: Tell = silence,
) -> list[Verdict]:
    """Check files: paths, names of instances, or globs of either; without any, all that the ledger calls checked.

    More than there are cores are checked on all of them, each by one process, and told in order.

    Raises
    ------
    InputError
        A pattern stands for no certificate.
    """
    book = Ledger.load(ledger)
    files, found = files_of(patterns, book), []
    one = partial(verify, book=book, expand=expand, pure=pure)
    with ProcessPoolExecutor(cores(), initializer=_keep) if len(files) > cores() else nullcontext() as pool:
        for verdict in map(one, files) if pool is None else pool.map(one, files):
            found.append(verdict)
            tell(verdict)
    return found


def _keep() -> None:
    """Let this process keep the memory that arrays give back, where the C library can: to get it anew takes longer."""
    with suppress(AttributeError, OSError, TypeError):
        library = ctypes.CDLL(None)
        library.mallopt(M_MMAP_MAX, 0)
        library.mallopt(M_TRIM_THRESHOLD, (1 << 31) - 1)


def files_of(patterns: Sequence[str], book: Ledger) -> list[Path]:
    """The files that some patterns stand for, each once; those that the ledger promises and nobody finds, too."""
    found: list[Path] = []
    for pattern in patterns or ("*",):
        matches = _files(pattern, book)
        if not matches and patterns:
            raise InputError(
                f"{pattern}: expected a certificate file, or an instance that has one (mapgap certify makes them)"
                f"{'' if pattern in book.entries else suggest(pattern, book.entries)}"
            )
        found += matches
    return list(dict.fromkeys(found))


def _files(pattern: str, book: Ledger) -> list[Path]:
    path = Path(pattern)
    if is_file(path):
        return [path]
    if kind_of(path) not in ("a folder", "nothing there"):
        raise InputError(f"{short(pattern)}: expected a certificate file, found {kind_of(path)}")
    if path.is_dir():
        return sorted(path.glob(f"*{CERTIFICATE}"))
    if "/" in pattern or pattern.endswith((".gz", ".json")):
        return [Path(name) for name in sorted(glob.glob(pattern, recursive=True))]
    entries = [entry for name, entry in book.entries.items() if fnmatchcase(name, pattern)]
    due = {book.certificate_path(each.instance): each.infeasible or each.certified is not None for each in entries}
    found = {file for file, promised in due.items() if promised or file.is_file()}
    if pattern == "*":  # strays, too
        found |= set(book.certificate_path("").parent.glob(f"*{CERTIFICATE}"))
    return sorted(found)


def _compared(verdict: Verdict, certificate: Any, book: Ledger, *, expand: bool) -> Verdict:
    """A certificate that holds, against the ledger."""
    own, bound = certificate["instance"], certificate["bound"]
    problem = registry.problems()[own["problem"]]
    instance = problem.instance_type.model_validate_json(json.dumps(own))
    verdict = replace(
        verdict,
        instance=instance.name,
        instance_hash=instance.content_hash,
        bound=bound,
        infeasible=bound is None,
        sense=problem.sense,
        unit=problem.unit(instance),
    )
    entry = next((each for each in book.entries.values() if each.instance_hash == instance.content_hash), None)
    of_library = verdict.file.resolve().parent == book.certificate_path("").parent.resolve()
    if entry is None:
        if of_library:
            raise _Wrong(f"about an instance that the ledger does not know ({instance.content_hash})")
        return verdict
    verdict = replace(verdict, instance=entry.instance)
    if of_library:
        _is_promised(verdict.file, entry, bound, book)
    if expand and load_instance(entry.instance).content_hash != instance.content_hash:
        raise _Wrong("the library's instance is another one")
    if bound is None and entry.plan is not None:
        raise _Wrong("the ledger has a plan, which cannot be")
    if entry.plan is None:
        return replace(verdict, grade="bound")
    evaluation = evaluated(problem, instance, load_plan(book.plan_path(entry.instance), entry.problem))
    if not evaluation.feasible or evaluation.objective is None:
        raise _Wrong("the ledger's plan breaks rules")
    if evaluation.objective != entry.plan.value:
        raise _Wrong(f"the ledger's plan has {evaluation.objective}, not {entry.plan.value}")
    if entry.sign * evaluation.objective < entry.sign * bound:
        raise _Wrong(f"the ledger's plan has {evaluation.objective}: a plan that cannot be")
    return replace(verdict, grade="optimum" if evaluation.objective == bound else "bound")


def _is_promised(file: Path, entry: Entry, bound: int | None, book: Ledger) -> None:
    """Is a file of the library what its entry says?"""
    expected = book.certificate_path(entry.instance)
    if file.name != expected.name:
        raise _Wrong(f"about {entry.instance}, whose file is {expected.name}")
    if entry.infeasible and bound is None:
        return
    if entry.certified is None:
        raise _Wrong("the ledger does not call this bound checked (mapgap certify --update-ledger enters it)")
    if entry.certified != bound:
        raise _Wrong(f"proves {bound}, but the ledger calls {entry.certified} checked")
