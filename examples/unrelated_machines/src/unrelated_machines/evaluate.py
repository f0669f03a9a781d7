"""The evaluator: what a plan is worth and every rule that it breaks. All else is measured against this file."""

from mapgap.core import Evaluation, GanttBar, GanttLane, Violation
from unrelated_machines.instance import Instance, Plan


def evaluate(instance: Instance, plan: Plan) -> Evaluation:
    """The makespan in ticks.

    Terms: ``load``, the ticks of every machine. Rules: ``jobs`` (one machine for each), ``machine`` (one that exists),
    ``able`` (one that can do the job). A plan that breaks one of them has no makespan.
    """
    if len(plan.machines) != len(instance.jobs):
        text = f"expected {len(instance.jobs)} machines, one per job, found {len(plan.machines)}"
        return Evaluation(None, {}, (Violation("jobs", "plan", abs(len(plan.machines) - len(instance.jobs)), text),))
    violations = []
    load = [0] * len(instance.machines)
    for j, (job, i) in enumerate(zip(instance.jobs, plan.machines, strict=True)):
        if not 0 <= i < len(instance.machines):
            text = f"expected a machine from 0 to {len(instance.machines) - 1}, found {i}"
            violations.append(Violation("machine", job, 1, text))
            continue
        time = instance.times[i][j]
        if time is None:
            violations.append(Violation("able", job, 1, f"{instance.machines[i]} cannot do it"))
            continue
        load[i] += time
    if violations:
        return Evaluation(None, {}, tuple(violations))
    return Evaluation(max(load), {"load": dict(zip(instance.machines, load, strict=True))})


def diagnose(instance: Instance) -> list[str]:
    """Why no plan exists; empty exactly when one exists: jobs do not limit each other."""
    return [f"{job}: no machine can do it" for j, job in enumerate(instance.jobs) if not instance.able(j)]


def gantt(instance: Instance, plan: Plan) -> list[GanttLane]:
    """One lane per machine, its jobs one after the other, in seconds; nothing for a plan that breaks a rule."""
    if not evaluate(instance, plan).feasible:
        return []
    lanes = []
    for i, machine in enumerate(instance.machines):
        bars, now = [], 0.0
        for j, job in enumerate(instance.jobs):
            time = instance.times[i][j]
            if plan.machines[j] == i and time is not None:
                end = now + time * instance.tick_ns * 1e-9
                bars.append(GanttBar(now, end, job, job))
                now = end
        lanes.append(GanttLane(machine, tuple(bars)))
    return lanes
