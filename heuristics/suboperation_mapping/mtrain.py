"""MTrain: MTrain-Mapping (Algorithm 2), MTrain-Converting (Algorithm 1) and DFS over the ratios (Table III).

Interpretation
--------------
What the paper leaves open is pinned here.

1.  *Ready sets* (Alg. 2, steps 2-9). All operations whose predecessors are mapped form one ready set; its assignments
    are enumerated together; the next ready set is found when all of it is mapped. Within a set operations are taken
    by number (FP, BP, WU; then layer; then share).
2.  *Large ready sets.* Step 3 enumerates N^k assignments of k operations: 10^7 for a layer on 8 accelerators, 10^14 for
    its BP and WU. Here a branch and bound (:mod:`ready_set_kernels`) finds what enumeration would choose. A search that
    looks at more than ``search_limit`` prefixes takes the best assignment so far, and the notes count such ready
    sets as ``ready_sets_limited``: where that is 0, nothing was cut.
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

References
----------
Tang et al., MTrain, Sections IV and V, Algorithms 1 and 2, Table III.
"""

from __future__ import annotations

from itertools import permutations
from typing import Any

from mapgap.core import Budget, SolveResult, Stop
from mapgap.heuristics.suboperation_mapping.common import chosen_ratio, partition_ratios, result
from mapgap.heuristics.suboperation_mapping.mtrain_converting import mtrain_converting
from mapgap.heuristics.suboperation_mapping.mtrain_mapping import Effort, mtrain_mapping
from mapgap.problems.suboperation_mapping import Instance
from mapgap.problems.suboperation_mapping.lowered.arrays import lower
from mapgap.problems.suboperation_mapping.lowered.mapped import Mapped, best_single
from mapgap.problems.suboperation_mapping.lowered.ratios import Ratio


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
