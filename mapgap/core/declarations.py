"""Declarations: what a method, a problem and its library of instances say of themselves."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from mapgap.core.clock import Clock
from mapgap.core.data import Case, CompactBase, InstanceBase, PlanBase
from mapgap.core.errors import InputError, suggest
from mapgap.core.explaining import Explainer, GanttLane, PlanTable, Preferred
from mapgap.core.params import Params
from mapgap.core.references import Reference, Referred, resolve
from mapgap.core.results import Budget, Evaluation, SolveResult

if TYPE_CHECKING:  # only imports need it
    from mapgap.core.workload import LibraryBoard, Settings, Workload

Kind = Literal["exact", "published", "baseline", "bound"]
Sense = Literal["min", "max"]
Answer = TypeVar("Answer")


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
    params : str or type, optional
        The :class:`~mapgap.core.Params` of the algorithm, which a user may override by name like options; the run gets
        them as its argument ``params``.
    given : mapping
        Arguments that tell this method from others of the same function.
    rank : int
        Among exact methods of a problem the highest rank is what ``--exact`` picks.
    fast : bool
        The planner that ``--fast`` picks: no solver, about the time of the published heuristic, never worse than it. At
        most one of a problem.
    cheap : str or callable, optional
        Of an exact method: ``cheap(instance) -> bool``, whether its proof costs no more than the quick planner's plan.
        ``--fast`` then takes it.
    members : tuple of str
        Of a portfolio: the methods and searches that take part, in the order in which they begin. Empty for every
        other method.
    engines : tuple of str
        Of an exact method: on whose word a proof rests (CP-SAT, HiGHS, CBC, own, enumeration).
    models : str or callable, optional
        ``models(instance) -> list of mapgap.solvers.model.Part``: the integer programs that the method hands to its
        engine, for export, fix-and-compare and flip tests.
    knows : tuple of str
        Fields of instances that not every method of the problem knows, and this one does. Others get the simpler
        instance of those that offer one (:meth:`~mapgap.core.InstanceBase.restricted`), and announce nothing before
        they end.
    """

    name: str
    problem: str
    kind: Kind
    reference: str
    run: Reference | Callable[..., SolveResult]
    summary: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    params: Reference | type[Params] | None = None
    given: Mapping[str, Any] = field(default_factory=dict)
    rank: int = 0
    fast: bool = False
    cheap: Reference | Callable[[Any], bool] | None = None
    members: tuple[str, ...] = ()
    engines: tuple[str, ...] = ()
    models: Reference | Callable[..., Any] | None = None
    knows: tuple[str, ...] = ()

    @property
    def module(self) -> str:
        """Name of the module that a run needs; empty for a function that came without one."""
        if isinstance(self.run, str):
            return self.run.partition(":")[0]
        return getattr(self.run, "__module__", None) or ""

    def solve(self, instance: InstanceBase, budget: Budget, **options: Any) -> SolveResult:
        """Run the method in this process; nothing is checked (see :func:`mapgap.execution.run.run_method`)."""
        simpler = instance.restricted(self.knows)
        if simpler is not None:
            part = Budget(budget.remaining_s, budget.memory_mb, budget.workers, budget.seed)
            found: SolveResult = simpler[1](self.solve(simpler[0], part, **options))
            return found
        given = {**self.given, **options}
        if self.params is not None:
            tuned = self.tuned(options)
            given = {name: value for name, value in given.items() if name not in self.defaults}
            given["params"] = tuned
        result: SolveResult = resolve(self.run)(instance, budget, **given)
        return result

    def tuned(self, settings: Mapping[str, Any]) -> Params:
        """The parameters under some settings; those of a method without any are empty."""
        kind: type[Params] = Params if self.params is None else resolve(self.params)
        return kind().changed(settings)

    @property
    def defaults(self) -> Mapping[str, Any]:
        """Parameters by name, with their defaults."""
        return self.tuned({}).to_json()

    @property
    def settings(self) -> Mapping[str, Any]:
        """All that a user may set, with defaults: options and parameters."""
        return {**self.options, **self.defaults}


