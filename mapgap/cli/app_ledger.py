"""The commands around the ledger: names, arguments and options, for :mod:`mapgap.cli.app`."""

# No postponed annotations: Typer would evaluate the text of each of them several times.
from pathlib import Path
from typing import Annotated

import typer

ledger = typer.Typer(help="The best-known ledger: what it holds, who found it, what follows.", no_args_is_help=True)

File = Annotated[Path | None, typer.Option("--ledger", help="Ledger file (default: the library's).")]
Json = Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")]


@ledger.command()
def show(
    name: Annotated[str, typer.Argument(help="Instance, or NAME@OBJECTIVE")], path: File = None, json: Json = False
) -> None:
    """What is known of an instance, and how it came about."""
    from mapgap.cli import ledger as room

    room.show(name, path=path, as_json=json)


@ledger.command()
def history(
    pattern: Annotated[str, typer.Argument(help="Instances: a name or a glob")] = "*",
    path: File = None,
    json: Json = False,
) -> None:
    """Who improved what, and when."""
    from mapgap.cli import ledger as room

    room.history(pattern, path=path, as_json=json)


@ledger.command()
def close(
    path: File = None,
    check: Annotated[bool, typer.Option("--check", help="Change nothing; exit with 5 if something could.")] = False,
    json: Json = False,
) -> None:
    """Pass plans and bounds on between instances that imply each other."""
    from mapgap.cli import ledger as room

    raise typer.Exit(room.close(path=path, check=check, as_json=json))


def submit(
    file: Annotated[Path, typer.Argument(help="Plan, JSON of a run (solve --json), or certificate")],
    by: Annotated[str, typer.Option(help="Who found it.")] = "",
    instance: Annotated[
        str | None, typer.Option(help="Of the library (default: what the file or its name says).")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check it and write nothing.")] = False,
    path: File = None,
    json: Json = False,
) -> None:
    """Check somebody else's plan or certificate, and enter it into the ledger if it is better."""
    from mapgap.cli import ledger as room

    room.submit(file, by=by, instance=instance, ledger=path, dry_run=dry_run, as_json=json)
