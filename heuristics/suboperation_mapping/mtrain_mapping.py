"""MTrain-Mapping (Tang et al., MTrain, Algorithm 2) of one ratio.

The paper's algorithm, on which its others stand, and where searches for plans start. What the paper leaves open is
pinned in ``heuristics/suboperation_mapping/mtrain.py``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mapgap.core import InputError
from mapgap.heuristics.suboperation_mapping.search import mapping_kernels as kernels
from mapgap.heuristics.suboperation_mapping.search.incremental import relate
from mapgap.heuristics.suboperation_mapping.search.ready_set_kernels import FINISH, NONE, SPAN, WORK
from mapgap.problems.suboperation_mapping.lowered.arrays import Lowered
from mapgap.problems.suboperation_mapping.lowered.mapped import Mapped, well_balanced

OUT_OF_REACH = -2  #: what ``greedy`` returns when a search met its limit before anything that fits
DELTAS = {"sum": WORK, "makespan": SPAN}
TIES = {"work": WORK, "makespan": SPAN, "finish": FINISH, "first": NONE}
SEARCH_LIMIT = 20_000  #: prefixes of a ready set


@dataclass
class Effort:
    """What the searches of some mappings took: ready sets that met the limit."""

    limited: int = 0


def parts(delta: str, tie: str) -> tuple[int, int]:
    """The two parts of the key that assignments of a ready set are compared by.

    Raises
    ------
    InputError
        An unknown reading or tie rule.
    """
    if delta not in DELTAS:
        raise InputError(f"delta: expected one of {', '.join(DELTAS)}, found {delta!r}")
    first = DELTAS[delta]
    if tie == "other":
        return first, SPAN if first == WORK else WORK
    if tie not in TIES:
        raise InputError(f"tie: expected one of other, {', '.join(TIES)}, found {tie!r}")
    return first, NONE if TIES[tie] == first else TIES[tie]


def mtrain_mapping(
    lowered: Lowered,
    balance: bool = True,
    locality: bool = True,
    delta: str = "sum",
    tie: str = "other",
    search_limit: int = SEARCH_LIMIT,
    effort: Effort | None = None,
) -> Mapped | None:
    """Algorithm 2 for one ratio; the two re-mappings can be switched off.

    ======  ================================================================  =======================================
    steps   what they do                                                      kernel
    ======  ================================================================  =======================================
    1-9     DRAM budget aware mapping, one ready set after the other          ``greedy``
    2       the ready set                                                     ``ready_set``
    3-6     all assignments of it, those that fit, the least delta latency    ``choose`` (DRAM: ``could_fit``)
    10-11   the well-balanced scheme                                          ``well_balanced``
    12-20   balance aware re-mapping                                          ``balance``, one move: ``attempt``
    21-28   data locality aware re-mapping                                    ``locality``, one move: ``attempt``
    ======  ================================================================  =======================================

    Raises
    ------
    InputError
        An unknown reading or tie rule, or a limit of less than one prefix.
    """
    if search_limit < 1:
        raise InputError(f"search_limit: expected at least 1, found {search_limit}")
    schedule = kernels.Schedule(*(np.zeros(lowered.n, np.int64) for _ in range(4)))
    timing, storage = lowered.timing, lowered.storage
    limited = kernels.greedy(timing, storage, *parts(delta, tie), search_limit, schedule)  # steps 1-9
    if effort is not None:
        effort.limited += max(limited, int(limited == OUT_OF_REACH))
    if limited < 0:
        return None
    related = relate(timing, schedule.sequence)
    if balance:
        kernels.balance(timing, storage, related, well_balanced(lowered), schedule)  # steps 10-20
    if locality:
        kernels.locality(timing, storage, related, schedule)  # steps 21-28
    return Mapped(lowered, *schedule)
