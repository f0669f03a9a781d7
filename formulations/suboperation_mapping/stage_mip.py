"""Certified optimum of sub-operation mapping: stage-configuration MIP per ratio, raised destructively.

Each kind of work that raises the bound is a *rung*; the cheap ones come first, and each is announced when it is there.

1.  ``path``, ``flow``: the longest path of a share bounds each ratio (:mod:`path_bound`), one flow all of them.
2.  ``boxes``, ``places``: boxes of ratios are bounded best-first by located programs, and divided by the places of
    fused operations and by ratios (:mod:`box_search`). A ratio whose bound reaches the makespan of the best plan is
    closed.
3.  ``chain``: ratios are bounded along a chain (:mod:`ascent`), the weakest first: by weights, of the boxes in which it
    lies (:mod:`chain_boxes`) and then alone, and by labels and choices. Weights lead to a plan as well
    (:mod:`chain_plan`), for which there is as much time as for bounds. In one process this and the division of boxes
    take turns, in which both have the same time; beside processes a box is divided as long as chains have not proven
    more of it than programs.
4.  ``stage LP``: the LP of :class:`~mapgap.formulations.suboperation_mapping.stage_model.StageModel`, whose most likely
    mapping is improved; of a ratio that has a chain, once a step along that proves hardly more. Where there is no chain
    it bounds single ratios among the boxes, of few accelerators.
5.  ``destructive``: the ratio of smallest bound is asked for a mapping whose relaxation ends by a *target* a little
    above its bound, with every column removed whose reduced cost forbids it. None: the bound rises to the target. One:
    it is rounded and improved, which may lower the best plan; later targets lie below what it attains.
6.  ``complete``: a ratio whose MIP is solved is *exhausted*: its bound is all that the relaxation can prove. If its
    graph is not large, CP-SAT gets the complete model, alone or with the rows of the relaxation (:mod:`staged_ratio`),
    and looks for a plan below a cutoff half of the distance to the best plan away, then half of what is left, at last
    below the best plan.
7.  The bound of the instance is the smallest over all ratios.

Plans come from the argument ``start``, from one accelerator for everything, and from what the relaxation suggests. The
portfolio has the search for better ones. A question that is not answered is asked again for longer; no rule looks at
the time limit.

The relaxation ignores the DRAM except for static weights; plans satisfy it in full. The proofs of the rows are in
``docs/methods/suboperation_mapping.md``.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Literal

from mapgap.core import DISTRUSTED, Budget, PlanError, SolveResult, Status, Stop
from mapgap.formulations.suboperation_mapping import stage_search as search
from mapgap.formulations.suboperation_mapping.boxes import LowCutter
from mapgap.formulations.suboperation_mapping.chain_boxes import Branch, ChainBoxes, chains, fused
from mapgap.formulations.suboperation_mapping.fluid_bound import fluid_bound
from mapgap.formulations.suboperation_mapping.located_frame import Frame
from mapgap.formulations.suboperation_mapping.params import Stage as Params
from mapgap.formulations.suboperation_mapping.path_bound import path_bound, share_paths
from mapgap.formulations.suboperation_mapping.ratio_model import WAITS
from mapgap.formulations.suboperation_mapping.ratio_sweep import known_plan, no_ratio_fits, parts_of
from mapgap.formulations.suboperation_mapping.stage_boxes import StageBoxes
from mapgap.formulations.suboperation_mapping.stage_search import ModelKind, Reply
from mapgap.formulations.suboperation_mapping.stage_state import SMALLEST_STEP, State
from mapgap.problems.suboperation_mapping import Instance, Plan
from mapgap.problems.suboperation_mapping.evaluate import diagnose
from mapgap.problems.suboperation_mapping.instance import operations
from mapgap.problems.suboperation_mapping.lowered.arrays import lower
from mapgap.problems.suboperation_mapping.lowered.mapped import well_balanced
from mapgap.problems.suboperation_mapping.lowered.ratios import Ratio, parse_ratio, partitions

LONGEST_WAIT_S = 0.05  #: between two looks of a run that waits for its processes and has nothing else to do
AHEAD = 8  #: quick questions that wait for a process while this one is at a long piece of work

RUNGS = {"box": "chain", "explore": "stage LP"}  #: of questions with other names
Kind = Literal["box", "chain", "explore", "destructive", "complete"]


class _Here(Executor):
    """Runs a task at once in this process."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


