"""The integer programs of an instance as files for other solvers, and the way back from their solutions to plans.

A method that declares ``models`` hands one or several integer programs to its engine, its *parts* (one per batch
ratio, say); together they hold all plans of an instance. Exporting writes the very program that the method would solve.
Reading a solution builds it again, so a file and its solution belong to one instance and one release of mapgap.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from mapgap.catalogue import registry
from mapgap.core import InputError, InstanceBase, PlanBase, resolve, suggest
from mapgap.solvers.model import Model, Part, read_solution

SHOWN = 6
"""Labels of parts that a message lists."""


@dataclass(frozen=True)
class Written:
    """One file of an export.

    Attributes
    ----------
    path : Path
    part : str
        Label of the part; empty where the instance is one program.
    variables, rows : int
        Size of the program.
    sign, constant : int
        The instance's objective is ``sign * the program's + constant``.
    """

    path: Path
    part: str
    variables: int
    rows: int
    sign: int
    constant: int


def with_models(problem: str) -> list[str]:
    """Names of the methods of a problem that hand integer programs to an engine."""
    return [name for name, method in registry.methods(problem).items() if method.models is not None]


def parts(instance: InstanceBase, model: str) -> list[Part]:
    """The integer programs of a method for an instance.

    Raises
    ------
    InputError
        No such method, or one without integer programs.
    """
    known = with_models(instance.problem)
    if model not in known:
        expected = f"expected a method of {instance.problem} that has an integer program ({', '.join(known) or 'none'})"
        raise InputError(f"model: {expected}; found {model!r}{suggest(model, known)}")
    found: list[Part] = resolve(registry.methods(instance.problem)[model].models)(instance)
    return found


def is_pattern(part: str | None) -> bool:
    """Does it stand for all parts that it matches?"""
    return part is not None and any(sign in part for sign in "*?[")


def choose(found: Sequence[Part], part: str | None) -> list[Part]:
    """The part of that label, the parts that match a pattern (``*`` for all), or the only one.

    Raises
    ------
    InputError
        There are several and none was named, or no part has the label.
    """
    labels = [each.label for each in found]
    listed = ", ".join(map(repr, labels[:SHOWN])) + (", …" if len(labels) > SHOWN else "")
    if not found:
        raise InputError("part: expected an instance with a plan, found one that has no integer program")
    if part is None:
        if len(found) == 1:
            return list(found)
        raise InputError(
            f"part: the instance has {len(found)} integer programs ({listed}); name one, or several by a pattern "
            "('*' for all)"
        )
    chosen = [each for each in found if each.label == part]
    if not chosen and is_pattern(part):
        chosen = [each for each in found if fnmatchcase(each.label, part)]
    if not chosen:
        raise InputError(f"part: expected one of {listed}; found {part!r}{suggest(part, labels)}")
    return chosen


def write(instance: InstanceBase, path: Path, model: str | None = None, part: str | None = None) -> Iterator[Written]:
    """What :func:`mapgap.export` does, one file after the other as the result is consumed.

    Raises
    ------
    InputError
        No such model or part, a suffix that the model does not write, or a place that cannot be written.
    """
    chosen = choose(parts(instance, model or ("cpsat" if path.suffix.lower() == ".pbtxt" else "mip")), part)
    paths = [path]
    if is_pattern(part):
        paths = [path.with_name(f"{path.stem}_{tail}{path.suffix}") for tail in _tails([each.label for each in chosen])]
    for each, target in zip(chosen, paths, strict=True):
        program: Model = each.build()
        program.write(target)
        yield Written(target, each.label, len(program.names()), program.row_count(), program.sign, program.constant)


def _tails(labels: Sequence[str]) -> list[str]:
    """Labels as parts of file names, all different."""
    plain = [re.sub(r"[^A-Za-z0-9.]+", "_", label).strip("_.") or "part" for label in labels]
    return [f"{name}_{k}" if plain.count(name) > 1 else name for k, name in enumerate(plain)]


def read_plan(instance: InstanceBase, path: Path, model: str | None = None, part: str | None = None) -> PlanBase:
    """What :func:`mapgap.read_solution` does, for any form that :func:`mapgap.solvers.model.read_solution` reads.

    Raises
    ------
    InputError
        No such model or part, a file without a solution, or one of another program.
    """
    values = read_solution(path)
    by_position = all(name.isdigit() for name in values)
    found = parts(instance, model or ("cpsat" if by_position else "mip"))
    if is_pattern(part) and part not in [each.label for each in found]:
        raise InputError(f"part: expected the label of one part, found the pattern {part!r}")
    (chosen,) = choose(found, part)
    return chosen.build().read(values)
