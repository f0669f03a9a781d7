"""Places of operations and how long each occupies its accelerator: part of the writer, standard library only.

- *Joint* choices are products of two 0-1 choices, of which exactly one each is made, so they have the marginals that
  are written. A *configuration* is the accelerators of all shares of a layer in one phase.
- Transfers (rule 5): ``y >= x[o][a] - x[p][a]`` is 1 where ``p`` lies elsewhere; it costs the cheapest way to ``a``.
  In a ratio where ways differ, the places of both say which one it is. What a fused operation gathers follows from
  its place and a configuration, dW (rule 4) from the places of the WU and of the layer's FP. All but ``y`` is exact.
- Two equal shares may change names in all operations, so their first FP places are sorted.
- Where links are shared, transfers that need the same port or the one medium take turns: together they take no longer
  than the makespan. What is gathered, and dW, leaves a port that is known; of a ``y`` only the receiver is.
- Of a class of accelerators (:mod:`~.alike`) all of this is the sum over its members.
- Without a ratio, split layers are samples that flow: the shares on ``a`` hold ``s`` samples and take at least the
  cheapest ticks per sample times ``s``; what they move costs nothing.
"""

from __future__ import annotations

from itertools import pairwise, product
from typing import Any

from .graph import Graph, Operation


class Loads(Graph):
    """``x[o][a]``, ``load[o][a]`` and ``last``, the makespan."""

    def __init__(self, instance: dict[str, Any], bound: int, program: Any, ratio: Any, kind: Any = ()) -> None:
        super().__init__(instance, ratio, kind)
        self.program, self.most = program, min(bound - 1, self.serial())
        self.last = program.variable(0, self.most)
        program.cutoff = program.at_most([(self.last, 1)], self.most)
        self.x = {o: [program.variable(0, 1) for _ in self.places] for o in self.operations if ratio or o[2] < 0}
        for x in self.x.values():
            program.equal([(j, 1) for j in x], 1)
        chosen = [(p, i) for p, i in self.nodes if ratio and p != "WU" and self.split(i)]
        self.spread = {(p, i): self.configurations(p, i) for p, i in chosen}
        self.load = {o: [program.variable(0, self.most * m) for m in self.members] for o in self.operations}
        self.ways: dict[Any, list[tuple[int, int]]] = {}
        for o in self.operations:
            if o in self.x:
                for terms, j in zip(self.loads(o), self.load[o], strict=True):
                    program.equal([*terms, (j, -1)], 0)
            else:
                self.flow(o)
        for way, terms in self.ways.items():
            program.at_most([*terms, (self.last, -self.members[way[1]] if way[0] == "in" else -1)], 0)

    def carry(self, j: int, ticks: int, sender: Any, receiver: int) -> int:
        """The ticks of a transfer that takes place if ``j`` is 1, which its ports or the medium are taken for."""
        medium = self.instance.get("medium", "links")
        needs = {"links": (), "ports": (("out", sender), ("in", receiver)), "shared": ("medium",)}[medium]
        for way in needs:
            if ticks and way != ("out", None):
                self.ways.setdefault(way, []).append((j, ticks))
        return ticks

    def configurations(self, phase: str, layer: int) -> dict[Any, list[tuple[int, int]]]:
        """A choice: the variable of every configuration."""
        parts, first = self.of(phase, layer), next(i for i in range(len(self.layers)) if self.split(i))
        if len(parts) == 1:
            return {(a,): [(self.x[parts[0]][a], 1)] for a in self.places}
        equal = [b for b, (r, q) in enumerate(pairwise(self.ratio)) if r == q and (phase, layer) == ("FP", first)]
        chosen = [c for c in product(self.places, repeat=len(parts)) if all(c[b] <= c[b + 1] for b in equal)]
        found = {c: [(self.program.variable(0, 1), 1)] for c in chosen}
        for b, o in enumerate(parts):
            for a in self.places:
                self.program.equal([*(t for c in found if c[b] == a for t in found[c]), (self.x[o][a], -1)], 0)
        return found

    def joint(self, choice: dict[Any, list[tuple[int, int]]], o: Operation) -> dict[tuple[Any, int], int]:
        """The products of a choice with the place of an operation."""
        found = {(c, a): self.program.variable(0, 1) for c in choice for a in self.extended(c)}
        for c, terms in choice.items():
            self.program.equal([*((found[c, a], 1) for a in self.extended(c)), *((j, -v) for j, v in terms)], 0)
        for q in self.places:
            self.program.equal([*((j, 1) for (_, a), j in found.items() if self.kind[a] == q), (self.x[o][q], -1)], 0)
        return found

    def loads(self, o: Operation) -> list[list[tuple[int, int]]]:
        """Per accelerator the duration of an operation that lies there."""
        found = [[(self.x[o][a], self.compute(o, a))] for a in self.places]
        gathered = dict.fromkeys(p[:2] for p, _ in self.before[o] if o[2] < 0 <= p[2] and len(self.shares) > 1)
        exact = [(self.spread[node], [size for p, size in self.before[o] if p[:2] == node]) for node in gathered]
        others = [(p, s) for p, s in self.before[o] if p[:2] not in gathered and (o[0], p[:2]) != ("WU", ("FP", o[1]))]
        pairs = [(i, a) for a in self.everywhere for i in self.everywhere if self.ratio and i != a]
        unlike = {s for _, s in others if len({(a, self.ticks(s, i, a)) for i, a in pairs}) > len(self.everywhere)}
        exact += [({(i,): [(self.x[p][i], 1)] for i in self.places}, [s]) for p, s in others if s in unlike]
        for choice, sizes in exact:
            for (c, a), j in self.joint(choice, o).items():
                moves = zip(c, sizes, strict=True)
                found[a].append((j, sum(self.carry(j, self.ticks(size, i, a), i, a) for i, size in moves)))
        for p, size in others:
            for a in self.places:
                cost = 0 if size in unlike else self.cheapest(size, a)
                if cost:
                    y = self.program.variable(0, 1)
                    self.program.at_most([(self.x[o][a], 1), (self.x[p][a], -1), (y, -1)], 0)
                    found[a].append((y, self.carry(y, cost, None, a)))
        if o[0] == "WU":
            size, weights = self.before[o][-1][1], self.layers[o[1]]["weight_bytes"]
            classes: dict[Any, list[tuple[int, int]]] = {}
            for c, terms in self.spread["FP", o[1]].items():
                classes.setdefault((c[o[2]], frozenset(c)), []).extend(terms)
            for ((place, holders), a), j in self.joint(classes, o).items():
                moved = self.carry(j, self.ticks(size, place, a), place, a)
                moved += sum(self.carry(j, self.ticks(weights, a, h), a, h) for h in sorted(holders))
                found[a].append((j, moved))
        return found

    def flow(self, o: Operation) -> None:
        """Samples of a phase of a split layer, and the least ticks that they take: ``k L >= ticks(k) s``."""
        batch = self.instance["batch"]
        amounts = [self.program.variable(0, batch) for _ in self.places]
        self.program.equal([(s, 1) for s in amounts], batch)
        for a, s in enumerate(amounts):
            table = self.layers[o[1]][o[0].lower()][a]
            k = min(range(1, batch + 1), key=lambda k: table[k - 1] / k)
            if all(ticks * k >= table[k - 1] * i for i, ticks in enumerate(table, 1)):
                self.program.at_most([(s, table[k - 1]), (self.load[o][a], -k)], 0)
