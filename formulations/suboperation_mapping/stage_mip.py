"""Certified optimum of sub-operation mapping: stage-configuration MIP per ratio, raised destructively.

1.  One fluid bound for all ratios. For every partition of the batch an annealed plan and the LP of
    :class:`~formulations.suboperation_mapping._stage_columns.StageModel`, first without configuration columns, then,
    for ratios that are still open, with them; the LP's most likely mapping is annealed too. A ratio whose bound
    reaches the makespan of the best plan is closed.
2.  The ratio of smallest bound is asked for a mapping whose relaxation ends by a *target* a little above its bound,
    with every column removed whose reduced cost forbids it. None: the bound rises to the target. One: it is rounded,
    annealed and, last, ordered by CP-SAT, which lowers the best plan.
3.  A ratio whose MIP is solved is *exhausted*: its bound is all that the relaxation can prove. If its graph is small
    it goes to the complete CP-SAT model, which looks for a plan below a cutoff: the best plan first; where time ran
    out, or in a process that has nothing else to do, half of the distance to it.
4.  The bound of the instance is the smallest over all ratios.

The relaxation ignores the DRAM except for static weights; plans satisfy it in full. The proofs of the rows are in
``docs/stage_mip.md``.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Any, Literal

from formulations.suboperation_mapping import _stage_search as search
from formulations.suboperation_mapping._list_anneal import starts
from formulations.suboperation_mapping._ratios import Ratio, partitions
from formulations.suboperation_mapping._stage_search import Found, Reply
from formulations.suboperation_mapping.fluid_bound import fluid_bound
from mapgap.core import Budget, Method, PlanError, SolveResult, Status, Stop
from problems.suboperation_mapping import Instance
from problems.suboperation_mapping.evaluate import diagnose, operations
from problems.suboperation_mapping.lowered import lower

REFERENCE = "Stage-configuration MIP with destructive bounds for MTrain's problem (Tang et al., Secs. III-VI)"
FIRST_STEP = 0.002  #: first target above a ratio's bound
COMPLETE_LIMIT = 100  #: operations up to which the complete model is worth asking
COMPLETE_S = 60.0  #: seconds of the first question to the complete model
FIRST_ITERATIONS, ITERATIONS = 50_000, 100_000  #: of annealing, per ratio and per rounded mapping
LONG_ITERATIONS, LONG_PER_S = 1_000_000, 4_000  #: of a polish: at most, and per second of the budget
COLUMN_LIMIT = 4  #: accelerators above which the model is built without columns


class _Here(Executor):
    """Runs a task at once in this process."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


def _executor(instance: Instance, budget: Budget, scale: float, columns: bool) -> Executor:
    daemon = multiprocessing.current_process().daemon
    if budget.workers > 1 and not daemon:
        context = multiprocessing.get_context("spawn")
        return ProcessPoolExecutor(budget.workers, context, search.prepare, (instance, scale, columns))
    search.prepare(instance, scale, columns)
    return _Here()


@dataclass
class _State:
    """Bounds per ratio, the best plan, and what each ratio's search has seen."""

    instance: Instance
    budget: Budget
    partial: bool
    bounds: dict[Ratio, int]
    best: tuple[Ratio, Found] | None = None
    steps: dict[Ratio, float] = field(default_factory=dict)
    seconds: dict[Ratio, float] = field(default_factory=dict)
    attained: dict[Ratio, float] = field(default_factory=dict)
    plans: dict[Ratio, Found] = field(default_factory=dict)
    exhausted: set[Ratio] = field(default_factory=set)
    infeasible: set[Ratio] = field(default_factory=set)
    cutoffs: dict[Ratio, int] = field(default_factory=dict)
    halves: dict[Ratio, int] = field(default_factory=dict)
    halved: set[Ratio] = field(default_factory=set)
    polished: int = 0
    reported: int = 0

    @property
    def makespan(self) -> int | None:
        return None if self.best is None else self.best[1].makespan

    @property
    def bound(self) -> int:
        """Smallest bound of any ratio, never above the best plan."""
        values = [bound for ratio, bound in self.bounds.items() if ratio not in self.infeasible]
        return min(values + ([] if self.makespan is None else [self.makespan]), default=0)

    def take(self, reply: Reply) -> bool:
        """Enter a reply; whether the best plan improved."""
        self.bounds[reply.ratio] = max(self.bounds[reply.ratio], reply.bound)
        if reply.infeasible:
            self.infeasible.add(reply.ratio)
        found = reply.found
        better = False
        if found is not None:
            held = self.plans.get(reply.ratio)
            if held is None or found.makespan < held.makespan:
                self.plans[reply.ratio] = found
            better = self.makespan is None or found.makespan < self.makespan
        if better and found is not None:
            self.best = (reply.ratio, found)
            self.budget.report(plan=lower(self.instance, reply.ratio).plan(found.location, found.sequence))
        return better

    def announce(self) -> None:
        """Report the bound of the instance if it has risen."""
        if not self.partial and self.bound > self.reported:
            self.reported = self.bound
            self.budget.report(bound=self.bound)

    def open(self) -> list[Ratio]:
        """Ratios whose bound leaves room for a better plan, smallest bound first."""
        limit = self.makespan
        still = [r for r, b in self.bounds.items() if r not in self.infeasible and (limit is None or b < limit)]
        return sorted(still, key=lambda r: self.bounds[r])

    def done(self, target_gap: float) -> bool:
        limit = self.makespan
        return limit is not None and limit - self.bound <= target_gap * self.bound


