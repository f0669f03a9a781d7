"""``mapgap bench``, ``report``, ``study``, ``pack`` and ``audit``: many runs, and what is made of them.

Reports bring Matplotlib, so they are imported where they are made.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

from rich import progress

from mapgap.cli import certificates, completion, flags, output
from mapgap.cli.flags import argument, option
from mapgap.cli.progress import Display, Spinner, Words
from mapgap.core import Budget, printable, short
from mapgap.evidence.contradictions import Contradiction, contradictions
from mapgap.evidence.ledger import Ledger
from mapgap.evidence.ledger import update_ledger as enter
from mapgap.evidence.prove import Outcome, prove_runs
from mapgap.execution import sweep
from mapgap.execution.changes import Changed
from mapgap.execution.progress import Event
from mapgap.execution.sweep import RunEnded, SweepBegan, SweepEnded
from mapgap.records.files import read_runs

if TYPE_CHECKING:
    from mapgap.reporting.committed import Audited
    from mapgap.reporting.mutation import Planted
    from mapgap.reporting.packing import FolderPacked
    from mapgap.reporting.study import PageWritten, PhaseBegan

BROKEN_SHOWN = 10
"""Lines that are no runs and are named one by one."""


class SweepBar(Display):
    """A bar per sweep, a warning where the cores are oversubscribed, errors as they come, the account at the end."""

    def __init__(self, lines: Words | None = None, results: Words | None = None) -> None:
        super().__init__(lines, results)
        self.bar: progress.Progress | None = None
        self.task = progress.TaskID(0)

    def __call__(self, event: Event) -> None:
        if type(event) in self.results:
            self.end()
        super().__call__(event)
        if isinstance(event, Changed):
            self.line(f"warning: {event.words}", "yellow")
        elif isinstance(event, SweepBegan):
            self.begin(event)
        elif isinstance(event, RunEnded) and self.bar is not None:
            label = printable(f"{event.record.instance} · {event.record.method}")
            self.bar.update(self.task, completed=event.done, total=event.total, description=label)
            if event.record.error:
                last = (event.record.error.splitlines() or [""])[-1]  # it says most
                self.line(f"{label}: {short(last, 300)}", "red")
        elif isinstance(event, SweepEnded):
            self.end()
            self.line(
                f"{event.runs} run{'s' if event.runs > 1 else ''} in {event.elapsed_s:.1f} s, {event.parallel} at a "
                f"time: {event.measured_s / event.runs:.3f} s measured per run, {event.around_s:.3f} s around it"
            )

    def begin(self, event: SweepBegan) -> None:
        """A new bar."""
        self.end()
        if event.oversubscribed:
            jobs = f"{event.parallel} jobs x {event.workers} workers on {event.cores} cores"
            self.line(f"warning: {jobs}; times will suffer", "yellow")
        text, counts = progress.TextColumn("{task.description}", markup=False), progress.MofNCompleteColumn()
        times = (progress.TimeElapsedColumn(), progress.TimeRemainingColumn())
        self.bar = progress.Progress(text, progress.BarColumn(), counts, *times, console=self.console)
        self.task = self.bar.add_task("runs", total=event.total, completed=event.done)
        self.bar.start()

    def end(self) -> None:
        """Leave the bar as it stands."""
        if self.bar is not None:
            self.bar.stop()
            self.bar = None


def bench(
    spec: Annotated[Path, argument("Sweep file")],
    jobs: Annotated[int, option("Runs at a time.", min=1)] = 1,
    resume: flags.Resume = True,
    dask: Annotated[str | None, option("Dask cluster that does the runs: address, or file.")] = None,
    certify: Annotated[
        bool, option("Then certificates of what was proven, in RUNS.certificates/, in no run's time.", "--certify")
    ] = False,
    update_ledger: Annotated[bool, option("Enter the runs into the ledger.", "--update-ledger")] = False,
    ledger: flags.Ledger = None,
    out: Annotated[Path | None, flags.output("Run file (default: beside the spec).")] = None,
    plugin: flags.Plugins = None,
    as_json: flags.Json = False,
) -> int:
    """Run a sweep file, and enter its runs into the ledger if asked."""
    flags.load_plugins(plugin)
    with SweepBar() as display:
        plugins = tuple(plugin or ())
        path = sweep.bench(spec, jobs=jobs, resume=resume, out=out, plugins=plugins, dask=dask, tell=display)
    records = read_runs(path)
    contrary = contradictions(records)
    changes = enter(records, ledger, str(path)) if update_ledger and not contrary else None
    proofs: list[Outcome] = []
    if certify and not contrary:
        read = sweep.load_spec(spec)
        instances, folder = [job.instance for job in sweep.jobs_of(read)], path.with_suffix(".certificates")
        with Spinner(certificates.LOOKING, None if as_json else {Outcome: certificates.proved}) as shown:
            proofs = prove_runs(records, instances, Budget(read.budget.time_s), folder, shown)
    show_path(path, as_json=as_json, ledger=changes, proofs=proofs)
    return refuted(contrary) or certificates.exit_code(proofs)


def show_path(path: Path, *, as_json: bool, ledger: list[str] | None = None, proofs: Iterable[Outcome] = ()) -> None:
    """What was written, and what has changed in the ledger."""
    if as_json:
        told = {} if not (made := [each.to_json() for each in proofs]) else {"certificates": made}
        output.print_json({"output": str(path), **({} if ledger is None else {"ledger": ledger}), **told})
    else:
        output.say("\n".join([str(path), *(ledger or ())]))


def refuted(contrary: Iterable[Contradiction]) -> int:
    """Name every contradiction; 5 if there is one, else 0."""
    words = [str(each) for each in contrary]
    output.complain(words)
    return 5 if words else 0


def report(
    runs: Annotated[Path, argument("Run file, or a folder of them")],
    folder: Annotated[Path, flags.output("Folder.")] = Path("report"),
    ledger: flags.Ledger = None,
    no_ledger: Annotated[bool, option("Only what these runs show.", "--no-ledger")] = False,
    figures: flags.Figures = None,
    as_json: flags.Json = False,
) -> int:
    """Write the standard report."""
    from mapgap.reporting.overview import write_report

    _check_folders(folder, figures)
    written = write_report(runs, folder, None if no_ledger else Ledger.load(ledger), figures)
    output.complain(written.broken[:BROKEN_SHOWN], label="left out")
    if len(written.broken) > BROKEN_SHOWN:
        output.complain([f"{len(written.broken):,} lines in all"], label="left out")
    Display().line(f"wrote {written.page}")
    show_path(written.page, as_json=as_json)
    return refuted(written.contradictions)


def _check_folders(folder: Path | None, figures: Path | None) -> None:
    for path, flag in ((folder, "-o"), (figures, "--figures")):
        if path is not None:
            output.to_folder(path, flag)


def study(
    name: Annotated[str, argument("Name of a committed study, or all", completion.studies)],
    quick: Annotated[bool, option("The small version.", "--quick")] = False,
    folder: Annotated[Path | None, flags.output("Folder (default: reports/NAME).")] = None,
    resume: flags.Resume = True,
    report_only: Annotated[bool, option("Run nothing.", "--report-only")] = False,
    figures: flags.Figures = None,
) -> None:
    """Run or resume a study."""
    from mapgap.reporting.committed import committed_tables
    from mapgap.reporting.study import PageWritten, PhaseBegan, run_study

    _check_folders(folder, figures)
    with SweepBar({PhaseBegan: phase_began}, {PageWritten: page_written}) as display:
        run_study(
            name,
            quick=quick,
            out=folder,
            resume=resume,
            report_only=report_only,
            parts=figures,
            tell=display,
            tables=committed_tables(Path()),
        )


def pack(
    folder: Annotated[Path, argument("A report, or a folder of reports.")] = Path("reports"),
    ledger: flags.Ledger = None,
    as_json: flags.Json = False,
) -> None:
    """Make pages anew and pack their runs."""
    from mapgap.reporting.committed import committed_tables
    from mapgap.reporting.packing import FolderPacked, pack_reports

    book = Ledger.load(ledger)
    with Spinner(results=None if as_json else {FolderPacked: packed}) as display:
        found = pack_reports(folder, book, display, committed_tables(Path()))
    if as_json:
        fields = [{"folder": str(each.folder), "before": each.before, "after": each.after} for each in found]
        output.print_json({"folders": fields})


def packed(event: FolderPacked) -> str:
    """One line on a report whose runs are packed."""
    return f"{event.before:>12,} → {event.after:>11,} bytes  {event.folder}"


def audit(
    checkout: Annotated[Path, argument("Folder with reports/, docs/, README.md.")] = Path(),
    fill: Annotated[bool, option("First write the figures of README and docs anew.", "--fill")] = False,
    accept: Annotated[bool, option("First list as read what cannot be remade.", "--accept")] = False,
    mutate: Annotated[int, option("Plant so many lies in a copy instead: which are found?", "--mutate", min=0)] = 0,
    as_json: flags.Json = False,
) -> int:
    """Audit a checkout; 5 if anything does not hold."""
    from mapgap.reporting.committed import Audited, Checkout

    if mutate:
        return _mutated(checkout, mutate, as_json=as_json)
    claims = Checkout(checkout)
    with Spinner(results=None if as_json else {Audited: audited}) as display:
        for page in claims.fill() if fill else ():
            display.line(f"figures of {page} written")
        for path in claims.accept() if accept else ():
            display.line(f"accepted as it is: {path}")
        found = claims.audit(tell=display)
    if as_json:
        output.print_json({"faults": [fault.to_json() for fault in found], "unseen": claims.unseen})
    else:
        for report, reason in claims.unseen.items():
            output.say(f"not seen: what comes from the runs of {report} ({reason})")
        output.say("nothing is wrong" if not found else f"{len(found)} claim(s) do not hold")
    return 5 if found else 0


def _mutated(checkout: Path, count: int, *, as_json: bool) -> int:
    """Plant lies and say which are found."""
    from mapgap.reporting.mutation import Planted, plant, table

    with TemporaryDirectory() as scratch, Spinner(results=None if as_json else {Planted: planted}) as display:
        lies = list(plant(checkout, Path(scratch), count, tell=display))
    rows = table(lies)
    if as_json:
        output.print_json({"kinds": rows, "lies": [vars(each) for each in lies]})
    else:
        columns = ["kind", "planted", "found", "of these by the data"]
        output.table("Planted lies", columns, [list(map(str, row.values())) for row in rows])
        output.say(f"{sum(each.found for each in lies)} of {len(lies)} planted lies are found")
    return 0


def planted(event: Planted) -> str:
    """A line on a lie."""
    return f"{'found' if event.found else 'MISSED':9}{event.kind}: {event.file}"


def audited(event: Audited) -> str:
    """A line on a file, and below it what does not hold there."""
    faults = [f"         {fault.kind}: {fault}" for fault in event.faults]
    return "\n".join([f"{'ok' if not faults else 'WRONG':9}{event.place}", *faults])


def phase_began(event: PhaseBegan) -> str:
    """One line on a part of a study."""
    return f"{event.name}: {event.runs} runs"


def page_written(event: PageWritten) -> str:
    """The headline tables of a study, and where its page is."""
    for table in event.headline:
        rows = [[table.cell(row, column) for column in table.columns] for row in table.rows]
        figures = (int, float)
        right = [c.title for c in table.columns if any(isinstance(row.get(c.key), figures) for row in table.rows)]
        output.table(table.title, [column.title for column in table.columns], rows, right=right)
        if table.note:
            output.say(table.note)
    return f"Full page: {event.page}"
