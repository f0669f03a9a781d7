"""What every integer program of the house is: numbered rows, and what one can do with it.

A model is a class. Its docstring states the program as mathematics (sets, data, variables, objective, rows ``(1)``,
``(2)``, …); each numbered row is one method, marked :func:`row`. So a reader gets from an equation to the line that
adds it, the tests can leave out one row at a time, and every model can be fixed to a plan, given a start, read and
written in the same way, whichever engine solves it. :func:`prove` is the one road from a model to a
:class:`~mapgap.core.SolveResult`.
"""

from __future__ import annotations

import os
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from mapgap.core import Budget, InputError, PlanBase, SolveResult, Status, Stop
from mapgap.core.storage import read_text
from mapgap.solvers.outcome import Outcome
from mapgap.solvers.turns import EngineError, in_turn

Build = TypeVar("Build", bound=Callable[..., None])
Value = Callable[[Any], int]
"""``value(variable)``: the integer that a variable takes in a solution."""

INTEGRALITY = 1e-5
"""What a value in a solution file may be away from an integer; solvers' own tolerances are at most 1e-5."""
SHOWN = 5
"""Findings of one kind that are listed."""


@dataclass(frozen=True)
class Row:
    """A numbered row (a family of constraints) of a program.

    Attributes
    ----------
    number : int
        As in the docstring of the model.
    method : str
        Adds it.
    text : str
        What it demands.
    implied : bool
        A valid inequality: it makes the relaxation tighter and never changes the optimum.
    """

    number: int
    method: str
    text: str
    implied: bool = False


def row(number: int, *, implied: bool = False) -> Callable[[Build], Build]:
    """Mark the method that adds the rows ``(number)`` of a model; its docstring says what they demand."""

    def mark(method: Build) -> Build:
        text = " ".join((method.__doc__ or "").split())
        method.__dict__["row"] = Row(number, method.__name__, text, implied)
        return method

    return mark


class Model(ABC):
    """An integer program over the plans of one instance, or of one :class:`Part` of it; always a minimisation.

    A subclass makes its variables, then calls :meth:`add_rows`.

    Attributes
    ----------
    program : Any
        The engine's object.
    sign, constant : int
        The instance's objective is ``sign * program's + constant``.
    engine : str
        That :meth:`solve` asks.
    families : tuple of (Row, int, int)
        Positions of the constraints ``[first, last)`` that each numbered row has added.
    """

    program: Any
    sign: int = 1
    constant: int = 0
    families: tuple[tuple[Row, int, int], ...] = ()
    engine: str = ""
    suffixes: ClassVar[tuple[str, ...]]
    """File formats that :meth:`write` knows."""

    @property
    def engines(self) -> tuple[str, ...]:
        """Those that may solve the model, its own first."""
        return (self.engine,)

    @classmethod
    def rows(cls) -> list[Row]:
        """The numbered rows, in order."""
        marked = (getattr(getattr(cls, name, None), "row", None) for name in dir(cls))
        return sorted((each for each in marked if isinstance(each, Row)), key=lambda each: each.number)

    def add_rows(self, without: Collection[int] = ()) -> None:
        """Add every numbered row but those ``without`` (tests leave rows out)."""
        for each in self.rows():
            if each.number not in without:
                first = self.row_count()
                getattr(self, each.method)()
                self.families = (*self.families, (each, first, self.row_count()))

    @abstractmethod
    def assignment(self, plan: Any) -> Mapping[Any, int] | None:
        """Values of the decision variables that stand for a plan; ``None`` if no point of this model does.

        A model has no point for a plan of another part, nor for one that its builder left out as dominated. Whether
        the plan keeps the rules does not matter here: that is what the rows say.
        """

    @abstractmethod
    def plan(self, value: Value) -> PlanBase:
        """The plan of a solution."""

    def objective(self, value: int) -> int:
        """The instance's objective for a value (or a bound) of the program's."""
        return self.sign * value + self.constant

    def hint(self, plan: PlanBase) -> bool:
        """Give the engine a plan to start from; ``False`` if the model has no point for it."""
        values = self.assignment(plan)
        if values is None:
            return False
        for variable, value in values.items():
            self._hint(variable, value)
        return True

    def fix(self, plan: PlanBase) -> bool:
        """Demand the decisions of a plan; ``False`` if the model has no point for it."""
        values = self.assignment(plan)
        if values is None:
            return False
        for variable, value in values.items():
            self._fix(variable, value)
        return True

    def below(self, objective: int) -> None:
        """Demand a plan that is better than one of this objective."""
        worse, better = 2**62, -(2**62)  # of the program's values; its objective never gets better with them
        while worse - better > 1:
            middle = (worse + better) // 2
            if self.sign * self.objective(middle) < self.sign * objective:
                better = middle
            else:
                worse = middle
        self._at_most(better)

    @abstractmethod
    def names(self) -> Mapping[str, bool]:
        """Names that a written file gives to the variables, and whether each must be an integer."""

    @abstractmethod
    def name(self, variable: Any) -> str:
        """The name of one variable in a written file."""

    @abstractmethod
    def row_count(self) -> int:
        """Number of constraints."""

    def titles(self) -> list[str]:
        """Per constraint the numbered row that it belongs to and the place in it: ``r03_once_2``; empty for others."""
        found = [""] * self.row_count()
        for each, first, last in self.families:
            found[first:last] = [f"r{each.number:02}_{each.method}_{k}" for k in range(1, last - first + 1)]
        return found

    def read(self, values: Mapping[str, float]) -> PlanBase:
        """The plan of a solution that another solver found for the written file; variables left out are 0.

        Raises
        ------
        InputError
            A name that the model does not have, or a value that is no integer.
        """
        known = self.names()
        strange = [f"solution: expected variables of the model, found {name!r}" for name in values if name not in known]
        rough = [
            f"solution: {name}: expected an integer, found {value:g}"
            for name, value in values.items()
            if known.get(name) and abs(value - round(value)) > INTEGRALITY
        ]
        if strange or rough:
            raise InputError([*strange[:SHOWN], *rough[:SHOWN]])
        try:
            return self.plan(lambda variable: round(values.get(self.name(variable), 0)))
        except (StopIteration, ValueError, IndexError, KeyError) as error:
            raise InputError("solution: expected one that keeps the rows of the model, found none of a plan") from error

    def write(self, path: Path) -> None:
        """Write the program for other solvers; the format is that of the suffix.

        Whoever opens the file finds the old one or the whole new one, also after a crash.

        Raises
        ------
        InputError
            The suffix is none of :attr:`suffixes`, or the file cannot be written.
        """
        if path.suffix.lower() not in self.suffixes:
            raise InputError(f"{path}: expected a file name in {', '.join(self.suffixes)} for this model")
        beside = path.with_name(f".{path.stem}.{os.getpid()}{path.suffix}")
        try:
            if path.exists() and not path.is_file():  # a device stays what it is
                self._write(path)
                return
            try:
                self._write(beside)
                beside.replace(path)
            finally:
                beside.unlink(missing_ok=True)
        except OSError as error:
            raise InputError(f"{path}: expected a file that can be written, found: {error.strerror}") from error

    @abstractmethod
    def solve(
        self, budget: Budget, *, time_s: float | None = None, on_solution: Callable[[Value], None] | None = None
    ) -> Outcome:
        """Minimise within the budget (or ``time_s`` of it); the outcome is in the program's own terms."""

    @abstractmethod
    def _hint(self, variable: Any, value: int) -> None: ...

    @abstractmethod
    def _fix(self, variable: Any, value: int) -> None: ...

    @abstractmethod
    def _at_most(self, value: int) -> None:
        """Demand a value of the program's objective."""

    @abstractmethod
    def _write(self, path: Path) -> None: ...


