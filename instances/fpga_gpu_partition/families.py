"""Random plans, and seeded random instances in ticks, energy units and bytes; whole networks of the library besides."""

from __future__ import annotations

import random
from typing import Any

from mapgap.instances.drawing import enlarged, generated, stretched
from mapgap.instances.editing import each, edited
from mapgap.instances.fpga_gpu_partition.cases import each_layer
from mapgap.instances.fpga_gpu_partition.compact import build
from mapgap.problems.fpga_gpu_partition import (
    NETWORK_INPUT,
    OBJECTIVES,
    Fabric,
    Instance,
    Layer,
    Link,
    Module,
    Option,
    Plan,
    Read,
    Side,
)

Rng = random.Random
#: Modules of tiny instances: per layer the positions that it reads; -1 is the module's input. The last layer leaves.
_SHAPES: dict[str, tuple[tuple[int, ...], ...]] = {
    "plain": ((-1,),),
    "chain": ((-1,), (0,)),
    "branch": ((-1,), (-1,), (0, 1)),
    "fire": ((-1,), (0,), (0,), (1, 2)),
    "residual": ((-1,), (0,), (1, -1)),
    "bottleneck": ((-1,), (0,), (1,)),
    "reduction": ((-1,), (-1,), (0,), (1,), (2, 3)),
}
_TINY = ("plain", "chain", "branch", "fire", "residual", "bottleneck")
TINY_PLANS = 1500
"""Most plans of a tiny instance."""
NETWORKS = ("efficientnet_b1", "resnet56", "shufflenetv2_x0_5", "resnet50", "mobilenetv2")
"""Networks of 63 to 155 layers, by seed modulo their number."""
FITS = ("fit1", "fit2", "fit3", "fit4", "fit5", "fit6")


def tiny(seed: int) -> Instance:
    """One to three modules, at most 1,500 plans.

    Every constraint binds in some seeds: multipliers, M20K, a limit on latency or on energy; a layer that only the
    FPGA can run may not fit. All four objectives occur. Some networks have two outputs, an output of two parts, or a
    module that reads a tensor from before its predecessor.
    """
    rng = Rng(f"tiny-{seed}")
    shapes = [rng.choice(_TINY) for _ in range(rng.randint(1, 3))]
    while True:
        instance = _instance(rng, "tiny", seed, shapes, rich=False)
        plans = 1
        for layer in instance.layers:
            plans *= len(layer.options)
        if plans <= TINY_PLANS:
            return _limited(rng, instance)
        shapes = shapes[1:] or ["chain"]


