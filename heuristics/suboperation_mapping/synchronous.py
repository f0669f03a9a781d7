"""Cost of synchronous layer-by-layer sharding (MTrain, Sec. III-B) and the exact choice of a sharding per layer.

Notation: ``r`` ratio of the batch; ``w(a, v)`` ticks to move ``v`` bytes between accelerator ``a`` and the host, whose
link has the largest peer-to-peer bandwidth out of ``a``. A layer is sharded in one of these ways:

========= ==================================================================================================
data      accelerator ``a`` computes ``r_a`` samples (split layers)
tensor    accelerator ``a`` computes the part ``r_a / B`` of the output channels for all samples, in as many ticks as
          ``r_a`` samples; inputs are needed whole, losses of inputs arise as whole partial sums (split layers)
single a  everything on accelerator ``a``
========= ==================================================================================================

Latency = sum over layers of FP, BP and WU, each as slow as its slowest accelerator, plus per precedence
``u -> v`` a gather to and a scatter from the host of the activation, and of the loss, plus for a data-parallel WU a
gather and a scatter of dW. The host moves one tensor part at a time. Between two layers on the same single accelerator
nothing is moved (Alpa's resharding cost 0); the network input and the loss at the network's output cost nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from mapgap.problems.suboperation_mapping import Instance

DATA, TENSOR = -1, -2
"""Choices of a layer besides the index of a single accelerator."""


@dataclass(frozen=True)
class Synchronous:
    """Synchronous execution of ``instance`` with shares ``ratio``; a sharding is one choice per layer."""

    instance: Instance
    ratio: tuple[int, ...]

    def choices(self, layer: int, tensor: bool, single: bool = True) -> list[int]:
        """What layer number ``layer`` may choose; ``tensor`` and ``single`` admit these for split layers."""
        singles = list(range(len(self.instance.accelerators)))
        if self.instance.layers[layer].kind == "fused":
            return singles
        return [DATA, *([TENSOR] if tensor else []), *(singles if single else [])]

    @cached_property
    def _link(self) -> list[tuple[int, int]]:
        """Bytes per second between each accelerator and the host, and ns of latency; 0 with a single accelerator."""
        found = []
        for i, row in enumerate(self.instance.bandwidth):
            links = ((rate, -self.instance.late_ns(i, j)) for j, rate in enumerate(row) if j != i)
            rate, late = max(links, default=(0, 0))
            found.append((rate, -late))
        return found

    def host_ticks(self, accelerator: int, size: int) -> int:
        """``w(a, v)``, rounded up."""
        rate, late = self._link[accelerator]
        if not rate or not size:
            return 0
        return -(-(size * 10**9 + late * rate) // (rate * self.instance.tick_ns))

    def layer_ticks(self, layer: int, choice: int) -> int:
        """FP, BP and WU of a layer: the slowest accelerator each, and the exchange of dW."""
        spec = self.instance.layers[layer]
        active = [a for a, samples in enumerate(self.ratio) if samples]
        total = 0
        for table in (spec.fp, spec.bp, spec.wu):
            if table and choice >= 0:
                total += table[choice][-1]
            elif table:
                total += max(table[a][self.ratio[a] - 1] for a in active)
        if choice == DATA and len(active) > 1:
            total += 2 * sum(self.host_ticks(a, spec.weight_bytes) for a in active)
        return total

    def _parts(self, choice: int, size: int, whole: bool) -> int:
        """Ticks to move a tensor of ``size`` bytes per sample between the host and a layer's shards."""
        batch = self.instance.batch
        if choice >= 0:
            return self.host_ticks(choice, size * batch)
        return sum(
            self.host_ticks(a, size * (batch if whole else samples)) for a, samples in enumerate(self.ratio) if samples
        )

    def edge_ticks(self, size: int, producer: int, consumer: int) -> int:
        """Gather and scatter of the activation (FP) and of the loss (BP) of one precedence."""
        if producer >= 0 and producer == consumer:
            return 0
        produced = self._parts(producer, size, whole=False)
        consumed = self._parts(consumer, size, whole=consumer == TENSOR)
        return 2 * (produced + consumed)

    def latency(self, sharding: Sequence[int]) -> int:
        """Ticks of one synchronous iteration."""
        total = 0
        for index, layer in enumerate(self.instance.layers):
            total += self.layer_ticks(index, sharding[index])
            for edge in layer.inputs:
                total += self.edge_ticks(edge.bytes, sharding[edge.source], sharding[index])
        return total

    def best(self, tensor: bool, single: bool = True) -> tuple[int, tuple[int, ...]]:
        """Least latency and a sharding that attains it, by dynamic programming over the layers.

        The state is the choice of every layer whose output is still to be read; ties go to the lexicographically
        smallest sharding.
        """
        layers = self.instance.layers
        last_use = list(range(len(layers)))
        for index, layer in enumerate(layers):
            for edge in layer.inputs:
                last_use[edge.source] = index
        states: dict[tuple[int, ...], tuple[int, tuple[int, ...]]] = {(): (0, ())}
        frontier: list[int] = []
        for index, layer in enumerate(layers):
            costs = {c: self.layer_ticks(index, c) for c in self.choices(index, tensor, single)}
            place = {source: i for i, source in enumerate(frontier)}
            moves = [
                (
                    place[edge.source],
                    {
                        (u, v): self.edge_ticks(edge.bytes, u, v)
                        for u in self.choices(edge.source, tensor, single)
                        for v in costs
                    },
                )
                for edge in layer.inputs
            ]
            kept = [i for i, source in enumerate(frontier) if last_use[source] > index]
            following: dict[tuple[int, ...], tuple[int, tuple[int, ...]]] = {}
            for state, (value, sharding) in states.items():
                for choice, cost in costs.items():
                    moved = sum(table[state[i], choice] for i, table in moves)
                    key = (*(state[i] for i in kept), *((choice,) if last_use[index] > index else ()))
                    entry = (value + cost + moved, (*sharding, choice))
                    if key not in following or entry < following[key]:
                        following[key] = entry
            frontier = [frontier[i] for i in kept] + ([index] if last_use[index] > index else [])
            states = following
        return min(states.values())
