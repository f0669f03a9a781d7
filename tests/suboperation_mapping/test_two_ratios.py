"""The entry of sub-operation mapping: plans that fit, the same at every run, and less lost than by converting."""

import pytest

from mapgap.catalogue import registry
from mapgap.core import Budget, Stop
from mapgap.instances.suboperation_mapping import LIBRARY
from mapgap.problems.suboperation_mapping.evaluate import evaluate

METHODS = registry.methods("suboperation_mapping")
ENTRY = METHODS["two_ratios"]


@pytest.mark.nightly
def test_at_most_half_of_the_gap_of_converting():
    lost = [0.0, 0.0]
    for seed in range(300, 360):
        instance = LIBRARY.generate("tiny", seed)
        theirs = METHODS["mtrain_converting"].solve(instance, Budget(60.0)).plan
        if theirs is None:
            continue
        optimum = METHODS["stage_mip"].solve(instance, Budget(60.0)).bound
        for k, plan in enumerate((theirs, ENTRY.solve(instance, Budget(60.0)).plan)):
            found = evaluate(instance, plan)
            assert found.feasible, seed
            lost[k] += 1 - optimum / found.objective
    assert lost[0] > 0
    assert lost[1] <= lost[0] / 2


def test_the_same_plan_at_every_run():
    for family, seed in (("tiny", 300), ("small", 301), ("branching", 302)):
        instance = LIBRARY.generate(family, seed)
        plans = {ENTRY.solve(instance, Budget(60.0)).plan for _ in range(2)}
        assert len(plans) == 1


def test_converting_where_neither_ratio_fits():
    """None of the plans comes from a ratio that fits, and none breaks a rule."""
    converted = 0
    for seed in range(300, 500):
        instance = LIBRARY.generate("tiny", seed)
        result = ENTRY.solve(instance, Budget(60.0))
        converted += result.notes["converted"]
        if result.plan is not None:
            assert evaluate(instance, result.plan).feasible, seed
    assert converted > 0


def test_without_time_there_is_no_second_ratio():
    result = ENTRY.solve(LIBRARY.generate("small", 300), Budget(0.0))
    assert result.stop is Stop.TIME
