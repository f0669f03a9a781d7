"""The central types: what a problem, a plan, a method and the result of a run are.

Everything an optimiser sees is an integer in units that the instance states; a model's objective and the
evaluator's are therefore *equal*, never merely close. Nothing in this module knows any particular problem,
and nothing here imports a solver library.

What is proven (:class:`Status`) and why a run ended (:class:`Stop`) are separate facts: a run that hits its
time limit is never OPTIMAL, and a missing plan or bound is ``None``, never ``inf`` or 0.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

#: Sums of all durations (and of all memory demands) of an instance stay below this, so that every row of a
#: model stays below 2^31 in absolute activity. ``ortools`` 9.15 was measured to return wrong "OPTIMAL" answers
#: beyond it (google/or-tools issue 5293).
ACTIVITY_LIMIT = 2**30


class Frozen(BaseModel):
    """Base of every instance and plan: immutable, typed strictly, unknown keys refused, JSON round-trip."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, populate_by_name=True)

    def to_json(self) -> dict[str, Any]:
        """Return the value as plain JSON data (tuples as lists)."""
        data: dict[str, Any] = self.model_dump(mode="json", by_alias=True)
        return data


class InstanceBase(Frozen):
    """What every expanded instance carries, whatever its problem.

    Attributes
    ----------
    problem : str
        Name of the problem, a folder name of the ``problems`` wing.
    name : str
        Human name; not part of the content hash.
    source : str
        Where the data come from and which values are published, derived, measured or assumed;
        not part of the content hash.
    tags : tuple of str
        Free labels for selection in sweeps; not part of the content hash.
    """

    schema_version: Literal[1] = Field(default=1, alias="schema")
    form: Literal["expanded"] = "expanded"
    problem: str
    name: str
    source: str = ""
    tags: tuple[str, ...] = ()

    @property
    def content_hash(self) -> str:
        """First 16 hex digits of the SHA-256 of everything an optimiser can see (name, source, tags excluded)."""
        data = self.to_json()
        for key in ("name", "source", "tags"):
            data.pop(key)
        text = json.dumps(data, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]


class CompactBase(Frozen):
    """What every compact instance file carries; it names library data and parameters and expands to an instance."""

    schema_version: Literal[1] = Field(default=1, alias="schema")
    form: Literal["compact"] = "compact"
    problem: str
    name: str
    source: str = ""
    tags: tuple[str, ...] = ()


class PlanBase(Frozen):
    """Decisions only; never a cached objective."""


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
    """How much trust an optimality claim deserves, least first."""

    CLAIMED = "claimed"
    AGREED = "agreed"
    ENUMERATED = "enumerated"

    @property
    def rank(self) -> int:
        """Place in the order of trust; larger is better."""
        return list(Certificate).index(self)


Kind = Literal["exact", "published", "baseline", "bound"]
Sense = Literal["min", "max"]


@dataclass(frozen=True)
class TracePoint:
    """One improvement during a run: at ``time_s`` a new incumbent ``objective`` or a new proven ``bound``."""

    time_s: float
    objective: int | None = None
    bound: int | None = None

    def to_json(self) -> dict[str, Any]:
        return {"time_s": round(self.time_s, 4), "objective": self.objective, "bound": self.bound}


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
    """

    time_s: float = 60.0
    memory_mb: int | None = None
    workers: int = 1
    seed: int = 0
    listener: Callable[[PlanBase | None, int | None], None] | None = None
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


@dataclass(frozen=True)
class Method:
    """A way to solve one problem.

    ``options`` holds the names and default values a user may override (``--set name=value``); they are passed to
    ``run`` as keyword arguments and keep the type of their default.
    """

    name: str
    problem: str
    kind: Kind
    reference: str
    run: Callable[..., SolveResult]
    summary: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    rank: int = 0  # among exact methods of a problem the highest rank is what ``--exact`` picks
    engines: tuple[str, ...] = ()  # of an exact method: on whose word a proof rests (CP-SAT, HiGHS, CBC, own, …)


@dataclass(frozen=True)
class Problem:
    """The specification of one mapping problem.

    ``evaluate(instance, plan)`` is written in plain loops, returns all violations and shares no helper with any
    model. ``gantt`` and ``diagnose`` draw a plan and say why an instance has none.

    A problem with several ``objectives`` has instances with a field ``objective`` that holds one of them; what is
    optimised is part of the instance and of its hash. ``--objective`` replaces the field.
    """

    name: str
    title: str
    paper: str
    sense: Sense
    unit: Callable[[Any], str]
    instance_type: type[InstanceBase]
    plan_type: type[PlanBase]
    evaluate: Callable[[Any, Any], Evaluation]
    gantt: Callable[[Any, Any], list[GanttLane]] | None = None
    diagnose: Callable[[Any], list[str]] | None = None
    objectives: tuple[str, ...] = ()

    def retarget(self, instance: InstanceBase, objective: str) -> InstanceBase:
        """The same instance under another of the problem's objectives, named ``NAME@OBJECTIVE``."""
        if getattr(instance, "objective", None) == objective:
            return instance
        base = instance.name.partition("@")[0]
        return instance.model_copy(update={"objective": objective, "name": f"{base}@{objective}"})


@dataclass(frozen=True)
class Case:
    """One side of a case split, as an instance of its own."""

    label: str
    instance: InstanceBase


@dataclass(frozen=True)
class Library:
    """Instances of one problem: how compact files expand and which random families exist.

    ``expand(compact)`` returns the expanded instance and raises :class:`InputError` where the compact form cannot be
    expanded. ``generators`` map a family name to ``f(seed) -> instance``; the family ``tiny`` must exist and be small
    enough for brute force. ``cases(instance)`` splits an instance on one decision, such that the best optimum of the
    cases is the optimum of the instance. ``shrink(instance)`` yields smaller instances (one part less).
    """

    problem: str
    compact_type: type[CompactBase]
    expand: Callable[[Any], InstanceBase]
    generators: Mapping[str, Callable[[int], InstanceBase]]
    cases: Callable[[Any], list[Case]] | None = None
    shrink: Callable[[Any], Iterator[InstanceBase]] | None = None


@dataclass(frozen=True)
class GanttBar:
    """One bar of a chart: ``[start, end)`` in seconds, of which the first ``transfer`` seconds move data."""

    start: float
    end: float
    label: str
    group: str
    transfer: float = 0.0


@dataclass(frozen=True)
class GanttLane:
    """One row of a chart: a device or a unit of a device."""

    name: str
    bars: tuple[GanttBar, ...]


class MapgapError(Exception):
    """Base of all errors a user can cause; printed as one clear message, without a traceback."""

    exit_code = 2


class InputError(MapgapError):
    """A file, flag or profile is wrong. ``problems`` lists every finding, each naming place, expected and found."""

    def __init__(self, problems: list[str] | str) -> None:
        self.problems = [problems] if isinstance(problems, str) else list(problems)
        super().__init__("\n".join(self.problems))


class PlanError(MapgapError):
    """A plan failed verification, or an exact model claims another objective than the evaluator."""

    exit_code = 5
