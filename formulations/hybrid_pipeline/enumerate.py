"""Brute force: every cut into stages and every choice of disjoint groups, each stage with the shares of Eq. (7).

Other shares need not be tried: a plan is never credited for shares that miss Eq. (7) (rule 6 of the problem), so the
plan with those of Eq. (7) is at least as good. Nothing else is assumed; devices are not even known to be equal.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from mapgap.core import Budget, PlanError, SolveResult, Status, Stop
from mapgap.problems.hybrid_pipeline import Instance, Plan, Stage
from mapgap.problems.hybrid_pipeline.evaluate import (
    best_shares,
    evaluate,
    migration_ticks,
    round_latency,
    round_value,
    warm_up,
)
from mapgap.problems.hybrid_pipeline.lowered.batching import every_micro_batch

LIMIT = 300_000
"""Most plans that are tried."""


def ordered_groups(devices: tuple[int, ...], stages: int, everyone: bool) -> Iterator[tuple[tuple[int, ...], ...]]:
    """Every sequence of ``stages`` disjoint non-empty groups; with ``everyone`` they cover all devices."""
    if stages == 0:
        if not (everyone and devices):
            yield ()
        return
    for size in range(1, len(devices) - stages + 2):
        for group in combinations(devices, size):
            rest = tuple(d for d in devices if d not in group)
            for others in ordered_groups(rest, stages - 1, everyone):
                yield (group, *others)


def cuts(layers: int, stages: int) -> Iterator[tuple[int, ...]]:
    """Every ``0 = c_0 < c_1 < ... < c_stages = layers``."""
    for inner in combinations(range(1, layers), stages - 1):
        yield (0, *inner, layers)


def count_plans(layers: int, devices: int) -> int:
    """Number of (cuts, groups) with idle devices allowed, an upper bound without."""
    total = 0
    ways = [1] + [0] * devices  # sequences of s groups: sum over s-subsets by inclusion of one more group
    for stages in range(1, min(layers, devices) + 1):
        ways = [sum(ways[k - s] * _choose(devices - (k - s), s) for s in range(1, k + 1)) for k in range(devices + 1)]
        total += _choose(layers - 1, stages - 1) * sum(ways)
    return total


def _choose(n: int, k: int) -> int:
    value = 1
    for i in range(k):
        value = value * (n - i) // (i + 1)
    return value


def plans(instance: Instance) -> Iterator[Plan | None]:
    """Every cut and every choice of groups with the shares of Eq. (7); ``None`` where the memory holds no such plan."""
    (micro_batch,) = instance.micro_batch_sizes
    last, devices = len(instance.layers), tuple(range(len(instance.devices)))
    known: dict[tuple[int, int, tuple[int, ...], int], Stage | None] = {}
    for stages in range(1, min(last, len(devices)) + 1):
        for groups in ordered_groups(devices, stages, instance.all_devices):
            if not instance.execution.replication and any(len(group) > 1 for group in groups):
                continue
            for cut in cuts(last, stages):
                chosen: list[Stage] = []
                for p, group in enumerate(groups):
                    kept = warm_up(stages - 1 - p, instance.mini_batch // micro_batch, instance.execution)
                    key = (cut[p], cut[p + 1], group, kept)
                    if key not in known:
                        known[key] = _stage(instance, *key, micro_batch)
                    stage = known[key]
                    if stage is None:
                        break
                    chosen.append(stage)
                yield Plan(micro_batch=micro_batch, stages=tuple(chosen)) if len(chosen) == stages else None


def _stage(
    instance: Instance, start: int, stop: int, group: tuple[int, ...], kept: int, micro_batch: int
) -> Stage | None:
    """The stage with the shares of Eq. (7), or ``None`` where the memory does not hold it."""
    bare = Stage(start=start, stop=stop, devices=group, shares=(0,) * len(group))
    shares = best_shares(instance, bare, micro_batch, kept)
    return None if shares is None else bare.model_copy(update={"shares": shares})


@every_micro_batch
def run(instance: Instance, budget: Budget) -> SolveResult:
    """Try everything; UNKNOWN with a reason if that is too much or the time runs out."""
    number = count_plans(len(instance.layers), len(instance.devices))
    if number > LIMIT:
        return SolveResult(Status.UNKNOWN, Stop.DONE, reason=f"{number} cuts and groups, at most {LIMIT} tried")
    rounds = 1 if instance.replanning is None else instance.replanning.rounds
    best: tuple[int, Plan] | None = None
    tried = 0
    for tried, plan in enumerate(plans(instance), 1):
        if tried % 64 == 0 and budget.exhausted:
            held = None if best is None else best[1]
            return SolveResult(Status.UNKNOWN if held is None else Status.FEASIBLE, Stop.TIME, plan=held)
        if plan is None:
            continue
        steps = round_latency(instance, plan, [stage.shares for stage in plan.stages])
        value = rounds * round_value(instance, steps) + migration_ticks(instance, plan)
        if best is None or value < best[0]:
            best = (value, plan)
            budget.report(plan=plan)
    notes = {"plans": tried}
    if best is None:
        reason = f"memory: no shares fit in any of {tried} cuts and groups"
        return SolveResult(Status.INFEASIBLE, Stop.PROVED, enumerated=True, reason=reason, notes=notes)
    checked = evaluate(instance, best[1])
    if not checked.feasible or checked.objective != best[0]:
        raise PlanError(f"enumeration found {best[0]}, the evaluator {checked.objective}, {checked.violations}")
    return SolveResult(Status.OPTIMAL, Stop.PROVED, best[1], best[0], best[0], enumerated=True, notes=notes)
