"""Two ratios instead of a search over many, and a short annealing of each mapping.

::

    1  ratios: by PEs (MTrain, Alg. 1, step 3), and the whole batch as one share
    2  of each: MTrain-Mapping (Alg. 2), delta latency as growth of the makespan
    3  annealing of accelerators and orders from there, a counted number of steps     anneal
    4  the faster one

Converting spends its time on lowering and mapping neighbours of the ratio, one sample after the other. On small
instances most of what it loses is lost in the mapping of the first ratios: shares are no more than names, any of them
may lie anywhere. What it costs to lower and map a further ratio pays for some hundred steps of annealing.

Interpretation
--------------
1.  Of ratios that are the same up to the names of shares there is one; a single accelerator is not annealed, since
    there every order takes as long.
2.  Steps 2 and 3 are one call of compiled code. The seed of the annealing is fixed: the plan is always the same.
3.  Where neither ratio has a mapping that fits the DRAM, the plan is that of MTrain-Converting, the same reading.

Two ratios are lowered, so that on large instances, where many ratios pay, converting finds better plans and takes
longer. The cost is that of two MTrain-Mappings and of ``steps`` timings of a part of the schedule each.
"""

from __future__ import annotations

import numpy as np

from mapgap.core import Budget, SolveResult, Stop
from mapgap.heuristics.suboperation_mapping.common import result
from mapgap.heuristics.suboperation_mapping.mtrain import mtrain_converting
from mapgap.heuristics.suboperation_mapping.params import TwoRatios
from mapgap.heuristics.suboperation_mapping.search.annealing import Cooling, Labels, Walk, anneal
from mapgap.heuristics.suboperation_mapping.search.incremental import relate
from mapgap.heuristics.suboperation_mapping.search.mapping_kernels import Schedule, balance, greedy, locality
from mapgap.heuristics.suboperation_mapping.search.ready_set_kernels import SPAN, WORK
from mapgap.kernels import Integers, kernel
from mapgap.problems.suboperation_mapping import Instance
from mapgap.problems.suboperation_mapping.lowered.arrays import PHASES, Lowered, lower
from mapgap.problems.suboperation_mapping.lowered.mapped import Mapped, timed, well_balanced
from mapgap.problems.suboperation_mapping.lowered.ratios import Ratio, pe_ratio
from mapgap.problems.suboperation_mapping.lowered.timing import Storage, Timing, roomy


@kernel(
    "i8(Timing,Storage,Labels,i8[::1],i8,Cooling,Schedule)",
    *(Timing, Storage, Labels, Cooling, Schedule),
)
def mapped(
    timing: Timing,
    storage: Storage,
    labels: Labels,
    balanced: Integers,
    limit: int,
    shares: Cooling,
    schedule: Schedule,
) -> int:
    """Steps 2 and 3 into location and sequence of the schedule; the makespan, or -1 where nothing fits the DRAM.

    Temperatures are shares of the makespan, and so is the penalty, of DRAM above capacity for one capacity.
    """
    if greedy(timing, storage, SPAN, WORK, limit, schedule) < 0:
        return -1
    relatives = relate(timing, schedule.sequence)
    balance(timing, storage, relatives, balanced, schedule)
    locality(timing, storage, relatives, schedule)
    makespan: int = schedule.end.max()
    if timing.compute.shape[1] == 1:
        return makespan
    scale = float(max(1, makespan))
    cooling = Cooling(
        shares.steps,
        shares.seed,
        max(shares.hot * scale, 1e-2),
        max(shares.cold * scale, 1e-3),
        not roomy(storage),
        shares.penalty * scale / max(1, storage.capacity.max()),
    )
    location, sequence = schedule.location, schedule.sequence
    walk = Walk(location.copy(), sequence.copy(), location, sequence)
    found: int = anneal(timing, storage, relatives, labels, cooling, 0, shares.steps, makespan, walk)
    return found


def ratios(instance: Instance) -> list[Ratio]:
    """Step 1."""
    by_pes = pe_ratio(instance)
    whole = (instance.batch, *[0] * (len(by_pes) - 1))
    return [by_pes] if max(by_pes) == instance.batch else [by_pes, whole]


def labels_of(lowered: Lowered) -> Labels:
    """What the operations are."""
    phase = np.array([PHASES.index(each) for each, _, _ in lowered.operations], np.int64)
    return Labels(lowered.storage.layer, phase, np.array([share for _, _, share in lowered.operations], np.int64))


def run(instance: Instance, budget: Budget, params: TwoRatios = TwoRatios()) -> SolveResult:
    """The faster of two annealed mappings."""
    best: tuple[int, Lowered, Schedule] | None = None
    shares = Cooling(params.steps, 0, params.hot, params.cold, True, 1.0)
    tried = 0
    for ratio in ratios(instance):
        if budget.exhausted:
            break
        tried += 1
        lowered = lower(instance, ratio)
        schedule = Schedule(*(np.zeros(lowered.n, np.int64) for _ in range(4)))
        tables = lowered.timing, lowered.storage, labels_of(lowered), well_balanced(lowered)
        makespan = mapped(*tables, params.quick, shares, schedule)
        if makespan >= 0 and (best is None or makespan < best[0]):
            best = makespan, lowered, schedule
    if best is None:
        converted, notes = mtrain_converting(instance, budget, delta="makespan", search_limit=params.quick)
        stop = Stop.DONE if notes["complete"] and not budget.exhausted else Stop.TIME
        return result(converted, budget, stop, converted=True)
    _, lowered, schedule = best
    found: Mapped | None = timed(lowered, schedule.location, schedule.sequence)
    stop = Stop.DONE if tried == len(ratios(instance)) else Stop.TIME
    return result(found, budget, stop, converted=False)