def _scale(instance: Instance) -> float:
    """Ticks of a thousandth of a simple plan, so that times in the model are near 1000."""
    lowered = lower(instance, (instance.batch,) + (0,) * (len(instance.accelerators) - 1))
    return max(1, min(lowered.makespan(s, lowered.topological) for s in starts(lowered))) / 1000.0


def _ask_all(state: _State, pool: Executor, question: Callable[..., Reply], iterations: int) -> None:
    """Put one question to every ratio that is still open when its turn comes, smallest bound first."""
    budget = state.budget
    waiting = state.open()
    running: set[Future[Reply]] = set()
    width = 1 if isinstance(pool, _Here) else budget.workers
    while (waiting or running) and not budget.exhausted:
        while waiting and len(running) < width:
            ratio = waiting.pop(0)
            if state.makespan is None or state.bounds[ratio] < state.makespan:
                running.add(pool.submit(question, ratio, iterations, budget.seed, budget.remaining_s))
        done, running = wait(running, timeout=max(0.05, budget.remaining_s), return_when=FIRST_COMPLETED)
        for future in done:
            state.take(future.result())
    for future in running:
        future.cancel()
    state.announce()


@dataclass(frozen=True)
class _Task:
    """A question to a process."""

    kind: Literal["destroy", "complete", "half", "polish"]
    ratio: Ratio
    before: int
    cutoff: int | None = None


def _next(state: _State, pool: Executor, busy: set[Ratio], turn: int) -> tuple[Future[Reply], _Task] | None:
    """Steps 2 and 3: the next question to a process; ``None`` if there is nothing to ask."""
    seed = state.budget.seed + 7 * turn
    still = state.open()
    useful = [r for r in still if r not in busy and (r not in state.exhausted or _small(state, r))]
    spare = [r for r in still if r in busy and r in state.exhausted and r not in state.halved]
    if not useful and spare and turn % 4 != 3:
        return _complete(state, pool, spare[0], seed, half=True)
    ranked = sorted((r for r in still if r in state.plans), key=lambda r: state.plans[r].makespan)
    if ranked and (turn % 4 == 3 or not useful):
        ratio = ranked[state.polished % min(3, len(ranked))]
        iterations = min(LONG_ITERATIONS, max(ITERATIONS, int(LONG_PER_S * state.budget.time_s)))
        turn_of_ratio = state.budget.seed + state.polished // min(3, len(ranked))  # another temperature each time
        question = pool.submit(search.polish, ratio, state.plans[ratio], iterations, turn_of_ratio)
        state.polished += 1
        return question, _Task("polish", ratio, state.bounds[ratio])
    if not useful:
        return None
    busy.add(useful[0])
    ask = _complete if useful[0] in state.exhausted else _destroy
    return ask(state, pool, useful[0], seed)


def _small(state: _State, ratio: Ratio) -> bool:
    return len(operations(state.instance, ratio)) <= COMPLETE_LIMIT


def _destroy(state: _State, pool: Executor, ratio: Ratio, seed: int) -> tuple[Future[Reply], _Task]:
    """Step 2: is there a mapping whose relaxation ends by a target?"""
    bound, step = state.bounds[ratio], state.steps.setdefault(ratio, FIRST_STEP)
    target = max(bound, int(bound * (1.0 + step)))
    if state.makespan is not None:
        target = min(target, state.makespan - 1)
    seconds = min(state.seconds.setdefault(ratio, 10.0), state.budget.remaining_s)
    question = pool.submit(search.destroy, ratio, target, seconds, seed, ITERATIONS)
    return question, _Task("destroy", ratio, bound)


