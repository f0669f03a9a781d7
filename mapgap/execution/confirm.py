"""No claim rests on one engine: who says OPTIMAL, INFEASIBLE or a bound by an engine's word is confirmed by another.

A run of an exact method that asks engines, and of every portfolio, ends with a *confirmation* in what is left of its
time. Whoever can be asked is asked, until somebody confirms or refutes the claim, the surest first:

1.  the *certificate search* of the problem, whose proof the checker of :mod:`mapgap.evidence.check` then follows;
2.  another exact method without an engine (a search of the house, or brute force where the instance is tiny), whole;
3.  *another engine*, one that the method does not ask, with one question about its own model: is there a plan better
    than this? Of a method with several engines two of the others' answers are needed, since any one of them may have
    been wrong. An engine that denies a plan which is known to exist is not believed either.

What nobody confirms is not said: OPTIMAL becomes FEASIBLE and INFEASIBLE becomes UNKNOWN, and the note ``unconfirmed``
says why. Its bound is dropped unless only the time was missing: then it stands as what it is, the word of the engines.
A bound that the method has recomputed in whole numbers of its own (:attr:`mapgap.core.Budget.recomputed`) is nobody's
word and needs no confirmation, nor does an optimum that meets it: of that the certificate search alone is asked. Where
it stands without another's confirmation it is the note ``recomputed``.
"""

from __future__ import annotations

import contextlib
import json
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from mapgap.catalogue import registry
from mapgap.core import (
    CONFIRMED,
    RECOMPUTED,
    UNCONFIRMED,
    Budget,
    InstanceBase,
    Method,
    OutOfTime,
    PlanBase,
    Problem,
    SolveResult,
    Status,
    Stop,
    resolve,
)
from mapgap.evidence import check  # the checker stands alone, whatever folder it lies in

OWN = frozenset({"own", "enumeration"})
"""Engines of the house."""
CERTIFICATE, DIAGNOSIS = "certificate search", "diagnosis"
PART = 0.5
"""Of the time that is left, what each of those who are asked may take."""


class _Refuted(Exception):
    """Somebody knows better."""


def due(method: Method) -> bool:
    """Must claims of the method be confirmed?"""
    return method.kind == "exact" and bool(method.members or set(method.engines) - OWN)


def prepare(method: Method) -> None:
    """Import whatever a confirmation may need: to import can be to compile, and belongs to no run's time."""
    if not due(method):
        return
    proving = registry.library(method.problem).proving
    if proving is not None:
        resolve(proving)
    for reference in (*(other.run for other in searches(method)), *(other.models for other in models(method))):
        with contextlib.suppress(Exception):  # who cannot be imported confirms nothing
            resolve(reference)


def _others(method: Method) -> list[Method]:
    known = registry.methods(method.problem).values()
    return [other for other in known if other.kind == "exact" and other is not method]


def searches(method: Method) -> list[Method]:
    """Other exact methods that ask no engine and are no part of this one."""
    return [m for m in _others(method) if set(m.engines) <= OWN and not m.members and m.name not in method.members]


def models(method: Method) -> list[Method]:
    """Other exact methods that are a model for one engine."""
    return [m for m in _others(method) if m.models is not None and len(m.engines) == 1]


