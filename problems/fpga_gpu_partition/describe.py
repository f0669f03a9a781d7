"""A plan in names, seconds and joules: one row per run of layers on the same side."""

from __future__ import annotations

from itertools import groupby

from mapgap.core import PlanTable, quantity
from mapgap.problems.fpga_gpu_partition.instance import Instance, Option, Plan


def describe(instance: Instance, plan: Plan) -> PlanTable:
    """Where layers run, in which option where there are several; time and energy of both parts; fabric."""
    chosen = []
    for layer, name in zip(instance.layers, plan.options, strict=True):
        option = layer.option(name)
        if option is not None:
            chosen.append((layer.name, option))
    rows = []
    for kind, group in groupby(chosen, key=lambda each: _label(each[1])):
        listed = list(group)
        options = [option for _, option in listed]
        ticks = [sum(getattr(option, f"{side}_ticks") for option in options) for side in ("gpu", "fpga")]
        energy = sum(option.gpu_energy + option.fpga_energy for option in options)
        first, last = listed[0][0], listed[-1][0]
        rows.append(
            (
                first if len(listed) == 1 else f"{first} to {last} ({len(listed)})",
                kind,
                *(quantity(each * instance.seconds_per_tick, "s") if each else None for each in ticks),
                quantity(energy * instance.joules_per_unit, "J"),
                sum(option.multipliers for option in options) or None,
                sum(option.m20k for option in options) or None,
            )
        )
    columns = ("layers", "runs on", "GPU time", "FPGA time", "energy", "multipliers", "M20K")
    return PlanTable(columns, tuple(rows), columns[2:])


def _label(option: Option) -> str:
    return option.kind if option.kind != "split" else f"split ({option.name})"
