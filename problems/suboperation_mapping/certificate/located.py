"""The program of all ratios of a box: part of the writer, standard library only.

As in the program of all ratios, only fused operations have a place and a start, and the DRAM is left out; shares are
those of :mod:`~.flows`.

- A phase of a split layer lies between two fused operations. It lasts as long as the load of any accelerator, as any of
  its shares, and as its least length on any ratio of the box (:mod:`~.lengths`), in its state.
- So does the WU of a layer that reads the input of the network, of which there is no BP: the makespan is what follows.
- Equal accelerators are in one class (:mod:`~.alike`), or the first of them is told apart from the others. Then
  exchanging two of them brings the fused operation in the middle of the network to the first one: it lies on no other.
"""

from __future__ import annotations

from typing import Any

from .alike import classes, equal, renamed
from .flows import Flows
from .graph import Operation
from .lengths import GRAIN, Box, least_length


class Located(Flows):
    """One program: ``program``; with ``apart`` the first accelerators of all classes are told apart."""

    def __init__(self, instance: dict[str, Any], bound: int, program: Any, box: Box, apart: bool = False) -> None:
        order, kind = classes(instance, apart)
        super().__init__(renamed(instance, order), bound, program, box, kind)
        for o in self.phases:
            if o[0] != "WU":
                self.between(o)
        for x in list(self.x.values())[len(self.x) // 2 :][:1]:
            for a in self.places:
                if any(equal(self.instance, a, b) for b in range(a)):
                    program.at_most([(x[a], 1)], 0)
        for o in self.phases:
            if o[0] == "WU" and not self.layers[o[1]]["inputs"]:
                self.between(o)

    def between(self, o: Operation) -> None:
        """What comes after a phase starts when it has lasted since what comes before it."""
        rows, length, u = self.program, [], self.neighbours(o)[0]
        tables = tuple(map(tuple, self.layers[o[1]][o[0].lower()]))
        for state, chosen, cost in self.phases[o]:
            d = rows.variable(0, self.most)
            length.append((d, 1))
            told = self.extended(state)
            for a in told:
                rows.at_most([*(t for g in self.every for t in cost[g, a]), (d, -GRAIN * self.stands(state, a))], 0)
            for g, (*_, number) in enumerate(self.box):
                rows.at_most([*(t for a in told for t in cost[g, a]), (d, -number * GRAIN)], 0)
            rates = tuple(self.grains(self.sample_bytes(o, u), state[0], a) if u else 0 for a in self.everywhere)
            least = least_length(tables, rates, self.box, self.batch)
            rows.at_most([*((j, least) for j, _ in chosen), (d, -1)], 0)
        after = [self.start[v] for v in self.x if any(p == o for p, _ in self.before[v])]
        for j in after or [self.last]:
            rows.at_most([*(self.end(u) if u else ()), *length, (j, -1)], 0)