def methods_of(package: str) -> Callable[..., Method]:
    """How a room of the house, ``mapgap.<wing>.<problem>``, declares its methods.

    The problem is the room's; what a method names lies in the room unless its name is a whole one, and the method
    ``name`` is run by ``name:run`` unless it says otherwise.
    """

    def inside(thing: Any) -> Any:
        return f"{package}.{thing}" if isinstance(thing, str) and "." not in thing else thing

    def method(name: str, *, run: str = "", **more: Any) -> Method:
        named = {key: inside(more[key]) for key in ("models", "params", "cheap") if key in more}
        return Method(name, package.rpartition(".")[2], run=inside(run or f"{name}:run"), **(more | named))

    return method


@dataclass(frozen=True)
class Problem:
    """The specification of one mapping problem.

    ``evaluate(instance, plan)`` is written in plain loops, returns all violations and shares no helper with any
    model. ``gantt`` and ``diagnose`` draw a plan and say why an instance has none; ``describe`` tells a plan in names,
    seconds and bytes; ``explain`` (:class:`mapgap.core.explaining.Explainer`) says what holds it back; ``interval``,
    between which values the objective of a plan lies by the spread of what was measured (``None``: nothing says so);
    ``clock`` (:class:`mapgap.core.clock.Clock`), what boards do when they run a plan.

    ``library`` names the :class:`Library` of its instances; empty: ``mapgap.instances.<name>:LIBRARY``.

    A problem with several ``objectives`` has instances with a field ``objective`` that holds one of them; what is
    optimised is part of the instance and of its hash. ``--objective`` replaces the field. ``media`` are the words of a
    field ``medium``, what transfers share, which ``--medium`` replaces.

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
    describe: Referred[Callable[[Any, Any], PlanTable] | None] = Referred(None)
    explain: Referred[Explainer | None] = Referred(None)
    interval: Referred[Callable[[Any, Any], tuple[int, int] | None] | None] = Referred(None)
    clock: Referred[Clock | None] = Referred(None)
    objectives: Referred[tuple[str, ...]] = Referred(())
    media: tuple[str, ...] = ()
    library: Reference | Library = ""
    always_feasible: bool = False

    def retarget(self, instance: InstanceBase, objective: str) -> InstanceBase:
        """The same instance under another of the problem's objectives, named ``NAME@OBJECTIVE``."""
        if getattr(instance, "objective", None) == objective:
            return instance
        return instance.model_copy(update={"objective": objective, "name": _at(instance, self.objectives, objective)})

    def on_medium(self, instance: InstanceBase, medium: str) -> InstanceBase:
        """The same instance on another of the problem's media, named ``NAME@MEDIUM``; it is validated anew.

        Where sums on the medium are too large for its ticks they become longer, if the problem offers that.
        """
        if getattr(instance, "medium", None) == medium:
            return instance
        changes = {"medium": medium, "name": _at(instance, self.media, medium)}
        for factor in (1, 10, 100):
            made = instance if factor == 1 else instance.coarser(factor)
            for found in () if made is None else made.if_valid(**changes):
                return found
        return instance.changed(**changes)


