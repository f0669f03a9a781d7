"""EdgeShard's dynamic programmes for the layers of a language model on edge devices.

Zhang et al., "EdgeShard: Efficient LLM Inference via Collaborative Edge Computing", IEEE Internet of Things Journal
2025, as in ``algorithm/7B_partition_latency.py`` and ``7B_partition_throughput.py`` of KasperXMS/EdgeShard-remastered
b3b275a (Apache-2.0), which calls itself unofficial.

Latency, for an instance whose objective that is:

1.  ``dp[i][j]`` is the least time of the layers up to i with layer i on device j, over the devices k of layer i - 1;
    what crosses between k and j counts where they differ.
2.  With it goes the memory that is left on every device *along the one path that was kept*; a device without room for
    layer i takes no part. So a path that is slower so far and leaves more memory is forgotten: no plan may be found
    where there is one, or a worse one.

Throughput, for the objective ``bottleneck``: ``h[i][S][j]`` is the least maximum over stages and transfers when the
devices S have the first i layers, j the last of them; a device has one interval, which must fit into its memory.

Interpretation
--------------
1.  The listing has the first layer on a source node, which the option ``source`` names; without it every device may
    begin, as a loop there does that is commented out. The way back to the source is not in the instance.
2.  A layer takes its weights and what it stores for a micro-batch; the listing has one number per layer.
3.  The 2.1 ms that every transfer there takes beside its bytes are the instance's to say. In training both directions
    count.
4.  Of equal paths the first is kept. A path of the first programme that comes back to a device that it left has no
    plan here. The second programme is refused where there are more than 10 devices or 1000 layers; the listing has six
    and 34.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from mapgap.core import Budget, Finding, InputError, SolveResult, Status, Stop, suggest
from mapgap.heuristics.hybrid_pipeline.chain import report, result
from mapgap.problems.hybrid_pipeline import Instance, Plan, Stage
from mapgap.problems.hybrid_pipeline.lowered.batching import every_micro_batch
from mapgap.problems.hybrid_pipeline.lowered.tables import Array, prefix_sums, times_before

MOST_DEVICES, MOST_LAYERS = 10, 1000
NEVER = 2**61
Piece = tuple[int, int]
"""A device and the end of its layers."""


class Costs:
    """What the programmes know of an instance: ticks and memory units of a micro-batch.

    Attributes
    ----------
    time, memory : (N, L + 1), (L + 1,)
        Of the layers before a cut.
    """

    def __init__(self, instance: Instance) -> None:
        (batch,) = instance.micro_batch_sizes
        self.instance, self.batch, self.layers = instance, batch, instance.layers
        kinds = [times_before(kind, batch) for kind in instance.types]
        self.time = np.stack(
            [kinds[each.type][0][:, batch] + kinds[each.type][1][:, batch] for each in instance.devices]
        )
        self.memory = prefix_sums([each.state_memory + batch * each.activation_memory for each in instance.layers])
        self.room = [instance.device_type(d).memory for d in range(len(instance.devices))]

    def transfer(self, cut: int, source: int, target: int) -> int:
        """Ticks of what crosses in front of the layer ``cut``."""
        size = self.batch * self.layers[cut - 1].output_bytes
        ways = 2 if self.instance.execution.training else 1
        return ways * self.instance.transfer_ticks(size, self.instance.bandwidth[source][target])


@every_micro_batch
def run(instance: Instance, budget: Budget, source: str = "") -> SolveResult:
    """The programme of the instance's objective.

    Raises
    ------
    InputError
        No device is called ``source``.
    """
    begin = time.process_time()
    names = [device.name for device in instance.devices]
    if source and source not in names:
        text = f"expected a device ({', '.join(names)}), found {source!r}{suggest(source, names)}"
        raise InputError(Finding(text, ("source",)))
    first = [names.index(source)] if source else list(range(len(names)))
    costs = Costs(instance)
    if instance.objective == "bottleneck":
        if len(names) > MOST_DEVICES or len(instance.layers) > MOST_LAYERS:
            text = f"the instance has {len(names)} devices and {len(instance.layers)} layers: too many for all sets"
            return _none(text, begin)
        pieces = throughput(costs, first)
    else:
        pieces = latency(costs, first)
    if pieces is None:
        return _none("out of memory: the programme keeps no path; this proves nothing about others", begin)
    if len({device for device, _ in pieces}) < len(pieces):
        return _none("the path comes back to a device that it left, which a plan cannot", begin)
    ends = [0, *(end for _, end in pieces)]
    stages = tuple(
        Stage(start=start, stop=end, devices=(device,), shares=(costs.batch,))
        for start, (device, end) in zip(ends, pieces, strict=False)
    )
    return report(budget, result(instance, Plan(micro_batch=costs.batch, stages=stages), begin))


def latency(costs: Costs, first: Sequence[int]) -> list[Piece] | None:
    """The path of least time, as far as one path per device tells."""
    devices, layers = range(len(costs.room)), len(costs.layers)
    own, needs = np.diff(costs.time).tolist(), np.diff(costs.memory).tolist()
    left: dict[int, list[int]] = {}
    best: dict[int, int] = {}
    before: list[dict[int, int]] = [{}]
    for j in first:
        if costs.room[j] >= needs[0]:
            best[j], left[j] = own[j][0], _without(costs.room, j, needs[0])
    for i in range(1, layers):
        found: dict[int, int] = {}
        chosen: dict[int, int] = {}
        for j in devices:
            for k in best:
                if left[k][j] < needs[i]:  # step 2
                    continue
                value = best[k] + own[j][i] + (costs.transfer(i, k, j) if k != j else 0)
                if j not in found or value < found[j]:
                    found[j], chosen[j] = value, k
        left = {j: _without(left[k], j, needs[i]) for j, k in chosen.items()}
        best = found
        before.append(chosen)
    if not best:
        return None
    last = min(best, key=lambda j: best[j])
    path = [last]
    for chosen in reversed(before[1:]):
        path.append(chosen[path[-1]])
    path.reverse()
    return [(j, i + 1) for i, j in enumerate(path) if i + 1 == layers or path[i + 1] != j]


def _without(memory: Sequence[int], device: int, amount: int) -> list[int]:
    return [value - amount * (d == device) for d, value in enumerate(memory)]


def throughput(costs: Costs, first: Sequence[int]) -> list[Piece] | None:
    """The intervals of least maximum, over all sets of devices."""
    count, cuts = len(costs.room), len(costs.layers) + 1
    after = np.arange(cuts)[:, None] < np.arange(cuts)[None, :]
    stage = []  # of the layers [i, j)
    for d in range(count):
        fits = after & (costs.memory[None, :] - costs.memory[:, None] <= costs.room[d])
        stage.append(np.where(fits, costs.time[d][None, :] - costs.time[d][:, None], NEVER))
    value = np.full((2**count, count, cuts), NEVER, np.int64)
    came = np.zeros((2**count, count, cuts, 2), np.int64)
    for d in first:
        value[1 << d, d] = stage[d][0]
        came[1 << d, d, :] = (0, -1)
    crossing = _crossings(costs)
    for chosen in range(1, 2**count):
        for last in (d for d in range(count) if chosen >> d & 1):
            if (value[chosen, last] >= NEVER).all():
                continue
            for node in (d for d in range(count) if not chosen >> d & 1):
                grown = chosen | 1 << node
                onwards = np.maximum(value[chosen, last], crossing[last, node])
                made = np.maximum(onwards[:, None], stage[node])
                start = made.argmin(axis=0)
                least = made[start, np.arange(cuts)]
                better = least < value[grown, node]
                value[grown, node][better] = least[better]
                came[grown, node][better] = np.stack([start, np.full(cuts, last)], axis=1)[better]
    ends = value[:, :, -1]
    at, node = divmod(int(ends.argmin()), count)
    if ends[at, node] >= NEVER:
        return None
    pieces, cut = list[Piece](), cuts - 1
    while node >= 0:
        pieces.append((node, cut))
        start, previous = came[at, node, cut].tolist()
        at, node, cut = at ^ 1 << node, previous, start
    return pieces[::-1]


def _crossings(costs: Costs) -> Array:
    """(N, N, L + 1): ticks of what crosses a cut from one device to another; 0 at the ends."""
    count, layers = len(costs.room), len(costs.layers)
    found = np.zeros((count, count, layers + 1), np.int64)
    for a in range(count):
        for b in range(count):
            if a != b:
                found[a, b, 1:layers] = [costs.transfer(cut, a, b) for cut in range(1, layers)]
    return found


def _none(why: str, begin: float) -> SolveResult:
    return SolveResult(Status.UNKNOWN, Stop.DONE, reason=why, notes={"cpu_s": time.process_time() - begin})
