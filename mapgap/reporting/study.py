"""Committed studies: a named list of runs and the page made from them.

A study is a module below ``mapgap.studies`` that exports ``STUDY``; it is found by discovery, reaches methods only
through the registry, and its page is a pure function of its run records and of published numbers. Runs go to
``<out>/runs.jsonl`` and are resumed like any sweep; when all are done, the file is packed.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from mapgap.catalogue import registry
from mapgap.core import InputError, suggest
from mapgap.execution.progress import Event, Tell, silence
from mapgap.execution.sweep import Job, keys_of, sweep
from mapgap.records.environment import cores
from mapgap.records.files import InUse, pack, read_runs
from mapgap.records.record import RunRecord
from mapgap.records.runs import Runs
from mapgap.reporting.heat import heat_map
from mapgap.reporting.report import Page
from mapgap.reporting.tables import Table

RUNS = "runs.jsonl"
"""Name of the run file in a study's folder, packed or not."""


@dataclass(frozen=True)
class Phase:
    """Runs that share the machine in the same way: ``parallel`` processes at a time (never more than the cores)."""

    name: str
    jobs: Sequence[Job]
    parallel: int = 1


@dataclass(frozen=True)
class Study:
    """A named study.

    ``phases(quick)`` lists its runs; ``page(records, quick)`` makes its page; ``headline(page)`` names the tables that
    the command line prints.
    """

    name: str
    title: str
    problem: str
    phases: Callable[[bool], list[Phase]]
    page: Callable[[Runs, bool], Page]
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


def find_study(name: str) -> Study:
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
    if not isinstance(study, Study) or study.name != name:
        raise RuntimeError(f"mapgap.studies.{name} exports no STUDY of that name")
    return study


def studies() -> dict[str, Study]:
    """All committed studies by name."""
    return {name: find_study(name) for name in registry.modules("studies")}


def run_study(
    name: str,
    *,
    quick: bool = False,
    out: Path | None = None,
    resume: bool = True,
    report_only: bool = False,
    parts: Path | None = None,
    tell: Tell = silence,
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

    Raises
    ------
    InputError
        No such study.
    """
    if name == "all":
        for each in registry.modules("studies"):
            where = out / each if out else None
            beside = parts / each if parts else None
            run_study(each, quick=quick, out=where, resume=resume, report_only=report_only, parts=beside, tell=tell)
        return out or Path("reports")
    study = find_study(name)
    folder = out or Path("reports") / (f"{name}_quick" if quick else name)
    path = folder / RUNS
    records: list[RunRecord] = []
    for phase in study.phases(quick):
        if report_only:
            keys = set(keys_of(phase.jobs))
            records += [r for r in read_runs(path) if r.key in keys]
        else:
            tell(PhaseBegan(phase.name, len(phase.jobs)))
            records += sweep(phase.jobs, path, parallel=min(phase.parallel, cores()), resume=resume, tell=tell)
            resume = True  # a fresh start clears the file once, before the first phase
    page = _page(study, records, quick)
    written = page.write(folder, parts)
    with suppress(InUse):  # a sweep that goes on packs them at its end
        pack(path)
    tables = {table.name: table for section in page.sections for table in section.tables}
    tell(PageWritten(written, [tables[key] for key in study.headline]))
    return written


def page_of(name: str, folder: Path) -> Page:
    """The page that the finished runs in a folder make; nothing is run or written.

    Raises
    ------
    InputError
        No such study, or no runs.
    """
    study = find_study(name)
    keys = {key for phase in study.phases(False) for key in keys_of(phase.jobs)}
    return _page(study, [r for r in read_runs(folder / RUNS) if r.key in keys], quick=False)


def _page(study: Study, records: Sequence[RunRecord], quick: bool) -> Page:
    runs = Runs({r.key: r for r in records}.values())  # a run may be in two phases
    page = study.page(runs, quick)
    if not page.heat:
        page.heat = heat_map(runs)
    return page
