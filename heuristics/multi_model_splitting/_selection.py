"""The best execution plan of one pipeline, given what is placed (Algorithm 1, lines 5 to 11)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mapgap.core import Budget, InputError
from mapgap.heuristics.multi_model_splitting._common import SENSOR, Ends, Ledger, Tables, costs
from mapgap.heuristics.multi_model_splitting._search import FORBIDDEN, Path, Search
from mapgap.problems.multi_model_splitting import Instance

Choice = tuple[Path, Ends | None]
ORDERS = ("data_intensity", "io_bytes", "given")


def data_intensity(instance: Instance, index: int) -> float:
    """Average data size of a model, (In + sum Out) / (L + 1) (Sec. 5.3)."""
    pipeline = instance.pipelines[index]
    total = pipeline.boundaries[0].bytes + sum(layer.output_bytes for layer in pipeline.layers)
    return total / (len(pipeline.layers) + 1)


def io_bytes(instance: Instance, index: int) -> int:
    """Bytes of input and output, which move if the model does not run where its data are born and used."""
    boundaries = instance.pipelines[index].boundaries
    return boundaries[0].bytes + boundaries[-1].bytes


def ordered(instance: Instance, rule: str) -> list[int]:
    """Pipelines by falling key (ties by number), or as given (Alg. 1, line 3).

    Raises
    ------
    InputError
        No such rule.
    """
    numbers = list(range(len(instance.pipelines)))
    if rule == "data_intensity":
        return sorted(numbers, key=lambda p: -data_intensity(instance, p))
    if rule == "io_bytes":
        return sorted(numbers, key=lambda p: -io_bytes(instance, p))
    if rule == "given":
        return numbers
    raise InputError(f"order: expected one of {', '.join((*ORDERS, 'best'))}; found {rule!r}")


def end_choices(instance: Instance, index: int) -> Iterator[Ends]:
    """Source and target candidates by number (Sec. 5.1), plans that begin at the source before the others.

    Why the two cases are apart says :func:`_common.costs`.
    """
    for source in instance.sources(index):
        for target in instance.targets(index):
            yield Ends(source, target, True)
            yield Ends(source, target, False)


def best_choice(
    instance: Instance, index: int, tables: Tables, ledger: Ledger, budget: Budget, ends: bool = True
) -> Choice | None:
    """The candidate with the least (cycle, latency), or the least latency, that is found first; ``None`` if OOR.

    Parameters
    ----------
    ends : bool
        Plan source and target together with the segments; otherwise the model's own tasks alone decide.
    """
    choices: list[Ends | None] = list(end_choices(instance, index)) if ends else [None]
    found, least = None, FORBIDDEN
    cap = FORBIDDEN - 1
    if instance.objective == "throughput":
        cap = _least_cycle(tables, ledger, choices, budget)
    numbers = list(range(len(instance.devices)))
    for choice in choices:
        if choice and _floor(tables, ledger, choice) > cap:
            continue
        largest, latency = costs(tables, ledger, choice)
        allowed = np.where(largest > cap, FORBIDDEN, latency)
        sensing = tables.sensing[choice.source] if choice else 0
        search = Search(allowed, "sum", numbers, ledger.left, tables.remaining, budget)
        better = search.run(floor=sensing, below=least)
        if better is not None:
            least, found = better[0], (better[1], choice)
    return found


def _floor(tables: Tables, ledger: Ledger, ends: Ends | None) -> int:
    """Cycle time before any segment is placed: what is there, and sensing."""
    if ends is None:
        return ledger.cycle
    return max(ledger.cycle, int(ledger.load[SENSOR, ends.source]) + tables.sensing[ends.source])


def _least_cycle(tables: Tables, ledger: Ledger, choices: list[Ends | None], budget: Budget) -> int:
    """The least cycle time of any candidate."""
    least = FORBIDDEN
    numbers = list(range(ledger.left.shape[1]))
    for choice in choices:
        largest, _ = costs(tables, ledger, choice)
        search = Search(largest, "max", numbers, ledger.left, tables.remaining, budget)
        better = search.run(floor=_floor(tables, ledger, choice), below=least)
        if better is not None:
            least = better[0]
    return least


def best_split(
    tables: Tables, ledger: Ledger, budget: Budget, segments: int, *, order: list[int], by_bytes: bool
) -> Path | None:
    """First split into that many segments, or the one that moves the fewest bytes between its devices."""
    cost = np.zeros((len(order), tables.last, tables.last + 1), np.int64)
    if by_bytes:
        cost[:, 1:] += tables.cut[1 : tables.last, None]
    cost[tables.misfits(ledger.left)] = FORBIDDEN
    search = Search(cost, "sum", order, ledger.left, tables.remaining, budget, exactly=segments)
    found = search.run()
    return None if found is None else found[1]
