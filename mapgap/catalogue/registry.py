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
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from mapgap.core import InputError, InstanceBase, Library, Method, Problem, resolve, short, suggest
from mapgap.core.storage import is_file, kind_of

WINGS = ("heuristics", "formulations")
_plugins: list[Method] = []


def folder(wing: str) -> Path:
    """Where the files of a wing lie (``instances``, …)."""
    return Path(next(iter(importlib.import_module(f"mapgap.{wing}").__path__)))


def modules(wing: str) -> list[str]:
    """Names of the public modules of a wing, alphabetically; nothing below the wing is imported."""
    found = pkgutil.iter_modules(importlib.import_module(f"mapgap.{wing}").__path__)
    return sorted(info.name for info in found if not info.name.startswith("_"))


class BrokenEntryPoint(UserWarning):
    """A third party's entry point that cannot be used."""


def house() -> list[str]:
    """Names of the problems of the house, alphabetically: the modules of :mod:`mapgap.problems`."""
    return sorted(info.name for info in pkgutil.iter_modules(importlib.import_module("mapgap.problems").__path__))


@cache
def problems() -> dict[str, Problem]:
    """All problems by name.

    Raises
    ------
    RuntimeError
        A module of the wing has no ``PROBLEM``, or one whose name is not the module's.
    """
    found: dict[str, Problem] = {}
    for name in house():
        problem = getattr(importlib.import_module(f"mapgap.problems.{name}"), "PROBLEM", None)
        if not isinstance(problem, Problem):
            raise RuntimeError(f"mapgap.problems.{name} exports no PROBLEM of type mapgap.core.Problem")
        if problem.name != name:
            raise RuntimeError(f"mapgap.problems.{name} exports a problem named {problem.name!r}")
        found[name] = problem
    for entry in _entries("mapgap.problems"):
        reason = entry.error or _no_problem(entry.loaded, found)
        if reason:
            entry.warn(reason)
        else:
            found[entry.loaded.name] = entry.loaded
    return dict(sorted(found.items()))


def _no_problem(loaded: Any, found: dict[str, Problem]) -> str:
    """Why an announced problem cannot be used; empty if it can."""
    if not isinstance(loaded, Problem):
        return f"expected a mapgap.core.Problem, found {type(loaded).__name__}"
    if loaded.name in found:
        return f"there is a problem named {loaded.name!r} already"
    try:
        _library(loaded)
    except Exception as error:
        return str(error)
    return ""


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
    return _library(problems()[problem])


def _library(problem: Problem) -> Library:
    reference = problem.library or f"mapgap.instances.{problem.name}:LIBRARY"
    try:
        found = resolve(reference)
    except (ImportError, AttributeError) as error:
        raise RuntimeError(f"{problem.name}: {reference} cannot be imported: {error}") from error
    if not isinstance(found, Library) or found.problem != problem.name:
        raise RuntimeError(f"{problem.name}: {reference} is no mapgap.core.Library of this problem")
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
    for entry in _entries("mapgap.methods"):
        listed = list(entry.loaded) if isinstance(entry.loaded, (list, tuple)) else [entry.loaded]
        reason = entry.error or _no_methods(listed, names, entry.package)
        if reason:
            entry.warn(reason)
        else:
            names |= {(method.problem, method.name) for method in listed}
            found += listed
    return tuple(found)


def _no_methods(listed: list[Any], names: set[tuple[str, str]], package: str) -> str:
    """Why announced methods cannot be used; empty if they can."""
    theirs = [each.loaded for each in _entries("mapgap.problems") if each.package == package and not each.error]
    for method in listed:
        if not isinstance(method, Method):
            return f"expected a mapgap.core.Method or a list of them, found {type(method).__name__}"
        if method.problem not in problems():
            return f"method {method.name!r} names unknown problem {method.problem!r}"
        for problem in theirs:
            if getattr(problem, "name", None) == method.problem and problem is not problems()[method.problem]:
                return f"method {method.name!r} is one of another problem named {method.problem!r}"
        if (method.problem, method.name) in names:
            return f"there is a method named {method.name!r} already"
    return ""


@dataclass(frozen=True)
class _Entry:
    """An entry point, loaded.

    Attributes
    ----------
    text, package : str
        As declared, and by whom.
    loaded : Any
    error : str
        Why it could not be loaded; empty if it could.
    """

    text: str
    package: str
    loaded: Any = None
    error: str = ""

    def warn(self, reason: str) -> None:
        text = f"entry point {self.text} of package {self.package} is left out: {reason}"
        warnings.warn(text, BrokenEntryPoint, stacklevel=3)


def _entries(group: str) -> list[_Entry]:
    """What the entry points of a group name, in the order of their names and packages."""
    found = []
    for entry in entry_points(group=group):
        text, package = f"{group}: {entry.name} = {entry.value}", entry.dist.name if entry.dist else "?"
        try:
            found.append(_Entry(text, package, entry.load()))
        except Exception as error:
            found.append(_Entry(text, package, error=f"{type(error).__name__}: {error}"))
    return sorted(found, key=lambda each: (each.text, each.package))


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


def fast_planner(problem: str, instance: InstanceBase | None = None) -> Method:
    """The quick planner of the house (:attr:`mapgap.core.Method.fast`); an exact method where its proof costs no more.

    Parameters
    ----------
    instance : InstanceBase, optional
        Asked for by :attr:`mapgap.core.Method.cheap`; without, the answer is the quick planner.
    """
    for method in methods(problem).values() if instance is not None else ():
        if method.cheap is not None and resolve(method.cheap)(instance):
            return method
    fast = [m for m in methods(problem).values() if m.fast]
    if not fast:
        raise InputError(f"problem {problem!r} has no fast planner")
    return fast[0]


def load_plugin(path: Path) -> list[Method]:
    """Register the ``METHODS`` of a Python file.

    Raises
    ------
    InputError
        The file is missing, fails to import, exports no ``METHODS``, or names an unknown problem.
    """
    if not is_file(path):
        raise InputError(f"--plugin {short(str(path))}: expected a Python file, found {kind_of(path)}")
    spec = importlib.util.spec_from_file_location(f"mapgap_plugin_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise InputError(f"--plugin {path}: expected a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
        found = _table(module)
    except (Exception, SystemExit) as error:
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
