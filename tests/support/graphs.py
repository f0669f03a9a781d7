"""Small random graphs of layers, and all their plans by brute force over ideals."""

from itertools import combinations, product

import numpy as np

from mapgap.problems.hybrid_pipeline import Device, DeviceType, Execution, Graph, Instance, Layer, Plan, Stage, Tensor
from mapgap.problems.hybrid_pipeline.evaluate import best_shares, evaluate, warm_up


def random_graph(seed, **fixed):
    """An instance of at most six layers on at most three devices; times of 10^3 to 10^6 ticks."""
    rng = np.random.default_rng([seed, 31])
    count, devices, kinds = int(rng.integers(3, 7)), int(rng.integers(2, 4)), int(rng.integers(1, 3))
    communication = fixed.get("communication", str(rng.choice(["step", "load", "free", "tensors"])))
    training = bool(rng.integers(2))
    rules = {
        "training": training,
        "replication": communication != "tensors" and bool(rng.integers(2)),
        "communication": communication,
        "stored": str(rng.choice(["warm_up", "one", "all"])),
        "allreduce": str(rng.choice(["round", "micro_batch", "rotating"])),
        **fixed,
    }
    batch = 1 + int(rng.integers(2)) * rules["replication"]

    def table():
        base = rng.integers(10**3, 10**6, count) * (rng.random(count) > 0.2)
        return tuple(tuple(int(t * y) for y in range(1, batch + 1)) for t in base.tolist())

    edges = tuple((u, v) for u, v in combinations(range(count), 2) if rng.random() < 0.35)
    tensors = gradients = None
    if communication == "tensors" and rng.random() < 0.5:  # of backward passes along other ways
        tensors, gradients = (
            tuple(
                Tensor(layers=tuple(rng.permutation(count)[: int(rng.integers(2, 4))].tolist()), size=int(size))
                for size in rng.integers(0, 10**5, int(rng.integers(1, 5)))
            )
            for _ in range(2)
        )
    graph = Graph(
        edges=edges,
        together=(tuple(sorted(rng.permutation(count)[:2].tolist())),) if rng.random() < 0.3 else (),
        unsupported=tuple((int(rng.integers(count)),) if rng.random() < 0.4 else () for _ in range(kinds)),
        hosts=(0,) if communication == "tensors" and rng.random() < 0.3 else (),
        tensors=tensors,
        gradients=gradients,
    )
    types = tuple(
        DeviceType(name=f"K{t}", memory=int(rng.integers(60, 700)), forward=table(), backward=table())
        for t in range(kinds)
    )
    equal = communication in ("load", "tensors") or rng.random() < 0.5
    rates = np.full((devices, devices), 10**8) if equal else rng.integers(10**7, 10**9, (devices, devices))
    rates = np.maximum(rates, rates.T)
    return Instance(
        name=f"graph_{seed}",
        mini_batch=4 * batch,
        micro_batch_sizes=(batch,),
        tick_ns=1000,
        memory_unit_bytes=1,
        types=types,
        devices=tuple(Device(name=f"D{d}", type=int(rng.integers(kinds))) for d in range(devices)),
        bandwidth=tuple(map(tuple, rates.tolist())),
        layers=tuple(
            Layer(
                name=f"l{i}",
                output_bytes=int(rng.integers(0, 10**7)),
                weight_bytes=int(rng.integers(0, 10**6)),
                state_memory=int(rng.integers(1, 60)),
                activation_memory=int(rng.integers(0, 10)),
            )
            for i in range(count)
        ),
        all_devices=bool(rng.random() < 0.2),
        execution=Execution(**rules),
        objective=str(rng.choice(["latency", "bottleneck"])),
        graph=graph,
    )


def ideals(instance):
    """Every set of layers that holds what its layers read."""
    count = len(instance.layers)
    sets = (frozenset(i for i in range(count) if bits >> i & 1) for bits in range(2**count))
    return [each for each in sets if all(u in each for u, v in instance.edges if v in each)]


def all_plans(instance):
    """Every chain of ideals with every choice of groups, with the shares of Eq. (7)."""
    (batch,) = instance.micro_batch_sizes
    known, everything = ideals(instance), frozenset(range(len(instance.layers)))
    groups = [
        group
        for size in range(1, len(instance.devices) + 1)
        for group in combinations(range(len(instance.devices)), size)
        if size == 1 or instance.execution.replication
    ]

    def chains(done):
        if done == everything:
            yield ()
        for each in known:
            if done < each:
                yield from ((each - done, *rest) for rest in chains(each))

    for sets in chains(frozenset()):
        if len(sets) > len(instance.devices):
            continue
        for chosen in product(groups, repeat=len(sets)):
            members = [d for group in chosen for d in group]
            if len(set(members)) < len(members):
                continue
            stages = []
            for p, (layers, devices) in enumerate(zip(sets, chosen, strict=True)):
                bare = Stage(layers=tuple(sorted(layers)), devices=devices, shares=())
                kept = warm_up(len(sets) - 1 - p, instance.mini_batch // batch, instance.execution)
                shares = best_shares(instance, bare, batch, kept)
                if shares is None:
                    break
                stages.append(bare.model_copy(update={"shares": shares}))
            else:
                yield Plan(micro_batch=batch, stages=tuple(stages))


def least(instance):
    """The optimum by brute force; ``None`` without a feasible plan."""
    values = [found.objective for plan in all_plans(instance) if (found := evaluate(instance, plan)).feasible]
    return min(values, default=None)
