"""What commands have in common: arguments and options, as Typer takes them, and words for the shell."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from mapgap.catalogue import registry
from mapgap.cli import completion
from mapgap.core import InputError

Instance = Annotated[str, typer.Argument(help="Instance, path or name", autocompletion=completion.instances)]
Problem = Annotated[str, typer.Argument(help="Problem", autocompletion=completion.problems)]
Json = Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")]
Plugins = Annotated[list[Path] | None, typer.Option("--plugin", help="Python file that exports METHODS.")]
Objective = Annotated[str | None, typer.Option(help="For problems that offer a choice.")]
Workers = Annotated[int, typer.Option(min=1, max=4096, help="Threads a solver may use.")]
Seed = Annotated[int, typer.Option(min=0, max=2**31 - 1, help="The only source of randomness.")]
Ledger = Annotated[Path | None, typer.Option("--ledger", help="Ledger file (default: the library's).")]
Figures = Annotated[Path | None, typer.Option(help="Folder for every figure and table as a file.")]
Resume = Annotated[bool, typer.Option("--resume/--fresh", help="Keep finished runs, or start over.")]


def output(text: str) -> Any:
    """``-o``."""
    return typer.Option("-o", "--output", help=text)


def seconds(text: str) -> Any:
    """A limit of time."""
    return typer.Option(min=0.001, help=text)


def load_plugins(paths: Iterable[Path] | None) -> None:
    """Register the methods of files, known while the command runs.

    Raises
    ------
    InputError
        A file that cannot be used, or a name that is taken.
    """
    for path in paths or ():
        loaded = registry.load_plugin(path)
        try:
            for problem in {method.problem for method in loaded}:
                registry.methods(problem)
        except RuntimeError as error:
            raise InputError(f"--plugin {path}: {error}") from error
