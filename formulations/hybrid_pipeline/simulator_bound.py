"""A lower bound on the simulated round (half duplex) of every plan, whatever its shares; it bounds the model as well.

For a pipeline suffix whose first input arrives at time 0, let ``D`` bound the end of the last backward pass of its
first stage and ``Z`` the end of everything, AllReduce included. With ``T`` of Eq. (7) and the smallest possible
``f = max_d F_d`` and ``b = max_d B_d`` over all shares (each for itself), a stage and a link of c each way before give

    D' = max(M T, f + 2 M c + b, f + 2c + D + b),    Z' = max(D' + Ta, f + c + Z):

some member is busy for at least ``M T``; the link carries 2 M transfers between the first forward and the last
backward pass; the suffix cannot begin before ``f + c`` and its last gradient needs ``c + b`` more. Since ``E >= T``,
``E_f >= f`` and ``E_b >= b``, the closed form is never below ``Z`` either. Both labels rise with D and Z, so Pareto
sets give the smallest Z of all plans.
"""

from __future__ import annotations

import time

from mapgap.core import Budget, SolveResult, Status, Stop
from mapgap.formulations.hybrid_pipeline.label.first_plan import OPEN, Path, approach
from mapgap.formulations.hybrid_pipeline.label_python import Interpreted, Label, Search, front_sums
from mapgap.problems.hybrid_pipeline import Execution, Instance
from mapgap.problems.hybrid_pipeline.lowered.arrays import Lowered, infeasible, lower
from mapgap.problems.hybrid_pipeline.lowered.batching import every_micro_batch


class SimulatorSearch(Search):
    """The search of ``label_dp`` with labels (D, Z)."""

    def pair(self, i: int, j: int, group: int, kept: int) -> tuple[int, int] | None:
        """``(f, b)``: the smallest largest forward and backward time, each with its own shares."""
        forward = self.costs.total(i, j, group, kept, table=1)
        backward = self.costs.total(i, j, group, kept, table=2)
        return None if forward is None or backward is None else (forward, backward)

    def longest(self, i: int, j: int, group: int, kept: int, pair: tuple[int, int]) -> int:
        """T of Eq. (7)."""
        total = self.costs.total(i, j, group, kept)
        assert total is not None
        return total

    def combine(
        self, label: Label | None, pair: tuple[int, int], busy: int, c: int, ta: int, moved: int
    ) -> tuple[int, int, int]:
        """(D', Z', G') as in the module docstring."""
        if label is None:
            return busy, busy + ta, moved
        both = sum(pair)
        d = max(busy, both + 2 * self.low.micro_batches * c, both + 2 * c + label.d)
        return d, max(d + ta, pair[0] + c + label.a), max(moved, label.g)

    @staticmethod
    def total(d: int, a: int) -> int:
        """Z, which is at least D."""
        return a


class _Simulated(Interpreted):
    """The search over (D, Z); sums in front are those of least forward and least backward times."""

    def __init__(self, low: Lowered, everyone: bool) -> None:
        super().__init__(low, everyone)
        backward = front_sums(low, low.backward)
        self.front = [[f + b for f, b in zip(*rows, strict=True)] for rows in zip(self.front_f, backward, strict=True)]

    def __call__(self, cuts: list[int], upper: int) -> tuple[int, Path, dict[str, int]]:
        return SimulatorSearch(self.low, self.costs, self.front, self.front_f, self.everyone, cuts, upper).run()


def simulator_bound(instance: Instance) -> int | None:
    """Smallest Z (with a failure: R Z + G) of an instance with one micro-batch size; ``None`` where no plan exists."""
    low = lower(instance)
    engine = _Simulated(low, instance.all_devices)
    upper, _, _ = approach(low, engine)
    value, _, _ = engine(list(range(low.layers + 1)), upper)
    return value if value < OPEN else None


@every_micro_batch
def run(instance: Instance, budget: Budget) -> SolveResult:
    """The bound only, no plan."""
    if instance.execution != Execution() or instance.objective != "latency":
        reason = "the bound is proven for Asteroid's execution and the latency only"
        return SolveResult(Status.UNKNOWN, Stop.DONE, reason=reason)
    begin = time.process_time()
    value = simulator_bound(instance)
    notes = {"search_s": time.process_time() - begin}
    if value is None:
        return infeasible(instance, "memory: no cut and choice of groups holds a micro-batch", notes=notes)
    return SolveResult(Status.UNKNOWN, Stop.DONE, bound=value, reason="a bound, not a plan", notes=notes)
