"""Committed studies: a named list of runs and the page made from them.

A study is a module below ``mapgap.studies`` that exports ``STUDY``; it is found by discovery, reaches methods only
through the registry, and its page is a pure function of its run records and of published numbers. Runs go to
``<out>/runs.jsonl`` and are resumed like any sweep; when all are done, the file is packed.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import median

from mapgap.catalogue import registry
from mapgap.core import InputError, MissingExtra, suggest
from mapgap.evidence.ledger import Ledger
from mapgap.execution.progress import Event, Tell, silence
from mapgap.execution.sweep import Job, keys_of, sweep
from mapgap.records.environment import cores
from mapgap.records.files import InUse, pack, read_runs
from mapgap.records.record import RunRecord
from mapgap.records.runs import Runs
from mapgap.reporting.heat import heat_map
from mapgap.reporting.prose import Row, Tables
from mapgap.reporting.report import Page
from mapgap.reporting.tables import Table

RUNS = "runs.jsonl"
"""Name of the run file in a study's folder, packed or not."""
SMALL = "_quick"
"""How the folder of a study's small version ends."""


@dataclass(frozen=True)
class Phase:
    """Runs that share the machine in the same way: ``parallel`` processes at a time (never more than the cores)."""

    name: str
    jobs: Sequence[Job]
    parallel: int = 1


@dataclass(frozen=True)
class Study:
    """A named study.

    Attributes
    ----------
    phases : callable
        ``phases(quick)`` lists its runs.
    page : callable
        ``page(records, quick)`` makes its page.
    headline : sequence of str
        The tables that the command line prints.
    knows : bool
        The records that make its page include, of kind ``reference``, what the ledger knows of their instances.
    needs : sequence of str
        Modules of the extra ``studies`` that its page needs.
    """

    name: str
    title: str
    problem: str
    phases: Callable[[bool], list[Phase]]
    page: Callable[[Runs, bool], Page]
    headline: Sequence[str]
    knows: bool = False
    needs: Sequence[str] = ()


@dataclass(frozen=True)
class Gathering:
    """A study without runs of its own: its page is made from the tables of the others."""

    name: str
    title: str
    page: Callable[[Tables], Page]
    headline: Sequence[str]


@dataclass(frozen=True)
class PhaseBegan(Event):
    """A phase of a study begins, with so many runs (finished ones among them)."""

    name: str
    runs: int


@dataclass(frozen=True)
class PageWritten(Event):
    """A study's page is written; these tables of it are its headline."""

    page: Path
    headline: Sequence[Table]


def load_told(runs: Runs) -> str:
    """How busy the machine was when the runs began, for a page that has their times."""
    loads = [record.load for record in runs.measured if record.load is not None]
    if not loads:
        return "How busy the machine was is not recorded."
    told = f"In the minute before a run {median(loads):.1f} processes wanted each core at the median"
    told += f", {max(loads):.1f} at most, other runs of this study among them"
    missing = len(runs.measured) - len(loads)
    return f"{told}; of {missing} runs this is not recorded." if missing else f"{told}."


def find_study(name: str) -> Study | Gathering:
    """The study of that name; no other one is imported.

    Raises
    ------
    InputError
        No such study.
    RuntimeError
        The module exports no ``STUDY`` of its own name.
    """
    known = registry.modules("studies")
    if name not in known:
        raise InputError(f"study: {name!r}: expected one of {', '.join(known)} or all{suggest(name, known)}")
    study = getattr(importlib.import_module(f"mapgap.studies.{name}"), "STUDY", None)
    if not isinstance(study, Study | Gathering) or study.name != name:
        raise RuntimeError(f"mapgap.studies.{name} exports no STUDY of that name")
    return study


def refuse_without_extra(study: Study) -> None:
    """Raise :class:`MissingExtra` if a module that the page of a study needs is not installed."""
    for module in study.needs:
        if importlib.util.find_spec(module) is None:
            raise MissingExtra(f"study {study.name}: expected the extra mapgap[studies], found no {module}")


@cache
def phases_of(name: str) -> list[Phase]:
    """The phases of a committed study in full; their instances are made once per process."""
    study = find_study(name)
    return study.phases(False) if isinstance(study, Study) else []


def studies() -> dict[str, Study]:
    """All committed studies that have runs, by name."""
    found = {name: find_study(name) for name in registry.modules("studies")}
    return {name: study for name, study in found.items() if isinstance(study, Study)}


def is_gathering(name: str) -> bool:
    """Has a study of that name no runs of its own?"""
    return isinstance(find_study(name), Gathering)


