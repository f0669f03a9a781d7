"""What an engine reports of one model, whichever engine it was."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mapgap.core import Status, Stop, TracePoint


@dataclass(frozen=True)
class Outcome:
    """Result of one solve of one model (a minimisation).

    Attributes
    ----------
    status : Status
        What the engine has proven about the *model*.
    stop : Stop
        Why it ended.
    objective, bound : int or None
        Value of the solution held, and proven lower bound; ``None`` when there is none.
    value : callable
        ``value(variable)`` is the integer a variable takes in the solution.
    trace : tuple of TracePoint
        New incumbents and bounds, in seconds since the solve began.
    """

    status: Status
    stop: Stop
    objective: int | None
    bound: int | None
    value: Callable[[Any], int]
    trace: tuple[TracePoint, ...] = ()

    @property
    def solved(self) -> bool:
        """A solution is held."""
        return self.objective is not None
