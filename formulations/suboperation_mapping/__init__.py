"""Exact models and algorithms for sub-operation mapping."""

from mapgap.core import Method

_PROBLEM = "suboperation_mapping"
_HERE = "mapgap.formulations.suboperation_mapping"

METHODS = [
    Method(
        "cpsat",
        _PROBLEM,
        kind="exact",
        reference="CP-SAT; optional intervals",
        run=f"{_HERE}.cpsat:run",
        models=f"{_HERE}.cpsat:models",
        parts=f"{_HERE}.ratio_parts:cpsat",
        summary="CP-SAT with optional intervals, every partition of the batch",
        options={"ratio": ""},
        rank=1,
        engines=("CP-SAT",),
    ),
    Method(
        "enumerate",
        _PROBLEM,
        kind="exact",
        reference="brute force",
        run=f"{_HERE}.enumerate:run",
        summary="every ratio, mapping and order of a tiny instance",
        rank=-1,
        engines=("enumeration",),
    ),
    Method(
        "fluid_bound",
        _PROBLEM,
        kind="bound",
        reference="Fluid relaxation of MTrain's problem (Tang et al., Secs. III-V): load and precedence, no transfers",
        run=f"{_HERE}.fluid_bound:run",
        summary="One small LP over all ratios; any number of accelerators, transfers relaxed.",
    ),
    Method(
        "mip",
        _PROBLEM,
        kind="exact",
        reference="disjunctive MIP, HiGHS",
        run=f"{_HERE}.mip:run",
        models=f"{_HERE}.mip:models",
        parts=f"{_HERE}.ratio_parts:mip",
        summary="big-M MIP for small instances, every partition, solved with HiGHS",
        options={"ratio": ""},
        engines=("HiGHS",),
    ),
    Method(
        "mip_cbc",
        _PROBLEM,
        kind="exact",
        reference="disjunctive MIP, CBC",
        run=f"{_HERE}.mip:run",
        models=f"{_HERE}.mip:models_cbc",
        parts=f"{_HERE}.ratio_parts:mip",
        given={"engine": "cbc"},
        summary="big-M MIP for small instances, every partition, solved with CBC, proofs confirmed by HiGHS",
        options={"ratio": ""},
        engines=("CBC",),
    ),
    Method(
        "stage_mip",
        _PROBLEM,
        kind="exact",
        reference="Stage-configuration MIP with destructive bounds for MTrain's problem (Tang et al., Secs. III-VI)",
        run=f"{_HERE}.stage_mip:run",
        summary="Stage-configuration MIP per ratio, destructive lower bounds, annealed and re-ordered plans.",
        options={"ratio": "", "target_gap": 0.0},
        rank=10,
        engines=("HiGHS", "CP-SAT"),
    ),
    Method(
        "area_bound",
        _PROBLEM,
        kind="bound",
        reference="Stage-configuration MIP with destructive bounds for MTrain's problem (Tang et al., Secs. III-VI)",
        run=f"{_HERE}.stage_mip:area_bound",
        summary="Smallest LP bound over all ratios, without configuration columns.",
    ),
]
