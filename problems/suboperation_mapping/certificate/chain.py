"""The makespan of one ratio along a chain of layers: part of the writer, standard library only.

Take a path of the network, from an input to an output, and leave out all other layers but for what is said below. Look
at a schedule from the inside out: first at the layers after the last fused one (the *tail*), then, layer by layer
towards the input, at what encloses them. A *label* ``(D, E[0], E[1], …)`` bounds what is inside:

- between the start of FP and the end of BP of its outermost layer lies a time of ``D`` at least;
- after that, so much work is left on accelerator ``a`` that it cannot be done in less than ``E[a]``.

A fused operation separates what comes before it from what comes after it. So ``D`` grows by the time of FP, which is
that of the accelerator with most to do in it, and by that of BP; ``E[a]`` grows by the work of BP and WU on ``a``,
which cannot start before, and falls by the time of BP, but not below 0. No makespan is below ``D + max E``. In the tail
shares do not wait for each other: a label has a ``D`` for each, then the work on each accelerator, then the time before
which nothing starts there, counted for every operation from the start of FP of its own share.

A step decides a place or some, which are part of the *state* as long as a cost depends on them. Costs are those of
:mod:`~.graph`, with all transfers along the path; others are left out. A layer beside the path whose output the path
reads has the work of its BP and WU, wherever these lie, as they follow the BP of the layer that reads it.

*Weights* say what a label leads to: the makespan is at least the sum of ``w[j]`` times its ``j``-th number and of
``R(state)``, the least sum of what the moves that follow cost with weights, those after each move. In this no weight
falls outwards, that of ``D`` is 1, and those of ``E`` add up to 1 at most in the end: ``E`` after a move is no less
than its sum with the cost, and not negative. In the tail all add up to 1 at most, and starts have none. Where it ends,
``E`` is at least the work less the largest ``D``: so weights of work are at most those of ``E`` after it, and those of
the ``D`` add up to what they leave of 1.

A proof is ``{"weights": [[first step, [[from step, w, …], …]], …], "grid": [g, …]}``. Labels for which some weights
reach the bound are dropped; all numbers of others but the first are rounded down to a multiple of the grid of the step;
then dominated ones are dropped. It holds if every label that is left in the end has the bound.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import product
from operator import le, mul
from typing import Any

from .graph import Graph

UNIT = 1 << 12  #: of weights
State = tuple[Any, ...]
Label = tuple[int, ...]
Move = tuple[State, Label, tuple[tuple[int, int], ...]]  # the state after it, what it adds, shares on accelerators
NEVER = 1 << 60


class Chain(Graph):
    """The steps of a ratio, outwards; ``moves(k, state)`` are those of the ``k``-th.

    States are pairs of places, of FP and of BP.

    Attributes
    ----------
    fold : int or None
        The step that ends the tail; ``None`` if nothing is fused.
    """

    def __init__(self, instance: dict[str, Any], ratio: Sequence[int]) -> None:
        super().__init__(instance, tuple(ratio))
        self.sizes = {(o, p): size for o in self.operations for p, size in self.before[o]}
        self.spreads = list(product(self.places, repeat=len(self.shares)))
        self.steps: list[Any] = []
        self.fold: int | None = None
        self.known: dict[Any, list[Move]] = {}
        self.first: dict[int, int] = {}
        self.numbered: dict[str, int] = {}
        self.path = self.longest()
        self.seen = {*self.path}
        rest = self.tail()
        while rest:
            rest = self.pair(rest) if len(rest) > 1 and self.split(rest[1]) else self.meeting(rest)

    def longest(self) -> list[int]:
        """A path of most layers, the last one first."""
        best: list[list[int]] = []
        for k, layer in enumerate(self.layers):
            before = [best[edge["source"]] for edge in layer["inputs"]]
            best.append([k, *max(before, key=lambda path: (len(path), path), default=[])])
        return max(best, key=lambda path: (len(path), path))

    def inner(self, k: int) -> bool:
        """Whether labels before a step are those of the tail."""
        return self.fold is None or k <= self.fold

    def start(self) -> Label:
        return (*(0 for _ in (*self.shares, *self.places)), *(NEVER for _ in self.places))

    def moves(self, k: int, state: State) -> list[Move]:
        key = self.alike(k), state
        if key not in self.known:
            self.known[key] = list(self.steps[k](*state))
        return self.known[key]

    def alike(self, k: int) -> int:
        """The first step with the same moves: that of other layers with the same numbers."""
        if k not in self.first:
            step = self.steps[k]
            layers = [self.layers[i] for i in step.args[1:] if i is not None]
            facts = [[layer[key] for key in ("kind", "fp", "bp", "wu", "weight_bytes")] for layer in layers]
            those = [o for i in step.args[1:] for o in self.operations if o[1] == i]
            sizes = [self.sizes.get((o, p)) for o in those for p in those]
            found = repr((step.func.__name__, [i is None for i in step.args], step.keywords, facts, sizes))
            self.first[k] = self.numbered.setdefault(found, k)
        return self.first[k]

    def states(self) -> list[list[State]]:
        """Those that can be reached, before each step and in the end."""
        found: list[list[State]] = [[(None, None)]]
        for k in range(len(self.steps)):
            found.append([*dict.fromkeys(after for state in found[-1] for after, *_ in self.moves(k, state))])
        return found

    # ---- which steps there are ----

    def tail(self) -> list[int]:
        """Steps of the split layers after the last fused one; the path from this on."""
        inner, rest = None, self.path
        while rest and self.split(rest[0]):
            here, *rest = rest
            self.steps.append(partial(Chain.spread_alone, self, here, inner))
            self.updates(here, inner)
            if rest:
                self.steps.append(partial(Chain.back_alone, self, here, inner))
            inner = here
        if rest:
            self.steps.append(partial(Chain.reach, self, rest[0], inner))
            self.fold = len(self.steps)
            self.steps += [partial(Chain.same, self), partial(Chain.close, self, rest[0], inner)]
            self.beside(rest[0])
        return rest

    def updates(self, layer: int, inner: int | None) -> None:
        self.steps += [partial(Chain.update, self, layer, inner, b=b) for b in self.shares]

    def beside(self, layer: int) -> None:
        """Work of split layers beside the path that one of it reads."""
        for source in sorted({edge["source"] for edge in self.layers[layer]["inputs"]} - self.seen):
            self.seen.add(source)
            for phase, b in product(("WU", "BP"), self.shares):
                if self.split(source) and (phase, source, b) in self.before:
                    self.steps.append(partial(Chain.work, self, o=(phase, source, b)))

    def pair(self, path: list[int]) -> list[int]:
        """Steps of a split layer and the fused one before it; ``path`` begins with the one after it."""
        after, here, *rest = path
        self.steps.append(partial(Chain.spread, self, here, after))
        self.updates(here, after)
        self.beside(here)
        if not rest:
            self.steps.append(partial(Chain.head, self, here))
            return []
        if self.split(rest[0]):
            raise ValueError("split layers in a row")
        self.steps += [partial(Chain.back, self, here, after), partial(Chain.join, self, rest[0], here)]
        self.steps.append(partial(Chain.begin, self, rest[0], here))
        self.beside(rest[0])
        return rest

    def meeting(self, path: list[int]) -> list[int]:
        """Steps of a fused layer that the next one of the path reads, which is fused as well."""
        after, *rest = path
        if rest:
            self.steps.append(partial(Chain.meet, self, rest[0], after))
            self.beside(rest[0])
        return rest

    # ---- what they cost ----

    def moved(self, o: Any, p: Any, i: int, a: int) -> int:
        """The transfer of an operation on ``a`` from its predecessor on ``i``."""
        return self.ticks(self.sizes.get((o, p), 0), i, a)

    def alone(self, where: int, ticks: int, since: int = 0) -> Label:
        """What a fused operation of BP adds to a label, and time in FP: on all other accelerators work is done."""
        return (since + ticks, *(0 if a == where else -ticks for a in self.places))

    def on(self, where: Sequence[int], ticks: Sequence[int]) -> list[int]:
        """Loads of all accelerators."""
        loads = [0 for _ in self.places]
        for a, t in zip(where, ticks, strict=True):
            loads[a] += t
        return loads

    def same(self, *state: Any) -> Iterator[Move]:
        yield state, (), ()

    def work(self, *state: Any, o: Any) -> Iterator[Move]:
        """An operation beside the path."""
        for a in self.places:
            yield state, (0, *self.on([a], [self.compute(o, a)])), ()

    def update(self, here: int, inner: int | None, c: Any, c2: Any, b: int) -> Iterator[Move]:
        """The WU of a share; ``c2`` is where its loss comes from."""
        o, weights = ("WU", here, b), self.layers[here]["weight_bytes"]
        loss = None if inner is None else ("BP", inner, b) if self.split(inner) else ("BP", inner, -1)
        for a in self.places:
            ticks = self.compute(o, a) + self.moved(o, ("FP", here, b), c[b], a)
            ticks += sum(self.ticks(weights, a, h) for h in {*c})
            if loss:
                ticks += self.moved(o, loss, c2[b] if self.split(loss[1]) else c2, a)
            took = self.on([a], [ticks])
            if inner is None or self.split(inner):
                yield (c, c2), (*(0 for _ in c), *took, *(0 for _ in took)), ((b, a),)
            else:
                yield (c, c2), (0, *took), ()

    def spread_alone(self, here: int, inner: int | None, c: Any, c2: Any) -> Iterator[Move]:
        """FP in the tail, and what the next layer reads of it."""
        for own in self.spreads:
            time = [self.compute(("FP", here, b), a) for b, a in enumerate(own)]
            read = [0 for _ in own]
            if inner is not None:
                read = [self.moved(("FP", inner, b), ("FP", here, b), a, c[b]) for b, a in enumerate(own)]
            work = [x + y for x, y in zip(self.on(own, time), self.on(c or own, read), strict=True)]
            both = [x + y for x, y in zip(time, read, strict=True)]
            since = [-2 * NEVER if a in own else min(time if a in (c or ()) else both) for a in self.places]
            yield (own, c2), (*both, *work, *since), ()

    def backward(self, here: int, inner: int | None, c: Any, c2: Any, own: Any) -> list[int]:
        """The time of each share in BP."""
        time = []
        for b, a in enumerate(own):
            o = ("BP", here, b)
            time.append(self.compute(o, a) + self.moved(o, ("FP", here, b), c[b], a))
            if inner is not None:
                split = self.split(inner)
                time[-1] += self.moved(o, ("BP", inner, b if split else -1), c2[b] if split else c2, a)
        return time

    def back_alone(self, here: int, inner: int | None, c: Any, c2: Any) -> Iterator[Move]:
        """BP in the tail."""
        for own in self.spreads:
            time = self.backward(here, inner, c, c2, own)
            yield (c, own), (*time, *self.on(own, time), *(0 for _ in self.places)), tuple(enumerate(own))

    def reach(self, fused: int, inner: int | None, c: Any, c2: Any) -> Iterator[Move]:
        """The place of the last fused FP, which the tail reads."""
        for i in self.places:
            if inner is None:
                yield (i, None), (0,) * len(self.start()), ()
            else:
                read = [self.moved(("FP", inner, b), ("FP", fused, -1), i, a) for b, a in enumerate(c)]
                yield (i, c2), (*read, *self.on(c, read), *(0 if a in c else min(read) for a in self.places)), ()

    def gathered(self, fused: int, inner: int, c2: Any, a: int) -> int:
        """A fused BP without what it reads of its own FP."""
        o = ("BP", fused, -1)
        return self.compute(o, a) + sum(self.moved(o, ("BP", inner, b), i, a) for b, i in enumerate(c2))

    def close(self, fused: int, inner: int | None, i: Any, c2: Any) -> Iterator[Move]:
        """The place of the last fused BP, and the times of FP and BP."""
        o = ("BP", fused, -1)
        for a in self.places:
            ticks = self.compute(o, a) if inner is None else self.gathered(fused, inner, c2, a)
            ticks += self.moved(o, ("FP", fused, -1), i, a)
            yield (i, a), self.alone(a, ticks, self.compute(("FP", fused, -1), i)), ()

    def spread(self, here: int, after: int, i: Any, i2: Any) -> Iterator[Move]:
        """Places of FP, and what the fused operation after it gathers."""
        o = ("FP", after, -1)
        for c in self.spreads:
            ticks = sum(self.moved(o, ("FP", here, b), a, i) for b, a in enumerate(c))
            yield (c, i2), (ticks, *(0 for _ in self.places)), ()

    def back(self, here: int, after: int, c: Any, i2: Any) -> Iterator[Move]:
        """Places of BP."""
        for own in self.spreads:
            loads = self.on(own, self.backward(here, after, c, i2, own))
            yield (c, own), (max(loads), *(load - max(loads) for load in loads)), ()

    def join(self, fused: int, inner: int, c: Any, c2: Any) -> Iterator[Move]:
        """The place of the fused BP after it."""
        for a in self.places:
            yield (c, a), self.alone(a, self.gathered(fused, inner, c2, a)), ()

    def begin(self, fused: int, inner: int, c: Any, i2: Any) -> Iterator[Move]:
        """The place of the fused FP before it, the time of FP, and what the fused BP reads of its own FP."""
        o = ("FP", fused, -1)
        for i in self.places:
            since = self.compute(o, i) + self.forward(inner, c, i)
            own = self.moved(("BP", fused, -1), o, i, i2)
            yield (i, i2), self.alone(i2, own, since), ()

    def forward(self, here: int, c: Any, i: int | None) -> int:
        """The time of FP of a layer."""
        time = [self.compute(("FP", here, b), a) for b, a in enumerate(c)]
        if i is not None:
            above = next(p for p in self.path[self.path.index(here) + 1 :])
            time = [t + self.moved(("FP", here, b), ("FP", above, -1), i, c[b]) for b, t in enumerate(time)]
        return max(self.on(c, time))

    def head(self, here: int, c: Any, i2: Any) -> Iterator[Move]:
        """The time of FP of the first layer, which has no BP."""
        yield (None, None), (self.forward(here, c, None), *(0 for _ in self.places)), ()

    def meet(self, fused: int, after: int, i: Any, i2: Any) -> Iterator[Move]:
        """Both places of a fused layer that a fused one reads."""
        for j, a in product(self.places, repeat=2):
            since = self.compute(("FP", fused, -1), j) + self.moved(("FP", after, -1), ("FP", fused, -1), j, i)
            ticks = self.compute(("BP", fused, -1), a) + self.moved(("BP", fused, -1), ("BP", after, -1), i2, a)
            ticks += self.moved(("BP", fused, -1), ("FP", fused, -1), j, a)
            yield (j, a), self.alone(a, ticks, since), ()


# ---- labels ----


def folded(chain: Chain, label: Label) -> Label:
    """A label of the tail as one of what is inside a fused layer."""
    longest, ends = max(label[: len(chain.shares)]), busy(chain, label)
    return (longest, *(max(0, end - longest) for end in ends))


def busy(chain: Chain, label: Label) -> list[int]:
    """When the work of the tail can be done, on each accelerator."""
    k, n = len(chain.shares), len(chain.places)
    return [work and work + since for work, since in zip(label[k : k + n], label[k + n :], strict=True)]


def moved(chain: Chain, label: Label, move: Move) -> Label:
    """The label after a move."""
    _, added, pairs = move
    new = [max(0, x + y) for x, y in zip(label, added, strict=True)]
    for b, a in pairs:
        j = a - len(chain.places)
        new[j] = min(new[j], label[b])
    return tuple(new)


def weighted(weights: Label, label: Label) -> int:
    return sum(map(mul, weights, label))


class Weights:
    """What labels of a state lead to, from a step on; refuses weights that prove nothing."""

    def __init__(self, chain: Chain, states: list[list[State]], first: int, runs: Sequence[Sequence[int]]) -> None:
        self.first, last = first, len(chain.steps)
        starts = [run[0] for run in runs]
        if starts[0] != first or starts != sorted({*starts}) or starts[-1] > last:
            raise ValueError("weights of a step are missing")
        rows = [
            tuple(run[1:]) for run, end in zip(runs, [*starts[1:], last + 1], strict=True) for _ in range(run[0], end)
        ]
        for k, w in enumerate(rows, first):
            if (
                len(w) != len(chain.places) + (len(chain.shares) if chain.inner(k) else 1)
                or min(w) < 0
                or {*map(type, w)} != {int}
            ):
                raise ValueError("weights of another length, or no whole numbers")
            if not chain.inner(k) and w[0] != UNIT:
                raise ValueError("a weight of D that is not 1")
            if k > first and (k - 1 == chain.fold or any(x > y for x, y in zip(rows[k - first - 1], w, strict=True))):
                before, n = rows[k - first - 1], len(chain.places)
                if k - 1 != chain.fold or sum(before) > UNIT or any(map(int.__gt__, before[-n:], w[-n:])):
                    raise ValueError("a weight that falls")
        if sum(rows[-1]) > UNIT * (1 if chain.fold is None else 2):
            raise ValueError("weights of a sum above 1")
        self.rows = dict(enumerate(rows, first))
        self.rest: dict[int, dict[State, int]] = {last: dict.fromkeys(states[last], 0)}
        for k in reversed(range(first, last)):
            w, after = self.rows[k + 1], self.rest[k + 1]
            if k == chain.fold:
                self.rest[k] = after
            else:
                self.rest[k] = {
                    s: min(after[t] + weighted(w, added) for t, added, _ in chain.moves(k, s)) for s in states[k]
                }

    def value(self, k: int, state: State, label: Label) -> int:
        return weighted(self.rows[k], label) + self.rest[k][state]


def undominated(labels: Iterable[Label]) -> list[Label]:
    """One by one in rising order, so that what dominates a label comes before it."""
    found: list[Label] = []
    stairs: list[tuple[int, int]] = []  # of the last two numbers of three, the first one rising, the second one falling
    for label in sorted({*labels}):
        if len(label) == 3:
            x, y = label[1:]
            k = bisect_right(stairs, (x, y))
            if k and stairs[k - 1][1] <= y:
                continue
            end = next((j for j in range(k, len(stairs)) if stairs[j][1] < y), len(stairs))
            stairs[k:end] = [(x, y)]
        elif len(label) == 4:
            _, x, y, z = label
            if any(a <= x and b <= y and c <= z for _, a, b, c in found):
                continue
        elif any(all(map(le, other, label)) for other in found):
            continue
        found.append(label)
    return found


def outlived(chain: Chain, bound: int, proof: Any) -> str | None:
    """Why a proof does not hold; ``None`` if it does."""
    states, last = chain.states(), len(chain.steps)
    known = [Weights(chain, states, first, runs) for first, runs in proof["weights"]]
    grid = proof["grid"]
    if len(grid) != last or any(type(g) is not int or g < 1 for g in grid):
        return "expected a grid of every step"
    labels: dict[State, list[Label]] = {states[0][0]: [chain.start()]}
    for k, g in enumerate(grid):
        ready = [weights for weights in known if weights.first <= k + 1]
        found: dict[State, list[Label]] = {}
        for state, those in labels.items():
            for move in chain.moves(k, state):
                limits = [(w.rows[k + 1], UNIT * bound - w.rest[k + 1][move[0]]) for w in ready]
                for label in those:
                    new = folded(chain, label) if k == chain.fold else moved(chain, label, move)
                    if all(weighted(w, new) < limit for w, limit in limits):
                        found.setdefault(move[0], []).append((new[0], *(x // g * g for x in new[1:])))
        labels = {state: undominated(those) for state, those in found.items()}
    for label in (label for those in labels.values() for label in those):
        ends = (*label[: len(chain.shares)], *busy(chain, label)) if chain.inner(last) else (label[0] + max(label[1:]),)
        if max(ends) < bound:
            return f"a label is left: {label}"
    return None
