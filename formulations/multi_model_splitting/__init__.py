"""Exact models of multi-model splitting."""

from mapgap.core import Method

_PROBLEM = "multi_model_splitting"
_HERE = "mapgap.formulations.multi_model_splitting"

METHODS = [
    Method(
        "cpsat",
        _PROBLEM,
        kind="exact",
        reference="joint assignment model with ladder bisection, CP-SAT",
        run=f"{_HERE}.cpsat:run",
        summary="joint plan of all pipelines, optimal cycle time or latency",
        rank=10,
        engines=("CP-SAT",),
        models=f"{_HERE}.cpsat:models",
    ),
    Method(
        "enumerate",
        _PROBLEM,
        kind="exact",
        reference="brute force",
        run=f"{_HERE}.enumerate:run",
        summary="every combination of execution plans of a tiny instance",
        rank=-1,
        engines=("enumeration",),
    ),
    Method(
        "joint",
        _PROBLEM,
        kind="exact",
        reference="neighbourhood search, column generation; assignment model or segment flow between both",
        run=f"{_HERE}.joint:run",
        summary="joint plan of all pipelines: a plan at once, a bound soon, integer programs in between",
        rank=20,
        engines=("CP-SAT", "HiGHS", "own"),
    ),
    Method(
        "mip",
        _PROBLEM,
        kind="exact",
        reference="segment-flow MIP, HiGHS",
        run=f"{_HERE}.mip:run",
        summary="joint plan of all pipelines by segment flow below growing limits, solved with HiGHS",
        engines=("HiGHS",),
        models=f"{_HERE}.mip:models",
    ),
    Method(
        "mip_cbc",
        _PROBLEM,
        kind="exact",
        reference="segment-flow MIP, CBC",
        run=f"{_HERE}.mip:run",
        summary="joint plan of all pipelines by segment flow below growing limits, solved with CBC",
        given={"engine": "cbc"},
        engines=("CBC",),
        models=f"{_HERE}.mip:models_cbc",
    ),
    Method(
        "replan",
        _PROBLEM,
        kind="exact",
        reference="joint optimum, then least churn",
        run=f"{_HERE}.replan:run",
        summary="best joint plan that writes the fewest bytes of deployed pipelines again",
        options={"slack": 0},
        engines=("CP-SAT", "HiGHS"),
    ),
]
