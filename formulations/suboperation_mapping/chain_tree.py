"""A tree of choices of moves for the bound of a ratio along a chain, best first: see :mod:`ascent`.

Weights mix paths. The tree divides by a move that has a share of the mixture: some schedules have it, the others have
not. Weights of either half prove more.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from typing import Any

from mapgap.formulations.suboperation_mapping.chain_diagram import Choice, Cut, Diagram, Runs, Weighed
from mapgap.formulations.suboperation_mapping.params import Chains as Params
from mapgap.problems.suboperation_mapping.certificate.chain_weights import UNIT

LEAST = 1e-4  #: share of a path from which it is one of the mixture


def weighed_proof(runs: Runs, steps: int) -> dict[str, Any]:
    """Of weights alone, as :mod:`~mapgap.problems.suboperation_mapping.certificate.chain_labels` has them."""
    return {"weights": [[0, runs]], "grid": [1] * steps}


class Leaf:
    """Some choices, and the best weights of the schedules that follow them."""

    def __init__(self, choices: tuple[Choice, ...], found: Weighed, floor: int) -> None:
        self.choices, self.runs, self.point = choices, found.weighing.runs, found.point
        self.value = max(floor, found.value)
        self.mix = [(share, cut) for share, cut in found.mix if share > LEAST]
        self.halves: list[Leaf] = []


class Tree:
    """Leaves of a ratio, the weakest of which is divided next.

    Attributes
    ----------
    over : bool
        There is nothing to divide the weakest leaf by, or there are leaves enough.
    """

    def __init__(self, root: Weighed, goal: int, params: Params) -> None:
        self.goal, self.params, self.over, self.pushed = goal, params, False, 0
        self.root = Leaf((), root, 0)
        self.leaves = [(self.root.value, 0, self.root)]

    @property
    def bound(self) -> int:
        """Proven of all schedules of the ratio."""
        return self.leaves[0][0] // UNIT

    def divide(self, diagram: Diagram) -> bool:
        """The weakest leaf, by the moves of the ratio; ``False`` if it cannot be done."""
        leaf = self.leaves[0][2]
        loose = self.loose(diagram, leaf)
        self.over = loose is None or len(self.leaves) >= self.params.leaves
        if loose is None or self.over:
            return False
        heapq.heappop(self.leaves)
        for yes in (True, False):
            choices = (*leaf.choices, (*loose, yes))
            diagram.narrow(choices)
            cuts = self.kept(diagram, leaf)
            found = diagram.weights(0, diagram.root(), self.goal, self.params.rounds, cuts, leaf.point)
            half = Leaf(choices, found, leaf.value)
            leaf.halves.append(half)
            self.pushed += 1
            heapq.heappush(self.leaves, (half.value, self.pushed, half))
        diagram.narrow(())
        leaf.mix.clear()
        return True

    def kept(self, diagram: Diagram, leaf: Leaf) -> list[Cut]:
        """The cuts of a leaf whose paths are still there."""
        barred = diagram.barred
        return [cut for _, cut in leaf.mix if not any(barred[k][cut.moves[k]] for k in barred)]

    def loose(self, diagram: Diagram, leaf: Leaf) -> tuple[int, int] | None:
        """The step and the number of the move to divide by: one that some paths have, where large costs differ."""
        shares: dict[tuple[int, int], float] = defaultdict(float)
        sizes: dict[int, int] = defaultdict(int)
        for share, cut in leaf.mix:
            for k, move in enumerate(cut.moves.tolist()):
                shares[k, int(diagram.numbers[k][move])] += share
                if k != diagram.chain.fold:
                    sizes[k] = max(sizes[k], int(abs(diagram.costs[k][move]).max()))
        worth = {(k, j): min(share, 1.0 - share) * sizes[k] for (k, j), share in shares.items() if share < 1.0 - LEAST}
        return max(worth, key=lambda choice: worth[choice], default=None)

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
