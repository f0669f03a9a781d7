"""Why a partition is not better: its modules and resources, what more would bring, where it differs from another."""

from __future__ import annotations

from collections.abc import Callable

from mapgap.core import LARGEST, Binding, Case, Exchange, Explainer, PlanTable, quantity, relaxed
from mapgap.problems.fpga_gpu_partition.evaluate import chosen_options, evaluate, timetable
from mapgap.problems.fpga_gpu_partition.instance import Instance, Plan


def binding(instance: Instance, plan: Plan) -> Binding:
    """Module by module: latency, energy, and how long GPU, FPGA and link are busy."""
    options, _ = chosen_options(instance, plan)
    jobs, terms = timetable(instance, options), evaluate(instance, plan).terms
    tick, joule = instance.seconds_per_tick, instance.joules_per_unit
    counts = terms["module_energy"] if instance.objective == "energy" else terms["module_latency"]
    total = sum(counts)
    rows, busiest = [], max(range(len(counts)), key=lambda m: (counts[m], -m))
    for number, module in enumerate(instance.modules):
        busy = {
            queue: sum(job.end - job.start for job in jobs if job.module == number and job.queue == queue)
            for queue in ("gpu", "fpga", "link")
        }
        rows.append(
            (
                module.name,
                quantity(terms["module_latency"][number] * tick, "s"),
                quantity(terms["module_energy"][number] * joule, "J"),
                *(quantity(ticks * tick, "s") for ticks in busy.values()),
                f"{100 * counts[number] / total:.1f} %" if total else None,
            )
        )
    energy = terms["energy"]
    parts = {**terms["dynamic_energy"], "standby": terms["standby_energy"]}
    spent = ", ".join(f"{name} {100 * value / energy:.0f} %" for name, value in parts.items() if energy)
    fabric = ", ".join(
        f"{name} {100 * terms[field] / most:.0f} %"
        for name, field, most in (
            ("multipliers", "multipliers", instance.fabric.multipliers),
            ("M20K", "m20k", instance.fabric.m20k),
        )
        if most
    )
    what = "energy" if instance.objective == "energy" else "time"
    sentence = (
        f"{instance.modules[busiest].name} takes the largest part of the {what}. Energy goes to: {spent}. "
        f"Fabric in use: {fabric or 'none there'}."
    )
    columns = ("module", "latency", "energy", "GPU busy", "FPGA busy", "link busy", "share")
    lanes = {"gpu": "GPU", "fpga": "FPGA", "link": "link"}
    bars = frozenset((lanes[job.queue], job.label) for job in jobs if job.module == busiest)
    return Binding(sentence, PlanTable(columns, tuple(rows), columns[1:]), bars)


def relaxations(instance: Instance) -> list[Case]:
    """More fabric, a faster link, no set-up, no standby power."""
    fabric, link = instance.fabric.model_dump(), instance.link.model_dump()
    found = []
    for name, label in (("multipliers", "twice the multipliers"), ("m20k", "twice the M20K blocks")):
        found += relaxed(instance, label, fabric={**fabric, name: min(2 * fabric[name], LARGEST)})
    rate = min(2 * link["bytes_per_second"], LARGEST)
    found += relaxed(instance, "the link twice as fast", link={**link, "bytes_per_second": rate})
    if link["setup_ticks"] or link["setup_energy"]:
        found += relaxed(instance, "transfers without set-up", link={**link, "setup_ticks": 0, "setup_energy": 0})
    if instance.standby_mw:
        found += relaxed(instance, "half the standby power", standby_mw=instance.standby_mw // 2)
    return found


def exchanges(instance: Instance, plan: Plan, other: Plan) -> list[Exchange]:
    """Module by module."""
    found, first = [], 0
    for module in instance.modules:
        last = first + len(module.layers)
        before, after = plan.options[first:last], other.options[first:last]
        if before != after:
            changed = [
                f"{layer.name.removeprefix(f'{module.name}.')} {old} to {new}"
                for layer, old, new in zip(module.layers, before, after, strict=True)
                if old != new
            ]
            shown = ", ".join(changed[:3]) + (f" and {len(changed) - 3} more" if len(changed) > 3 else "")
            found.append(Exchange(f"{module.name}: {shown}", _taking(first, after)))
        first = last
    return found


def _taking(first: int, after: tuple[str, ...]) -> Callable[[Plan], Plan]:
    def take(p: Plan) -> Plan:
        return Plan(options=(*p.options[:first], *after, *p.options[first + len(after) :]))

    return take


EXPLAINER = Explainer(binding, relaxations, exchanges)
