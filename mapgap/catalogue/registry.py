"""Discovery of problems and methods.

A problem is a module or package directly below ``problems`` that exports ``PROBLEM``. A method is exported in the
list ``METHODS`` of any module below ``heuristics/<problem>`` or ``formulations/<problem>``. Third parties add methods
through the entry point group ``mapgap.methods`` (an object that is a :class:`~mapgap.core.Method` or a list of them)
or with ``--plugin file.py`` (a file that exports ``METHODS``). A module that forgets its constant is an error, never
a silent absence; a module whose name starts with an underscore is private and exports nothing.
"""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
import sys
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType

from mapgap.core import InputError, Library, Method, Problem

WINGS = ("heuristics", "formulations")
_plugins: list[Method] = []


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
        if info.name.startswith("_"):
            continue
        module = importlib.import_module(f"mapgap.problems.{info.name}")
        problem = getattr(module, "PROBLEM", None)
        if not isinstance(problem, Problem):
            raise RuntimeError(f"mapgap.problems.{info.name} exports no PROBLEM of type mapgap.core.Problem")
        if problem.name != info.name:
            raise RuntimeError(f"mapgap.problems.{info.name} exports a problem named {problem.name!r}")
        found[problem.name] = problem
    return dict(sorted(found.items()))


@cache
def library(problem: str) -> Library:
    """The ``LIBRARY`` of ``instances.<problem>``.

    Raises
    ------
    RuntimeError
        The package is missing or exports no ``LIBRARY``.
    """
    module = importlib.import_module(f"mapgap.instances.{problem}")
    found = getattr(module, "LIBRARY", None)
    if not isinstance(found, Library) or found.problem != problem:
        raise RuntimeError(f"instances.{problem} exports no LIBRARY of type mapgap.core.Library for {problem!r}")
    return found


@cache
def _built_in(problem: str) -> tuple[Method, ...]:
    found: list[Method] = []
    for wing in WINGS:
        package = importlib.import_module(f"mapgap.{wing}")
        names = [info.name for info in pkgutil.iter_modules(package.__path__)]
        if problem not in names:
            continue
        module = importlib.import_module(f"mapgap.{wing}.{problem}")
        if not hasattr(module, "__path__"):
            found += _exported(module)
            continue
        for info in pkgutil.iter_modules(module.__path__):
            if not info.name.startswith("_"):
                found += _exported(importlib.import_module(f"{module.__name__}.{info.name}"))
    for entry in entry_points(group="mapgap.methods"):
        loaded = entry.load()
        found += [m for m in (loaded if isinstance(loaded, (list, tuple)) else [loaded]) if m.problem == problem]
    return tuple(found)


def _exported(module: ModuleType) -> list[Method]:
    methods = getattr(module, "METHODS", None)
    if not isinstance(methods, (list, tuple)) or not all(isinstance(m, Method) for m in methods):
        raise RuntimeError(f"{module.__name__} exports no list METHODS of mapgap.core.Method")
    return list(methods)


def methods(problem: str) -> dict[str, Method]:
    """All methods of a problem by name: built in, from entry points and from plug-in files.

    Raises
    ------
    RuntimeError
        Two methods share a name, or a method names another problem.
    """
    found: dict[str, Method] = {}
    for method in (*_built_in(problem), *(m for m in _plugins if m.problem == problem)):
        if method.problem != problem:
            raise RuntimeError(f"method {method.name!r} found under {problem!r} claims problem {method.problem!r}")
        if method.name in found:
            raise RuntimeError(f"two methods of {problem!r} are named {method.name!r}")
        found[method.name] = method
    return dict(sorted(found.items()))


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
        found = _exported(module)
    except Exception as error:
        raise InputError(f"--plugin {path}: {type(error).__name__}: {error}") from error
    for method in found:
        if method.problem not in problems():
            raise InputError(f"--plugin {path}: method {method.name!r} names unknown problem {method.problem!r}")
    _plugins.extend(found)
    return found
