"""The central types: what a problem, a plan, a method and the result of a run are.

Everything an optimiser sees is an integer in units that the instance states; a model's objective and the
evaluator's are therefore *equal*, never merely close. Nothing in this module knows any particular problem,
and nothing here imports a solver library.

What is proven (:class:`Status`) and why a run ended (:class:`Stop`) are separate facts: a run that hits its
time limit is never OPTIMAL, and a missing plan or bound is ``None``, never ``inf`` or 0.
"""

from __future__ import annotations

import contextlib
import difflib
import hashlib
import importlib
import json
import random
import time
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any, Generic, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

#: Sums of all durations (and of all memory demands) of an instance stay below this, so that every row of a
#: model stays below 2^31 in absolute activity. ``ortools`` 9.15 was measured to return wrong "OPTIMAL" answers
#: beyond it (google/or-tools issue 5293).
ACTIVITY_LIMIT = 2**30


class Frozen(BaseModel):
    """Base of every instance and plan: immutable, typed strictly, unknown keys refused, JSON round-trip."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, populate_by_name=True, defer_build=True)

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

    def changed(self, **changes: Any) -> Self:
        """The instance with other values of some fields, validated as a whole.

        Raises
        ------
        pydantic.ValidationError
        """
        return type(self).model_validate(self.model_copy(update=changes).model_dump())

    def if_valid(self, **changes: Any) -> Iterator[Self]:
        """The changed instance, if it is one; else nothing."""
        with contextlib.suppress(ValidationError):
            yield self.changed(**changes)


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


Reference = str
"""``package.module:name``: an object that is imported when it is needed, and not before."""


@cache
def _imported(reference: Reference) -> Any:
    module, _, name = reference.partition(":")
    return getattr(importlib.import_module(module), name)


def resolve(thing: Any) -> Any:
    """The object that a :data:`Reference` names; anything else as it is.

    Raises
    ------
    ImportError, AttributeError
        The reference names nothing.
    """
    return _imported(thing) if isinstance(thing, str) else thing


T = TypeVar("T")


class Referred(Generic[T]):
    """A field of a declaration that is given as a :data:`Reference` or as the object itself, and read as the object."""

    def __init__(self, *default: T) -> None:
        self.default = default

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: object | None, owner: type) -> T:
        if instance is None:  # the dataclass asks for the default
            if not self.default:
                raise AttributeError(self.name)
            return self.default[0]
        found: T = resolve(vars(instance)[self.name])
        return found

    def __set__(self, instance: object, value: Reference | T) -> None:
        vars(instance)[self.name] = value


def lazily(package: str, *modules: str) -> Callable[[str], Any]:
    """``__getattr__`` of a package that re-exports names of its modules: they are imported when a name is asked for.

    So a package can be the contents page of its room and still cost nothing to those who only read the page.
    """

    def find(name: str) -> Any:
        for module in () if name.startswith("_") else modules:
            home = importlib.import_module(f"{package}.{module}")
            if hasattr(home, name):
                return getattr(home, name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return find


@dataclass(frozen=True)
class Method:
    """A way to solve one problem, declared in the contents page of its room.

    Declaring a method imports nothing: ``run`` is a :data:`Reference` (or, in plug-ins and tests, the function itself).

    Attributes
    ----------
    name, problem : str
    kind : str
        ``exact``, ``published``, ``baseline`` or ``bound``.
    reference : str
        Paper and section, or the name of the technique.
    run : str or callable
        ``run(instance, budget, **options) -> SolveResult``; importing its module imports all that a run needs.
    summary : str
        One line.
    options : mapping
        Names and default values of what a user may override (``--set name=value``); values keep the type of the
        default.
    given : mapping
        Arguments that tell this method from others of the same function.
    rank : int
        Among exact methods of a problem the highest rank is what ``--exact`` picks.
    engines : tuple of str
        Of an exact method: on whose word a proof rests (CP-SAT, HiGHS, CBC, own, enumeration).
    models : str or callable, optional
        ``models(instance) -> list of mapgap.solvers.model.Part``: the integer programs that the method hands to its
        engine, for export, fix-and-compare and flip tests.
    """

    name: str
    problem: str
    kind: Kind
    reference: str
    run: Reference | Callable[..., SolveResult]
    summary: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    given: Mapping[str, Any] = field(default_factory=dict)
    rank: int = 0
    engines: tuple[str, ...] = ()
    models: Reference | Callable[..., Any] | None = None

    @property
    def module(self) -> str:
        """Name of the module that a run needs; empty for a function that came without one."""
        if isinstance(self.run, str):
            return self.run.partition(":")[0]
        return getattr(self.run, "__module__", None) or ""

    def solve(self, instance: InstanceBase, budget: Budget, **options: Any) -> SolveResult:
        """Run the method in this process; nothing is checked (see :func:`mapgap.execution.run.run_method`)."""
        result: SolveResult = resolve(self.run)(instance, budget, **self.given, **options)
        return result


@dataclass(frozen=True)
class Problem:
    """The specification of one mapping problem.

    ``evaluate(instance, plan)`` is written in plain loops, returns all violations and shares no helper with any
    model. ``gantt`` and ``diagnose`` draw a plan and say why an instance has none.

    ``library`` names the :class:`Library` of its instances; empty: ``mapgap.instances.<name>:LIBRARY``.

    A problem with several ``objectives`` has instances with a field ``objective`` that holds one of them; what is
    optimised is part of the instance and of its hash. ``--objective`` replaces the field.

    ``always_feasible`` says that every instance has a plan. The contract then asks for no instance without one, and
    takes one for an error.

    Declaring a problem imports nothing: types and functions may be given as references, and are read as what they name.
    """

    name: str
    title: str
    paper: str
    sense: Sense
    unit: Callable[[Any], str]
    instance_type: Referred[type[InstanceBase]] = Referred()
    plan_type: Referred[type[PlanBase]] = Referred()
    evaluate: Referred[Callable[[Any, Any], Evaluation]] = Referred()
    gantt: Referred[Callable[[Any, Any], list[GanttLane]] | None] = Referred(None)
    diagnose: Referred[Callable[[Any], list[str]] | None] = Referred(None)
    objectives: Referred[tuple[str, ...]] = Referred(())
    library: Reference | Library = ""
    always_feasible: bool = False

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
class Relation:
    """Another instance whose optimum follows from that of a given one.

    Attributes
    ----------
    label : str
        What was changed: ``twice the memory``, ``equal devices exchanged``, ``all times tripled``.
    instance : InstanceBase
    factor : int
        The other optimum is this times the given one, …
    equal : bool
        … or, if not ``equal``, at least as good as that.
    """

    label: str
    instance: InstanceBase
    factor: int = 1
    equal: bool = True


@dataclass(frozen=True)
class Library:
    """Instances of one problem: where its files lie, how compact ones expand and which random families exist.

    Declaring a library imports nothing: what it names are references (or the objects themselves), read through the
    properties and methods below.

    Attributes
    ----------
    problem : str
    folder : Path
        Holds the instance files.
    compact : str or type
        The :class:`CompactBase` of the problem.
    expansion : str or callable
        ``f(compact) -> instance``; raises :class:`InputError` where the compact form cannot be expanded.
    families : mapping
        Name of a random family to ``f(seed) -> instance``. The family ``tiny`` must exist and be small enough for
        brute force.
    splitting : str or callable, optional
        ``f(instance) -> list of Case``: splits an instance on one decision, such that the best optimum of the cases is
        the optimum of the instance.
    shrinking : str or callable, optional
        ``f(instance)`` yields smaller instances (one part less).
    sampling : str or callable, optional
        ``f(instance, rng) -> plan``: any plan of the right shape, with rules broken or kept; both should be frequent on
        tiny instances. With it the contract tests compare every model with the evaluator, plan by plan.
    relating : str or callable, optional
        ``f(instance, rng) -> list of Relation`` that hold for every instance, or for this one.
    """

    problem: str
    folder: Path
    compact: Reference | type[CompactBase]
    expansion: Reference | Callable[[Any], InstanceBase]
    families: Mapping[str, Reference | Callable[[int], InstanceBase]]
    splitting: Reference | Callable[[Any], list[Case]] | None = None
    shrinking: Reference | Callable[[Any], Iterator[InstanceBase]] | None = None
    sampling: Reference | Callable[[Any, random.Random], PlanBase] | None = None
    relating: Reference | Callable[[Any, random.Random], list[Relation]] | None = None

    @property
    def compact_type(self) -> type[CompactBase]:
        found: type[CompactBase] = resolve(self.compact)
        return found

    def expand(self, compact: CompactBase) -> InstanceBase:
        """The expanded instance.

        Raises
        ------
        InputError
        """
        found: InstanceBase = resolve(self.expansion)(compact)
        return found

    def generate(self, family: str, seed: int) -> InstanceBase:
        """The instance of a family with this seed.

        Raises
        ------
        InputError
            No such family.
        """
        if family not in self.families:
            raise InputError(
                f"family: expected one of {', '.join(sorted(self.families))}; found {family!r}"
                f"{suggest(family, self.families)}"
            )
        found: InstanceBase = resolve(self.families[family])(seed)
        return found

    def cases(self, instance: InstanceBase) -> list[Case]:
        """The cases of an instance; none where the problem or the instance offers no split."""
        found: list[Case] = resolve(self.splitting)(instance) if self.splitting is not None else []
        return found

    def shrink(self, instance: InstanceBase) -> Iterator[InstanceBase]:
        """Smaller instances."""
        found: Iterator[InstanceBase] = resolve(self.shrinking)(instance) if self.shrinking is not None else iter(())
        return found

    def random_plan(self, instance: InstanceBase, rng: random.Random) -> PlanBase | None:
        """A plan of the right shape; ``None`` where the problem offers none."""
        found: PlanBase | None = resolve(self.sampling)(instance, rng) if self.sampling is not None else None
        return found

    def relations(self, instance: InstanceBase, rng: random.Random) -> list[Relation]:
        """Instances whose optimum follows from that of the given one."""
        found: list[Relation] = resolve(self.relating)(instance, rng) if self.relating is not None else []
        return found


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


Location = tuple[str | int, ...]
"""Where a value lies in a file: names of fields and positions in lists, from the outside in."""


def dotted(location: Location) -> str:
    """``layers[3].fp[0]``."""
    text = ""
    for part in location:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong with a file, a flag or a profile.

    Attributes
    ----------
    text : str
        ``expected …, found …``.
    location : tuple
        The value that is wrong; empty for the whole.
    name : str
        What people call the thing at the location (``conv2`` for ``layers[3]``), if it has a name.
    """

    text: str
    location: Location = ()
    name: str = ""

    def __str__(self) -> str:
        where = dotted(self.location) + (f" ({self.name})" if self.name else "")
        return f"{where}: {self.text}" if where else self.text

    def below(self, base: Location) -> Finding:
        """The same finding, in a larger whole."""
        return Finding(self.text, (*base, *self.location), self.name)


