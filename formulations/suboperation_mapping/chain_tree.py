"""A tree of choices of moves for the bound of a ratio along a chain, best first: see :mod:`ascent`.

Weights mix paths. The tree divides by a move that has a share of the mixture: one half of the schedules has it, the
other half has not. In each half weights are better.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from mapgap.formulations.suboperation_mapping.params import Chains as Params
from mapgap.problems.suboperation_mapping.certificate.chain_weights import UNIT

if TYPE_CHECKING:
    from mapgap.formulations.suboperation_mapping.ascent import Choice, Cut, Diagram, Weighed

LEAST = 1e-4  #: share of a path from which it is one of the mixture


class Leaf:
    """Some choices, and the best weights of the schedules that follow them."""

    def __init__(self, choices: tuple[Choice, ...], found: Weighed, floor: int) -> None:
        self.choices, self.found = choices, found
        self.value = max(floor, found.value)
        self.halves: list[Leaf] = []

    def proof(self, steps: int) -> dict[str, Any]:
        return {"weights": [[0, self.found.weighing.runs]], "grid": [1] * steps}


class Tree:
    """Leaves of a ratio, the weakest of which is divided next."""

    def __init__(self, diagram: Diagram, root: Weighed, goal: int, params: Params) -> None:
        self.diagram, self.goal, self.params = diagram, goal, params
        self.root = Leaf((), root, 0)
        self.leaves = [(self.root.value, 0, self.root)]
        self.pushed = 0

    @property
    def bound(self) -> int:
        """Proven of all schedules of the ratio."""
        return min(self.goal, self.leaves[0][0] // UNIT)

    def divide(self) -> bool:
        """The weakest leaf; ``False`` if there is nothing to divide it by, or there are leaves enough."""
        leaf = self.leaves[0][2]
        loose = self.loose(leaf)
        if loose is None or len(self.leaves) >= self.params.leaves:
            return False
        heapq.heappop(self.leaves)
        for yes in (True, False):
            choices = (*leaf.choices, (*loose, yes))
            self.diagram.narrow(choices)
            found = self.diagram.weights(
                0, self.diagram.root(), self.goal, self.params.rounds, self.kept(leaf), leaf.found.point
            )
            half = Leaf(choices, found, leaf.value)
            leaf.halves.append(half)
            self.pushed += 1
            heapq.heappush(self.leaves, (half.value, self.pushed, half))
        self.diagram.narrow(())
        return True

    def kept(self, leaf: Leaf) -> list[Cut]:
        """The cuts of a leaf whose paths are still there."""
        barred = self.diagram.barred
        return [cut for _, cut in leaf.found.mix if not any(barred[k][cut.moves[k]] for k in barred)]

    def loose(self, leaf: Leaf) -> tuple[int, int] | None:
        """The step and the number of a move that some of the paths have: with the largest cost of what is cut off."""
        shares: dict[tuple[int, int], float] = defaultdict(float)
        sizes: dict[int, int] = defaultdict(int)
        for share, cut in leaf.found.mix:
            if share > LEAST:
                for k, move in enumerate(cut.moves):
                    shares[k, int(self.diagram.numbers[k][move])] += share
                    if k != self.diagram.chain.fold:
                        sizes[k] = max(sizes[k], int(abs(self.diagram.costs[k][move]).max()))
        worth = {(k, j): min(share, 1.0 - share) * sizes[k] for (k, j), share in shares.items() if share < 1.0 - LEAST}
        return max(worth, key=lambda choice: worth[choice], default=None)

    def proof(self) -> list[Any]:
        """Leaves, and the choices before them."""
        found: list[Any] = []
        waiting = [self.root]
        while waiting:
            leaf = waiting.pop()
            if leaf.halves:
                found.append(list(leaf.halves[0].choices[-1][:2]))
                waiting += reversed(leaf.halves)
            else:
                found.append(leaf.proof(self.diagram.last))
        return found