def _scale(instance: Instance) -> float:
    """About a thousandth of a simple plan, so that times in the model are near 1000.

    A power of two: then ticks in this unit are exact in floating point.
    """
    lowered = lower(instance, (instance.batch,) + (0,) * (len(instance.accelerators) - 1))
    simple = lowered.makespan(well_balanced(lowered), lowered.topological)
    return float(1 << max(0, (simple // 1000).bit_length() - 1))


def _ratios(instance: Instance, ratio: str) -> list[Ratio]:
    if not ratio:
        return list(partitions(instance.batch, len(instance.accelerators)))
    missing = len(instance.accelerators) - 1 - ratio.count(",")
    return [parts_of(parse_ratio(instance, ratio + ",0" * missing))]


def quick(instance: Instance, params: Params) -> bool:
    """Whether a step of a chain has few moves: where nothing is fused places of a layer can have any ones before."""
    return fused(instance) or len(instance.accelerators) ** (2 * len(instance.accelerators)) <= params.spreads


def _kinds(instance: Instance, staged: bool) -> list[ModelKind]:
    """In which the complete model is asked, the most promising first; each that answers moves to the front.

    Where nothing is fused no stage separates shares, and the rows of the stages say nothing.
    """
    return ["staged", "relaxed", "unrelaxed"] if fused(instance) and staged else ["relaxed", "unrelaxed"]


@dataclass(frozen=True)
class _Task:
    """A question: a try along a chain of a box or ratio; the LP, a mapping that ends by the cutoff, a plan below it."""

    kind: Kind
    ratio: Ratio
    cutoff: int | None = None
    model: ModelKind = "unrelaxed"
    branch: Branch | None = None


class StageMip:
    """The method as steps, between which others may work.

    Parameters
    ----------
    ratio : str
        The only one, as ``"48,16"``; empty for all.
    target_gap : float
        Stop when the best plan is within this share of the bound.
    start : Plan, file, or None

    Attributes
    ----------
    rooting : bool
        Some ratios are in boxes whose programs have not been solved yet.
    pool : Executor or None
        Who answers questions, as long as the steps last.
    state : State
        What is known; :meth:`State.learn` takes a plan of others, and ``state.news`` has those that were found here.

    Raises
    ------
    InputError
        ``ratio`` or ``start`` is none of this instance.
    """

    def __init__(
        self,
        instance: Instance,
        budget: Budget,
        ratio: str = "",
        target_gap: float = 0.0,
        start: str | Plan | None = None,
        params: Params = Params(),
    ) -> None:
        ratios = _ratios(instance, ratio)
        self.instance, self.budget, self.target_gap, self.params = instance, budget, target_gap, params
        self.state = State.begin(instance, budget, ratios, bool(ratio), params)
        self.state.kinds = _kinds(instance, params.staged)
        self.chained = chains(instance, params) and quick(instance, params)
        self.frame = Frame(instance, params)
        self.chain_boxes = ChainBoxes(LowCutter(self.frame), len(instance.accelerators))
        self.running: dict[Future[Reply], _Task] = {}
        self.turn, self.width, self.rooting = 0, 1, not ratio and params.boxes
        self.bounded = False
        self.pool: Executor | None = None
        self.known = known_plan(instance, start, ratios[0] if ratio else ())

    def steps(self) -> Generator[bool, None, None]:
        """Work in pieces; yields whether there is nothing to do but to wait for processes."""
        yield from self.first_bounds()
        scale = _scale(self.instance)
        search.prepare(self.instance, scale, self.params)
        whole = self.params.boxes and not self.state.partial
        boxes = StageBoxes(self.state, self.frame, self.chained) if whole else None
        self.pool, ahead = self.executor(scale), 0.0  # seconds that chains had more than boxes
        try:
            while not self.state.done(self.target_gap):
                # In one process, boxes and chains share the time evenly, and all other questions come after them.
                # Beside processes, boxes are divided where chains do not prove more: else others may have the time.
                here = isinstance(self.pool, _Here)
                division = boxes is not None and boxes.waiting() and (here or not (self.running and boxes.outdone()))
                alone = division and here
                begun = time.perf_counter()
                answered = self.tend(alone) if not alone or ahead <= 0 else False
                if answered and alone:
                    ahead += time.perf_counter() - begun
                elif division and boxes is not None:
                    boxes.step()
                    ahead = max(0.0, ahead) - (time.perf_counter() - begun)
                    self.rooting = not boxes.rooted
                elif not answered and not self.running:
                    return
                yield not division and not answered
        finally:
            _stop(self.pool)
            self.pool = None

    def tend(self, cheap: bool = False) -> bool:
        """Put questions and take answers; whether there were any."""
        assert self.pool is not None
        self.put(self.pool, cheap)
        answered = [future for future in self.running if future.done()]
        for future in answered:
            self.take(self.running.pop(future), future.result())
        if answered and not isinstance(self.pool, _Here):
            self.put(self.pool, cheap)
        return bool(answered)

    def tend_processes(self) -> None:
        """The same, of processes that would have nothing to do otherwise while others work for long.

        Of eight accelerators there are so many ratios that each question takes a while to choose.
        """
        if self.pool is not None and not isinstance(self.pool, _Here):
            left = sum(not future.done() for future in self.running)
            if left <= self.width:
                self.tend()

    def executor(self, scale: float) -> Executor:
        """Processes for questions, while this one divides boxes."""
        if self.budget.workers == 1 or multiprocessing.current_process().daemon:
            return _Here()
        self.width = self.budget.workers - 1
        context = multiprocessing.get_context("spawn")
        return ProcessPoolExecutor(self.width, context, search.prepare, (self.instance, scale, self.params))

    def put(self, pool: Executor, cheap: bool) -> None:
        """As many questions as there is room for."""
        while (task := self.question(cheap)) is not None and len(self.running) < self.room(pool, task):
            self.running[self.ask(pool, task)] = task

    def room(self, pool: Executor, task: _Task) -> int:
        """How many questions may be put: as many as there are processes, more where answers are quick."""
        return self.width + (AHEAD if task.kind in ("box", "chain") and not isinstance(pool, _Here) else 0)

    def wait(self) -> None:
        """Until a process has answered, or a moment."""
        wait(self.running, timeout=LONGEST_WAIT_S, return_when=FIRST_COMPLETED)

    def first_bounds(self) -> Iterator[bool]:
        """A plan, and step 1, whatever the time; once."""
        if self.bounded:
            return
        self.bounded = True
        state, paths = self.state, share_paths(self.frame.phases)
        if self.known is not None:
            state.learn(self.known.plan, self.known.makespan)
        for ratio, known in state.ratios.items():
            known.raise_to(path_bound(paths, ratio), own=True)
        state.announce("path")
        state.recomputed()
        state.raise_all(fluid_bound(self.frame.phases))  # the word of an engine, less a margin
        state.announce("flow")
        yield False

    def question(self, cheap: bool = False) -> _Task | None:
        """The next question, or the next one that is cheap; ``None`` if there is nothing to ask."""
        state, busy = self.state, {task.ratio for task in self.running.values()}
        for ratio in state.open():
            known = state.ratios[ratio]
            if ratio in busy:
                continue
            along = self.chained and not known.chained and state.makespan is not None
            if along and not known.weighed:
                branch = None if state.partial else self.chain_boxes.next(ratio)
                if branch is None:
                    return _Task("chain", ratio, state.makespan)
                if not branch.asked:
                    return _Task("box", ratio, state.makespan, branch=branch)
                continue
            late = not cheap and not (along and known.rising)
            if late and not known.explored and len(ratio) <= self.params.columns:
                return _Task("explore", ratio)
            if along:
                return _Task("chain", ratio, state.makespan)
            if cheap:
                continue
            if not known.exhausted and self.params.destructive:
                target = known.target if state.makespan is None else min(known.target, state.makespan - 1)
                return _Task("destructive", ratio, target)
            if not known.answered and len(operations(self.instance, ratio)) <= self.params.complete:
                limit = state.makespan
                cutoff = None if limit is None else min(known.cutoff or limit, limit)
                return _Task("complete", ratio, cutoff, state.kind(ratio))
        return None

    def ask(self, pool: Executor, task: _Task) -> Future[Reply]:
        """Put a question."""
        self.turn += 1
        known, left_s = self.state.ratios[task.ratio], self.budget.remaining_s
        seed, seconds = self.budget.seed + 7 * self.turn, min(known.seconds, left_s)
        if task.branch is not None:
            assert task.cutoff is not None
            task.branch.asked = True
            return pool.submit(search.chain_of_box, task.ratio, task.branch.box, task.cutoff)
        if task.kind == "chain":
            assert task.cutoff is not None
            return pool.submit(search.chain, task.ratio, task.cutoff, left_s, seed)
        if task.kind == "explore":
            return pool.submit(search.explore, task.ratio, self.params.rounding, left_s, seed)
        if task.kind == "destructive":
            assert task.cutoff is not None
            return pool.submit(search.destroy, task.ratio, task.cutoff, seconds, left_s, seed)
        return pool.submit(search.complete, task.ratio, task.cutoff, seconds, seed, task.model)

    def take(self, task: _Task, reply: Reply) -> None:
        """Enter an answer, and adapt target and time of the ratio."""
        state, known = self.state, self.state.ratios[task.ratio]
        before = known.bound
        state.take(reply)
        if task.branch is not None:
            task.branch.tried = True
            state.raise_box(task.branch.box, reply.bound)
            state.recomputed()
        elif task.kind == "chain":
            known.weighed, known.chained = True, reply.closed
            known.rising = reply.bound > before + self.params.apart * (task.cutoff or 0)
            state.recomputed()
        elif task.kind == "explore":
            known.explored = True
        elif task.kind == "complete":
            self.learn_complete(task, reply)
        elif (reply.closed and reply.attained is not None) or known.settled or state.within_margin(task.ratio):
            known.exhausted = True
            known.seconds = self.params.question_s
            known.cutoff = self.halfway(known.bound, state.makespan)
        elif task.cutoff is not None and known.bound > task.cutoff:
            known.step = min(known.step * 1.5, 1.0)
        elif task.cutoff is not None and reply.attained is None:  # what is attained brings the next target nearer
            asked = task.cutoff / max(1, known.bound) - 1.0
            known.step = max(min(known.step, asked) / 2.0, SMALLEST_STEP)
            known.seconds *= self.params.growth
        state.announce(RUNGS.get(task.kind, task.kind))

    def learn_complete(self, task: _Task, reply: Reply) -> None:
        """Whether the kind of model that was asked has answered: then it is asked first from now on."""
        state, known = self.state, self.state.ratios[task.ratio]
        known.answered = reply.result.stop is Stop.DONE and reply.result.reason == WAITS
        if task.cutoff is None or reply.bound >= task.cutoff or reply.result.plan is not None:
            state.kinds.insert(0, state.kinds.pop(state.kinds.index(task.model)))
            known.turn, known.cutoff = 0, self.halfway(known.bound, state.makespan)
            return
        known.seconds *= self.params.growth
        known.turn += 1
        if known.turn % len(state.kinds) == 0:  # no kind has answered
            known.cutoff = self.halfway(known.bound, task.cutoff)

    def halfway(self, bound: int, limit: int | None) -> int | None:
        """A cutoff whose proof is far easier than that of the limit itself; none where they are a step apart."""
        near = limit is None or limit - bound <= self.params.step * limit
        return None if limit is None or near else (bound + limit + 1) // 2

    def result(self) -> SolveResult:
        """What is known at the end."""
        state, still = self.state, self.state.open()
        notes: dict[str, Any] = {
            "ratios": len(state.ratios),
            "ratios_open": len(still),
            "ratios_exhausted": sum(state.ratios[r].exhausted for r in still),
            "ladder": [[rung, bound] for rung, bound in state.ladder.items()],
            **({DISTRUSTED: state.distrusted} if state.distrusted else {}),
        }
        if state.ladder:
            notes["rung"] = list(state.ladder)[-1]
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
            reason="" if proven or self.instance.medium == "links" else WAITS,
            notes={**notes, "ratio": list(state.best)},
        )


def _stop(pool: Executor) -> None:
    """End the processes at once: what they still compute is not needed."""
    pool.shutdown(wait=False, cancel_futures=True)
    if not isinstance(pool, _Here):
        for child in multiprocessing.active_children():
            child.terminate()


def run(
    instance: Instance,
    budget: Budget,
    ratio: str = "",
    target_gap: float = 0.0,
    start: str | Plan | None = None,
    params: Params = Params(),
) -> SolveResult:
    """Bounds and plans of all ratios, or of one given as ``"48,16"`` (then nothing is proven of the instance).

    Raises
    ------
    InputError
        ``ratio`` or ``start`` is none of this instance.
    """
    if reasons := diagnose(instance):
        return SolveResult(Status.INFEASIBLE, Stop.PROVED, reason="; ".join(reasons))
    whole = StageMip(instance, budget, ratio, target_gap, start, params)
    with closing(whole.steps()) as steps:
        for waits in steps:
            if budget.exhausted:
                break
            if waits:
                whole.wait()
    return whole.result()
