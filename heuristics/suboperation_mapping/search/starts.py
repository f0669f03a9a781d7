"""Plans to start a search from."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from mapgap.core import Budget, InputError
from mapgap.heuristics.suboperation_mapping.mtrain_converting import mtrain_converting
from mapgap.heuristics.suboperation_mapping.mtrain_mapping import DELTAS, mtrain_mapping
from mapgap.heuristics.suboperation_mapping.search.step_aligned import step_aligned_ratios
from mapgap.problems.suboperation_mapping.instance import Instance, Plan
from mapgap.problems.suboperation_mapping.lowered.arrays import lower
from mapgap.problems.suboperation_mapping.lowered.mapped import Mapped, best_single, timed, well_balanced
from mapgap.problems.suboperation_mapping.lowered.ratios import Ratio, pe_ratio

QUICK = 1000  #: prefixes of a ready set in the mappings to start from


def simple_starts(instance: Instance, only: Ratio | None = None) -> Iterator[Mapped | None]:
    """The best single accelerator; MTrain-Mapping in both readings and the well-balanced scheme at some ratios.

    The ratio by PEs and the step-aligned ones, or ``only`` the one given. ``None`` stands for what does not fit.
    """
    if only is None:
        yield best_single(instance)
    ratios = (pe_ratio(instance), *step_aligned_ratios(instance)) if only is None else (only,)
    for ratio in dict.fromkeys(ratios):
        lowered = lower(instance, ratio)
        for delta in DELTAS:
            yield mtrain_mapping(lowered, delta=delta, search_limit=QUICK)
        yield timed(lowered, well_balanced(lowered), lowered.topological)


def starts(instance: Instance, budget: Budget, only: Ratio | None = None) -> Iterator[Mapped | None]:
    """The simple ones, and unless ``only`` one ratio is wanted MTrain-Converting in both readings, within the budget.

    So no search that begins with them ends with less than the published heuristic.
    """
    yield from simple_starts(instance, only)
    for delta in DELTAS if only is None else ():
        yield mtrain_converting(instance, budget.quiet(), delta=delta, search_limit=QUICK)[0]


def read_start(instance: Instance, path: str) -> Mapped:
    """The mapping of a plan file, of this instance or of one with the same layers, batch and number of accelerators.

    Parameters
    ----------
    path : str
        The file, or a folder in which it has the name of the instance.

    Raises
    ------
    InputError
        No such file, no plan of this instance, or one that breaks a rule here.
    """
    file = Path(path)
    try:
        if file.is_dir():
            file /= f"{instance.name}.json"
        plan = Plan.model_validate_json(file.read_text(encoding="utf-8"))
        if len(plan.ratio) != len(instance.accelerators) or sum(plan.ratio) != instance.batch:
            raise ValueError(f"ratio {list(plan.ratio)}")
        lowered = lower(instance, plan.ratio)
        mapped = timed(lowered, *lowered.mapping(plan))
    except (OSError, ValueError, KeyError) as error:
        raise InputError(f"start: expected a plan file for {instance.name}, found {str(file)!r}: {error}") from error
    if mapped is None:
        raise InputError(f"start: expected a plan that fits the DRAM of {instance.name}, found {str(file)!r}")
    return mapped
