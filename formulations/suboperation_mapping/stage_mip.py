"""Certified optimum of sub-operation mapping: stage-configuration MIP per ratio, raised destructively.

0.  *Plans* are annealed from the beginning and between all other steps, as ``anneal`` does it (:mod:`stage_plans`),
    also from the plan in the file ``start``, if one is given; every mapping that a step suggests is a start.
1.  One flow bounds all ratios, the longest path of a share (:mod:`path_bound`) each of them; the ratios of the best
    plans are bounded by the LP of :class:`~mapgap.formulations.suboperation_mapping.stage_model.StageModel`, whose most
    likely mapping is improved. Then boxes of ratios are bounded best-first by located programs (:mod:`box_search`),
    single ratios by that LP; mappings of those of small bound are improved at once. A ratio whose bound reaches the
    makespan of the best plan is closed.
2.  The ratio of smallest bound is asked for a mapping whose relaxation ends by a *target* a little above its bound,
    with every column removed whose reduced cost forbids it. None: the bound rises to the target. One: it is rounded
    and improved, which may lower the best plan; later targets lie below what it attains.
3.  A ratio whose MIP is solved is *exhausted*: its bound is all that the relaxation can prove. If its graph is not
    large, CP-SAT gets the complete model, alone or with the rows of the relaxation (:mod:`staged_ratio`), and looks for
    a plan below a cutoff half of the distance to the best plan away, then half of what is left, at last below the best
    plan. Between the questions, and last, it searches neighbourhoods of the best plan (:mod:`windows`), and orders the
    best mappings.
4.  The bound of the instance is the smallest over all ratios.

The relaxation ignores the DRAM except for static weights; plans satisfy it in full. The proofs of the rows are in
``docs/methods/suboperation_mapping.md``.
"""

from __future__ import annotations

import multiprocessing
from collections import Counter
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, replace
from typing import Any, Literal

from mapgap.core import DISTRUSTED, Budget, InputError, PlanError, SolveResult, Status, Stop
from mapgap.formulations.suboperation_mapping import stage_search as search
from mapgap.formulations.suboperation_mapping.cpsat import order_fixed_mapping
from mapgap.formulations.suboperation_mapping.duals_file import write_duals
from mapgap.formulations.suboperation_mapping.fluid_bound import fluid_bound
from mapgap.formulations.suboperation_mapping.list_anneal import starts
from mapgap.formulations.suboperation_mapping.located_frame import Frame
from mapgap.formulations.suboperation_mapping.path_bound import path_bound, share_paths
from mapgap.formulations.suboperation_mapping.phase_graph import PhaseGraph
from mapgap.formulations.suboperation_mapping.ratio_sweep import no_ratio_fits
from mapgap.formulations.suboperation_mapping.stage_plans import Neighbourhoods, Plans, best_plans, lp_seconds, parts_of
from mapgap.formulations.suboperation_mapping.stage_search import ModelKind, Reply
from mapgap.formulations.suboperation_mapping.stage_start import Boxes
from mapgap.formulations.suboperation_mapping.stage_state import SMALLEST_STEP, State
from mapgap.heuristics.suboperation_mapping.search.starts import read_start
from mapgap.problems.suboperation_mapping import Instance
from mapgap.problems.suboperation_mapping.evaluate import diagnose
from mapgap.problems.suboperation_mapping.instance import operations
from mapgap.problems.suboperation_mapping.lowered.arrays import lower
from mapgap.problems.suboperation_mapping.lowered.mapped import Mapped
from mapgap.problems.suboperation_mapping.lowered.ratios import Ratio, parse_ratio, partitions, pe_ratio

