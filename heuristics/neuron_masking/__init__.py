"""Published heuristics and baselines of neuron masking."""

from mapgap.core import Method

_PROBLEM = "neuron_masking"
_HERE = "mapgap.heuristics.neuron_masking"

METHODS = [
    Method(
        "elfish_greedy",
        _PROBLEM,
        kind="published",
        reference="Xu et al., ELFISH, Sec. 4.1 and Eqs. (5)-(7)",
        run=f"{_HERE}.elfish_greedy:run",
        summary="Shares masked in proportion to alpha, by bisection; P_s by contribution, the rest drawn",
        options={"alpha": "neuron_time", "selection": "paper"},
    ),
    Method(
        "priced_layers",
        _PROBLEM,
        kind="baseline",
        reference="Lagrangian heuristic: prices of the limits (Everett 1963), repair and exchange",
        run="mapgap.formulations.neuron_masking.priced_layers:run",
        params="mapgap.formulations.neuron_masking.params:Prices",
        summary="The best mask under prices of work and memory, repaired, filled up and improved by exchanges",
        fast=True,
    ),
    Method(
        "largest_cost_first",
        _PROBLEM,
        kind="baseline",
        reference="Xu et al., ELFISH, Sec. 4 (masking resource-intensive neurons)",
        run=f"{_HERE}.one_by_one:largest_cost_first",
        summary="Masks the most expensive neuron until the limits hold, then fills up",
    ),
    Method(
        "contribution_per_cost",
        _PROBLEM,
        kind="baseline",
        reference="greedy by value per cost, layer-wise",
        run=f"{_HERE}.one_by_one:contribution_per_cost",
        summary="Masks the neuron of least objective per relative cost, then fills up",
    ),
    Method(
        "by_objective",
        _PROBLEM,
        kind="baseline",
        reference="knapsack greedy by gain per resource (Dantzig 1957), or equal shares",
        run=f"{_HERE}.one_by_one:by_objective",
        summary="uniform for the smallest share, contribution_per_cost for every other objective",
    ),
    Method(
        "uniform",
        _PROBLEM,
        kind="baseline",
        reference="Xu et al., ELFISH, Sec. 3.2 (percentages of Table 2)",
        run=f"{_HERE}.uniform:run",
        summary="The same share of every layer",
    ),
]
