"""The entry of sub-operation mapping: plans that fit, the same at every run, and less lost than by converting."""

from mapgap.catalogue import registry
from mapgap.core import Budget, Stop
from mapgap.instances.suboperation_mapping import LIBRARY
from mapgap.problems.suboperation_mapping.evaluate import evaluate

METHODS = registry.methods("suboperation_mapping")
ENTRY = METHODS["two_ratios"]


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
