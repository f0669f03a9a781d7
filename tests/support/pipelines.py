"""What the tests of hybrid pipelines share."""

from itertools import combinations

from mapgap.heuristics.hybrid_pipeline.asteroid import plan_of
from mapgap.problems.hybrid_pipeline import Device, DeviceType, Instance, Layer


def example(**changes):
    """The four-layer example of docs/methods/hybrid_pipeline.md."""

    def layer(name, size, weight):
        return Layer(name=name, output_bytes=size, weight_bytes=weight, state_memory=1, activation_memory=1)

    fast = DeviceType(name="fast", memory=100, forward=((1, 2),) * 4, backward=((2, 4),) * 4)
    slow = DeviceType(name="slow", memory=100, forward=((2, 4),) * 4, backward=((4, 8),) * 4)
    fields = {
        "name": "example",
        "mini_batch": 8,
        "micro_batch_sizes": (2,),
        "tick_ns": 1000,
        "memory_unit_bytes": 1,
        "types": (fast, slow),
        "devices": (Device(name="F", type=0), Device(name="S", type=1)),
        "bandwidth": ((0, 10**6), (10**6, 0)),
        "layers": (layer("l1", 3, 2), layer("l2", 1, 4), layer("l3", 2, 6), layer("l4", 0, 8)),
        "all_devices": False,
    }
    return Instance(**(fields | changes))


def pipelines_along(seen):
    """Every pipeline that uses all places of the order, with the shares of Algorithm 1."""
    n, count = len(seen.order), seen.layers
    for stages in range(1, min(n, count) + 1):
        for cuts in combinations(range(1, count), stages - 1):
            for places in combinations(range(1, n), stages - 1):
                c, g = [0, *cuts, count], [0, *places, n]
                plan = plan_of(seen, [(c[p], c[p + 1], g[p], g[p + 1]) for p in range(stages)])
                if plan is not None:
                    yield plan