class InputError(MapgapError, ValueError):
    """A file, flag or profile is wrong.

    Validators of instances and plans raise it too: it is a ``ValueError``, which pydantic collects.

    Attributes
    ----------
    findings : list of Finding
        Everything that is wrong, each naming place, expected and found.
    """

    def __init__(self, findings: str | Finding | Iterable[str | Finding]) -> None:
        listed = [findings] if isinstance(findings, (str, Finding)) else list(findings)
        self.findings = [Finding(each) if isinstance(each, str) else each for each in listed]
        super().__init__("\n".join(self.problems))

    @property
    def problems(self) -> list[str]:
        """The findings as text."""
        return [str(finding) for finding in self.findings]


def suggest(word: str, known: Iterable[str]) -> str:
    """``; did you mean 'x'?`` where a known word is near; else nothing."""
    near = difflib.get_close_matches(word, list(known), n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


class PlanError(MapgapError):
    """A plan failed verification, or an exact model claims another objective than the evaluator."""

    exit_code = 5


class CallablePackage(types.ModuleType):
    """A package that is also the function of the public interface which lists what it holds.

    ``mapgap.problems`` is the home of all problems; ``mapgap.problems()`` names them.
    """

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return resolve(f"mapgap.interface.functions:{self.__name__.rpartition('.')[2]}")(*arguments, **named)
