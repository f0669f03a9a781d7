"""Why a mapping is not faster: its critical chain, what more hardware would bring, where it differs from another."""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby, pairwise

from mapgap.core import LARGEST, Binding, Case, Exchange, Explainer, PlanTable, quantity, relaxed
from mapgap.problems.suboperation_mapping.evaluate import compute_ticks, evaluate, predecessors, timetable
from mapgap.problems.suboperation_mapping.instance import (
    Instance,
    Operation,
    Plan,
    operation_name,
    operations,
    parse_operation,
)

#: Differences between two plans are told layer by layer, or block by block where there are more layers than this.
BLOCKS = 16


def chain(instance: Instance, plan: Plan) -> list[tuple[Operation, int, int, int, int]]:
    """A critical chain: operations that follow each other without a pause from tick 0 to the makespan.

    Returns
    -------
    list of (operation, accelerator, start, end, transfer)
        In the order of time, ticks; waiting for shared links (rule 10) counts as transfer. Of several predecessors that
        end when the operation starts, one that sent data from elsewhere is named before one that merely held the
        accelerator.
    """
    found = timetable(instance, plan)
    assert found is not None, "the plan has no timetable"
    location, start, end, _ = found
    before = {
        parse_operation(instance, second): parse_operation(instance, first)
        for names in plan.order
        for first, second in pairwise(names)
    }
    last = max(location, key=lambda o: (end[o], o))
    steps = []
    while True:
        moved = end[last] - start[last] - compute_ticks(instance, plan.ratio, last, location[last])
        steps.append((last, location[last], start[last], end[last], moved))
        data = [p for p, _ in predecessors(instance, plan.ratio, last)]
        data.sort(key=lambda p: (location[p] == location[last], p))
        behind = [*data, *([before[last]] if last in before else [])]
        waited = [p for p in behind if end[p] == start[last]]
        if start[last] == 0 or not waited:
            return steps[::-1]
        last = waited[0]


def binding(instance: Instance, plan: Plan) -> Binding:
    """The critical chain, accelerator by accelerator."""
    steps = chain(instance, plan)
    names = [accelerator.name for accelerator in instance.accelerators]
    tick = instance.seconds_per_tick
    makespan = steps[-1][3]
    moved = sum(transfer for *_, transfer in steps)
    changes = sum(a[1] != b[1] for a, b in pairwise(steps))
    peak = evaluate(instance, plan).terms["peak_memory"]
    rows = []
    for (a, phase), group in groupby(sorted(steps, key=lambda s: (s[1], s[0][0])), key=lambda s: (s[1], s[0][0])):
        own = list(group)
        sent = sum(transfer for *_, transfer in own)
        spent = sum(end - start for _, _, start, end, _ in own)
        longest = max(own, key=lambda s: s[3] - s[2])
        rows.append(
            (
                names[a],
                phase,
                len(own),
                quantity((spent - sent) * tick, "s"),
                quantity(sent * tick, "s"),
                f"{100 * spent / makespan:.1f} %" if makespan else None,
                operation_name(instance, longest[0]),
            )
        )
    full = [
        f"{accelerator.name} {100 * peak[accelerator.name] / accelerator.memory:.0f} %"
        for accelerator in instance.accelerators
        if accelerator.memory
    ]
    sentence = (
        f"{len(steps)} operations follow each other without a pause and take all of {quantity(makespan * tick, 's')}; "
        f"{quantity(moved * tick, 's')} of it move data, and the chain changes the accelerator "
        f"{changes} time{'' if changes == 1 else 's'}. DRAM in use at the peak: {', '.join(full)}."
    )
    columns = ("board", "phase", "operations", "computes", "moves data", "share", "longest")
    bars = frozenset((names[a], operation_name(instance, o)) for o, a, *_ in steps)
    return Binding(sentence, PlanTable(columns, tuple(rows), columns[2:6]), bars)


def relaxations(instance: Instance) -> list[Case]:
    """Faster links, links without latency or that are not shared, more memory, one more board of each kind."""
    rates = tuple(tuple(min(2 * rate, LARGEST) for rate in row) for row in instance.bandwidth)
    doubled = [a.model_copy(update={"memory": min(2 * a.memory, LARGEST)}) for a in instance.accelerators]
    found = relaxed(instance, "all links twice as fast", bandwidth=rates)
    if instance.latency_ns:
        found += relaxed(instance, "messages without latency", latency_ns=())
    if instance.medium != "links":
        found += relaxed(instance, "a link for every pair of boards", medium="links")
    found += relaxed(instance, "twice the memory", accelerators=[a.model_dump() for a in doubled])
    for index, accelerator in enumerate(instance.accelerators):
        found += _with_another(instance, index, f"a second {accelerator.name}")
    return found


