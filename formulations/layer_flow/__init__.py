"""Exact models and algorithms for layer flow."""

from mapgap.core import Method

_PROBLEM = "layer_flow"
_HERE = "mapgap.formulations.layer_flow"

METHODS = [
    Method(
        "cover_bound",
        _PROBLEM,
        kind="bound",
        reference="dual of the configuration program (Gilmore and Gomory 1961), for covers of a layer",
        run=f"{_HERE}.cover_bound:run",
        params=f"{_HERE}.params:Covers",
        summary="weights of holdings such that every layer needs weight 1; the nodes together have less than L",
    ),
    Method(
        "cpsat",
        _PROBLEM,
        kind="exact",
        reference="Mei et al., Helix, Table 5, CP-SAT",
        run=f"{_HERE}.cpsat:run",
        options={"start": ""},
        models=f"{_HERE}.cpsat:models",
        summary="the paper's integer program",
        rank=1,
        engines=("CP-SAT",),
    ),
    Method(
        "enumerate",
        _PROBLEM,
        kind="exact",
        reference="brute force",
        run=f"{_HERE}.enumerate:run",
        summary="every interval of every node of a tiny instance",
        rank=-1,
        engines=("enumeration",),
    ),
    Method(
        "mip",
        _PROBLEM,
        kind="exact",
        reference="Mei et al., Helix, Table 5, HiGHS",
        run=f"{_HERE}.mip:run",
        options={"start": ""},
        models=f"{_HERE}.mip:models",
        summary="the paper's integer program",
        engines=("HiGHS",),
    ),
    Method(
        "portfolio",
        _PROBLEM,
        kind="exact",
        reference="one pipeline, bound by weights, stages, the paper's integer program",
        run=f"{_HERE}.portfolio:run",
        options={"start": ""},
        params=f"{_HERE}.params:Stages",
        summary="one pipeline, the bound, stages given to nodes, then the integer program",
        members=("one_pipeline", "cover_bound", "layouts", "stages", "cpsat"),
        rank=10,
        engines=("own", "CP-SAT"),
    ),
]
