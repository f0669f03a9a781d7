"""Exact models and algorithms for layer flow."""

from mapgap.core import methods_of

method = methods_of(__name__)

METHODS = [
    method(
        "cover_bound",
        kind="bound",
        reference="dual of the configuration program (Gilmore and Gomory 1961), for covers of a layer",
        params="params:Covers",
        summary="weights of holdings such that every layer needs weight 1; the nodes together have less than L",
    ),
    method(
        "cpsat",
        kind="exact",
        reference="Mei et al., Helix, Table 5, CP-SAT",
        options={"start": ""},
        models="cpsat:models",
        summary="the paper's integer program",
        rank=1,
        engines=("CP-SAT",),
    ),
    method(
        "enumerate",
        kind="exact",
        reference="brute force",
        summary="every interval of every node of a tiny instance",
        rank=-1,
        engines=("enumeration",),
    ),
    method(
        "mip",
        kind="exact",
        reference="Mei et al., Helix, Table 5, HiGHS",
        options={"start": ""},
        models="mip:models",
        summary="the paper's integer program",
        engines=("HiGHS",),
    ),
    method(
        "portfolio",
        kind="exact",
        reference="one pipeline, bound by weights, stages, the paper's integer program",
        options={"start": ""},
        params="params:Stages",
        summary="one pipeline, the bound, stages given to nodes, then the integer program",
        members=("layouts", "one_pipeline", "stages", "cover_bound", "cpsat"),
        rank=10,
        engines=("own", "CP-SAT"),
    ),
]
