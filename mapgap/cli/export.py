"""``mapgap export``, and solutions of other solvers for ``mapgap check --solution``."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from mapgap.catalogue.files import load_instance, retarget, save_plan
from mapgap.cli.output import print_json, say, to_file
from mapgap.core import InputError, InstanceBase, PlanBase
from mapgap.interface import exchange
from mapgap.interface.exchange import Written


def export(name: str, path: Path, model: str | None, part: str | None, objective: str | None, *, as_json: bool) -> int:
    """Write the integer programs of an instance, a line for each file.

    Raises
    ------
    InputError
    """
    to_file(path)
    instance = load_instance(name)
    if objective is not None:
        instance = retarget(instance, objective)
    written = exchange.export(instance, path, model, part)
    if as_json:
        print_json({"instance": instance.name, "instance_hash": instance.content_hash, "files": _json(written)})
        return 0
    for each in written:
        label = f" ({each.part})" if each.part else ""
        size = f"{each.variables:,} variables, {each.rows:,} constraints"
        say(f"{each.path}{label}: {size}; objective = {_objective(each)}")
    return 0


def _json(written: Iterable[Written]) -> list[dict[str, object]]:
    return [
        {
            "path": str(each.path),
            "part": each.part,
            "variables": each.variables,
            "constraints": each.rows,
            "sign": each.sign,
            "constant": each.constant,
        }
        for each in written
    ]


def _objective(written: Written) -> str:
    """The instance's objective in terms of the file's."""
    constant = f" {'+' if written.constant > 0 else '-'} {abs(written.constant):,}" if written.constant else ""
    return f"{'minus ' if written.sign < 0 else ''}the file's{constant}"


@dataclass(frozen=True)
class SolutionFile:
    """What another solver found for an exported file: the flags of ``mapgap check --solution``."""

    path: Path
    model: str | None = None
    part: str | None = None

    def plan(self, instance: InstanceBase) -> PlanBase:
        """The plan it stands for, not yet verified.

        Raises
        ------
        InputError
        """
        return exchange.read_plan(instance, self.path, self.model, self.part)


def source_of_plan(
    plan: Path | None, solution: Path | None, model: str | None, part: str | None
) -> Path | SolutionFile:
    """The one of PLAN and ``--solution`` that was given.

    Raises
    ------
    InputError
        Both or none, or a flag that belongs to ``--solution`` without it.
    """
    if (plan is None) == (solution is None):
        raise InputError(f"PLAN, --solution: expected one of them, found {'none' if plan is None else 'both'}")
    if solution is not None:
        return SolutionFile(solution, model, part)
    if model is not None or part is not None:
        raise InputError("--model, --part: expected --solution with them, found a plan file")
    assert plan is not None
    return plan


def write_plan(plan: PlanBase, path: Path) -> None:
    """Write a plan as JSON.

    Raises
    ------
    InputError
        The file cannot be written.
    """
    save_plan(plan, path)