COMPLETE_LIMIT = 250  #: operations up to which the complete model is worth asking
ORDERED = 80  #: operations up to which it is asked alone first
LONGER = 1.5  #: time of a question after one that was not answered
COMPLETE_S = 10.0  #: seconds of the first question to the complete model
NEAR = 0.002  #: share of the best makespan; a smaller distance to it is not divided
LARGEST_STEP = 1.0  #: of a target above its bound, as a share of it
COLUMN_LIMIT = 4  #: accelerators above which the model is built without columns
RATIO_LIMIT = 3  #: accelerators above which single ratios are bounded by located programs
BOXES = 0.5  #: share of the time after which boxes wait until some ratios have been explored
FIRST, FIRST_S = 0.1, 0.3  #: share of the time that is annealed before any LP, at most so many seconds
LPS = 0.4  #: share of the time that the first LPs may take
MOST_EXPLORED = 5  #: ratios that are explored before boxes, and again before questions are put to the MIP
ORDER = 0.4  #: share of the last step for orders, before neighbourhoods
LARGEST_FIRST_STEP = 0.05  #: of a first target above its bound, a tenth of the gap


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
    """Processes for questions; this one anneals and divides boxes."""
    search.prepare(instance, scale, columns)
    daemon = multiprocessing.current_process().daemon
    if budget.workers > 1 and not daemon:
        context = multiprocessing.get_context("spawn")
        return ProcessPoolExecutor(budget.workers - 1, context, search.prepare, (instance, scale, columns))
    return _Here()


