"""Runs in independent parts: what a method says of itself so that several processes can share its work."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from mapgap.core.references import Reference
from mapgap.core.results import SolveResult, Stop

Known = Callable[[], Any]
"""What the whole run knows by now (:attr:`Parts.known`), as a part sees it from its own process."""


@dataclass(frozen=True)
class Task:
    """One part.

    Attributes
    ----------
    name : str
        Distinct within the run.
    run : str
        ``f(instance, budget, known, *arguments)``; the budget is the part's own. What it returns is handed to
        :meth:`Parts.learn`.
    arguments : tuple
        Small and picklable; the instance is not among them.
    whole : bool
        It gets all of the time that is left, and a thread of its own; the others share what remains.
    tells : bool
        Every plan and bound that it announces to its budget is handed to :meth:`Parts.learn` at once, as a result that
        proves nothing else.
    """

    name: str
    run: Reference
    arguments: tuple[Any, ...] = ()
    whole: bool = False
    tells: bool = False


class Parts(Protocol):
    """The whole run, in the process that coordinates it; it announces plans and bounds to its budget.

    A part may be done twice, or not at all: a process that dies costs its part, which is then given to another one.
    """

    def tasks(self) -> Sequence[Task]:
        """The parts, most promising first."""
        ...

    def wanted(self, task: Task) -> bool:
        """Whether a part that has not begun can still change the result; if it tells, also one that runs."""
        ...

    @property
    def known(self) -> Any:
        """What parts that run should know: plain data, for instance the best objective."""
        ...

    def learn(self, task: Task, found: Any) -> None:
        """Take what a part has returned, or told meanwhile."""
        ...

    def result(self, stop: Stop) -> SolveResult:
        """The result of all parts so far; ``stop`` says whether all that were wanted are done (``PROVED``)."""
        ...
