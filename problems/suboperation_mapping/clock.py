"""A plan as tasks: every accelerator in its order, each transfer on the accelerator that rule 5 or 4 charges.

Tasks stand by accelerator, and what an operation receives by sender: where links are shared, that is rule 10's order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mapgap.core import Clock, Move, Quarters, Script, Task
from mapgap.core.clock import Told, calibrated_source
from mapgap.problems.suboperation_mapping.evaluate import compute_ticks, predecessors, timetable
from mapgap.problems.suboperation_mapping.instance import Instance, Operation, Plan, operation_name


def script(instance: Instance, plan: Plan, rounds: int) -> Script:
    """Iterations one after the other: of each operation what it reads, one tensor after the other, then its
    computation, then the dW that it sends.

    Tasks have the times of rule 6, whatever the medium of the instance; the length of the plan is that on its medium.
    """
    timed = timetable(instance, plan)
    assert timed is not None
    names, tick = [each.name for each in instance.accelerators], instance.seconds_per_tick
    holders: dict[int, set[int]] = {}
    for (phase, index, _), a in timed.location.items():
        if phase == "FP":
            holders.setdefault(index, set()).add(a)
    inputs = {operation: predecessors(instance, plan.ratio, operation) for operation in timed.location}
    found: list[Task] = []
    ends: list[tuple[str, ...]] = []
    for r in range(rounds):
        ended: dict[Operation, str] = {}
        last: dict[int, str] = {}
        for operation in _in_order(timed.start, timed.end, inputs):
            a, label = timed.location[operation], operation_name(instance, operation)
            after = {ended[p] for p, _ in inputs[operation]} | {last[a] for _ in [0] if a in last}
            needs = tuple(sorted(after)) or (ends[-1] if ends else ())
            steps = [
                (Move(names[timed.location[p]], names[a], size), timed.location[p], a) for p, size in inputs[operation]
            ]
            steps.sort(key=lambda step: (step[1], -step[0].bytes))
            steps.append((None, a, a))  # type: ignore[arg-type]
            if operation[0] == "WU":
                weights = instance.layers[operation[1]].weight_bytes
                steps += [(Move(names[a], names[h], weights), a, h) for h in sorted(holders[operation[1]])]
            for k, (move, sender, receiver) in enumerate(steps):
                if move is not None and (sender == receiver or not move.bytes):
                    continue
                ticks = (
                    instance.transfer_ticks(move.bytes, sender, receiver)
                    if move
                    else compute_ticks(instance, plan.ratio, operation, a)
                )
                name = f"{r}/{label}" if move is None else f"{r}/{label}/move{k}"
                about = {"round": r, "operation": label}
                board = "" if move else names[a]
                found.append(Task(name, names[a], operation[0], ticks * tick, board, move, needs, about))
                needs = (name,)
            ended[operation] = last[a] = needs[0]
        ends.append(tuple(last.values()))
    found.sort(key=lambda task: names.index(task.lane))
    return Script(tuple(found), tuple(ends), max(timed.end.values()) * tick)


def _in_order(
    start: dict[Operation, int], end: dict[Operation, int], inputs: dict[Operation, list[tuple[Operation, int]]]
) -> Iterator[Operation]:
    """Operations by start; of those that take no time, none before one that it reads."""
    waiting = dict.fromkeys(sorted(start, key=lambda each: (start[each], end[each])))
    while waiting:
        found = next(each for each in waiting if not any(p in waiting for p, _ in inputs[each]))
        del waiting[found]
        yield found


def calibrated(instance: Instance, records: Sequence[Mapping[str, Any]]) -> tuple[Instance, list[Told]]:
    """The instance with measured times and bandwidths.

    What operations of a phase took on an accelerator over what they should have taken, its median, is the factor of all
    of them there; of a link likewise what transfers took beside their latency. What did nothing keeps its values.
    """
    names = [each.name for each in instance.accelerators]
    place = {name: a for a, name in enumerate(names)}
    computed: dict[tuple[int, str], list[float]] = {}
    moved: dict[tuple[int, int], list[float]] = {}
    for record in records[1:]:
        if record["model_s"] <= 0 or record["seconds"] <= 0:
            continue
        if record.get("board"):
            key = place[record["board"]], str(record["group"]).lower()
            computed.setdefault(key, []).append(record["seconds"] / record["model_s"])
        else:
            link = place[record["sender"]], place[record["receiver"]]
            late = instance.late_ns(*link) * 1e-9
            if min(record["model_s"], record["seconds"]) > late:
                moved.setdefault(link, []).append((record["model_s"] - late) / (record["seconds"] - late))
    factors = {key: Quarters.of(each) for key, each in sorted(computed.items())}
    rates = {(a, b): Quarters.of(each).times(instance.bandwidth[a][b]) for (a, b), each in sorted(moved.items())}
    layers = []
    for layer in instance.layers:
        tables = {
            phase: tuple(
                tuple(round(t * factors[a, phase].middle) for t in row) if (a, phase) in factors else row
                for a, row in enumerate(getattr(layer, phase))
            )
            for phase in ("fp", "bp", "wu")
        }
        layers.append(layer.model_copy(update=tables))
    told: list[Told] = [(f"{names[a]}: {phase.upper()}", each, "times") for (a, phase), each in factors.items()]
    told += [(f"{names[a]} to {names[b]}", each, "B/s") for (a, b), each in rates.items()]
    bandwidth = [list(row) for row in instance.bandwidth]
    for (a, b), each in rates.items():
        bandwidth[a][b] = max(1, round(each.middle))
    source = calibrated_source(instance.source, told)
    made = instance.changed(layers=tuple(layers), bandwidth=tuple(map(tuple, bandwidth)), source=source)
    return made, told


CLOCK = Clock(script, "single_accelerator", calibrating=calibrated)
