"""A lower bound of every ratio from the longest path of one share: each operation at its fastest, transfers free.

A share is processed phase after phase, with fused phases between them that are computed for the whole batch. Whatever
the mapping, the operations of a path run one after the other, so no plan of a ratio with a share of ``k`` samples ends
before ``paths[k - 1]``. Deep networks of small operations are where this exceeds what the accelerators can do together
(:mod:`fluid_bound`); it costs one pass over the network per size of a share and asks no engine.
"""

from __future__ import annotations

import numpy as np

from mapgap.formulations.suboperation_mapping.phase_graph import Node, PhaseGraph
from mapgap.problems.suboperation_mapping.lowered.arrays import Array
from mapgap.problems.suboperation_mapping.lowered.ratios import Ratio


def share_paths(phases: PhaseGraph) -> list[int]:
    """Ticks of the longest path of a share of 1, 2, … batch samples."""
    end: dict[Node, Array] = {}
    none = np.zeros(phases.instance.batch, np.int64)
    for node in phases.nodes:  # all sizes of a share at once; a fused node takes as long whatever its size
        fastest = np.array(phases.table(node), np.int64).min(axis=0)
        end[node] = fastest + np.max([end[previous] for previous in phases.before[node]] or [none], axis=0)
    return [int(ticks) for ticks in np.max(list(end.values()), axis=0)]


def path_bound(paths: list[int], ratio: Ratio) -> int:
    """No plan of the ratio has a smaller makespan."""
    return max(paths[samples - 1] for samples in ratio if samples)


def least_path(paths: list[int], accelerators: int) -> int:
    """No plan of any ratio has a smaller makespan: some share has at least the mean number of samples."""
    mean = -(-len(paths) // accelerators)
    return min(paths[mean - 1 :])
