"""Petals' choice of blocks, and the way of a token over them (Borzunov et al., "Petals: Collaborative Inference and
Fine-tuning of Large Models", ACL 2023; bigscience-workshop/petals 02dfbc7).

1.  ``choose_best_blocks`` (``src/petals/server/block_selection.py``): servers join one after the other. Each holds as
    many blocks as it can, where the throughputs of the servers so far, sorted, are the least; of equal intervals the
    first. Its own throughput then counts for each of its blocks.
2.  ``_make_sequence_with_min_latency`` (``src/petals/client/routing/sequence_manager.py``, 063e94b): the client takes
    the path of least delay over the servers. Who enters a server stays up to the end of its blocks.

Interpretation
--------------
1.  Servers join in the order of the instance. They do not move later (``should_choose_other_blocks``).
2.  A server's throughput is that of its mean block, a float as theirs. It holds as many blocks as fit with their
    caches beside what is in front of and behind the blocks, which Petals leaves to the client and which here goes with
    its neighbour: a first layer called ``embedding`` and a last one called ``head`` (the options name them).
3.  A hop costs what the instance says, not a ping and 18 ms of serialisation. Blocks take the times of the instance.
4.  Where a block is on no server there is no plan. A stage has one device; what a server holds and does not use, the
    plan does not have.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import cache

from mapgap.core import Budget, SolveResult, Status, Stop
from mapgap.heuristics.hybrid_pipeline.chain import report, result
from mapgap.heuristics.hybrid_pipeline.edgeshard import Costs
from mapgap.heuristics.hybrid_pipeline.exo import placed, span
from mapgap.problems.hybrid_pipeline import Instance
from mapgap.problems.hybrid_pipeline.lowered.batching import every_micro_batch

Held = tuple[int, int]
"""The blocks ``[start, end)`` of a server."""


@every_micro_batch
def run(instance: Instance, budget: Budget, embedding: str = "embedding", head: str = "head") -> SolveResult:
    """Servers join in the order of the instance; then the quickest way over them."""
    begin = time.process_time()
    front, blocks = span(instance, embedding, head)
    costs = Costs(instance)
    servers = joined(costs, front, blocks)
    route = quickest(costs, servers, front, blocks)
    if route is None:
        reason = "out of memory: a block is on no server; this proves nothing about others"
        return SolveResult(Status.UNKNOWN, Stop.DONE, reason=reason, notes={"cpu_s": time.process_time() - begin})
    order, entries = [d for d, _ in route], [entry for _, entry in route]
    counts = [end - start for start, end in zip(entries, [*entries[1:], blocks], strict=True)]
    return report(budget, result(instance, placed(instance, order, counts, front), begin, held=servers))


def joined(costs: Costs, front: int, blocks: int) -> list[Held]:
    """Step 1: the blocks of every server, in the order of the instance."""
    needs = costs.memory[front + 1 : front + blocks + 1] - costs.memory[front : front + blocks]
    ends = int(costs.memory[-1] - needs.sum())
    sofar, found = [0.0] * blocks, list[Held]()
    for d, room in enumerate(costs.room):
        largest = int(needs.max())
        held = min(blocks, max(0, room - ends) // largest) if largest else blocks
        start = min(range(blocks - held + 1), key=lambda s: (sorted(sofar[s : s + held]), s))
        took = int(costs.time[d][front + blocks] - costs.time[d][front])
        for block in range(start, start + held):
            sofar[block] += blocks / max(took, 1)
        found.append((start, start + held))
    return found


def quickest(costs: Costs, servers: Sequence[Held], front: int, blocks: int) -> list[tuple[int, int]] | None:
    """Step 2: server and first block of every hop; ``None`` where no way leads through all blocks."""

    def at(block: int) -> list[int]:
        return [d for d, (start, end) in enumerate(servers) if start <= block < end]

    @cache
    def rest(server: int, entry: int) -> tuple[int, tuple[tuple[int, int], ...]] | None:
        end = servers[server][1]
        took = int(costs.time[server][front + end] - costs.time[server][front + entry])
        here = ((server, entry),)
        if end == blocks:
            return took, here
        onwards = [
            (took + costs.transfer(front + end, server, other) + way[0], here + way[1])
            for other in at(end)
            if (way := rest(other, end)) is not None
        ]
        return min(onwards, default=None)

    ways = [way for server in at(0) if (way := rest(server, 0)) is not None]
    return list(min(ways)[1]) if ways else None
