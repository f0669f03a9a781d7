"""``mapgap import --as PLANNER``: settings under which an import counts as another planner does.

What a user sets himself goes before. Sources: the released code and the documentation of the planners; where the values
that they print are recomputed is said in docs/formats.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mapgap.core import InputError, suggest

PRESETS: dict[str, Mapping[str, Any]] = {
    # optimizer_graph_hierarchical.py: the slowest stage of differences of antichains; memory only where it is asked
    # for; replicas take mini-batches in turn, so one is in twelve parts that two, three or four share.
    "pipedream": {
        "objective": "bottleneck",
        "training": True,
        "cuts": "graph",
        "batch": 12,
        "micro_batch": 12,
        "mini_batch": 12,
        "communication": "free",
        "allreduce": "rotating",
        "allreduce_factor": 4,
        "memory_counts": False,
    },
    # throughput-dp/dp.cpp: the largest load; one device a part; accelerators pay for every tensor they make or read.
    "dnn_partitioning": {
        "objective": "bottleneck",
        "cuts": "graph",
        "micro_batch": 1,
        "mini_batch": 1,
        "replication": False,
        "communication": "tensors",
        "stored": "one",
        "tick_ns": 10,
    },
    # sched-pipeline: the slowest stage or transfer; memory of weights and buffers as the file lists it.
    "pipeedge": {
        "objective": "bottleneck",
        "training": False,
        "replication": False,
        "state_copies": 1,
    },
    # autodist/pipeline_solver.py, one device a stage (tensor parallel degree 1): (micro-batches - 1 + stages) times the
    # slowest stage, all devices used, so that the number of stages is given; transfers between stages are left out.
    # A stage holds as many micro-batches as stages follow, itself included; memory only where it is asked for.
    "nnscaler": {
        "objective": "bottleneck",
        "training": True,
        "cuts": "all",
        "replication": False,
        "all_devices": True,
        "communication": "free",
        "stored": "behind",
        "memory_counts": False,
    },
    # alpa/pipeline_parallel/stage_construction.py, training_dp: all stages once and the slowest one for every further
    # micro-batch, forward and backward together, on all devices; data parallelism stands for what a stage does inside.
    # Transfers between stages and the AllReduce at the end of the round are left out.
    "alpa": {
        "objective": "latency",
        "training": True,
        "cuts": "all",
        "all_devices": True,
        "communication": "free",
        "allreduce_factor": 0,
        "latency": "flow_shop",
        "stored": "behind",
    },
}
REFUSED: dict[str, str] = {
    # core/cost_model/cost_model_handler.py, pipeline_costmodel
    "galvatron": (
        "it counts the first and the last stage of a pipeline only, divides what is beside the layers among them, "
        "and decides how layers are split over devices; no execution of the problem does"
    ),
}
"""Planners whose objective no instance states, and why."""


def preset(name: str) -> dict[str, Any]:
    """The settings of a planner. Training, where it may be either, is what the file is about.

    Raises
    ------
    InputError
        No preset has the name, or none can count as the planner does.
    """
    if name in REFUSED:
        raise InputError(
            f"--as {name}: expected a planner whose objective an instance can state, found {name}: {REFUSED[name]}"
        )
    if name not in PRESETS:
        known = ", ".join(PRESETS)
        raise InputError(f"--as {name}: expected one of {known}{suggest(name, PRESETS)}")
    return dict(PRESETS[name])
