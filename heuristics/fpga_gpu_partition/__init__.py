"""Published rule and baselines of the FPGA-GPU partition."""

from mapgap.core import Method

_PROBLEM = "fpga_gpu_partition"
_HERE = "mapgap.heuristics.fpga_gpu_partition"

METHODS = [
    Method(
        "annealed_options",
        _PROBLEM,
        kind="baseline",
        reference="simulated annealing (Kirkpatrick, Gelatt, Vecchi 1983), at least the patterns of Fig. 2",
        run=f"{_HERE}.annealed_options:run",
        params=f"{_HERE}.params:Annealing",
        summary="The best of both published plans and a short annealing of the options of all layers",
        fast=True,
    ),
    Method(
        "additive_greedy",
        _PROBLEM,
        kind="baseline",
        reference="knapsack greedy by gain per resource (Dantzig 1957), on estimates per layer",
        run=f"{_HERE}.additive_greedy:run",
        summary="Largest estimated saving per share of the fabric; no plan is timed",
    ),
    Method(
        "greedy",
        _PROBLEM,
        kind="baseline",
        reference="knapsack greedy by gain per resource (Dantzig 1957), lazily (Minoux 1978)",
        run=f"{_HERE}.greedy:run",
        summary="Largest decrease of the objective per share of the fabric, from GPU only",
    ),
    Method(
        "paper_rule",
        _PROBLEM,
        kind="published",
        reference="Carballo-Hernandez et al., SLOHA 2021, Fig. 2",
        run=f"{_HERE}.paper_rule:run",
        summary="Fig. 2's pattern per module, in module order until the fabric is full",
        options={"singles": False, "stop": False},
    ),
    Method(
        "paper_rule_folded",
        _PROBLEM,
        kind="published",
        reference="Carballo-Hernandez et al., SLOHA 2021, Fig. 2, with the largest fold offered",
        run=f"{_HERE}.paper_rule:run",
        summary="The same with the largest folds, so that more modules fit",
        options={"singles": False, "stop": False},
        given={"largest_fold": True},
    ),
    Method(
        "gpu_only",
        _PROBLEM,
        kind="baseline",
        reference="Carballo-Hernandez et al., SLOHA 2021, Sec. V (GPU-only platform)",
        run=f"{_HERE}.single:run_gpu",
        summary="All layers on the GPU",
    ),
    Method(
        "fpga_only",
        _PROBLEM,
        kind="baseline",
        reference="Carballo-Hernandez et al., SLOHA 2021, Sec. III-A",
        run=f"{_HERE}.single:run_fpga",
        summary="All layers on the FPGA",
    ),
]
