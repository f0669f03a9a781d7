"""What the commands have in common: arguments, options and words for the shell, as Typer takes them."""

# No postponed annotations: Typer would evaluate the text of each of them several times.
from pathlib import Path
from typing import Annotated

import typer


def _offer(what: str, *context: typer.Context, text: str) -> list[str]:
    """Words for the shell from :mod:`mapgap.cli.completion`, imported when the shell asks."""
    from mapgap.cli import completion

    found: list[str] = getattr(completion, what)(*context, text)
    return found


def complete_instances(incomplete: str) -> list[str]:
    return _offer("instances", text=incomplete)


def complete_problems(incomplete: str) -> list[str]:
    return _offer("problems", text=incomplete)


def complete_methods(ctx: typer.Context, incomplete: str) -> list[str]:
    return _offer("methods", ctx, text=incomplete)


def complete_families(ctx: typer.Context, incomplete: str) -> list[str]:
    return _offer("families", ctx, text=incomplete)


def complete_things(incomplete: str) -> list[str]:
    return _offer("things", text=incomplete)


def complete_studies(incomplete: str) -> list[str]:
    return _offer("studies", text=incomplete)


Instance = Annotated[str, typer.Argument(help="Instance, path or name", autocompletion=complete_instances)]
Problem = Annotated[str, typer.Argument(help="Problem", autocompletion=complete_problems)]
Json = Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")]
Plugins = Annotated[list[Path] | None, typer.Option("--plugin", help="Python file that exports METHODS.")]
Objective = Annotated[str | None, typer.Option(help="For problems that offer a choice.")]
Out = Annotated[Path | None, typer.Option("-o", "--output", help="Where to write.")]


def load_plugins(plugins: list[Path] | None) -> None:
    if plugins:
        from mapgap.cli.plugins import load

        load(plugins)
