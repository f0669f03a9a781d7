"""What a checkout has committed: its runs, the tables that they make, and the audit of both and of the pages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from itertools import chain
from pathlib import Path
from typing import Any

from mapgap.catalogue import registry
from mapgap.catalogue.files import library_files, load_instance
from mapgap.core import InputError, InstanceBase, MissingExtra, suggest
from mapgap.evidence.audit import Evaluated, Fault, RunAudit, of_ledger
from mapgap.evidence.ledger import CERTIFICATE, Ledger
from mapgap.execution.progress import Event, Tell, silence
from mapgap.records.files import read_runs, replace_file, run_files
from mapgap.records.record import RunRecord
from mapgap.records.runs import Runs
from mapgap.reporting import accepted
from mapgap.reporting.cards import Card, cards
from mapgap.reporting.compared import of_files, same_drawing, shown
from mapgap.reporting.overview import page_of_file
from mapgap.reporting.prose import Tables, faults, filled, unsupported
from mapgap.reporting.report import Page, Picture
from mapgap.reporting.study import RUNS, SMALL, is_gathering, missing, page_of, phases_of, studies

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

    Attributes
    ----------
    unseen : dict
        The reports whose pages could not be made for want of an extra, and which; nothing is said of their tables, nor
        of figures and pictures that come from them.

    Raises
    ------
    InputError
        The folder has no reports.
    """

    root: Path
    book: Ledger = field(init=False)
    unseen: dict[str, str] = field(default_factory=dict)
    _pages: dict[str, Page] = field(default_factory=dict)
    _made: dict[str, dict[str, str]] = field(default_factory=dict)
    _evaluated: Evaluated = field(default_factory=dict)
    _known: KnownInstances = field(init=False)

    def __post_init__(self) -> None:
        if not self.reports.is_dir():
            raise InputError(f"{self.root}: expected a checkout with a folder reports, found none")
        self.book, self._known = self._ledger(), KnownInstances()

    def _ledger(self) -> Ledger:
        own = self.root / "instances" / "best_known.yaml"
        return Ledger.load(own if own.is_file() else None)

    @property
    def reports(self) -> Path:
        return self.root / "reports"

    @property
    def images(self) -> Path:
        """The pictures that pages show, each a picture of a report: ``REPORT_PICTURE.svg``."""
        return self.root / "docs" / "images"

    def run_files(self) -> list[Path]:
        """The files of committed runs; the small version of a study, which anybody may have run, claims nothing."""
        return [file for file in run_files(self.reports) if not file.parent.name.endswith(SMALL)]

    def pages(self) -> list[Path]:
        """The Markdown files whose figures are claims."""
        places = [self.root / name for name in CLAIMING]
        files = [file for place in places for file in ([place] if place.suffix else sorted(place.rglob("*.md")))]
        return [file for file in files if file.is_file()]

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
                "checked_gap_percent": None if entry.checked_gap is None else 100 * entry.checked_gap,
                "certificate": str(entry.certificate or ""),
                "proven": entry.certificate is not None,
            }
            for name, entry in self.book.entries.items()
        ]

    def _page(self, report: str) -> Page:
        """The page that the committed runs of a report make."""
        if report not in self._pages:
            folder = self.reports / report
            if report not in (known := self.reported()):
                raise InputError(f"report {report!r}: expected one of {', '.join(known)}{suggest(report, known)}")
            if report in registry.modules("studies"):
                try:
                    self._pages[report] = page_of(report, folder, self.book, self.rows)
                except MissingExtra as error:
                    self.unseen[report] = str(error)
                    raise
            else:
                self._pages[report] = page_of_file(folder / RUNS, self.book)
        return self._pages[report]

    def reported(self) -> list[str]:
        """Names of the reports that a page can be made of: by their runs, or a gathering's committed page."""
        found = {file.parent.name for file in self.run_files() if file == self.reports / file.parent.name / RUNS}
        pages = {file.parent.name for file in self.reports.glob("*/report.md")}
        return sorted(found | {name for name in pages & {*registry.modules("studies")} if is_gathering(name)})

    def audit(self, tell: Tell = silence) -> list[Fault]:
        """Everything that does not hold: ledger, runs, figures in pages."""
        found: list[Fault] = []
        for place, part in self._parts():
            wrong = list(part)
            found += wrong
            tell(Audited(place, wrong))
        return found

    def _parts(self) -> Iterator[tuple[str, Iterator[Fault]]]:
        yield str(self.book.path), of_ledger(self.book, self._known.named)
        runs = RunAudit(self.book, self._known, self._evaluated)
        for file in self.run_files():
            yield str(file), runs.faults(file)
        yield str(self.book.path), runs.unwitnessed()
        for report in self.reported():
            yield str(self.reports / report), self._report(report)
        yield str(self.images), self._drawn(self._images())
        for page in self.pages():
            yield str(page), self._claims(page)
        files = self._accepted()
        yield str(self.root / accepted.LIST), chain(accepted.changed(self.root, files), accepted.gone(self.root, files))

    def _accepted(self) -> list[Path]:
        return accepted.covered(self.root, self.pages(), self.run_files())

    def accept(self) -> list[str]:
        """List all that cannot be remade as it is now; the paths whose files were not listed so."""
        return accepted.accept(self.root, self._accepted())

    def faults_of(self, file: Path) -> Iterator[Fault]:
        """Everything that does not hold where this one file has changed since the checkout was read.

        What can be made anew from it counts as made anew: of runs the page of their report. Last comes whether it was
        accepted so.
        """
        if file in self.pages():
            yield from self._claims(file)
        elif file.parent == self.images:
            yield from self._drawn([file])
        elif file == self.book.path:
            yield from self._of_ledger()
        elif file.name.endswith(CERTIFICATE):
            held = (name for name in self.book.entries if self.book.certificate_path(name) == file)
            yield from of_ledger(self.book, self._known.named, held)
        elif file.name.startswith(RUNS):
            yield from self._of_runs(file.with_name(RUNS))
        elif file.parent.name in self.reported():
            yield from of_files([file], self._files(file.parent.name))
        if file in self._accepted():
            yield from accepted.changed(self.root, [file])

    def _of_ledger(self) -> Iterator[Fault]:
        """Faults of the entries that are not as they were."""
        try:
            book = self._ledger()
        except InputError as error:
            yield Fault("ledger", str(self.book.path), str(error))
            return
        book.entries = {name: each for name, each in book.entries.items() if each != self.book.entries.get(name)}
        yield from of_ledger(book, self._known.named)
        runs, changed = RunAudit(book, self._known), {each.instance_hash for each in book.entries.values()}
        for place, known in self._on_entries:
            yield from runs.of_knowledge(place, known.where(lambda run: run.instance_hash in changed))
        yield from runs.unwitnessed()

    @cached_property
    def _on_entries(self) -> list[tuple[str, Runs]]:
        """The committed runs on instances of the ledger by file, without what takes room."""
        held = {entry.instance_hash for entry in self.book.entries.values()}
        return [
            (str(file), Runs(replace(r, trace=(), notes={}) for r in read_runs(file) if r.instance_hash in held))
            for file in self.run_files()
        ]

    def _of_runs(self, file: Path) -> Iterator[Fault]:
        """Faults of runs, and of the pages that quote the tables that they make now."""
        report = file.parent.name
        if report in registry.modules("studies"):
            yield from self._gone(report, missing(report, file.parent))
        yield from RunAudit(self.book, self._known, self._evaluated).faults(file)
        honest = self._pages.pop(report, None)
        try:
            made = self._page(report)
        except InputError as error:
            yield Fault("table", str(file.parent), str(error))
        else:
            yield from (Fault("verdict", str(file.parent), words) for words in made.faults)
        for page in self.pages():
            yield from self._claims(page)
        self._pages.pop(report, None)
        if honest is not None:
            self._pages[report] = honest

    def _report(self, report: str) -> Iterator[Fault]:
        """Pages and tables of a report that are not what its runs make, and published numbers without a verdict."""
        folder = self.reports / report
        try:
            page = self._page(report)
        except MissingExtra:
            return
        except InputError as error:
            yield Fault("table", str(folder), str(error))
            return
        if there := shown(folder):
            made = self._files(report)
            yield from of_files(sorted({*there, *(folder / name for name in made)}), made)
        yield from (Fault("verdict", str(folder), words) for words in page.faults)
        yield from self._gone(report, page.missing)

    def _gone(self, report: str, keys: Sequence[str]) -> Iterator[Fault]:
        if keys:
            yield Fault("missing", str(self.reports / report), f"{len(keys)} run(s) of its design are not there")

    def _files(self, report: str) -> dict[str, str]:
        """What the runs of a report make, by the name of the file."""
        if report not in self._made:
            self._made[report] = self._page(report).files()
        return self._made[report]

    def fill(self) -> list[Path]:
        """Put the values of all figures into the pages, and the pictures of reports beside them; what changed."""
        changed = []
        for file in self.pages():
            text = file.read_text(encoding="utf-8")
            if (new := filled(text, self.rows)) != text:
                replace_file(file, new.encode())
                changed.append(file)
        for file in self._images():
            drawn = self._picture(file)
            if drawn is not None and not same_drawing(drawn.alone, file.read_text(encoding="utf-8")):
                replace_file(file, drawn.alone.encode())
                changed.append(file)
        return changed

    def _images(self) -> list[Path]:
        return sorted(self.images.glob("*.svg"))

    def _picture(self, file: Path) -> Picture | Card | None:
        """The picture of a report that a file is named for: one of its sections, or the card of an answer."""
        for report in (name for name in self.reported() if file.stem.startswith(f"{name}_")):
            page = self._page(report)
            drawn: list[Picture | Card] = [each for section in page.sections for each in section.figures]
            for each in [*drawn, *cards(page.answers)]:
                if file.stem == f"{report}_{each.name}":
                    return each
        return None

    def _drawn(self, files: Iterable[Path]) -> Iterator[Fault]:
        """Pictures of pages that are not those of their reports."""
        for file in files:
            try:
                drawn = self._picture(file)
            except MissingExtra:
                continue
            if drawn is None:
                yield Fault(
                    "picture", str(file), "expected a picture of a report, REPORT_PICTURE.svg, found another name"
                )
            elif not same_drawing(drawn.alone, file.read_text(encoding="utf-8")):
                yield Fault("picture", str(file), "is not what its report draws")

    def _claims(self, page: Path) -> Iterator[Fault]:
        """Figures of a page that the data do not say, and measured ones that nothing supports."""
        yield from faults([page], self.rows)
        for line, text in unsupported(page.read_text(encoding="utf-8")):
            yield Fault("unsupported", f"{page}:{line}", f"{text}: expected a placeholder or a source, found neither")


