"""Discovery of problems and methods.

A problem is a package directly below :mod:`mapgap.problems` that exports ``PROBLEM``; its methods are declared in the
tables ``METHODS`` of ``mapgap.heuristics.<problem>`` and ``mapgap.formulations.<problem>``, its instances in the
``LIBRARY`` of ``mapgap.instances.<problem>``. Third parties announce theirs through the entry point groups
``mapgap.problems`` (a :class:`~mapgap.core.Problem`) and ``mapgap.methods`` (a :class:`~mapgap.core.Method` or a list
of them), or methods alone with ``--plugin file.py`` (a file that exports ``METHODS``).

In the house a table that is missing or misspelt is an error, never a silent absence. An entry point that fails is
skipped with a warning: somebody else's package must not break this one. Nothing here imports a solver.

What modules declare is read once; :func:`forget` makes the next question read it anew.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import pkgutil
import sys
import warnings
from collections.abc import Iterator
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from mapgap.core import InputError, Library, Method, Problem, resolve, suggest

WINGS = ("heuristics", "formulations")
_plugins: list[Method] = []


def folder(wing: str) -> Path:
    """Where the files of a wing lie (``instances``, …)."""
    return Path(next(iter(importlib.import_module(f"mapgap.{wing}").__path__)))


class BrokenEntryPoint(UserWarning):
    """A third party's entry point that cannot be used."""


@cache
def problems() -> dict[str, Problem]:
    """All problems by name.

    Raises
    ------
    RuntimeError
        A module of the wing has no ``PROBLEM``, or one whose name is not the module's.
    """
    found: dict[str, Problem] = {}
    package = importlib.import_module("mapgap.problems")
    for info in pkgutil.iter_modules(package.__path__):
        module = importlib.import_module(f"mapgap.problems.{info.name}")
        problem = getattr(module, "PROBLEM", None)
        if not isinstance(problem, Problem):
            raise RuntimeError(f"mapgap.problems.{info.name} exports no PROBLEM of type mapgap.core.Problem")
        if problem.name != info.name:
            raise RuntimeError(f"mapgap.problems.{info.name} exports a problem named {problem.name!r}")
        found[problem.name] = problem
    for entry, loaded in _entries("mapgap.problems"):
        if not isinstance(loaded, Problem):
            _warn(entry, f"expected a mapgap.core.Problem, found {type(loaded).__name__}")
        elif loaded.name in found:
            _warn(entry, f"there is a problem named {loaded.name!r} already")
        else:
            found[loaded.name] = loaded
    return dict(sorted(found.items()))


def find_problem(name: str) -> Problem:
    """The problem of that name.

    Raises
    ------
    InputError
        No such problem; with a suggestion.
    """
    known = problems()
    if name not in known:
        raise InputError(f"problem: expected one of {', '.join(known)}; found {name!r}{suggest(name, known)}")
    return known[name]


@cache
def library(problem: str) -> Library:
    """The instances of a problem.

    Raises
    ------
    RuntimeError
        What the problem names is no ``Library`` of its own.
    """
    reference = problems()[problem].library or f"mapgap.instances.{problem}:LIBRARY"
    try:
        found = resolve(reference)
    except (ImportError, AttributeError) as error:
        raise RuntimeError(f"{problem}: {reference} cannot be imported: {error}") from error
    if not isinstance(found, Library) or found.problem != problem:
        raise RuntimeError(f"{problem}: {reference} is no mapgap.core.Library of this problem")
    return found


