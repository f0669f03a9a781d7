"""What the importers of all problems share: the finest tick, whole tables of ticks, and what cannot be guessed."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from mapgap.core import BACKWARD_ASSUMED, InputError, InstanceBase
from mapgap.core.workload import Curve, Settings, WorkLayer, Workload, at
from mapgap.instances import expanding

TICKS_NS = tuple(10**k for k in range(2, 13))
"""Ticks that are tried, the finest first: 100 ns to 1000 s."""
UNITS = tuple(1024**k for k in range(1, 5))
"""Memory units that are tried: 1 KiB to 1 TiB."""
Made = TypeVar("Made", bound=InstanceBase)


def finest(make: Callable[[int, int], Made], ticks: Sequence[int] = TICKS_NS) -> Made:
    """The instance with the finest tick and memory unit that its sums allow.

    Parameters
    ----------
    make : callable
        ``make(tick_ns, memory_unit_bytes)``; raises a finding at ``tick_ns`` or ``memory_unit_bytes`` where they are
        too fine.

    Raises
    ------
    InputError
        Anything else that is wrong.
    """

    def in_units(unit: int) -> Made:
        return expanding.finest(lambda tick_ns: make(tick_ns, unit), ticks)

    for unit in UNITS:
        try:
            return in_units(unit)
        except InputError as error:
            if unit == UNITS[-1] or any(found.location[:1] != ("memory_unit_bytes",) for found in error.findings):
                raise
        except ValidationError as error:
            raise InputError(str(error)) from error
    raise AssertionError("unreachable")  # the last unit returns or raises


def ticks(nanoseconds: float, tick_ns: int) -> int:
    """Whole ticks, to the nearest."""
    return round(nanoseconds / tick_ns)


def table(curve: Curve, width: int, tick_ns: int) -> tuple[int, ...]:
    """Ticks of 1 … width samples; more samples never take less."""
    found, last = [], 0
    for samples in range(1, width + 1):
        last = max(last, ticks(at(curve, samples), tick_ns))
        found.append(last)
    return tuple(found)


def units(size: float, unit: int) -> int:
    """Whole units that hold so many bytes, rounded up."""
    return -(-math.ceil(size) // unit)


def with_backward(workload: Workload, settings: Settings, factor: float | None = None) -> tuple[Workload, list[str]]:
    """The workload with backward times on every board, and what was assumed for it.

    The setting ``backward`` is their ratio to the forward times where they were not measured; without it 2 for layers
    with weights (gradients of input and weights), 1 for others, or ``factor`` for all.
    """
    if all(board.backward for board in workload.boards):
        return workload, []
    ratio = settings.number("backward", "backward over forward time where it was not measured", factor or 0.0)
    given = "backward" in settings.given or factor is not None

    def scaled(curve: Curve, layer: WorkLayer) -> Curve:
        times = ratio if given else 2.0 if layer.weight_bytes else 1.0
        return tuple((samples, times * time) for samples, time in curve)

    boards = tuple(
        board if board.backward else replace(board, backward=tuple(map(scaled, board.forward, workload.layers)))
        for board in workload.boards
    )
    how = f"{ratio:g}" if given else "2 (layers with weights) or 1 (others)"
    return replace(workload, boards=boards), [f"Backward times that were not measured: {how} times the forward times."]


def imported_tags(*, assumed: bool) -> tuple[str, ...]:
    """Tags of an imported instance; ``assumed``: its backward times were not measured."""
    return ("imported", BACKWARD_ASSUMED) if assumed else ("imported",)


def ask_for_memory(workload: Workload, settings: Settings) -> None:
    """Note every board whose memory nobody told."""
    for board in workload.boards:
        if board.memory_bytes is None:
            settings.ask(f"memory of {board.name}: expected memory_gb of the board, or --memory GB")


def further_fields(kind: type[BaseModel], made: Collection[str], settings: Settings) -> dict[str, Any]:
    """Values that the user gave for fields of an instance which the import does not make.

    A field that is a model of its own is given by the names of its fields: ``--set training=false`` for a field
    ``execution`` that has ``training``.

    Raises
    ------
    InputError
        A value that its field does not take.
    """
    found: dict[str, Any] = {}
    for name, info in kind.model_fields.items():
        if name in made:
            continue
        inner = info.annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            given = settings.given_to(dict.fromkeys(inner.model_fields))
            if given:
                found[name] = _model(inner, given)
        else:
            found |= {key: _frozen(value) for key, value in settings.given_to({name: None}).items()}
    return found


def _model(kind: type[BaseModel], given: dict[str, Any]) -> BaseModel:
    try:
        return kind(**{name: _frozen(value) for name, value in given.items()})
    except ValidationError as error:
        raise InputError(
            f"--set {each['loc'][0]}={each['input']}: expected another value: {each['msg']}" for each in error.errors()
        ) from error


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, list) else value
