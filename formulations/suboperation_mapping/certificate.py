"""Proofs for :mod:`mapgap.problems.suboperation_mapping.certificate`: of a bound, or of as good a one as time allows.

*Cases* are programs that the writer knows by name, as the certificate has them: all ratios, a box of ratios, one ratio
with or without orders. Each has a tree of *leaves*, which fixes places of fused operations or orders, and every leaf
has multipliers of rows, which prove a bound in whole numbers, so that nothing is taken off for rounding. Best first:
the weakest leaf of the weakest case is solved, then divided; after some divisions the case gets *parts*, programs that
together have all of its ratios or are stronger. A case is worth what its own leaves prove or what its parts do, the
better of both, so more work never proves less; the certificate has its leaves where they are enough. Boxes are bounded
along chains (:mod:`~.chain_boxes`). Where a chain has ``enough`` of them they have no program, or on more accelerators
than are ``told_apart``, where chains mix what equal ones do, one relaxation of it first. Where nothing is fused it is
the other way round: boxes have programs alone, which say what their shares take, and ratios have both.

A ratio that is asked by its program has destructive bounds, too (:mod:`~mapgap.solvers.destructive`), by shaving
(:mod:`~mapgap.solvers.shave`), after one relaxation, each search as long as all else; where something is fused, after
its chain. These prove what they aim at or nothing, where the tree of a relaxation ends far below it.

A climb goes on where a certificate ended: its cases are then the parts of all ratios, and its trees are those of them,
of programs and along chains, these only if a new one of as many leaves proves less (:mod:`~.ascent`).
"""

from __future__ import annotations

import heapq
import json
import math
import time
from collections.abc import Iterator, Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np

from mapgap.core import Budget
from mapgap.evidence.check import NONE, Box, Program
from mapgap.formulations.suboperation_mapping.ascent import Ascent, chained
from mapgap.formulations.suboperation_mapping.boxes import Cutter, LowCutter, few_ratios, of_ratio, roots, single
from mapgap.formulations.suboperation_mapping.chain_boxes import (
    Narrowing,
    Share,
    done_by,
    kept_of_name,
    name_of_kept,
    shares_of_box,
)
from mapgap.formulations.suboperation_mapping.located_frame import Box as Groups
from mapgap.formulations.suboperation_mapping.located_frame import Frame, Group
from mapgap.formulations.suboperation_mapping.params import Certificate as Params
from mapgap.formulations.suboperation_mapping.programs import flat, named, promising, shaving, written
from mapgap.problems.suboperation_mapping import Instance
from mapgap.problems.suboperation_mapping.certificate import APART, BELOW, ORDER
from mapgap.problems.suboperation_mapping.certificate.chain_shares import CHAINS
from mapgap.problems.suboperation_mapping.certificate.lengths import box
from mapgap.problems.suboperation_mapping.certificate.located import Located
from mapgap.problems.suboperation_mapping.certificate.times import Writer
from mapgap.solvers.destructive import Destructive
from mapgap.solvers.refute import Duals, Relaxation, emptying, least, look_ahead, refute
from mapgap.solvers.shave import Shaving
from mapgap.solvers.trim import ROWS

Steps = Sequence[Sequence[Any]]
Start = tuple[int, dict[str, Steps]]
ALL = "all"
EMPTY = NONE["min"]  #: what a leaf is worth whose multipliers show that it has no points


class Leaf:
    """Some choices of a case, and the multipliers, its own or those of a larger leaf, that prove its bound.

    Attributes
    ----------
    fixed : dict of int to int
        Choices that are made, by variable.
    loose : int or None
        The choice to divide it by.
    closed : bool
        There is a tree of its own for the goal, which is grown again for the certificate.
    """

    def __init__(self, fixed: dict[int, int], parent: Leaf | None = None) -> None:
        self.fixed = fixed
        self.value: int = 0 if parent is None else parent.value
        self.multipliers: Any = (np.zeros(0, np.int32), np.zeros(0)) if parent is None else parent.multipliers
        self.solved = self.closed = False
        self.loose: int | None = None
        self.halves: tuple[Leaf, Leaf] | None = None

    def box(self, program: Program) -> Box:
        found = Box(program.lower[:], program.upper[:], [])
        for j, v in self.fixed.items():
            found.lower[j] = found.upper[j] = v
        return found

    def prove(self, value: int, duals: Duals) -> None:
        """Keep the multipliers if they prove more."""
        if value > self.value:
            self.value = value
            self.multipliers = np.array([i for i, _ in duals], np.int32), np.array([y for _, y in duals])


