"""Instances of the FPGA-GPU partition whose optimum follows from that of another one.

Two facts carry all of them. A tick in which a job ends never grows when any job becomes shorter, because the queues
serve jobs in a fixed order (rule 2 of the problem). And ``ceil(k x) <= k ceil(x)`` for a whole ``k``: times and
energies that the instance derives with rounding (transfers, standby) are at most ``k`` times the old ones.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from mapgap.core import Relation
from mapgap.instances.editing import each, edited, related
from mapgap.instances.fpga_gpu_partition.cases import each_layer, one_layer
from mapgap.problems.fpga_gpu_partition import Instance, Layer, Module, Option

FACTOR = 2


def relations(instance: Instance, rng: random.Random) -> list[Relation]:
    """All relations that hold for this instance."""
    link, fabric = instance.link, instance.fabric
    rate, multipliers = link.bytes_per_second, fabric.multipliers
    at_once = edited(link, setup_ticks=0, setup_energy=0)
    found = [
        *related(instance, "twice the multipliers", equal=False, fabric=edited(fabric, multipliers=2 * multipliers)),
        *related(instance, "twice the M20K blocks", equal=False, fabric=edited(fabric, m20k=2 * fabric.m20k)),
        *related(instance, "twice the bandwidth", equal=False, link=edited(link, bytes_per_second=2 * rate)),
        *related(instance, "transfers without set-up", equal=False, link=at_once),
        *related(instance, "no limits", equal=False, latency_limit=None, energy_limit=None),
        *related(instance, "a quicker option", equal=False, modules=_quicker(instance, rng)),
        *related(instance, "an option twice", modules=_twice(instance, rng)),
        *related(instance, "options in another order", modules=_shuffled(instance, rng)),
    ]
    if link.energy_per_mb % 2 == 0:
        found += related(instance, "twice the bytes at half the cost of each", **_of_double_size(instance))
    if instance.objective == "energy":
        found += related(instance, "energy as a weighted sum", **_weighted(1, 0))
        found += related(instance, "all energies doubled", FACTOR, equal=False, **_dearer(instance))
    if instance.objective == "latency":
        found += related(instance, "latency as a weighted sum", **_weighted(0, 1))
        if instance.energy_limit is None and rate % FACTOR == 0:
            found += related(instance, "all times doubled", FACTOR, equal=False, **_slower(instance))
    if instance.objective == "weighted":
        weights = _weighted(FACTOR * instance.energy_weight, FACTOR * instance.latency_weight)
        found += related(instance, "both weights doubled", FACTOR, **weights)
    return found


def _weighted(energy: int, latency: int) -> dict[str, Any]:
    return {"objective": "weighted", "energy_weight": energy, "latency_weight": latency}


def _slower(instance: Instance) -> dict[str, Any]:
    """Every time doubled, those of transfers up to rounding; so is the limit."""
    link, limit = instance.link, instance.latency_limit
    return {
        "link": edited(link, bytes_per_second=link.bytes_per_second // FACTOR, setup_ticks=FACTOR * link.setup_ticks),
        "latency_limit": None if limit is None else FACTOR * limit,
        "modules": _options(instance, _times("gpu_ticks", "fpga_ticks")),
    }


def _dearer(instance: Instance) -> dict[str, Any]:
    """Every energy doubled, those of transfers and of standby up to rounding; so is the limit."""
    link, limit = instance.link, instance.energy_limit
    setup, moved = FACTOR * link.setup_energy, FACTOR * link.energy_per_mb
    return {
        "link": edited(link, setup_energy=setup, energy_per_mb=moved),
        "standby_mw": FACTOR * instance.standby_mw,
        "energy_limit": None if limit is None else FACTOR * limit,
        "modules": _options(instance, _times("gpu_energy", "fpga_energy")),
    }


def _of_double_size(instance: Instance) -> dict[str, Any]:
    """Every tensor, read and part of a split with twice the bytes, on a link on which each costs half."""
    link = instance.link

    def doubled(layer: Layer) -> Layer:
        reads = each(layer.reads, lambda read: {"bytes": None if read.bytes is None else 2 * read.bytes})
        return edited(layer, reads=reads, outputs=tuple(2 * size for size in layer.outputs))

    def parts(option: Option) -> dict[str, Any]:
        sizes = {name: tuple(2 * size for size in getattr(option, name)) for name in ("gpu_reads", "fpga_reads")}
        return sizes | {name: 2 * getattr(option, name) for name in ("gpu_makes", "fpga_makes")}

    larger = edited(instance, modules=each_layer(instance, doubled))
    return {
        "input_bytes": 2 * instance.input_bytes,
        "link": edited(link, bytes_per_second=2 * link.bytes_per_second, energy_per_mb=link.energy_per_mb // 2),
        "modules": _options(larger, parts),
    }


def _times(*names: str) -> Callable[[Option], dict[str, Any]]:
    """Some fields of an option times :data:`FACTOR`."""
    return lambda option: {name: FACTOR * getattr(option, name) for name in names}


def _options(instance: Instance, change: Callable[[Option], dict[str, Any]]) -> tuple[Module, ...]:
    """The modules with every option changed."""
    return each_layer(instance, lambda layer: edited(layer, options=each(layer.options, change)))


def _quicker(instance: Instance, rng: random.Random) -> tuple[Module, ...]:
    """One option of one layer takes half the time and energy."""
    halved = ("gpu_ticks", "fpga_ticks", "gpu_energy", "fpga_energy")
    chosen = rng.choice(instance.layers)
    quick = rng.choice(chosen.options)
    better = edited(quick, **{name: getattr(quick, name) // 2 for name in halved})
    options = tuple(better if option is quick else option for option in chosen.options)
    return one_layer(instance, chosen, edited(chosen, options=options))


def _twice(instance: Instance, rng: random.Random) -> tuple[Module, ...]:
    """One option of one layer again, under another name."""
    chosen = rng.choice(instance.layers)
    copied = edited(rng.choice(chosen.options), name="the same again")
    return one_layer(instance, chosen, edited(chosen, options=(*chosen.options, copied)))


def _shuffled(instance: Instance, rng: random.Random) -> tuple[Module, ...]:
    def shuffled(layer: Layer) -> Layer:
        return edited(layer, options=tuple(rng.sample(layer.options, len(layer.options))))

    return each_layer(instance, shuffled)
