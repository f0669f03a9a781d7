"""The evaluator: Eqs. (3)-(8) in plain loops. Every other part of the project is measured against this file."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import Any

from mapgap.core import Evaluation, Violation
from mapgap.problems.hybrid_pipeline.instance import Execution, Instance, Plan, Stage


def warm_up(stages_behind: int, micro_batches: int, rules: Execution = Execution()) -> int:
    """K_p = min(2 (P - p) - 1, M) of Sec. 3.2, with P - p - 1 stages behind stage p; 1 in inference.

    ``rules.stored`` may have it be 1, M or min(P - p, M) in training, too.
    """
    if not rules.training or rules.stored == "one":
        return 1
    return (
        micro_batches
        if rules.stored == "all"
        else min((2 if rules.stored == "warm_up" else 1) * stages_behind + 1, micro_batches)
    )


def memory_demand(instance: Instance, stage: Stage, share: int, kept: int) -> int:
    """Eq. (3): memory units on a member of a stage with ``share`` samples and ``kept`` stored micro-batches."""
    state = activation = 0
    for layer in map(instance.layers.__getitem__, stage.rows):
        state += layer.state_memory  # Mem(MOD) + Mem(OPT)
        activation += layer.activation_memory * share  # Mem(ACT)(beta)
    return state + kept * activation


def slowest_link(instance: Instance, group: tuple[int, ...], other: tuple[int, ...] | None = None) -> int:
    """min b_{d,d'} inside a group of at least two, or between two groups; bytes per second."""
    if other is None:
        return min(instance.bandwidth[d][e] for d in group for e in group if d != e)
    return min(instance.bandwidth[d][e] for d in group for e in other)


def execution_times(instance: Instance, stage: Stage, shares: tuple[int, ...]) -> tuple[int, int]:
    """Eq. (8): ``(E_f, E_b)`` of a stage under the given shares, ticks."""
    forward = backward = 0
    for device, share in zip(stage.devices, shares, strict=True):
        if share == 0:
            continue
        kind = instance.device_type(device)
        rows = stage.rows
        forward = max(forward, sum(kind.forward[i][share - 1] for i in rows))
        if instance.execution.training:
            backward = max(backward, sum(kind.backward[i][share - 1] for i in rows))
    return forward, backward


def best_shares(instance: Instance, stage: Stage, micro_batch: int, kept: int) -> tuple[int, ...] | None:
    """Shares that solve Eq. (7) for the stage's layers and group; ``None`` where the memory holds no B samples.

    Among the minimisers of max_d (F_d + B_d) those of smallest E_f + E_b, then of smallest E_f (rule 6).
    """
    profiles: dict[int, tuple[list[int], list[int], list[int]]] = {}  # F, B, F + B by share, as far as memory allows
    for device in stage.devices:
        if instance.devices[device].type in profiles:
            continue
        kind = instance.device_type(device)
        forward: list[int] = []
        backward: list[int] = []
        for share in range(micro_batch + 1):
            if memory_demand(instance, stage, share, kept) > kind.memory:
                break
            forward.append(sum(kind.forward[i][share - 1] for i in stage.rows) if share else 0)
            back = share > 0 and instance.execution.training
            backward.append(sum(kind.backward[i][share - 1] for i in stage.rows) if back else 0)
        if not forward:
            return None  # not even the weights fit
        both = [f + b for f, b in zip(forward, backward, strict=True)]
        profiles[instance.devices[device].type] = (forward, backward, both)
    members = [profiles[instance.devices[device].type] for device in stage.devices]

    def largest(total: int, f: int, b: int) -> list[int]:
        """Per member the largest share within the limits on F_d + B_d, F_d and B_d; no time falls with the share."""
        return [
            min(bisect_right(both, total), bisect_right(forward, f), bisect_right(backward, b)) - 1
            for forward, backward, both in members
        ]

    def enough(total: int, f: int, b: int) -> bool:
        return sum(largest(total, f, b)) >= micro_batch

    totals = sorted({value for _, _, both in members for value in both})
    if not enough(totals[-1], totals[-1], totals[-1]):
        return None
    total = totals[bisect_left(totals, True, key=lambda value: enough(value, value, value))]  # Eq. (7)
    backwards = sorted({value for _, backward, _ in members for value in backward if value <= total})
    f, b = total, total
    last = len(backwards) - 1
    for value in sorted({value for forward, _, _ in members for value in forward if value <= total}):
        if not enough(total, value, backwards[last]):
            continue
        while last > 0 and enough(total, value, backwards[last - 1]):  # a larger E_f never asks for a larger E_b
            last -= 1
        if value + backwards[last] < f + b:
            f, b = value, backwards[last]
    shares = largest(total, f, b)
    surplus = sum(shares) - micro_batch
    for member in range(len(shares)):  # fewer samples anywhere keep all limits
        given = min(surplus, shares[member])
        shares[member] -= given
        surplus -= given
    return tuple(shares)


def crossing_bytes(instance: Instance, plan: Plan, p: int) -> int:
    """Bytes per sample that cross the cut behind stage p: of a graph every tensor that layers on both sides know."""
    if instance.graph is None:
        return instance.layers[max(plan.stages[p].rows)].output_bytes
    front = {layer for stage in plan.stages[: p + 1] for layer in stage.rows}
    return sum(each.size for each in instance.tensors() if 0 < len(front.intersection(each.layers)) < len(each.layers))


def tensor_ticks(instance: Instance, plan: Plan, p: int, *, gradients: bool = False) -> int:
    """Rule 16: ticks of all tensors that stage p makes for other stages or reads from them, each of them once."""
    stage = plan.stages[p]
    if instance.graph is not None and any(instance.devices[d].type in instance.graph.hosts for d in stage.devices):
        return 0
    own, size = set(stage.rows), 0
    for each in instance.tensors(gradients=gradients):
        if 0 < len(own.intersection(each.layers)) < len(each.layers):
            size += each.size
    others = tuple(d for d in range(len(instance.devices)) if d not in stage.devices)
    if not others or not size:
        return 0
    return instance.transfer_ticks(plan.micro_batch * size, slowest_link(instance, stage.devices, others))


def crossing_ticks(instance: Instance, plan: Plan, p: int) -> int:
    """c: ticks one way of a micro-batch from stage p to the next one (rule 2), whoever they are charged to."""
    before, after = plan.stages[p], plan.stages[p + 1]
    if instance.execution.communication in ("free", "tensors"):
        return 0
    links = min(len(before.devices), len(after.devices)) if instance.execution.transfers == "parallel" else 1
    size = plan.micro_batch * crossing_bytes(instance, plan, p)
    late = instance.late(before.devices, after.devices)
    return instance.transfer_ticks(size, links * slowest_link(instance, before.devices, after.devices), late)


def stage_allreduce(instance: Instance, stage: Stage) -> int:
    """T_a of Eq. (5), ticks of one AllReduce of the stage."""
    if len(stage.devices) == 1:
        return 0
    weights = sum(instance.layers[i].weight_bytes for i in stage.rows)
    late = instance.late(stage.devices, stage.devices)
    return instance.allreduce_ticks(len(stage.devices), weights, slowest_link(instance, stage.devices), late)


def round_latency(instance: Instance, plan: Plan, shares: list[tuple[int, ...]]) -> dict[str, Any]:
    """Eqs. (4)-(6) for the plan's stages with the given shares; all times in ticks.

    Returns
    -------
    dict
        ``forward`` E_f, ``backward`` E_b, ``waiting`` T_w, ``execution`` T_e, ``allreduce`` T_a (a list each, one
        entry per step: stage 0, communication, stage 1, ...), ``dominant`` step, ``latency``, ``slowest``: the longest
        E_f + E_b of a step, ``medium``: what a micro-batch takes of one medium (0 on others).
    """
    micro_batches = instance.mini_batch // plan.micro_batch  # M
    rules = instance.execution
    forward: list[int] = []
    backward: list[int] = []
    allreduce: list[int] = []
    medium = 0
    for p, stage in enumerate(plan.stages):
        ticks_in = crossing_ticks(instance, plan, p - 1) if p > 0 else 0
        ticks_out = crossing_ticks(instance, plan, p) if p + 1 < len(plan.stages) else 0
        if instance.in_turn and p > 0:  # rule 18
            medium += ticks_in * (2 if rules.training else 1)
        if p > 0:  # communication step; forward and backward one after the other (half duplex)
            ticks = 0 if rules.communication == "load" else ticks_in
            forward.append(ticks)
            backward.append(ticks if rules.training else 0)
            allreduce.append(0)
        ef, eb = execution_times(instance, stage, shares[p])  # Eq. (8)
        if rules.communication == "load":  # activations in and out, gradients in and out
            ef += ticks_in + ticks_out
            if rules.training:
                eb += ticks_in + ticks_out
        if rules.communication == "tensors":
            ef += tensor_ticks(instance, plan, p)
            if rules.training:
                eb += tensor_ticks(instance, plan, p, gradients=True)
        ta = stage_allreduce(instance, stage)  # Eq. (5), right
        if rules.allreduce != "round":  # part of every backward pass
            eb += ta
            medium += ta if instance.in_turn else 0
            ta = 0
        forward.append(ef)
        backward.append(eb)
        allreduce.append(ta)
    steps = range(len(forward))
    # The dominant step has the largest M E_i after alignment, that is with the steps before it.
    both = [f + b for f, b in zip(forward, backward, strict=True)]
    aligned = [micro_batches * both[s] + sum(both[:s]) for s in steps]
    dm = aligned.index(max(aligned))
    flow = not rules.training or rules.latency == "flow_shop"
    waiting = [sum((both if flow else forward)[:s]) for s in steps]  # Eq. (5), left
    execution = []
    for s in steps:
        if flow:  # rule 13: a step ends when the longest one up to it has passed the other micro-batches
            longest = max(both[: s + 1])
            if s == steps[-1]:
                longest = max(longest, medium)  # rule 18
            execution.append(both[s] + (micro_batches - 1) * longest)
            continue
        te = micro_batches * both[dm]  # Eq. (6)
        te += sum(both[s:dm]) if s < dm else -sum(both[dm:s])
        te = max(te, micro_batches * medium + both[0] - sum(both[:s]))  # rule 18: the medium is one more step
        execution.append(te)
    latency = max(waiting[s] + execution[s] + allreduce[s] for s in steps)  # Eq. (4)
    if instance.in_turn:  # rule 18: one AllReduce after the other
        free = 0
        for s in reversed(steps):
            if allreduce[s]:
                free = max(free, waiting[s] + execution[s]) + allreduce[s]
        latency = max(latency, free)
    return {
        "forward": forward,
        "backward": backward,
        "waiting": waiting,
        "execution": execution,
        "allreduce": allreduce,
        "dominant": dm,
        "latency": latency,
        "slowest": max([*both, medium]),
        "medium": medium,
    }


def round_value(instance: Instance, steps: dict[str, Any]) -> int:
    """What the objective counts of :func:`round_latency`, ticks."""
    value: int = steps["slowest"] if instance.objective == "bottleneck" else steps["latency"]
    return value


def migration_ticks(instance: Instance, plan: Plan) -> int:
    """T_migration of Sec. 3.4: the busiest link, each member fetching the layers it lacks (rule 11)."""
    if instance.replanning is None:
        return 0
    held = instance.replanning.held

    def holds(device: int, layer: int) -> bool:
        return any(start <= layer < stop for start, stop in held[device])

    slowest = 0
    for stage in plan.stages:
        for device in stage.devices:
            received: dict[int, int] = {}  # bytes by source
            for layer in stage.rows:
                if holds(device, layer):
                    continue
                sources = [d for d in range(len(instance.devices)) if holds(d, layer)]
                source = max(sources, key=lambda d: (instance.bandwidth[d][device], -d))
                received[source] = received.get(source, 0) + instance.layers[layer].weight_bytes
            for source, size in received.items():
                slowest = max(slowest, instance.transfer_ticks(size, instance.bandwidth[source][device]))
    return slowest


def communication_bytes(instance: Instance, plan: Plan) -> int:
    """V_HPP of Eq. (2): bytes that one HPP-round moves between devices."""
    rules, micro_batches = instance.execution, instance.mini_batch // plan.micro_batch
    total = 0
    for p, stage in enumerate(plan.stages):
        members = len(stage.devices)
        weights = sum(instance.layers[i].weight_bytes for i in stage.rows)
        times = {"round": 1, "micro_batch": micro_batches, "rotating": -(-micro_batches // members)}[rules.allreduce]
        if rules.training:
            total += times * rules.allreduce_factor * (members - 1) * weights
        if p + 1 < len(plan.stages):
            ways = 2 if rules.training else 1
            total += ways * instance.mini_batch * crossing_bytes(instance, plan, p)
    return total


def _set_violations(instance: Instance, plan: Plan) -> list[Violation]:
    """Rule 15: every layer in one stage, none before one that it reads, classes in one stage."""
    found, place = [], dict[int, int]()
    for p, stage in enumerate(plan.stages):
        wrong = [i for k, i in enumerate(stage.rows) if not 0 <= i < len(instance.layers) or i in stage.rows[:k]]
        wrong += [i for i in stage.rows if i in place]
        if wrong or not stage.rows:
            text = f"expected layers that have no place yet, at least one, found {list(stage.rows)}"
            found.append(Violation("layers of stages", f"stage {p}", len(wrong) or 1, text))
        place |= dict.fromkeys(stage.rows, p)
    missing = [layer.name for i, layer in enumerate(instance.layers) if i not in place]
    if missing:
        found.append(Violation("layers of stages", "plan", len(missing), f"no stage has {', '.join(missing)}"))
    if found:
        return found
    for u, v in instance.edges:
        if place[u] > place[v]:
            text = f"it is in stage {place[v]} and reads {instance.layers[u].name} of stage {place[u]}"
            found.append(Violation("order of layers", instance.layers[v].name, place[u] - place[v], text))
    for layers in instance.graph.together if instance.graph is not None else ():
        apart = sorted({place[i] for i in layers})
        if len(apart) > 1:
            text = f"expected one stage, found stages {apart}"
            found.append(Violation("co-location", instance.layers[layers[0]].name, len(apart) - 1, text))
    return found


def _structure_violations(instance: Instance, plan: Plan) -> list[Violation]:
    """Rules without which the plan has no latency."""
    found = []
    if plan.micro_batch not in instance.micro_batch_sizes:
        text = f"expected one of {list(instance.micro_batch_sizes)}, found {plan.micro_batch}"
        found.append(Violation("micro-batch size", "micro_batch", 1, text))
    position = 0
    seen: set[int] = set()
    sets = instance.graph is not None or any(stage.layers is not None for stage in plan.stages)
    found += _set_violations(instance, plan) if sets else []
    for p, stage in enumerate(plan.stages):
        where = f"stage {p}"
        if sets:
            pass
        elif stage.start != position or stage.stop <= stage.start or stage.stop > len(instance.layers):
            text = f"expected a non-empty interval from layer {position} on, found [{stage.start}, {stage.stop})"
            found.append(Violation("contiguous stages", where, abs(stage.start - position) or 1, text))
        position = stage.stop
        unknown = [d for d in stage.devices if not 0 <= d < len(instance.devices)]
        if unknown or not stage.devices:
            text = f"expected devices 0 to {len(instance.devices) - 1}, at least one, found {list(stage.devices)}"
            found.append(Violation("device group", where, len(unknown) or 1, text))
        twice = [d for i, d in enumerate(stage.devices) if d in seen or d in stage.devices[:i]]
        if twice:
            found.append(Violation("disjoint groups", where, len(twice), f"devices {twice} have a place already"))
        seen |= set(stage.devices)
        wrong = abs(sum(stage.shares) - plan.micro_batch)
        if len(stage.shares) != len(stage.devices) or any(y < 0 for y in stage.shares) or wrong:
            text = f"expected {len(stage.devices)} shares that add up to {plan.micro_batch}, found {list(stage.shares)}"
            found.append(Violation("shares", where, wrong or 1, text))
    if not sets and position != len(instance.layers):
        text = f"expected the stages to end at layer {len(instance.layers)}, found {position}"
        found.append(Violation("contiguous stages", "last stage", abs(len(instance.layers) - position), text))
    return found


def evaluate(instance: Instance, plan: Plan) -> Evaluation:
    """HPP-round latency in ticks (with a failure: T_migration + R * latency), and every rule the plan breaks.

    With the objective bottleneck the longest step takes the place of the latency.

    Terms: ``latency_s``, ``samples_per_s``, ``stages``, ``dominant_step``, ``steps`` (E_f, E_b, T_w, T_e, T_a per
    step, ticks), ``literal_ticks`` (with the plan's shares), ``nested_ticks`` (with the shares of Eq. 7, rule 6),
    ``peak_memory`` (units by device), ``communication_mb`` (Eq. 2), ``idle``, with a failure ``migration_s``, with
    the objective bottleneck ``slowest_step_s``, on one medium ``medium_ticks`` (rule 18).
    """
    violations = _structure_violations(instance, plan)
    if violations:
        return Evaluation(None, {}, tuple(violations))
    used = {d for stage in plan.stages for d in stage.devices}
    idle = [device.name for d, device in enumerate(instance.devices) if d not in used]
    if instance.all_devices and idle:
        violations.append(Violation("all devices", ", ".join(idle), len(idle), "every device must be in a stage"))
    micro_batches = instance.mini_batch // plan.micro_batch
    peak: dict[str, int] = {}
    nested: list[tuple[int, ...]] = []
    for p, stage in enumerate(plan.stages):
        if len(stage.devices) > 1 and not instance.execution.replication:
            text = f"expected one device, found {len(stage.devices)}"
            violations.append(Violation("replication", f"stage {p}", len(stage.devices) - 1, text))
        for device in stage.devices:
            lacking = [i for i in stage.rows if not instance.supports(instance.devices[device].type, i)]
            if lacking:
                text = f"it cannot execute {', '.join(instance.layers[i].name for i in lacking)}"
                violations.append(Violation("support", instance.devices[device].name, len(lacking), text))
        kept = warm_up(len(plan.stages) - 1 - p, micro_batches, instance.execution)
        for device, share in zip(stage.devices, stage.shares, strict=True):
            name, capacity = instance.devices[device].name, instance.device_type(device).memory
            peak[name] = memory_demand(instance, stage, share, kept)
            if peak[name] > capacity:
                text = f"stage {p} needs {peak[name]} units, capacity {capacity}"
                violations.append(Violation("memory", name, peak[name] - capacity, text))
        nested.append(best_shares(instance, stage, plan.micro_batch, kept) or stage.shares)
    literal = round_latency(instance, plan, [stage.shares for stage in plan.stages])
    reference = round_latency(instance, plan, nested)
    latency = max(literal["latency"], reference["latency"])  # rule 6
    value = max(round_value(instance, literal), round_value(instance, reference))
    migration = migration_ticks(instance, plan)
    rounds = 1 if instance.replanning is None else instance.replanning.rounds
    seconds = latency * instance.seconds_per_tick
    terms: dict[str, Any] = {
        "latency_s": seconds,
        "samples_per_s": instance.mini_batch / seconds if seconds else None,
        "stages": len(plan.stages),
        "dominant_step": literal["dominant"],
        "steps": {key: literal[key] for key in ("forward", "backward", "waiting", "execution", "allreduce")},
        "literal_ticks": literal["latency"],
        "nested_ticks": reference["latency"],
        "peak_memory": peak,
        "communication_mb": communication_bytes(instance, plan) / 1e6,
        "idle": idle,
    }
    if instance.replanning is not None:
        terms["migration_s"] = migration * instance.seconds_per_tick
    if instance.in_turn:
        terms["medium_ticks"] = literal["medium"]
    if instance.objective == "bottleneck":
        terms["slowest_step_s"] = value * instance.seconds_per_tick
    return Evaluation(migration + rounds * value, terms, tuple(violations))


def diagnose(instance: Instance) -> list[str]:
    """Simple proofs of infeasibility, in words; an empty list proves nothing.

    Every layer lies on a group whose members all hold its state, so each layer must fit somewhere; all states lie
    somewhere, so their sum must fit into all memories; and ``all_devices`` asks for a layer that fits on each.
    """
    reasons = []
    largest = max(instance.device_type(d).memory for d in range(len(instance.devices)))
    states = [layer.state_memory for layer in instance.layers]
    for layer in instance.layers:
        if layer.state_memory > largest:
            reasons.append(
                f"memory: the state of layer {layer.name} needs {layer.state_memory} units,"
                f" the largest device has {largest}"
            )
    capacity = sum(instance.device_type(d).memory for d in range(len(instance.devices)))
    if sum(states) > capacity:
        reasons.append(f"memory: the states of all layers need {sum(states)} units, all devices have {capacity}")
    if instance.all_devices:
        smallest = min(range(len(instance.devices)), key=lambda d: instance.device_type(d).memory)
        if instance.device_type(smallest).memory < min(states):
            name = instance.devices[smallest].name
            reasons.append(f"memory: every device must hold a layer, and no layer's state fits on {name}")
    return reasons
