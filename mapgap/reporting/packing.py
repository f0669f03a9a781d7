"""Folders of reports as a repository keeps them: page, small tables, packed runs; all else can be made from these."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mapgap.catalogue import registry
from mapgap.core import InputError
from mapgap.evidence.ledger import Ledger
from mapgap.execution.progress import Event, Tell, silence
from mapgap.records.files import pack, run_files
from mapgap.reporting.overview import write_report
from mapgap.reporting.prose import Tables
from mapgap.reporting.report import PAGE
from mapgap.reporting.study import RUNS, no_tables, run_study

QUICK = "_quick"


@dataclass(frozen=True)
class FolderPacked(Event):
    """A folder of runs is packed: bytes of its files before and after."""

    folder: Path
    before: int
    after: int


def pack_reports(
    root: Path, ledger: Ledger | None, tell: Tell = silence, tables: Tables = no_tables
) -> list[FolderPacked]:
    """Make the page of every report below a folder anew from its runs, and pack these. Nothing changes the second time.

    The folder of a study has the study's name. Others get the standard report, if they have a page already.

    Raises
    ------
    InputError
        There are no runs, a line is no run, or a sweep writes to a file.
    """
    found = []
    for folder in _folders(root):
        before = _size(folder)
        name = folder.resolve().name
        if name.removesuffix(QUICK) in registry.modules("studies") and RUNS in _names(folder):
            run_study(name.removesuffix(QUICK), quick=name.endswith(QUICK), out=folder, report_only=True, tables=tables)
        elif (folder / PAGE).is_file():
            write_report(folder, folder, ledger)
        for name in _names(folder):
            pack(folder / name)
        found.append(FolderPacked(folder, before, _size(folder)))
        tell(found[-1])
    return found


def _folders(root: Path) -> list[Path]:
    folders = sorted({file.parent for file in run_files(root)})
    if not folders:
        raise InputError(f"{root}: expected a folder with run files (.jsonl) in it or below, found none")
    return folders


def _names(folder: Path) -> list[str]:
    """The run files of a folder itself."""
    return [file.name for file in run_files(folder) if file.parent == folder]


def _size(folder: Path) -> int:
    return sum(file.stat().st_size for file in _files(folder))


def _files(folder: Path) -> Iterator[Path]:
    return (file for file in folder.iterdir() if file.is_file())
