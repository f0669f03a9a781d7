"""Run a PuLP model with HiGHS or CBC; what is proven is read from the engine, never from PuLP's word.

PuLP may call a plan "Optimal" that a time limit left open. HiGHS is therefore asked for its model status and dual
bound; CBC's are read from its log. Every objective here is integral, so a bound ``v`` rounds up to ``ceil(v - eps)``
with ``eps = 1e-6 * max(1, |v|)`` for the engine's floating point.

Tolerances are 1e-7 on both engines. Looser ones switch binaries of big-M rows off for free (M reaches 10^6 ticks).
Tighter ones are below what doubles resolve in rows of 10^8 ticks, and both engines then prove wrong optima: HiGHS 1.13
with 1e-9 for binaries (its authors advise against it, ERGO-Code/HiGHS issue 2033), CBC with 1e-9 for rows.
tests/multi_model_splitting/test_exact.py keeps one case of each.

A model whose big M times the tolerance reaches half a unit is refused (:mod:`mapgap.solvers.big_m`). With a smaller
one both engines still state INFEASIBLE and bounds that are wrong: CBC often, so that its proofs count only where HiGHS
has them too; HiGHS rarely and with some seeds only (of 61 on instance ``realistic`` 372 of sub-operation mapping one,
with an M of 2 * 10^5), so that its proofs count only where it has them with another seed as well.

The presolve of HiGHS is off: that of 1.13.1 states INFEASIBLE of big-M models that have points, even with a horizon of
68 ticks (instance 13 of tests/suboperation_mapping/test_models.py, under a cutoff).
"""

from __future__ import annotations

import math
import re
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal

import highspy
import pulp

from mapgap.core import Budget, MapgapError, Status, Stop
from mapgap.solvers.big_m import LEAK, BigM, big_m, check_big_m
from mapgap.solvers.guard import check_version
from mapgap.solvers.model import Model, Value
from mapgap.solvers.outcome import Outcome
from mapgap.solvers.turns import EngineError

TOLERANCE, RELATIVE = 1e-7, 1e-6

SWITCH = 1000
"""Of a big M, from which on HiGHS is asked twice."""

LATE_S = 0.5
"""Seconds after its time limit when CBC is killed."""

HANDED_OVER = 6.0
"""What it takes PuLP to hand a program to an engine, in times of what looking at every coefficient takes here."""

Engine = Literal["highs", "cbc"]


def round_up(value: float) -> int | None:
    """A floating-point lower bound of an integral objective as an integer; ``None`` if it is infinite."""
    if not math.isfinite(value) or abs(value) > 1e15:
        return None
    return math.ceil(value - RELATIVE * max(1.0, abs(value)))


def slack(size: int) -> int:
    """Units by which an engine's word about sums of such a size may be off; none where its tolerance resolves one."""
    return 0 if size * TOLERANCE < LEAK else math.ceil(RELATIVE * size)


def solve(
    problem: pulp.LpProblem,
    budget: Budget,
    engine: str = "highs",
    *,
    time_s: float | None = None,
    warm_start: bool = False,
    seed: int | None = None,
) -> Outcome:
    """Minimise ``problem``, whose objective must be integral at integral points, within the remaining budget.

    Parameters
    ----------
    time_s : float, optional
        Part of the budget.
    warm_start : bool
        CBC only: begin from the variables' ``setInitialValue``.
    seed : int, optional
        Of HiGHS, in place of the budget's.

    Raises
    ------
    MapgapError
        The problem is a maximisation, or the engine is unknown.
    """
    if problem.sense != pulp.LpMinimize:
        raise MapgapError("expected a minimisation")
    limit = max(min(budget.remaining_s, time_s if time_s is not None else budget.remaining_s), 0.01)
    if engine == "highs":
        return _highs(problem, budget, limit, budget.seed if seed is None else seed)
    if engine == "cbc":
        return _cbc(problem, budget, limit, warm_start)
    raise MapgapError(f"engine {engine!r}: expected 'highs' or 'cbc'")


def _value(variable: Any) -> int:
    number: int = round(variable.varValue)
    return number


def _finish(
    status: Status, objective: float | None, bound: int | None, out_of_time: bool, ended: bool = False
) -> Outcome:
    """``ended``: the engine was done by its own account, although its gap is not closed in integers."""
    if status in (Status.OPTIMAL, Status.INFEASIBLE):
        stop = Stop.PROVED
    elif ended:
        stop = Stop.DONE
    else:
        stop = Stop.TIME if out_of_time else Stop.ERROR
    return Outcome(status, stop, None if objective is None else round(objective), bound, _value)


