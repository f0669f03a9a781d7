"""Random plans, and seeded random instances, built directly in work units, memory units and ticks."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from mapgap.core import ACTIVITY_LIMIT
from mapgap.instances.drawing import LARGEST, generated, largest_valid
from mapgap.problems.neuron_masking import Device, Instance, Layer, Mask, Plan, Rate, costs
from mapgap.problems.neuron_masking.instance import Objective

OBJECTIVES: tuple[Objective, ...] = ("neurons", "contribution", "smallest_share")
BYTES_PER_UNIT = 8

SPILLING = 8
"""From seed ``SPILLING ** 2`` on, every such instance of the family ``tiny`` spills memory and pays for it in time."""

#: Layers and neurons per layer of the family ``scaling``, by seed modulo the length.
LADDER = ((5, 64), (10, 128), (20, 256), (20, 1024), (50, 1024), (100, 2048))


def tiny(seed: int) -> Instance:
    """Two to four layers of at most five neurons; a fleet in a quarter of the seeds; one seed in eight infeasible.

    Limits drawn one by one hardly ever make spilled memory cost a neuron; some later seeds are drawn so that it does.
    """
    return _tiny(seed, "tiny", (6, 6, 12), 1)


def realistic(seed: int) -> Instance:
    """Like ``tiny``, with costs and contributions of up to seven digits; in a third of the seeds some cost 1 or 0."""

    def make(largest: int) -> Instance:
        rng = random.Random(f"neuron-realistic-{seed}")
        most = [max(1, int(largest ** rng.uniform(0.4, 1.0))) for _ in range(3)]
        if rng.random() < 1 / 3:
            most[rng.randrange(3)] = 1
        return _tiny(seed, "realistic", (most[0], most[1], most[2]), rng.choice((1, 1000, LARGEST // 10_000)))

    return largest_valid(make)


def _tiny(seed: int, family: str, largest: tuple[int, int, int], worth: int) -> Instance:
    rng = random.Random(f"neuron-{family}-{seed}")
    count = rng.randint(2, 4)
    layers = _layers(rng, [rng.randint(1, 5) for _ in range(count)], largest=largest, whole=rng.random() < 0.5)
    fleet = rng.random() < 0.25
    kind = "infeasible" if rng.random() < 0.125 else rng.choice(("time", "work", "memory", "all"))
    if seed >= SPILLING**2 and seed % SPILLING == 0:
        kind = "spill"
    return _instance(
        rng,
        family,
        seed,
        layers,
        inputs=rng.randint(1, 3),
        devices=rng.randint(2, 3) if fleet else 1,
        cycles=rng.randint(2, 3) if fleet else 1,
        binding=kind,
        objective=rng.choice((*OBJECTIVES, "rate")),
        worth=worth,
    )


def small(seed: int) -> Instance:
    """Four to seven layers of 6 to 40 neurons, the last one whole; one straggler."""
    rng = random.Random(f"neuron-small-{seed}")
    sizes = [rng.randint(6, 40) for _ in range(rng.randint(4, 7))]
    layers = _layers(rng, sizes, largest=(50, 20, 100), whole=True)
    return _instance(
        rng,
        "small",
        seed,
        layers,
        inputs=rng.randint(1, 3),
        devices=1,
        cycles=1,
        binding=rng.choice(("time", "work", "memory", "all")),
        objective=OBJECTIVES[seed % 3],
    )


def fleet(seed: int) -> Instance:
    """Three to five devices, four to six cycle times, a network like those of ``small``; contribution per hour."""
    rng = random.Random(f"neuron-fleet-{seed}")
    sizes = [rng.randint(6, 30) for _ in range(rng.randint(3, 5))]
    layers = _layers(rng, sizes, largest=(50, 20, 100), whole=True)
    return _instance(
        rng,
        "fleet",
        seed,
        layers,
        inputs=3,
        devices=rng.randint(3, 5),
        cycles=rng.randint(4, 6),
        binding="all",
        objective="rate",
    )


def scaling(seed: int) -> Instance:
    """Chains of 5 x 64 to 100 x 2,048 neurons (``LADDER``), a tenth of every layer kept at least.

    Above 20 x 1,024 all work and weight coefficients are 1; :func:`ladder` has varied ones there.
    """
    # Half of the activity limit, shared by all pairs of neurons.
    return _rung(seed, "scaling", lambda count, width: (ACTIVITY_LIMIT // 2 // (count * width * width), 1.0))


def ladder(seed: int) -> Instance:
    """As ``scaling`` with varied coefficients on every rung: up to 8 on the highest ones, small ones more often.

    2^30 leaves little for pairs of neurons in 100 layers of 2,048, so widths vary, too: from a fifth to the whole.
    """
    return _rung(seed, "ladder", lambda count, width: (max(8, ACTIVITY_LIMIT // 2 // (count * width * width)), 0.2))


def _rung(seed: int, family: str, shape: Callable[[int, int], tuple[int, float]]) -> Instance:
    """An instance of the ladder; ``shape`` says how large coefficients are at most, and the narrowest layer's share."""
    rng = random.Random(f"neuron-{family}-{seed}")
    count, width = LADDER[seed % len(LADDER)]
    largest, narrow = shape(count, width)
    most = max(1, min(64, largest))

    def layer(i: int) -> Layer:
        neurons = width if narrow == 1 else int(width * rng.uniform(narrow, 1))
        return Layer(
            name=f"layer{i + 1}",
            neurons=neurons,
            least=neurons if i == count - 1 else -(-neurons // 10),
            work=_coefficient(rng, most, narrow < 1),
            weights=_coefficient(rng, most, narrow < 1),
            features=rng.randint(0, 64),
        )

    return _instance(
        rng,
        family,
        f"{count}x{width}_{seed}",
        tuple(layer(i) for i in range(count)),
        inputs=3,
        devices=1,
        cycles=1,
        binding="all",
        objective=OBJECTIVES[seed // len(LADDER) % 3],
        most_ticks=1,  # three would take the largest rung past the activity limit
    )


def _coefficient(rng: random.Random, most: int, skewed: bool) -> int:
    """From 1 to ``most``; skewed: each size of number as likely as the next."""
    return int(most ** rng.random()) if skewed else rng.randint(1, most)


def _layers(rng: random.Random, sizes: Sequence[int], largest: tuple[int, int, int], whole: bool) -> tuple[Layer, ...]:
    """Layers of random coefficients up to ``largest`` (work, weights, features); the last one whole if asked for."""
    layers = []
    for i, size in enumerate(sizes):
        least = size if whole and i == len(sizes) - 1 else rng.randint(1, max(1, size // 2))
        work, weights, features = (rng.randint(1, most) for most in largest)
        layers.append(
            Layer(name=f"layer{i + 1}", neurons=size, least=least, work=work, weights=weights, features=features)
        )
    return tuple(layers)


def _instance(
    rng: random.Random,
    family: str,
    label: int | str,
    layers: tuple[Layer, ...],
    inputs: int,
    devices: int,
    cycles: int,
    binding: str,
    objective: Objective,
    most_ticks: int = 3,
    worth: int = 1,
) -> Instance:
    """Limits between the costs of the least and of the whole model; ``binding`` says which of them are tight.

    Contributions have a mean of 1000 times ``worth``.
    """
    loose = Instance(
        **generated(family, label),
        objective=objective,
        memory_mode="spill" if binding == "spill" else rng.choice(("hard", "spill")),
        top_percent=rng.choice((20, 50, 80, 100)),  # with 0 ELFISH draws any neurons, and may lose everything
        memory_unit_bytes=BYTES_PER_UNIT,
        work_unit_macs=1,
        cycle_ms=tuple(sorted(rng.sample(range(1000, 5000), cycles))),
        inputs=inputs,
        layers=layers,
        devices=tuple(_loose_device(rng, d, layers, cycles, most_ticks, worth) for d in range(devices)),
    )
    tight = rng.randrange(devices)  # the device whose limits nothing meets, in an infeasible instance
    limited = tuple(
        _limited(rng, loose, device, "none" if binding == "infeasible" and d != tight else binding)
        for d, device in enumerate(loose.devices)
    )
    return loose.changed(devices=limited)


def _loose_device(
    rng: random.Random, index: int, layers: tuple[Layer, ...], cycles: int, most_ticks: int, worth: int
) -> Device:
    """A device that no limit binds; contributions of exponential distribution, as sizes of updates are skewed."""
    return Device(
        name=f"device{index + 1}",
        tick_ps=rng.randint(10**5, 10**7),
        transfer=Rate(ticks=rng.randint(0, most_ticks), per=rng.randint(2, 9)),
        spill=Rate(ticks=rng.randint(1, most_ticks), per=rng.randint(2, 5)),
        overhead=rng.randint(0, 20),
        time_limit=(ACTIVITY_LIMIT,) * cycles,
        work_limit=(ACTIVITY_LIMIT,) * cycles,
        memory_limit=ACTIVITY_LIMIT,
        contributions=tuple(
            tuple(int(worth * rng.expovariate(0.001)) for _ in range(layer.neurons)) for layer in layers
        ),
    )


def _limited(rng: random.Random, loose: Instance, device: Device, binding: str) -> Device:
    low, high = (costs(loose, device, kept) for kept in _extremes(loose))

    def per_cycle(limit: int) -> tuple[int, ...]:
        return tuple(limit * ms // loose.cycle_ms[-1] for ms in loose.cycle_ms)

    def between(least: int, most: int) -> int:
        return int(least + rng.uniform(0.02, 0.9) * (most - least))

    changes: dict[str, int | tuple[int, ...]] = {}
    if binding in ("time", "all"):
        limit = between(low.time, high.time + (high.memory - low.memory if loose.memory_mode == "spill" else 0))
        changes["time_limit"] = per_cycle(limit)
    if binding in ("work", "all"):
        changes["work_limit"] = per_cycle(between(low.work, high.work))
    if binding == "spill":
        device = device.model_copy(update={"memory_limit": between(low.memory, high.memory)})
        least, whole = (costs(loose, device, kept).time for kept in _extremes(loose))
        changes["time_limit"] = per_cycle(between(least, whole))
    if binding in ("memory", "all"):
        changes["memory_limit"] = between(low.memory, high.memory)
    if binding == "infeasible":
        worst = rng.choice(("time_limit", "work_limit"))
        limit = max(0, (low.time if worst == "time_limit" else low.work) - 1)
        changes[worst] = per_cycle(limit)
    return device.model_copy(update=changes)


def _extremes(instance: Instance) -> tuple[list[int], list[int]]:
    """The least and the whole model."""
    return [layer.least for layer in instance.layers], [layer.neurons for layer in instance.layers]


OUTSIDE = 0.03
"""Part of the counts that lie outside of ``least..neurons``."""
STATED = 0.1
"""Part of the plans that state which neurons they keep: those of largest contribution, or any."""


def random_plan(instance: Instance, rng: random.Random) -> Plan:
    """A cycle time and a mask of every device: from all devices at the least neurons to all whole, and a bit beyond."""
    level = rng.random() ** 2  # limits bind between the least and the whole model
    stated = rng.random() < STATED
    masks = tuple(_mask(instance, device, rng, level, stated) for device in instance.devices)
    return Plan(cycle=rng.randrange(len(instance.cycle_ms)), masks=masks)


def _mask(instance: Instance, device: Device, rng: random.Random, level: float, stated: bool) -> Mask:
    kept = []
    for layer in instance.layers:
        room = layer.neurons - layer.least
        count = layer.least + round(rng.uniform(0, 2) * level * room)
        inside = min(count, layer.neurons)
        kept.append(rng.choice((layer.least - 1, layer.neurons + 1)) if rng.random() < OUTSIDE else inside)
    if not stated:
        return Mask(kept=tuple(kept))
    chosen = []
    for i, (layer, n) in enumerate(zip(instance.layers, kept, strict=True)):
        ranking = device.ranking(i) if rng.random() < 0.5 else rng.sample(range(layer.neurons), layer.neurons)
        chosen.append(tuple(sorted(ranking[:n])) if rng.random() < 0.5 else None)
    return Mask(kept=tuple(kept), chosen=tuple(chosen))
