"""A second checker of chains of sub-operation mapping, from the rules of the problem. Standard library only.

A step gives operations of the path a place and forgets those on which nothing depends any more; the *state* are the
places that are kept. What is known by then is one of two things.

In the tail, behind the last fused layer of the path (:class:`Apart`), shares do not wait for each other. Time runs, for
each share, from when its outermost FP has read what it reads: ``passed`` is what lies between that and the end of its
innermost finished BP, ``work`` what each accelerator has to do, ``since`` when it can begin. Where nothing is fused
there is a ``finish`` of accelerators as well, of all shares and of each, from the first FP of these: whatever BP or WU
comes further out begins after what has ``passed``, and on any accelerator one does after the other. Around that
(:class:`Together`) every fused operation is a wall: ``front`` lies before all that is known, ``passed`` after it, and
what has not been done by then, on each accelerator, is left to be done. Both only ever say too little, never too much.
What a fused layer reads from one that is not the next of the path is left out, or with *shortcuts* it is not, as long
as no other such edge has begun and not ended: then FP and BP of the reader are kept as well.

Where shares are *counted*, all that is known of a run of shares with the same limits is how many lie where: so each of
them reads of itself whatever is nearest. Accelerators that can change places are called by what lies on them; to find
these names all ways to call them are tried. If they are *headed*, the first one of each kind keeps its name, and the
first of all fused operations lies on one of these.

A plan's makespan is at least the sum of a label by weights and of what the cheapest steps add to that sum, if a label
is worth no more than the makespan in the end, and no step takes away from what it is worth. Steps can do so in two
ways: by weights that fall, and by work that would be less than none, which is none; with the sum of weights in the end
and where the tail ends, that is all there is to check.

Names: ``o = (phase, layer, share)`` with share -1 of a fused layer; ``i``, ``a`` are accelerators, ``where`` is the
place of each operation that is known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import chain, groupby, pairwise, permutations, product
from operator import le
from typing import Any, NamedTuple

UNIT = 4096  # of weights
NEVER = 1 << 60  # when an accelerator begins that has nothing to do
MANY = 10_000  # labels of one state, of which all pairs are compared
Operation = tuple[str, int, int]
Where = dict[Operation, int]
Label = tuple[int, ...]
Rules = tuple[tuple[int, int, bool], ...]  # a step has a move, or has not


class TooWide(Exception):
    """This checker, which compares all pairs of labels, has no word on the proof."""


class Apart(NamedTuple):
    """What a step of the tail adds: time by share, work by accelerator; how much later it begins (None: at once)."""

    passed: list[int]
    work: list[int]
    later: list[int | None]
    begun: tuple[tuple[int, int], ...] = ()  # shares and accelerators: this one begins when that share is so far
    of_shares: tuple[list[int], ...] = ()  # by share, work by accelerator that begins then

    def finish(self) -> list[list[int]]:
        """What it adds to the finish of accelerators: of all shares, then of each. FP puts off what follows it."""
        if self.begun:
            return [self.work, *self.of_shares]
        return [[wait] * len(self.work) for wait in (min(self.passed), *self.passed)]

    def price(self, weights: Label) -> int:
        numbers = [*self.passed, *self.work]
        if len(weights) > len(numbers):
            numbers += chain(*self.finish())
        return sum(w * x for w, x in zip(weights, numbers, strict=True))

    def after(self, label: Label) -> Label:
        k, n = len(self.passed), len(self.work)
        passed, work = ([*map(int.__add__, old, new)] for old, new in ((label, self.passed), (label[k:], self.work)))
        begins = [0 if more is None else old + more for old, more in zip(label[-n:], self.later, strict=True)]
        for b, a in self.begun:
            begins[a] = min(begins[a], label[b])
        if len(label) == k + 2 * n:
            return (*passed, *work, *begins)
        first = min(passed)
        rows = [label[begin:][:n] for begin in range(k + n, len(label) - n, n)]
        rows = [tuple(map(int.__add__, row, added)) for row, added in zip(rows, self.finish(), strict=True)]
        every = [max(x, min(first, begin) + load) for x, begin, load in zip(rows[0], begins, work, strict=True)]
        own = [max(x, wait) for row, wait in zip(rows[1:], passed, strict=True) for x in row]
        return (*passed, *work, *(max(x, first) for x in every), *own, *begins)


class Together(NamedTuple):
    """What a step adds around fused layers: time before, time after, work of accelerators that is not done before."""

    front: int
    passed: int
    work: list[int]

    def price(self, weights: Label) -> int:
        return weights[0] * (self.front + self.passed) + sum(
            w * (x - self.passed) for w, x in zip(weights[1:], self.work, strict=True)
        )

    def after(self, label: Label) -> Label:
        left = [max(0, old + x - self.passed) for old, x in zip(label[1:], self.work, strict=True)]
        return (label[0] + self.front + self.passed, *left)


class Step(NamedTuple):
    placed: list[Operation]
    kept: list[Operation]
    effect: Callable[[Where], Apart | Together | None]  # None of the step that ends the tail


class Path:
    """The steps of one ratio along a longest path; of several that which ends, then comes from, the last layers."""

    def __init__(
        self, instance: dict[str, Any], ratio: Any, kind: str = "chain", most: Any = None, absent: Any = ()
    ) -> None:
        self.instance, self.layers, self.ratio = instance, instance["layers"], list(ratio)
        self.most = list(most or ratio)
        self.absent = [range(low, high + 1) for low, high in absent]
        if any(not sizes or sizes[0] < 1 for sizes in self.absent):
            raise ValueError("a share that cannot be")
        self.shortcuts, self.headed = kind == "shortcuts", kind == "headed"
        self.counted = kind == "counted" or self.headed
        self.edge: tuple[int, int] | None = None  # a reader whose places are kept, and what it reads
        self.everywhere = range(len(instance["accelerators"]))
        limits = list(zip(self.ratio, self.most, strict=True))
        self.runs = [list(those) for _, those in groupby(range(len(limits)), limits.__getitem__)]
        exchanged = [[b for b in self.everywhere if self.can_change(a, b)] for a in self.everywhere]
        self.called_first = {those[0] for those in exchanged}
        named = set() if kind == "counted" else self.called_first if self.headed else {*self.everywhere}
        self.namesakes = [[a] if a in named else [b for b in exchanged[a] if b not in named] for a in self.everywhere]
        # By class, which are called by their first member, and in it by number.
        self.by_class = sorted(self.everywhere, key=lambda a: (self.namesakes[a], a))
        self.split = [layer["kind"] == "split" for layer in self.layers]
        read = {e["source"] for layer in self.layers for e in layer["inputs"]}
        self.last_one = [i not in read for i in range(len(self.layers))]
        self.path = self.longest()
        self.met = set(self.path)
        self.steps: list[Step] = []
        self.fold = -1
        if not self.split[self.path[-1]]:
            raise ValueError("the path begins with a fused layer")
        fused = [k for k, i in enumerate(self.path) if not self.split[i]]
        self.tail(self.path[: fused[0]] if fused else self.path, self.path[fused[0]] if fused else None)
        k = fused[0] + 1 if fused else len(self.path)
        while k < len(self.path):
            if self.split[self.path[k]]:
                self.between(self.path[k - 1], self.path[k], self.path[k + 1] if k + 1 < len(self.path) else None)
                k += 2
            else:
                self.next_to(self.path[k - 1], self.path[k])
                k += 1

    def can_change(self, a: int, b: int) -> bool:
        """Whether nobody would notice if two accelerators were exchanged."""
        other = [{a: b, b: a}.get(i, i) for i in self.everywhere]
        rows = [layer[phase] for layer in self.layers for phase in ("fp", "bp", "wu") if layer[phase]]
        links = [self.instance["bandwidth"], self.instance.get("latency_ns") or [[0 for _ in other] for _ in other]]
        return all([row[i] for i in other] == row for row in rows) and all(
            link[i][j] == link[other[i]][other[j]] for link in links for i, j in permutations(self.everywhere, 2)
        )

    def longest(self) -> list[int]:
        """From the output to the input."""
        depth: list[int] = []
        for layer in self.layers:
            depth.append(1 + max((depth[e["source"]] for e in layer["inputs"]), default=0))
        path = [max(i for i, d in enumerate(depth) if d == max(depth))]
        while self.layers[path[-1]]["inputs"]:
            before = [e["source"] for e in self.layers[path[-1]]["inputs"]]
            path.append(max(i for i in before if depth[i] == depth[path[-1]] - 1))
        return path

    # What operations take, by the rules

    def parts(self, phase: str, i: int) -> list[Operation]:
        return [(phase, i, b) for b in (range(len(self.ratio)) if self.split[i] else [-1])]

    def compute(self, o: Operation, a: int) -> int:
        row = self.layers[o[1]][o[0].lower()][a]
        return int(row[0] if o[2] < 0 else min(row[k - 1] for k in range(self.ratio[o[2]], self.most[o[2]] + 1)))

    def bytes_read(self, o: Operation, p: Operation) -> int:
        """Rules 2 to 4: a share sees its own samples, a fused operation all of the other's."""
        share = max(o[2], p[2])
        samples = self.instance["batch"] if share < 0 else self.ratio[share]
        layer = self.layers[o[1]]
        if o[1] != p[1]:  # activations of the source, or the loss that the consumer made
            reader, source = (layer, p[1]) if o[0] == "FP" else (self.layers[p[1]], o[1])
            return int(samples * next(e["bytes"] for e in reader["inputs"] if e["source"] == source))
        own = samples * layer["output_bytes"] if self.last_one[o[1]] else 0
        if o[0] == "BP":
            return int(own + layer["weight_bytes"])
        return int(own + samples * (layer["network_input_bytes"] + sum(e["bytes"] for e in layer["inputs"])))

    def message(self, size: int, i: int, a: int) -> int:
        """Rules 6 and 11."""
        if i == a or size == 0:
            return 0
        late = self.instance["latency_ns"][i][a] if self.instance.get("latency_ns") else 0
        ns = Fraction(size * 10**9, self.instance["bandwidth"][i][a]) + late
        return -int(-ns / self.instance["tick_ns"] // 1)

    def read(self, o: Operation, p: Operation, where: Where) -> int:
        return self.message(self.bytes_read(o, p), where[p], where[o])

    def nearest(self, o: Operation, p: Operation, where: Where, there: list[int]) -> int:
        """What an operation reads of one that may be at any of these places, or of one somewhere else."""
        if where[o] in there:
            return 0
        return min(self.message(self.bytes_read(o, p), i, where[o]) for i in self.everywhere if i != where[o])

    def of_itself(self, readers: list[Operation], sources: list[Operation], where: Where) -> dict[Operation, int]:
        """What the readers of all shares read of these."""
        if not self.counted:
            return {o: self.read(o, p, where) for o, p in zip(readers, sources, strict=True)}
        found = {}
        for run in self.runs:
            there = [where[sources[b]] for b in run]
            for b in run:
                found[readers[b]] = self.nearest(readers[b], sources[b], where, there)
                if where[readers[b]] in there:
                    there.remove(where[readers[b]])
        return found

    def takes(self, o: Operation, where: Where, *read: Operation) -> int:
        """Rule 5, with what is read from these operations only."""
        return self.compute(o, where[o]) + sum(self.read(o, p, where) for p in read)

    def updating(self, o: Operation, where: Where, *loss: Operation) -> int:
        """A WU, with one message of dW to each other accelerator with an FP of its layer (rule 4)."""
        holders = {where[p] for p in self.parts("FP", o[1])}
        sent = sum(self.message(self.layers[o[1]]["weight_bytes"], where[o], h) for h in holders)
        own = self.takes(o, where, ("FP", o[1], o[2]))
        for p in loss:
            run = [b for those in self.runs if p[2] in those for b in those]
            if self.counted and run:
                own += self.nearest(o, p, where, [where["BP", p[1], b] for b in run])
            else:
                own += self.read(o, p, where)
        return sent + own

    def loads(self, where: Where, ticks: dict[Operation, int]) -> list[int]:
        return [sum(t for o, t in ticks.items() if where[o] == a) for a in self.everywhere]

    def loss_of(self, share: int, inner: int | None) -> list[Operation]:
        """The operation of a layer's reader that makes the loss of a share."""
        return [] if inner is None else [("BP", inner, share if self.split[inner] else -1)]

    def orderly(self, o: Operation, where: Where) -> bool:
        """Shares of as many samples have no names but where the places of one layer depend on those of another.

        So of a FP or BP that is alone between fused ones, or the last of all, the places are those of a sorted list.
        Nor have accelerators, before the first of all fused operations gets its place.
        """
        phase, i, b = o
        if phase == "FP" and i == next((i for i in reversed(self.path) if not self.split[i]), -1):
            return where[o] in self.called_first or (self.counted and not self.headed)
        if self.counted or phase == "WU" or b < 1 or (self.split[i] and i not in self.path):
            return True
        alone = i == self.path[0] or not any(self.split[p] for p in self.neighbours(i))
        if not alone or (self.ratio[b], self.most[b]) != (self.ratio[b - 1], self.most[b - 1]):
            return True
        known = [p for p in ("FP", "BP") if (p, i, b) in where]
        return [where[p, i, b - 1] for p in known] <= [where[p, i, b] for p in known]

    def neighbours(self, i: int) -> list[int]:
        k = self.path.index(i)
        return self.path[max(0, k - 1) : k] + self.path[k + 1 : k + 2]

    # The tail

    def tail(self, layers: list[int], fused: int | None) -> None:
        inner = None
        for i in layers:
            forward, backward = self.parts("FP", i), self.parts("BP", i)
            kept = [*forward, *(self.parts("BP", inner) if inner is not None else [])]
            self.add(forward, kept, self.first_forward, i, inner)
            for b, o in enumerate(self.parts("WU", i)):
                self.add([o], kept, self.apart_update, o, self.loss_of(b, inner))
            if i != self.path[-1]:
                self.add(backward, [*forward, *backward], self.apart_backward, i, inner)
            inner = i
        if fused is not None:
            front, back = ("FP", fused, -1), ("BP", fused, -1)
            kept = [front, *(self.parts("BP", inner) if inner is not None else [])]
            self.add([front], kept, self.tail_reads, fused, inner)
            self.fold = len(self.steps)
            self.add([], kept, lambda where: None)
            self.add([back], [front, back], self.wall, fused, inner)
            self.at(fused)
            self.beside(fused)

    def add(self, placed: list[Operation], kept: list[Operation], effect: Callable[..., Any], *arguments: Any) -> None:
        reader, source = self.edge or (-1, -1)
        kept = kept + ([] if self.edge is None else [("FP", reader, -1), ("BP", reader, -1)])

        def whole(where: Where) -> Any:
            found = effect(where, *arguments)
            for o in placed if self.shortcuts else ():
                if o == ("FP", source, -1):
                    ticks = self.read(("FP", reader, -1), o, where)
                    found = found._replace(front=found.front + ticks)
                if o == ("BP", source, -1):
                    ticks = self.read(o, ("BP", reader, -1), where)
                    work = list(map(int.__add__, found.work, self.loads(where, {o: ticks})))
                    found = found._replace(passed=found.passed + ticks, work=work)
            return found

        self.steps.append(Step(placed, kept, whole))

    def at(self, fused: int) -> None:
        """After the step that gives the last operation of a fused layer its place."""
        if self.edge is not None and self.edge[1] == fused:
            self.edge = None
            self.steps[-1] = self.steps[-1]._replace(kept=[("FP", fused, -1), ("BP", fused, -1)])
        if self.edge is None and self.shortcuts:
            read = {e["source"] for e in self.layers[fused]["inputs"]}
            sources = [i for i in self.path[self.path.index(fused) + 2 :] if i in read and not self.split[i]]
            if sources:
                self.edge = (fused, max(sources))

    def first_forward(self, where: Where, i: int, inner: int | None) -> Apart:
        own = self.parts("FP", i)
        computed = {o: self.compute(o, where[o]) for o in own}
        reads: dict[Operation, int] = {}
        if inner is not None:
            reads = self.of_itself(self.parts("FP", inner), own, where)
        wait = list(reads.values()) or [0] * len(own)
        reach = [x + y for x, y in zip(computed.values(), wait, strict=True)]
        later: list[int | None] = []
        for a in self.everywhere:
            if a in [where[o] for o in own]:
                later.append(None)
            else:  # an accelerator that reads begins with that
                later.append(min(computed.values()) if a in [where[o] for o in reads] else min(reach))
        return Apart(reach, self.loads(where, {**computed, **reads}), later)

    def apart_update(self, where: Where, o: Operation, loss: list[Operation]) -> Apart:
        work = self.loads(where, {o: self.updating(o, where, *loss)})
        of_shares = tuple(work if b == o[2] else [0 for _ in work] for b in range(len(self.ratio)))
        return Apart([0] * len(self.ratio), work, [0 for _ in self.everywhere], ((o[2], where[o]),), of_shares)

    def backward(self, where: Where, i: int, inner: int | None) -> dict[Operation, int]:
        own = self.parts("BP", i)
        found = {o: self.compute(o, where[o]) for o in own}
        reads = [self.of_itself(own, self.parts("FP", i), where)]
        if inner is not None and self.split[inner]:
            reads.append(self.of_itself(own, self.parts("BP", inner), where))
        elif inner is not None:
            reads.append({o: self.read(o, ("BP", inner, -1), where) for o in own})
        return {o: time + sum(each[o] for each in reads) for o, time in found.items()}

    def apart_backward(self, where: Where, i: int, inner: int | None) -> Apart:
        time = self.backward(where, i, inner)
        begun = tuple((o[2], where[o]) for o in time)
        of_shares = tuple(self.loads(where, {o: ticks}) for o, ticks in time.items())
        return Apart(list(time.values()), self.loads(where, time), [0 for _ in self.everywhere], begun, of_shares)

    def tail_reads(self, where: Where, fused: int, inner: int | None) -> Apart:
        if inner is None:
            return Apart([0] * len(self.ratio), [0 for _ in self.everywhere], [0 for _ in self.everywhere])
        reads = {o: self.read(o, ("FP", fused, -1), where) for o in self.parts("FP", inner)}
        readers = [where[o] for o in reads]
        later = [0 if a in readers else min(reads.values()) for a in self.everywhere]
        return Apart(list(reads.values()), self.loads(where, reads), later)

    def wall(self, where: Where, fused: int, inner: int | None) -> Together:
        front, back = ("FP", fused, -1), ("BP", fused, -1)
        ticks = self.takes(back, where, front, *(self.parts("BP", inner) if inner is not None else []))
        return Together(self.compute(front, where[front]), ticks, self.loads(where, {back: ticks}))

    # Around fused layers

    def beside(self, reader: int) -> None:
        """The work of what a layer reads beside the path, each operation where it is done soonest, or anywhere."""
        kept = self.steps[-1].kept
        for i in sorted(e["source"] for e in self.layers[reader]["inputs"]):
            if i not in self.met and self.split[i]:
                for o in [*self.parts("WU", i), *(self.parts("BP", i) if self.layers[i]["inputs"] else [])]:
                    self.add([o], kept, lambda where, o: self.left({o: self.compute(o, where[o])}, where), o)
                self.elsewhere(i, kept)
            self.met.add(i)

    def elsewhere(self, i: int, kept: list[Operation]) -> None:
        """BP and WU of shares of which nothing else is known, if both follow the wall that is there."""
        for phase in ("WU", "BP") if self.layers[i]["inputs"] else ("WU",):
            for n, sizes in enumerate(self.absent):
                o, tables = (phase, i, -2 - n), self.layers[i][phase.lower()]
                least = [min(table[size - 1] for size in sizes) for table in tables]
                self.add([o], kept, lambda where, o, least: self.left({o: least[where[o]]}, where), o, least)

    def left(self, ticks: dict[Operation, int], where: Where) -> Together:
        """What can be done at any time from now on."""
        return Together(0, 0, self.loads(where, ticks))

    def one(self, o: Operation, ticks: int, where: Where, front: int = 0) -> Together:
        """A fused BP, or some of it, and time in FP."""
        return Together(front, ticks, self.loads(where, {o: ticks}))

    def early(self, ticks: int) -> Together:
        """Time in FP."""
        return Together(ticks, 0, [0 for _ in self.everywhere])

    def between(self, inside: int, i: int, outside: int | None) -> None:
        """A split layer between two fused ones, or the first of all, and the outer one."""
        forward, backward = self.parts("FP", i), self.parts("BP", i)
        gather, loss = ("FP", inside, -1), ("BP", inside, -1)
        kept = [*forward, loss]
        self.add(forward, kept, lambda where: self.early(sum(self.read(gather, p, where) for p in forward)))
        for o in self.parts("WU", i):
            self.add([o], kept, lambda where, o: self.left({o: self.updating(o, where, loss)}, where), o)
        self.elsewhere(i, kept)
        self.beside(i)
        if outside is None:
            self.add([], [], lambda where: self.early(self.stage(where, i)))
            return
        if self.split[outside]:
            raise ValueError("split layers in a row between fused ones")
        self.add(backward, [*forward, *backward], self.backward_stage, i, inside)
        front, back = ("FP", outside, -1), ("BP", outside, -1)
        self.add([back], [*forward, back], lambda where: self.one(back, self.takes(back, where, *backward), where))
        self.add([front], [front, back], self.outer_forward, outside, i)
        self.at(outside)
        self.beside(outside)

    def stage(self, where: Where, i: int, *read: Operation) -> int:
        """FP of a split layer, between the gathers of a fused one and of another."""
        return max(self.loads(where, {o: self.takes(o, where, *read) for o in self.parts("FP", i)}))

    def backward_stage(self, where: Where, i: int, inside: int) -> Together:
        work = self.loads(where, self.backward(where, i, inside))
        return Together(0, max(work), work)

    def outer_forward(self, where: Where, outside: int, i: int) -> Together:
        """What lies between the gathers of two fused layers, and what the outer BP reads of its own FP."""
        front, back = ("FP", outside, -1), ("BP", outside, -1)
        time = self.takes(front, where) + self.stage(where, i, front)
        return self.one(back, self.read(back, front, where), where, time)

    def next_to(self, inside: int, outside: int) -> None:
        """A fused layer that a fused one of the path reads."""
        front, back = ("FP", outside, -1), ("BP", outside, -1)

        def effect(where: Where) -> Together:
            time = self.takes(front, where) + self.read(("FP", inside, -1), front, where)
            return self.one(back, self.takes(back, where, front, ("BP", inside, -1)), where, time)

        self.add([front, back], [front, back], effect)
        self.at(outside)
        self.beside(outside)


def same_as(path: Path, rules: Rules) -> Iterator[tuple[int, set[int], bool]]:
    """Rules with all moves that they are about.

    A place of fused operations that is forbidden is so on all accelerators that have the same right to it: who are not
    the first of their kind, which the first fused FP lies on, and have not been mentioned by a rule that is to be kept
    before, or by one about shares.
    """
    known = {*path.everywhere} if path.counted else {*path.called_first}
    for k, j, yes in rules:
        placed = path.steps[k].placed if 0 <= k < len(path.steps) else []
        ways = list(product(path.everywhere, repeat=len(placed)))
        fused = bool(placed) and all(o[2] < 0 for o in placed) and 0 <= j < len(ways)
        those = {j}
        for name in permutations(path.everywhere) if fused and not yes else ():
            if all(a == b or (path.can_change(a, b) and not {a, b} & known) for a, b in enumerate(name)):
                those.add(ways.index(tuple(name[a] for a in ways[j])))
        yield k, those, yes
        if not fused:
            known = {*path.everywhere}
        elif yes:
            known |= {*ways[j]}


class Walk:
    """All moves of a path: ``moves[k][state]`` are pairs of the state after the ``k``-th step and what it adds."""

    def __init__(self, path: Path, rules: Rules = ()) -> None:
        self.path, self.count = path, len(path.steps)
        self.shares, self.accelerators = len(path.ratio), len(path.everywhere)
        self.moves: list[dict[Label, list[tuple[Label, Any]]]] = []
        known: list[Operation] = []
        states: set[Label] = {()}
        every = list(same_as(path, rules))
        for k, step in enumerate(path.steps):
            allowed = [(those, yes) for step_of, those, yes in every if step_of == k]
            names = list(dict.fromkeys(step.kept))
            self.moves.append({})
            for state in states:
                here = dict(zip(known, state, strict=True))
                self.moves[-1][state] = []
                for number, places in enumerate(self.ways(step.placed)):
                    if any((number in those) != yes for those, yes in allowed):
                        continue
                    where = {**here, **dict(zip(step.placed, places, strict=True))}
                    if not all(path.orderly(o, where) for o in step.placed):
                        continue
                    self.moves[-1][state].append((self.called(names, where), step.effect(where)))
            states = {after for found in self.moves[-1].values() for after, _ in found}
            known = names
        self.ends = states

    def ways(self, placed: list[Operation]) -> list[Label]:
        """Places of operations; of shares that are counted only those in order."""
        path = self.path
        if not path.counted or not any(o[0] != "WU" and o[2] >= 0 and o[1] in path.path for o in placed):
            return list(product(path.everywhere, repeat=len(placed)))
        order = path.by_class
        every = product(order, repeat=len(placed))
        return [those for those in every if all(self.sorted_run([those[b] for b in run]) for run in path.runs)]

    def sorted_run(self, places: list[int]) -> bool:
        return places == sorted(places, key=self.path.by_class.index)

    def called(self, names: list[Operation], where: Where) -> Label:
        """The state; where shares are counted that of all with the same numbers on alike accelerators that comes last.

        One comes before another if the first accelerator that has another number has less: of what comes first among
        the operations, and of runs.
        """
        path = self.path
        if not path.counted:
            return tuple(where[o] for o in names)
        kinds = list({tuple(those): None for those in path.namesakes})
        layers = [list(those) for _, those in groupby(names, lambda o: o[:2])]
        parts = [[those[b] for b in run] for those in layers for run in (path.runs if those[0][2] >= 0 else [[0]])]
        best: Any = None
        for each in product(*(permutations(kind) for kind in kinds)):
            name = dict(zip(chain(*kinds), chain(*each), strict=True))
            places = [[name[where[o]] for o in part] for part in parts]
            held = [[part.count(a) for part in places] for a in path.by_class]
            if best is None or held > best[0]:
                best = held, places
        return tuple(a for part in best[1] for a in sorted(part, key=path.by_class.index))

    def apart(self, k: int) -> bool:
        """Whether labels before the ``k``-th step are those of the tail."""
        return self.path.fold < 0 or k <= self.path.fold

    def folded(self, label: Label) -> Label:
        """All shares have ended after the longest; what was begun no sooner than it could be is left."""
        longest = max(label[: self.shares])
        return (longest, *(max(0, end - longest) for end in self.busy(label)))

    def kinds(self) -> int:
        """Of what is known in the tail of accelerators and has weights: work, and where nothing is fused all finish."""
        return 2 + self.shares if self.path.fold < 0 else 1

    def busy(self, label: Label) -> list[int]:
        work, since = label[self.shares :][: self.accelerators], label[-self.accelerators :]
        return [x + y if x else 0 for x, y in zip(work, since, strict=True)]

    def makespan(self, label: Label) -> int:
        if self.apart(self.count):
            return max(
                *label[: self.shares], *label[self.shares + self.accelerators : -self.accelerators], *self.busy(label)
            )
        return label[0] + max(label[1:])


def checked_weights(walk: Walk, first: int, runs: Any) -> dict[int, Label]:
    """Weights by step; ValueError if they prove nothing."""
    found: dict[int, Label] = {}
    if runs[0][0] != first or first < 0 or any(one[0] >= two[0] for one, two in pairwise(runs)):
        raise ValueError("runs that do not follow each other")
    if runs[-1][0] > walk.count:
        raise ValueError("a step that there is not")
    for k in range(first, walk.count + 1):
        found[k] = next(tuple(run[1:]) for run in reversed(runs) if run[0] <= k)
        several = walk.kinds() if walk.apart(k) else 1
        if len(found[k]) != several * walk.accelerators + (walk.shares if walk.apart(k) else 1):
            raise ValueError("of another length")
        shares = walk.shares if walk.apart(k) else 0
        if walk.path.counted and any(found[k][b] != found[k][run[0]] for run in walk.path.runs for b in run if shares):
            raise ValueError("other weights of shares that are alike")
        own = [found[k][-(walk.shares - b) * walk.accelerators :][: walk.accelerators] for b in range(walk.shares)]
        if several > 1 and walk.path.counted and any(own[b] != own[run[0]] for run in walk.path.runs for b in run):
            raise ValueError("other weights of what shares that are alike have finished")
        for begin in range(shares or 1, len(found[k]) if walk.path.counted else 0, walk.accelerators):
            if any(found[k][begin + a] != found[k][begin + b[0]] for a, b in enumerate(walk.path.namesakes)):
                raise ValueError("other weights of accelerators that are alike")
        if any(type(w) is not int or w < 0 for w in found[k]) or not (walk.apart(k) or found[k][0] == UNIT):
            raise ValueError("of other numbers")
    for k in range(first, walk.count):
        if k != walk.path.fold:
            fall = any(w > x for w, x in zip(found[k], found[k + 1], strict=True))
        else:  # D = the longest of its shares, E >= work - D
            fall = any(w > x for w, x in zip(found[k][walk.shares :], found[k + 1][1:], strict=True))
        if fall or (k == walk.path.fold and sum(found[k]) > UNIT):
            raise ValueError("that fall")
    end = found[walk.count]
    if sum(end if walk.apart(walk.count) else end[1:]) > UNIT:
        raise ValueError("worth more than the makespan")
    return found


def cheapest(walk: Walk, weights: dict[int, Label]) -> dict[int, dict[Label, int]]:
    """What the cheapest steps from a state on cost."""
    found = {walk.count: dict.fromkeys(walk.ends, 0)}
    for k in range(walk.count - 1, min(weights) - 1, -1):
        found[k] = {}
        for state, moves in walk.moves[k].items():
            costs = [found[k + 1][to] + (effect.price(weights[k + 1]) if effect else 0) for to, effect in moves]
            found[k][state] = min(costs, default=NEVER * UNIT)
    return found


def not_dominated(labels: set[Label]) -> Iterator[Label]:
    kept: list[Label] = []
    for label in sorted(labels, key=lambda label: (sum(label), label)):
        if not any(all(map(le, other, label)) for other in kept):
            kept.append(label)
            yield label


def outlived(
    instance: dict[str, Any],
    ratio: Any,
    bound: int,
    proof: Any,
    kind: str = "chain",
    most: Any = None,
    absent: Any = (),
) -> str | None:
    """Why a proof that the ratio has no plan below a bound does not hold; ``None`` if it does.

    With ``most``, that no ratio has whose shares lie between, beside others of ``absent`` limits; shares that may be
    empty count for nothing. TooWide says that the proof may hold.
    """
    parts = list(proof) if isinstance(proof, list) else [proof]
    shares = [(low, high) for low, high in zip(ratio, most or ratio, strict=True) if low]
    path = Path(instance, [low for low, _ in shares], kind, [high for _, high in shares], absent)
    reason = descend(path, (), bound, parts)
    return "more than a tree" if reason is None and parts else reason


def descend(path: Path, rules: Rules, bound: int, parts: list[Any]) -> str | None:
    """Take the parts of one tree from the front: a leaf, or a choice of a step, with its move, then without it."""
    part = parts.pop(0)
    if isinstance(part, dict):
        return leaf(Walk(path, rules), bound, part)
    k, j = part
    if type(k) is not int or type(j) is not int:
        return "a choice that is none"
    halves = [(*rules, (k, j, yes)) for yes in (True, False)]
    return descend(path, halves[0], bound, parts) or descend(path, halves[1], bound, parts)


def leaf(walk: Walk, bound: int, proof: Any) -> str | None:
    """Of the plans that follow the choices."""
    weights = [checked_weights(walk, first, runs) for first, runs in proof["weights"]]
    rest = [cheapest(walk, w) for w in weights]
    if len(proof["grid"]) != walk.count or any(type(g) is not int or g < 1 for g in proof["grid"]):
        return "a grid that is none"
    each = walk.kinds() * walk.accelerators
    start = (0,) * (walk.shares + each) + (NEVER,) * walk.accelerators
    labels: dict[Label, set[Label]] = {(): {start}}
    for k, grid in enumerate(proof["grid"]):
        found: dict[Label, set[Label]] = {}
        for state, those in labels.items():
            for (to, effect), label in product(walk.moves[k][state], those):
                new = walk.folded(label) if effect is None else effect.after(label)
                values = [
                    sum(x * y for x, y in zip(w[k + 1], new, strict=False)) + r[k + 1][to]
                    for w, r in zip(weights, rest, strict=True)
                    if k + 1 in w
                ]
                if max(values, default=bound * UNIT - 1) < bound * UNIT:
                    found.setdefault(to, set()).add((new[0], *(x - x % grid for x in new[1:])))
        if found and walk.path.counted:
            return "a label whose accelerators have lost their names"
        if any(len(those) > MANY for those in found.values()):
            raise TooWide(f"more than {MANY} labels of a state")
        labels = {state: set(not_dominated(those)) for state, those in found.items()}
    left = [label for those in labels.values() for label in those if walk.makespan(label) < bound]
    return f"{len(left)} labels are left, such as {left[0]}" if left else None
