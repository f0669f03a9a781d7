"""Devices and pipelines join and leave: what a new plan gains and what it writes again (Sec. 5).

The plan of Synergy is deployed; then something changes, and every method plans anew. Churn is the weights and bias of
layers that were deployed before and now lie on another device.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from itertools import product

from mapgap.catalogue import registry
from mapgap.core import Budget, InstanceBase
from mapgap.execution.sweep import Job, MethodJob
from mapgap.problems.multi_model_splitting import Instance, Plan, after, part
from mapgap.records.runs import Runs
from mapgap.reporting.tables import Rows, tabulated
from mapgap.studies.multi_model_splitting.experiments import FIG_11B, PROBLEM, SYNERGY, instance

OVERLAPPED = f"{FIG_11B[6]}_overlapped"
PLANNERS = {SYNERGY: "Synergy", "joint": "joint optimum", "replan": "joint optimum, least churn"}
#: What happens: instance with everything in it, and what is missing before and after.
EVENTS = {
    "five pipelines, d4 leaves": (OVERLAPPED, ("WideNet",), ("WideNet", "d4")),
    "five pipelines, d2 leaves": (OVERLAPPED, ("WideNet",), ("WideNet", "d2")),
    "five pipelines, WideNet joins": (OVERLAPPED, ("WideNet",), ()),
    "six pipelines, UNet leaves": (OVERLAPPED, (), ("UNet",)),
    "workload 1 anywhere, d1 leaves": ("synergy_w1_any", (), ("d1",)),
}


@cache
def changed(event: str) -> InstanceBase:
    """The instance after an event, with the plan that Synergy had before as deployed."""
    name, gone_before, gone_after = EVENTS[event]
    start = left(instance(name), gone_before)
    plan = registry.methods(PROBLEM)[SYNERGY].solve(start, Budget()).plan
    found = left(instance(name), gone_after)
    if isinstance(plan, Plan):
        found = after(start, plan, found)
    return found.model_copy(update={"name": f"{name}: {event}"})


def left(whole: Instance, gone: Collection[str]) -> Instance:
    """The instance without some devices and pipelines."""
    if not gone:
        return whole
    devices = [device.name for device in whole.devices if device.name not in gone]
    return part(whole, devices, [pipeline.name for pipeline in whole.pipelines if pipeline.name not in gone])


def change_jobs(time_s: float) -> list[Job]:
    """Every planner after every event."""
    return [MethodJob(changed(event), method, time_s) for event in EVENTS for method in PLANNERS]


@tabulated(
    "changes",
    "Re-planning after a change",
    "event | method: planner | throughput: inferences/s; .4g | moved: written again [kB]; .1f | layers: layers moved "
    "| pipelines: pipelines touched | new: written for new pipelines [kB]; .1f",
    "Before every event the plan of Synergy is deployed. Layers on a device that left must be written again. "
    "A planner without a row found no plan.",
)
def changes(runs: Runs) -> Rows:
    """Throughput and churn after every event."""
    for event, (method, title) in product(EVENTS, PLANNERS.items()):
        record = runs.get(changed(event).content_hash, method)
        if record is not None and record.objective is not None:
            churn = record.terms["churn"]
            row = {"event": event, "method": title, "throughput": record.terms["throughput_per_s"]}
            row |= {"layers": churn["moved_layers"], "pipelines": churn["moved_pipelines"]}
            yield row | {"moved": churn["moved_weights"] / 1000, "new": churn["new_weights"] / 1000}