class Case:
    """A program, by the name that the certificate gives it.

    Attributes
    ----------
    whole : str
        The name of the case that this is a part of: one ratio can be part of its box, or that of it.
    promise : int
        What is proven of it elsewhere: by a larger case, or by a certificate.
    steps : list of steps
        The tree of that certificate.
    leaves : list of (value, number, Leaf)
        A heap of those that are not divided.
    divided : int
        How many were.
    ascent : Ascent or None
        What else is done along a chain, before its tree is divided.
    chain : str
        The name of this in the certificate, without what kind of chain it is.
    wider : tuple of Share
        What a chain has that is tried when that of a certificate is done; nothing if there is none of more work.
    shaving : Destructive or None
        The searches for steps that refute a ratio; ``None`` before they have begun and when they have ended.
    shaved : pair or None
        What is refuted of a ratio, a bound, and the steps.
    stuck, unshaved : bool
        Whether nothing else is left to do, and whether these searches are over or cannot be.
    """

    def __init__(self, name: str, promise: int, steps: Steps = ()) -> None:
        self.name, self.promise, self.steps, self.whole = name, promise, steps, ""
        self.root = Leaf({})
        self.leaves = [(0, 0, self.root)]
        self.divided = self.pushed = 0
        self.opened = False
        self.ascent: Ascent | None = None
        self.chain = ""
        self.wider: tuple[Share, ...] = ()
        self.shaving: Destructive | None = None
        self.shaved: tuple[int, Steps] | None = None
        self.stuck = self.unshaved = False
        self.parts: list[Case] = []

    @property
    def own(self) -> int:
        along, refuted = 0 if self.ascent is None else self.ascent.bound, 0 if self.shaved is None else self.shaved[0]
        return max(self.leaves[0][0], along, refuted)

    @property
    def value(self) -> int:
        """Proven of all plans of the case; promised, as long as nothing was tried."""
        if not self.opened:
            return self.promise
        return max(self.own, min((part.value for part in self.parts), default=0))

    def push(self, leaf: Leaf) -> None:
        self.pushed += 1
        heapq.heappush(self.leaves, (leaf.value, self.pushed, leaf))

    def halves(self, leaf: Leaf) -> tuple[Leaf, Leaf]:
        """Both ways to make the loose choice of a leaf."""
        assert leaf.loose is not None
        self.divided += 1
        leaf.halves = Leaf({**leaf.fixed, leaf.loose: 0}, leaf), Leaf({**leaf.fixed, leaf.loose: 1}, leaf)
        return leaf.halves

    def ways(self, bound: int) -> Iterator[Case]:
        """The cases whose leaves prove a bound together."""
        if self.own >= bound:
            yield self
        else:
            for part in self.parts:
                yield from part.ways(bound)


