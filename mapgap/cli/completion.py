"""What the shell offers while a command is typed: names of instances, methods, problems, families, studies.

Completion must answer at once, so instances are file names here, and nothing is loaded or expanded.
"""

from __future__ import annotations

from collections.abc import Iterable

import typer

from mapgap.catalogue import registry
from mapgap.catalogue.files import library_files, resolve
from mapgap.core import MapgapError


def starting(words: Iterable[str], text: str) -> list[str]:
    """The words that begin with what was typed."""
    return [word for word in words if word.startswith(text)]


def problems(text: str) -> list[str]:
    return starting(registry.problems(), text)


def instances(text: str) -> list[str]:
    """Library names; paths are the shell's own business. After ``@``, the objectives and media of its problem."""
    base, at, _ = text.partition("@")
    if at and base in library_files():
        problem = problem_of(base)
        found = registry.problems()[problem] if problem else None
        return starting((f"{base}@{each}" for each in (*found.objectives, *found.media)) if found else (), text)
    return starting(library_files(), text)


def problem_of(instance: str) -> str | None:
    """The problem of a library instance, by where its file lies."""
    try:
        folder = resolve(instance.partition("@")[0]).parent
    except MapgapError:
        return None
    return next((name for name in registry.problems() if registry.library(name).folder == folder), None)


def owner(context: typer.Context) -> str | None:
    """The problem that the line is about: its name, or that of an instance, stands on the line already."""
    # Typer stops reading at an option without its value; the words before are left in ``args``.
    for word in (context.params.get("problem"), context.params.get("instance"), *context.args):
        found = word if word in registry.problems() else problem_of(str(word)) if word else None
        if found is not None:
            return str(found)
    return None


def methods(context: typer.Context, text: str) -> list[str]:
    """Methods of the problem that the line is about; without one, of all problems."""
    named = owner(context)
    owners = list(registry.problems()) if named is None else [named]
    return starting(dict.fromkeys(name for each in owners for name in registry.methods(each)), text)


def families(context: typer.Context, text: str) -> list[str]:
    named = owner(context)
    return [] if named is None else starting(registry.library(named).families, text)


def media(context: typer.Context, text: str) -> list[str]:
    """Of the problem that the line is about; without one, of all problems."""
    named = owner(context)
    owners = list(registry.problems()) if named is None else [named]
    return starting(dict.fromkeys(name for each in owners for name in registry.problems()[each].media), text)


def things(text: str) -> list[str]:
    """Whatever ``mapgap show`` describes."""
    known = registry.problems()
    names = [*known, *(name for problem in known for name in registry.methods(problem)), *library_files()]
    return starting(dict.fromkeys(names), text)


def studies(text: str) -> list[str]:
    """A study has the name of its module; to import it would import Matplotlib."""
    return starting([*registry.modules("studies"), "all"], text)
