"""A second writer of sub-operation mapping, from the rules of the problem. Standard library only.

It writes the rows that the first one's docstrings argue for, with the variables in the order that its package states.
All of them follow from what operations *read*: one reads from another so many bytes for each sample that both see, and
so many besides (weights). Everything else is a sum over operations; nothing is meant to be fast.

Names: ``o = (phase, layer, share)`` with share -1 of a fused layer; without a ratio share 0 is all of a split layer.
``i``, ``a``, ``h`` are accelerators; ``above[o]`` are the operations that come before ``o`` in every plan, ``below[o]``
those that come after it. A *choice* has, for every alternative, terms that add up to 1 if it is the plan's, else to 0.
"""

from __future__ import annotations

import importlib.util
from bisect import bisect_left
from collections.abc import Iterator
from fractions import Fraction
from functools import cache, partial
from itertools import accumulate, combinations, combinations_with_replacement, pairwise, product, zip_longest
from pathlib import Path
from typing import Any

GRAIN = 1024  # parts of a tick
KINDS = (" chain", " shortcuts", " counted", " headed")
Operation = tuple[str, int, int]
Kind = tuple[tuple[int, ...], int]  # of an accelerator: ticks by samples, and grains that a sample takes to come
Terms = list[tuple[int, int]]


def cases(instance: dict[str, Any], bound: int, new: Any, names: Any) -> Iterator[tuple[str, Any]]:
    """By name the program of all ratios; or of every box that is named, and of every ratio that lies in no box.

    Of a ratio that is named with a chain it is the checker of ``suboperation_chain`` in the place of a program.
    """
    if "all" in names:
        yield "all", Writer(instance, bound, new()).program
        return
    boxes = [name for name in names if "x" in name]
    limits = [[(low, high) for low, high, number in parsed(name) for _ in range(number)] for name in boxes]
    for name, limit in zip(boxes, limits, strict=True):
        low, high = zip(*limit, strict=True)
        if name.endswith(KINDS):
            groups, kind = name.split(" ")
            gone = [group for group in groups.split(",") if "w" in group]
            here = [group for group in groups.split(",") if "w" not in group]
            absent, (low, high) = several(gone), zip(*several(here), strict=True)
            checked = partial(beside("suboperation_chain").outlived, instance, low, bound, absent=absent)
            yield name, partial(checked, kind=kind, most=high)
            continue
        if not all(low) or "w" in name:
            raise ValueError("an empty share")
        yield name, Writer(instance, bound, new(), box=parsed(name), apart=name.endswith(" apart")).program
    for parts in range(1, len(instance["accelerators"]) + 1):
        for ratio in combinations_with_replacement(range(instance["batch"], 0, -1), parts):
            inside = any(
                len(ratio) <= len(box)
                and all(low <= r <= high for r, (low, high) in zip_longest(ratio, box, fillvalue=0))
                for box in limits
            )
            if sum(ratio) == instance["batch"] and not inside:
                name = ",".join(map(str, ratio))
                kind = next((kind.strip() for kind in KINDS if name + kind in names), "")
                if kind:
                    yield (
                        f"{name} {kind}",
                        partial(beside("suboperation_chain").outlived, instance, ratio, bound, kind=kind),
                    )
                    continue
                alone = [each for each in names if each.startswith(f"{name} below ")]
                if alone:
                    most = int(alone[0].split()[2])
                    assert most >= bound
                    yield alone[0], Writer(instance, most, new(), ratio=ratio).program
                    continue
                ordered = f"{name} order" in names
                writer = Writer(instance, bound, new(), ratio=ratio, ordered=ordered)
                yield name + " order" * ordered, writer.program


def several(groups: list[str]) -> list[tuple[int, int]]:
    """The limits of each share."""
    return [(low, high) for group in groups for low, high, number in parsed(group) for _ in range(number)]


