"""Exact models and algorithms for the FPGA-GPU partition."""

from mapgap.core import methods_of

method = methods_of(__name__)

METHODS = [
    method(
        "cpsat",
        kind="exact",
        reference="configuration model, OR-Tools CP-SAT",
        models="cpsat:models",
        summary="one non-dominated configuration per module, joined by sides and fabric",
        options={"start": ""},
        rank=1,
        engines=("CP-SAT",),
    ),
    method(
        "enumerate",
        kind="exact",
        reference="brute force",
        summary="every choice of options of a tiny instance",
        rank=-1,
        engines=("enumeration",),
    ),
    method(
        "label_setting",
        kind="exact",
        reference="label setting with Lagrangian bounds over configurations",
        summary="labels over the chain of modules, dropped when no price lets them improve on the best plan",
        options={"start": ""},
        params="params:LabelSetting",
        cheap="label_setting:cheap",
        rank=3,
        engines=("own",),
    ),
    method(
        "mip",
        kind="exact",
        reference="configuration model, HiGHS",
        models="mip:models",
        summary="the same rows as cpsat, solved as a MIP",
        options={"start": ""},
        engines=("HiGHS",),
    ),
    method(
        "pareto_front",
        kind="exact",
        reference="label setting over configurations; epsilon-constraint method with engine=mip or cpsat",
        summary="every non-dominated pair of energy and latency, each proven; the best point for the objective",
        options={"engine": "labels", "start": ""},
        params="params:LabelSetting",
        rank=2,
        engines=("own", "CP-SAT", "HiGHS"),
    ),
    method(
        "portfolio",
        kind="exact",
        reference="relaxation, quick planner, label setting and annealing in turns",
        summary="annealed_options, then label_setting and longer annealings in turns",
        options={"start": ""},
        members=("relaxation", "additive_greedy", "annealed_options", "label_setting", "annealing"),
        rank=10,
        engines=("own",),
    ),
]
