"""Plans to start a search from."""

from __future__ import annotations

from collections.abc import Iterator

from mapgap.core import Budget
from mapgap.problems.suboperation_mapping.instance import Instance
from mapgap.problems.suboperation_mapping.shared.lowered import lower
from mapgap.problems.suboperation_mapping.shared.mapped import Mapped, best_single, timed, well_balanced
from mapgap.problems.suboperation_mapping.shared.mtrain_converting import mtrain_converting
from mapgap.problems.suboperation_mapping.shared.mtrain_mapping import DELTAS, mtrain_mapping
from mapgap.problems.suboperation_mapping.shared.ratios import Ratio, pe_ratio
from mapgap.problems.suboperation_mapping.shared.step_aligned import step_aligned_ratios

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
