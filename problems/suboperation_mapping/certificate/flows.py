"""Shares that flow between fused operations with a place: part of the writer, standard library only.

The *state* of a phase of a split layer is the places of a fused operation before it and of one after it, as far as
there are such operations. In each state so many shares of a group lie on an accelerator, and so many samples in them:
whole numbers, 0 in all states but the plan's.

- Shares take at least the lines below their table, and the transfers from the operation before it and to the one after.
- A share reads what operations of its own have made: what lies on an accelerator and did not lie there before was
  moved, at the cheapest rate. A WU sends dW to every other holder of an FP of the layer (rule 4).
- Bytes of a whole number of samples take no less than so many times the grains of one, rounded down.
"""

from __future__ import annotations

from itertools import product
from typing import Any

from .graph import Operation
from .lengths import GRAIN, Box, lines
from .times import Writer

Terms = list[tuple[int, int]]


class Flows(Writer):
    """What lies where, and takes; ``phases``: what those of a split layer cost by state, ``holders`` of FP by layer."""

    def __init__(self, instance: dict[str, Any], bound: int, program: Any, box: Box, kind: Any) -> None:
        self.box, self.batch, self.every, self.holders = box, instance["batch"], range(len(box)), dict[int, list[int]]()
        self.sizes = [program.variable(low * number, high * number) for low, high, number in box]
        self.count: dict[tuple[Operation, int, int], Terms] = {}  # shares of a group on an accelerator
        self.held: dict[tuple[Operation, int, int], Terms] = {}  # samples in them
        self.phases: dict[Operation, list[tuple[Any, Terms, dict[tuple[int, int], Terms]]]] = {}
        self.gathered: dict[Any, Terms] = {}  # what a fused operation gathers of a phase in a state, in grains
        super().__init__(instance, bound, program, None, kind=kind)

    def neighbours(self, o: Operation) -> tuple[Any, Any]:
        """The first fused operation before a split one, and the first one after it."""
        after = (v for v in self.x if any(p == o for p, _ in self.before[v]))
        return next((p for p, _ in self.before[o] if p in self.x), None), next(after, None)

    def flow(self, o: Operation) -> None:
        """A phase of a split layer: its states, shares, samples and load."""
        u, v = self.neighbours(o)
        states: dict[Any, Terms] = {(i,): [(self.x[u][i], 1)] for i in self.places} if u else {(None,): []}
        if not u:
            states = {(None,): [(self.program.variable(1, 1), 1)]}
        if v:
            states = {(i, j): [(k, 1)] for ((i,), j), k in self.joint(states, v).items()}
        self.phases[o] = [(state, chosen, self.dealt(o, u, v, state, chosen)) for state, chosen in states.items()]
        for g, size in enumerate(self.sizes):
            self.program.equal([*(t for a in self.places for t in self.held[o, g, a]), (size, -1)], 0)
        for a, terms in enumerate(self.moved(o)):
            shares = (cost.items() for _, _, cost in self.phases[o])
            own = [t for costs in shares for (_, b), cost in costs if self.kind[b] == a for t in cost]
            self.program.at_most([*own, *terms, (self.load[o][a], -GRAIN)], 0)

    def dealt(self, o: Operation, u: Any, v: Any, state: Any, chosen: Terms) -> dict[tuple[int, int], Terms]:
        """In one state: what the shares of a group on an accelerator take, in grains."""
        rows, cost, batch = self.program, {}, []
        for g, (low, high, number) in enumerate(self.box):
            here = []
            for a in self.extended(state):
                x = rows.variable(0, number)
                here.append((x, 1))
                s = (x, low)
                if low < high:
                    s = (rows.variable(0, number * high), 1)
                    rows.at_most([(x, low), (s[0], -1)], 0)
                    rows.at_most([(x, -high), s], 0)
                hull = lines(tuple(self.layers[o[1]][o[0].lower()][a]), low, high)
                took = [(x, hull[0][0]), (s[0], s[1] * hull[0][1])]
                if len(hull) > 1:
                    took = [(rows.variable(0, self.most * self.stands(state, a)), GRAIN)]
                    for alpha, beta in hull:
                        rows.at_most([(x, alpha), (s[0], s[1] * beta), (took[0][0], -GRAIN)], 0)
                rate = self.grains(self.sample_bytes(o, u), state[0], a) if u else 0
                cost[g, a] = [*took, (s[0], s[1] * rate)]
                self.count.setdefault((o, g, self.kind[a]), []).append((x, 1))
                self.held.setdefault((o, g, self.kind[a]), []).append(s)
                batch.append(s)
                if v:
                    rate = self.grains(self.sample_bytes(v, o), a, state[1])
                    self.gathered.setdefault((v, o, state), []).append((s[0], s[1] * rate))
            rows.equal([*here, *((j, -number) for j, _ in chosen)], 0)
        rows.equal([*batch, *((j, -self.batch) for j, _ in chosen)], 0)
        return cost

    def moved(self, o: Operation) -> list[Terms]:
        """Grains that go into a phase of a split layer from other ones, and dW."""
        found: list[Terms] = [[] for _ in self.places]
        rows, weights = self.program, self.layers[o[1]]["weight_bytes"]
        sources = [p for p, _ in self.before[o] if p not in self.x]
        for p, a, (g, (_, high, number)) in product(sources, self.places, list(enumerate(self.box))):
            fixed = weights if (o[0], o[1]) == ("BP", p[1]) else 0
            for size, have, most in ((self.sample_bytes(o, p), self.held, high * number), (fixed, self.count, number)):
                if cost := self.cheapest_grains(size, a):
                    y = rows.variable(0, most)
                    rows.at_most([*have[o, g, a], *((j, -k) for j, k in have[p, g, a]), (y, -1)], 0)
                    found[a].append((y, cost))
        each, shares = [self.cheapest_grains(weights, a) for a in self.places], sum(number for *_, number in self.box)
        if o[0] == "WU" and shares > 1 and min(each):
            holders = self.holders[o[1]] = [rows.variable(0, m) for m in self.members]
            sent = [rows.variable(0, shares * len(self.everywhere)) for _ in self.places]
            rows.at_most([*((h, shares) for h in holders), *((j, -1) for j in sent)], shares)
            for a, h in enumerate(holders):
                found[a].append((sent[a], min(each)))
                for g, (*_, number) in enumerate(self.box):
                    rows.at_most([*self.count[("FP", o[1], 0), g, a], (h, -number)], 0)
        return found

    def loads(self, o: Operation) -> list[Terms]:
        """Of a fused operation, with what it gathers."""
        found = super().loads(o)
        own = [(self.kind[state[1]], terms) for (v, _, state), terms in self.gathered.items() if v == o]
        for a in self.places if own else ():
            found[a].append((self.program.variable(0, self.most), 1))
            self.program.at_most([*(t for b, terms in own if b == a for t in terms), (found[a][-1][0], -GRAIN)], 0)
        return found
