"""What the spread of a profile leaves open about a plan: the interval of its objective between the quartiles."""

from __future__ import annotations

from mapgap.problems.hybrid_pipeline.evaluate import evaluate
from mapgap.problems.hybrid_pipeline.instance import QUARTILES, Instance, Plan


def interval(instance: Instance, plan: Plan) -> tuple[int, int] | None:
    """The objective with all times at their lower, and with all at their upper quartiles; ``None`` without quartiles.

    A sum of quartiles is beyond the quartile of the sum unless all layers are slow together, so the interval is rather
    too wide than too narrow. Sizes and bandwidths have no spread. The plan breaks no rule.
    """
    if not instance.measured:
        return None
    low, high = (evaluate(instance.at(quartile), plan).objective for quartile in QUARTILES)
    assert low is not None
    assert high is not None
    return low, high
