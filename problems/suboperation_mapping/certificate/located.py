"""The program of all ratios of a box: part of the writer, standard library only.

As in the program of all ratios, only fused operations have a place and a start, and the DRAM is left out; shares are
those of :mod:`~.flows`.

- A phase of a split layer lies between two fused operations. It lasts as long as the load of any accelerator, as any of
  its shares, and as its least length on any ratio of the box (:mod:`~.shortest`), in its state.
- So does the WU of a layer that reads the input of the network, of which there is no BP: the makespan is what follows.
- A phase of FP has the shares on one accelerator, on two, and so on: with each number it has a least length, and of
  the number WU knows, which sends dW to them.
- A phase that is short leaves more to gather: it and what the fused operation after it gathers of it have a least sum.
- Equal accelerators are in one class (:mod:`~.alike`), or the first of them is told apart from the others. Then
  exchanging two of them brings the fused operation in the middle of the network to the first one: it lies on no other.
"""

from __future__ import annotations

from typing import Any

from .alike import classes, equal, renamed
from .flows import Flows
from .gathering import with_gathering
from .graph import Operation
from .lengths import GRAIN, Box
from .shortest import by_holders, least_length


class Located(Flows):
    """One program: ``program``; with ``apart`` the first accelerators of all classes are told apart."""

    def __init__(self, instance: dict[str, Any], bound: int, program: Any, box: Box, apart: bool = False) -> None:
        order, kind = classes(instance, apart)
        super().__init__(renamed(instance, order), bound, program, box, kind)
        self.lengths: dict[Operation, list[tuple[Any, int]]] = {}
        for o in self.phases:
            if o[0] != "WU":
                self.between(o)
        for x in list(self.x.values())[len(self.x) // 2 :][:1]:
            for a in self.places:
                if any(equal(self.instance, a, b) for b in range(a)):
                    program.at_most([(x[a], 1)], 0)
        # These come after all that certificates without them name by its number.
        for o in self.phases:
            if o[0] == "WU" and not self.layers[o[1]]["inputs"]:
                self.between(o)
        for o in self.phases:
            if o[0] == "FP" and o[1] in self.holders:
                self.holding(o)
        for o in self.phases:
            if o[0] != "WU":
                self.gathering(o)

    def between(self, o: Operation) -> None:
        """What comes after a phase starts when it has lasted since what comes before it."""
        rows, u, length = self.program, self.neighbours(o)[0], self.lengths.setdefault(o, [])
        for state, chosen, cost in self.phases[o]:
            d = rows.variable(0, self.most)
            length.append((state[0], d))
            told = self.extended(state)
            for a in told:
                rows.at_most([*(t for g in self.every for t in cost[g, a]), (d, -GRAIN * self.stands(state, a))], 0)
            for g, (*_, number) in enumerate(self.box):
                rows.at_most([*(t for a in told for t in cost[g, a]), (d, -number * GRAIN)], 0)
            least = least_length(*self.ticks_of(o, state[0]), self.box, self.batch)
            rows.at_most([*((j, least) for j, _ in chosen), (d, -1)], 0)
        after = [self.start[v] for v in self.x if any(p == o for p, _ in self.before[v])]
        for j in after or [self.last]:
            rows.at_most([*(self.end(u) if u else ()), *((d, 1) for _, d in length), (j, -1)], 0)

    def ticks_of(self, o: Operation, i: Any) -> tuple[tuple[tuple[int, ...], ...], tuple[int, ...]]:
        """By accelerator the ticks of a phase, and the grains that a sample takes to come from the one before it."""
        size = self.sample_bytes(o, self.neighbours(o)[0]) if i is not None else 0
        rates = tuple(self.grains(size, i, a) if size else 0 for a in self.everywhere)
        return tuple(map(tuple, self.layers[o[1]][o[0].lower()])), rates

    def holding(self, o: Operation) -> None:
        """A phase of FP lasts as long as the number of accelerators that hold one makes it."""
        rows, counts = self.program, list[tuple[int, int]]()
        most = min(len(self.everywhere), sum(number for *_, number in self.box))
        for i in dict.fromkeys(i for i, _ in self.lengths[o]):
            numbers = [rows.variable(0, 1) for _ in range(most)]
            place = [] if i is None else [(self.x[self.neighbours(o)[0]][i], -1)]
            rows.equal([*((j, 1) for j in numbers), *place], 0 if place else 1)
            times = by_holders(*self.ticks_of(o, i), self.box, self.batch, most)
            last = [(d, -1) for k, d in self.lengths[o] if k == i]
            rows.at_most([*zip(numbers, times, strict=True), *last], 0)
            counts += zip(numbers, range(1, most + 1), strict=True)
        rows.at_most([*counts, *((j, -1) for j in self.holders[o[1]])], 0)

    def gathering(self, o: Operation) -> None:
        """A phase and what is gathered of it, of which nothing has to move that is made where it goes."""
        v = self.neighbours(o)[1]
        if v is None:
            return
        for (state, chosen, _), (i, d) in zip(self.phases[o], self.lengths[o], strict=True):
            if rate := self.cheapest_grains(self.sample_bytes(v, o), state[1]):
                least = with_gathering(*self.ticks_of(o, i), self.box, self.batch, state[1], rate)
                both = [(d, -GRAIN), *((k, -c) for k, c in self.gathered[v, o, state])]
                self.program.at_most([*((k, least) for k, _ in chosen), *both], 0)
