"""Large-neighbourhood search for joint plans: goals for the cycle time, each tried by ruin and recreate.

A cycle time is a maximum, and most moves leave it as it is; so the search walks below a *goal* on the sum of what the
loads exceed it by (:mod:`.neighbourhood_kernels`). A goal that is reached is replaced by a lower one, one that is not
by a higher one, both between the best plan and a proven bound. Total latency is a sum and needs no goal.

Operation sharing (rule 9) is not looked for while searching: a plan is never worse for it, and the evaluator has the
last word. Besides, every pipeline is placed as if it were alone, which lets equal pipelines coincide.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np

from mapgap.heuristics.multi_model_splitting import params
from mapgap.heuristics.multi_model_splitting.search.neighbourhood_kernels import (
    MEDIUM,
    NOTHING,
    Aim,
    Pipelines,
    Scratch,
    State,
    allow,
    copy,
    objective,
    occupy,
)
from mapgap.heuristics.multi_model_splitting.search.neighbourhood_steps import complete, improve, insert
from mapgap.problems.multi_model_splitting import Instance, PipelinePlan, Plan, Segment
from mapgap.problems.multi_model_splitting.evaluate import evaluate
from mapgap.problems.multi_model_splitting.lowered.tables import Tables, capacities, tabulate

ANY = 2**40
"""More than any transfer takes."""
DEFAULT = params.Neighbourhood()


def joined(instance: Instance, tables: list[Tables]) -> Pipelines:
    """The tables of all pipelines, one after the other."""
    n = len(instance.devices)
    sources, targets = np.zeros((2, len(tables), n), np.bool_)
    for p in range(len(tables)):
        sources[p, instance.sources(p)] = targets[p, instance.targets(p)] = True

    def stacked(name: str) -> np.ndarray:
        return np.ascontiguousarray(np.concatenate([getattr(table, name) for table in tables]))

    return Pipelines(
        first=np.cumsum([0, *(table.layers + 1 for table in tables)]),
        running=stacked("running"),
        need=np.ascontiguousarray(np.concatenate([table.need.T for table in tables])),
        load=stacked("load"),
        unload=stacked("unload"),
        transmit=stacked("transmit"),
        receive=stacked("receive"),
        sensing=np.ascontiguousarray([table.sensing for table in tables]),
        sources=sources,
        targets=targets,
        capacity=np.ascontiguousarray(capacities(instance)),
    )


class Neighbourhood:
    """A search that can be asked to go on; the best plan so far is kept.

    Parameters
    ----------
    instance : Instance
    seed : int
    tuned : params.Neighbourhood

    Attributes
    ----------
    plan : Plan or None
    value : int or None
        The evaluator's objective of ``plan``.
    """

    def __init__(self, instance: Instance, seed: int = 0, tuned: params.Neighbourhood = DEFAULT) -> None:
        self.instance, self.tuned = instance, tuned
        self.pipelines = joined(instance, [tabulate(instance, p) for p in range(len(instance.pipelines))])
        self.total = instance.objective == "latency"
        count, n = len(instance.pipelines), len(instance.devices)
        layers = max(len(pipeline.layers) for pipeline in instance.pipelines)
        self.state, self.spare, self.best = (self._empty(min(n, layers)) for _ in range(3))
        self.scratch = Scratch(
            cuts=np.zeros((count, layers + 1), np.int64),
            known=np.zeros(count, np.int64),
            value=np.zeros((layers + 1, n)),
            before=np.zeros((layers + 1, n), np.int64),
            by=np.zeros((layers + 1, n), np.int64),
            origin=np.zeros((layers + 1, n), np.int64),
            order=np.zeros(count, np.int64),
            weight=np.ones(count),
            counters=np.array([seed * 2 + 1, 0, 0], np.int64),
        )
        self.reached: int | None = None
        self.plan: Plan | None = None
        self.value: int | None = None
        self.share, self.failed, self.quiet = 0.5, 0, 0
        self.scale = self._alone()

    @property
    def work(self) -> int:
        """Segments looked at so far, and steps as so many: what the search has cost, on any machine."""
        return int(self.scratch.counters[1])

    @property
    def steps(self) -> int:
        """Times that pipelines were taken out and put back."""
        return int(self.scratch.counters[2])

    @property
    def settled(self) -> bool:
        """Many walks have found nothing better."""
        return self.quiet >= self.tuned.quiet

    def offer(self, plan: Plan) -> bool:
        """Keep a plan if it is better than what is known, and search from there."""
        checked = evaluate(self.instance, plan)
        if not checked.feasible or checked.objective is None:
            return False
        better = self.value is None or checked.objective < self.value
        if better:
            self.plan, self.value = plan, checked.objective
        state = self._of(plan)
        worth = int(objective(self._aim(1), state))
        if (state.free >= 0).all() and (self.reached is None or worth < self.reached):
            self.reached = worth
            copy(state, self.best)
            copy(state, self.state)
        return better

    def walk(self, bound: int = 0, work: int = ANY) -> bool:
        """One walk below one goal; whether it found a better plan. ``bound`` is proven, or 0."""
        if self.value is not None and self.value <= bound:
            self.quiet = self.tuned.quiet
            return False
        goal = self._goal(bound)
        aim = self._aim(goal)
        allow(self.pipelines, aim, self.scratch)
        if self.reached is None:
            complete(self.pipelines, aim, self.state, self.scratch)
        if self.reached is not None:
            self.scratch.weight[:] = 1
        before = NOTHING if self.reached is None else self.reached
        states = (self.state, self.spare, self.best)
        found = int(improve(self.pipelines, aim, *states, self.scratch, before, self.tuned.steps, work))
        self._learn(found <= goal, bound)
        self.quiet += 1
        if found >= before:
            return False
        self.reached, self.quiet = found, 0
        copy(self.best, self.state)
        return self.offer(self._plan(self.best))

    def _goal(self, bound: int) -> int:
        if self.reached is None:
            return self.scale << 2 * (1 + self.failed % 5)  # 4 to 1024 times the load of a pipeline alone, in turn
        if self.total:
            return self.scale
        return max(1, self.reached - max(1, int(self.share * (self.reached - bound))))

    def _learn(self, success: bool, bound: int) -> None:
        """The next goal: further below the best plan after a success, nearer to it after a failure."""
        if success:
            self.share, self.failed = min(0.8, self.share * 1.5), 0
            return
        self.failed += 1
        if self.reached is None:
            return
        self.share /= 2
        near = self.share * (self.reached - bound) < max(1, self.reached // 2000)
        if near or self.failed % 8 == 0:
            self.share = 0.5
        if self.failed % 3 == 0:
            copy(self.best, self.state)

    def _aim(self, goal: int) -> Aim:
        tuned = self.tuned
        missing = 1000.0 if self.total else tuned.missing
        longest = ANY if self.total else goal
        return Aim(float(goal), tuned.spread, missing, tuned.heavier, tuned.hot, longest, self.total)

    def _alone(self) -> int:
        """Place every pipeline as if it were alone; the plan of all these if it keeps the limits, and a scale."""
        aim = self._aim(1)._replace(spread=0.0, missing=0.0, longest=ANY, total=True)
        allow(self.pipelines, aim, self.scratch)
        largest, totals = 1, 1
        for p in range(len(self.instance.pipelines)):
            if insert(self.pipelines, aim, self.state, p, self.scratch, 0.0):
                busy = self.state.busy[:MEDIUM]
                largest, totals = max(largest, int(busy.max())), totals + int(busy.sum())
                occupy(self.pipelines, self.state, p, -1)
        if (self.state.parts > 0).all():
            self.offer(self._plan(self.state))
        copy(self._empty(self.state.device.shape[1]), self.state)
        if self.reached is not None:
            copy(self.best, self.state)
        return max(1, totals // len(self.instance.pipelines)) if self.total else largest

    def _empty(self, most: int) -> State:
        count, n = len(self.instance.pipelines), len(self.instance.devices)
        return State(
            busy=np.zeros((MEDIUM + self.instance.in_turn, n), np.int64),
            free=self.pipelines.capacity.copy(),
            parts=np.zeros(count, np.int64),
            source=np.zeros(count, np.int64),
            target=np.zeros(count, np.int64),
            device=np.zeros((count, most), np.int64),
            begin=np.zeros((count, most), np.int64),
        )

    def _of(self, plan: Plan) -> State:
        """The state of a plan."""
        state = self._empty(self.state.device.shape[1])
        for p, decisions in enumerate(plan.pipelines):
            state.source[p], state.target[p] = decisions.source, decisions.target
            state.parts[p] = len(decisions.segments)
            for k, segment in enumerate(decisions.segments):
                state.device[p, k], state.begin[p, k] = segment.device, segment.first
            occupy(self.pipelines, state, p, 1)
        return state

    def _plan(self, state: State) -> Plan:
        found = []
        for p, pipeline in enumerate(self.instance.pipelines):
            begins = [*(int(i) for i in state.begin[p, : state.parts[p]]), len(pipeline.layers)]
            segments = tuple(
                Segment(device=int(state.device[p, k]), first=i, last=j) for k, (i, j) in enumerate(pairwise(begins))
            )
            found.append(PipelinePlan(source=int(state.source[p]), target=int(state.target[p]), segments=segments))
        return Plan(pipelines=tuple(found))


def started(
    instance: Instance,
    seed: int = 0,
    over: Callable[[], bool] = lambda: False,
    tuned: params.Neighbourhood = DEFAULT,
    make: Callable[[Instance, int, params.Neighbourhood], Neighbourhood] = Neighbourhood,
) -> Neighbourhood:
    """A search that has made its first plans: the same work on any machine, unless it is ``over`` before.

    One walk is made in any case.
    """
    found, work = make(instance, seed, tuned), tuned.work
    found.walk(work=work)
    while not over() and not found.settled and (found.plan is None or found.work < work):
        found.walk(work=work)
    return found
