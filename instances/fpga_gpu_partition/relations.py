"""What one instance of the FPGA-GPU partition says of another: optima, plans, bounds.

Two facts carry all of them. A tick in which a job ends never grows when any job becomes shorter, because the queues
serve jobs in a fixed order (rule 2 of the problem). And ``ceil(k x) <= k ceil(x)`` for a whole ``k``: times and
energies that the instance derives with rounding (transfers, standby) are at most ``k`` times the old ones.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

from mapgap.core import Relation
from mapgap.instances.editing import each, edited, related
from mapgap.instances.fpga_gpu_partition.cases import each_layer, one_layer
from mapgap.problems.fpga_gpu_partition import Instance, Layer, Module, Option, Plan

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


def carried(plan: Plan, source: Instance, target: Instance) -> Iterator[Plan]:
    """The same options by name: another objective, another fabric, more or fewer folds."""
    names = [layer.name for layer in source.layers]
    if names == [layer.name for layer in target.layers] and len(plan.options) == len(names):
        yield plan


def implied(bound: int, source: Instance, target: Instance) -> int | None:
    """What follows where every plan of the target is one of the source, no slower and no dearer there.

    Required: the same modules, layers, reads and sizes, tick and energy unit; in the source every option of the target,
    by name, with the same sides, reads and parts, no slower, no dearer and occupying no more; a fabric that is no
    smaller; a link and a standby power that are no worse; limits that are no tighter.

    *Proof.* The plan's jobs are the same, in the same queues and the same order, and none takes longer or costs more.
    A job starts when its queue is free and its data are there (rule 2), so by induction over the order of issue every
    job ends no later; so does every module, and so the standby energy is no larger. Hence latency ``L <= L'``, energy
    ``E <= E'``, and all limits of the source hold. So a bound b of the source bounds the target

    - under the same objective energy, latency or product: by b;
    - under ``w E + v L`` in both, with weights no smaller in the target: by b;
    - under ``w E + v L`` in the target: by ``w b`` if b bounds the energy, by ``v b`` if the latency, as the other term
      is not negative.
    """
    if source.tick_ns != target.tick_ns or source.energy_unit_nj != target.energy_unit_nj:
        return None
    if source.input_bytes != target.input_bytes or not _same_network(source, target):
        return None
    if not _no_worse_board(source, target) or not all(map(_offers, source.layers, target.layers)):
        return None
    if target.objective == "weighted":
        if source.objective == "energy":
            return target.energy_weight * bound
        if source.objective == "latency":
            return target.latency_weight * bound
        lighter = source.energy_weight <= target.energy_weight and source.latency_weight <= target.latency_weight
        return bound if source.objective == "weighted" and lighter else None
    return bound if source.objective == target.objective else None


def _same_network(source: Instance, target: Instance) -> bool:
    """The same modules, of layers that read and make the same."""

    def seen(instance: Instance) -> list[list[object]]:
        return [[(layer.name, layer.reads, layer.outputs) for layer in module.layers] for module in instance.modules]

    return seen(source) == seen(target)


def _no_worse_board(source: Instance, target: Instance) -> bool:
    """Fabric, link, standby power and limits."""
    limits = ((source.latency_limit, target.latency_limit), (source.energy_limit, target.energy_limit))
    return (
        source.fabric.multipliers >= target.fabric.multipliers
        and source.fabric.m20k >= target.fabric.m20k
        and source.link.bytes_per_second >= target.link.bytes_per_second
        and source.link.setup_ticks <= target.link.setup_ticks
        and source.link.setup_energy <= target.link.setup_energy
        and source.link.energy_per_mb <= target.link.energy_per_mb
        and source.standby_mw <= target.standby_mw
        and all(own is None or (other is not None and other <= own) for own, other in limits)
    )


def _offers(source: Layer, target: Layer) -> bool:
    """Every option of the target's layer, no worse."""
    return all((own := source.option(other.name)) is not None and _no_worse(own, other) for other in target.options)


def _no_worse(own: Option, other: Option) -> bool:
    same = ("kind", "home", "gpu_reads", "fpga_reads", "gpu_makes", "fpga_makes")
    less = ("gpu_ticks", "gpu_energy", "fpga_ticks", "fpga_energy", "multipliers", "m20k")
    return all(getattr(own, name) == getattr(other, name) for name in same) and all(
        getattr(own, name) <= getattr(other, name) for name in less
    )
