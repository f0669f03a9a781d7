"""What one instance of the FPGA-GPU partition says of another: plans that are carried over, bounds that follow."""

from __future__ import annotations

from collections.abc import Iterator

from mapgap.problems.fpga_gpu_partition import Instance, Layer, Option, Plan


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
