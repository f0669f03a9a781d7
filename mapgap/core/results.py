"""What a run is given and what it hands back: budget, status, bound, evaluation."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from mapgap.core.data import PlanBase

CONFIRMED, UNCONFIRMED = "confirmed", "unconfirmed"
"""Keys of the notes that say who confirmed what a run claims, and which claims nobody confirmed."""

RECOMPUTED = "recomputed"
"""Key of the note with the best bound of a run that rests on no engine's word, where an engine claims a better one."""

DISTRUSTED = "distrusted"
"""Key of the note that lists which engines were refused or refuted before another one was believed."""


@dataclass(frozen=True)
class Violation:
    """One broken rule: which, where, by how much (in the unit of the rule)."""

    rule: str
    where: str
    amount: int
    message: str

    def to_json(self) -> dict[str, Any]:
        return {"rule": self.rule, "where": self.where, "amount": self.amount, "message": self.message}


@dataclass(frozen=True)
class Evaluation:
    """What ``Problem.evaluate`` says of a plan.

    Attributes
    ----------
    objective : int or None
        In the objective's unit; ``None`` when the plan is so broken that no value is defined
        (an operation missing, a cyclic order). A plan that only exceeds a limit still has a value.
    terms : mapping
        Named parts and side facts (throughput, busy time, peak memory, …), for reports only.
    violations : tuple of Violation
        *All* broken rules; empty exactly when the plan is feasible.
    """

    objective: int | None
    terms: Mapping[str, Any] = field(default_factory=dict)
    violations: tuple[Violation, ...] = ()

    @property
    def feasible(self) -> bool:
        return not self.violations and self.objective is not None


class Status(StrEnum):
    """What is proven about the instance by this run."""

    OPTIMAL = "OPTIMAL"
    FEASIBLE = "FEASIBLE"
    INFEASIBLE = "INFEASIBLE"
    UNKNOWN = "UNKNOWN"


class Stop(StrEnum):
    """Why a run ended."""

    PROVED = "proved"
    TIME = "time"
    MEMORY = "memory"
    DONE = "done"
    INTERRUPTED = "interrupted"
    ERROR = "error"


class Certificate(StrEnum):
    """How much trust an optimality claim deserves, least first.

    ``claimed``: one engine says so. ``agreed``: two methods on different engines, and a case split. ``enumerated``: all
    plans were looked at. ``checked``: a file proves it to :mod:`mapgap.evidence.check`, whoever made the file.
    """

    CLAIMED = "claimed"
    AGREED = "agreed"
    ENUMERATED = "enumerated"
    CHECKED = "checked"

    @property
    def rank(self) -> int:
        """Place in the order of trust; larger is better."""
        return list(Certificate).index(self)


@dataclass(frozen=True)
class TracePoint:
    """One improvement during a run: at ``time_s`` a new incumbent ``objective`` or a new proven ``bound``."""

    time_s: float
    objective: int | None = None
    bound: int | None = None

    def to_json(self) -> dict[str, Any]:
        return {"time_s": round(self.time_s, 4), "objective": self.objective, "bound": self.bound}


class OutOfTime(Exception):
    """The budget ended in the middle of work that is worth nothing in part; whoever asked for it goes on without."""


@dataclass
class Budget:
    """Limits of one run, and the place where a method announces progress.

    Attributes
    ----------
    time_s : float
        Wall-clock seconds from :meth:`start`.
    memory_mb : int or None
        Hard limit of the process, enforced from outside; a method may use it to size itself.
    workers : int
        Threads a solver may use.
    seed : int
        The only source of randomness; same seed and one worker, same plan.
    listener : callable, optional
        Receives ``(plan or None, bound or None)`` whenever the method calls :meth:`report`; the harness uses it
        to keep the incumbent of a run that is killed.
    by : str
        Who is at work, where a method is made of several; empty: the method itself. What is announced is recorded as
        theirs.
    used_s : dict
        Seconds by what they were used for (``engine``, ``build``), added up by :meth:`timed`; all parts of a budget
        share it, and it goes into the record.
    recomputed : list of int
        Bounds that rest on no engine's word but on whole numbers of our own, the strongest last; shared likewise.
    """

    time_s: float = 60.0
    memory_mb: int | None = None
    workers: int = 1
    seed: int = 0
    listener: Callable[[PlanBase | None, int | None], None] | None = None
    by: str = ""
    used_s: dict[str, float] = field(default_factory=dict, repr=False)
    recomputed: list[int] = field(default_factory=list, repr=False)
    _started: float = field(default_factory=time.perf_counter, repr=False)

    def start(self) -> Budget:
        """Set the clock to zero."""
        self._started = time.perf_counter()
        return self

    @property
    def elapsed_s(self) -> float:
        return time.perf_counter() - self._started

    @property
    def remaining_s(self) -> float:
        return max(0.0, self.time_s - self.elapsed_s)

    @property
    def exhausted(self) -> bool:
        return self.remaining_s <= 0.0

    def quiet(self) -> Budget:
        """The same clock, nothing announced: for parts whose plans are offered when they end."""
        return replace(self, listener=None)

    def part(self, seconds: float) -> Budget:
        """At most so many seconds from now, with the same listener."""
        return replace(self, time_s=min(self.time_s, self.elapsed_s + seconds))

    @contextmanager
    def timed(self, use: str) -> Iterator[None]:
        """Add the seconds spent inside to :attr:`used_s`."""
        begun = time.perf_counter()
        try:
            yield
        finally:
            self.used_s[use] = self.used_s.get(use, 0.0) + time.perf_counter() - begun

    def report(self, plan: PlanBase | None = None, bound: int | None = None) -> None:
        """Announce a better plan or a better proven bound."""
        if self.listener is not None:
            self.listener(plan, bound)


@dataclass(frozen=True)
class SolveResult:
    """What a method returns. There is no objective: the caller re-evaluates every plan.

    Attributes
    ----------
    status, stop
        What is proven, and why the run ended.
    plan : PlanBase or None
    bound : int or None
        Proven lower bound (upper bound for a maximisation) on the optimum; ``None`` when the method proves nothing.
    claimed : int or None
        The objective an exact model believes its plan has. The caller compares it with ``evaluate`` and fails the
        run loudly on any difference.
    enumerated : bool
        The optimum was proven by exhausting all plans, not by an engine's word.
    reason : str
        Why an infeasible instance is infeasible, or what went wrong.
    notes : mapping
        Facts worth recording (ratios searched, columns, build seconds under the key ``build_s``).
    """

    status: Status
    stop: Stop
    plan: PlanBase | None = None
    bound: int | None = None
    claimed: int | None = None
    enumerated: bool = False
    reason: str = ""
    notes: Mapping[str, Any] = field(default_factory=dict)
