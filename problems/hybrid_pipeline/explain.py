"""Why a pipeline is not faster: its dominant step, what more hardware would bring, where it differs from another."""

from __future__ import annotations

from collections.abc import Callable

from mapgap.core import LARGEST, Binding, Case, Exchange, Explainer, PlanTable, quantity, relaxed
from mapgap.problems.hybrid_pipeline.evaluate import best_shares, evaluate, warm_up
from mapgap.problems.hybrid_pipeline.instance import Instance, Plan, Stage


def binding(instance: Instance, plan: Plan) -> Binding:
    """Eqs. (4) to (6), step by step: which step waits, works and joins the longest."""
    terms = evaluate(instance, plan).terms
    steps, dominant = terms["steps"], terms["dominant_step"]
    rounds = instance.mini_batch // plan.micro_batch
    ends = [sum(steps[part][s] for part in ("waiting", "execution", "allreduce")) for s in range(len(steps["forward"]))]
    latency, tick = max(ends), instance.seconds_per_tick
    if instance.objective == "bottleneck":
        each = [f + b for f, b in zip(steps["forward"], steps["backward"], strict=True)]
        dominant = last = each.index(max(each))
    else:
        last = ends.index(latency)
    rows = []
    for s, end in enumerate(ends):
        memory = None
        if s % 2 == 0:
            stage = plan.stages[s // 2]
            shares = [
                terms["peak_memory"][instance.devices[d].name] / max(1, instance.device_type(d).memory)
                for d in stage.devices
            ]
            memory = f"{100 * max(shares):.0f} %"
        rows.append(
            (
                _step_name(instance, plan, s),
                *(quantity(steps[part][s] * tick, "s") for part in ("forward", "backward", "waiting", "allreduce")),
                quantity(end * tick, "s"),
                memory,
                " and ".join(word for word, here in (("dominates", s == dominant), ("ends last", s == last)) if here),
            )
        )
    work = rounds * (steps["forward"][dominant] + steps["backward"][dominant])
    name = _step_name(instance, plan, dominant)
    if instance.objective == "bottleneck":
        sentence = f"The longest step of a micro-batch is {name}; the pipeline cannot be fed faster."
    else:
        share = 100 * work / latency if latency else 0
        sentence = (
            f"{name[0].upper()}{name[1:]} dominates: {rounds} micro-batches through it take "
            f"{quantity(work * tick, 's')}, {share:.0f} % of the round. The round ends with "
            f"{_step_name(instance, plan, last)}, after {quantity(steps['allreduce'][last] * tick, 's')} of AllReduce."
        )
    if instance.in_turn:
        sentence += f" A micro-batch takes the one medium for {quantity(terms['medium_ticks'] * tick, 's')}."
    if terms["idle"]:
        sentence += f" Idle: {', '.join(terms['idle'])}."
    columns = ("step", "forward", "backward", "waits first", "AllReduce", "ends", "memory in use", "binds")
    return Binding(sentence, PlanTable(columns, tuple(rows), columns[1:7]), _bars(instance, plan, dominant))


def _step_name(instance: Instance, plan: Plan, s: int) -> str:
    if s % 2:
        return f"transfer {s // 2 + 1} to {s // 2 + 2}"
    return f"stage {s // 2 + 1} ({', '.join(instance.devices[d].name for d in plan.stages[s // 2].devices)})"


def _bars(instance: Instance, plan: Plan, step: int) -> frozenset[tuple[str, str]]:
    """All passes of the dominant step, and every AllReduce, in the lanes of the chart."""
    rounds = range(instance.mini_batch // plan.micro_batch)
    if step % 2:
        lanes = [f"link {step // 2}-{step // 2 + 1}"]
    else:
        lanes = [f"{instance.devices[d].name} (stage {step // 2})" for d in plan.stages[step // 2].devices]
    labels = [f"{kind}{m}" for kind in "FB" for m in rounds] + ["AllReduce"]
    return frozenset((lane, label) for lane in lanes for label in labels)


def relaxations(instance: Instance) -> list[Case]:
    """Faster links, more memory, idle boards allowed, one more board of each type, links of their own."""
    rates = [[min(2 * rate, LARGEST) for rate in row] for row in instance.bandwidth]
    found = relaxed(instance, "all links twice as fast", bandwidth=rates)
    if instance.in_turn:
        found += relaxed(instance, "a link for every pair of boards", medium="links")
    types = [{**kind.model_dump(), "memory": min(2 * kind.memory, LARGEST)} for kind in instance.types]
    found += relaxed(instance, "twice the memory", types=types)
    if instance.all_devices:
        found += relaxed(instance, "boards may stay idle", all_devices=False)
    if instance.replanning is not None:
        return found  # a board that comes while another one fails is another story
    for t, kind in enumerate(instance.types):
        index = next((d for d, device in enumerate(instance.devices) if device.type == t), None)
        if index is None:
            continue
        own = instance.devices[index]
        rows = _with_another(instance.bandwidth, index, max, LARGEST)
        late = _with_another(instance.latency_ns, index, min, 0) if instance.latency_ns else ()
        added = {**own.model_dump(), "name": f"{own.name} (another)"}
        boards = [*(device.model_dump() for device in instance.devices), added]
        label = f"one more {kind.name}"
        found += relaxed(instance, label, devices=boards, bandwidth=rows, latency_ns=late, all_devices=False)
    return found


def _with_another(
    links: tuple[tuple[int, ...], ...], index: int, best: Callable[..., int], alone: int
) -> list[list[int]]:
    """A square of links with one more board like that one, joined to it by the best of its links."""
    rows = [list(row) for row in links]
    between = best((link for j, link in enumerate(rows[index]) if j != index), default=alone)
    for i, row in enumerate(rows):
        row.append(between if i == index else row[index])
    return [*rows, [row[-1] for row in rows] + [between]]


def exchanges(instance: Instance, plan: Plan, other: Plan) -> list[Exchange]:
    """Micro-batch, then cuts and boards stage by stage where both plans have as many stages, then shares.

    Until the shares are exchanged, a stage whose layers or boards changed has those of Eq. (7).
    """
    found: list[Exchange] = []
    sets = any(stage.layers is not None for stage in (*plan.stages, *other.stages))
    if sets or len(plan.stages) != len(other.stages) or plan.micro_batch != other.micro_batch:
        label = f"{_structure(plan)} to {_structure(other)}, with cuts and boards"
        found.append(Exchange(label, lambda p: _shared(instance, other.micro_batch, other.stages)))
    else:
        for s, (before, after) in enumerate(zip(plan.stages, other.stages, strict=True)):
            if before.devices != after.devices:
                names = [", ".join(instance.devices[d].name for d in stage.devices) for stage in (before, after)]
                found.append(Exchange(f"stage {s + 1}: {names[0]} to {names[1]}", _boards(instance, s, after)))
        for s, (before, after) in enumerate(zip(plan.stages[:-1], other.stages[:-1], strict=True)):
            if before.stop != after.stop:
                names = [instance.layers[stage.stop - 1].name for stage in (before, after)]
                found.append(Exchange(f"cut behind {names[0]} to behind {names[1]}", _cut(instance, s, after.stop)))
    nested = _shared(instance, other.micro_batch, other.stages)
    if evaluate(instance, nested).objective != evaluate(instance, other).objective or (not found and plan != other):
        places = [(stage.rows, stage.devices) for stage in other.stages]

        def reshare(p: Plan) -> Plan:
            return other if [(stage.rows, stage.devices) for stage in p.stages] == places else p

        found.append(Exchange("shares inside the groups", reshare))
    return found


def _structure(plan: Plan) -> str:
    count = len(plan.stages)
    return f"{count} stage{'' if count == 1 else 's'} of micro-batches of {plan.micro_batch}"


def _boards(instance: Instance, s: int, after: Stage) -> Callable[[Plan], Plan]:
    def change(p: Plan) -> Plan:
        stages = [
            stage.model_copy(update={"devices": after.devices}) if k == s else stage for k, stage in enumerate(p.stages)
        ]
        return _shared(instance, p.micro_batch, tuple(stages))

    return change


def _cut(instance: Instance, s: int, stop: int) -> Callable[[Plan], Plan]:
    def change(p: Plan) -> Plan:
        stages = list(p.stages)
        stages[s] = stages[s].model_copy(update={"stop": stop})
        stages[s + 1] = stages[s + 1].model_copy(update={"start": stop})
        return _shared(instance, p.micro_batch, tuple(stages))

    return change


def _shared(instance: Instance, micro_batch: int, stages: tuple[Stage, ...]) -> Plan:
    """The stages with the shares of Eq. (7); where the memory holds none, the samples are shared out evenly."""
    rounds, found = instance.mini_batch // micro_batch, []
    for p, stage in enumerate(stages):
        shares = None
        if stage.rows and 0 <= min(stage.rows) <= max(stage.rows) < len(instance.layers):
            kept = warm_up(len(stages) - 1 - p, rounds, instance.execution)
            shares = best_shares(instance, stage, micro_batch, kept)
        if shares is None:
            count = len(stage.devices)
            shares = tuple(micro_batch // count + (i < micro_batch % count) for i in range(count))
        found.append(stage.model_copy(update={"shares": shares}))
    return Plan(micro_batch=micro_batch, stages=tuple(found))


EXPLAINER = Explainer(binding, relaxations, exchanges)