class Climb:
    """The search; ``all`` is the case of all plans.

    Parameters
    ----------
    goal : int
        A bound that is enough: the makespan of a plan.
    start : pair, optional
        A bound that is proven, and the trees that do, by name.

    Attributes
    ----------
    floor : int
        That bound; that nothing is negative needs no proof.
    """

    def __init__(
        self, instance: dict[str, Any], goal: int, budget: Budget, params: Params, start: Start | None = None
    ) -> None:
        self.instance, self.goal, self.budget, self.params = instance, goal, budget, params
        self.batch, self.devices = instance["batch"], len(instance["accelerators"])
        self.along = Narrowing(instance, params)
        frame = Frame(Instance.model_validate_json(json.dumps(instance)))
        self.flat, self.cutter, self.low_cutter = flat(instance), Cutter(frame), LowCutter(frame)
        self.written: tuple[str, Writer, Relaxation] | None = None
        self.asked = 0
        self.ahead = 0.0  # seconds that each search of shaving has had more than all else
        self.floor, proof = start or (min(0, goal - 1), {})
        self.all = Case(ALL, 0)
        self.all.opened = ALL not in proof
        self.all.parts = [self.case(name, self.floor, steps) for name, steps in proof.items() if name != ALL]

    @property
    def bound(self) -> int:
        """Proven of all plans."""
        return max(self.floor, min(self.all.value, self.goal))

    def run(self) -> None:
        """Raise the weakest case until all reach the goal, nothing is left to do, or the budget ends; tell bounds."""
        told = self.floor
        while self.all.value < self.goal and self.asked < self.params.asked and not self.budget.exhausted:
            case = self.all
            while case.parts:
                case = min(case.parts, key=lambda part: part.value)
            if self.bound > told:
                told = self.bound
                self.budget.report(bound=told)
            begun = time.perf_counter()
            if (case.stuck or (case.opened and self.ahead <= 0 and not self.climbing(case))) and self.shave(case):
                searches = 1 if case.shaving is None else case.shaving.searches
                self.ahead += (time.perf_counter() - begun) / searches
                continue
            if case.stuck:
                return
            if not self.work(case):
                case.parts = [self.case(name, case.value) for name in self.parts(case.name) if name != case.whole]
                for part in case.parts:
                    part.whole = case.name
                    if part.name == case.name + ORDER:  # the same ratio, of which these searches go on
                        part.shaving, part.unshaved = case.shaving, case.unshaved
                case.stuck = not case.parts and (self.bounded_along(case.name) or not self.close(case))
            self.ahead -= time.perf_counter() - begun

    def climbing(self, case: Case) -> bool:
        """Whether a chain, which proves more with every step where something is fused, has not come to its end."""
        return not self.flat and case.ascent is not None and not case.ascent.over

    def shave(self, case: Case) -> bool:
        """Go on with the searches for steps that refute a ratio; ``False`` if there is none, or all have ended."""
        if case.shaving is None and not case.unshaved:
            case.shaving = self.shaving(case.name.removesuffix(ORDER))
        if case.shaving is None:
            case.unshaved = True
            return False
        before = case.shaving.asked
        more = case.shaving.turn(max(case.promise, case.value))  # of a part, what is known of the whole
        self.asked += case.shaving.asked - before
        case.shaved = case.shaving.proven or case.shaved
        if not more or case.value >= self.goal:
            case.shaving, case.unshaved = None, True  # engines less
        return more

    def shaving(self, name: str) -> Destructive | None:
        """The searches of a ratio; ``None`` of others, and if it has no program, or a chain in its place."""
        if name == ALL or "x" in name or self.bounded_along(name) or not self.written_alone(groups_of(name)):
            return None

        def begin(aim: int) -> Shaving:
            return shaving(written(self.instance, aim, name), self.budget, self.params)

        return Destructive(begin, self.goal, int(self.params.apart * self.goal))

    def case(self, name: str, promise: int, proof: Any = ()) -> Case:
        """The case of a name, and the proof that a certificate has of it."""
        kind = next((kind for kind in CHAINS if name.endswith(kind)), "")
        name, _, limit = name.partition(BELOW)
        case = Case(name.removesuffix(kind), promise, () if kind else proof)
        if limit or any(step in ROWS for step, *_ in case.steps):
            case.shaved, case.steps, case.opened = (int(limit or promise), proof), (), True
        known = kept_of_name(case.name) if kind else ()
        if kind and "x" in name:
            case.name = named(groups_of(case.name))  # the box, of which the chain has what its own name says
        wider = self.kept_of(case.name)
        if kept := known or wider:
            case.wider = wider if done_by(wider, self.along.work) > done_by(kept, self.along.work) else ()
            case.ascent, case.chain = self.ascent(case, kept), name_of_kept(kept)
            if kind:
                case.ascent.bound, case.ascent.kind, case.ascent.proof, case.opened = promise, kind, proof, True
        return case

    def ascent(self, case: Case, kept: Sequence[Share]) -> Ascent:
        """Along a chain of a case; only a ratio of which there is no wider one has a tree."""
        found = self.along.ascent(kept, self.goal)
        found.weights = bool(case.wider) or not single(groups_of(case.name))
        return found

    def widened(self, case: Case) -> bool:
        """Bound a case along its wider chain, and keep that if it proves more; ``False`` if there is none."""
        wider, case.wider = case.wider, ()
        if not wider or case.ascent is None:
            return False
        found = self.ascent(case, wider)
        found.climb(self.budget)
        if found.bound > case.ascent.bound:
            case.ascent, case.chain = found, name_of_kept(wider)
        case.ascent.weights = found.weights
        return True

    def kept_of(self, name: str) -> tuple[Share, ...]:
        """What a chain has of a case; nothing if it has none."""
        if name == ALL or name.endswith((ORDER, APART)) or not self.chained:
            return ()
        groups = groups_of(name)
        if self.flat:  # nothing of a box has a place, and a ratio has all of its shares
            few = self.devices ** sum(g.number for g in groups) <= self.params.spreads
            return shares_of_box(groups) if few and "x" not in name else ()
        if "x" in name and single(groups) and self.enough(groups):  # the ratio has the other one
            return self.along.kept_of_tree(groups) if self.mixed(groups) else ()
        return self.along.kept(groups)

    @cached_property
    def chained(self) -> bool:
        """Whether ratios can be bounded along a chain."""
        return chained(self.instance)

    def work(self, case: Case) -> bool:
        """Solve the weakest leaf, or divide it; ``False`` if there are divisions enough."""
        case.opened = True
        if case.steps:
            self.regrow(case)
        leaf = case.leaves[0][2]
        if case.ascent is not None and (leaf.solved or not self.program_first(case.name)):
            self.asked += 1
            if case.ascent.climb(self.budget) or self.widened(case):
                return True
        if self.bounded_along(case.name):
            return False
        if not leaf.solved:
            heapq.heappop(case.leaves)
            self.solve(case, leaf)
            case.push(leaf)
        elif leaf.loose is not None and case.divided < self.divisions(case.name):
            for half in case.halves(heapq.heappop(case.leaves)[2]):
                case.push(half)
        else:
            return False
        return True

    def regrow(self, case: Case) -> None:
        """The tree of a certificate, if every leaf has one sum of rows, as those that are grown here."""
        steps, case.steps = case.steps, ()
        choices, sums = ([step for step in steps if step[0] == kind] for kind in "sp")
        if any(v for *_, v in choices) or (len(sums), len(sums) + len(choices)) != (len(choices) + 1, len(steps)):
            return
        program = self.program(case.name)[0].program
        waiting, case.leaves = [case.root], []
        for kind, *numbers in steps:
            leaf = waiting.pop()
            if kind == "s":
                leaf.loose = numbers[0]
                waiting += reversed(case.halves(leaf))
                continue
            whole = dict(zip(numbers[::2], numbers[1::2], strict=True))
            here, own = leaf.box(program), whole.pop(program.cutoff, 0)
            duals = [(i, y / (own or 1)) for i, y in whole.items()]
            if own:
                leaf.prove(least(program.rows, here, program.cutoff, duals), duals)
            elif emptying(program.rows, here, None, duals):
                leaf.prove(EMPTY, duals)
            case.push(leaf)

    def solve(self, case: Case, leaf: Leaf) -> None:
        """Ask the relaxation of a leaf."""
        model, relaxation = self.program(case.name)
        program, here = model.program, leaf.box(model.program)
        leaf.solved = True
        for _ in range(2):
            self.asked += 1
            point, duals = relaxation.minimise(here, {model.last: 1})
            if point is not None:
                leaf.prove(least(program.rows, here, program.cutoff, duals), duals)
                found = promising(model, here, point)
                if isinstance(model, Located):  # whose relaxations take long
                    found = found[:1]
                if self.divisions(case.name):
                    leaf.loose = look_ahead(relaxation, here, {model.last: 1}, self.goal, point, found)
                return
            if emptying(program.rows, here, None, duals):
                leaf.prove(EMPTY, duals)
                return
            relaxation.forget()

    def close(self, case: Case) -> bool:
        """Refute the goal in the weakest leaf where there is no choice left, rounding and single rows included."""
        leaf = heapq.heappop(case.leaves)[2]
        if self.refuted(self.program(case.name)[0], leaf, self.budget):
            leaf.value, leaf.closed = self.goal, True
        case.push(leaf)
        return leaf.closed

    def refuted(self, model: Writer, leaf: Leaf, budget: Budget) -> Steps | None:
        """A tree that refutes the program in a leaf."""
        choices, here = partial(promising, model), leaf.box(model.program)
        late = {j for pair in model.orders.values() for j in pair}
        scaled = isinstance(model, Located)
        return refute(model.program, here, budget, choices, self.params.boxes, scaled=scaled, late=late).proof

    def program(self, name: str) -> tuple[Writer, Relaxation]:
        """The program of a case for the goal, and its relaxation; those of the last one are kept."""
        if self.written is None or self.written[0] != name:
            model = written(self.instance, self.goal, name)
            late = {j for pair in model.orders.values() for j in pair}
            scaled = isinstance(model, Located)
            self.written = name, model, Relaxation(model.program, self.budget, scaled, late)
        return self.written[1:]

    def divisions(self, name: str) -> int:
        """Most divisions of the leaves of a case; of orders as many as there is time for."""
        if name == ALL:
            return 0
        if "x" not in name:
            return self.params.asked if name.endswith(ORDER) else 0
        if self.alike(name) or self.mixed(groups_of(name)):
            return 0
        return self.params.boxes if self.one(groups_of(name)) else self.params.places

    def alike(self, name: str) -> bool:
        """Whether some accelerators share variables that could be told apart."""
        return not name.endswith(APART) and max(self.program(name)[0].members) > 1

    def one(self, groups: Groups) -> bool:
        """Whether a box has a single ratio, or none."""
        return few_ratios(groups, self.batch, self.devices, 1) is not None

    def parts(self, name: str) -> list[str]:
        """Names of cases that take the place of one; none where there is nothing stronger."""
        if name == ALL:
            return [self.best(groups) for groups in roots(self.batch, self.devices)]
        groups = groups_of(name)
        if "x" not in name:
            return [named(groups)] if self.bounded_along(name) else [] if name.endswith(ORDER) else [name + ORDER]
        along = self.bounded_along(name) or self.mixed(groups)
        if not along and not self.flat and self.alike(name) and self.one(groups):
            return [name + APART]
        if not single(groups):
            cutter = self.low_cutter if self.enough(groups) else self.cutter
            return [self.best(child) for child in cutter.split(groups)]
        return [alone(groups)] if self.enough(groups) or self.written_alone(groups) else []

    def bounded_along(self, name: str) -> bool:
        """Whether a chain is all that is asked: that of a box if it tells all accelerators apart, else of a ratio."""
        if self.flat or ("x" in name) != (self.devices <= self.params.told_apart):
            return False
        return bool(self.kept_of(name)) and self.enough(groups_of(name))

    def program_first(self, name: str) -> bool:
        """Whether a program is quicker than a chain: of a ratio where nothing is fused, else of a box."""
        return self.flat or ("x" in name and self.mixed(groups_of(name)))

    def mixed(self, groups: Groups) -> bool:
        """Whether a chain has most of a box, but mixes what equal accelerators do: its program is asked as well."""
        return self.devices > self.params.told_apart and self.enough(groups)

    def enough(self, groups: Groups) -> bool:
        """Whether there is a chain, which has nearly all of the work of a box."""
        return self.chained and not self.flat and self.along.part(groups) >= self.params.enough

    def best(self, groups: Groups) -> str:
        """The program of a box, or that of its only ratio where it is small, or a chain has all of it."""
        small = self.devices <= self.params.told_apart and self.written_alone(groups)
        return alone(groups) if single(groups) and (small or self.enough(groups)) else named(groups)

    def written_alone(self, groups: Groups) -> bool:
        """Whether there is a program of the only ratio of a box."""
        return bool(self.devices ** sum(g.number for g in groups) <= self.params.configurations)

    def proof(self, bound: int) -> dict[str, Any] | None:
        """The trees of a bound that is proven; ``None`` if the multipliers of a leaf do not prove it after all."""
        found: dict[str, Any] = {}
        for case in self.all.ways(bound):
            # One relaxation is checked in no time, a chain is not.
            quick = not case.divided and case.root.value >= bound and not case.root.closed
            if not quick and case.ascent is not None and case.ascent.bound >= bound:
                found[case.chain + case.ascent.kind] = case.ascent.proof
                continue
            if case.shaved is not None and case.shaved[0] >= bound:
                value, steps = case.shaved
                found[case.name.removesuffix(ORDER) + (f"{BELOW}{value}" if value > bound else "")] = steps
                continue
            if case.name in found:  # boxes of a certificate may overlap, and so do their parts
                continue
            model = written(self.instance, bound, case.name)
            steps, waiting = found.setdefault(case.name, []), [case.root]
            while waiting:
                leaf = waiting.pop()
                if leaf.halves is not None:
                    steps.append(["s", leaf.loose, 0])
                    waiting += reversed(leaf.halves)
                    continue
                # What is grown again ends by its number of boxes.
                own = self.refuted(model, leaf, Budget(math.inf)) if leaf.closed else summed(model, leaf)
                if own is None:
                    return None
                steps += own
        return found

    def further(self, start: dict[str, Any]) -> dict[str, Any] | None:
        """The proof that this began with, with what was refuted of its ratios since; ``None`` if nothing was."""
        found, waiting = dict(start), [self.all]
        ratios = {ratio_name(name): name for name in start if "x" not in name}
        while waiting:
            case = waiting.pop()
            waiting += case.parts
            name = ratios.get(ratio_name(case.name))
            if case.shaved is not None and name is not None and BELOW not in name and case.shaved[0] > self.floor:
                found.pop(name, None)
                found[f"{ratio_name(name)}{BELOW}{case.shaved[0]}"] = case.shaved[1]
        return found if found.keys() != start.keys() else None


