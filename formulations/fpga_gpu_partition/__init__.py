"""Exact models and algorithms for the FPGA-GPU partition."""

from mapgap.core import Method

_PROBLEM = "fpga_gpu_partition"
_HERE = "mapgap.formulations.fpga_gpu_partition"

METHODS = [
    Method(
        "cpsat",
        _PROBLEM,
        kind="exact",
        reference="configuration model, OR-Tools CP-SAT",
        run=f"{_HERE}.cpsat:run",
        models=f"{_HERE}.cpsat:models",
        summary="one non-dominated configuration per module, joined by sides and fabric",
        options={"start": ""},
        rank=1,
        engines=("CP-SAT",),
    ),
    Method(
        "enumerate",
        _PROBLEM,
        kind="exact",
        reference="brute force",
        run=f"{_HERE}.enumerate:run",
        summary="every choice of options of a tiny instance",
        rank=-1,
        engines=("enumeration",),
    ),
    Method(
        "label_setting",
        _PROBLEM,
        kind="exact",
        reference="label setting with Lagrangian bounds over configurations",
        run=f"{_HERE}.label_setting:run",
        summary="labels over the chain of modules, dropped when no price lets them improve on the best plan",
        options={"start": ""},
        params=f"{_HERE}.params:LabelSetting",
        cheap=f"{_HERE}.label_setting:cheap",
        rank=3,
        engines=("own",),
    ),
    Method(
        "mip",
        _PROBLEM,
        kind="exact",
        reference="configuration model, HiGHS",
        run=f"{_HERE}.mip:run",
        models=f"{_HERE}.mip:models",
        summary="the same rows as cpsat, solved as a MIP",
        options={"start": ""},
        engines=("HiGHS",),
    ),
    Method(
        "pareto_front",
        _PROBLEM,
        kind="exact",
        reference="label setting over configurations; epsilon-constraint method with engine=mip or cpsat",
        run=f"{_HERE}.pareto_front:run",
        summary="every non-dominated pair of energy and latency, each proven; the best point for the objective",
        options={"engine": "labels", "start": ""},
        params=f"{_HERE}.params:LabelSetting",
        rank=2,
        engines=("own", "CP-SAT", "HiGHS"),
    ),
    Method(
        "portfolio",
        _PROBLEM,
        kind="exact",
        reference="relaxation, quick planner, label setting and annealing in turns",
        run=f"{_HERE}.portfolio:run",
        summary="annealed_options, then label_setting and longer annealings in turns",
        params=f"{_HERE}.params:Portfolio",
        members=("relaxation", "annealed_options", "label_setting", "annealing"),
        rank=10,
        engines=("own",),
    ),
]
