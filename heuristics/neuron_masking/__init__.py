"""Published heuristics and baselines of neuron masking."""

from mapgap.core import methods_of

method = methods_of(__name__)

METHODS = [
    method(
        "elfish_greedy",
        kind="published",
        reference="Xu et al., ELFISH, Sec. 4.1 and Eqs. (5)-(7)",
        summary="Shares masked in proportion to alpha, by bisection; P_s by contribution, the rest drawn",
        options={"alpha": "neuron_time", "selection": "paper"},
    ),
    method(
        "priced_layers",
        kind="baseline",
        reference="Lagrangian heuristic: prices of the limits (Everett 1963), repair and exchange",
        run="mapgap.formulations.neuron_masking.priced_layers:run",
        summary="The best mask under prices of work and memory, repaired, filled up and improved by exchanges",
        fast=True,
    ),
    method(
        "largest_cost_first",
        kind="baseline",
        reference="Xu et al., ELFISH, Sec. 4 (masking resource-intensive neurons)",
        run="one_by_one:largest_cost_first",
        summary="Masks the most expensive neuron until the limits hold, then fills up",
    ),
    method(
        "contribution_per_cost",
        kind="baseline",
        reference="greedy by value per cost, layer-wise",
        run="one_by_one:contribution_per_cost",
        summary="Masks the neuron of least objective per relative cost, then fills up",
    ),
    method(
        "by_objective",
        kind="baseline",
        reference="knapsack greedy by gain per resource (Dantzig 1957), or equal shares",
        run="one_by_one:by_objective",
        summary="uniform for the smallest share, contribution_per_cost for every other objective",
    ),
    method(
        "uniform",
        kind="baseline",
        reference="Xu et al., ELFISH, Sec. 3.2 (percentages of Table 2)",
        summary="The same share of every layer",
    ),
]