@cache
def _declared() -> tuple[Method, ...]:
    """All methods of the house and of entry points, in the order of their tables."""
    found: list[Method] = []
    for wing in WINGS:
        package = importlib.import_module(f"mapgap.{wing}")
        for info in pkgutil.iter_modules(package.__path__):
            module = importlib.import_module(f"{package.__name__}.{info.name}")
            table = _table(module)
            for method in table:
                if method.problem != info.name:
                    raise RuntimeError(f"{module.__name__}: method {method.name!r} claims problem {method.problem!r}")
            found += table
    names = {(method.problem, method.name) for method in found}
    for entry, loaded in _entries("mapgap.methods"):
        listed = list(loaded) if isinstance(loaded, (list, tuple)) else [loaded]
        strange = [each for each in listed if not isinstance(each, Method)]
        taken = [each.name for each in listed if isinstance(each, Method) and (each.problem, each.name) in names]
        if strange:
            _warn(entry, f"expected a mapgap.core.Method or a list of them, found {type(strange[0]).__name__}")
        elif taken:
            _warn(entry, f"there is a method named {taken[0]!r} already")
        else:
            names |= {(each.problem, each.name) for each in listed}
            found += listed
    return tuple(found)


def _entries(group: str) -> Iterator[tuple[str, Any]]:
    """What the entry points of a group name; those that fail are skipped with a warning."""
    for entry in sorted(entry_points(group=group), key=lambda each: each.name):
        name = f"{group}: {entry.name} = {entry.value}"
        try:
            loaded = entry.load()
        except Exception as error:
            _warn(name, f"{type(error).__name__}: {error}")
        else:
            yield name, loaded


def _warn(entry: str, reason: str) -> None:
    warnings.warn(f"entry point {entry} is left out: {reason}", BrokenEntryPoint, stacklevel=2)


def _table(module: ModuleType) -> list[Method]:
    methods = getattr(module, "METHODS", None)
    if not isinstance(methods, (list, tuple)) or not all(isinstance(m, Method) for m in methods):
        raise RuntimeError(f"{module.__name__} exports no list METHODS of mapgap.core.Method")
    return list(methods)


def methods(problem: str) -> dict[str, Method]:
    """All methods of a problem by name: of the house, from entry points and from plug-in files.

    Raises
    ------
    RuntimeError
        Two methods share a name.
    """
    found: dict[str, Method] = {}
    for method in (*_declared(), *_plugins):
        if method.problem != problem:
            continue
        if method.name in found:
            raise RuntimeError(f"two methods of {problem!r} are named {method.name!r}")
        found[method.name] = method
    return dict(sorted(found.items()))


def find_method(problem: str, name: str) -> Method:
    """The method of that name.

    Raises
    ------
    InputError
        No such method; with a suggestion.
    """
    known = methods(problem)
    if name not in known:
        raise InputError(f"method: expected one of {', '.join(known) or 'none'}, found {name!r}{suggest(name, known)}")
    return known[name]


def strongest_exact(problem: str) -> Method:
    """The exact method of highest rank."""
    exact = [m for m in methods(problem).values() if m.kind == "exact"]
    if not exact:
        raise InputError(f"problem {problem!r} has no exact method")
    return max(exact, key=lambda m: (m.rank, m.name))


def load_plugin(path: Path) -> list[Method]:
    """Register the ``METHODS`` of a Python file.

    Raises
    ------
    InputError
        The file is missing, fails to import, exports no ``METHODS``, or names an unknown problem.
    """
    if not path.is_file():
        raise InputError(f"--plugin {path}: expected a Python file, found nothing there")
    spec = importlib.util.spec_from_file_location(f"mapgap_plugin_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise InputError(f"--plugin {path}: expected a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
        found = _table(module)
    except Exception as error:
        raise InputError(f"--plugin {path}: {type(error).__name__}: {error}") from error
    for method in found:
        if method.problem not in problems():
            raise InputError(f"--plugin {path}: method {method.name!r} names unknown problem {method.problem!r}")
    _plugins.extend(found)
    return found


@contextlib.contextmanager
def plugins_of_this_run() -> Iterator[None]:
    """Plug-ins that are loaded inside are forgotten at the end."""
    before = list(_plugins)
    try:
        yield
    finally:
        _plugins[:] = before


def forget() -> None:
    """Read everything that modules and entry points declare anew; plug-ins stay."""
    for remembered in (problems, library, _declared):
        remembered.cache_clear()
