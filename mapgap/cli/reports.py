"""``mapgap report``, ``study`` and ``pack``."""

from __future__ import annotations

from pathlib import Path

from mapgap.cli import output
from mapgap.cli.progress import Display, Spinner, SweepBar
from mapgap.cli.sweeps import refuted, show_path
from mapgap.evidence.ledger import Ledger
from mapgap.execution.progress import Event
from mapgap.reporting.committed import committed_tables
from mapgap.reporting.overview import write_report
from mapgap.reporting.packing import FolderPacked, pack_reports
from mapgap.reporting.study import PageWritten, PhaseBegan, run_study
from mapgap.reporting.tables import Table

BROKEN_SHOWN = 10
"""Lines that are no runs and are named one by one."""


class StudyBar(SweepBar):
    """The bar of its sweeps; the headline tables on standard output."""

    def __call__(self, event: Event) -> None:
        super().__call__(event)
        if isinstance(event, PhaseBegan):
            self.line(f"{event.name}: {event.runs} runs")
        elif isinstance(event, PageWritten):
            self.end()
            for table in event.headline:
                print_table(table)
            output.say(f"Full page: {event.page}")


def report(runs: Path, folder: Path, ledger: Ledger | None, figures: Path | None, *, as_json: bool) -> int:
    """Write the standard report; the exit code."""
    written = write_report(runs, folder, ledger, figures)
    output.complain(written.broken[:BROKEN_SHOWN], label="left out")
    if len(written.broken) > BROKEN_SHOWN:
        output.complain([f"{len(written.broken):,} lines in all"], label="left out")
    Display().line(f"wrote {written.page}")
    show_path(written.page, as_json=as_json)
    return refuted(written.contradictions)


def study(name: str, *, quick: bool, out: Path | None, resume: bool, report_only: bool, figures: Path | None) -> None:
    """Run or resume a study."""
    with StudyBar() as display:
        run_study(
            name,
            quick=quick,
            out=out,
            resume=resume,
            report_only=report_only,
            parts=figures,
            tell=display,
            tables=committed_tables(Path()),
        )


def pack(folder: Path, ledger: Ledger | None, *, as_json: bool) -> None:
    """Make pages anew and pack their runs."""
    with Spinner() as display:

        def tell(event: Event) -> None:
            display(event)
            if isinstance(event, FolderPacked) and not as_json:
                output.say(f"{event.before:>12,} → {event.after:>11,} bytes  {event.folder}")

        found = pack_reports(folder, ledger, tell, committed_tables(Path()))
    if as_json:
        fields = [{"folder": str(each.folder), "before": each.before, "after": each.after} for each in found]
        output.print_json({"folders": fields})


def print_table(table: Table) -> None:
    """A table of a report on standard output."""
    rows = [[table.cell(row, column) for column in table.columns] for row in table.rows]
    numeric = [c.title for c in table.columns if any(isinstance(row.get(c.key), (int, float)) for row in table.rows)]
    output.table(table.title, [column.title for column in table.columns], rows, right=numeric)
    if table.note:
        output.say(table.note)
