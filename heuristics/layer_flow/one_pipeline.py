"""One pipeline: nodes one after the other, no two side by side.

Such a pipeline passes F if every node that it uses holds a number of layers with a throughput of at least F, and these
numbers add up to L. The largest such F is found by bisection over the entries of the tables: a smaller F allows all
that a larger one allows. Which numbers add up to L is a sum of subsets.

Links come second: from a node on, the next one is taken that has the widest link, up to F; of equal ones the one with
the fewest other ways to be reached. So where links are narrow the flow is less than F.
"""

from __future__ import annotations

from mapgap.core import Budget, SolveResult, Status, Stop
from mapgap.problems.layer_flow import Instance, Plan


def run(instance: Instance, budget: Budget) -> SolveResult:
    """The pipeline of the largest common throughput."""
    values = sorted({t for node in instance.nodes for t in node.throughput}, reverse=True)
    low, high = 0, len(values)  # the first value that is small enough lies in [low, high)
    while low < high:
        middle = (low + high) // 2
        if shares(instance, values[middle]) is None:
            low = middle + 1
        else:
            high = middle
    held = shares(instance, values[low]) if low < len(values) else None
    plan = placed(instance, held or {}, values[low] if held else 0)
    return SolveResult(Status.FEASIBLE, Stop.DONE, plan)


def shares(instance: Instance, flow: int) -> dict[int, int] | None:
    """Numbers of layers by node that add up to L, each with a throughput of at least ``flow``; ``None`` if none do."""
    reached = [1]  # bit s: the first nodes can hold s layers together
    for node in instance.nodes:
        sums = reached[-1]
        for k, t in enumerate(node.throughput, 1):
            if t >= flow:
                sums |= reached[-1] << k
        reached.append(sums & ((2 << instance.layers) - 1))
    left = instance.layers
    if not reached[-1] >> left & 1:
        return None
    found: dict[int, int] = {}
    for i in reversed(range(len(instance.nodes))):
        table = instance.nodes[i].throughput
        fitting = [k for k, t in enumerate(table, 1) if t >= flow and k <= left and reached[i] >> (left - k) & 1]
        if fitting:
            found[i] = fitting[-1]
            left -= fitting[-1]
    return found


def placed(instance: Instance, held: dict[int, int], flow: int) -> Plan:
    """The nodes in an order along wide links; those without layers hold the first one."""
    starts, counts = [0] * len(instance.nodes), [1] * len(instance.nodes)
    left, at, last = set(held), 0, -1
    while left:
        widths = instance.entry if last < 0 else instance.links[last]

        ways = {i: sum(instance.links[j][i] >= flow for j in left) for i in left}
        last = min(left, key=lambda i: (-min(widths[i], flow), ways[i], instance.exit[i], i))
        starts[last], counts[last] = at, held[last]
        at += held[last]
        left.remove(last)
    return Plan(starts=tuple(starts), counts=tuple(counts))