def _with_another(instance: Instance, index: int, label: str) -> list[Case]:
    """One more accelerator like that of this index, linked like it; to its twin with its best rate and latency."""
    own = instance.accelerators[index]
    added = own.model_copy(update={"name": f"{own.name} (2)"})
    others = [j for j, _ in enumerate(instance.accelerators) if j != index]
    rates = _wider(instance.bandwidth, index, max((instance.bandwidth[index][j] for j in others), default=LARGEST))
    late = _wider(instance.latency_ns, index, min((instance.late_ns(index, j) for j in others), default=0))
    layers = []
    for layer in instance.layers:
        data = layer.model_dump()
        for phase in ("fp", "bp", "wu"):
            if data[phase]:
                data[phase] = (*data[phase], data[phase][index])
        layers.append(data)
    boards = [a.model_dump() for a in (*instance.accelerators, added)]
    return relaxed(instance, label, accelerators=boards, bandwidth=rates, latency_ns=late, layers=layers)


def _wider(matrix: tuple[tuple[int, ...], ...], index: int, between: int) -> tuple[tuple[int, ...], ...]:
    """With one more row and column like those of an index, and an entry between the two; of none, none."""
    rows = [[*row, between if i == index else row[index]] for i, row in enumerate(matrix)]
    last = [[*(between if j == index else v for j, v in enumerate(matrix[index])), 1]] if matrix else []
    return tuple(map(tuple, rows + last))


def exchanges(instance: Instance, plan: Plan, other: Plan) -> list[Exchange]:
    """Ratio, accelerators by layers, order.

    The orders of a plan in between list the operations by their starts in the first plan, or in the other one once
    the order is exchanged; an operation that is in one of them only has its start there.
    """
    own, others = _starts(instance, plan), _starts(instance, other)
    first, second = {**others, **own}, {**own, **others}
    there = _located(instance, other)
    found = []
    if plan.ratio != other.ratio:
        label = f"ratio {':'.join(map(str, plan.ratio))} to {':'.join(map(str, other.ratio))}"
        found.append(Exchange(label, lambda p: _rebuilt(instance, other.ratio, _located(instance, p), there, first)))
    here = _located(instance, plan)
    differing = [
        index
        for index in range(len(instance.layers))
        if any(here.get(o, a) != a for o, a in there.items() if o[1] == index)
    ]
    size = -(-len(differing) // BLOCKS)
    for block in [differing[k : k + size] for k in range(0, len(differing), size or 1)]:
        names = [instance.layers[index].name for index in block]
        label = f"boards of {names[0]}" if len(names) == 1 else f"boards of {names[0]} to {names[-1]} ({len(names)})"
        found.append(Exchange(label, _moving(instance, frozenset(block), there, first)))
    if plan.order != other.order:

        def reorder(p: Plan) -> Plan:
            return _rebuilt(instance, p.ratio, _located(instance, p), there, second)

        found.append(Exchange("order of the operations", reorder))
    return found


Starts = dict[Operation, int]
Located = dict[Operation, int]


def _moving(instance: Instance, block: frozenset[int], there: Located, starts: Starts) -> Callable[[Plan], Plan]:
    def move(p: Plan) -> Plan:
        located = _located(instance, p)
        moved = {o: there.get(o, a) if o[1] in block else a for o, a in located.items()}
        return _rebuilt(instance, p.ratio, moved, there, starts)

    return move


def _located(instance: Instance, plan: Plan) -> Located:
    return {parse_operation(instance, name): a for a, names in enumerate(plan.order) for name in names}


def _starts(instance: Instance, plan: Plan) -> Starts:
    found = timetable(instance, plan)
    return {} if found is None else found.start


def _rebuilt(instance: Instance, ratio: tuple[int, ...], located: Located, there: Located, starts: Starts) -> Plan:
    """Orders by start, then by precedence, so that no orders wait for each other where all starts are of one plan."""
    order: list[list[str]] = [[] for _ in instance.accelerators]
    present = operations(instance, ratio)

    def key(operation: Operation) -> tuple[int, int, int, int]:
        phase, layer, share = operation
        rank = ("FP", "BP", "WU").index(phase)
        return starts.get(operation, 0), rank, -layer if phase == "BP" else layer, share

    for operation in sorted(present, key=key):
        order[located.get(operation, there.get(operation, 0))].append(operation_name(instance, operation))
    return Plan(ratio=ratio, order=tuple(map(tuple, order)))


EXPLAINER = Explainer(binding, relaxations, exchanges)
