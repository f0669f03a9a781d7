"""The evaluator: the rules of the module ``__init__`` in plain loops. Everything else is measured against this file."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import groupby
from typing import Literal

from mapgap.core import Evaluation, GanttBar, GanttLane, Violation
from mapgap.problems.fpga_gpu_partition.instance import NETWORK_INPUT, Instance, Option, Plan, Read, Side

Queue = Literal["gpu", "fpga", "link"]


@dataclass
class Job:
    """One entry of a queue, in ticks from the start of the run; ``energy`` without standby power."""

    queue: Queue
    label: str
    module: int
    start: int
    end: int
    energy: int
    bytes: int = 0


@dataclass
class _Queues:
    """The three in-order queues during one module (rule 2)."""

    instance: Instance
    module: int
    begin: int
    homes: dict[int, Side]
    jobs: list[Job] = field(default_factory=list)
    free: dict[Queue, int] = field(default_factory=dict)
    ready: dict[int, int] = field(default_factory=dict)
    copied: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)

    def run(self, queue: Queue, label: str, after: int, ticks: int, energy: int, size: int = 0) -> int:
        """Append a job that may start at ``after``; returns its end."""
        start = max(after, self.free.get(queue, self.begin))
        self.free[queue] = start + ticks
        self.jobs.append(Job(queue, label, self.module, start, start + ticks, energy, size))
        return start + ticks

    def move(self, label: str, after: int, size: int) -> int:
        """A transfer of ``size`` bytes (rule 11)."""
        instance = self.instance
        return self.run("link", label, after, instance.transfer_ticks(size), instance.transfer_energy(size), size)

    def fetch(self, tensor: Read, side: Side, size: int) -> int:
        """Tick from which the part of ``tensor`` is on ``side``; moves the bytes that are missing there (rule 6)."""
        if size == 0:
            return self.begin
        made = self.ready.get(tensor.source, self.begin)  # tensors of earlier modules are there from the start
        if self.homes[tensor.source] == side:
            return made
        held, since = self.copied.get((tensor.source, tensor.part), (0, self.begin))
        if size > held:
            name = "input" if tensor.source == NETWORK_INPUT else self.instance.layers[tensor.source].name
            since = self.move(f"{name} to {side}", made, size - held)
            self.copied[tensor.source, tensor.part] = (size, since)
        return since

    def layer(self, index: int, option: Option) -> None:
        """All jobs of one layer, in the order of rule 2."""
        layer = self.instance.layers[index]
        whole = tuple(self.instance.read_bytes(r) for r in layer.reads)
        there: dict[Side, int] = {}
        if option.kind in ("gpu", "split"):
            sizes = option.gpu_reads if option.kind == "split" else whole
            there["gpu"] = max(self.fetch(r, "gpu", b) for r, b in zip(layer.reads, sizes, strict=True))
        if option.kind in ("fpga", "split"):
            sizes = option.fpga_reads if option.kind == "split" else whole
            there["fpga"] = max(self.fetch(r, "fpga", b) for r, b in zip(layer.reads, sizes, strict=True))
        end = self.begin
        if "gpu" in there:
            done = self.run("gpu", layer.name, there["gpu"], option.gpu_ticks, option.gpu_energy)
            if option.home == "fpga" and option.gpu_makes:  # join of a split
                done = self.move(f"{layer.name} join to fpga", done, option.gpu_makes)
            end = max(end, done)
        if "fpga" in there:
            done = self.run("fpga", layer.name, there["fpga"], option.fpga_ticks, option.fpga_energy)
            if option.home == "gpu" and option.fpga_makes:
                done = self.move(f"{layer.name} join to gpu", done, option.fpga_makes)
            end = max(end, done)
        self.homes[index] = option.home
        self.ready[index] = end

    def deliver(self, index: int) -> None:
        """Outputs of the network go to the GPU (rule 10)."""
        for part, size in enumerate(self.instance.layers[index].outputs):
            self.fetch(Read(source=index, part=part), "gpu", size)


def timetable(instance: Instance, options: list[Option]) -> list[Job]:
    """Every job of the run; ``options`` holds the chosen option of every layer."""
    homes: dict[int, Side] = {NETWORK_INPUT: "gpu"}
    jobs: list[Job] = []
    index = begin = 0
    for number, module in enumerate(instance.modules):
        queues = _Queues(instance, number, begin, homes)
        first = index
        for _ in module.layers:
            queues.layer(index, options[index])
            index += 1
        for i in range(first, index):
            if i in instance.outputs:
                queues.deliver(i)
        jobs += queues.jobs
        begin = max(job.end for job in queues.jobs)  # the next module begins when everything has ended (rule 1)
    return jobs


def chosen_options(instance: Instance, plan: Plan) -> tuple[list[Option], list[Violation]]:
    """The option of every layer, and what is wrong with the plan's names."""
    layers = instance.layers
    if len(plan.options) != len(layers):
        text = f"expected {len(layers)} options, one per layer, found {len(plan.options)}"
        return [], [Violation("options", "options", abs(len(plan.options) - len(layers)), text)]
    chosen: list[Option] = []
    found: list[Violation] = []
    for layer, name in zip(layers, plan.options, strict=True):
        option = layer.option(name)
        if option is None:
            text = f"{name!r}: expected one of {[o.name for o in layer.options]}"
            found.append(Violation("unknown option", layer.name, 1, text))
        else:
            chosen.append(option)
    return chosen, found