def summed(model: Writer, leaf: Leaf) -> Steps | None:
    """The sum of rows of a leaf, as its only step; ``None`` if it proves too little."""
    program = model.program
    number = None if leaf.value == EMPTY else program.cutoff
    duals = list(zip(*(column.tolist() for column in leaf.multipliers), strict=True))
    step = emptying(program.rows, leaf.box(program), number, duals)
    return None if step is None else [step]


def alone(groups: Groups) -> str:
    """The name of the tree of the only ratio of a box."""
    return ",".join(str(g.low) for g in groups for _ in range(g.number))


def ratio_name(name: str) -> str:
    """The name of the only ratio of a case, without what kind of program or chain it asks for."""
    return name.partition(" ")[0]


def ratio_of(name: str) -> tuple[int, ...]:
    """The only ratio of a case."""
    return tuple(map(int, ratio_name(name).split(",")))


def limits_of(name: str) -> Groups:
    """The groups of a case as they are named."""
    return tuple(Group(*group) for group in box(name)) if "x" in name else of_ratio(ratio_of(name))


def groups_of(name: str) -> Groups:
    """The box of a case; one with all of its ratios where a chain has shares alike that are not, or leaves some out.

    Those of a box are apart from each other: so groups that overlap are one.
    """
    found: list[Group] = []
    for low, high, number in limits_of(name):
        group = Group(max(1, low), high, number)
        while found and found[-1].low <= group.high:
            larger = found.pop()
            group = Group(min(larger.low, group.low), larger.high, larger.number + group.number)
        found.append(group)
    return tuple(found)


