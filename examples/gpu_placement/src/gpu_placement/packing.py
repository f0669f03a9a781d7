"""Bisection over the pressure: for a fixed z the GPUs are equal bins.

The pressure of a GPU is at most z exactly if ``100 * sum d[j] <= z (M - sum s[j])``, that is, if its models fit with
weights ``a[j] = 100 d[j] + z s[j]`` into a bin of ``z M``; as demands are at least 1, some memory is then free. With a
larger z a packing stays one, so the optimum is the smallest z that packs.

Bin completion packs one bin after the other, each around the heaviest model that is left: some bin has to hold it, and
bins are equal. What a bin leaves empty may not exceed what all bins together can leave empty. Sets that were tried in
vain are remembered. Models that must be together are one item; those that must be apart never meet in a bin.
"""

from gpu_placement.evaluate import evaluate
from gpu_placement.instance import SCALE, Instance, Plan
from mapgap.core import Budget, SolveResult, Status, Stop


class OutOfTime(Exception):
    """The budget is used up."""


def groups(instance: Instance) -> list[list[int]]:
    """Models that must share a GPU, as lists; every model is in one."""
    leader = list(range(len(instance.models)))
    for a, b in instance.together:
        old, new = leader[a], leader[b]
        leader = [new if each == old else each for each in leader]
    return [[j for j in range(len(leader)) if leader[j] == top] for top in sorted(set(leader))]


def packed(instance: Instance, items: list[list[int]], z: int, budget: Budget) -> Plan | None:
    """A plan of pressure at most z; ``None`` if there is none.

    Raises
    ------
    OutOfTime
    """
    weight = {k: sum(SCALE * instance.demands[j] + z * instance.sizes[j] for j in item) for k, item in enumerate(items)}
    order = sorted(weight, key=lambda k: -weight[k])
    apart = {frozenset(pair) for pair in instance.apart}
    foes = {
        k: {m for m in weight if any(frozenset((a, b)) in apart for a in items[k] for b in items[m])} for k in weight
    }
    capacity = z * instance.memory
    in_vain: set[tuple[int, tuple[int, ...]]] = set()

    def completions(bin_: list[int], load: int, rest: list[int], least: int) -> list[list[int]]:
        """Every bin that begins like this one, from the remaining items in their order, and is full enough."""
        found = [bin_] if load >= least else []
        for n, k in enumerate(rest):
            if load + sum(weight[m] for m in rest[n:]) < least:
                break
            if load + weight[k] <= capacity and not foes[k] & set(bin_):
                found += completions([*bin_, k], load + weight[k], rest[n + 1 :], least)
        return found

    def place(left: list[int], bins: int) -> list[list[int]] | None:
        """Bins for all items that are left."""
        if not left:
            return []
        if budget.exhausted:
            raise OutOfTime
        empty = bins * capacity - sum(weight[k] for k in left)
        if bins == 0 or empty < 0 or (bins, tuple(left)) in in_vain:
            return None
        first, rest = left[0], left[1:]
        if foes[first] & {first} or weight[first] > capacity:
            return None
        for bin_ in completions([first], weight[first], rest, capacity - empty):
            others = place([k for k in rest if k not in bin_], bins - 1)
            if others is not None:
                return [bin_, *others]
        in_vain.add((bins, tuple(left)))
        return None

    found = place(order, len(instance.gpus))
    if found is None:
        return None
    gpu = {j: i for i, bin_ in enumerate(found) for k in bin_ for j in items[k]}
    return Plan(gpus=tuple(gpu[j] for j in range(len(instance.models))))


def run(instance: Instance, budget: Budget) -> SolveResult:
    """Bisection between the area and the limit."""
    items = groups(instance)
    free = len(instance.gpus) * instance.memory - sum(instance.sizes)
    low = -(-SCALE * sum(instance.demands) // free) if free > 0 else instance.limit + 1
    best, high = None, instance.limit
    try:
        best = packed(instance, items, high, budget) if low <= high else None
        if best is None:
            return SolveResult(Status.INFEASIBLE, Stop.PROVED, reason=f"no packing at the limit of {instance.limit}")
        high = evaluate(instance, best).objective or high
        while low < high:
            middle = (low + high) // 2
            plan = packed(instance, items, middle, budget)
            if plan is None:
                low = middle + 1
            else:
                best, high = plan, evaluate(instance, plan).objective or middle
            budget.report(plan=best, bound=low)
    except OutOfTime:
        status = Status.UNKNOWN if best is None else Status.FEASIBLE
        return SolveResult(status, Stop.TIME, best, bound=low if best else None, reason="out of time")
    return SolveResult(Status.OPTIMAL, Stop.PROVED, best, bound=high, claimed=high)