@cache
def beside(name: str) -> Any:
    """A module of this folder."""
    spec = importlib.util.spec_from_file_location(f"second_{name}", Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def parsed(name: str) -> list[tuple[int, int, int]]:
    """Of ``33-63x1,1-31x2`` the least and the most samples of a share and the number of shares, by group."""
    groups = [group.replace("w", "x").split("x") for group in name.split()[0].split(",")]
    return [(*map(int, samples.split("-")), int(number)) for samples, number in groups]


@cache
def lower_lines(table: tuple[int, ...], low: int, high: int) -> list[tuple[int, int]]:
    """``(alpha, beta)``, ``alpha + beta s <= GRAIN ticks(s)``: one for every edge of the lower hull, slope rounded."""
    slopes, s = [], low
    while s < high:  # the next corner is where the slope is least, the last one of these
        slope, corner = min((Fraction(table[t - 1] - table[s - 1], t - s), -t) for t in range(s + 1, high + 1))
        slopes.append(int(GRAIN * slope // 1))
        s = -corner
    return [
        (min(GRAIN * table[s - 1] - beta * s for s in range(low, high + 1)), beta)
        for beta in dict.fromkeys(slopes or [0])
    ]


@cache
def most_samples(
    table: tuple[int, ...], rate: int, groups: tuple[tuple[int, int, int], ...]
) -> tuple[list[int], list[int]]:
    """Lengths, rising, and the most samples that so many shares of every group can have within each."""
    ticks = {0: 0}  # by samples, least ticks
    for low, high, number in groups:
        for _ in range(number):
            pairs = [(done + s, t + table[s - 1]) for done, t in ticks.items() for s in range(low, high + 1)]
            ticks = dict(sorted(pairs, key=lambda pair: -pair[1]))  # the last one written is the least
    ends = sorted((t + s * rate // GRAIN, s) for s, t in ticks.items())
    return [end for end, _ in ends], list(accumulate((s for _, s in ends), max))


class Writer:
    """One program, of a ratio, of a box of ratios or, with neither, of all ratios."""

    def __init__(
        self,
        instance: dict[str, Any],
        bound: int,
        program: Any,
        ratio: Any = (),
        box: Any = (),
        ordered: bool = False,
        apart: bool = False,
    ) -> None:
        self.instance, self.layers, self.batch = instance, instance["layers"], instance["batch"]
        self.program, self.row, self.equal = program, program.at_most, program.equal
        self.ratio, self.box, self.everywhere = ratio, box, range(len(instance["accelerators"]))
        self.class_of = {a: self.class_named(a, apart) if box else a for a in self.everywhere}
        self.places = sorted(set(self.class_of.values()))  # a class has the name of its first accelerator
        self.members = {a: list(self.class_of.values()).count(a) for a in self.places}
        self.listed = [*self.places, *(a for a in self.everywhere if a not in self.places)]
        self.shares = range(len(ratio) or 1)
        self.several = len(ratio) > 1
        self.split = [layer["kind"] == "split" for layer in self.layers]
        self.readers = [
            [(c, e["bytes"]) for c, layer in enumerate(self.layers) for e in layer["inputs"] if e["source"] == i]
            for i in range(len(self.layers))
        ]
        self.loss = [0 if self.readers[i] else layer["output_bytes"] for i, layer in enumerate(self.layers)]
        self.input = [layer["network_input_bytes"] + sum(e["bytes"] for e in layer["inputs"]) for layer in self.layers]
        self.nodes = [("FP", i) for i in range(len(self.layers))]
        for i in reversed(range(len(self.layers))):
            self.nodes += [("WU", i)] * self.split[i] + [("BP", i)] * bool(self.layers[i]["inputs"])
        self.operations = [o for node in self.nodes for o in self.parts(*node)]
        self.reads = {o: self.read_by(o) for o in self.operations}
        self.above: dict[Operation, set[Operation]] = {}
        for o in self.operations:
            self.above[o] = {*self.reads[o]}.union(*(self.above[p] for p in self.reads[o]))
        self.below = {o: {p for p in self.operations if o in self.above[p]} for o in self.operations}
        self.sizes = [self.number(low * number, high * number) for low, high, number in box]
        self.most = min(bound - 1, self.serial())
        self.last = self.number(0, self.most)
        program.cutoff = self.row([(self.last, 1)], self.most)
        self.placed = [o for o in self.operations if ratio or o[2] < 0]
        self.x = {o: {a: self.number() for a in self.places} for o in self.placed}
        for o in self.placed:
            self.equal([(x, 1) for x in self.x[o].values()], 1)
        self.configurations = {n: self.configured(n) for n in self.nodes if ratio and n[0] != "WU" and self.split[n[1]]}
        self.load = {o: {a: self.number(0, m * self.most) for a, m in self.members.items()} for o in self.operations}
        self.holds: dict[int, list[int]] = {}  # of a box: accelerators with an FP of a layer, by class
        self.lengths: dict[Operation, list[Any]] = {}  # of a box: the first place of a state, and its length
        self.phases: dict[Operation, list[Any]] = {}  # of a box: (state, terms, grains by group and accelerator)
        self.samples_on: dict[tuple[Operation, int, int], Terms] = {}
        self.shares_on: dict[tuple[Operation, int, int], Terms] = {}
        self.gathered: dict[tuple[Operation, int], Terms] = {}
        self.amounts: dict[Any, tuple[int, int]] = {}  # samples of a group in a phase, by state and accelerator
        for o in self.operations:
            if o in self.x:
                self.duration(o)
            elif box:
                self.flow_of_box(o)
            else:
                self.flow(o)
        self.start = {o: self.number(0, self.most) for o in self.placed}
        self.windows()
        for node in self.configurations if self.several else ():
            self.stage(*node)
        for o, p in combinations(self.operations, 2) if ordered else ():
            if o not in self.above[p]:
                self.one_after_the_other(o, p)
        if ratio:
            self.memory()
            program.machines = [(self.last, [self.task(o, a) for o in self.operations]) for a in self.places]
        if box:
            for o in self.phases:
                if o[0] != "WU":
                    self.stage_of_box(o)
            self.symmetry()
            for phase, i, _ in self.phases:
                if phase == "WU" and not self.layers[i]["inputs"]:
                    self.stage_of_box(("WU", i, 0))
            for o in self.phases:
                if o[0] == "FP" and o[1] in self.holds:
                    self.stage_of_holders(o)
            for o in self.phases:
                if o[0] != "WU":
                    self.stage_with_gathering(o)

    # What the rules say

    def number(self, lower: int = 0, upper: int = 1) -> int:
        return int(self.program.variable(lower, upper))

    def parts(self, phase: str, i: int) -> list[Operation]:
        return [(phase, i, b) for b in (self.shares if self.split[i] else [-1])]

    def samples(self, o: Operation) -> int:
        """Of one ratio; without one, what split layers read is left to their flows."""
        return int(self.batch if o[2] < 0 else self.ratio[o[2]] if self.ratio else 0)

    def read_by(self, o: Operation) -> dict[Operation, tuple[int, int]]:
        """Rules 2 to 4: by predecessor, bytes per sample and bytes besides."""
        phase, i, share = o
        inputs = [(e["source"], e["bytes"]) for e in self.layers[i]["inputs"]]
        found = {}
        for other, size in inputs if phase == "FP" else self.readers[i]:
            for p in self.parts("FP" if phase == "FP" else "BP", other):
                if share < 0 or p[2] in (-1, share):
                    found[p] = (size, 0)
        if phase == "BP":
            found["FP", i, share] = (self.loss[i], self.layers[i]["weight_bytes"])
        if phase == "WU":
            found["FP", i, share] = (self.input[i] + self.loss[i], 0)
        return found

    def size(self, o: Operation, p: Operation) -> int:
        """Bytes that an operation reads from a predecessor."""
        per_sample, besides = self.reads[o][p]
        return per_sample * min(self.samples(o), self.samples(p)) + besides

    def bytes_per_tick(self, i: int, a: int) -> tuple[int, int]:
        """As a fraction: so many bytes in so many ticks."""
        return self.instance["bandwidth"][i][a] * self.instance["tick_ns"], 10**9

    def ticks(self, size: int, i: int, a: int) -> int:
        """Of a message, rounded up (rules 6 and 11); none of no bytes."""
        moved, ticks = self.bytes_per_tick(i, a)
        together = Fraction(size * ticks, moved) + Fraction(self.late(i, a), self.instance["tick_ns"])
        return -int(-together // 1) if size and i != a else 0

    def late(self, i: int, a: int) -> int:
        """Nanoseconds of a message beside its bytes."""
        return int(self.instance["latency_ns"][i][a]) if self.instance.get("latency_ns") else 0

    def grains(self, size: int, i: int, a: int) -> int:
        """Of a transfer, rounded down."""
        moved, ticks = self.bytes_per_tick(i, a)
        return GRAIN * size * ticks // moved if i != a else 0

    def tells(self, size: int) -> bool:
        """Whether a message takes longer from some accelerator than from another one."""
        return any(
            self.ticks(size, i, a) != self.ticks(size, j, a)
            for i, j, a in product(self.everywhere, repeat=3)
            if a not in (i, j)
        )

    def cheapest(self, size: int, a: int, unit: int = 1) -> int:
        """Least ticks, rounded up, or grains, rounded down, from another accelerator."""
        how = self.ticks if unit == 1 else self.grains
        return min((how(size, i, a) for i in self.everywhere if i != a), default=0)

    def table(self, o: Operation, a: int) -> tuple[int, ...]:
        return tuple(self.layers[o[1]][o[0].lower()][a])

    def compute(self, o: Operation, a: int) -> int:
        return self.table(o, a)[0 if o[2] < 0 else self.samples(o) - 1]

    def quickest(self, o: Operation) -> int:
        return min(self.compute(o, a) for a in self.places)

    def serial(self) -> int:
        """All operations one after the other, each with all bytes of the network from each and to each share."""
        copies = len(self.ratio) or len(self.everywhere)
        tables = [layer[phase] for layer in self.layers for phase in ("fp", "bp", "wu")]
        computed = sum(copies * max((t for row in table for t in row), default=0) for table in tables)
        size = sum(
            layer["weight_bytes"] + self.batch * (self.input[i] + layer["output_bytes"])
            for i, layer in enumerate(self.layers)
        )
        links = [(i, a) for i, a in product(self.everywhere, repeat=2) if i != a]
        late = max((ns for row in self.instance.get("latency_ns", ()) for ns in row), default=0)
        slowest = min((self.bytes_per_tick(i, a)[0] for i, a in links), default=1)
        worst = Fraction(size * 10**9, slowest) + Fraction(late, self.instance["tick_ns"])
        moved = -int(-worst // 1) if links else 0
        count = len(tables) * copies
        return int(computed + count * (count + copies) * moved)

    # Places and loads

    def configured(self, node: tuple[str, int]) -> dict[tuple[int, ...], Terms]:
        """The accelerators of all shares; of the first split layer's FP those of equal shares do not fall."""
        parts = self.parts(*node)
        if not self.several:
            return {(a,): [(self.x[parts[0]][a], 1)] for a in self.places}
        found: dict[tuple[int, ...], Terms] = {}
        for c in product(self.places, repeat=len(parts)):
            falls = any(c[b] > c[b + 1] and self.ratio[b] == self.ratio[b + 1] for b in self.shares[:-1])
            if node != ("FP", self.split.index(True)) or not falls:
                found[c] = [(self.number(), 1)]
        for (b, o), a in product(enumerate(parts), self.places):
            self.equal([(self.x[o][a], -1), *(t for c in found if c[b] == a for t in found[c])], 0)
        return found

    def joint(self, choice: dict[Any, Terms], o: Operation) -> dict[tuple[Any, int], int]:
        """A variable of every alternative with every place of an operation; both have them as their sums."""
        found = {(c, a): self.number() for c in choice for a in self.beside(c)}
        for c, terms in choice.items():
            self.equal([*((j, -1) for (other, _), j in found.items() if other == c), *terms], 0)
        for q in self.places:
            self.equal([*((j, -1) for (_, a), j in found.items() if self.class_of[a] == q), (self.x[o][q], 1)], 0)
        return found

    def duration(self, o: Operation) -> None:
        """Rule 5, on every accelerator: compute, transfers, dW (rule 4)."""
        terms = {a: [(self.x[o][a], self.compute(o, a)), (self.load[o][a], -1)] for a in self.places}
        weights, own = self.layers[o[1]]["weight_bytes"], ("FP", o[1], o[2])
        exact = {p[:2] for p in self.reads[o] if o[2] < 0 <= p[2] and self.several}
        for node in dict.fromkeys(p[:2] for p in self.reads[o] if p[:2] in exact):
            for (c, a), chosen in self.joint(self.configurations[node], o).items():
                moved = sum(self.ticks(self.size(o, p), i, a) for p, i in zip(self.parts(*node), c, strict=True))
                terms[a].append((chosen, moved))
        others = [p for p in self.reads[o] if p[:2] not in exact and (o[0] != "WU" or p != own)]
        from_somewhere = [p for p in others if self.ratio and self.tells(self.size(o, p))]
        for p in from_somewhere:
            for ((i,), a), chosen in self.joint({(i,): [(self.x[p][i], 1)] for i in self.places}, o).items():
                terms[a].append((chosen, self.ticks(self.size(o, p), i, a)))
        for p, a in product(others, self.places):
            cost = self.cheapest(self.size(o, p), a)
            if cost and p not in from_somewhere:
                elsewhere = self.number()
                self.row([(self.x[o][a], 1), (self.x[p][a], -1), (elsewhere, -1)], 0)
                terms[a].append((elsewhere, cost))
        if o[0] == "WU":
            held: dict[Any, Terms] = {}  # place of the own FP, and all places of the layer's FP
            for c, chosen_terms in self.configurations["FP", o[1]].items():
                held.setdefault((c[o[2]], tuple(sorted(set(c)))), []).extend(chosen_terms)
            for ((i, holders), a), chosen in self.joint(held, o).items():
                moved = self.ticks(self.size(o, own), i, a) + sum(self.ticks(weights, a, h) for h in holders)
                terms[a].append((chosen, moved))
        for a in self.places:
            if (o, a) in self.gathered:
                taken = self.number(0, self.most)
                self.row([*self.gathered[o, a], (taken, -GRAIN)], 0)
                terms[a].append((taken, 1))
            self.equal(terms[a], 0)

    def flow(self, o: Operation) -> None:
        """All shares of a phase take at least the cheapest ticks per sample; ``k ticks >= ticks(k) samples``."""
        amounts = [self.number(0, self.batch) for _ in self.places]
        self.equal([(s, 1) for s in amounts], self.batch)
        for a, s in enumerate(amounts):
            ticks, k = min((Fraction(t, k), k) for k, t in enumerate(self.table(o, a), 1))
            self.row([(s, int(ticks * k)), (self.load[o][a], -k)], 0)

    # Starts

    def end(self, o: Operation) -> Terms:
        return [(self.start[o], 1), *((j, 1) for j in self.load[o].values())]

    def windows(self) -> None:
        """On every accelerator: what must run before, after and between fits there; on the average, in a class."""
        fused = {o for o in self.operations if o[2] < 0}
        for a, m in self.members.items():
            self.row([(self.last, -m), *((self.load[o][a], 1) for o in self.operations)], 0)
        for v in self.placed:
            self.row([(self.last, -1), *self.end(v)], 0)
            for p in self.reads[v]:
                if p in self.x:
                    self.row([(self.start[v], -1), *self.end(p)], 0)
            earlier = self.above[v] & fused if v in fused else set()
            for a, m in self.members.items():
                self.row([(self.start[v], -m), *((self.load[o][a], 1) for o in self.above[v])], 0)
                self.row([(self.last, -m), *m * self.end(v), *((self.load[o][a], 1) for o in self.below[v])], 0)
                for u in earlier:
                    if not self.below[u] & earlier:  # no other fused operation between the two
                        inner = self.below[u] & self.above[v]
                        self.row([(self.start[v], -m), *m * self.end(u), *((self.load[o][a], 1) for o in inner)], 0)

    def around(self, o: Operation) -> tuple[list[Operation], list[Operation]]:
        """Fused operations that one of a split layer reads from, and those that read from it."""
        return [p for p in self.reads[o] if p[2] < 0], [v for v in self.placed if v[2] < 0 and o in self.reads[v]]

    def stage(self, phase: str, i: int) -> None:
        """Between fused operations a phase of a split layer lasts as long as on the accelerator that ends last."""
        parts = self.parts(phase, i)
        before, after = self.around(parts[0])
        configurations = self.configurations[phase, i]
        for u in before or [None]:
            chosen = self.joint(configurations, u) if u else {(c, -1): t[0][0] for c, t in configurations.items()}
            cells = list(product(parts, self.places))
            compute = {(o, a): self.compute(o, a) for o, a in cells}
            fetch = {(o, a): self.cheapest(self.size(o, ("FP", i, o[2])), a) for o, a in cells if phase == "BP"}
            length, fetching = [], {cell: [] for cell in cells}
            for (c, place), j in chosen.items():
                masks = [(j, (False,) * len(parts))]
                if phase == "BP":  # which shares fetch their weights
                    masks = [(self.number(), mask) for mask in product((False, True), repeat=len(parts))]
                    self.equal([(j, -1), *((k, 1) for k, _ in masks)], 0)
                for k, mask in masks:
                    busy = [0 for _ in self.places]
                    for o, a, fetched in zip(parts, c, mask, strict=True):
                        busy[a] += compute[o, a] + (self.ticks(self.size(o, u), place, a) if u else 0)
                        if fetched:
                            busy[a] += fetch[o, a]
                            fetching[o, a].append((k, -1))
                    length.append((k, max(busy)))
            if phase == "BP":
                for o, a in cells:
                    self.row([(self.x[o][a], 1), (self.x["FP", i, o[2]][a], -1), *fetching[o, a]], 0)
            for end in [self.start[v] for v in after] or [self.last]:
                self.row([*(self.end(u) if u else []), *length, (end, -1)], 0)

    def wait(self, o: Operation, direction: dict[Operation, set[Operation]]) -> int:
        """Least ticks from the beginning until ``o`` may start; with ``below``, from its end to the makespan."""
        first = {p: self.wait_of(p, direction) + self.quickest(p) for p in direction[o]}
        share = {p: sum(self.quickest(q) for q in direction[o] if p in direction[q]) for p in direction[o]}
        n = len(self.places)
        alone = -(-sum(self.quickest(q) for q in direction[o]) // n)
        return max([alone, *(first[p] - (-share[p] // n) for p in first)])

    def wait_of(self, o: Operation, direction: dict[Operation, set[Operation]]) -> int:
        known: dict[Any, int] = self.__dict__.setdefault("waits", {})
        if (o, direction is self.above) not in known:
            known[o, direction is self.above] = self.wait(o, direction)
        return known[o, direction is self.above]

    def one_after_the_other(self, o: Operation, p: Operation) -> None:
        first, second = self.number(), self.number()
        for a in self.places:
            self.row([(self.x[o][a], 1), (self.x[p][a], 1), (first, -1), (second, -1)], 1)
        for chosen, q, r in ((first, o, p), (second, p, o)):
            free = self.most - self.wait_of(q, self.below) - self.wait_of(r, self.above)
            self.row([*self.end(q), (self.start[r], -1), (chosen, free)], free)

    def task(self, o: Operation, a: int) -> tuple[int, int, int, int, list[int]]:
        """One operation at a time (rule 5): what there is of it on an accelerator, and what starts after it."""
        readers = [self.start[v] for v in self.operations if o in self.reads[v]]
        return self.start[o], self.load[o][a], self.x[o][a], self.compute(o, a), readers

    # DRAM

    def units(self, size: int) -> int:
        return -(-size // int(self.instance["memory_unit_bytes"]))

    def memory(self) -> None:
        """Rule 7: when an operation starts, what was made by then and is released later fits beside the weights."""
        weights = [self.units(2 * layer["weight_bytes"]) for layer in self.layers]
        tensors = []
        for wu in self.operations:
            if wu[0] == "WU":
                owned = [(("FP", *wu[1:]), self.input[wu[1]]), (("FP", *wu[1:]), self.loss[wu[1]])]
                owned += [(p, self.reads[wu][p][0]) for p in self.reads[wu] if p[0] == "BP"]
                tensors += [(owner, wu, self.units(size * self.samples(wu))) for owner, size in owned]
        for a in self.places:
            room = self.instance["accelerators"][a]["memory"]
            if sum(weights) + sum(units for *_, units in tensors) <= room:
                continue
            lies = [self.number() for _ in self.layers]
            held = list(zip(lies, weights, strict=True))
            self.row(held, room)
            kept = [
                (self.start[o], self.x[o][a], n, self.start[w], [*self.load[w].values()]) for o, w, n in tensors if n
            ]
            self.program.stores.append((room, held, kept))
            for m in self.operations:
                self.row([(self.x[m][a], 1), (lies[m[1]], -1)], 0)
                stored = [
                    (self.x[owner][a], units)
                    for owner, wu, units in tensors
                    if owner in {m, *self.above[m]} and wu in {m, *self.below[m]}
                    if self.quickest(m) or self.quickest(wu)  # so that the WU ends after m starts
                ]
                self.row([*held, *stored], room)

    # Boxes of ratios

    def flow_of_box(self, o: Operation) -> None:
        """Shares and samples of every group on every accelerator, in every state: places of the fused ones around."""
        before, after = self.around(o)
        u, v = next(iter(before), None), next(iter(after), None)
        chosen: dict[Any, Terms] = {(i,): [(self.x[u][i], 1)] for i in self.places} if u else {}
        chosen = chosen or {(None,): [(self.number(1, 1), 1)]}
        if v:
            chosen = {(*state, j): [(k, 1)] for (state, j), k in self.joint(chosen, v).items()}
        states, groups = list(chosen), range(len(self.box))
        cells = {state: list(product(groups, self.beside(state))) for state in states}
        shares, samples, took = {}, {}, {}
        for key in [(state, *cell) for state in states for cell in cells[state]]:
            state, g, a = key
            (low, high, number), count = self.box[g], self.number(0, self.box[g][2])
            shares[key], samples[key] = (count, 1), (count, low)
            if low < high:
                total = self.number(0, number * high)
                samples[key] = (total, 1)
                self.row([(count, low), (total, -1)], 0)
                self.row([(count, -high), (total, 1)], 0)
            lines = [
                [(count, alpha), (samples[key][0], samples[key][1] * beta)]
                for alpha, beta in lower_lines(self.table(o, a), low, high)
            ]
            took[key] = lines[0]
            if len(lines) > 1:
                ticks = self.number(0, self.most * self.beside(state)[a])
                took[key] = [(ticks, GRAIN)]
                for line in lines:
                    self.row([*line, (ticks, -GRAIN)], 0)
            j, each = samples[key]
            if u:
                took[key] = [*took[key], (j, each * self.grains(self.reads[o][u][0], state[0], a))]
            for to in self.places if v else []:
                moved = self.grains(self.reads[v][o][0], a, state[-1]) if self.class_of[state[-1]] == to else 0
                self.gathered.setdefault((v, to), []).append((j, each * moved))
        for state in states:
            for g, (*_, number) in enumerate(self.box):
                here = [shares[state, g, a] for a in self.beside(state)]
                self.equal([*here, *((j, -number) for j, _ in chosen[state])], 0)
            self.equal([*(samples[state, *c] for c in cells[state]), *((j, -self.batch) for j, _ in chosen[state])], 0)
        for g, size in enumerate(self.sizes):
            self.equal([*(t for (_, group, _), t in samples.items() if group == g), (size, -1)], 0)
        for g, q in product(groups, self.places):
            keys = [key for key in shares if key[1] == g and self.class_of[key[2]] == q]
            self.shares_on[o, g, q] = [shares[key] for key in keys]
            self.samples_on[o, g, q] = [samples[key] for key in keys]
        self.amounts.update(((o, *key), amount) for key, amount in samples.items())
        self.phases[o] = [(s, chosen[s], {cell: took[s, *cell] for cell in cells[s]}) for s in states]
        grains = {q: [t for (*_, a), ts in took.items() if self.class_of[a] == q for t in ts] for q in self.places}
        self.moves(o, grains)
        for a in self.places:
            self.row([*grains[a], (self.load[o][a], -GRAIN)], 0)

    def moves(self, o: Operation, grains: dict[int, Terms]) -> None:
        """What lies on an accelerator and did not lie there in the operation read from was moved; so is dW."""
        for p, a, (g, (_, high, number)) in product(self.reads[o], self.places, list(enumerate(self.box))):
            per_sample, besides = self.reads[o][p] if p[2] >= 0 else (0, 0)
            for size, lies, most in ((per_sample, self.samples_on, high * number), (besides, self.shares_on, number)):
                if cost := self.cheapest(size, a, GRAIN):
                    moved = self.number(0, most)
                    self.row([*lies[o, g, a], *((j, -k) for j, k in lies[p, g, a]), (moved, -1)], 0)
                    grains[a].append((moved, cost))
        total = sum(number for *_, number in self.box)
        cost = min(self.cheapest(self.layers[o[1]]["weight_bytes"], a, GRAIN) for a in self.places)
        if o[0] == "WU" and total > 1 and cost:
            holds = {a: self.number(0, m) for a, m in self.members.items()}
            self.holds[o[1]] = [*holds.values()]
            sent = {a: self.number(0, total * len(self.everywhere)) for a in self.places}
            self.row([*((h, total) for h in holds.values()), *((k, -1) for k in sent.values())], total)
            for a, (g, (*_, number)) in product(self.places, enumerate(self.box)):
                self.row([*self.shares_on[("FP", o[1], 0), g, a], (holds[a], -number)], 0)
            for a in self.places:
                grains[a].append((sent[a], cost))

    def stage_of_box(self, o: Operation) -> None:
        """In its state a phase lasts as long as any accelerator, as the shares of any group on average, and least."""
        before, after = self.around(o)
        u, length = next(iter(before), None), []
        for state, chosen, took in self.phases[o]:
            d = self.number(0, self.most)
            length.append((d, 1))
            self.lengths.setdefault(o, []).append((state[0] if u else None, d))
            told = self.beside(state)
            for a, m in told.items():
                self.row([(d, -GRAIN * m), *(t for g in range(len(self.box)) for t in took[g, a])], 0)
            for g, (*_, number) in enumerate(self.box):
                self.row([(d, -GRAIN * number), *(t for a in told for t in took[g, a])], 0)
            least = self.least_length(self.kinds_of(o, state[0] if u else None))
            self.row([(d, -1), *((j, least) for j, _ in chosen)], 0)
        for end in [self.start[v] for v in after] or [self.last]:
            self.row([*(self.end(u) if u else []), *length, (end, -1)], 0)

    def kinds_of(self, o: Operation, i: int | None) -> list[Kind]:
        """Of every accelerator its table, and what a sample takes to come to it from the fused operation before."""
        u = next(iter(self.around(o)[0]), None)
        return [
            (self.table(o, a), 0 if i is None or u is None else self.grains(self.reads[o][u][0], i, a))
            for a in self.everywhere
        ]

    def stage_of_holders(self, o: Operation) -> None:
        """So many accelerators hold an FP of the layer, one of the numbers; with each the phase lasts so long."""
        u, all_of_them = next(iter(self.around(o)[0]), None), []
        most = min(len(self.everywhere), sum(number for *_, number in self.box))
        for i in dict.fromkeys(i for i, _ in self.lengths[o]):
            so_many = [self.number() for _ in range(most)]
            all_of_them += [(j, h) for h, j in enumerate(so_many, 1)]
            if u:
                self.equal([*((j, 1) for j in so_many), (self.x[u][i], -1)], 0)
            else:
                self.equal([(j, 1) for j in so_many], 1)
            kinds = sorted(self.kinds_of(o, i), key=lambda kind: (kind[1], kind[0]))
            quicker = [
                rate <= other and all(t <= w for t, w in zip(table, slow, strict=True))
                for (table, rate), (slow, other) in pairwise(kinds)
            ]
            if not all(quicker):
                kinds = [
                    (tuple(min(column) for column in zip(*(t for t, _ in kinds), strict=True)), r) for _, r in kinds
                ]
            ends = [(j, self.least_length(kinds[:h])) for h, j in enumerate(so_many, 1)]
            self.row([*ends, *((d, -1) for place, d in self.lengths[o] if place == i)], 0)
        self.row([*all_of_them, *((h, -1) for h in self.holds[o[1]])], 0)

    def stage_with_gathering(self, o: Operation) -> None:
        """What is done in a phase and not on the place of the fused operation after it is moved there afterwards."""
        for v in list(self.around(o)[1])[:1]:
            for ((i, j), chosen, took), (_, d) in zip(self.phases[o], self.lengths[o], strict=True):
                rates = {a: self.grains(self.reads[v][o][0], a, j) for a in self.everywhere}
                cheapest = min((rate for a, rate in rates.items() if a != j), default=0)
                if not cheapest:
                    continue
                least = 1 << 62
                for able in self.deals(self.kinds_of(o, i)):
                    for end in {end for each, _ in able for end in each}:
                        done = [max((s for e, s in zip(*each, strict=True) if e <= end), default=None) for each in able]
                        if None not in done and sum(done) >= self.batch:
                            least = min(least, GRAIN * end + cheapest * max(0, self.batch - done[j]))
                gathered = [(k, -s * rates[a]) for g, a in took for k, s in [self.amounts[o, (i, j), g, a]]]
                self.row([*((k, least) for k, _ in chosen), (d, -GRAIN), *gathered], 0)

    def least_length(self, kinds: list[Kind]) -> int:
        """Least ticks in which accelerators can do the batch, over all ways to deal out the shares of the box."""
        found = []
        for able in self.deals(kinds):
            ends = sorted({end for each, _ in able for end in each})

            def enough(end: int, able: list[tuple[list[int], list[int]]] = able) -> bool:
                last = [bisect_left(each, end + 1) - 1 for each, _ in able]
                if min(last) < 0:
                    return False
                return sum(most[k] for (_, most), k in zip(able, last, strict=True)) >= self.batch

            k = bisect_left(ends, True, key=enough)
            found += ends[k : k + 1]
        return min(found)

    def deals(self, kinds: list[Kind]) -> Iterator[list[tuple[list[int], list[int]]]]:
        """What every accelerator can do within which lengths, for all ways to deal out the shares of the box."""

        def dealt(numbers: list[int], places: int) -> Iterator[list[tuple[int, ...]]]:
            if places == 1:
                yield [tuple(numbers)]
                return
            for own in product(*(range(number + 1) for number in numbers)):
                rest = [number - k for number, k in zip(numbers, own, strict=True)]
                yield from ([own, *others] for others in dealt(rest, places - 1))

        box, ways = self.box, 1
        for *_, number in box:
            ways *= 1 + number
        if ways > 16:  # all shares alike: more ratios than the box has
            box = [(min(g[0] for g in box), max(g[1] for g in box), sum(g[2] for g in box))]
        for numbers in dealt([number for *_, number in box], len(kinds)):
            able = []
            for kind, own in zip(kinds, numbers, strict=True):
                groups = tuple((low, high, k) for (low, high, _), k in zip(box, own, strict=True))
                able.append(most_samples(*kind, groups))
            yield able

    # Equal accelerators

    def alike(self, a: int, b: int) -> bool:
        """Whether exchanging two accelerators changes no table, no bandwidth and no latency."""
        rate, swap = self.instance["bandwidth"], [{a: b, b: a}.get(i, i) for i in self.everywhere]
        tables = (layer[phase] for layer in self.layers for phase in ("fp", "bp", "wu") if layer[phase])
        return all(table[a] == table[b] for table in tables) and all(
            (rate[i][j], self.late(i, j)) == (rate[swap[i]][swap[j]], self.late(swap[i], swap[j]))
            for i, j in product(self.everywhere, repeat=2)
            if i != j
        )

    def class_named(self, a: int, apart: bool) -> int:
        """The first accelerator that is equal; ``apart``: a class of its own, and the second one that of the others."""
        equal = [b for b in self.everywhere if self.alike(a, b)]
        return equal[1] if apart and a != equal[0] else equal[0]

    def beside(self, state: tuple[Any, ...]) -> dict[int, int]:
        """Beside accelerators that were named: one for all that look the same from there, and how many they are."""
        seen: dict[Any, list[int]] = {}
        for a in self.listed:
            seen.setdefault((self.class_of[a], a if a in state else None), []).append(a)
        return {those[0]: len(those) for those in seen.values()}

    def symmetry(self) -> None:
        """The fused operation in the middle lies on the first one of accelerators that are alike and told apart."""
        for o in self.placed[len(self.placed) // 2 :][:1]:
            for q in self.places:
                if any(self.alike(q, b) for b in self.places if b < q):
                    self.row([(self.x[o][q], 1)], 0)
