"""Exact methods of hybrid pipeline planning."""

from mapgap.core import Method

_PROBLEM = "hybrid_pipeline"
_HERE = "mapgap.formulations.hybrid_pipeline"

METHODS = [
    Method(
        "cpsat",
        _PROBLEM,
        kind="exact",
        reference="CP-SAT over columns",
        run=f"{_HERE}.cpsat:run",
        models=f"{_HERE}.cpsat:models",
        summary="one literal per stage, group and number of stages behind",
        options={"keep": "front"},
        rank=2,
        engines=("CP-SAT",),
    ),
    Method(
        "enumerate",
        _PROBLEM,
        kind="exact",
        reference="brute force",
        run=f"{_HERE}.enumerate:run",
        summary="every cut and every choice of groups of a tiny instance",
        rank=-1,
        engines=("enumeration",),
    ),
    Method(
        "label_dp",
        _PROBLEM,
        kind="exact",
        reference="dynamic programme over Pareto labels (D, A)",
        run=f"{_HERE}.label_dp:run",
        summary="certified optimum in milliseconds",
        options={"engine": "auto", "order": "free", "simulate": False, "repeat": 0},
        rank=10,
        engines=("own",),
    ),
    Method(
        "mip",
        _PROBLEM,
        kind="exact",
        reference="MIP over columns (HiGHS)",
        run=f"{_HERE}.mip:run",
        models=f"{_HERE}.mip:models",
        summary="one binary per stage, group and number of stages behind",
        options={"keep": "front"},
        given={"solver": "highs"},
        rank=1,
        engines=("HiGHS",),
    ),
    Method(
        "mip_cbc",
        _PROBLEM,
        kind="exact",
        reference="MIP over columns (CBC)",
        run=f"{_HERE}.mip:run",
        models=f"{_HERE}.mip:models_cbc",
        summary="one binary per stage, group and number of stages behind",
        options={"keep": "front"},
        given={"solver": "cbc"},
        engines=("CBC",),
    ),
    Method(
        "simulator_bound",
        _PROBLEM,
        kind="bound",
        reference="dynamic programme over Pareto labels (D, Z)",
        run=f"{_HERE}.simulator_bound:run",
        summary="no plan's simulated round (half duplex) is shorter",
    ),
]