def confirmed(
    method: Method, instance: InstanceBase, result: SolveResult, budget: Budget, told: int | None = None
) -> SolveResult:
    """The result with what was confirmed of it, by whom (note ``confirmed``), or without what was not.

    Parameters
    ----------
    told : int, optional
        The last bound that the run has announced: what is left of INFEASIBLE where only time was missing.
    """
    claim = _Claim(method, instance, result)
    own = budget.recomputed[-1] if budget.recomputed else None
    if not due(method) or not claim.made:
        return result
    if claim.recomputed(own):
        return claim.of_own(budget)
    try:
        with budget.timed("confirm"):
            by = next(claim.confirmations(budget), None)
        late = claim.cut or budget.exhausted
        why = f"{claim.words}; nobody else could confirm it" + (" in time" if late else "")
    except _Refuted as error:
        by, why, late = None, f"{claim.words}; {error}", False
    if by is not None:
        return replace(result, notes={**result.notes, CONFIRMED: by})
    notes = {} if own is None else {RECOMPUTED: own}
    stop = result.stop if result.stop is not Stop.PROVED else Stop.TIME if late else Stop.DONE
    return replace(
        result,
        status=Status.UNKNOWN if result.plan is None else Status.FEASIBLE,
        stop=stop,
        bound=own if not late else told if result.bound is None else result.bound,
        reason=result.reason if result.status is not Status.INFEASIBLE else why,
        notes={**result.notes, **notes, UNCONFIRMED: [*result.notes.get(UNCONFIRMED, ()), why]},
    )


