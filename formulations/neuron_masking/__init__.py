"""Exact models and algorithms for neuron masking."""

from mapgap.core import Method

_PROBLEM = "neuron_masking"
_HERE = "mapgap.formulations.neuron_masking"

METHODS = [
    Method(
        "cpsat",
        _PROBLEM,
        kind="exact",
        reference="multiplication constraints, CP-SAT",
        run=f"{_HERE}.cpsat:run",
        options={"start": ""},
        params=f"{_HERE}.params:Fleet",
        models=f"{_HERE}.cpsat:models",
        summary="products of kept neurons as constraints, contribution below its tangents",
        rank=1,
        engines=("CP-SAT",),
    ),
    Method(
        "enumerate",
        _PROBLEM,
        kind="exact",
        reference="brute force",
        run=f"{_HERE}.enumerate:run",
        summary="every cycle time and every vector of kept neurons of a tiny instance",
        rank=-1,
        engines=("enumeration",),
    ),
    Method(
        "lagrangian",
        _PROBLEM,
        kind="exact",
        reference="Lagrangian of the limits, dynamic program along the chain, branch and bound",
        run=f"{_HERE}.lagrangian:run",
        options={"start": ""},
        params=f"{_HERE}.params:Lagrangian",
        summary="prices for work and memory, a program over the layers, enumeration near the bound",
        rank=2,
        engines=("own",),
    ),
    Method(
        "mip",
        _PROBLEM,
        kind="exact",
        reference="binary expansion and McCormick, HiGHS",
        run=f"{_HERE}.mip:run",
        options={"start": ""},
        params=f"{_HERE}.params:Fleet",
        models=f"{_HERE}.mip:models",
        summary="every second layer in binary, products from below",
        engines=("HiGHS",),
    ),
    Method(
        "portfolio",
        _PROBLEM,
        kind="exact",
        reference="quick planner, branch and bound on the Lagrangian, exchange of neurons",
        run=f"{_HERE}.portfolio:run",
        summary="priced_layers, then lagrangian from the best plan; exchanges from every mask where it gives up",
        options={"start": ""},
        params=f"{_HERE}.params:Lagrangian",
        members=("whole_models", "priced_layers", "lagrangian", "exchange"),
        rank=10,
        engines=("own",),
    ),
]