@dataclass(frozen=True)
class Part:
    """One of the integer programs that together hold all plans of an instance.

    Attributes
    ----------
    label : str
        Tells it from the others (``ratio 3,1``, ``micro-batch 4``); empty where there is one only.
    build : callable
        ``build(complete=False, without=()) -> Model``. With ``complete`` nothing is left out as dominated or symmetric:
        every plan of the part has a point. ``without`` numbers rows to leave out.
    """

    label: str
    build: Callable[..., Model]


def prove(
    model: Model,
    budget: Budget,
    *,
    time_s: float | None = None,
    start: PlanBase | None = None,
    announce: bool = True,
    reason: str = "",
    notes: Mapping[str, Any] | None = None,
    value: Callable[[PlanBase], int | None] | None = None,
    known: int | None = None,
    turns: bool = True,
) -> SolveResult:
    """Solve a model; what is proven is about the instance or part that it poses.

    An engine that contradicts itself is not believed: its bound lies beyond its own plan or a known one, it denies a
    known plan, or its plan is not worth what it claims. Then the model's next engine is asked; where none is left, or a
    guard refuses the model, the result is UNKNOWN. The reason, or the note ``distrusted``, says what happened.

    Parameters
    ----------
    time_s : float, optional
        Part of the budget.
    start : plan, optional
        Handed to the engine; it need not fit.
    announce : bool
        Report every improvement to the budget: right where the model holds whole plans of the instance.
    reason : str
        Of infeasibility, should the engine prove it.
    notes : mapping, optional
        Of the result.
    value : callable, optional
        The evaluator's objective of a plan, ``None`` if it breaks a rule; the engine's plan is checked by it.
    known : int, optional
        Objective of a plan that the model holds.
    turns : bool
        ``False`` asks the model's own engine only, and raises where it is not to be believed: for methods that put
        several questions to one engine and begin anew with the next.

    Raises
    ------
    EngineError, GuardError
        Without ``turns``.
    """
    if start is not None:
        model.hint(start)

    def improved(of: Value) -> None:
        budget.report(plan=model.plan(of))

    def ask(engine: str) -> SolveResult:
        model.engine = engine
        with budget.timed("engine"):
            outcome = model.solve(budget, time_s=time_s, on_solution=improved if announce else None)
        _check(model, outcome, known)
        result = _result(model, outcome, reason, notes or {})
        if value is not None and result.plan is not None:
            _check_plan(model, result, value(result.plan))
        return result

    with budget.timed("build"):
        engines = model.engines
    return in_turn(ask, engines) if turns else ask(model.engine)


