"""The commands around runs of many methods: names, arguments and options, for :mod:`mapgap.cli.app`."""

# No postponed annotations: Typer would evaluate the text of each of them several times.
from pathlib import Path
from typing import Annotated

import typer

from mapgap.cli.app_options import (
    Json,
    Plugins,
    complete_studies,
    load_plugins,
)


def bench(
    spec: Annotated[Path, typer.Argument(help="Sweep file")],
    jobs: Annotated[int, typer.Option(min=1, help="Runs at a time.")] = 1,
    resume: Annotated[bool, typer.Option("--resume/--fresh", help="Keep finished runs, or start over.")] = True,
    dask: Annotated[str | None, typer.Option(help="Scheduler of the dask cluster that does the runs.")] = None,
    update_ledger: Annotated[bool, typer.Option("--update-ledger", help="Enter the runs into the ledger.")] = False,
    ledger: Annotated[Path | None, typer.Option(help="Ledger file (default: the library's).")] = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Run file (default: beside the spec).")] = None,
    plugin: Plugins = None,
    json: Json = False,
) -> None:
    """Run a sweep: any methods on any instances under one budget; one JSON line per run, resumable."""
    from mapgap.cli import sweeps

    load_plugins(plugin)
    code = sweeps.bench(
        spec,
        jobs=jobs,
        resume=resume,
        out=output,
        plugins=tuple(plugin or ()),
        dask=dask,
        update=update_ledger,
        ledger=ledger,
        as_json=json,
    )
    raise typer.Exit(code)


def report(
    runs: Annotated[Path, typer.Argument(help="Run file, or a folder of them")],
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder.")] = Path("report"),
    ledger: Annotated[Path | None, typer.Option(help="Ledger file (default: the library's).")] = None,
    no_ledger: Annotated[bool, typer.Option("--no-ledger", help="Only what these runs show.")] = False,
    figures: Annotated[Path | None, typer.Option(help="Folder for every figure and table as a file.")] = None,
    json: Json = False,
) -> None:
    """Make tables, figures and one HTML page from runs, against the best-known results."""
    from mapgap.cli import reports
    from mapgap.cli.output import to_folder
    from mapgap.evidence.ledger import Ledger

    to_folder(output)
    if figures is not None:
        to_folder(figures, "--figures")
    book = None if no_ledger else Ledger.load(ledger)
    raise typer.Exit(reports.report(runs, output, book, figures, as_json=json))


def study(
    name: Annotated[str, typer.Argument(help="Name of a committed study, or all", autocompletion=complete_studies)],
    quick: Annotated[bool, typer.Option("--quick", help="The small version.")] = False,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Folder (default: reports/NAME).")] = None,
    resume: Annotated[bool, typer.Option("--resume/--fresh", help="Keep finished runs, or start over.")] = True,
    report_only: Annotated[bool, typer.Option("--report-only", help="Run nothing.")] = False,
    figures: Annotated[Path | None, typer.Option(help="Folder for every figure and table as a file.")] = None,
) -> None:
    """Run or resume a committed study, write its page and pack its runs."""
    from mapgap.cli import reports
    from mapgap.cli.output import to_folder

    if output is not None:
        to_folder(output)
    if figures is not None:
        to_folder(figures, "--figures")
    reports.study(name, quick=quick, out=output, resume=resume, report_only=report_only, figures=figures)


def pack(
    folder: Annotated[Path, typer.Argument(help="A report, or a folder of reports.")] = Path("reports"),
    ledger: Annotated[Path | None, typer.Option(help="Ledger file (default: the library's).")] = None,
    json: Json = False,
) -> None:
    """Make the pages of reports anew from their runs, pack these, and keep nothing else that can be made anew."""
    from mapgap.cli import reports
    from mapgap.evidence.ledger import Ledger

    reports.pack(folder, Ledger.load(ledger), as_json=json)
