"""What a run says, checked: plans are re-evaluated, claims compared with what they show. Used by
mapgap.execution.run."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from mapgap.core import (
    UNCONFIRMED,
    Certificate,
    Evaluation,
    InstanceBase,
    PlanBase,
    Problem,
    Status,
    Stop,
    TracePoint,
    Violation,
)
from mapgap.execution import messages
from mapgap.execution.messages import BadMessage, Message
from mapgap.execution.progress import Compiling, Tell, silence
from mapgap.records.record import RunRecord, plain, relative

#: At most this many incumbents that are still unchecked when a run ends are evaluated (spread evenly, the last kept).
PENDING_LIMIT = 300

Observer = Callable[[float, int | None, int | None], None]
"""Called during a run with elapsed seconds, best verified objective and best reported bound."""


def verify(problem: Problem, instance: InstanceBase, plan: PlanBase) -> Evaluation:
    """``Problem.evaluate``, whose own failure on an absurd plan counts as a violation of that plan."""
    try:
        return problem.evaluate(instance, plan)
    except Exception as error:
        text = f"the evaluator rejects the plan: {type(error).__name__}: {error}"
        return Evaluation(None, {}, (Violation("evaluate", "plan", 1, text),))


class Watch:
    """Collects the messages of one run, verifies plans as they come, and judges the run at its end."""

    def __init__(
        self,
        problem: Problem,
        instance: InstanceBase,
        observer: Observer | None,
        tell: Tell = silence,
        *,
        enumerates: bool = False,
        claims: bool = False,
    ) -> None:
        self.problem = problem
        self.instance = instance
        self.observer = observer
        self.tell = tell
        self.enumerates = enumerates  # as its method declares
        self.claims = claims  # its bounds are an engine's word until they are confirmed at the end
        self.sign = 1 if problem.sense == "min" else -1
        self.end: messages.End | None = None
        self.pending: list[tuple[float, Any, str]] = []
        self.trace: list[TracePoint] = []
        self.plan: Any = None  # best verified plan, as JSON
        self.evaluation: Evaluation | None = None
        self.bound: int | None = None
        self.found_by = self.proved_by = ""  # the part of the method that found the plan, that proved the bound
        self.refuted: str | None = None
        self.broken: tuple[Any, Evaluation] | None = None
        self.began: float | None = None
        self.compiling = False

    def receive(self, message: Message) -> None:
        """Take a message of the run.

        Raises
        ------
        BadMessage
            It comes out of turn, or says what its method cannot know.
        """
        if isinstance(message, messages.Start):
            self.began = time.perf_counter()
        elif isinstance(message, messages.Compiling):
            if not self.compiling:
                self.tell(Compiling(message.obstacle))
            self.compiling = True
        elif isinstance(message, messages.End):
            self._take_end(message)
        elif self.began is None:
            raise BadMessage("report: expected after the start, found before")
        else:
            moment = min(message.time_s, time.perf_counter() - self.began)
            if message.bound is not None:
                self._take_bound(message.bound, moment, message.by)
            if message.plan is not None:
                self.pending.append((moment, message.plan, message.by))
                if len(self.pending) > 2 * PENDING_LIMIT:  # faster than they can be verified
                    self.pending = self.pending[1::2]

    def _take_end(self, message: messages.End) -> None:
        if sum((message.result is not None, message.error is not None, message.interrupted)) != 1:
            raise BadMessage("end: expected a result or an error, found neither or both")
        if message.result is not None:
            if self.began is None or message.wall_s is None:
                raise BadMessage("end: expected a result after a start, found one without")
            if message.result.enumerated and not self.enumerates:
                text = "expected 'enumeration' among the engines that the method declares"
                raise BadMessage(f"end: result.enumerated: {text}, found true without it")
        self.end = message

    def idle(self) -> None:
        """Verify one waiting incumbent; tell the observer."""
        if self.pending:
            self._take_plan(*self.pending.pop(0))
        if self.observer is not None and self.began is not None:
            objective = self.evaluation.objective if self.evaluation else None
            self.observer(time.perf_counter() - self.began, objective, self.bound)

    def _refute(self, text: str) -> None:
        if self.refuted is None:
            self.refuted = text

    def _take_bound(self, bound: int, moment: float, by: str = "") -> None:
        if self.bound is None or self.sign * bound > self.sign * self.bound:
            self.bound, self.proved_by = bound, by
            self.trace.append(TracePoint(moment, bound=bound))

    def _settle(self, bound: int | None) -> None:
        """Of what was announced on the way no more counts than was confirmed."""
        kept = [
            p for p in self.trace if p.bound is None or (bound is not None and self.sign * p.bound <= self.sign * bound)
        ]
        if len(kept) < len(self.trace):
            self.trace, self.bound, self.proved_by = kept, None, ""

    def _take_plan(self, moment: float, data: Any, by: str = "") -> Evaluation | None:
        """Evaluate a plan; keep it if it is the best so far. A plan that breaks a rule refutes the run."""
        if self.plan is not None and data == self.plan:  # most methods announce the plan that they return
            return self.evaluation
        try:
            plan = self.problem.plan_type.model_validate_json(json.dumps(data))
        except ValueError as error:
            self._refute(f"the method returned something that is no plan of {self.problem.name}: {error}")
            return None
        found = verify(self.problem, self.instance, plan)
        if not found.feasible:
            first = found.violations[0] if found.violations else None
            text = f"{first.rule}: {first.where}: {first.message}" if first else "it has no objective"
            self._refute(f"the method returned a plan that breaks {len(found.violations)} rule(s); first: {text}")
            self.broken = self.broken or (data, found)
            return found
        assert found.objective is not None
        best = self.evaluation.objective if self.evaluation else None
        if best is None or self.sign * found.objective < self.sign * best:
            self.plan, self.evaluation, self.found_by = data, found, by
            self.trace.append(TracePoint(moment, objective=found.objective))
        return found

    def conclude(self, blank: RunRecord, stop: Stop | None, reason: str = "") -> RunRecord:
        """The record of the run; ``stop`` is given when the process never handed in a result."""
        skip = max(1, -(-len(self.pending) // PENDING_LIMIT))
        for moment, data, by in [*self.pending[::-1][::skip][::-1]]:
            self._take_plan(moment, data, by)
        self.pending.clear()
        end = self.end or messages.End(event="end")
        result, wall_s = end.result, blank.wall_s if end.wall_s is None else end.wall_s
        error: str | None = None
        if stop is None and end.error is not None:
            stop, error = (Stop.MEMORY if end.memory else Stop.ERROR), end.error
        elif stop is Stop.ERROR:
            error = reason
        status = Status.UNKNOWN
        if result is not None:
            stop, reason = result.stop, result.reason
            status = self._judge(result, wall_s or 0.0)
            error = (reason or "the method reports an error") if stop is Stop.ERROR else None
        elif self.evaluation is not None:
            status = Status.FEASIBLE
        return self._record(blank, status, stop or Stop.ERROR, reason, error, wall_s, result)

    def _judge(self, result: messages.Result, wall_s: float) -> Status:
        """Compare every claim of a result with the plans; returns the status that stands."""
        claimed, status, stop = result.claimed, result.status, result.stop
        if self.claims:
            self._settle(result.bound)
        if result.bound is not None:
            self._take_bound(result.bound, wall_s)
        final = self._take_plan(wall_s, result.plan) if result.plan is not None else None
        if final is not None and final.feasible and self.evaluation and final.objective == self.evaluation.objective:
            self.plan, self.evaluation = result.plan, final  # among equals the method's last word counts
        if claimed is not None and (final is None or claimed != final.objective):
            value = None if final is None else final.objective
            self._refute(f"the method claims objective {claimed}, its plan evaluates to {value}")
        objective = self.evaluation.objective if self.evaluation else None
        if stop in (Stop.TIME, Stop.MEMORY, Stop.INTERRUPTED) and status in (Status.OPTIMAL, Status.INFEASIBLE):
            status = Status.UNKNOWN if objective is None else Status.FEASIBLE  # what a limit stopped proved nothing
        if status is Status.INFEASIBLE:
            if objective is not None:
                self._refute(f"the method claims INFEASIBLE, but reported a plan of objective {objective}")
            return status
        if objective is None:
            if status is not Status.UNKNOWN:
                self._refute(f"the method claims {status} without a valid plan")
            return Status.UNKNOWN
        if status is not Status.OPTIMAL:
            return Status.FEASIBLE
        if final is None or final.objective != objective:
            self._refute(f"the method claims OPTIMAL for its last plan, but reported one of objective {objective}")
        if self.bound is None:
            self._take_bound(objective, wall_s)
        if self.bound != objective:
            self._refute(f"the method claims OPTIMAL at objective {objective} with bound {self.bound}")
        return status

    def _record(
        self,
        blank: RunRecord,
        status: Status,
        stop: Stop,
        reason: str,
        error: str | None,
        wall_s: float | None,
        result: messages.Result | None,
    ) -> RunRecord:
        objective = self.evaluation.objective if self.evaluation else None
        bound = self.bound
        if objective is not None and bound is not None and self.sign * bound > self.sign * objective:
            side = "above" if self.sign > 0 else "below"
            self._refute(f"the method claims bound {bound}, {side} the objective {objective} of a verified plan")
            bound = None
        if status is Status.INFEASIBLE and not reason and self.problem.diagnose is not None:
            reason = "; ".join(self.problem.diagnose(self.instance))
        plan, evaluation = self.plan, self.evaluation
        if self.refuted is not None:
            status, stop, error = Status.UNKNOWN, Stop.ERROR, self.refuted
            objective = bound = None
            self._settle(None)  # nor is any bound of its trace to be read as one
            if self.broken is not None:
                plan, evaluation = self.broken
        proven = Certificate.ENUMERATED if result is not None and result.enumerated else Certificate.CLAIMED
        notes = {} if result is None else plain(result.notes)
        if self.claims and result is None and bound is not None:
            notes = {UNCONFIRMED: [f"{blank.method} claims bound {bound}; the run ended before anybody confirmed it"]}
        notes |= {"assumed": self.instance.assumed} if self.instance.assumed else {}
        build_s = notes.get("build_s")
        return replace(
            blank,
            status=status,
            stop=stop,
            objective=objective,
            bound=bound,
            found_by=None if objective is None else self.found_by or blank.method,
            proved_by=None if bound is None else self.proved_by or blank.method,
            gap=relative(objective, bound, self.sign),
            certificate=proven if status is Status.OPTIMAL else None,
            wall_s=None if wall_s is None else round(wall_s, 6),
            build_s=build_s if type(build_s) in (int, float) else None,
            reason=reason,
            error=error,
            refuted=self.refuted is not None,
            violations=[v.to_json() for v in evaluation.violations] if evaluation else [],
            terms=dict(evaluation.terms) if evaluation else {},
            notes=notes,
            trace=sorted(self.trace, key=lambda point: point.time_s),
            plan=plan,
        )
