"""Segment flow below growing limits, solved with HiGHS or CBC.

Only segments on a path within a limit exist (``chains.py``), which keeps the program (``flow_model.py``) small. The
first bound is what every pipeline needs alone: the largest cycle time, or the sum of the latencies. The first limit
lies a thousandth above it; a limit that is refuted is followed by one three times as far. Because the best plan below a
limit is optimal, the first limit with a plan ends the search, once the engine has proven it; a plan to start from caps
the limits. A question that stays open is asked again for longer (:class:`.params.Questions`), with a larger limit
while there is no plan. No rule looks at the time limit.

The engine's bound is rounded up with a relative tolerance; what that leaves open is closed by asking once more for a
plan between the bound and the plan found. From 5 * 10^6 ticks on the engine's tolerances exceed a tick, and it was seen
to deny a plan one tick below another: there this question goes to the search for certificates, which computes in whole
numbers.

HiGHS gets no start: every program below the best plan excludes that plan.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator

from mapgap.core import DISTRUSTED, Budget, SolveResult, Status, Stop, read_start
from mapgap.formulations.multi_model_splitting.certificate import prove as refuted
from mapgap.formulations.multi_model_splitting.chains import Chain, single_part
from mapgap.formulations.multi_model_splitting.flow_model import FlowModel
from mapgap.formulations.multi_model_splitting.known import Known
from mapgap.formulations.multi_model_splitting.params import Questions
from mapgap.problems.multi_model_splitting import Instance, Plan
from mapgap.problems.multi_model_splitting.diagnose import diagnose
from mapgap.solvers.mip import Engine, slack
from mapgap.solvers.model import Part, prove
from mapgap.solvers.turns import EngineError, in_turn

DEFAULT = Questions()


def models(instance: Instance, engine: Engine = "highs") -> list[Part]:
    """The program below the largest limit."""

    def model(reduced: list[Chain], top: int, without: Collection[int]) -> FlowModel:
        return FlowModel(instance, reduced, top, engine=engine, without=without)

    return single_part(instance, model)


def models_cbc(instance: Instance) -> list[Part]:
    """The same for CBC."""
    return models(instance, "cbc")


class Flow:
    """Questions to one engine about what is known.

    Parameters
    ----------
    tell : bool
        Bounds of the engine are announced at once, otherwise at the end only, when nothing has refuted them.
    """

    def __init__(self, known: Known, engine: Engine, tell: bool = False) -> None:
        self.known, self.engine, self.tell = known, engine, tell
        self.step, self.opened = max(1, known.bound // 1000), False

    def questions(self, params: Questions) -> Iterator[None]:
        """All questions; yields between two.

        Raises
        ------
        EngineError, GuardError
        """
        time_s = params.slice_s
        while not self.known.over:
            asked = self.ask(time_s)
            if asked is Stop.TIME:
                time_s *= params.growth
            elif asked is not Stop.PROVED:
                return
            yield

    def ask(self, time_s: float) -> Stop:
        """A question: answered (``PROVED``), open (``TIME``), or the last one."""
        known = self.known
        limit = known.highest if self.opened else min(known.highest, known.bound + self.step)
        reduced = known.within(limit)
        if reduced is None:
            self.step *= 3
            known.raise_own(limit + 1)
            return Stop.PROVED
        margin = slack(limit)
        if known.value is not None and margin and (self.opened or known.bound >= known.value - margin):
            return self._refute(known.value, time_s)
        size = sum(int(chain.segments.sum()) for chain in reduced)
        if not known.affordable("segments", size):
            return Stop.DONE
        minimise = limit > known.bound  # all plans between two equal limits are equal
        with known.building("segments", size):
            model = FlowModel(known.instance, reduced, limit, known.bound, minimise, self.engine)
        found = prove(model, known.budget, time_s=time_s, announce=False, turns=False)
        known.interrupted = found.stop is Stop.INTERRUPTED
        if found.status is Status.INFEASIBLE:
            self.step *= 3
            known.raise_bound(limit + 1 if limit == known.top else limit + 1 - margin, self.tell)
            return Stop.PROVED
        if isinstance(found.plan, Plan):
            self.opened = True
            known.accept(found.plan, margin + (found.claimed if minimise and found.claimed is not None else limit))
        elif known.value is None:
            self.step *= 3
        if minimise and found.bound is not None:
            known.raise_bound(found.bound - margin, self.tell)
            if known.value is not None and known.bound > known.value:
                raise EngineError(f"claims that no plan is below {known.bound} beside a plan of {known.value}")
        answered = found.plan is not None and found.stop not in (Stop.TIME, Stop.INTERRUPTED)
        return Stop.PROVED if answered else found.stop

    def _refute(self, value: int, time_s: float) -> Stop:
        """Ask for a plan below one in whole numbers."""
        known = self.known
        part = known.budget.part(time_s)
        with known.budget.timed("engine"):
            proof = refuted(known.instance.to_json(), value, part)
        if proof is not None:
            known.raise_own(value)
            return Stop.PROVED
        return Stop.TIME if part.exhausted else Stop.DONE


def run(
    instance: Instance,
    budget: Budget,
    start: str | Plan | None = None,
    params: Questions = DEFAULT,
    *,
    engine: Engine = "highs",
) -> SolveResult:
    """Best joint plan; the other engine begins anew where one contradicts itself between two limits.

    Raises
    ------
    InputError
        ``start`` is no plan file.
    """
    if reasons := diagnose(instance):
        return SolveResult(Status.INFEASIBLE, Stop.PROVED, reason="; ".join(reasons))
    first = read_start(start, Plan, instance)
    known = Known(instance, budget, first)

    def ask(name: str) -> SolveResult:
        nonlocal known
        known = Known(instance, budget, first)
        deque(Flow(known, "cbc" if name == "cbc" else "highs").questions(params), maxlen=0)
        return known.result()

    found = in_turn(ask, ("highs", "cbc") if engine == "highs" else ("cbc", "highs"))
    return known.without_engine(found) if found.notes.get(DISTRUSTED) and found.bound is None else found
