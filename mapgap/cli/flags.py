"""What commands have in common: arguments and options, as Typer takes them, and words for the shell."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from mapgap.catalogue import registry
from mapgap.cli import completion
from mapgap.core import InputError


def argument(text: str, offers: Callable[..., list[str]] | None = None) -> Any:
    """What a command is about; ``offers`` are the words for the shell."""
    return typer.Argument(help=text, autocompletion=offers)


def option(text: str, *names: str, offers: Callable[..., list[str]] | None = None, **limits: Any) -> Any:
    """An option by its own name or other ones, a number within limits."""
    return typer.Option(*names, help=text, autocompletion=offers, **limits)


def output(text: str) -> Any:
    """Where to write."""
    return option(text, "-o", "--output")


def seconds(text: str) -> Any:
    """A limit of time."""
    return option(text, min=0.001)


Instance = Annotated[str, argument("Instance, path or name", completion.instances)]
Problem = Annotated[str, argument("Problem", completion.problems)]
Json = Annotated[bool, option("One JSON object on standard output.", "--json")]
Plugins = Annotated[list[Path] | None, option("Python file that exports METHODS.", "--plugin")]
Objective = Annotated[str | None, option("For problems that offer a choice.")]
Medium = Annotated[
    str | None, option("What transfers share, for problems that offer a choice.", offers=completion.media)
]
Workers = Annotated[int, option("Threads a solver may use.", min=1, max=4096)]
Seed = Annotated[int, option("The only source of randomness.", min=0, max=2**31 - 1)]
Ledger = Annotated[Path | None, option("Ledger file (default: the library's).", "--ledger")]
Figures = Annotated[Path | None, option("Folder for every figure and table as a file.")]
Resume = Annotated[bool, option("Keep finished runs, or start over.", "--resume/--fresh")]


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
