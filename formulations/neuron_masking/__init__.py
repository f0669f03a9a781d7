"""Exact models and algorithms for neuron masking."""

from mapgap.core import methods_of

method = methods_of(__name__)

METHODS = [
    method(
        "cpsat",
        kind="exact",
        reference="multiplication constraints, CP-SAT",
        options={"start": ""},
        params="params:Fleet",
        models="cpsat:models",
        summary="products of kept neurons as constraints, contribution below its tangents",
        rank=1,
        engines=("CP-SAT",),
    ),
    method(
        "enumerate",
        kind="exact",
        reference="brute force",
        summary="every cycle time and every vector of kept neurons of a tiny instance",
        rank=-1,
        engines=("enumeration",),
    ),
    method(
        "lagrangian",
        kind="exact",
        reference="Lagrangian of the limits, dynamic program along the chain, branch and bound",
        options={"start": ""},
        params="params:Lagrangian",
        summary="prices for work and memory, a program over the layers, enumeration near the bound",
        rank=2,
        engines=("own",),
    ),
    method(
        "mip",
        kind="exact",
        reference="binary expansion and McCormick, HiGHS",
        options={"start": ""},
        params="params:Fleet",
        models="mip:models",
        summary="every second layer in binary, products from below",
        engines=("HiGHS",),
    ),
    method(
        "portfolio",
        kind="exact",
        reference="quick planner, branch and bound on the Lagrangian, exchange of neurons",
        summary="priced_layers, then lagrangian from the best plan; exchanges from every mask where it gives up",
        options={"start": ""},
        params="params:Lagrangian",
        members=("whole_models", "priced_layers", "lagrangian", "exchange"),
        rank=10,
        engines=("own",),
    ),
]