def committed_tables(root: Path) -> Tables:
    """The tables of a checkout, which is read when the first one is asked for."""
    read = cache(lambda: Checkout(root))
    return lambda name: read().rows(name)


@dataclass
class KnownInstances:
    """The instances of the library, under every objective, and those of all studies: what committed runs are about."""

    _by_name: dict[str, InstanceBase] = field(default_factory=dict)
    _by_hash: dict[str, InstanceBase] = field(default_factory=dict)
    _studies_read: bool = False

    def __call__(self, run: RunRecord) -> InstanceBase | None:
        """The instance of a run; ``None`` if nobody has it."""
        if run.instance_hash not in self._by_hash:
            self._from_library(run.instance)
        if run.instance_hash not in self._by_hash and not self._studies_read:
            self._from_studies()
        return self._by_hash.get(run.instance_hash)

    def named(self, name: str) -> InstanceBase:
        """An instance of the library, expanded once."""
        if name not in self._by_name:
            self._by_name[name] = load_instance(name)
            self._by_hash[self._by_name[name].content_hash] = self._by_name[name]
        return self._by_name[name]

    def _from_library(self, name: str) -> None:
        if name.partition("@")[0] in library_files():
            with suppress(InputError):  # an objective that the problem does not have
                self.named(name)

    def _from_studies(self) -> None:
        self._studies_read = True
        for name in studies():
            jobs = [job for phase in phases_of(name) for job in phase.jobs]
            for instance in {id(job.instance): job.instance for job in jobs}.values():  # to hash one takes its time
                self._by_hash.setdefault(instance.content_hash, instance)