def _complete(
    state: _State, pool: Executor, ratio: Ratio, seed: int, half: bool = False
) -> tuple[Future[Reply], _Task]:
    """Step 3: is there a plan below a cutoff?"""
    limit = state.makespan
    cutoff = None if limit is None else min(state.cutoffs.get(ratio, limit), limit)
    seconds = min(state.seconds[ratio], state.budget.remaining_s)
    if half and limit is not None:
        state.halved.add(ratio)
        cutoff = (state.bounds[ratio] + min(state.halves.get(ratio, limit), limit) + 1) // 2
    elif len(state.open()) < state.budget.workers:  # another process has time for the halves
        seconds, cutoff = state.budget.remaining_s, limit
    question = pool.submit(search.complete, ratio, cutoff, seconds, seed)
    return question, _Task("half" if half else "complete", ratio, state.bounds[ratio], cutoff)


def _learn(state: _State, task: _Task, reply: Reply) -> None:
    """Adapt target and time of the ratio that has answered."""
    ratio, bound = reply.ratio, state.bounds[reply.ratio]
    if task.kind == "half":
        state.halved.discard(ratio)
        proven = task.cutoff is not None and reply.bound >= task.cutoff
        if proven or task.cutoff is None:
            state.halves.pop(ratio, None)
        else:
            state.halves[ratio] = task.cutoff
    elif task.kind == "complete":
        if task.cutoff is None or reply.bound >= task.cutoff or reply.found is not None:
            state.cutoffs.pop(ratio, None)
            state.seconds[ratio] *= 4.0
        else:
            state.cutoffs[ratio] = (bound + task.cutoff + 1) // 2
            state.seconds[ratio] *= 1.3
    elif (reply.closed and reply.attained is not None) or _within_margin(state, ratio):
        state.exhausted.add(ratio)
        state.seconds[ratio] = COMPLETE_S
    elif reply.attained is not None:
        state.attained[ratio] = min(reply.attained, state.attained.get(ratio, reply.attained))
        state.seconds[ratio] *= 2.0
    elif bound >= task.before * (1.0 + 0.9 * state.steps[ratio]):
        state.steps[ratio] *= 1.5
    else:
        state.steps[ratio] = max(state.steps[ratio] / 2.0, 1e-4)
        state.seconds[ratio] *= 1.7


def _within_margin(state: _State, ratio: Ratio) -> bool:
    """Whether what is left of the gap is what floating-point bounds concede to their engine."""
    limit = state.makespan
    return limit is not None and limit - state.bounds[ratio] <= 1 + 3.0 * search.SAFETY * limit


def _raise(state: _State, pool: Executor, target_gap: float) -> None:
    """Steps 2 and 3: ask until the gap is closed, nothing is left to ask or the time is over."""
    busy: set[Ratio] = set()
    running: dict[Future[Reply], _Task] = {}
    turn = 0
    width = 1 if isinstance(pool, _Here) else state.budget.workers
    while not state.budget.exhausted and not state.done(target_gap):
        while len(running) < width:
            question = _next(state, pool, busy, turn)
            turn += 1
            if question is None:
                break
            running[question[0]] = question[1]
        if not running:
            return
        done, _ = wait(running, timeout=max(0.05, state.budget.remaining_s), return_when=FIRST_COMPLETED)
        for future in done:
            task = running.pop(future)
            reply = future.result()
            state.take(reply)
            if task.kind in ("destroy", "complete"):
                busy.discard(task.ratio)
            if task.kind != "polish":
                _learn(state, task, reply)
            state.announce()


def _order(state: _State, seconds: float) -> None:
    """The best order of the best mappings, by CP-SAT."""
    from formulations.suboperation_mapping.cpsat import order_fixed_mapping

    ranked = sorted(state.plans, key=lambda r: state.plans[r].makespan)[:2]
    for ratio in ranked:
        found = state.plans[ratio]
        if state.makespan is not None and found.makespan > 1.01 * state.makespan:
            continue
        lowered = lower(state.instance, ratio)
        sequence, makespan, _ = order_fixed_mapping(
            lowered, found.location, state.budget, min(seconds / len(ranked), state.budget.remaining_s), found.sequence
        )
        if sequence is not None and makespan is not None and makespan < found.makespan:
            state.take(Reply(ratio, 0, Found(lowered.makespan(found.location, sequence), found.location, sequence)))