def prove(instance: dict[str, Any], bound: int, budget: Budget, params: Params = Params()) -> dict[str, Any] | None:
    """The proof that no plan has a makespan below ``bound``; ``None`` if none is found within the budget."""
    search = Climb(instance, bound, budget, params)
    search.run()
    return search.proof(bound) if search.all.value >= bound else None


def climb(
    instance: dict[str, Any], goal: int, budget: Budget, start: Start | None = None, params: Params = Params()
) -> tuple[int, dict[str, Any]] | None:
    """The best bound that is proven within the budget, and its proof.

    ``None`` if it is not above that of the start, and of no ratio more has been refuted: what was shaved of some ratios
    is kept, though others hold the bound where it was.

    Parameters
    ----------
    instance : dict
        Expanded.
    goal : int
        The makespan of a plan, which is bound enough.
    start : pair, optional
        A bound that is proven, and its proof.
    """
    search = Climb(instance, goal, budget, params, start)
    search.run()
    bound = search.bound
    lost = 1  # tick that a bound which cannot be written gives up, then twice as many
    while bound > search.floor:
        proof = search.proof(bound)
        if proof is not None:
            return bound, proof
        bound -= lost
        lost *= 2
    further = None if start is None else search.further(start[1])
    return None if further is None else (search.floor, further)
