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
import re
import sys
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from types import ModuleType
from typing import Any, get_args

from mapgap.catalogue.announced import Announced, announced, words_of
from mapgap.core import InputError, InstanceBase, Library, Method, Problem, resolve, short, suggest
from mapgap.core.declarations import Kind
from mapgap.core.errors import Interrupted
from mapgap.core.storage import is_file, kind_of

WINGS = ("heuristics", "formulations")
KINDS = get_args(Kind)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]{0,59}")
_plugins: list[Method] = []


def folder(wing: str) -> Path:
    """Where the files of a wing lie (``instances``, …)."""
    return Path(next(iter(importlib.import_module(f"mapgap.{wing}").__path__)))


def modules(wing: str) -> list[str]:
    """Names of the public modules of a wing, alphabetically; nothing below the wing is imported."""
    found = pkgutil.iter_modules(importlib.import_module(f"mapgap.{wing}").__path__)
    return sorted(info.name for info in found if not info.name.startswith("_"))


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
    for entry in announced():
        if entry.group == "mapgap.problems" and _taken(entry, partial(_no_problem, entry.loaded, found)):
            found[entry.loaded.name] = entry.loaded
    return dict(sorted(found.items()))


_reasons: dict[str, str] = {}  # entry point and package to why it is left out


def _taken(entry: Announced, check: Callable[[], str]) -> bool:
    """Can an entry point be used? A warning says why not; the check of somebody else's objects may do anything."""
    try:
        reason = entry.error or check()
    except Interrupted:
        raise
    except BaseException as error:
        reason = words_of(error)
    _reasons[f"{entry.text} {entry.package}"] = reason
    if reason:
        entry.warn(reason)
    return not reason


def packages() -> list[tuple[Announced, str]]:
    """Every entry point of other packages, and why it is left out; empty if it is used."""
    _declared()
    return [(entry, _reasons[f"{entry.text} {entry.package}"]) for entry in announced()]


def _no_name(name: Any, what: str) -> str:
    """Why a name cannot be one: it is printed, and stands in files and on command lines."""
    if isinstance(name, str) and _NAME.fullmatch(name):
        return ""
    return f"expected a {what} of at most 60 letters, digits and ._+-, found {short(repr(name), 80)}"


def _no_method(method: Any) -> str:
    """Why something is no method that can be listed; empty if it is one."""
    if not isinstance(method, Method):
        return f"expected a mapgap.core.Method or a list of them, found {type(method).__name__}"
    wrong = _no_name(method.name, "name of a method") or _no_name(method.problem, "name of a problem")
    if wrong:
        return wrong
    if method.kind not in KINDS:
        return f"method {method.name!r}: expected a kind of {', '.join(KINDS)}, found {short(repr(method.kind), 80)}"
    texts = (method.reference, method.summary, *method.members, *method.engines, *method.options)
    if not all(isinstance(text, str) for text in texts):
        return f"method {method.name!r}: expected reference, summary, members, engines and options to be texts"
    return ""


def _no_problem(loaded: Any, found: dict[str, Problem]) -> str:
    """Why an announced problem cannot be used; empty if it can."""
    if not isinstance(loaded, Problem):
        return f"expected a mapgap.core.Problem, found {type(loaded).__name__}"
    wrong = _no_name(loaded.name, "name of a problem")
    if wrong:
        return wrong
    if not all(isinstance(text, str) for text in (loaded.title, loaded.paper, *loaded.objectives)):
        return f"problem {loaded.name!r}: expected title, paper and objectives to be texts"
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
    for entry in announced():
        listed: list[Any] = []
        if entry.group == "mapgap.methods" and _taken(entry, partial(_no_methods, entry, listed, names)):
            names |= {(method.problem, method.name) for method in listed}
            found += listed
    return tuple(found)


def _no_methods(entry: Announced, listed: list[Any], names: set[tuple[str, str]]) -> str:
    """Why announced methods cannot be used; empty if they can. They are put into the list."""
    listed += list(entry.loaded) if isinstance(entry.loaded, (list, tuple)) else [entry.loaded]
    theirs = [
        each.loaded
        for each in announced()
        if each.group == "mapgap.problems" and each.package == entry.package and not each.error
    ]
    for k, method in enumerate(listed):
        wrong = _no_method(method)
        if wrong:
            return wrong
        if method.problem not in problems():
            return f"method {method.name!r} names unknown problem {method.problem!r}"
        for problem in theirs:
            if getattr(problem, "name", None) == method.problem and problem is not problems()[method.problem]:
                return f"method {method.name!r} is one of another problem named {method.problem!r}"
        others = {(each.problem, each.name) for each in listed[:k]}
        if (method.problem, method.name) in names | others:
            return f"there is a method named {method.name!r} already"
    return ""


def _table(module: ModuleType) -> list[Method]:
    methods = getattr(module, "METHODS", None)
    if not isinstance(methods, (list, tuple)) or not all(isinstance(m, Method) for m in methods):
        raise RuntimeError(f"{module.__name__} exports no list METHODS of mapgap.core.Method")
    for wrong in filter(None, map(_no_method, methods)):
        raise RuntimeError(f"{module.__name__}: {wrong}")
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
    except (Interrupted, KeyboardInterrupt):
        raise
    except BaseException as error:  # SystemExit among them
        raise InputError(f"--plugin {path}: {words_of(error)}") from None
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
    for remembered in (problems, library, _declared, announced):
        remembered.cache_clear()
    _reasons.clear()
