"""The functions of the public interface; ``import mapgap`` offers them.

They stand on what the command line stands on: the same files, the same runs in processes of their own under hard
limits, every plan verified by the evaluator. A run blocks the thread that asks for it; any thread may ask.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from mapgap.catalogue import files, registry
from mapgap.core import Budget, CompactBase, Evaluation, InputError, InstanceBase, Method, PlanBase, Problem, Stop
from mapgap.evidence.ledger import Ledger, default_path
from mapgap.execution.run import Observer, check_options, run_method, verify
from mapgap.interface import exchange
from mapgap.interface.arguments import (
    PlanLike,
    budget_of,
    chosen_method,
    plan_of,
    plugin_of,
    refuse_namesakes,
    refuse_other_plans,
    refuse_unused,
    runs_of,
)
from mapgap.interface.comparison import Comparison, Interrupted
from mapgap.interface.display import Listing, cell, percent
from mapgap.interface.results import (
    Check,
    ContradictionWarning,
    FailedRunWarning,
    RefutedError,
    Result,
    RunError,
)
from mapgap.records.record import RunRecord, relative

InstanceLike = str | os.PathLike[str] | InstanceBase | CompactBase
"""A library name, a path, or an instance."""


def load(instance: InstanceLike, objective: str | None = None, medium: str | None = None) -> InstanceBase:
    """An instance, expanded to the integers that every method sees.

    Parameters
    ----------
    instance : str, path, or instance
        ``NAME@OBJECTIVE`` works too.
    objective : str, optional
        Another objective of its problem.
    medium : str, optional
        What transfers share, where the problem offers a choice: ``links``, ``ports`` or ``shared``.

    Raises
    ------
    InputError
        Everything that is wrong with a file, each finding with line and column; or no such name.
    """
    if isinstance(instance, (InstanceBase, CompactBase)):
        loaded = files.expand(instance)
    elif isinstance(instance, (str, os.PathLike)):
        loaded = files.load_instance(os.fspath(instance))
    else:
        raise InputError(f"instance: expected a name, a path or an instance; found {type(instance).__name__}")
    loaded = loaded if objective is None else files.retarget(loaded, objective)
    return loaded if medium is None else files.on_medium(loaded, medium)


def solve(
    instance: InstanceLike,
    method: str | Method | None = None,
    *,
    objective: str | None = None,
    time_limit: float = 60.0,
    memory_limit: int | None = None,
    workers: int = 1,
    seed: int = 0,
    options: Mapping[str, Any] | None = None,
    progress: bool | Observer | None = None,
    ledger: bool = True,
) -> Result:
    """Run a method on an instance, in a process of its own, and verify everything it says.

    Parameters
    ----------
    method : str or Method, optional
        By default the strongest exact method of the problem. A :class:`mapgap.Method` of your own from a file that
        lists it in ``METHODS`` is a method like others; one defined elsewhere (in a notebook's cell) runs inside this
        process, where no limit is enforced.
    time_limit : float
        Seconds. A run that does not end by itself is killed soon after; what it had announced is kept.
    memory_limit : int, optional
        MB of resident memory, enforced.
    workers : int
        Threads a solver may use.
    seed : int
        The only source of randomness.
    options : mapping, optional
        The method's own options (``mapgap.methods(problem)[name].options`` has names and defaults).
    progress : bool or callable, optional
        ``True`` keeps a line on standard error up to date; a function gets elapsed seconds, objective and bound.
    ledger : bool
        Let the ledger of best-known results have its say in :attr:`Result.gap`.

    Raises
    ------
    InputError
        Something is wrong with the instance or an argument.
    RunError
        The method failed. What was verified before is in ``error.result``.
    Interrupted
        Ctrl-C, a ``KeyboardInterrupt``. The incumbent is in ``error.result``.

    Warns
    -----
    ContradictionWarning
        The run and the ledger cannot both be right.
    """
    loaded = load(instance, objective)
    chosen = chosen_method(loaded.problem, method)
    check_options(chosen, options or {})
    budget = budget_of(time_limit, memory_limit, workers, seed)
    known = _ledger() if ledger else None
    record = _run(loaded, chosen, budget, options or {}, progress)
    (result,) = _compared([(record, loaded)], known)
    if record.stop == Stop.INTERRUPTED:
        raise Interrupted(result)
    if record.error:
        raise (RefutedError if record.refuted else RunError)(result)
    return result


def compare(
    instances: InstanceLike | Iterable[InstanceLike],
    methods: str | Method | Iterable[str | Method] | None = None,
    *,
    objective: str | None = None,
    time_limit: float = 60.0,
    memory_limit: int | None = None,
    workers: int = 1,
    seed: int = 0,
    options: Mapping[str, Any] | None = None,
    progress: bool | Observer | None = None,
    ledger: bool = True,
) -> Comparison:
    """Run several methods on one or several instances, one after the other, each as :func:`solve` does.

    Parameters
    ----------
    instances : instance or iterable of them
        They may belong to different problems.
    methods : str, Method, or iterable of them, optional
        By default every method of the problem. With instances of several problems a method runs where it exists.
    options : mapping, optional
        An option goes to every method that has it.

    Raises
    ------
    InputError
        Before the first run: something is wrong with an instance or an argument.
    Interrupted
        Ctrl-C. What was found until then is in ``error.result``, a :class:`Comparison`.

    Warns
    -----
    FailedRunWarning
        A method failed; its result in the comparison says how.
    ContradictionWarning
        Runs cannot all be right about an instance; it has no gaps then.

    Notes
    -----
    The other parameters are those of :func:`solve`, per run.
    """
    several = [instances] if isinstance(instances, (str, os.PathLike, InstanceBase, CompactBase)) else instances
    loaded = [load(each, objective) for each in several]
    refuse_namesakes(loaded)
    runs = runs_of(loaded, methods)
    options = options or {}
    refuse_unused(options, [method for _, method in runs])
    budget = budget_of(time_limit, memory_limit, workers, seed)
    known = _ledger() if ledger else None
    done: list[tuple[RunRecord, InstanceBase]] = []
    stopped = False
    for one, method in runs:
        fitting = {name: value for name, value in options.items() if name in method.settings}
        try:
            record = _run(one, method, budget, fitting, progress)
        except KeyboardInterrupt:  # between two runs
            stopped = True
            break
        done.append((record, one))
        if record.error:
            warnings.warn(f"{method.name} on {one.name}: {record.error}", FailedRunWarning, stacklevel=2)
        if record.stop == Stop.INTERRUPTED:
            stopped = True
            break
    comparison = _compared(done, known)
    if stopped:
        raise Interrupted(comparison)
    return comparison


def evaluate(instance: InstanceLike, plan: PlanBase) -> Evaluation:
    """What the problem's evaluator says of a plan: objective, terms, broken rules.

    This is the specification itself, called as it stands; for loops over many plans hand over the loaded instance.
    :func:`check` reads anything that holds a plan and shows what it finds.

    Raises
    ------
    InputError
        Not a plan object of the instance's problem.
    """
    loaded = load(instance)
    problem = registry.problems()[loaded.problem]
    refuse_other_plans(problem, plan)
    return problem.evaluate(loaded, plan)


def check(instance: InstanceLike, plan: PlanLike, objective: str | None = None) -> Check:
    """Every rule that a plan breaks, and what it is worth. Nothing in it is believed.

    Parameters
    ----------
    plan : plan, result, mapping, or path
        A mapping and a file hold the plan itself, or a run's JSON object with the plan in it.
    objective : str, optional
        Another objective of the instance's problem.

    Returns
    -------
    Check
        True exactly when no rule is broken. A plan on which the evaluator itself fails breaks the rule ``evaluate``.

    Raises
    ------
    InputError
        Every finding at once, where the data have not the shape of a plan; or a result without a plan.
    """
    loaded = load(instance, objective)
    problem = registry.problems()[loaded.problem]
    found = plan_of(problem, plan)
    return Check(loaded, found, verify(problem, loaded, found))


def export(
    instance: InstanceLike,
    path: str | os.PathLike[str],
    model: str | None = None,
    part: str | None = None,
    *,
    objective: str | None = None,
) -> list[Path]:
    """Write the integer program of an instance for another solver.

    Parameters
    ----------
    path : str or path
        ``.lp`` or ``.mps`` for a model of HiGHS or CBC, ``.pbtxt`` for one of CP-SAT.
    model : str, optional
        ``mip``, ``cpsat`` or another method with an integer program; by default the one that writes the suffix.
    part : str, optional
        Where the instance has several programs: the label of one, or a pattern (``*`` for all), whose files carry the
        label in their names: ``FILE_ratio_3_1.lp``.

    Returns
    -------
    list of Path
        The files.

    Raises
    ------
    InputError
        No such model or part, a suffix that the model does not write, or a place that cannot be written.
    """
    return [each.path for each in exchange.write(load(instance, objective), Path(path), model, part)]


def read_solution(
    instance: InstanceLike,
    path: str | os.PathLike[str],
    model: str | None = None,
    part: str | None = None,
    *,
    objective: str | None = None,
) -> PlanBase:
    """The plan of a solution that another solver found for an exported file; hand it to :func:`check`.

    Parameters
    ----------
    path : str or path
        What HiGHS, CBC, SCIP, Gurobi, CPLEX or CP-SAT has written.
    model, part : str, optional
        As they were exported; by default ``cpsat`` for a response of CP-SAT and ``mip`` for all else.

    Raises
    ------
    InputError
        The file has no solution, or one of another program.
    """
    return exchange.read_plan(load(instance, objective), Path(path), model, part)


def problems() -> Listing[Problem]:
    """All problems by name."""
    columns = {"title": lambda p: p.title, "paper": lambda p: p.paper, "methods": lambda p: len(methods(p.name))}
    return Listing(registry.problems(), columns)


def methods(problem: str | InstanceBase) -> Listing[Method]:
    """All methods of a problem by name, the strongest exact one included.

    Parameters
    ----------
    problem : str or InstanceBase
        Its name, or an instance of it.

    Raises
    ------
    InputError
        No such problem.
    """
    name = problem.problem if isinstance(problem, InstanceBase) else problem
    found = registry.methods(registry.find_problem(name).name)
    return Listing(
        found, {"kind": lambda m: m.kind, "summary": lambda m: m.summary, "reference": lambda m: m.reference}
    )


def instances(problem: str | None = None, tag: str | Sequence[str] = ()) -> list[str]:
    """Names of the library's instances.

    Parameters
    ----------
    problem : str, optional
        Only those of this problem.
    tag : str or sequence of str
        Only those that carry all these tags.

    Raises
    ------
    InputError
        No such problem.
    """
    names = [registry.find_problem(problem).name] if problem else list(registry.problems())
    wanted = {tag} if isinstance(tag, str) else set(tag)
    return [header.name for name in names for header in files.headers(name) if wanted <= set(header.tags)]


def _run(
    instance: InstanceBase,
    method: Method,
    budget: Budget,
    options: Mapping[str, Any],
    progress: bool | Observer | None,
) -> RunRecord:
    """One run; in a process of its own where that can find the method."""
    plugin = plugin_of(method)
    plugins = [] if plugin is None else [plugin]
    isolate = bool(plugins) or registry.methods(instance.problem).get(method.name) is method
    isolate = isolate and sys.platform != "emscripten"  # a browser has no processes
    line = (
        _Line(f"{method.name} on {instance.name}", -1 if registry.problems()[instance.problem].sense == "max" else 1)
        if progress is True
        else None
    )
    observer = line if line is not None else (progress if callable(progress) else None)
    try:
        return run_method(
            instance, method, budget, options=options, plugins=plugins, isolate=isolate, observer=observer
        )
    finally:
        if line is not None:
            line.end()


class _Line:
    """A line on standard error that says how far a run is; gone when the run ends."""

    def __init__(self, label: str, sign: int) -> None:
        self.label, self.sign = label, sign
        self.width = 0

    def __call__(self, elapsed: float, objective: int | None, bound: int | None) -> None:
        gap = percent(relative(objective, bound, self.sign)) or "-"
        self._show(f"{self.label}: {elapsed:.0f} s, incumbent {cell(objective)}, bound {cell(bound)}, gap {gap}")

    def _show(self, text: str) -> None:
        sys.stderr.write(f"\r{text.ljust(self.width)}")
        sys.stderr.flush()
        self.width = len(text)

    def end(self) -> None:
        if self.width:
            self._show("")
            sys.stderr.write("\r")


def _compared(pairs: Sequence[tuple[RunRecord, InstanceBase]], known: Ledger | None) -> Comparison:
    """The runs beside each other and beside the ledger; contradictions are warned of."""
    records = [record for record, _ in pairs]
    comparison = Comparison(pairs, known.references(records) if known is not None else ())
    for text in comparison.contradictions:
        warnings.warn(text, ContradictionWarning, stacklevel=3)
    return comparison


def _ledger() -> Ledger:
    path = default_path()
    return _read_ledger(path, path.stat().st_mtime_ns if path.exists() else 0)


@lru_cache(maxsize=1)
def _read_ledger(path: Path, changed: int) -> Ledger:
    return Ledger.load(path)
