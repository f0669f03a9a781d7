"""One device under one cycle time as plain numbers, for the models and the exact algorithm.

The limits of Eq. (5) leave every count in ``lower..upper`` and reduce to one work limit, one memory limit (hard mode)
and one time limit; see :class:`Chain`.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from mapgap.problems.neuron_masking import SHARE, Instance, Rate
from mapgap.problems.neuron_masking.instance import Objective


@dataclass(frozen=True)
class Chain:
    """Numbers of one device of an instance under one of its cycle times; I layers.

    Attributes
    ----------
    inputs : int
        n_0.
    lower, upper : (I,)
        least_i and N_i.
    work, weights, features : (I,)
        Coefficients of Eqs. (1) and (2).
    contributions : (I,) rows of N_i
        U of every neuron.
    objective : str
    work_limit : int
        The smaller of b_W and b_T - O_T, for T >= W + O_T.
    time_limit : int
        b_T - O_T: what work and transfers may take.
    memory_limit : int
        b_M.
    hard : bool
    transfer, spill : Rate
    """

    inputs: int
    lower: tuple[int, ...]
    upper: tuple[int, ...]
    work: tuple[int, ...]
    weights: tuple[int, ...]
    features: tuple[int, ...]
    contributions: tuple[tuple[int, ...], ...]
    objective: Objective
    work_limit: int
    time_limit: int
    memory_limit: int
    hard: bool
    transfer: Rate
    spill: Rate

    @classmethod
    def of(cls, instance: Instance, device: int = 0, cycle: int = 0) -> Chain:
        """Numbers of a device under a cycle time, both by index."""
        part, layers = instance.devices[device], instance.layers
        time_limit = part.time_limit[cycle] - part.overhead
        return cls(
            inputs=instance.inputs,
            lower=tuple(layer.least for layer in layers),
            upper=tuple(layer.neurons for layer in layers),
            work=tuple(layer.work for layer in layers),
            weights=tuple(layer.weights for layer in layers),
            features=tuple(layer.features for layer in layers),
            contributions=part.contributions,
            objective=instance.objective,
            work_limit=min(part.work_limit[cycle], time_limit),
            time_limit=time_limit,
            memory_limit=part.memory_limit,
            hard=instance.memory_mode == "hard",
            transfer=part.transfer,
            spill=part.spill,
        )

    @cached_property
    def value(self) -> tuple[tuple[int, ...], ...]:
        """``value[i][n]`` is what n kept neurons of layer i add to the objective; concave in n.

        Empty for the objective ``smallest_share``; for ``rate`` as for ``contribution``.
        """
        if self.objective == "smallest_share":
            return ()
        if self.objective == "neurons":
            return tuple(tuple(range(most + 1)) for most in self.upper)
        return tuple(tuple(accumulate(sorted(row, reverse=True), initial=0)) for row in self.contributions)

    def __len__(self) -> int:
        return len(self.lower)

    def totals(self, kept: Sequence[int]) -> tuple[int, int]:
        """W and M."""
        pairs = [a * b for a, b in zip((self.inputs, *kept), kept, strict=False)]
        work = sum(c * pair for c, pair in zip(self.work, pairs, strict=True))
        memory = sum(c * pair for c, pair in zip(self.weights, pairs, strict=True))
        return work, memory + sum(c * n for c, n in zip(self.features, kept, strict=True))

    def allows(self, work: int, memory: int) -> bool:
        """Eq. (5) for given W and M."""
        if work > self.work_limit or (self.hard and memory > self.memory_limit):
            return False
        return work + self.transfer_ticks(memory) + self.spill_ticks(memory) <= self.time_limit

    def fits(self, kept: Sequence[int]) -> bool:
        """Eq. (5)."""
        return self.allows(*self.totals(kept))

    def transfer_ticks(self, memory: int) -> int:
        return -(-self.transfer.ticks * memory // self.transfer.per)

    def spill_ticks(self, memory: int) -> int:
        """Only where memory is not hard."""
        over = 0 if self.hard else max(0, memory - self.memory_limit)
        return -(-self.spill.ticks * over // self.spill.per)

    def worth(self, kept: Sequence[int]) -> int:
        """The objective."""
        if self.objective == "smallest_share":
            return min(SHARE * n // most for n, most in zip(kept, self.upper, strict=True))
        return sum(row[n] for row, n in zip(self.value, kept, strict=True))

    @property
    def whole_totals(self) -> tuple[int, int]:
        """W and M of the unmasked model."""
        return self.totals(self.upper)

    def fill(self, kept: Sequence[int]) -> tuple[int, ...]:
        """Add single neurons to a mask within the limits, most valuable first, while the limits allow it.

        Costs grow with every count, so a layer that cannot take another neuron never can again.
        """
        value, upper, work_of, weights_of = self.value, self.upper, self.work, self.weights
        last = len(upper) - 1
        now = [*kept, 0]
        work, memory = self.totals(kept)
        waiting = [(row[n] - row[n + 1], i) for i, row in enumerate(value) if (n := now[i]) < upper[i]]
        heapq.heapify(waiting)
        while waiting:
            _, i = waiting[0]
            before = now[i - 1] if i else self.inputs
            more_work, more_memory = work_of[i] * before, weights_of[i] * before + self.features[i]
            if i < last:
                more_work += work_of[i + 1] * now[i + 1]
                more_memory += weights_of[i + 1] * now[i + 1]
            if not self.allows(work + more_work, memory + more_memory):
                heapq.heappop(waiting)
                continue
            work, memory = work + more_work, memory + more_memory
            now[i] = n = now[i] + 1
            if n == upper[i]:
                heapq.heappop(waiting)
            else:
                heapq.heapreplace(waiting, (value[i][n] - value[i][n + 1], i))
        return tuple(now[:-1])
