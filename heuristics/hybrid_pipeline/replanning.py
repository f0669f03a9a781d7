"""Re-planning after a failure (Asteroid, Sec. 3.4 and 5.5): new cuts for the groups that are left, or everything anew.

- ``flops_recut``, the paper's lightweight way: the groups stay; the layers are cut again such that the FLOPs of a stage
  are proportional to the computing capacity of its group, the sum of ``v_d`` (Eq. 9 over the whole network).
- ``cuts_only``: the groups stay; the best cuts for them, migration included (labels as in a dynamic programme over
  cuts: latency is max-plus in the stages).
- ``heavy_rescheduling``: Algorithm 2 on the survivors. The objective counts direct migration; the note
  ``replay`` has the transport through the coordinator that the paper describes.

A stage that lost its only device disappears. Shares inside groups solve Eq. (7).
"""

from __future__ import annotations

import time
from functools import partial
from itertools import accumulate
from typing import NamedTuple

from mapgap.core import Budget, SolveResult, Status, Stop
from mapgap.heuristics.hybrid_pipeline import nested
from mapgap.heuristics.hybrid_pipeline.asteroid import run as run_asteroid
from mapgap.heuristics.hybrid_pipeline.chain import chain, report, result
from mapgap.problems.hybrid_pipeline import Instance, Plan, Stage
from mapgap.problems.hybrid_pipeline.evaluate import best_shares, evaluate, warm_up
from mapgap.problems.hybrid_pipeline.lowered.batching import every_micro_batch
from mapgap.problems.hybrid_pipeline.lowered.replay import replayed
from mapgap.problems.hybrid_pipeline.lowered.tables import lacking

NO_FAILURE = SolveResult(Status.UNKNOWN, Stop.DONE, reason="the instance has no failure, so no old plan")


def old_groups(instance: Instance) -> list[tuple[int, ...]]:
    """Surviving groups in pipeline order, at most one per layer."""
    assert instance.replanning is not None
    groups = [stage.devices for stage in instance.replanning.stages if stage.devices]
    return groups[: len(instance.layers)]


def capacity(instance: Instance, group: tuple[int, ...]) -> float:
    """Sum of v_d (Eq. 9), per tick."""
    (batch,) = instance.micro_batch_sizes
    total = 0.0
    for device in group:
        kind = instance.device_type(device)
        ticks = sum(f[batch - 1] + b[batch - 1] for f, b in zip(kind.forward, kind.backward, strict=True))
        total += 1.0 / max(ticks, 1)
    return total


def flops_cuts(instance: Instance, groups: list[tuple[int, ...]]) -> list[int]:
    """Ends of the stages: FLOPs in front of each end in proportion to the capacity up to it, a layer at least each."""
    sums = [0]
    for layer in instance.layers:
        sums.append(sums[-1] + layer.flops)
    strength = [capacity(instance, group) for group in groups]
    ends: list[int] = []
    for s in range(len(groups) - 1):
        wanted = sums[-1] * sum(strength[: s + 1]) / sum(strength)
        lowest, highest = (ends[-1] if ends else 0) + 1, len(instance.layers) - (len(groups) - 1 - s)
        ends.append(min(range(lowest, highest + 1), key=lambda cut: abs(sums[cut] - wanted)))
    return [*ends, len(instance.layers)]