def _highs(problem: pulp.LpProblem, budget: Budget, limit: float, seed: int) -> Outcome:
    check_version("highspy")
    end = time.perf_counter() + limit
    solver = pulp.HiGHS(
        msg=False,
        presolve="off",
        gapAbs=1e-6,
        gapRel=0.0,
        threads=budget.workers,
        random_seed=seed % 2**31,
        mip_feasibility_tolerance=TOLERANCE,
        primal_feasibility_tolerance=TOLERANCE,
    )
    run = solver.callSolver

    def punctual(handed: pulp.LpProblem) -> None:
        """Handing the model over takes time as well, seconds if it is large."""
        handed.solverModel.setOptionValue("time_limit", max(end - time.perf_counter(), 0.01))
        run(handed)

    solver.callSolver = punctual
    problem.solve(solver)
    highs = problem.solverModel
    code, info = highs.getModelStatus(), highs.getInfo()
    held = info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
    known = highspy.HighsModelStatus
    if code == known.kInfeasible:
        return _finish(Status.INFEASIBLE, None, None, False)
    optimal = code == known.kOptimal and held
    status = Status.OPTIMAL if optimal else (Status.FEASIBLE if held else Status.UNKNOWN)
    if any(v.isInteger() for v in problem.variables()):
        bound = round_up(info.mip_dual_bound)
    else:
        bound = round_up(info.objective_function_value) if optimal else None
    objective = float(info.objective_function_value) if held else None
    if optimal and objective is not None and bound is not None and bound < round(objective):
        status = Status.FEASIBLE  # the engine's gap is not closed in integers
    return _finish(status, objective, bound, code == known.kTimeLimit, ended=optimal)


_NUMBER = r"([-+]?[\d.]+(?:[eE][-+]?\d+)?)"


def _cbc(problem: pulp.LpProblem, budget: Budget, limit: float, warm_start: bool) -> Outcome:
    begin = time.perf_counter()
    threads = ("-threads", str(budget.workers)) if budget.workers > 1 else ()
    options = (
        *("-ratioGap", "0", "-allowableGap", "0"),
        *("-primalTolerance", str(TOLERANCE), "-integerTolerance", str(TOLERANCE)),
        *("-randomCbcSeed", str(budget.seed % 2**31 + 1)),
        *("-timeMode", "elapsed", *threads),
    )
    text = _run_cbc(problem, options, begin + limit, warm_start)
    status, objective, bound = read_cbc_log(text)
    # The time that CBC is given is what writing the model has left of the limit, and it may end a little before.
    stopped = time.perf_counter() - begin >= 0.9 * limit or re.search(r"\bon (maximum )?time\b", text) is not None
    if status is Status.INFEASIBLE and stopped:
        status = Status.UNKNOWN  # stopped among its cuts it says "infeasible or unbounded"
    ended = status is Status.OPTIMAL
    if objective is not None and bound is not None and bound < round(objective):
        status = Status.FEASIBLE  # no engine's last digits are believed
    return _finish(status, objective, bound, stopped, ended=ended)


def _run_cbc(problem: pulp.LpProblem, options: tuple[str, ...], end: float, warm_start: bool) -> str:
    """Run the CBC that comes with PuLP, give the variables their values, and return its log.

    CBC looks at its clock between two nodes only; in the first relaxation of a large program it goes on for minutes. So
    it is not run by PuLP, which waits for it, but killed when it is late.

    Raises
    ------
    EngineError
        CBC fails, or says nothing.
    """
    files = pulp.PULP_CBC_CMD(msg=False)
    with tempfile.TemporaryDirectory() as folder:
        model, start, answer, log = (Path(folder) / name for name in ("model.mps", "start", "answer", "log"))
        empty, dummy = problem.fixObjective()
        names = problem.writeMPS(str(model), rename=True)[:3]
        problem.restoreObjective(empty, dummy)
        if warm_start:
            files.writesol(str(start), problem, *names)
        left = max(0.01, end - time.perf_counter())
        begun = ("-mips", str(start)) if warm_start else ()
        limit = ("-sec", str(left))
        asked = ("-solve", "-printingOptions", "all", "-solution", str(answer))
        with log.open("w") as output:
            try:
                subprocess.run(
                    [files.path, str(model), *begun, *limit, *options, *asked],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    timeout=left + LATE_S,
                    check=True,
                )
            except subprocess.TimeoutExpired:
                return log.read_text()
            except subprocess.CalledProcessError as error:
                raise EngineError(f"CBC ended with code {error.returncode}") from None
        if not answer.exists():
            raise EngineError("CBC wrote no solution")
        problem.assignVarsVals(files.readsol_MPS(str(answer), problem, *names)[1])
        return log.read_text()


