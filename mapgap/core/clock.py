"""How a plan meets the clock: what every board does, task by task, and what was measured of it, back into the instance.

Plain data that problems make and that whoever runs them reads. What runs them knows no problem.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median, quantiles
from typing import Any

from mapgap.core.explaining import quantity
from mapgap.core.references import Reference, resolve

FORWARD, BACKWARD = "forward", "backward"


@dataclass(frozen=True)
class Move:
    """Bytes from a board to another one."""

    sender: str
    receiver: str
    bytes: int


@dataclass(frozen=True)
class Task:
    """Something that a lane does at a stretch: it computes on a board, or moves bytes to another one.

    Attributes
    ----------
    name : str
        Of no other task.
    lane : str
        A board, a unit of one, or a link. It does one task at a time, of those that are ready the one that was first.
    group : str
        What is drawn in one colour and counted together (``FP``, ``BP``, …).
    seconds : float
        What the model says.
    board : str
        Who computes; empty where bytes move.
    move : Move, optional
    after : tuple of str
        Tasks that must have ended.
    about : mapping
        What the problem wants to know again when it is calibrated (stage, phase, share, …); JSON data.
    """

    name: str
    lane: str
    group: str
    seconds: float
    board: str = ""
    move: Move | None = None
    after: tuple[str, ...] = ()
    about: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Script:
    """A plan as tasks.

    Attributes
    ----------
    tasks : tuple of Task
        Of those that become ready together and need the same, the first begins first.
    rounds : tuple of tuple of str
        Of every round the tasks with which it ends.
    seconds : float
        What the model says of a round.
    in_flight : int
        So many rounds overlap: what counts is the time from the end of one to the end of the next while all lanes are
        busy, without as many at the begin and at the end. 0: one after the other.
    """

    tasks: tuple[Task, ...]
    rounds: tuple[tuple[str, ...], ...]
    seconds: float
    in_flight: int = 0


@dataclass(frozen=True)
class PlannedStage:
    """A stage of a pipeline in names: its layers, and its boards with their samples of a micro-batch."""

    layers: tuple[str, ...]
    boards: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class PlannedModel:
    """What a plan does with a model: samples at a time, stages, and who gives the input and gets the output, if that is
    decided."""

    name: str
    micro_batch: int
    stages: tuple[PlannedStage, ...]
    source: str | None = None
    target: str | None = None


@dataclass(frozen=True)
class Quarters:
    """Lower quartile, median and upper quartile of what was measured, and how often."""

    low: float
    middle: float
    high: float
    count: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Quarters:
        low, _, high = quantiles(values, n=4, method="inclusive") if len(values) > 1 else (values[0],) * 3
        return cls(low, median(values), high, len(values))

    def times(self, factor: float) -> Quarters:
        return Quarters(self.low * factor, self.middle * factor, self.high * factor, self.count)


Told = tuple[str, Quarters, str]
"""What was measured, and its unit."""


def calibrated_source(source: str, told: Sequence[Told]) -> str:
    """The ``source`` of an instance that a run has calibrated."""

    def said(found: Quarters, unit: str) -> str:
        values = (f"{v:.4g}" if unit == "times" else quantity(v, unit) for v in (found.low, found.middle, found.high))
        low, middle, high = values
        return f"{middle} ({low} to {high})" + (" times what it was" if unit == "times" else "")

    every = "; ".join(f"{what} {said(found, unit)}" for what, found, unit in told)
    return f"{source} Calibrated by a run (medians, quartiles in brackets): {every}.".strip()


@dataclass(frozen=True)
class Clock:
    """What a problem says of plans that are run.

    Attributes
    ----------
    scripting : str or callable
        ``f(instance, plan, rounds) -> Script`` of a plan that breaks no rule; where rounds overlap, of so many
        (``in_flight``).
    alone : str, optional
        The method whose plans leave everything on one board.
    staging : str or callable, optional
        ``f(instance, plan) -> tuple of PlannedModel``: what models are cut into.
    calibrating : str or callable, optional
        ``f(instance, records) -> (instance, rows)``: the instance with the times of a run, and rows ``(what, ratio or
        rate as Quarters, unit)`` of what was changed. A record is what the task was about with ``seconds``, ``model_s``
        and, of moves, ``sender``, ``receiver`` and ``bytes``.
    """

    scripting: Reference | Callable[..., Script]
    alone: str | None = None
    staging: Reference | Callable[..., Any] | None = None
    calibrating: Reference | Callable[..., Any] | None = None

    def script(self, instance: Any, plan: Any, rounds: int, in_flight: int | None = None) -> Script:
        several = {} if in_flight is None else {"in_flight": in_flight}
        found: Script = resolve(self.scripting)(instance, plan, rounds, **several)
        return found

    def models(self, instance: Any, plan: Any) -> tuple[PlannedModel, ...]:
        """What models are cut into; nothing where plans of the problem are no pipelines."""
        found: tuple[PlannedModel, ...] = () if self.staging is None else resolve(self.staging)(instance, plan)
        return found

    def calibrated(self, instance: Any, records: Sequence[Mapping[str, Any]]) -> tuple[Any, list[Any]] | None:
        """The instance as measured, and what was changed; ``None`` where the problem does not say how."""
        found: tuple[Any, list[Any]] | None = (
            None if self.calibrating is None else resolve(self.calibrating)(instance, records)
        )
        return found