def no_tables(name: str) -> Sequence[Row]:
    """Of a place where nothing is committed."""
    raise InputError(f"table {name!r}: expected a checkout with a folder reports, found none")


def run_study(
    name: str,
    *,
    quick: bool = False,
    out: Path | None = None,
    resume: bool = True,
    report_only: bool = False,
    parts: Path | None = None,
    tell: Tell = silence,
    tables: Tables = no_tables,
) -> Path:
    """Do the runs of a study that are still missing and write its page.

    Parameters
    ----------
    name : str
        A study's name, or ``all``.
    quick : bool
        The small version; it goes to a folder of its own.
    out : Path, optional
        Default ``reports/<name>`` (``reports/<name>_quick``) below the current folder.
    resume : bool
        Keep finished runs of an earlier start.
    report_only : bool
        Run nothing; make the page from the runs that are there.
    parts : Path, optional
        Folder for every figure and table of the page as a file of its own.
    tell : callable, optional
        Receives :class:`PhaseBegan`, the events of the sweeps, and :class:`PageWritten`.
    tables : callable, optional
        The committed tables, for a study that gathers them; such a study has no small version, and ``all`` in the small
        version leaves it out.

    Raises
    ------
    InputError
        No such study; or its page needs tables or modules that are not there.
    """
    if name == "all":
        for each in studies() if quick else registry.modules("studies"):
            where = out / each if out else None
            run_study(
                each,
                quick=quick,
                out=where,
                resume=resume,
                report_only=report_only,
                parts=parts / each if parts else None,
                tell=tell,
                tables=tables,
            )
        return out or Path("reports")
    study = find_study(name)
    if isinstance(study, Gathering):
        return _written(study, study.page(tables), out or Path("reports") / name, tell, parts)
    refuse_without_extra(study)
    folder = out or Path("reports") / (f"{name}{SMALL}" if quick else name)
    path = folder / RUNS
    records: list[RunRecord] = []
    phases = study.phases(quick)
    for phase in phases:
        if report_only:
            records = list(read_runs(path))
        else:
            tell(PhaseBegan(phase.name, len(phase.jobs)))
            records += sweep(phase.jobs, path, parallel=min(phase.parallel, cores()), resume=resume, tell=tell)
            resume = True  # a fresh start clears the file once, before the first phase
    book = Ledger.load() if study.knows else None
    written = _written(study, _page(study, phases, records, quick, book), folder, tell, parts)
    with suppress(InUse):  # a sweep that goes on packs them at its end
        pack(path)
    return written


def _written(study: Study | Gathering, page: Page, folder: Path, tell: Tell, parts: Path | None = None) -> Path:
    """Write a study's page and tell of it."""
    written = page.write(folder, parts)
    found = {table.name: table for table in page.tables()}
    tell(PageWritten(written, [found[key] for key in study.headline]))
    return written


def page_of(name: str, folder: Path, book: Ledger, tables: Tables = no_tables) -> Page:
    """The page that the finished runs in a folder make, with a ledger and committed tables where the study asks for
    them; nothing is run or written.

    Raises
    ------
    InputError
        No such study, or no runs.
    MissingExtra
        The page needs a module that is not installed.
    """
    study = find_study(name)
    if isinstance(study, Gathering):
        return study.page(tables)
    refuse_without_extra(study)
    return _page(study, phases_of(name), read_runs(folder / RUNS), False, book)


def missing(name: str, folder: Path) -> list[str]:
    """Keys of the runs that the design of a study has and the folder has not.

    Raises
    ------
    InputError
        No such study, or no runs.
    """
    there = {record.key for record in read_runs(folder / RUNS)}
    return [key for key in _keys(phases_of(name)) if key not in there]


def _keys(phases: Sequence[Phase]) -> dict[str, None]:
    """The keys of all runs in order; a run may be in two phases."""
    return dict.fromkeys(key for phase in phases for key in keys_of(phase.jobs))


def _page(
    study: Study, phases: Sequence[Phase], records: Sequence[RunRecord], quick: bool, book: Ledger | None
) -> Page:
    """The page of the runs of these phases, in their order, whatever the order and the rest of the records."""
    latest = {record.key: record for record in records}
    keys = _keys(phases)
    runs = Runs(latest[key] for key in keys if key in latest)
    page = study.page(runs + book.references(runs) if book is not None and study.knows else runs, quick)
    page.missing = [key for key in keys if key not in latest]
    if not page.heat:
        page.heat = heat_map(runs)
    return page