def evaluate(instance: Instance, plan: Plan) -> Evaluation:
    """The objective of a plan, and every rule it breaks.

    Terms: ``latency`` (ticks), ``latency_s``, ``energy`` (units), ``energy_j``, ``edp``, ``weighted``,
    ``multipliers``, ``m20k``, ``busy_ticks`` and ``dynamic_energy`` per queue, ``standby_energy``, ``link_bytes``,
    ``transfers``, and per module ``module_latency`` and ``module_energy``.
    """
    options, violations = chosen_options(instance, plan)
    if violations:
        return Evaluation(None, {}, tuple(violations))
    jobs = timetable(instance, options)
    makespans, energies, begin = [], [], 0
    for _, group in groupby(jobs, key=lambda job: job.module):  # every module has jobs, and they are in its order
        inside = list(group)
        end = max(job.end for job in inside)
        makespans.append(end - begin)
        energies.append(sum(job.energy for job in inside) + instance.standby_energy(end - begin))
        begin = end
    latency, energy = sum(makespans), sum(energies)  # (1), (2)
    multipliers = sum(option.multipliers for option in options)
    m20k = sum(option.m20k for option in options)
    limits = (
        ("multipliers", "fabric", multipliers, instance.fabric.multipliers),  # (3)
        ("M20K", "fabric", m20k, instance.fabric.m20k),
        ("latency limit", "network", latency, instance.latency_limit),
        ("energy limit", "network", energy, instance.energy_limit),
    )
    for rule, where, used, most in limits:
        if most is not None and used > most:
            violations.append(Violation(rule, where, used - most, f"{used}, at most {most}"))
    queues: tuple[Queue, ...] = ("gpu", "fpga", "link")
    terms = {
        "latency": latency,
        "latency_s": latency * instance.seconds_per_tick,
        "energy": energy,
        "energy_j": energy * instance.joules_per_unit,
        "edp": energy * latency,
        "weighted": instance.energy_weight * energy + instance.latency_weight * latency,
        "multipliers": multipliers,
        "m20k": m20k,
        "busy_ticks": {q: sum(job.end - job.start for job in jobs if job.queue == q) for q in queues},
        "dynamic_energy": {q: sum(job.energy for job in jobs if job.queue == q) for q in queues},
        "standby_energy": energy - sum(job.energy for job in jobs),
        "link_bytes": sum(job.bytes for job in jobs),
        "transfers": sum(1 for job in jobs if job.queue == "link"),
        "module_latency": makespans,
        "module_energy": energies,
    }
    if instance.objective == "edp":
        objective = energy * latency  # (4)
    elif instance.objective == "weighted":
        objective = instance.energy_weight * energy + instance.latency_weight * latency
    else:
        objective = energy if instance.objective == "energy" else latency
    return Evaluation(objective, terms, tuple(violations))


def gantt(instance: Instance, plan: Plan) -> list[GanttLane]:
    """Lanes of GPU, FPGA and link, times in seconds; bars are grouped by module. The plan must have a value."""
    options, violations = chosen_options(instance, plan)
    if violations:
        return []
    jobs = timetable(instance, options)
    tick = instance.seconds_per_tick
    lanes = []
    for queue, name in (("gpu", "GPU"), ("fpga", "FPGA"), ("link", "link")):
        bars = []
        for job in jobs:
            if job.queue == queue and job.end > job.start:
                moved = (job.end - job.start) * tick if queue == "link" else 0.0
                group = instance.modules[job.module].name
                bars.append(GanttBar(job.start * tick, job.end * tick, job.label, group, moved))
        lanes.append(GanttLane(name, tuple(bars)))
    return lanes


def diagnose(instance: Instance) -> list[str]:
    """Simple proofs of infeasibility, in words; an empty list proves nothing.

    Every layer occupies at least what its smallest option does, alone and together with all others; a module takes at
    least as long as its GPU and its FPGA are busy under the quickest options, and a plan costs at least its cheapest
    options.
    """
    reasons = []
    for resource, name in (("multipliers", "multipliers"), ("m20k", "M20K blocks")):
        most, total = getattr(instance.fabric, resource), 0
        for layer in instance.layers:
            need = min(getattr(option, resource) for option in layer.options)
            total += need
            if need > most:
                reasons.append(f"layer {layer.name} needs at least {need} {name}, the fabric has {most}")
        if total > most:
            reasons.append(f"all layers together need at least {total} {name}, the fabric has {most}")
    latency = 0
    energy = 0
    for module in instance.modules:
        slowest = max(min(max(o.gpu_ticks, o.fpga_ticks) for o in layer.options) for layer in module.layers)
        latency += slowest
        energy += instance.standby_energy(slowest)
        energy += sum(min(o.gpu_energy + o.fpga_energy for o in layer.options) for layer in module.layers)
    if instance.latency_limit is not None and latency > instance.latency_limit:
        reasons.append(f"the quickest options take at least {latency} ticks, the limit is {instance.latency_limit}")
    if instance.energy_limit is not None and energy > instance.energy_limit:
        reasons.append(f"the cheapest options cost at least {energy} units, the limit is {instance.energy_limit}")
    return reasons
