"""What no placement exceeds, without a solver."""

from __future__ import annotations

from mapgap.problems.layer_flow.instance import Instance


def area_allows(instance: Instance, value: int) -> bool:
    """Whether all nodes together can do the work of a flow of so many units.

    A flow of ``F`` needs nodes of throughput ``F`` in all on each of the L layers, and of a node more than ``F`` is of
    no use: ``sum_i max_k k min(T_i(k), F) >= L F``. The left side over F falls with F, so what is not allowed never
    is again.
    """
    area = sum(max(k * min(t, value) for k, t in enumerate(node.throughput, 1)) for node in instance.nodes)
    return area >= instance.layers * value


def flow_limit(instance: Instance) -> int:
    """The largest flow that area, entries and exits allow."""
    low, high = 0, min(sum(instance.entry), sum(instance.exit)) + 1
    while high - low > 1:
        middle = (low + high) // 2
        if area_allows(instance, middle):
            low = middle
        else:
            high = middle
    return low
