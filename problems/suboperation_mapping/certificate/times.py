"""Starts of operations, and what must fit before, between and after them: part of the writer, standard library only.

- An operation starts when its predecessors have ended. What must run before it fits, on each accelerator, before its
  start; what must run after it between its end and the makespan; all operations before the makespan; what must run
  between two fused operations between them.
- So does a phase of a layer that lies between them, whose length is the largest sum over an accelerator: it follows
  from the configuration, the place of the first fused operation, and which shares of a BP fetch their weights (at the
  cheapest cost). Other transfers are left out of that length.
- Order: of two operations on one accelerator one ends before the other starts. The row that says so is switched off by
  what the first can end after the other starts in any plan: least waits before and after them are known.
"""

from __future__ import annotations

from itertools import combinations, product
from typing import Any

from .graph import Operation
from .memory import Memory


class Writer(Memory):
    """One program: ``program``; of all ratios if ``ratio`` is ``None``."""

    def __init__(
        self, instance: dict[str, Any], bound: int, program: Any, ratio: Any, ordered: bool = False, kind: Any = ()
    ) -> None:
        super().__init__(instance, bound, program, ratio, kind)
        self.start = {o: program.variable(0, self.most) for o in self.x}
        self.times()
        for node in self.spread if len(self.shares) > 1 else ():
            self.stage(*node)
        self.orders: dict[tuple[Operation, Operation], tuple[int, int]] = {}
        if ordered:
            below = {o: {p for p in self.operations if o in self.above[p]} for o in self.operations}
            self.head = self.waits(self.operations, self.above)
            self.tail = self.waits(self.operations[::-1], below)
            for o, p in combinations(self.operations, 2):
                if o not in self.above[p]:
                    self.order(o, p)
        if ratio:
            self.memory()

    def waits(self, listed: list[Operation], before: dict[Operation, set[Operation]]) -> dict[Operation, int]:
        """Least ticks until each may start, if those of ``before`` come first: some one, and then all between."""
        least = {o: min(self.compute(o, a) for a in self.places) for o in listed}
        found: dict[Operation, int] = {}
        for o in listed:
            sums = [sum(least[q] for q in before[o])]
            own = [0]
            for p in before[o]:
                own.append(found[p] + least[p])
                sums.append(sum(least[q] for q in before[o] if p in before[q]))
            found[o] = max(w - (-s // len(self.places)) for w, s in zip(own, sums, strict=True))
        return found

    def end(self, o: Operation, times: int = 1) -> list[tuple[int, int]]:
        return [(self.start[o], times), *((j, times) for j in self.load[o])]

    def times(self) -> None:
        """Precedence, and on every accelerator what fits before, after and between."""
        row, fused = self.program.at_most, [o for o in self.operations if o[2] < 0]
        for a, m in enumerate(self.members):
            row([*((self.load[o][a], 1) for o in self.operations), (self.last, -m)], 0)
        for v in self.start:
            row([*self.end(v), (self.last, -1)], 0)
            for p, _ in self.before[v]:
                if p in self.start:
                    row([*self.end(p), (self.start[v], -1)], 0)
            earlier = [u for u in fused if v[2] < 0 and u in self.above[v]]
            nearest = [u for u in earlier if not any(u in self.above[w] for w in earlier)]
            for a, m in enumerate(self.members):
                row([*((self.load[o][a], 1) for o in self.above[v]), (self.start[v], -m)], 0)
                later = [o for o in self.operations if v in self.above[o]]
                row([*self.end(v, m), *((self.load[o][a], 1) for o in later), (self.last, -m)], 0)
                for u in nearest:
                    inner = [o for o in self.above[v] if u in self.above[o]]
                    row([*self.end(u, m), *((self.load[o][a], 1) for o in inner), (self.start[v], -m)], 0)

    def stage(self, phase: str, layer: int) -> None:
        """The length of a phase of a split layer between a fused operation before it and one after it."""
        parts = self.of(phase, layer)
        after = [self.start[v] for v in self.start if v[2] < 0 and any(p == parts[0] for p, _ in self.before[v])]
        masks = list(product((0, 1) if phase == "BP" else (0,), repeat=len(parts)))
        took = [[self.compute(o, a) for a in self.places] for o in parts]
        fetch = [[self.cheapest(self.before[o][-1][1] if phase == "BP" else 0, a) for a in self.places] for o in parts]
        for u in tuple(p for p, _ in self.before[parts[0]] if p[2] < 0) or (None,):
            sizes = [next((size for p, size in self.before[o] if p == u), 0) for o in parts]
            reads = [[[self.ticks(size, i, a) for a in self.places] for size in sizes] for i in self.places]
            chosen: Any = {(c, -1): terms[0][0] for c, terms in self.spread[phase, layer].items()}
            chosen = self.joint(self.spread[phase, layer], u) if u else chosen
            length: list[tuple[int, int]] = []
            fetched: dict[tuple[int, int], list[tuple[int, int]]] = {}
            for (c, i), j in chosen.items():
                named = [self.program.variable(0, 1) for _ in masks] if phase == "BP" else [j]
                if phase == "BP":
                    self.program.equal([*((k, 1) for k in named), (j, -1)], 0)
                for k, mask in zip(named, masks, strict=True):
                    sums = [0 for _ in self.places]
                    for b, a in enumerate(c):
                        sums[a] += took[b][a] + mask[b] * fetch[b][a] + reads[i][b][a]
                        if mask[b]:
                            fetched.setdefault((b, a), []).append((k, -1))
                    length.append((k, max(sums)))
            for (b, o), a in product(enumerate(parts if phase == "BP" else ()), self.places):
                own = self.x["FP", layer, o[2]][a]
                self.program.at_most([(self.x[o][a], 1), (own, -1), *fetched.get((b, a), ())], 0)
            for v in after or [self.last]:
                self.program.at_most([*(self.end(u) if u else ()), *length, (v, -1)], 0)

    def order(self, o: Operation, p: Operation) -> None:
        """Of two operations on one accelerator one ends before the other starts."""
        first, second = (self.program.variable(0, 1) for _ in range(2))
        self.orders[o, p] = first, second
        for a in self.places:
            self.program.at_most([(self.x[o][a], 1), (self.x[p][a], 1), (first, -1), (second, -1)], 1)
        for b, q, r in ((first, o, p), (second, p, o)):
            free = self.most - self.tail[q] - self.head[r]  # what q can end after r starts
            self.program.at_most([*self.end(q), (self.start[r], -1), (b, free)], free)