def read_cbc_log(text: str) -> tuple[Status, float | None, int | None]:
    """``(status, objective, bound)`` that a log of CBC states; UNKNOWN where it states nothing."""
    stated_infeasible = r"Result - (Linear relaxation|Problem proven) infeasible|Problem is infeasible|PrimalInfeasible"
    # A finite relaxation leaves only the first of "infeasible or unbounded".
    finite = "Continuous objective value is" in text
    if re.search(stated_infeasible, text) or (finite and "Pre-processing says infeasible or unbounded" in text):
        return Status.INFEASIBLE, None, None
    linear = re.findall(rf"Optimal - objective value {_NUMBER}", text)
    found = re.search(rf"^Objective value:\s+{_NUMBER}", text, re.M)
    objective = float(found.group(1)) if found else None
    if "No feasible solution found" in text:
        objective = None
    stated = re.search(rf"^Lower bound:\s+{_NUMBER}", text, re.M)
    if "Result - Optimal solution found" in text and objective is not None:
        return Status.OPTIMAL, objective, round_up(objective)
    bound = round_up(float(stated.group(1))) if stated else None
    if "Result - " not in text and linear and "Cbc0" not in text:  # a linear program
        return Status.OPTIMAL, float(linear[-1]), round_up(float(linear[-1]))
    return (Status.UNKNOWN if objective is None else Status.FEASIBLE), objective, bound


def confirmed(first: Outcome, second: Outcome, value: Value) -> Outcome:
    """The plan of one engine, and of what it proves as much as another one proves of the same model.

    Parameters
    ----------
    value : callable
        Of the first engine's solution.

    Raises
    ------
    EngineError
        The first engine's proof is refuted by a solution of the second.
    """
    if second.objective is not None and first.status is Status.INFEASIBLE:
        raise EngineError(f"claims INFEASIBLE, but there is a solution of {second.objective}")
    if second.objective is not None and first.bound is not None and first.bound > second.objective:
        raise EngineError(f"claims bound {first.bound}, but there is a solution of {second.objective}")
    if first.status is Status.INFEASIBLE:
        return second
    bound = None if first.bound is None or second.bound is None else min(first.bound, second.bound)
    if second.status is Status.INFEASIBLE or (
        bound is not None and first.objective is not None and bound > first.objective
    ):
        bound = None  # then at least one of them is wrong
    if first.objective is None:
        return Outcome(Status.UNKNOWN, second.stop, None, bound, value)
    if bound == first.objective:
        return Outcome(Status.OPTIMAL, Stop.PROVED, first.objective, bound, value)
    stop = Stop.DONE if second.stop is Stop.PROVED else second.stop
    return Outcome(Status.FEASIBLE, stop, first.objective, bound, value)


NAME_LENGTH = 200
"""Of names in written files; readers take at least 255 characters."""
_RESERVED = {
    *("st", "s.t.", "subject", "such", "bounds", "bound", "free", "inf", "infinity", "end", "sos", "semi"),
    *("min", "minimize", "minimum", "max", "maximize", "maximum", "obj"),
    *("gen", "general", "generals", "int", "integer", "integers", "bin", "binary", "binaries"),
}


def legible(name: str, taken: set[str]) -> str:
    """A name for LP and MPS files, not among those ``taken``, to which it is added.

    Other signs than letters, digits and ``.`` become one ``_`` (``kept[conv1, 2]`` is ``kept_conv1_2``); no name is a
    word of the LP format, a number, or one like ``e3`` that a reader may take for an exponent.
    """
    plain = re.sub(r"[^A-Za-z0-9.]+", "_", name).strip("_")[: NAME_LENGTH - 10]
    if plain.lower() in _RESERVED or not plain or re.match(r"[0-9.]|[eE][0-9.]*$|[eE][0-9]", plain):
        plain = f"_{plain}"
    free, count = plain, 1
    while free in taken:
        count += 1
        free = f"{plain}_{count}"
    taken.add(free)
    return free


