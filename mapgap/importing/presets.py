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
}


def preset(name: str) -> dict[str, Any]:
    """The settings of a planner. Training, where it may be either, is what the file is about.

    Raises
    ------
    InputError
        No preset has the name.
    """
    if name not in PRESETS:
        known = ", ".join(PRESETS)
        raise InputError(f"--as {name}: expected one of {known}{suggest(name, PRESETS)}")
    return dict(PRESETS[name])