def _scale(instance: Instance) -> float:
    """About a thousandth of a simple plan, so that times in the model are near 1000.

    A power of two: then ticks in this unit are exact in floating point.
    """
    lowered = lower(instance, (instance.batch,) + (0,) * (len(instance.accelerators) - 1))
    simple = min(lowered.makespan(s, lowered.topological) for s in starts(lowered))
    return float(1 << max(0, (simple // 1000).bit_length() - 1))


def _width(pool: Executor, budget: Budget) -> int:
    """Questions that are answered at a time."""
    return 1 if isinstance(pool, _Here) else budget.workers - 1


def _answered(state: State, plans: Plans | None, running: set[Future[Reply]]) -> set[Future[Reply]]:
    """The questions that are answered; until there is one, plans are annealed."""
    budget = state.budget
    while plans is not None and not any(f.done() for f in running) and not budget.exhausted and not plans.over:
        plans.learn()
        plans.round()
    return wait(running, timeout=max(0.05, budget.remaining_s), return_when=FIRST_COMPLETED).done


def _ask_all(
    state: State,
    pool: Executor,
    question: Callable[..., Reply],
    ratios: list[Ratio] | None = None,
    plans: Plans | None = None,
) -> None:
    """Put one question to every ratio, or to some, that is still open when its turn comes, smallest bound first."""
    budget = state.budget
    waiting = state.open() if ratios is None else list(ratios)
    running: set[Future[Reply]] = set()
    while (waiting or running) and not budget.exhausted:
        if plans is not None:
            plans.run()
        while waiting and len(running) < _width(pool, budget) and not budget.exhausted:
            ratio = waiting.pop(0)
            if state.makespan is None or state.ratios[ratio].bound < state.makespan:
                running.add(pool.submit(question, ratio, budget.seed, budget.remaining_s))
        done = _answered(state, plans, running) if running else set()  # none where all that waited were closed
        running -= done
        for future in done:
            state.take(future.result())
    for future in running:
        future.cancel()
    state.announce()


@dataclass(frozen=True)
class _Task:
    """A question to a process: is there a plan below the cutoff, or (``destroy``) a mapping that ends by it?"""

    kind: Literal["destroy", "complete", "half"]
    ratio: Ratio
    cutoff: int | None = None
    model: ModelKind = "unrelaxed"


def _next(state: State, pool: Executor, busy: set[Ratio], turn: int) -> tuple[Future[Reply], _Task] | None:
    """Steps 2 and 3: the next question to a process; ``None`` if there is nothing to ask."""
    seed, ratios = state.budget.seed + 7 * turn, state.ratios
    still = state.open()
    useful = [r for r in still if r not in busy and (not ratios[r].exhausted or _small(state, r))]
    spare = [r for r in still if r in busy and ratios[r].exhausted and not ratios[r].halving]
    if not useful and spare:
        return _complete(state, pool, spare[0], seed, half=True)
    if not useful:
        return None
    busy.add(useful[0])
    ask = _complete if ratios[useful[0]].exhausted else _destroy
    return ask(state, pool, useful[0], seed)


def _kinds(instance: Instance) -> list[ModelKind]:
    """In which the complete model is asked, the most promising first.

    Where nothing is fused no stage separates shares, and of few operations orders matter more than what mappings cost.
    The engine's relaxation helps on some instances far more than it costs on others.
    """
    if not any(layer.kind == "fused" for layer in instance.layers):
        return ["relaxed", "unrelaxed"]
    few = len(operations(instance, pe_ratio(instance))) <= ORDERED
    return ["relaxed", "unrelaxed", "staged"] if few else ["staged", "relaxed", "unrelaxed"]


def _small(state: State, ratio: Ratio) -> bool:
    return len(operations(state.instance, ratio)) <= COMPLETE_LIMIT


def _destroy(state: State, pool: Executor, ratio: Ratio, seed: int) -> tuple[Future[Reply], _Task]:
    """Step 2: is there a mapping whose relaxation ends by a target?"""
    known = state.ratios[ratio]
    target = known.target if state.makespan is None else min(known.target, state.makespan - 1)
    seconds = min(known.seconds, state.budget.remaining_s)
    question = pool.submit(search.destroy, ratio, target, seconds, seed)
    return question, _Task("destroy", ratio, target)


def _complete(state: State, pool: Executor, ratio: Ratio, seed: int, half: bool = False) -> tuple[Future[Reply], _Task]:
    """Step 3: is there a plan below a cutoff, or (``half``) in the lower half of the distance to the best plan?"""
    known, limit = state.ratios[ratio], state.makespan
    cutoff = None if limit is None else min(known.cutoff or limit, limit)
    seconds = min(known.seconds, state.budget.remaining_s)
    if half and limit is not None:
        known.halving = True
        cutoff = (known.bound + min(known.half or limit, limit) + 1) // 2
    elif len(state.open()) < _width(pool, state.budget):  # another process has time for the halves
        seconds, cutoff = state.budget.remaining_s, limit
    model = state.kind(ratio)
    question = pool.submit(search.complete, ratio, cutoff, seconds, seed, model)
    return question, _Task("half" if half else "complete", ratio, cutoff, model)


def _halfway(bound: int, limit: int | None) -> int | None:
    """A cutoff whose proof is far easier than that of the limit itself; none where they are near each other."""
    return None if limit is None or limit - bound <= NEAR * limit else (bound + limit + 1) // 2


def _learn(state: State, task: _Task, reply: Reply) -> None:
    """Adapt target and time of the ratio that has answered."""
    known = state.ratios[reply.ratio]
    if task.kind == "half":
        known.halving = False
        proven = task.cutoff is None or reply.bound >= task.cutoff
        known.half = None if proven else task.cutoff
    elif task.kind == "complete":
        answered = task.cutoff is None or reply.bound >= task.cutoff or reply.result.plan is not None
        if answered:  # its kind is asked first from now on
            state.kinds.insert(0, state.kinds.pop(state.kinds.index(task.model)))
            known.turn, known.cutoff = 0, _halfway(known.bound, state.makespan)
        else:
            known.seconds *= LONGER
            known.turn += 1
            if known.turn % len(state.kinds) == 0:  # no kind has answered
                known.cutoff = _halfway(known.bound, task.cutoff)
    elif (reply.closed and reply.attained is not None) or known.settled or state.within_margin(reply.ratio):
        known.exhausted = True
        known.seconds = COMPLETE_S
        known.cutoff = _halfway(known.bound, state.makespan)
    elif task.cutoff is not None and known.bound > task.cutoff:
        known.step = min(known.step * 1.5, LARGEST_STEP)
    elif task.cutoff is not None and reply.attained is None:  # what is attained brings the next target nearer
        asked = task.cutoff / max(1, known.bound) - 1.0
        known.step = max(min(known.step, asked) / 2.0, SMALLEST_STEP)
        known.seconds *= 1.7


def _raise(
    state: State,
    pool: Executor,
    target_gap: float,
    boxes: Boxes | None,
    plans: Plans,
    neighbourhoods: Neighbourhoods,
) -> None:
    """Steps 1 to 3: ask until the gap is closed, nothing is left to ask or the time is over."""
    busy: set[Ratio] = set()
    running: dict[Future[Reply], _Task] = {}
    turn = 0
    while not state.budget.exhausted and not state.done(target_gap):
        if boxes is not None:
            boxes.run(state.budget.remaining_s)
        plans.run()
        if neighbourhoods.due:
            neighbourhoods.run(state.budget.remaining_s, most=1)
        while len(running) < _width(pool, state.budget) and not state.budget.exhausted:
            question = _next(state, pool, busy, turn)
            turn += 1
            if question is None:
                break
            running[question[0]] = question[1]
        if not running:  # nothing to ask: more annealing, while it promises something
            if plans.over or not plans.round():
                return
            continue
        for future in _answered(state, None if isinstance(pool, _Here) else plans, set(running)):
            task = running.pop(future)
            reply = future.result()
            state.take(reply)
            if task.kind in ("destroy", "complete"):
                busy.discard(task.ratio)
            _learn(state, task, reply)
            state.announce()


def _affordable(state: State, frame: Frame, ratios: list[Ratio], columns: bool) -> list[Ratio]:
    """The first of the ratios whose LPs there is time for."""
    found, left = [], LPS * state.budget.remaining_s
    for ratio in ratios:
        left -= lp_seconds(frame.phases, ratio, columns)
        if left > 0.0:
            found.append(ratio)
    return found[:MOST_EXPLORED]


def _start(state: State, plans: Plans, pool: Executor, frame: Frame, columns: bool) -> Boxes:
    """Step 1: bounds of the ratios of the best plans, of all ratios in boxes, and of those of smallest bound."""
    promising = _affordable(state, frame, plans.promising(), columns)
    _ask_all(state, pool, search.explore, promising, plans)
    boxes = Boxes(state, plans, frame, columns=frame.orbits.count <= RATIO_LIMIT)
    boxes.run(BOXES * state.budget.time_s)
    smallest = [ratio for ratio in state.open() if ratio not in promising and ratio not in boxes.rounded]
    _ask_all(state, pool, search.explore, _affordable(state, frame, smallest[:MOST_EXPLORED], columns), plans)
    for known in state.ratios.values():
        gap = 0.0 if state.makespan is None else state.makespan / max(1, known.bound) - 1.0
        known.step = max(known.step, min(LARGEST_FIRST_STEP, gap / 10.0))
    return boxes


def _order(state: State, plans: Plans, neighbourhoods: Neighbourhoods, seconds: float) -> None:
    """The best order of the best mappings, then the best plan's neighbourhoods, by CP-SAT."""
    ranked = best_plans(plans, state)[:2]
    end = state.budget.elapsed_s + seconds
    seconds *= ORDER
    for plan in ranked:
        lowered = lower(state.instance, plan.ratio)
        location, sequence = lowered.mapping(plan)
        if state.makespan is not None and lowered.makespan(location, sequence) > 1.01 * state.makespan:
            continue
        result = order_fixed_mapping(lowered, location, state.budget, seconds / len(ranked), plan)
        if result.plan is not None:
            state.take(Reply(parts_of(plan.ratio), replace(result, bound=None)))  # the bound is of this mapping only
    neighbourhoods.run(end - state.budget.elapsed_s)


def _first_bounds(state: State, phases: PhaseGraph) -> None:
    """What costs next to nothing: one flow for all ratios, and the longest path of a share for each."""
    paths = share_paths(phases)
    for ratio, known in state.ratios.items():
        known.bound = max(known.bound, path_bound(paths, ratio))
    state.announce()
    state.raise_all(fluid_bound(phases, state.budget.remaining_s))
    state.announce()


def _ratios(instance: Instance, ratio: str) -> list[Ratio]:
    if not ratio:
        return list(partitions(instance.batch, len(instance.accelerators)))
    missing = len(instance.accelerators) - 1 - ratio.count(",")
    return [tuple(sorted(parse_ratio(instance, ratio + ",0" * missing), reverse=True))]


def _known(instance: Instance, start: str, state: State) -> list[Mapped]:
    """The plan of the file ``start``."""
    mapped = read_start(instance, start)
    if parts_of(mapped.lowered.ratio) not in state.ratios:
        wanted = ", ".join(str(list(ratio)) for ratio in state.ratios)
        raise InputError(f"start: expected a plan of the ratio {wanted}, found {list(mapped.lowered.ratio)}")
    return [mapped]


def run(instance: Instance, budget: Budget, ratio: str = "", target_gap: float = 0.0, start: str = "") -> SolveResult:
    """Bounds and plans of all ratios, or of one given as ``"48,16"`` (then nothing is proven of the instance).

    Parameters
    ----------
    target_gap : float
        Stop when the best plan is within this share of the bound.
    start : str
        File of a plan to start from, or a folder in which it has the name of the instance: what the plan leaves no room
        for need not be bounded further.

    Raises
    ------
    InputError
        ``ratio`` or ``start`` is none of this instance.
    """
    reasons = diagnose(instance)
    if reasons:
        return SolveResult(Status.INFEASIBLE, Stop.PROVED, reason="; ".join(reasons))
    state = State.begin(instance, budget, _ratios(instance, ratio), bool(ratio))
    state.kinds = _kinds(instance)
    known = _known(instance, start, state) if start else ()
    plans = Plans(state, next(iter(state.ratios)) if ratio else None, known)
    neighbourhoods = Neighbourhoods(state)
    frame = Frame(instance)
    _first_bounds(state, frame.phases)
    columns = len(instance.accelerators) <= COLUMN_LIMIT
    pool = _executor(instance, budget, _scale(instance), columns)
    reserve = 0.07 * budget.time_s
    budget_end = budget.time_s
    try:
        budget.time_s = budget_end - reserve
        plans.run(min(FIRST * budget.time_s, FIRST_S))
        boxes = None
        if ratio:
            _ask_all(state, pool, search.explore, plans=plans)
        else:
            boxes = _start(state, plans, pool, frame, columns)
        _raise(state, pool, target_gap, boxes, plans, neighbourhoods)
    finally:
        budget.time_s = budget_end
        _stop(pool)
    if not state.done(target_gap) and state.best is not None:
        _order(state, plans, neighbourhoods, reserve * 0.8)
        state.announce()
    return _result(state)


def _stop(pool: Executor) -> None:
    """End the processes at once: what they still compute is not needed."""
    pool.shutdown(wait=False, cancel_futures=True)
    if not isinstance(pool, _Here):
        for child in multiprocessing.active_children():
            child.terminate()


def _result(state: State) -> SolveResult:
    still = state.open()
    notes = {
        "ratios": len(state.ratios),
        "ratios_open": len(still),
        "ratios_exhausted": sum(state.ratios[r].exhausted for r in still),
        **({DISTRUSTED: state.distrusted} if state.distrusted else {}),
    }
    bound = None if state.partial else state.bound
    stop = Stop.TIME if state.budget.exhausted else Stop.DONE
    if state.best is None and not state.partial and all(known.infeasible for known in state.ratios.values()):
        reason = no_ratio_fits(state.instance, len(state.ratios))
        return SolveResult(Status.INFEASIBLE, Stop.PROVED, reason=reason, notes=notes)
    if state.best is None:
        return SolveResult(Status.UNKNOWN, stop, bound=bound, notes=notes)
    best = state.ratios[state.best]
    if best.makespan is not None and min(best.bound, state.bound) > best.makespan:
        raise PlanError(f"bound {best.bound} of ratio {state.best} above the makespan {best.makespan} of a plan")
    proven = bound == best.makespan
    return SolveResult(
        status=Status.OPTIMAL if proven else Status.FEASIBLE,
        stop=Stop.PROVED if proven else stop,
        plan=best.plan,
        bound=bound,
        claimed=best.makespan,
        notes={**notes, "ratio": list(state.best)},
    )


def area_bound(instance: Instance, budget: Budget, duals: str = "") -> SolveResult:
    """Smallest LP bound over all ratios, without columns: transfers through pairs, areas, windows.

    Parameters
    ----------
    duals : str
        File for the duals on the rows of ``StageModel``, one box for each ratio (:mod:`duals_file`).
    """
    state = State.begin(instance, budget, _ratios(instance, ""), partial=False)
    _first_bounds(state, PhaseGraph(instance))
    pool = _executor(instance, budget, _scale(instance), False)
    try:
        _ask_all(state, pool, search.survey)
    finally:
        _stop(pool)
    if duals:
        boxes = [
            ([(samples, samples, count) for samples, count in Counter(r for r in ratio if r).items()], k.floor, k.proof)
            for ratio, k in state.ratios.items()
        ]
        write_duals(duals, instance, state.bound, boxes)
    stop = Stop.TIME if budget.exhausted else Stop.DONE
    if all(known.infeasible for known in state.ratios.values()):
        reason = no_ratio_fits(instance, len(state.ratios))
        return SolveResult(Status.INFEASIBLE, Stop.PROVED, reason=reason, notes={"ratios": len(state.ratios)})
    return SolveResult(Status.UNKNOWN, stop, bound=state.bound, notes={"ratios": len(state.ratios)})