def realistic(seed: int) -> Instance:
    """Like ``tiny``, with times and energies of 10^3 to 10^7.

    Realistic is the size of the numbers, not their proportions: one option of a layer may cost 10^4 times as much as
    another, and baselines have gaps of more than a million percent. No report has a mean over it.
    """
    small = tiny(seed).changed(latency_limit=None, energy_limit=None)
    fields = ("gpu_ticks", "fpga_ticks", "gpu_energy", "fpga_energy")
    most = max(getattr(option, name) for layer in small.layers for option in layer.options for name in fields)

    def change(rng: Rng, largest: int) -> dict[str, Any]:
        ticks, energy = stretched(rng, most, largest), stretched(rng, most, largest)
        maps = dict(zip(fields, (ticks, ticks, energy, energy), strict=True))

        def longer(option: Option) -> dict[str, int]:
            return {name: stretch(getattr(option, name)) for name, stretch in maps.items()}

        slow = rng.choice((1, 1000, 33_331))
        return {
            "link": edited(small.link, bytes_per_second=small.link.bytes_per_second // slow),
            "modules": each_layer(small, lambda layer: edited(layer, options=each(layer.options, longer))),
        }

    return _limited(Rng(f"realistic-limits-{seed}"), enlarged(small, seed, change))


def small(seed: int) -> Instance:
    """Four to eight modules of every shape, up to twelve options per layer."""
    rng = Rng(f"small-{seed}")
    shapes = [rng.choice(tuple(_SHAPES)) for _ in range(rng.randint(4, 8))]
    return _instance(rng, "small", seed, shapes, rich=True)


def scaling(seed: int) -> Instance:
    """10 to 10,000 modules of repeated kinds with few options: seed 11 has 120, seed 1000 has 10 again."""
    rng = Rng(f"scaling-{seed}")
    shapes = [("fire", "bottleneck", "residual")[i % 3] for i in range(10 * (seed % 1000 + 1))]
    return _instance(rng, "scaling", seed, shapes, rich=False)


def networks(seed: int) -> Instance:
    """A whole network of the library with splits of every kind of layer, on a fabric and a link of varied size.

    ``efficientnet_b1`` has 155 layers, and with folds up to 4 more than 2,800 options.
    """
    rng = Rng(f"networks-{seed}")
    return build(
        NETWORKS[seed % len(NETWORKS)],
        max_fold=rng.choice((1, 2, 4)),
        **generated("networks", seed),
        splits="all",
        cost_model=rng.choice(FITS),
        bandwidth_gbs=rng.choice((0.5, 2.5, 8.0)),
        multipliers=rng.choice((1296, 5184, 20736)),
        m20k=rng.choice((293, 587, 2348)),
        objective=OBJECTIVES[seed // len(NETWORKS) % len(OBJECTIVES)],
    )


def _instance(rng: Rng, family: str, seed: int, shapes: list[str], *, rich: bool) -> Instance:
    modules: list[Module] = []
    sizes: list[tuple[int, ...]] = []  # bytes of the parts of every layer so far
    entry = [Read(source=NETWORK_INPUT)]
    input_bytes = rng.randint(2, 12) * 1000
    for number, shape in enumerate(shapes):
        first, layers = len(sizes), []
        for position, sources in enumerate(_SHAPES[shape]):
            reads = [r for s in sources for r in (entry if s < 0 else _parts(first + s, sizes[first + s]))]
            if position == 0 and first and rng.random() < 0.1 and not any(r.source == 0 for r in reads):
                reads += _parts(0, sizes[0])  # a skip over modules
            lengths = [input_bytes if r.source < 0 else sizes[r.source][r.part] for r in reads]
            last = position == len(_SHAPES[shape]) - 1
            two = last and rng.random() < 0.1
            sizes.append(tuple(rng.randint(1, 12) * 1000 for _ in range(2 if two else 1)))
            joins = len(sources) > 1
            layers.append(
                Layer(
                    name=f"m{number}.l{position}",
                    operation="join" if joins else rng.choice(("conv3x3", "conv1x1", "depthwise")),
                    reads=tuple(reads),
                    outputs=sizes[-1],
                    options=_join_options(rng) if joins else _options(rng, lengths, sum(sizes[-1]), rich),
                    macs=rng.randint(1, 9) * 1000,
                )
            )
        modules.append(Module(name=f"m{number}", kind=shape, layers=tuple(layers)))
        skipped = rng.random() < 0.05 and number + 1 < len(shapes)
        entry = entry if skipped and first else _parts(len(sizes) - 1, sizes[-1])
    options = [layer.options for module in modules for layer in module.layers]
    return Instance(
        **generated(family, seed),
        objective=rng.choice(OBJECTIVES),
        energy_weight=rng.randint(1, 3),
        latency_weight=rng.randint(1, 5),
        tick_ns=1000,
        energy_unit_nj=1000,
        standby_mw=rng.choice((0, 700, 2300)),
        input_bytes=input_bytes,
        fabric=Fabric(
            multipliers=int(rng.uniform(0.1, 0.7) * sum(max(o.multipliers for o in some) for some in options)),
            m20k=int(rng.uniform(0.2, 0.9) * sum(max(o.m20k for o in some) for some in options)),
        ),
        link=Link(
            bytes_per_second=rng.choice((1, 2, 5)) * 10**9,
            setup_ticks=rng.randint(0, 4),
            setup_energy=rng.randint(0, 3),
            energy_per_mb=rng.choice((0, 300, 1000)),
        ),
        modules=tuple(modules),
    )


def _parts(source: int, sizes: tuple[int, ...]) -> list[Read]:
    return [Read(source=source, part=part) for part in range(len(sizes))]


def _join_options(rng: Rng) -> tuple[Option, ...]:
    """An addition or concatenation: free or nearly so on either side."""
    ticks = rng.randint(0, 1)
    return (
        Option(name="gpu", kind="gpu", home="gpu", gpu_ticks=ticks, gpu_energy=ticks),
        Option(name="fpga", kind="fpga", home="fpga", fpga_ticks=ticks, m20k=rng.randint(0, 1), fold=1),
    )


def _options(rng: Rng, reads: list[int], makes: int, rich: bool) -> tuple[Option, ...]:
    """The GPU, the FPGA with one or two folds, and splits; now and then only the FPGA."""
    ticks, joules = rng.randint(8, 30), rng.randint(10, 60)
    fast, low = rng.randint(2, 20), rng.randint(1, 20)
    multipliers, blocks = rng.randint(4, 40), rng.randint(1, 6)
    options = []
    if rng.random() > 0.06:
        options.append(Option(name="gpu", kind="gpu", home="gpu", gpu_ticks=ticks, gpu_energy=joules))
    for fold in (1, 2, 4) if rich else rng.choice(((1,), (1, 2))):
        options.append(
            Option(
                name=f"fpga/{fold}",
                kind="fpga",
                home="fpga",
                fpga_ticks=fast * fold,
                fpga_energy=low + fold - 1,
                multipliers=-(-multipliers // fold),
                m20k=blocks,
                fold=fold,
            )
        )
    shares = (1, 2, 3) if rich else (rng.choice((1, 2, 3)),)
    for quarter in shares:
        if not rich and rng.random() < 0.4:
            continue
        for split in ("input", "output", "channel") if rich else (rng.choice(("input", "output", "channel")),):
            home: Side = rng.choice(("gpu", "fpga"))
            part = [r * quarter // 4 for r in reads]
            options.append(
                Option(
                    name=f"{split} {quarter}/4 to {home}",
                    kind="split",
                    home=home,
                    split=split,
                    channels=quarter,
                    fold=1,
                    gpu_ticks=ticks * (4 - quarter) // 4,
                    gpu_energy=joules * (4 - quarter) // 4,
                    fpga_ticks=fast,
                    fpga_energy=low * quarter // 4,
                    multipliers=-(-multipliers * quarter // 4),
                    m20k=-(-blocks * quarter // 4),
                    gpu_reads=tuple(reads if split == "output" else [r - p for r, p in zip(reads, part, strict=True)]),
                    fpga_reads=tuple(reads if split == "output" else part),
                    gpu_makes=makes if split == "input" else makes * (4 - quarter) // 4,
                    fpga_makes=makes if split == "input" else makes * quarter // 4,
                )
            )
    return tuple(options)


def _limited(rng: Rng, instance: Instance) -> Instance:
    """Limits on latency or energy in a third of the seeds, around what the GPU alone would need."""
    kind = rng.choice((None, None, None, None, "latency_limit", "energy_limit"))
    if kind is None:
        return instance
    first = [layer.options[0] for layer in instance.layers]
    latency = sum(o.gpu_ticks + o.fpga_ticks for o in first)
    energy = sum(o.gpu_energy + o.fpga_energy for o in first) + instance.standby_energy(latency)
    limit = int((latency if kind == "latency_limit" else energy) * rng.uniform(0.5, 1.1))
    return edited(instance, **{kind: limit})


def random_plan(instance: Instance, rng: random.Random) -> Plan:
    """One option per layer, whatever the fabric and the limits allow.

    A plan of options drawn at random mostly exceeds the fabric; so each plan draws how many of its layers take the
    option with the fewest multipliers instead.
    """
    modest = rng.random()
    chosen = []
    for layer in instance.layers:
        small = min(layer.options, key=lambda option: (option.multipliers, option.m20k))
        chosen.append(small if rng.random() < modest else rng.choice(layer.options))
    return Plan(options=tuple(option.name for option in chosen))
