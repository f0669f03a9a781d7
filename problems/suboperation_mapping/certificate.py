"""The writer of sub-operation mapping for certificates; rules as in the package's docstring. Standard library only.

A certificate refutes one program per ratio, ``{"40,24": tree, …}`` with every partition of the batch into at most N
shares (rule 8: shares are interchangeable), or one program for all ratios at once, ``{"all": tree}``. A key that ends
in ``" order"`` asks for the program with orders.

Every plan of a makespan below the bound is a point of the program of its ratio: ``x[o][a]`` places operation ``o``, its
start is that of the plan's timetable, ``load[o][a]`` how long it occupies accelerator ``a``, ``last`` the makespan. All
are integers of at most ``bound - 1``. Every row holds:

- *Joint* choices are products of two 0-1 choices, of which exactly one each is made, so they have the marginals that
  are written. A *configuration* is the accelerators of all shares of a layer in one phase.
- Transfers (rule 5): ``y >= x[o][a] - x[p][a]`` is 1 where ``p`` lies elsewhere; it costs the cheapest way to ``a``.
  What a fused operation gathers follows from its place and a configuration, dW (rule 4) from the places of the WU and
  of the layer's FP: these are exact.
- Two equal shares may change names in all operations, so their first FP places are sorted.
- Time: an operation starts when its predecessors have ended. What must run before it fits, on each accelerator, before
  its start; what must run after it between its end and the makespan; all operations before the makespan; what must run
  between two fused operations between them. So does a phase of a layer that lies between them, whose length is the
  largest sum over an accelerator: it follows from the configuration, the place of the first fused operation, and which
  shares of a BP fetch their weights (at the cheapest cost). Other transfers are left out of that length.
- Order: of two operations on one accelerator one ends before the other starts.

With ``all``, split layers are samples that flow: the shares on ``a`` hold ``s`` samples and take at least the cheapest
ticks per sample times ``s``; what they move costs nothing, and only fused operations have a start. The DRAM is left out
of both.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, pairwise, product
from typing import Any

SENSE = "min"
Operation = tuple[str, int, int]


def cases(instance: dict[str, Any], bound: int, new: Any, names: Any) -> Iterator[tuple[str, Any]]:
    """The programs to be refuted, by name, given the names under which there are trees."""
    if "all" in names:
        yield "all", Writer(instance, bound, new(), None).program
        return
    for ratio in partitions(instance["batch"], instance["batch"], len(instance["accelerators"])):
        name = ",".join(map(str, ratio))
        ordered = f"{name} order" in names
        yield f"{name} order" if ordered else name, Writer(instance, bound, new(), ratio, ordered).program


def partitions(batch: int, largest: int, parts: int) -> Iterator[tuple[int, ...]]:
    """Non-increasing, without zeros."""
    if batch == 0:
        yield ()
    elif parts:
        for first in range(min(batch, largest), 0, -1):
            for rest in partitions(batch - first, first, parts - 1):
                yield (first, *rest)


class Writer:
    """One program: ``program``; of all ratios if ``ratio`` is ``None``."""

    def __init__(self, instance: dict[str, Any], bound: int, program: Any, ratio: Any, ordered: bool = False) -> None:
        self.instance, self.layers, self.program, self.ratio = instance, instance["layers"], program, ratio
        self.most, self.places = bound - 1, range(len(instance["accelerators"]))
        self.shares = range(1 if ratio is None else len(ratio))
        self.consumers = [
            [(c, e["bytes"]) for c, layer in enumerate(self.layers) for e in layer["inputs"] if e["source"] == i]
            for i in range(len(self.layers))
        ]
        backward = [(p, i) for i in reversed(range(len(self.layers))) for p in ("WU", "BP")]
        nodes = [("FP", i) for i in range(len(self.layers))] + backward
        nodes = [(p, i) for p, i in nodes if p == "FP" or (self.layers[i]["inputs"] if p == "BP" else self.split(i))]
        self.operations = [o for p, i in nodes for o in self.of(p, i)]  # in a topological order
        self.before = {o: self.predecessors(o) for o in self.operations}
        self.above: dict[Operation, set[Operation]] = {}
        for o in self.operations:
            self.above[o] = {q for p, _ in self.before[o] for q in (p, *self.above[p])}
        self.last = program.variable(0, self.most)
        program.cutoff = program.at_most([(self.last, 1)], self.most)
        self.x = {o: [program.variable(0, 1) for _ in self.places] for o in self.operations if ratio or o[2] < 0}
        for x in self.x.values():
            program.equal([(j, 1) for j in x], 1)
        self.spread = {(p, i): self.configurations(p, i) for p, i in nodes if ratio and p != "WU" and self.split(i)}
        self.load = {o: [program.variable(0, self.most) for _ in self.places] for o in self.operations}
        for o in self.operations:
            if o in self.x:
                for terms, j in zip(self.loads(o), self.load[o], strict=True):
                    program.equal([*terms, (j, -1)], 0)
            else:
                self.flow(o)
        self.start = {o: program.variable(0, self.most) for o in self.x}
        self.times()
        for node in self.spread if len(self.shares) > 1 else ():
            self.stage(*node)
        self.orders: list[int] = []
        for o, p in combinations(self.operations, 2) if ordered else ():
            if o not in self.above[p]:
                self.order(o, p)

    def split(self, layer: int) -> bool:
        return bool(self.layers[layer]["kind"] == "split")

    def of(self, phase: str, layer: int) -> list[Operation]:
        """The operations of a phase of a layer."""
        return [(phase, layer, b) for b in (self.shares if self.split(layer) else (-1,))]

    def samples(self, o: Operation) -> int:
        return int(self.instance["batch"] if o[2] < 0 else self.ratio[o[2]] if self.ratio else 0)

    def predecessors(self, o: Operation) -> list[tuple[Operation, int]]:
        """With the bytes that each sends (rules 2 to 4)."""
        phase, index, share = o
        layer, consumers = self.layers[index], self.consumers[index]
        sources = [(e["source"], e["bytes"]) for e in layer["inputs"]] if phase == "FP" else consumers
        found = []
        for other, size in sources:
            parts = self.of("FP" if phase == "FP" else "BP", other)
            for p in parts if share < 0 or not self.split(other) else [parts[share]]:
                found.append((p, size * min(self.samples(o), self.samples(p))))
        if phase != "FP":
            own = layer["weight_bytes"] if phase == "BP" else layer["network_input_bytes"] * self.samples(o)
            if phase == "WU":
                own += sum(e["bytes"] for e in layer["inputs"]) * self.samples(o)
            found.append((("FP", index, share), own + (0 if consumers else layer["output_bytes"] * self.samples(o))))
        return found

    def ticks(self, size: int, i: int, j: int) -> int:
        """Of a transfer (rule 6)."""
        return 0 if i == j else -(-size * 10**9 // (self.instance["bandwidth"][i][j] * self.instance["tick_ns"]))

    def cheapest(self, size: int, a: int) -> int:
        """Least ticks of a transfer to ``a`` from elsewhere."""
        return min((self.ticks(size, i, a) for i in self.places if i != a), default=0)

    def compute(self, o: Operation, a: int) -> int:
        return int(self.layers[o[1]][o[0].lower()][a][self.samples(o) - 1 if o[2] >= 0 else 0])

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
        found = {(c, a): self.program.variable(0, 1) for c in choice for a in self.places}
        for c, terms in choice.items():
            self.program.equal([*((found[c, a], 1) for a in self.places), *((j, -v) for j, v in terms)], 0)
        for a in self.places:
            self.program.equal([*((found[c, a], 1) for c in choice), (self.x[o][a], -1)], 0)
        return found

    def loads(self, o: Operation) -> list[list[tuple[int, int]]]:
        """Per accelerator the duration of an operation that lies there."""
        found = [[(self.x[o][a], self.compute(o, a))] for a in self.places]
        gathered = dict.fromkeys(p[:2] for p, _ in self.before[o] if o[2] < 0 <= p[2] and len(self.shares) > 1)
        for node in gathered:
            sizes = [size for p, size in self.before[o] if p[:2] == node]
            for (c, a), j in self.joint(self.spread[node], o).items():
                found[a].append((j, sum(self.ticks(size, i, a) for i, size in zip(c, sizes, strict=True))))
        for p, size in self.before[o]:
            if p[:2] in gathered or (o[0] == "WU" and p[:2] == ("FP", o[1])):
                continue
            for a in self.places:
                cost = self.cheapest(size, a)
                if cost:
                    y = self.program.variable(0, 1)
                    self.program.at_most([(self.x[o][a], 1), (self.x[p][a], -1), (y, -1)], 0)
                    found[a].append((y, cost))
        if o[0] == "WU":
            size, weights = self.before[o][-1][1], self.layers[o[1]]["weight_bytes"]
            classes: dict[Any, list[tuple[int, int]]] = {}
            for c, terms in self.spread["FP", o[1]].items():
                classes.setdefault((c[o[2]], frozenset(c)), []).extend(terms)
            for ((place, holders), a), j in self.joint(classes, o).items():
                moved = self.ticks(size, place, a) + sum(self.ticks(weights, a, h) for h in holders)
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

    def end(self, o: Operation, sign: int = 1) -> list[tuple[int, int]]:
        return [(self.start[o], sign), *((j, sign) for j in self.load[o])]

    def times(self) -> None:
        """Precedence, and on every accelerator what fits before, after and between."""
        row, fused = self.program.at_most, [o for o in self.operations if o[2] < 0]
        for a in self.places:
            row([*((self.load[o][a], 1) for o in self.operations), (self.last, -1)], 0)
        for v in self.start:
            row([*self.end(v), (self.last, -1)], 0)
            for p, _ in self.before[v]:
                if p in self.start:
                    row([*self.end(p), (self.start[v], -1)], 0)
            earlier = [u for u in fused if v[2] < 0 and u in self.above[v]]
            nearest = [u for u in earlier if not any(u in self.above[w] for w in earlier)]
            for a in self.places:
                row([*((self.load[o][a], 1) for o in self.above[v]), (self.start[v], -1)], 0)
                later = [o for o in self.operations if v in self.above[o]]
                row([*self.end(v), *((self.load[o][a], 1) for o in later), (self.last, -1)], 0)
                for u in nearest:
                    inner = [o for o in self.above[v] if u in self.above[o]]
                    row([*self.end(u), *((self.load[o][a], 1) for o in inner), (self.start[v], -1)], 0)

    def stage(self, phase: str, layer: int) -> None:
        """The length of a phase of a split layer between a fused operation before it and one after it."""
        parts = self.of(phase, layer)
        after = [self.start[v] for v in self.start if v[2] < 0 and any(p == parts[0] for p, _ in self.before[v])]
        fused: list[Any] = [p for p, _ in self.before[parts[0]] if p[2] < 0]
        for u in fused or [None]:
            chosen: Any = {(c, -1): terms[0][0] for c, terms in self.spread[phase, layer].items()}
            chosen = self.joint(self.spread[phase, layer], u) if u else chosen
            length: list[tuple[int, int]] = []
            fetched: dict[tuple[int, int], list[tuple[int, int]]] = {}
            for (c, i), j in chosen.items():
                masks: dict[int, tuple[int, ...]] = {j: (0,) * len(parts)}
                if phase == "BP":
                    masks = {self.program.variable(0, 1): f for f in product((0, 1), repeat=len(parts))}
                    self.program.equal([*((k, 1) for k in masks), (j, -1)], 0)
                for k, mask in masks.items():
                    sums = [0 for _ in self.places]
                    for b, (o, a) in enumerate(zip(parts, c, strict=True)):
                        sums[a] += self.compute(o, a) + (self.cheapest(self.before[o][-1][1], a) if mask[b] else 0)
                        sums[a] += self.ticks(next(size for p, size in self.before[o] if p == u), i, a) if u else 0
                        fetched.setdefault((b, a), []).append((k, -mask[b]))
                    length.append((k, max(sums)))
            for b, o in enumerate(parts if phase == "BP" else ()):
                for a in self.places:
                    own = self.x["FP", layer, o[2]][a]
                    self.program.at_most([(self.x[o][a], 1), (own, -1), *fetched[b, a]], 0)
            for v in after or [self.last]:
                self.program.at_most([*(self.end(u) if u else ()), *length, (v, -1)], 0)

    def order(self, o: Operation, p: Operation) -> None:
        """Of two operations on one accelerator one ends before the other starts."""
        first, second = (self.program.variable(0, 1) for _ in range(2))
        self.orders += [first, second]
        for a in self.places:
            self.program.at_most([(self.x[o][a], 1), (self.x[p][a], 1), (first, -1), (second, -1)], 1)
        for b, q, r in ((first, o, p), (second, p, o)):
            self.program.at_most([*self.end(q), (self.start[r], -1), (b, self.most)], self.most)
