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
    """Library names; paths are the shell's own business. After ``@``, the objectives of the instance's problem."""
    base, at, _ = text.partition("@")
    if at and base in library_files():
        owner = problem_of(base)
        objectives = registry.problems()[owner].objectives if owner else ()
        return starting((f"{base}@{each}" for each in objectives), text)
    return starting(library_files(), text)


def problem_of(instance: str) -> str | None:
    """The problem of a library instance, by where its file lies."""
    try:
        folder = resolve(instance.partition("@")[0]).parent
    except MapgapError:
        return None
    return next((name for name in registry.problems() if registry.library(name).folder == folder), None)


def methods(context: typer.Context, text: str) -> list[str]:
    """Methods of the problem, or of the instance's problem, that stands on the line already; else of all problems."""
    known = registry.problems()
    named = context.params.get("problem") or problem_of(str(context.params.get("instance") or ""))
    owners = [named] if named in known else list(known)
    return starting(dict.fromkeys(name for owner in owners for name in registry.methods(owner)), text)


def families(context: typer.Context, text: str) -> list[str]:
    problem = context.params.get("problem")
    return starting(registry.library(problem).families, text) if problem in registry.problems() else []


def things(text: str) -> list[str]:
    """Whatever ``mapgap show`` describes."""
    known = registry.problems()
    names = [*known, *(name for problem in known for name in registry.methods(problem)), *library_files()]
    return starting(dict.fromkeys(names), text)


def studies(text: str) -> list[str]:
    """A study has the name of its module; to import it would import Matplotlib."""
    return starting([*registry.modules("studies"), "all"], text)
