"""Engines that lie, and what becomes of it: nothing unproven may be called OPTIMAL or INFEASIBLE, no bound be wrong.

Inside :func:`lying` an engine answers wrongly, always or at random:

- ``infeasible``: there is no solution;
- ``worst``: the worst solution is optimal, with a bound that fits;
- ``held``: the worst solution is held, with a bound that closes the gap;
- ``beyond``: no solution is found, and the bound lies beyond the best one.

Lies only show where the plan that a method starts from is not optimal, so instances are chosen for that.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any
from unittest.mock import patch

from mapgap.catalogue import registry
from mapgap.contract.known import sign
from mapgap.core import CONFIRMED, DISTRUSTED, UNCONFIRMED, Budget, InstanceBase, Method, Status, Stop
from mapgap.execution.confirm import due
from mapgap.execution.run import run_method
from mapgap.records.record import RunRecord
from mapgap.solvers import cpsat, highs, mip
from mapgap.solvers.outcome import Outcome

ENGINES = ("CP-SAT", "HiGHS", "CBC")
KINDS = ("infeasible", "worst", "held", "beyond")
SECONDS, WORST_S = 3.0, 0.5  #: of one lied run, and of a liar's own search for a bad solution


@dataclass
class Liar:
    """Who lies how, how often, and how many lies were told.

    Attributes
    ----------
    engines : tuple of str
    kind : str
        One of :data:`KINDS`.
    share : float
        Of the answers.
    told : int
    """

    engines: Sequence[str]
    kind: str
    share: float = 1.0
    seed: int = 0
    told: int = 0
    rng: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self.rng = random.Random(f"liar-{self.seed}")

    def lies(self, engine: str) -> bool:
        return engine in self.engines and self.rng.random() < self.share

    def tell(self, worst: Outcome, best: Outcome) -> Outcome:
        """A lie about a model whose worst and best solutions are known; the truth where there is none to tell."""
        if not best.solved or not worst.solved or worst.objective is None or best.objective is None:
            return best
        self.told += 1
        if self.kind == "infeasible":
            return replace(best, status=Status.INFEASIBLE, stop=Stop.PROVED, objective=None, bound=None)
        if self.kind == "beyond":
            far = best.objective + max(1, abs(best.objective) // 10)
            return replace(best, status=Status.UNKNOWN, stop=Stop.DONE, objective=None, bound=far)
        status, stop = (Status.OPTIMAL, Stop.PROVED) if self.kind == "worst" else (Status.FEASIBLE, Stop.DONE)
        return replace(worst, status=status, stop=stop, bound=worst.objective)


@contextmanager
def lying(liar: Liar) -> Iterator[Liar]:
    """Engines answer as the liar does."""
    asked_cpsat, asked_mip, asked_matrix = cpsat.solve, mip.solve, highs.MatrixModel.solve

    def of_cpsat(model: Any, budget: Budget, **options: Any) -> Outcome:
        best = asked_cpsat(model, budget, **options)
        if not liar.lies("CP-SAT"):
            return best
        reverse = model.clone()
        aim = reverse.proto.objective
        aim.offset = -aim.offset
        for k, each in enumerate(aim.coeffs):
            aim.coeffs[k] = -each
        worst = asked_cpsat(reverse, replace(budget, listener=None), time_s=WORST_S)
        return liar.tell(_negated(worst), best)

    def of_mip(problem: Any, budget: Budget, engine: str = "highs", **options: Any) -> Outcome:
        best = asked_mip(problem, budget, engine, **options)
        if not liar.lies({"highs": "HiGHS", "cbc": "CBC"}[engine]):
            return best
        kept = {variable.name: variable.varValue for variable in problem.variables()}
        truth = replace(best, value=lambda variable: round(kept[variable.name]))
        aim = problem.objective
        problem.setObjective(-1 * aim)
        worst = asked_mip(problem, budget, engine, time_s=WORST_S)
        problem.setObjective(aim)
        told = liar.tell(_negated(worst), truth)
        if not told.solved or told.objective == truth.objective:
            for variable in problem.variables():
                variable.varValue = kept[variable.name]
        return told

    def of_matrix(model: highs.MatrixModel, time_s: float, **options: Any) -> highs.MatrixOutcome:
        best = asked_matrix(model, time_s, **options)
        if not liar.lies("HiGHS") or best.bound is None:
            return best
        liar.told += 1
        if liar.kind == "infeasible":
            return highs.MatrixOutcome(Status.INFEASIBLE)
        far = best.bound + max(1.0, abs(best.bound) / 10)
        return replace(best, bound=far, duals=None if best.duals is None else 1.1 * best.duals)

    with (
        patch.object(cpsat, "solve", of_cpsat),
        patch.object(mip, "solve", of_mip),
        patch.object(highs.MatrixModel, "solve", of_matrix),
    ):
        yield liar


def _negated(found: Outcome) -> Outcome:
    return replace(found, objective=None if found.objective is None else -found.objective)


def exact_methods(problem: str) -> list[Method]:
    """Exact methods whose claims rest on engines, and portfolios."""
    return [method for method in registry.methods(problem).values() if due(method)]


def wrong_words(record: RunRecord, truth: int | None) -> list[str]:
    """What a record says that is not so; ``truth`` is the optimum, ``None`` where there is no plan."""
    side, found = sign(record.problem), []
    if record.status == Status.OPTIMAL and record.objective != truth:
        found.append(f"OPTIMAL {record.objective}, not {truth}")
    if record.status == Status.INFEASIBLE and truth is not None:
        found.append(f"INFEASIBLE, but there is a plan of {truth}")
    labelled = record.notes.get(UNCONFIRMED)  # a bound that nobody had time to confirm says whose word it is
    bounds = [record.sure_bound, *(() if labelled else (point.bound for point in record.trace))]
    if truth is not None:
        found += [
            f"bound {bound} beyond {truth}" for bound in bounds if bound is not None and side * bound > side * truth
        ]
    told = any(word in str(record.notes) for word in (CONFIRMED, DISTRUSTED))
    silent = not (labelled or told or record.error or record.reason)
    if record.status in (Status.FEASIBLE, Status.UNKNOWN) and silent and record.stop != Stop.TIME:
        found.append(f"{record.status} without a word why")
    return found


def lied_run(method: Method, instance: InstanceBase, truth: int | None, liar: Liar) -> list[str]:
    """What is wrong in the record of a run with a liar."""
    with lying(liar):
        record = run_method(instance, method, Budget(SECONDS, seed=liar.seed), isolate=False)
    who = f"{method.name} on {instance.name}, {'+'.join(liar.engines)} {liar.kind} {liar.share} seed {liar.seed}"
    return [f"{who}: {word}" for word in wrong_words(record, truth)]
