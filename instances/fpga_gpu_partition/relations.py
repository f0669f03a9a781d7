"""Instances of the FPGA-GPU partition whose optimum follows from that of another one.

Two facts carry all of them. A tick in which a job ends never grows when any job becomes shorter, because the queues
serve jobs in a fixed order (rule 2 of the problem). And ``ceil(k x) <= k ceil(x)`` for a whole ``k``: times and
energies that the instance derives with rounding (transfers, standby) are at most ``k`` times the old ones.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from mapgap.core import Frozen, Relation
from mapgap.instances.fpga_gpu_partition.editing import each_layer, one_layer
from mapgap.problems.fpga_gpu_partition import Instance, Layer, Module, Option

Part = TypeVar("Part", bound=Frozen)
FACTOR = 2


def relations(instance: Instance, rng: random.Random) -> list[Relation]:
    """All relations that hold for this instance."""
    link, fabric = instance.link, instance.fabric
    found = [
        *_related("twice the multipliers", instance, fabric=_with(fabric, multipliers=2 * fabric.multipliers)),
        *_related("twice the M20K blocks", instance, fabric=_with(fabric, m20k=2 * fabric.m20k)),
        *_related("twice the bandwidth", instance, link=_with(link, bytes_per_second=2 * link.bytes_per_second)),
        *_related("transfers without set-up", instance, link=_with(link, setup_ticks=0, setup_energy=0)),
        *_related("no limits", instance, latency_limit=None, energy_limit=None),
        *_related("a quicker option", instance, modules=_quicker(instance, rng)),
        *_related("an option twice", instance, equal=True, modules=_twice(instance, rng)),
        *_related("options in another order", instance, equal=True, modules=_shuffled(instance, rng)),
    ]
    if link.energy_per_mb % 2 == 0:
        wider = _with(link, bytes_per_second=2 * link.bytes_per_second, energy_per_mb=link.energy_per_mb // 2)
        found += _related(
            "twice the bytes at half the cost of each",
            instance,
            equal=True,
            input_bytes=2 * instance.input_bytes,
            link=wider,
            modules=_of_double_size(instance),
        )
    if instance.objective == "energy":
        found += _related("energy as a weighted sum", instance, equal=True, **_weighted(1, 0))
        found += _related("all energies doubled", instance, FACTOR, **_dearer(instance))
    if instance.objective == "latency":
        found += _related("latency as a weighted sum", instance, equal=True, **_weighted(0, 1))
        if instance.energy_limit is None and link.bytes_per_second % FACTOR == 0:
            found += _related("all times doubled", instance, FACTOR, **_slower(instance))
    if instance.objective == "weighted":
        weights = _weighted(FACTOR * instance.energy_weight, FACTOR * instance.latency_weight)
        found += _related("both weights doubled", instance, FACTOR, equal=True, **weights)
    return found


def _related(
    label: str, instance: Instance, factor: int = 1, equal: bool = False, **changes: Any
) -> Iterator[Relation]:
    """The relation, unless the changed instance is none (its sums grow too large)."""
    for changed in instance.if_valid(name=f"{instance.name}, {label}", **changes):
        yield Relation(label, changed, factor, equal)


def _with(part: Part, **changes: Any) -> Part:
    return part.model_copy(update=changes)


def _weighted(energy: int, latency: int) -> dict[str, Any]:
    return {"objective": "weighted", "energy_weight": energy, "latency_weight": latency}


def _slower(instance: Instance) -> dict[str, Any]:
    """Every time doubled, those of transfers up to rounding; so is the limit."""
    link, limit = instance.link, instance.latency_limit
    return {
        "link": _with(link, bytes_per_second=link.bytes_per_second // FACTOR, setup_ticks=FACTOR * link.setup_ticks),
        "latency_limit": None if limit is None else FACTOR * limit,
        "modules": _options(instance, _times("gpu_ticks", "fpga_ticks")),
    }


def _dearer(instance: Instance) -> dict[str, Any]:
    """Every energy doubled, those of transfers and of standby up to rounding; so is the limit."""
    link, limit = instance.link, instance.energy_limit
    setup, bytes_ = FACTOR * link.setup_energy, FACTOR * link.energy_per_mb
    return {
        "link": _with(link, setup_energy=setup, energy_per_mb=bytes_),
        "standby_mw": FACTOR * instance.standby_mw,
        "energy_limit": None if limit is None else FACTOR * limit,
        "modules": _options(instance, _times("gpu_energy", "fpga_energy")),
    }


def _times(*names: str) -> Callable[[Option], Option]:
    """Options with some fields times :data:`FACTOR`."""
    return lambda option: _with(option, **{name: FACTOR * getattr(option, name) for name in names})


def _quicker(instance: Instance, rng: random.Random) -> tuple[Module, ...]:
    """One option of one layer takes half the time and energy."""
    halved = ("gpu_ticks", "fpga_ticks", "gpu_energy", "fpga_energy")
    chosen = rng.choice(instance.layers)
    quick = rng.choice(chosen.options)
    better = _with(quick, **{name: getattr(quick, name) // 2 for name in halved})
    options = tuple(better if option is quick else option for option in chosen.options)
    return one_layer(instance, chosen, _with(chosen, options=options))


def _twice(instance: Instance, rng: random.Random) -> tuple[Module, ...]:
    """One option of one layer again, under another name."""
    chosen = rng.choice(instance.layers)
    copied = _with(rng.choice(chosen.options), name="the same again")
    options = (*chosen.options, copied)
    return one_layer(instance, chosen, _with(chosen, options=options))


def _shuffled(instance: Instance, rng: random.Random) -> tuple[Module, ...]:
    def shuffled(layer: Layer) -> Layer:
        return _with(layer, options=tuple(rng.sample(layer.options, len(layer.options))))

    return each_layer(instance, shuffled)


def _of_double_size(instance: Instance) -> tuple[Module, ...]:
    """Every tensor, read and part of a split with twice the bytes."""

    def doubled(layer: Layer) -> Layer:
        reads = tuple(_with(read, bytes=None if read.bytes is None else 2 * read.bytes) for read in layer.reads)
        return _with(layer, reads=reads, outputs=tuple(2 * size for size in layer.outputs))

    def parts(option: Option) -> Option:
        sizes = {name: tuple(2 * size for size in getattr(option, name)) for name in ("gpu_reads", "fpga_reads")}
        makes = {name: 2 * getattr(option, name) for name in ("gpu_makes", "fpga_makes")}
        return _with(option, **sizes, **makes)

    larger = instance.model_copy(update={"modules": each_layer(instance, doubled)})
    return _options(larger, parts)


def _options(instance: Instance, change: Callable[[Option], Option]) -> tuple[Module, ...]:
    """The modules with every option changed."""
    return each_layer(instance, lambda layer: _with(layer, options=tuple(change(option) for option in layer.options)))