@contextlib.contextmanager
def within(budget: Budget) -> Iterator[None]:
    """For Python that looks at no clock: a program or a proof of a large instance takes long to write.

    Raises
    ------
    OutOfTime
        The budget ends first; it is noticed in the main thread only, and when a call into an engine has come back.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def late(*_: Any) -> None:
        raise OutOfTime

    before = signal.signal(signal.SIGALRM, late)
    try:
        signal.setitimer(signal.ITIMER_REAL, max(budget.remaining_s, 1e-3))
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def built(part: Any, budget: Budget, **how: Any) -> Any:
    """A program of an engine, within the budget."""
    with within(budget):
        return part.build(**how)


class _Claim:
    """What a result says of all plans: none is better than ``bound``, or, with ``None``, there is none.

    Attributes
    ----------
    cut : bool
        Somebody who was asked had not enough time to answer.
    """

    def __init__(self, method: Method, instance: InstanceBase, result: SolveResult) -> None:
        self.method, self.instance, self.result, self.cut = method, instance, result, False
        self.problem: Problem = registry.problems()[instance.problem]
        self.sign = -1 if self.problem.sense == "max" else 1
        self.bound = result.bound if result.bound is not None or result.plan is None else self.worth(result.plan)
        if result.status is Status.INFEASIBLE:
            self.bound = None
        engine = result.bound is not None and not set(method.engines) <= OWN
        self.made = engine or result.status in (Status.OPTIMAL, Status.INFEASIBLE)

    @property
    def words(self) -> str:
        """``mip (HiGHS) claims INFEASIBLE``."""
        what = f"{self.result.status} {self.bound}" if self.result.status is Status.OPTIMAL else f"bound {self.bound}"
        what = "INFEASIBLE" if self.bound is None else what
        return f"{self.method.name} ({', '.join(self.method.engines)}) claims {what}"

    def recomputed(self, own: int | None) -> bool:
        """Does all that is claimed follow from a bound that rests on no engine?"""
        return self.bound is not None and own is not None and self.sign * own >= self.sign * self.bound

    def of_own(self, budget: Budget) -> SolveResult:
        """The result where it needs no confirmation; an optimum is certified, if that is cheap."""
        if self.result.status is not Status.OPTIMAL:
            return self.result
        with budget.timed("confirm"):
            found = {CONFIRMED: CERTIFICATE} if self.certified(self._part(budget)) else {RECOMPUTED: self.bound}
        return replace(self.result, notes={**self.result.notes, **found})

    def worth(self, plan: PlanBase) -> int | None:
        found = self.problem.evaluate(self.instance, plan)
        return found.objective if found.feasible else None

    def beaten(self, plan: PlanBase | None, by: str) -> None:
        """Nothing if the plan is none, or no better.

        Raises
        ------
        _Refuted
        """
        value = None if plan is None else self.worth(plan)
        if value is not None and (self.bound is None or self.sign * value < self.sign * self.bound):
            raise _Refuted(f"{by} has a plan of {value}")

    def confirmations(self, budget: Budget) -> Iterator[str]:
        """Who confirms the claim; each only asked when the next one is wanted.

        Raises
        ------
        _Refuted
        """
        if self.bound is None and self.problem.diagnose is not None and self.problem.diagnose(self.instance):
            yield DIAGNOSIS
        if self._asked(self.certified, budget):
            yield CERTIFICATE
        for other in searches(self.method):
            if self._asked(partial(self.agrees, other), budget):
                yield other.name
        yield from self.questions(models(self.method), budget)

    def _asked(self, confirms: Callable[[Budget], bool], budget: Budget) -> bool:
        """The answer of one of those who can be asked, within their part of the time."""
        part = self._part(budget)
        answer = confirms(part)
        self.cut |= not answer and part.exhausted
        return answer

    def _part(self, budget: Budget) -> Budget:
        return replace(budget.quiet().part(PART * budget.remaining_s), used_s={}, recomputed=[])

    def certified(self, budget: Budget) -> bool:
        """Does the problem find a proof that the checker accepts?"""
        if registry.library(self.problem.name).proving is None or budget.exhausted:
            return False
        facts = self.instance.to_json()
        limit = check.NONE[self.problem.sense] if self.bound is None else self.bound
        try:
            with within(budget):
                proof = registry.library(self.problem.name).prove(facts, limit, budget)
                if proof is None:
                    return False
                own = {"schema": check.SCHEMA, "instance": facts, "bound": self.bound, "proof": proof}
                check.check(json.loads(json.dumps(own)))
        except Exception:  # the producer's, of whatever kind, or the checker's: no proof
            return False
        return True

    def agrees(self, other: Method, budget: Budget) -> bool:
        """Does another method prove the same?"""
        if budget.exhausted:
            return False
        start = {"start": self.result.plan} if "start" in other.options and self.result.plan is not None else {}
        try:
            found = other.solve(self.instance, budget, **start)
        except Exception:  # not made for the instance
            return False
        self.beaten(found.plan, other.name)
        if self.bound is None:
            return found.status is Status.INFEASIBLE
        return found.bound is not None and self.sign * found.bound >= self.sign * self.bound

    def questions(self, others: Sequence[Method], budget: Budget) -> Iterator[str]:
        """Other engines, one after the other; one that the method does not ask, or two."""
        said: dict[str, str] = {}
        for other in others:
            engine = other.engines[0]
            if engine in said or engine in OWN or self.method.engines == (engine,):
                continue
            if self._asked(partial(self.denies, other), budget):
                said[engine] = f"{other.name} ({engine})"
                if engine not in self.method.engines:
                    yield said[engine]
                elif len(said) > 1:
                    yield " and ".join(said.values())

    def denies(self, other: Method, budget: Budget) -> bool:
        """Does an engine deny, in all parts of its model, that there is a better plan? It must be able to say yes."""
        try:
            parts = resolve(other.models)(self.instance)
            if budget.exhausted or not self.admits(parts, budget):
                return False
            for part in parts:
                model = built(part, budget)
                if self.bound is not None:
                    model.below(self.bound)
                outcome = model.solve(budget)
                if outcome.solved:
                    self.beaten(model.plan(outcome.value), f"{other.name} ({other.engines[0]})")
                if outcome.status is not Status.INFEASIBLE:
                    return False
        except _Refuted:
            raise
        except Exception:  # no model of the instance, or one that the engine's guard refuses
            return False
        return True

    def admits(self, parts: Sequence[Any], budget: Budget) -> bool:
        """Does an engine find what is there: the known plan, or a point of a model without its rows?"""
        for part in parts:
            if self.result.plan is None:
                rows = type(built(part, budget)).rows()
                model = built(part, budget, without=[row.number for row in rows])
            else:
                model = built(part, budget, complete=True)
                if not model.fix(self.result.plan):
                    continue
            return bool(model.solve(budget).solved)
        return self.result.plan is not None  # dominated: nothing to ask