def _ratios(instance: Instance, ratio: str) -> list[Ratio]:
    if not ratio:
        return list(partitions(instance.batch, len(instance.accelerators)))
    shares = tuple(sorted((int(part) for part in ratio.split(",")), reverse=True))
    shares += (0,) * (len(instance.accelerators) - len(shares))
    if len(shares) != len(instance.accelerators) or sum(shares) != instance.batch or min(shares) < 0:
        raise ValueError(f"ratio {ratio!r}: expected shares that add up to {instance.batch}")
    return [shares]


def run(instance: Instance, budget: Budget, ratio: str = "", target_gap: float = 0.0) -> SolveResult:
    """Bounds and plans of all ratios, or of one given as ``"48,16"`` (then nothing is proven of the instance).

    Parameters
    ----------
    target_gap : float
        Stop when the best plan is within this share of the bound.
    """
    reasons = diagnose(instance)
    if reasons:
        return SolveResult(Status.INFEASIBLE, Stop.PROVED, reason="; ".join(reasons))
    state = _State(instance, budget, bool(ratio), dict.fromkeys(_ratios(instance, ratio), fluid_bound(instance)))
    state.announce()
    columns = len(instance.accelerators) <= COLUMN_LIMIT
    pool = _executor(instance, budget, _scale(instance), columns)
    reserve = 0.07 * budget.time_s
    budget_end = budget.time_s
    try:
        budget.time_s = budget_end - reserve
        _ask_all(state, pool, search.survey, FIRST_ITERATIONS)
        if columns:
            _ask_all(state, pool, search.explore, FIRST_ITERATIONS)
        _raise(state, pool, target_gap)
    finally:
        budget.time_s = budget_end
        _stop(pool)
    if not state.done(target_gap) and state.plans:
        _order(state, reserve * 0.8)
        state.announce()
    return _result(state)


def _stop(pool: Executor) -> None:
    """End the processes at once: what they still compute is not needed."""
    pool.shutdown(wait=False, cancel_futures=True)
    if not isinstance(pool, _Here):
        for child in multiprocessing.active_children():
            child.terminate()


def _result(state: _State) -> SolveResult:
    notes = {
        "ratios": len(state.bounds),
        "ratios_open": len(state.open()),
        "ratios_exhausted": len(state.exhausted & set(state.open())),
    }
    bound = None if state.partial else state.bound
    stop = Stop.TIME if state.budget.exhausted else Stop.DONE
    if state.best is None and len(state.infeasible) == len(state.bounds) and not state.partial:
        sizes = ", ".join(f"{a.name} {a.memory}" for a in state.instance.accelerators)
        reason = f"DRAM: no mapping and order of any of the {len(state.bounds)} ratios fits ({sizes} units)"
        return SolveResult(Status.INFEASIBLE, Stop.PROVED, reason=reason, notes=notes)
    if state.best is None:
        return SolveResult(Status.UNKNOWN, stop, bound=bound, notes=notes)
    ratio, found = state.best
    if min(state.bounds[ratio], state.bound) > found.makespan:
        raise PlanError(f"bound {state.bounds[ratio]} of ratio {ratio} above the makespan {found.makespan} of a plan")
    proven = bound == found.makespan
    return SolveResult(
        status=Status.OPTIMAL if proven else Status.FEASIBLE,
        stop=Stop.PROVED if proven else stop,
        plan=lower(state.instance, ratio).plan(found.location, found.sequence),
        bound=bound,
        claimed=found.makespan,
        notes={**notes, "ratio": list(ratio)},
    )


def area_bound(instance: Instance, budget: Budget) -> SolveResult:
    """Smallest LP bound over all ratios, without columns: transfers through pairs, areas, windows."""
    state = _State(instance, budget, False, dict.fromkeys(_ratios(instance, ""), fluid_bound(instance)))
    pool = _executor(instance, budget, _scale(instance), False)
    try:
        _ask_all(state, pool, search.survey, 0)
    finally:
        _stop(pool)
    stop = Stop.TIME if budget.exhausted else Stop.DONE
    return SolveResult(Status.UNKNOWN, stop, bound=state.bound, notes={"ratios": len(state.bounds)})


METHODS = [
    Method(
        name="stage_mip",
        problem="suboperation_mapping",
        kind="exact",
        reference=REFERENCE,
        run=run,
        summary="Stage-configuration MIP per ratio, destructive lower bounds, annealed and re-ordered plans.",
        options={"ratio": "", "target_gap": 0.0},
        rank=10,
        engines=("HiGHS", "CP-SAT"),
    ),
    Method(
        name="area_bound",
        problem="suboperation_mapping",
        kind="bound",
        reference=REFERENCE,
        run=area_bound,
        summary="Smallest LP bound over all ratios, without configuration columns.",
    ),
]
