"""Published rule and baselines of the FPGA-GPU partition."""

from mapgap.core import methods_of

method = methods_of(__name__)

METHODS = [
    method(
        "annealed_options",
        kind="baseline",
        reference="simulated annealing (Kirkpatrick, Gelatt, Vecchi 1983), at least the patterns of Fig. 2",
        params="params:Annealing",
        summary="The best of both published plans and a short annealing of the options of all layers",
        fast=True,
    ),
    method(
        "additive_greedy",
        kind="baseline",
        reference="knapsack greedy by gain per resource (Dantzig 1957), on estimates per layer",
        params="params:Additive",
        summary="Largest estimated saving per share of the fabric; no plan is timed",
    ),
    method(
        "greedy",
        kind="baseline",
        reference="knapsack greedy by gain per resource (Dantzig 1957), lazily (Minoux 1978)",
        summary="Largest decrease of the objective per share of the fabric, from GPU only",
    ),
    method(
        "paper_rule",
        kind="published",
        reference="Carballo-Hernandez et al., SLOHA 2021, Fig. 2",
        summary="Fig. 2's pattern per module, in module order until the fabric is full",
        options={"singles": False, "stop": False},
    ),
    method(
        "paper_rule_folded",
        kind="published",
        reference="Carballo-Hernandez et al., SLOHA 2021, Fig. 2, with the largest fold offered",
        run="paper_rule:run",
        summary="The same with the largest folds, so that more modules fit",
        options={"singles": False, "stop": False},
        given={"largest_fold": True},
    ),
    method(
        "gpu_only",
        kind="baseline",
        reference="Carballo-Hernandez et al., SLOHA 2021, Sec. V (GPU-only platform)",
        run="single:run_gpu",
        summary="All layers on the GPU",
    ),
    method(
        "fpga_only",
        kind="baseline",
        reference="Carballo-Hernandez et al., SLOHA 2021, Sec. III-A",
        run="single:run_fpga",
        summary="All layers on the FPGA",
    ),
]