def _at(instance: InstanceBase, words: tuple[str, ...], word: str) -> str:
    """The name with a word behind ``@`` in place of another one of these."""
    base, *others = instance.name.split("@")
    return "@".join([base, *(other for other in others if other not in words), word])


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
    proving : str or callable, optional
        ``f(instance, bound, budget) -> proof or None``: searches for the proof of a certificate, JSON data that show
        :mod:`mapgap.evidence.check` that no plan of the expanded instance (JSON data too) is better than the bound.
    climbing : str or callable, optional
        ``f(instance, goal, budget, start) -> (bound, proof) or None``: the best bound that is proven within the budget,
        at most the goal. ``start`` is a bound and its proof, if there is one: then it is no less, and the proof another
        one, from which the next search has less to do; ``None`` if there is none.
    compiled : str or callable, optional
        The ``cases`` of the problem's writer of certificates, for :func:`mapgap.evidence.check.check`, whose functions
        give the same verdicts sooner; more has to be believed.
    carrying : str or callable, optional
        ``f(plan, source, target)`` yields plans of the target that are made from one of the source. Nothing is claimed
        of them: they may break rules, and are evaluated.
    implying : str or callable, optional
        ``f(bound, source, target) -> bound or None``: a bound of the target that follows from one of the source, by a
        proof that stands in its docstring. ``mapgap ledger close`` believes it.
    importing : str or callable, optional
        ``f(workload, settings) -> instance``: makes an instance of what foreign files say
        (:mod:`mapgap.core.workload`); raises :class:`InputError` with the names of what they leave open.
    preferring : str or callable, optional
        ``f(instance, plan, budget) -> Preferred``: the simplest plan that cannot be told apart from the best one.
    boards : str or callable, optional
        ``f() -> list of LibraryBoard``: boards that a cluster file can name.
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
    proving: Reference | Callable[[dict[str, Any], int, Budget], Any] | None = None
    climbing: Reference | Callable[[dict[str, Any], int, Budget, Any], tuple[int, Any] | None] | None = None
    compiled: Reference | Callable[..., Iterator[tuple[str, Any]]] | None = None
    carrying: Reference | Callable[[Any, Any, Any], Iterator[PlanBase]] | None = None
    implying: Reference | Callable[[int, Any, Any], int | None] | None = None
    importing: Reference | Callable[[Workload, Settings], InstanceBase] | None = None
    boards: Reference | Callable[[], list[LibraryBoard]] | None = None
    preferring: Reference | Callable[[Any, Any, Budget], Preferred] | None = None

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
        return _asked(self.splitting, [], instance)

    def shrink(self, instance: InstanceBase) -> Iterator[InstanceBase]:
        """Smaller instances."""
        return _asked(self.shrinking, iter(()), instance)

    def random_plan(self, instance: InstanceBase, rng: random.Random) -> PlanBase | None:
        """A plan of the right shape; ``None`` where the problem offers none."""
        return _asked(self.sampling, None, instance, rng)

    def relations(self, instance: InstanceBase, rng: random.Random) -> list[Relation]:
        """Instances whose optimum follows from that of the given one."""
        return _asked(self.relating, [], instance, rng)

    def carry(self, plan: PlanBase, source: InstanceBase, target: InstanceBase) -> Iterator[PlanBase]:
        """Plans of another instance that are made from one of this; they may break rules."""
        return _asked(self.carrying, iter(()), plan, source, target)

    def imply(self, bound: int, source: InstanceBase, target: InstanceBase) -> int | None:
        """What a proven bound of one instance proves of another; ``None`` for nothing."""
        return _asked(self.implying, None, bound, source, target)

    def prove(self, instance: dict[str, Any], bound: int, budget: Budget) -> Any:
        """A proof that no plan is better than the bound; ``None`` if none is found. Its word counts for nothing.

        Raises
        ------
        InputError
            The problem offers none.
        """
        if self.proving is None:
            raise InputError(
                f"{self.problem}: expected a problem whose bounds can be certified, found none for this one"
            )
        return resolve(self.proving)(instance, bound, budget)

    def climb(self, instance: dict[str, Any], goal: int, budget: Budget, start: Any) -> tuple[int, Any] | None:
        """The best bound up to a goal that is proven within the budget, and the proof; ``None`` if none is."""
        return _asked(self.climbing, None, instance, goal, budget, start)

    def compiled_cases(self) -> Any:
        """Cases of certificates that are followed sooner than those of the writer; ``None`` if there are none."""
        return None if self.compiled is None else resolve(self.compiled)

    def preferred(self, instance: InstanceBase, plan: PlanBase, budget: Budget) -> Preferred:
        """The simplest plan that cannot be told apart from the best one."""
        if self.preferring is None:
            return Preferred(None, "not looked for: the problem does not say which plans are simple", complete=False)
        found: Preferred = resolve(self.preferring)(instance, plan, budget)
        return found

    def imported(self, workload: Workload, settings: Settings) -> InstanceBase:
        """The instance that a workload and settings make.

        Raises
        ------
        InputError
            The problem takes none, or something is missing or wrong; all of it, by name.
        """
        if self.importing is None:
            raise InputError(
                f"{self.problem}: expected a problem that foreign files can be imported for, found this one"
            )
        found: InstanceBase = resolve(self.importing)(workload, settings)
        return found

    def known_boards(self) -> list[LibraryBoard]:
        """Boards that a cluster file can name."""
        return _asked(self.boards, [])


def _asked(function: Reference | Callable[..., Answer] | None, without: Answer, *arguments: Any) -> Answer:
    """What an optional function of a library says, or what holds without it."""
    found: Answer = without if function is None else resolve(function)(*arguments)
    return found
