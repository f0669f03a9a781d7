"""A tree of choices of moves for the bound of a ratio along a chain, best first: see :mod:`ascent`.

Weights mix paths. The tree divides by a move that has a share of the mixture: some schedules have it, the others have
not. Weights of either half prove more. Some moves are tried, and the one is taken whose halves gain most (strong
branching). First the outermost places of fused BP: a mixture puts fused layers half on one accelerator and half on
another, so that what waits for them is the same work on both, and the outermost ones read most. If none of these gains,
moves that part the mixture in different ways; first those after which states differ, as they tell paths apart for
longer.

Equal accelerators are told apart only where a choice does so: one half is without all that can be exchanged with what
the other one has (:mod:`~mapgap.problems.suboperation_mapping.certificate.chain_choices`; orbital branching).

A leaf is bounded by weights, and by labels if these are few: then no other leaf needs to be made of it. Where labels
are left in the end, the best of them is the optimum of the leaf, and so of the chain if it is the weakest one.

What divides one ratio best divides another one well, by nearly the same weights, if their chains have the same moves.
So a tree begins with the divisions of others: all that has to be found out is what their weights prove here.

References
----------
Applegate, Bixby, Chvátal, Cook, "Finding cuts in the TSP", DIMACS 95-05, 1995 (strong branching); Ostrowski, Linderoth,
Rossi, Smriglio, "Orbital branching", Mathematical Programming 126, 2011.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from typing import Any

import numpy as np

from mapgap.core import Budget
from mapgap.formulations.suboperation_mapping.chain_diagram import CLOSE, Choice, Cut, Diagram, Runs, Weighed
from mapgap.formulations.suboperation_mapping.params import Chains as Params
from mapgap.problems.suboperation_mapping.certificate.chain import Chain
from mapgap.problems.suboperation_mapping.certificate.chain_weights import UNIT


def weighed_proof(runs: Runs, steps: int) -> dict[str, Any]:
    """Of weights alone, as :mod:`~mapgap.problems.suboperation_mapping.certificate.chain_labels` has them."""
    return {"weights": [[0, runs]], "grid": [1] * steps}


class Leaf:
    """Some choices, and the best weights of the schedules that follow them.

    Attributes
    ----------
    value : int
        Proven of them, in 4096ths.
    runs : list
        The weights that prove it, by themselves or with labels: those of what was divided, if these prove more.
    mix : list of (float, Cut) or None
        The paths that its weights mix, with shares; not known of the leaf of a proof.
    asked : int
        What labels were to prove at last.
    closed : bool
        Some schedule of the chain has this value.
    """

    def __init__(self, choices: tuple[Choice, ...], found: Weighed, divided: Leaf | None = None) -> None:
        self.choices, self.runs, self.point = choices, found.weighing.runs, found.point
        self.value = found.value
        if divided is not None and divided.value > found.value:
            self.value, self.runs = divided.value, divided.runs
        self.mix: list[tuple[float, Cut]] | None = [(share, cut) for share, cut in found.mix if share]
        self.asked, self.closed = 0, False
        self.halves: list[Leaf] = []


Divisions = dict[tuple[Choice, ...], list[Leaf]]  #: halves, by the choices of what was divided


class Tree:
    """Leaves of a ratio, the weakest of which is divided next.

    Attributes
    ----------
    over : bool
        There is nothing to divide the weakest leaf by, or leaves have moves enough.
    divisions : dict
        Those of trees of other chains with the same moves, to which its own are added.
    """

    def __init__(self, root: Weighed, goal: int, params: Params, divisions: Divisions | None = None) -> None:
        self.goal, self.params, self.over, self.pushed = goal, params, False, 0
        self.divisions = {} if divisions is None else divisions
        self.root = Leaf((), root)
        self.leaves = [(self.root.value, 0, self.root)]

    @property
    def bound(self) -> int:
        """Proven of all schedules of the ratio."""
        return self.leaves[0][0] // UNIT

    def regrow(self, diagram: Diagram, root: Weighed, proof: list[Any], bound: int) -> None:
        """The tree of a proof of a bound; of the same chain, or of one without its shortcuts."""
        waiting, self.leaves = [self.root], []
        for part in proof:
            leaf = waiting.pop()
            if isinstance(part, list):
                step, number = part
                leaf.halves = [Leaf((*leaf.choices, (step, number, yes)), root) for yes in (True, False)]
                waiting += reversed(leaf.halves)
            else:
                diagram.narrow(leaf.choices)
                weighing, leaf.mix = diagram.weighing(part["weights"][0][1]), None
                # Labels prove the bound where weights do not.
                if (value := max(bound * UNIT, int(weighing.rest[0]))) >= leaf.value:
                    leaf.value, leaf.runs = value, weighing.runs
                    leaf.point = diagram.point(weighing.runs)
                self.push(leaf)
        diagram.narrow(())

    def push(self, leaf: Leaf) -> None:
        self.pushed += 1
        heapq.heappush(self.leaves, (leaf.value, self.pushed, leaf))

    def climb(self, diagram: Diagram, target: int, budget: Budget) -> bool:
        """Ask labels of the weakest leaf for a target, or divide it; ``False`` if neither can be done."""
        leaf = self.leaves[0][2]
        if leaf.asked < target and self.by_labels(diagram, leaf, target, budget):
            return True
        if budget.exhausted:  # labels had no time: they say nothing of the leaf
            leaf.asked = 0
            return True
        full = len(self.leaves) * len(diagram.moves.to) > self.params.moves
        if leaf.mix is None and not full:
            return self.mixed(diagram, leaf)
        halves = [] if leaf.closed or full else self.divided(diagram, leaf)
        self.over = not halves
        if self.over:
            return False
        self.divide(leaf, halves)
        self.divisions[leaf.choices] = halves
        return True

    def divide(self, leaf: Leaf, halves: list[Leaf]) -> None:
        """Put both halves in the place of the weakest leaf."""
        heapq.heappop(self.leaves)
        leaf.halves, leaf.mix = halves, []
        for half in halves:
            self.push(half)

    def follow(self, diagram: Diagram) -> bool:
        """Divide the weakest leaf as another tree does, if its weights prove more of both halves."""
        leaf = self.leaves[0][2]
        known = self.divisions.get(leaf.choices)
        if known is None or len(self.leaves) * len(diagram.moves.to) > self.params.moves:
            return False
        halves = []
        for other in known:
            diagram.narrow(other.choices)
            weighing = diagram.weighing(other.runs)
            half = Leaf(other.choices, Weighed(int(weighing.rest[0]), weighing, other.point, []), leaf)
            half.mix = None
            halves.append(half)
        diagram.narrow(())
        if self.gains(halves)[0] < leaf.value + CLOSE * self.goal * UNIT:
            return False
        self.divide(leaf, halves)
        return True

    def mixed(self, diagram: Diagram, leaf: Leaf) -> bool:
        """Find out what the weights of the weakest leaf mix; they may prove more."""
        diagram.narrow(leaf.choices)
        found = Leaf(leaf.choices, diagram.weights(self.goal, self.params.rounds, (), leaf.point))
        diagram.narrow(())
        leaf.mix, leaf.point = found.mix, found.point
        if found.value > leaf.value:
            leaf.value, leaf.runs = found.value, found.runs
            heapq.heappop(self.leaves)
            self.push(leaf)
        return True

    def by_labels(self, diagram: Diagram, leaf: Leaf, target: int, budget: Budget) -> bool:
        """Whether labels of the weakest leaf prove more than it has."""
        leaf.asked = target
        diagram.narrow(leaf.choices)
        bound = diagram.search(target, diagram.weighing(leaf.runs), self.params.labels, budget)
        diagram.narrow(())
        leaf.closed = 0 < bound < target
        if bound * UNIT <= leaf.value:
            return False
        leaf.value = bound * UNIT
        heapq.heappop(self.leaves)
        self.push(leaf)
        return True

    def divided(self, diagram: Diagram, leaf: Leaf) -> list[Leaf]:
        """The halves that gain most; none if there is nothing to divide by."""
        found: list[Leaf] = []
        enough = leaf.value + CLOSE * self.goal * UNIT
        for choices in (self.outermost, self.loose):
            if not found or self.gains(found)[0] < enough:
                tried = [self.halves(diagram, leaf, choice) for choice in choices(diagram, leaf)]
                found = max(([found] if found else []) + tried, key=self.gains, default=[])
        return found

    def outermost(self, diagram: Diagram, leaf: Leaf) -> list[tuple[int, int]]:
        """Steps, and numbers of moves with most of the mixture, of the outermost fused BP that have several places."""
        found = []
        for k in reversed(range(diagram.last)):
            if diagram.chain.steps[k].func in (Chain.join, Chain.meet, Chain.close):
                shares: dict[int, float] = defaultdict(float)
                for share, cut in leaf.mix or ():
                    shares[int(diagram.numbers[k][cut.moves[k]])] += share
                if len(shares) > 1:
                    found.append((k, max(shares, key=shares.__getitem__)))
        return found[: self.params.outermost]

    def halves(self, diagram: Diagram, leaf: Leaf, choice: tuple[int, int]) -> list[Leaf]:
        """With a move, and without it."""
        found = []
        for yes in (True, False):
            choices = (*leaf.choices, (*choice, yes))
            diagram.narrow(choices)
            cuts = self.kept(diagram, leaf)
            best = diagram.weights(self.goal, self.params.rounds, cuts, leaf.point)
            found.append(Leaf(choices, best, leaf))
        diagram.narrow(())
        return found

    def gains(self, halves: list[Leaf]) -> list[int]:
        """What halves prove, the weaker one first, and no more than what is asked for."""
        return sorted(min(self.goal * UNIT, half.value) for half in halves)

    def kept(self, diagram: Diagram, leaf: Leaf) -> list[Cut]:
        """The cuts of a leaf whose paths are still there."""
        barred = diagram.barred
        return [cut for _, cut in leaf.mix or () if not any(barred[k][cut.moves[k]] for k in barred)]

    def loose(self, diagram: Diagram, leaf: Leaf) -> list[tuple[int, int]]:
        """Steps and numbers of moves to divide by.

        Of those that part the mixture in the same way the middle one of those after which states differ, the most even
        parts first; and the one where large costs differ most.
        """
        ways: dict[frozenset[int], list[tuple[int, int]]] = defaultdict(list)
        mix = leaf.mix or []
        every, sizes = frozenset(range(len(mix))), dict[int, int]()
        for k in range(diagram.last):
            if k == diagram.chain.fold:
                continue
            moves = np.array([cut.moves[k] for _, cut in mix], np.int64)
            numbers = diagram.numbers[k][moves].tolist()
            sizes[k] = int(abs(diagram.cost(k, moves)).max(initial=0))
            for j in sorted({*numbers}):
                part = frozenset(i for i, number in enumerate(numbers) if number == j)
                if part != every:
                    ways[every - part if 0 in part else part].append((k, j))
        turning, costly = [], []
        for part, moves_of in ways.items():
            share = sum(mix[i][0] for i in part)
            share = min(share, 1.0 - share)
            if lasting := [(k, j) for k, j in moves_of if diagram.turning[k]]:
                turning.append((share, lasting[len(lasting) // 2]))
            k, j = max(moves_of, key=lambda move: sizes[move[0]])
            costly.append((share * sizes[k], (k, j)))
        turning.sort(reverse=True)
        return list(dict.fromkeys(choice for _, choice in (*turning[: self.params.tried], *sorted(costly)[-1:])))

    def proof(self, steps: int) -> list[Any]:
        """Leaves, and the choices before them."""
        found: list[Any] = []
        waiting = [self.root]
        while waiting:
            leaf = waiting.pop()
            if leaf.halves:
                found.append(list(leaf.halves[0].choices[-1][:2]))
                waiting += reversed(leaf.halves)
            else:
                found.append(weighed_proof(leaf.runs, steps))
        return found
