"""Random instances and plans of layer flow; the same seed makes the same."""

from __future__ import annotations

import random

from mapgap.instances.drawing import generated
from mapgap.problems.layer_flow import Instance, Node, Plan


def tiny(seed: int) -> Instance:
    """Up to three nodes and four layers, small numbers; tables with zeros, some not monotone; links missing."""
    rng = random.Random(f"layer-flow-tiny-{seed}")
    return _few(rng, "tiny", seed, lambda: rng.choice((0, *range(1, 13))))


def realistic(seed: int) -> Instance:
    """As tiny, with numbers from 10^3 to 10^7."""
    rng = random.Random(f"layer-flow-realistic-{seed}")
    return _few(rng, "realistic", seed, lambda: rng.choice((0, *(round(10 ** rng.uniform(3, 7)) for _ in range(12)))))


def _few(rng: random.Random, family: str, seed: int, draw: object) -> Instance:
    assert callable(draw)
    count, layers = rng.choice((1, 2, 3, 3, 3)), rng.randint(2, 4)
    missing, free = rng.choice((0.0, 0.3, 0.5)), rng.random() < 0.5
    tables: list[tuple[int, ...]] = []
    for _ in range(count):
        if tables and rng.random() < 0.4:  # equal nodes
            tables.append(tables[-1])
            continue
        row = [draw() for _ in range(rng.randint(1, layers if count < 3 else min(3, layers)))]
        tables.append(tuple(sorted(row, reverse=True) if rng.random() < 0.6 else row))
    wide = max(1, *(t for row in tables for t in row))

    def link() -> int:
        return 0 if rng.random() < missing else wide if free else int(draw())

    return Instance(
        **generated(family, seed),
        scale=1,
        layers=layers,
        partial=rng.random() < 0.5,
        nodes=tuple(
            Node(name=f"node{i + 1}", kind=f"kind{tables.index(row) + 1}", throughput=row)
            for i, row in enumerate(tables)
        ),
        entry=tuple(link() for _ in range(count)),
        exit=tuple(link() for _ in range(count)),
        links=tuple(tuple(0 if i == j else link() for j in range(count)) for i in range(count)),
    )


def small(seed: int) -> Instance:
    """Five nodes of two kinds, ten layers, monotone tables, wide links."""
    rng = random.Random(f"layer-flow-small-{seed}")
    return _cluster(rng, "small", seed, 10, [3, 2], regions=1)


def cluster(seed: int) -> Instance:
    """Like the clusters of the paper: 12 to 24 nodes of three kinds, 40 or 80 layers, one region or three."""
    rng = random.Random(f"layer-flow-cluster-{seed}")
    layers, kinds = rng.choice([(40, [2, 4, 6]), (80, [4, 8, 12])])
    return _cluster(rng, "cluster", seed, layers, kinds, regions=rng.choice((1, 3)))


def _cluster(rng: random.Random, family: str, seed: int, layers: int, kinds: list[int], regions: int) -> Instance:
    """Throughput falls a little faster than 1/k; between regions links are narrow."""
    nodes = []
    for kind, count in enumerate(kinds):
        most = rng.randint(max(2, layers // 10), max(3, layers // 4))
        speed, loss = rng.uniform(2e5, 2e7), rng.uniform(1.0, 1.3)
        table = tuple(round(speed / k**loss) for k in range(1, most + 1))
        nodes += [Node(name=f"kind{kind + 1}_{i + 1}", kind=f"kind{kind + 1}", throughput=table) for i in range(count)]
    wide = max(node.throughput[0] for node in nodes)
    place = [rng.randrange(regions) for _ in nodes]

    def link(i: int, j: int) -> int:
        if i == j:
            return 0
        return wide if place[i] == place[j] else round(rng.uniform(0.3, 1.0) * wide / layers)

    return Instance(
        **generated(family, seed),
        scale=1000,
        layers=layers,
        nodes=tuple(nodes),
        entry=tuple(wide for _ in nodes),
        exit=tuple(wide for _ in nodes),
        links=tuple(tuple(link(i, j) for j in range(len(nodes))) for i in range(len(nodes))),
    )


def random_plan(instance: Instance, rng: random.Random) -> Plan:
    """Intervals that often join; some end behind the model."""
    count = len(instance.nodes)
    starts, counts, at = [0] * count, [1] * count, 0
    for i in rng.sample(range(count), count):
        held = rng.randint(1, len(instance.nodes[i].throughput))
        if rng.random() < 0.2 or at >= instance.layers:
            at = rng.choice((0, 0, rng.randrange(instance.layers)))
        starts[i] = at if rng.random() < 0.3 else min(at, instance.layers - held)
        counts[i] = held
        at = starts[i] + held
    return Plan(starts=tuple(starts), counts=tuple(counts))