def with_cuts(instance: Instance, groups: list[tuple[int, ...]], ends: list[int]) -> Plan | None:
    """The plan of groups and ends of stages with the shares of Eq. (7); ``None`` where the memory does not hold it."""
    (batch,) = instance.micro_batch_sizes
    stages: list[Stage] = []
    for s, (group, end) in enumerate(zip(groups, ends, strict=True)):
        start = ends[s - 1] if s else 0
        bare = Stage(start=start, stop=end, devices=group, shares=(0,) * len(group))
        shares = best_shares(instance, bare, batch, warm_up(len(groups) - 1 - s, instance.mini_batch // batch))
        if shares is None:
            return None
        stages.append(bare.model_copy(update={"shares": shares}))
    return Plan(micro_batch=batch, stages=tuple(stages))


@replayed
@every_micro_batch
def run_flops_recut(instance: Instance, budget: Budget) -> SolveResult:
    """The lightweight re-planning of Sec. 3.4."""
    if instance.replanning is None:
        return NO_FAILURE
    begin = time.process_time()
    groups = old_groups(instance)
    return report(budget, result(instance, with_cuts(instance, groups, flops_cuts(instance, groups)), begin))


class _Label(NamedTuple):
    """Of a suffix: largest aligned step, AllReduce excess, migration, and the ends of its stages."""

    d: int
    a: int
    g: int
    ends: tuple[int, ...]


class _FixedGroups:
    """Best cuts for a sequence of groups, seen as a chain that has the members of each group side by side."""

    def __init__(self, instance: Instance, groups: list[tuple[int, ...]], budget: Budget) -> None:
        self.instance, self.groups, self.budget = instance, groups, budget
        self.seen = chain(instance, [device for group in groups for device in group])
        ends = list(accumulate(len(group) for group in groups))
        self.places = list(zip([0, *ends], ends, strict=False))
        assert instance.replanning is not None
        self.rounds = instance.replanning.rounds
        self.fetched = {device: self._fetched(device) for device in self.seen.order}

    def times(self, s: int, i: int, j: int) -> tuple[int, int, int] | None:
        """``(T, E_f, E_b)`` of Eqs. (7), (8) of stage s on layers ``[i, j)``, ``None`` without memory."""
        kept = warm_up(len(self.groups) - 1 - s, self.seen.tables.micro_batches)
        return nested.times(self.seen, (i, j, *self.places[s]), kept)

    def _fetched(self, device: int) -> list[tuple[int, list[int]]]:
        """What a device lacks, by source (rule 11): bandwidth, and bytes of the layers before each cut."""
        found = lacking(self.instance, device)
        return [(self.instance.bandwidth[d][device], [0, *accumulate(sizes)]) for d, sizes in found.items()]

    def migration(self, group: tuple[int, ...], i: int, j: int) -> int:
        """Migration ticks of the slowest member of one stage."""
        transfers = [(bytes_[j] - bytes_[i], rate) for device in group for rate, bytes_ in self.fetched[device]]
        return max((self.instance.transfer_ticks(size, rate) for size, rate in transfers), default=0)

    def best(self, upper: int) -> list[int] | None:
        """Ends of the stages of the best plan below ``upper``."""
        last = len(self.instance.layers)
        labels: dict[int, list[_Label]] = {last: [_Label(0, 0, 0, ())]}
        for s in range(len(self.groups) - 1, -1, -1):
            found: dict[int, list[_Label]] = {}
            starts = [0] if s == 0 else range(s, last - (len(self.groups) - 1 - s))
            for i in starts:
                for j in sorted(cut for cut in labels if cut > i):
                    if self.budget.exhausted:
                        return None
                    new = self._extend(s, i, j, labels[j], upper)
                    if new is None:
                        break
                    if new:
                        found[i] = _pareto(found.get(i, []) + new)
            labels = found
        ends = min(labels.get(0, []), key=lambda x: self.rounds * (x.d + x.a) + x.g, default=None)
        return None if ends is None else list(ends.ends)

    def _extend(self, s: int, i: int, j: int, behind: list[_Label], upper: int) -> list[_Label] | None:
        """Labels with stage s on ``[i, j)`` in front; ``None`` when no longer stage can be below ``upper`` either."""
        seen, left, (a, b) = self.seen, len(self.groups) - 1 - s, self.places[s]
        costs = self.times(s, i, j)
        m, rounds = seen.tables.micro_batches, self.rounds
        if costs is None or rounds * m * costs[0] >= upper:
            return None  # longer stages store more and take no less
        e, eb = costs[1] + costs[2], costs[2]
        c = int(seen.tables.comm[seen.tables.level[a, b, self.places[s + 1][1]], j]) if left else 0
        new: list[_Label] = []
        if rounds * max(m * e, e + 2 * m * c) >= upper:
            return new
        ta, moved = seen.allreduce((i, j, a, b)), self.migration(self.groups[s], i, j)
        for label in behind:
            d = max(m * e, e + 2 * m * c, e + 2 * c + label.d) if left else m * e
            late = max(ta, label.a - eb - c)
            g = max(moved, label.g)
            if rounds * (d + late) + g < upper or (s > 0 and rounds * d < upper):
                new.append(_Label(d, late, g, (j, *label.ends)))
        return new


def _pareto(labels: list[_Label]) -> list[_Label]:
    kept: list[_Label] = []
    for label in sorted(labels):  # by d: none that is kept has a larger one
        if not any(x.a <= label.a and x.g <= label.g for x in kept):
            kept.append(label)
    return kept


@replayed
@every_micro_batch
def run_cuts_only(instance: Instance, budget: Budget) -> SolveResult:
    """Best cuts for the surviving groups."""
    if instance.replanning is None:
        return NO_FAILURE
    begin = time.process_time()
    groups = old_groups(instance)
    first = run_flops_recut(instance, budget)
    upper = 2**40
    if isinstance(first.plan, Plan):
        upper = (evaluate(instance, first.plan).objective or upper) + 1
    ends = _FixedGroups(instance, groups, budget).best(upper)
    if ends is None:
        return first
    better = result(instance, with_cuts(instance, groups, ends), begin)
    return report(budget, better)


@partial(replayed, through_coordinator=True)
@every_micro_batch
def run_heavy(instance: Instance, budget: Budget) -> SolveResult:
    """Algorithm 2 on the survivors; the weights travel through the strongest device."""
    return NO_FAILURE if instance.replanning is None else run_asteroid(instance, budget)