class MipModel(Model):
    """An integer program for HiGHS and CBC; subclasses fill ``program``, a ``pulp.LpProblem``.

    Parameters
    ----------
    name : str
        Of the program in written files.
    engine : {"highs", "cbc"}
        Solves it.
    """

    suffixes: ClassVar[tuple[str, ...]] = (".lp", ".mps")

    def __init__(self, name: str, engine: Engine = "highs") -> None:
        self.program = pulp.LpProblem(legible(name, set()), pulp.LpMinimize)
        self.engine = engine
        self.started = False
        self._looked: tuple[int, BigM | None, float] = (-1, None, 0.0)

    @property
    def engines(self) -> tuple[str, ...]:
        """The own one; the other one too where no row has a big M, of which CBC proves nothing by itself."""
        if self.switched() is not None:
            return (self.engine,)
        return ("cbc", "highs") if self.engine == "cbc" else ("highs", "cbc")

    def switched(self) -> BigM | None:
        """The largest big M above 1; looked for once, and again when there are other rows."""
        if self._looked[0] != self.row_count():
            begin = time.perf_counter()
            found = big_m(self.program, above=1)
            self._looked = self.row_count(), found, time.perf_counter() - begin
        return self._looked[1]

    def names(self) -> Mapping[str, bool]:
        self._legible()
        return {variable.name: variable.cat == pulp.LpInteger for variable in self.program.variables()}

    def name(self, variable: Any) -> str:
        return str(variable.name)

    def row_count(self) -> int:
        return len(self.program.constraints())

    def _legible(self) -> None:
        """Give the variables names that every reader of LP and MPS files takes; no two have the same."""
        taken: set[str] = set()
        for variable in self.program.variables():
            variable.name = legible(variable.name, taken)

    def solve(
        self, budget: Budget, *, time_s: float | None = None, on_solution: Callable[[Value], None] | None = None
    ) -> Outcome:
        """HiGHS and CBC run behind PuLP, which has no call-back: improvements are not announced.

        What an engine proves of a model with a big M holds only as far as HiGHS, with a seed of its own, proves it too;
        each has half of the time.

        PuLP cannot be stopped while it hands a program over, which takes seconds if it is large: where so much is not
        left no engine is asked.

        Raises
        ------
        GuardError
            See :func:`mapgap.solvers.big_m.check_big_m`.
        EngineError
            The two contradict each other.
        """
        largest = self.switched()
        check_big_m(largest, TOLERANCE, self.titles())
        if budget.remaining_s < HANDED_OVER * self._looked[2]:
            return Outcome(Status.UNKNOWN, Stop.TIME, None, None, _value)
        if largest is None or (self.engine == "highs" and largest.size < SWITCH):
            return solve(self.program, budget, self.engine, time_s=time_s, warm_start=self.started)
        half = min(budget.remaining_s, budget.remaining_s if time_s is None else time_s) / 2
        first = solve(self.program, budget, self.engine, time_s=half, warm_start=self.started)
        if first.status is Status.UNKNOWN and first.bound is None:
            return first
        values = {id(variable): variable.varValue for variable in self.program.variables()}
        second = solve(self.program, budget, "highs", time_s=half, seed=budget.seed + 1)
        return confirmed(first, second, lambda variable: round(values[id(variable)]))

    def _hint(self, variable: Any, value: int) -> None:
        """CBC begins there; PuLP hands HiGHS no start."""
        variable.setInitialValue(value, check=False)
        self.started = True

    def _fix(self, variable: Any, value: int) -> None:
        self.program += variable == value, f"fix_{variable.name}"

    def _at_most(self, value: int) -> None:
        self.program += self.program.objective <= value, "better"

    def _write(self, path: Path) -> None:
        self._legible()
        written = pulp.LpProblem(self.program.name, pulp.LpMinimize)
        written.setObjective(self.program.objective)
        taken: set[str] = set()
        for constraint, title in zip(self.program.constraints(), self.titles(), strict=True):
            name = f"{title.partition('_')[0]}_{constraint.name}" if title and constraint.name else title
            written.addConstraint(constraint, legible(name or constraint.name or "row", taken))
        if path.suffix.lower() == ".lp":
            written.writeLP(str(path), max_length=NAME_LENGTH)
        else:
            written.writeMPS(str(path))
