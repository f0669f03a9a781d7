"""What the tests of hybrid pipelines share."""

import random
from itertools import combinations, product

from mapgap.heuristics.hybrid_pipeline.asteroid import plan_of
from mapgap.problems.hybrid_pipeline import (
    Device,
    DeviceType,
    Execution,
    Instance,
    Layer,
    OldStage,
    Plan,
    Replanning,
    Stage,
)
from mapgap.problems.hybrid_pipeline.evaluate import evaluate


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


def compositions(total, parts):
    """All tuples of ``parts`` numbers from 0 on that add up to ``total``."""
    if parts == 1:
        yield (total,)
        return
    for first in range(total + 1):
        for others in compositions(total - first, parts - 1):
            yield (first, *others)


def all_plans(instance):
    """Every cut, every choice of disjoint groups, every choice of shares."""
    layers, devices = len(instance.layers), range(len(instance.devices))
    for size in instance.micro_batch_sizes:
        for stages in range(1, min(layers, len(devices)) + 1):
            for cuts in combinations(range(1, layers), stages - 1):
                ends = list(zip((0, *cuts), (*cuts, layers), strict=True))
                for places in product(range(stages + 1), repeat=len(devices)):  # the last place is idle
                    groups = [tuple(d for d in devices if places[d] == p) for p in range(stages)]
                    if not all(groups):
                        continue
                    for shares in product(*(list(compositions(size, len(group))) for group in groups)):
                        rows = zip(ends, groups, shares, strict=True)
                        yield Plan(
                            micro_batch=size,
                            stages=tuple(Stage(start=i, stop=j, devices=g, shares=y) for (i, j), g, y in rows),
                        )


def optimum(instance):
    """The least objective of all plans that break no rule; ``None`` if there is none."""
    results = (evaluate(instance, plan) for plan in all_plans(instance))
    return min((result.objective for result in results if result.feasible), default=None)


def realistic(seed):
    """Up to five layers and four devices; times of 10^3 to 10^6 ticks, ties, zeros, all kinds of links, failures."""
    rng = random.Random(f"realistic-{seed}")
    n = rng.randint(1, 4)
    count, batch = rng.randint(1, 5 if n < 4 else 4), rng.choice((1, 2, 2, 3, 4) if n < 4 else (1, 2))
    scale = 10 ** rng.randint(3, 5)
    tied, heaviest = rng.random() < 0.3, rng.choice((2, 20)) * scale

    def table(pace):
        rows = []
        for _ in range(count):
            base = 0 if rng.random() < 0.1 else pace * (scale if tied else rng.randint(scale // 2, scale))
            fixed = rng.choice((0, base // 3))
            rows.append(tuple(sorted(fixed + base * share // batch for share in range(1, batch + 1))))
        return tuple(rows)

    layers = tuple(
        Layer(
            name=f"l{i}",
            output_bytes=rng.choice((0, scale // 50, rng.randint(0, scale // 4))),
            weight_bytes=(weight := rng.choice((0, scale // 10, rng.randint(0, heaviest)))),
            state_memory=3 * weight,
            activation_memory=rng.choice((0, scale // 100, rng.randint(0, scale // 5))),
        )
        for i in range(count)
    )
    need = sum(layer.state_memory + 3 * batch * layer.activation_memory for layer in layers)
    kinds = tuple(
        DeviceType(
            name=f"T{t}",
            memory=rng.choice((need, 2 * need, rng.randint(need // 4, need))),
            forward=table(pace := rng.choice((1, 1, 2, 3))),
            backward=table(pace * rng.choice((1, 2))),
        )
        for t in range(rng.randint(1, n))
    )
    links, rows = rng.choice(("equal", "sites", "any")), [[0] * n for _ in range(n)]
    sites = [rng.randrange(2) for _ in range(n)]
    for d in range(n):
        for e in range(d):
            close = links == "equal" or (links == "sites" and sites[d] == sites[e])
            far = 3 * 10**8 if links == "sites" else rng.choice((3 * 10**8, 10**9, 4 * 10**9))
            rows[d][e] = rows[e][d] = 10**9 if close else far
    failure = None
    if n > 1 and rng.random() < 0.4:  # every device holds some layers, and every layer lies on a device
        held = [[tuple(sorted(rng.sample(range(count + 1), 2)))] for _ in range(n)]
        for i in range(count):
            if not any(start <= i < stop for row in held for start, stop in row):
                held[rng.randrange(n)].append((i, i + 1))
        failure = Replanning(
            failed="X",
            rounds=rng.choice((1, 1, 3)),
            stages=(OldStage(start=0, stop=count, devices=tuple(range(n))),),
            held=tuple(map(tuple, held)),
            old_latency=1,
        )
    return Instance(
        name=f"realistic_{seed}",
        mini_batch=batch * rng.randint(1, 8),
        micro_batch_sizes=(1, batch) if batch > 1 and rng.random() < 0.3 else (batch,),
        tick_ns=1,
        memory_unit_bytes=1,
        types=kinds,
        devices=tuple(Device(name=f"D{d}", type=d if d < len(kinds) else rng.randrange(len(kinds))) for d in range(n)),
        bandwidth=tuple(map(tuple, rows)),
        layers=layers,
        all_devices=rng.random() < 0.4,
        replanning=failure,
    )


def executed(seed, **fixed):
    """A realistic instance under a random execution and objective, but for what is fixed."""
    rng, base = random.Random(f"executed-{seed}"), realistic(seed)
    chosen = {
        "training": rng.random() < 0.5,
        "replication": rng.random() < 0.7,
        "allreduce": rng.choice(("round", "micro_batch", "rotating")),
        "allreduce_factor": rng.choice((2, 3, 4)),
        "medium": rng.choice(("links", "shared")),
        "communication": rng.choice(("step", "step", "load", "free")),
        "transfers": rng.choice(("one_link", "parallel")),
        "stored": rng.choice(("warm_up", "one", "all", "behind")),
    } | fixed
    n, links = len(base.devices), base.bandwidth
    if chosen["communication"] == "load":
        chosen["transfers"], links = "one_link", ((10**9,) * n,) * n
    objective = rng.choice(("latency", "bottleneck"))
    return base.changed(execution=Execution(**chosen), bandwidth=links, objective=objective)
