"""What a checkout has committed: its runs, the tables that they make, and the audit of both and of the pages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mapgap.catalogue import registry
from mapgap.catalogue.files import library_files, load_instance
from mapgap.core import InputError, InstanceBase, suggest
from mapgap.evidence.audit import Fault, RunAudit, of_ledger
from mapgap.evidence.ledger import Ledger
from mapgap.execution.progress import Event, Tell, silence
from mapgap.records.files import has_runs, replace_file, run_files
from mapgap.records.record import RunRecord
from mapgap.reporting.overview import page_of_file
from mapgap.reporting.prose import faults, filled, unsupported
from mapgap.reporting.report import Page
from mapgap.reporting.study import page_of, studies

CLAIMING = ("README.md", "docs")
"""Files, and folders of files, whose figures are made from data."""


@dataclass(frozen=True)
class Audited(Event):
    """One part of the audit is done."""

    place: str
    faults: Sequence[Fault]


@dataclass
class Checkout:
    """A checkout of the project: ``reports/``, the ledger, ``README.md`` and ``docs/``.

    Raises
    ------
    InputError
        The folder has no reports.
    """

    root: Path
    book: Ledger = field(init=False)
    _pages: dict[str, Page] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.reports.is_dir():
            raise InputError(f"{self.root}: expected a checkout with a folder reports, found none")
        own = self.root / "instances" / "best_known.yaml"
        self.book = Ledger.load(own if own.is_file() else None)

    @property
    def reports(self) -> Path:
        return self.root / "reports"

    def run_files(self) -> list[Path]:
        return run_files(self.reports)

    def pages(self) -> list[Path]:
        """The Markdown files whose figures are claims."""
        places = [self.root / name for name in CLAIMING]
        return [file for place in places for file in (sorted(place.rglob("*.md")) if place.is_dir() else [place])]

    def rows(self, table: str) -> list[dict[str, Any]]:
        """The rows of ``ledger``, or of a table ``REPORT/TABLE`` of the page that a report's runs make.

        Raises
        ------
        InputError
            There is no such report or table.
        """
        if table == "ledger":
            return self._entries()
        report, _, name = table.partition("/")
        tables = {each.name: each for section in self._page(report).sections for each in section.tables}
        if name not in tables:
            raise InputError(f"table {table!r}: expected one of {', '.join(tables)}{suggest(name, tables)}")
        return list(tables[name].rows)

    def _entries(self) -> list[dict[str, Any]]:
        return [
            {
                "instance": name,
                "problem": entry.problem,
                "plan": None if entry.plan is None else entry.plan.value,
                "bound": None if entry.bound is None else entry.bound.value,
                "gap_percent": None if entry.gap is None else 100 * entry.gap,
                "certificate": str(entry.certificate or ""),
                "proven": entry.certificate is not None,
            }
            for name, entry in self.book.entries.items()
        ]

    def _page(self, report: str) -> Page:
        """The page that the committed runs of a report make."""
        if report not in self._pages:
            folder = self.reports / report
            file = folder / "runs.jsonl"
            if not has_runs(file):
                known = [each.parent.name for each in self.run_files()]
                raise InputError(f"report {report!r}: expected one of {', '.join(known)}{suggest(report, known)}")
            if report in registry.modules("studies"):
                self._pages[report] = page_of(report, folder)
            else:
                self._pages[report] = page_of_file(file, self.book)
        return self._pages[report]

    def audit(self, tell: Tell = silence) -> list[Fault]:
        """Everything that does not hold: ledger, runs, figures in pages."""
        found: list[Fault] = []
        for place, part in self._parts():
            wrong = list(part)
            found += wrong
            tell(Audited(place, wrong))
        return found

    def _parts(self) -> Iterator[tuple[str, Iterator[Fault]]]:
        yield str(self.book.path), of_ledger(self.book)
        runs = RunAudit(self.book, KnownInstances())
        for file in self.run_files():
            yield str(file), runs.faults(file)
        for page in self.pages():
            yield str(page), self._claims(page)

    def fill(self) -> list[Path]:
        """Put the values of all figures into the pages; the files that changed."""
        changed = []
        for file in self.pages():
            text = file.read_text(encoding="utf-8")
            if (new := filled(text, self.rows)) != text:
                replace_file(file, new.encode())
                changed.append(file)
        return changed

    def _claims(self, page: Path) -> Iterator[Fault]:
        """Figures of a page that the data do not say, and measured ones that nothing supports."""
        yield from faults([page], self.rows)
        for line, text in unsupported(page.read_text(encoding="utf-8")):
            yield Fault("unsupported", f"{page}:{line}", f"{text}: expected a placeholder or a source, found neither")


@dataclass
class KnownInstances:
    """The instances of the library, under every objective, and those of all studies: what committed runs are about."""

    _by_hash: dict[str, InstanceBase] = field(default_factory=dict)
    _studies_read: bool = False

    def __call__(self, run: RunRecord) -> InstanceBase | None:
        """The instance of a run; ``None`` if nobody has it."""
        if run.instance_hash not in self._by_hash:
            self._from_library(run.instance)
        if run.instance_hash not in self._by_hash and not self._studies_read:
            self._from_studies()
        return self._by_hash.get(run.instance_hash)

    def _from_library(self, name: str) -> None:
        if name.partition("@")[0] in library_files():
            with suppress(InputError):  # an objective that the problem does not have
                instance = load_instance(name)
                self._by_hash[instance.content_hash] = instance

    def _from_studies(self) -> None:
        self._studies_read = True
        for study in studies().values():
            for phase in study.phases(False):
                for job in phase.jobs:
                    self._by_hash.setdefault(job.instance.content_hash, job.instance)
