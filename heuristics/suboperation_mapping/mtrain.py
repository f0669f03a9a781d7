"""MTrain: MTrain-Converting (Algorithm 1), MTrain-Mapping (Algorithm 2) and DFS over the ratios (Table III).

Interpretation
--------------
What the paper leaves open is pinned here.

1.  *Ready sets* (Alg. 2, steps 2-9). All operations whose predecessors are mapped form one ready set; its assignments
    are enumerated together; the next ready set is found when all of it is mapped. Within a set operations are taken
    by number (FP, BP, WU; then layer; then share).
2.  *Large ready sets.* Step 3 enumerates N^k assignments of k operations: 10^7 for a layer on 8 accelerators, 10^14 for
    its BP and WU. Here a branch and bound (``search/ready_set_kernels.py``) finds what enumeration would choose. A
    search that looks at more than ``search_limit`` prefixes takes the best assignment so far, and the notes count such
    ready sets as ``ready_sets_limited``: where that is 0, nothing was cut.
3.  *Delta latency* (step 5) has two readings; option ``delta``.

    ``sum`` (default)
        The sum of the durations of the set, transfers included. These are the words: "delta Lat is the sum of the
        computation cost calculated by the performance model of {Acc_i} and the data communication costs between two
        dependent sub-operations that are located on different accelerators" (Sec. V-B). Fig. 7 (b) is what it makes:
        all four sub-operations lie on the powerful Acc_1 and Acc_2 is idle, which is what step 2 is there for.
    ``makespan``
        The growth of the makespan of the partial schedule. Sec. V-B calls delta Lat "the latency increase", and Lat is
        the makespan everywhere else. In the example of Fig. 3 "the mapping scheme {1.1 to Acc_1, 1.2 to Acc_2} leads
        to the minimum delta Lat": the shares of one layer lie on two accelerators. By the sum both lie on the one
        that is faster, unless its DRAM forbids it (the example says that of Acc_2).

    Either figure can be had from either reading with suitable numbers, so neither decides. The words are followed.
4.  *Ties in delta latency* (option ``tie``): ``other`` (default) the other reading decides; ``work`` smaller sum of
    durations of the set; ``makespan`` smaller makespan; ``finish`` smaller sum of end times; ``first`` none. What is
    still tied: the lexicographically first assignment, accelerators by index.
5.  *DRAM* (step 4). A candidate must keep the schedule made so far within the budget of every accelerator, where
    what a WU will release is stored for ever until that WU is mapped. Nothing is set aside for operations
    that are not ready yet (the paper: "possible to accommodate the data for the rest", without a rule), so that a
    tight DRAM can end in a dead end. If no candidate fits, there is no mapping, and the methods answer UNKNOWN.
6.  *Execution order* of an accelerator is the order of mapping; re-mapping keeps it.
7.  *The well-balanced scheme* (step 11): every sub-operation of share ``b`` on accelerator ``b`` (Fig. 7 (c)); a fused
    operation on the accelerator of the largest share, where most of its input lies, ties by index.
8.  *Re-mapping* visits operations in execution order and accepts at once each attempt that is strictly faster and
    fits the DRAM; passes are repeated until one accepts nothing. (Sec. V-C speaks of one pass for (2), the pseudo-code
    of a repetition; the pseudo-code is followed.) In (3) the targets are the accelerators of all operations with which
    data is exchanged: precedences in both directions and dW to the holders of the layer's FP; by index.
9.  *Ratio trials* (Alg. 1, steps 11-12). Read literally the loop over r changes the ratio in place, so that trial r
    would contain all trials before it; each trial starts from the current ratio here, as Sec. IV-C says. Trials with a
    negative share are skipped. Among equally fast trials the first in duty-cycle order wins.
10. *Duty cycle* = busy ticks, transfers included, over the makespan; ties by index. If no mapping of the initial
    ratio fits the DRAM, all duty cycles count as 0 and every mapping is an improvement.
11. *DFS* gives the parts of each partition of the batch to the accelerators by falling PEs, because the well-balanced
    scheme ties share to accelerator; option ``ordered`` takes all orders of the parts instead (the paper counts
    partitions). The best *ratio* is exact; its mapping is still the heuristic's.
12. *Step size* (Alg. 1, steps 11-12) is "a search parameter" (Sec. IV-A) that the paper does not print; option
    ``step_size``, by default one sample. Where accelerators work on whole tiles of the batch, one sample more seldom
    pays and a longer step finds better ratios.
13. *Shared links* (rule 10 of the problem) are not in the paper. Steps 1-9 count a transfer as if its link were free:
    the durations of rule 5 are the "performance model" of step 5. From step 10 on, and between ratios, schedules are
    compared by their makespan on the medium, waiting included. One that does not fit the DRAM then is no mapping.

References
----------
Tang et al., MTrain, Sections IV and V, Algorithms 1 and 2, Table III.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np

from mapgap.core import Budget, InputError, SolveResult, Stop
from mapgap.heuristics.suboperation_mapping.common import chosen_ratio, partition_ratios, result
from mapgap.heuristics.suboperation_mapping.search import mapping_kernels as kernels
from mapgap.heuristics.suboperation_mapping.search.incremental import relate
from mapgap.heuristics.suboperation_mapping.search.ready_set_kernels import FINISH, NONE, SPAN, WORK
from mapgap.problems.suboperation_mapping import Instance
from mapgap.problems.suboperation_mapping.lowered.arrays import Lowered, lower
from mapgap.problems.suboperation_mapping.lowered.mapped import Mapped, best_single, timed, well_balanced
from mapgap.problems.suboperation_mapping.lowered.ratios import Ratio, pe_ratio
from mapgap.problems.suboperation_mapping.lowered.timing import LINKS

OUT_OF_REACH = -2  #: what ``greedy`` returns when a search met its limit before anything that fits
DELTAS = {"sum": WORK, "makespan": SPAN}
TIES = {"work": WORK, "makespan": SPAN, "finish": FINISH, "first": NONE}


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


def mtrain_converting(
    instance: Instance,
    budget: Budget,
    step_size: int = 1,
    initial: Ratio | None = None,
    most: int | None = None,
    **mapping: Any,
) -> tuple[Mapped | None, dict[str, Any]]:
    """Algorithm 1; returns the best mapping and notes (stops early only when the time is up, or at ``most`` ratios).

    Raises
    ------
    InputError
        A step of less than one sample.
    """
    if step_size < 1:
        raise InputError(f"step_size: expected at least 1, found {step_size}")
    known: dict[Ratio, Mapped | None] = {}
    effort = Effort()

    def mapped(ratio: Ratio) -> Mapped | None:
        if ratio not in known:
            known[ratio] = mtrain_mapping(lower(instance, ratio), effort=effort, **mapping)
        return known[ratio]

    def over() -> bool:
        return budget.exhausted or (most is not None and len(known) >= most)

    ratio = pe_ratio(instance) if initial is None else initial  # steps 1-4
    best = mapped(ratio)  # step 5
    path = [ratio]
    count = len(instance.accelerators)
    w = count + 1
    improved = True
    while improved and not over():  # steps 7 and 21
        duty = best.duty_cycle if best is not None else [0.0] * count
        order = sorted(range(count), key=lambda a: (duty[a], a))  # step 8
        improved, w = False, 1  # step 9
        while w <= count and not improved and not over():
            trials = []
            for r in range(1, count + 1):  # step 10
                if budget.exhausted:
                    break
                trial = list(ratio)
                trial[order[r - 1]] += step_size  # step 11
                trial[order[w - 1]] -= step_size  # step 12
                if r != w and trial[order[w - 1]] >= 0:
                    candidate = mapped(tuple(trial))  # steps 13-14
                    if candidate is not None:
                        trials.append(candidate)
            found = min(trials, key=lambda m: m.makespan, default=None)  # step 16
            if found is not None and (best is None or found.makespan < best.makespan):  # step 17
                best, ratio, improved = found, found.lowered.ratio, True  # step 18
                path.append(ratio)
                budget.report(plan=best.plan)
            else:
                w += 1  # step 20
    notes = {
        "ratios_mapped": len(known),
        "path": [list(r) for r in path],
        "complete": w > count,
        "ready_sets_limited": effort.limited,
    }
    return best, notes


def mtrain_mapping(
    lowered: Lowered,
    balance: bool = True,
    locality: bool = True,
    delta: str = "sum",
    tie: str = "other",
    search_limit: int = 20_000,
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
    if timing.medium != LINKS:
        return timed(lowered, schedule.location, schedule.sequence)
    return Mapped(lowered, *schedule)


def ratios(instance: Instance, ordered: bool) -> list[Ratio]:
    """The ratios of the DFS: partitions by falling PEs, or all orders of them."""
    found = list(partition_ratios(instance))
    if ordered:
        found = sorted({order for ratio in found for order in permutations(ratio)}, reverse=True)
    return found


def run_mapping(instance: Instance, budget: Budget, ratio: str = "", **mapping: Any) -> SolveResult:
    """MTrain-Mapping at the PE-based ratio or at ``ratio`` ("40,24")."""
    effort = Effort()
    mapped = mtrain_mapping(lower(instance, chosen_ratio(instance, ratio)), effort=effort, **mapping)
    return result(mapped, budget, ready_sets_limited=effort.limited)


def run_converting(instance: Instance, budget: Budget, step_size: int = 1, **mapping: Any) -> SolveResult:
    """MTrain-Converting, literal control flow."""
    best, notes = mtrain_converting(instance, budget, step_size, **mapping)
    return result(best, budget, Stop.DONE if notes["complete"] else Stop.TIME, **notes)


def run_fallback(instance: Instance, budget: Budget, step_size: int = 1, **mapping: Any) -> SolveResult:
    """The better of MTrain-Converting and the best single accelerator; an addition of this project."""
    best, notes = mtrain_converting(instance, budget, step_size, **mapping)
    single = best_single(instance)
    used = single is not None and (best is None or single.makespan < best.makespan)
    stop = Stop.DONE if notes["complete"] else Stop.TIME
    return result(single if used else best, budget, stop, **notes, fallback_used=used)


def run_dfs(instance: Instance, budget: Budget, ordered: bool = False, **mapping: Any) -> SolveResult:
    """MTrain-Mapping of every ratio; notes hold the makespan per ratio (``None``: nothing fits the DRAM)."""
    best: Mapped | None = None
    makespans: dict[str, int | None] = {}
    wanted, effort = ratios(instance, ordered), Effort()
    for ratio in wanted:
        if budget.exhausted:
            break
        mapped = mtrain_mapping(lower(instance, ratio), effort=effort, **mapping)
        makespans[",".join(map(str, ratio))] = None if mapped is None else mapped.makespan
        if mapped is not None and (best is None or mapped.makespan < best.makespan):
            best = mapped
            budget.report(plan=best.plan)
    stop = Stop.DONE if len(makespans) == len(wanted) else Stop.TIME
    notes = {"ratios": len(wanted), "ratios_mapped": len(makespans), "ready_sets_limited": effort.limited}
    return result(best, budget, stop, **notes, makespans=makespans)
