"""Large-neighbourhood search: CP-SAT decides mapping and order of some operations anew, all others stay as they are.

1.  A *neighbourhood*, in turn: operations that start one after the other in the plan, or all operations of layers one
    after the other. The others keep their accelerators and, among themselves, the order on each.
2.  CP-SAT gets the complete model of the ratio with these fixed and looks for a plan below the makespan.
3.  None: the next neighbourhood has one operation more. Not decided in time: two fewer. On shared links the model is a
    relaxation: a plan that is no better where transfers wait counts as none.

References
----------
Shaw, "Using constraint programming and local search methods to solve vehicle routing problems", CP 1998.
"""

from __future__ import annotations

import math
import random
from collections.abc import Collection
from itertools import pairwise

import numpy as np

from mapgap.core import Budget, SolveResult, Status
from mapgap.formulations.suboperation_mapping.cpsat import UnrelaxedRatioModel
from mapgap.formulations.suboperation_mapping.params import Portfolio
from mapgap.formulations.suboperation_mapping.ratio_model import shares_links
from mapgap.formulations.suboperation_mapping.ratio_sweep import verified
from mapgap.problems.suboperation_mapping.lowered.mapped import Mapped
from mapgap.solvers.model import prove
from mapgap.solvers.turns import in_turn


class Windows:
    """Neighbourhoods of a plan, to be searched one by one.

    Parameters
    ----------
    size : int
        Operations of the first one.
    question_s : float
        Seconds of each.

    Attributes
    ----------
    best : Mapped
        The plan so far; only a better one replaces it.
    over : bool
        All operations together were a neighbourhood that holds nothing better.
    proven : bool
        So the ratio has no better plan.
    """

    def __init__(
        self, start: Mapped, seed: int, size: int = Portfolio.window, question_s: float = Portfolio.question_s
    ) -> None:
        self.best, self.rng, self.turn = start, random.Random(seed), 0
        self.size, self.question_s, self.over = size, question_s, False
        self.proven = False

    def improve(self, seconds: float, most: float = math.inf) -> Mapped:
        """Search so many neighbourhoods, or until the time is over, or one of all operations holds nothing better."""
        budget, end = Budget(seconds).start(), self.turn + most
        while not self.over and self.turn < end and not budget.exhausted:
            free = self.drawn()
            status = self.search(free, budget.remaining_s)
            whole = len(free) == self.best.lowered.n
            self.proven = whole and status is Status.INFEASIBLE
            self.over = self.proven or (whole and status is Status.OPTIMAL and shares_links(self.best.lowered))
        return self.best

    def drawn(self) -> set[int]:
        """Step 1."""
        self.turn += 1
        low = self.best.lowered
        size = min(low.n, self.size)
        if self.turn % 2:
            first = self.rng.randrange(low.n - size + 1)
            return set(np.argsort(self.best.start, kind="stable")[first : first + size].tolist())
        members: dict[int, list[int]] = {}
        for o, (_, layer, _) in enumerate(low.operations):
            members.setdefault(layer, []).append(o)
        layers, free = sorted(members), set[int]()
        first = self.rng.randrange(len(layers))
        for layer in [*layers[first:], *layers[:first]]:
            if free and len(free) + len(members[layer]) > size:
                break
            free.update(members[layer])
        return free

    def search(self, free: Collection[int], time_s: float) -> Status:
        """Steps 2 and 3; what the engine says of the neighbourhood."""
        best = self.best
        model = neighbourhood(best, free)
        asked = Budget(min(self.question_s, max(0.01, time_s)), seed=self.rng.randrange(2**31)).start()
        found: list[Mapped | None] = []

        def ask(_: str) -> SolveResult:
            result = prove(model, asked, announce=False)
            found.append(verified(best.lowered, result))
            return result

        result = in_turn(ask, (model.engine,))
        if found and found[-1] is not None and found[-1].makespan < best.makespan:
            self.best = found[-1]
        elif result.status is Status.INFEASIBLE or (result.status is Status.OPTIMAL and shares_links(best.lowered)):
            self.size = min(best.lowered.n, self.size + 1)
        elif result.status is Status.UNKNOWN:
            self.size = max(2, self.size - 2)
        return result.status


def neighbourhood(best: Mapped, free: Collection[int]) -> UnrelaxedRatioModel:
    """The plans below a makespan in which all operations but the ``free`` ones keep accelerators and order."""
    location = best.location.copy()
    location[list(free)] = -1
    model = UnrelaxedRatioModel(best.lowered, location=location, cutoff=best.makespan)
    for a in range(best.lowered.accelerators):
        kept = [o for o in best.sequence.tolist() if location[o] == a]
        for p, q in pairwise(kept):
            model.program.add(model.start[q] >= model.end[p])
    return model