def _result(model: Model, outcome: Outcome, reason: str, notes: Mapping[str, Any]) -> SolveResult:
    bound = None if outcome.bound is None else model.objective(outcome.bound)
    if outcome.status is Status.INFEASIBLE:
        return SolveResult(Status.INFEASIBLE, Stop.PROVED, reason=reason or "the model has no solution", notes=notes)
    if outcome.objective is None:
        return SolveResult(Status.UNKNOWN, outcome.stop, bound=bound, reason="no plan found in time", notes=notes)
    claimed = model.objective(outcome.objective) if outcome.status is Status.OPTIMAL else None
    return SolveResult(outcome.status, outcome.stop, model.plan(outcome.value), bound, claimed, notes=notes)


def _check(model: Model, outcome: Outcome, known: int | None) -> None:
    """What an engine says of all solutions against its own and a known one."""
    if outcome.status is Status.INFEASIBLE and known is not None:
        raise EngineError(f"claims INFEASIBLE, but there is a plan of {known}")
    if outcome.bound is None:
        return
    bound = model.objective(outcome.bound)
    if known is not None and model.sign * bound > model.sign * known:
        raise EngineError(f"claims bound {bound}, but there is a plan of {known}")
    if outcome.objective is not None and outcome.bound > outcome.objective:
        raise EngineError(f"claims bound {bound} beside its own solution of {model.objective(outcome.objective)}")


def _check_plan(model: Model, result: SolveResult, worth: int | None) -> None:
    """What an engine says of its plan against the evaluator."""
    if worth is None:
        raise EngineError("its plan breaks a rule")
    if result.claimed is not None and worth != result.claimed:
        raise EngineError(f"claims {result.claimed} for a plan of {worth}")
    if result.bound is not None and model.sign * result.bound > model.sign * worth:
        raise EngineError(f"claims bound {result.bound} beside its own plan of {worth}")


_INDEXED = re.compile(r"^\s*solution:\s*(-?\d+)\s*$")
_LISTED = re.compile(r"^\s*solution:\s*\[([-\d,\s]*)\]", re.MULTILINE)
_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_PAIR = re.compile(rf"^\s*(?:\*\*\s*)?(?:\d+\s+)?([A-Za-z_]\S*)\s+({_NUMBER})(?:\s|$)")
_ATTRIBUTES = re.compile(rf'<variable\s[^>]*?name="([^"]+)"[^>]*?\svalue="({_NUMBER})"')


def read_solution(path: Path) -> dict[str, float]:
    """Values by name from a solution file.

    Read are the files that HiGHS writes (either style), lines of a name and a number (Gurobi, SCIP, CBC), the XML of
    CPLEX, and the text form of CP-SAT's ``CpSolverResponse``, whose variables are named by their positions. What is
    said of rows, reduced costs and bases is left out.

    Raises
    ------
    InputError
        The file cannot be read, or states no value.
    """
    lines = read_text(path).splitlines()
    readers = (_of_cpsat, _of_highs, _of_highs_table, _of_cplex, _of_pairs)
    found = next((values for read in readers if (values := read(lines))), None)
    if found is None:
        raise InputError(f"{path}: expected lines of a variable's name and its value, found none")
    return found


def _of_cpsat(lines: Sequence[str]) -> dict[str, float]:
    """``solution: 1`` once per variable, or ``solution: [1, 0]``."""
    listed = _LISTED.search("\n".join(lines))
    values = listed[1].split(",") if listed else [match[1] for line in lines if (match := _INDEXED.match(line))]
    return {str(index): float(value) for index, value in enumerate(values) if value.strip()}


def _of_highs(lines: Sequence[str]) -> dict[str, float]:
    """``# Columns N``, then a name and a value per line, up to the next heading."""
    start = next((k for k, line in enumerate(lines) if re.match(r"# Columns \d+\s*$", line)), None)
    return {} if start is None else _of_pairs(takewhile(lambda line: not line.startswith("#"), lines[start + 1 :]))


def _of_highs_table(lines: Sequence[str]) -> dict[str, float]:
    """``Columns``, a heading in which ``Primal`` ends where the values end, a line per variable, then ``Rows``."""
    start = next((k for k, line in enumerate(lines[1:]) if lines[k].strip() == "Columns" and " Primal " in line), None)
    if start is None:
        return {}
    end = lines[start + 1].index(" Primal ") + len(" Primal")
    listed = takewhile(lambda line: line.strip() not in ("", "Rows"), lines[start + 2 :])
    return {line.split()[-1]: float(line[:end].split()[-1]) for line in listed}


def _of_cplex(lines: Sequence[str]) -> dict[str, float]:
    return {match[1]: float(match[2]) for line in lines for match in _ATTRIBUTES.finditer(line)}


def _of_pairs(lines: Iterable[str]) -> dict[str, float]:
    """A name and a value per line, perhaps after a position and before more; other lines say nothing of variables."""
    matches = (_PAIR.match(line) for line in lines)
    return {match[1]: float(match[2]) for match in matches if match is not None}
