"""exo's placements of a language model on the devices of a home (exo-explore/exo).

``exo`` is what plans today (b5375f8, ``src/exo/master``: ``placement.py``, ``place_instance``; ``placement_utils.py``):

1.  of all cycles of devices that together have the memory for the weights, the smallest ones;
2.  of these the one of most memory;
3.  ``allocate_layers_proportionally``: layers in proportion to memory, rounded down, the rest to the largest
    remainders; a device without a layer takes one from the device that has most;
4.  no placement if the average layer times its number of layers exceeds the memory of a device.

``exo_ring`` is the rule of the releases before (0fcee70^, ``exo/topology``:
``ring_memory_weighted_partitioning_strategy.py`` and ``partitioning_strategy.py``):

1.  all devices by falling memory, each with its share of the memory as an interval of [0, 1), rounded to five digits;
2.  ``map_partitions_to_shards``: layers ``[int(start L), int(end L))``, no empty ones, the last one up to the end.

Interpretation
--------------
1.  All devices are connected, so every set of them is a cycle. In what order a cycle is found is left open; it is that
    of the instance, which also breaks ties.
2.  Memory is that of the instance, all of it available. The weights are what the layers take without a sample; caches
    are not looked at. What does not hold them is out of memory, and no plan.
3.  Layers are the blocks of a model. A first layer called ``embedding`` goes with the first block, a last one called
    ``head`` with the last block (the options name them); otherwise every layer counts.
4.  A stage has one device. What has been downloaded, links by RDMA and the objective are not looked at.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from mapgap.core import Budget, SolveResult, Status, Stop
from mapgap.heuristics.hybrid_pipeline.chain import report, result
from mapgap.problems.hybrid_pipeline import Instance, Plan, Stage
from mapgap.problems.hybrid_pipeline.lowered.batching import every_micro_batch


@every_micro_batch
def run(instance: Instance, budget: Budget, embedding: str = "embedding", head: str = "head") -> SolveResult:
    """The smallest set of most memory, layers in proportion to it."""
    begin = time.process_time()
    first, blocks = span(instance, embedding, head)
    memory = [instance.device_type(d).memory for d in range(len(instance.devices))]
    weights = sum(layer.state_memory for layer in instance.layers)
    richest = sorted(range(len(memory)), key=lambda d: (-memory[d], d))
    enough = (k for k in range(1, len(memory) + 1) if sum(memory[d] for d in richest[:k]) >= weights)
    size = next(enough, 0)  # step 1: of so many devices the richest have most
    if size == 0:
        return _none("no cycle has sufficient memory for the weights", begin)
    chosen = sorted(richest[:size])  # step 2
    total = sum(memory[d] for d in chosen)
    if total == 0:
        return _none("no device has memory", begin)
    if blocks < size:
        return _none(f"{blocks} layers are too few for {size} devices", begin)
    counts = allocated(blocks, [memory[d] / total for d in chosen])  # step 3
    for d, count in zip(chosen, counts, strict=True):
        if weights * count // blocks > memory[d]:  # step 4
            return _none(f"{instance.devices[d].name} has insufficient memory for {count} layers", begin)
    plan = placed(instance, chosen, counts, first)
    return report(budget, result(instance, plan, begin, layers=counts))


@every_micro_batch
def run_ring(instance: Instance, budget: Budget, embedding: str = "embedding", head: str = "head") -> SolveResult:
    """All devices by falling memory, intervals in proportion to it."""
    begin = time.process_time()
    first, blocks = span(instance, embedding, head)
    memory = [instance.device_type(d).memory for d in range(len(instance.devices))]
    total = sum(memory)
    if total == 0:
        return _none("no device has memory", begin)
    order = sorted(range(len(memory)), key=lambda d: (-memory[d], d))
    start, ends = 0.0, list[int]()
    for d in order:
        start = round(start + memory[d] / total, 5)  # step 1
        ends.append(int(start * blocks))
    ends[-1] = blocks  # step 2
    counts = [max(0, end - before) for before, end in zip([0, *ends], ends, strict=False)]
    plan = placed(instance, order, counts, first)
    return report(budget, result(instance, plan, begin, layers=counts))


def span(instance: Instance, embedding: str, head: str) -> tuple[int, int]:
    """How many layers are in front of the blocks, and how many blocks there are."""
    names = [layer.name for layer in instance.layers]
    front = int(names[0] == embedding and len(names) > 1)
    behind = int(names[-1] == head and len(names) > front + 1)
    return front, len(names) - front - behind


def allocated(layers: int, shares: Sequence[float]) -> list[int]:
    """``allocate_layers_proportionally``: at least one layer each."""
    exact = [share * layers for share in shares]
    found = [int(each) for each in exact]
    by_remainder = sorted(range(len(exact)), key=lambda i: found[i] - exact[i])
    for i in by_remainder[: layers - sum(found)]:
        found[i] += 1
    for i, count in enumerate(found):
        if count == 0:
            most = max(range(len(found)), key=found.__getitem__)
            found[most] -= 1
            found[i] = 1
    return found


def placed(instance: Instance, order: Sequence[int], counts: Sequence[int], front: int) -> Plan:
    """So many blocks on each device of the order; what is in front of and behind the blocks goes with its neighbour."""
    (batch,) = instance.micro_batch_sizes
    used = [(d, count) for d, count in zip(order, counts, strict=True) if count]
    stages, start = list[Stage](), 0
    for k, (d, count) in enumerate(used):
        stop = len(instance.layers) if k == len(used) - 1 else start + count + (front if k == 0 else 0)
        stages.append(Stage(start=start, stop=stop, devices=(d,), shares=(batch,)))
        start = stop
    return Plan(micro_batch=batch, stages=tuple(stages))


def _none(why: str, begin: float) -> SolveResult:
    notes = {"cpu_s": time.process_time() - begin}
    reason = f"out of memory: {why}; this proves nothing about others"
    return SolveResult(Status.UNKNOWN, Stop.DONE, reason=reason, notes=notes)
