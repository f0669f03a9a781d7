"""All moves of every step of a chain as arrays, the same numbers as :class:`Chain` yields one by one.

The states of a step are the product of *sorts*: what is known of FP and of BP is a place, a place for each share (a
*spread*), one in which those of alike shares rise, or nothing; what is remembered for a shortcut both places of a
layer, or nothing. The moves of a state are as many as those of all others, so an array of a step has an axis for each
part of the state and one for the moves; some of them do not exist. A cost is the sum of tables for single shares,
looked up for all spreads at once. Where shares are counted, spreads of FP are those that are left when accelerators are
named by what they have, and states with other names are not reached.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mapgap.formulations.suboperation_mapping.chain_kernels import deal, different
from mapgap.problems.suboperation_mapping.certificate.chain import Chain
from mapgap.problems.suboperation_mapping.certificate.chain_costs import NEVER

Whole = NDArray[np.int64]
Small = NDArray[np.int32]
Flags = NDArray[np.bool_]
Sorts = tuple[str, ...]
NOTHING, PLACE, SPREAD, RISING, PLACES = "nothing", "place", "spread", "rising", "places"
FRONT = "front"  #: a spread of FP, a sort of its own as accelerators may be named by what they have of it
START: Sorts = (NOTHING, NOTHING)


class Step(NamedTuple):
    """The moves of a step, by state that can be reached.

    Attributes
    ----------
    sorts : tuple of str
        Of the states after it.
    each : int
        Moves of a state.
    to : (moves,) int32
        The state after each.
    added : (different, numbers) int64
        What moves add to a label.
    which : (moves,) int32
        Which of these rows each adds.
    pairs : (moves, shares, starts) bool, or None
        Whether a start is that of a share.
    numbers : (each,) int64
        Of the moves of a state, as the checker has them.
    exist : (moves,) bool, or None
        Those that do; all of them.
    """

    sorts: Sorts
    each: int
    to: Small
    added: Whole
    which: Small
    pairs: Flags | None
    numbers: Whole
    exist: Flags | None = None

    @property
    def turns(self) -> bool:
        """Whether moves of a state lead to different ones."""
        to = self.to.reshape(-1, self.each)
        return bool((to != to[:, :1]).any())


class Arrays:
    """The steps of a chain as arrays."""

    def __init__(self, chain: Chain) -> None:
        self.chain, self.n, self.m = chain, len(chain.places), len(chain.shares)
        self.one = np.eye(self.n, dtype=np.int64)
        self.spreads = np.array(chain.spreads, np.int64)
        self.rising = np.array([j for j, c in enumerate(chain.rising()) if c])  # which of these
        self.ways = {FRONT: self.spreads, RISING: self.spreads[self.rising]}  # moves that choose a spread of FP
        self.fronts = {sort: np.unique(self.named(those)[0], axis=0) for sort, those in self.ways.items()}
        lengths = {sort: len(those) for sort, those in self.fronts.items()}
        self.size = {NOTHING: 1, PLACE: self.n, PLACES: self.n**2, SPREAD: len(self.spreads), **lengths}
        self.known_states: dict[tuple[Sorts, bool], Whole] = {}
        self.on = self.one[self.spreads]  # by spread and share its place, as a row of 0 and 1
        self.none = np.zeros(self.n, np.int64)
        # Of the step that is made: states before it without what is remembered, by both parts, that have moves.
        self.here = np.ones((1, 1), np.bool_)
        self.known: dict[int, Whole] = {}

    def after(self, step: Step) -> tuple[Sorts, str]:
        """The sorts of states after a step, and that of what is remembered."""
        return step.sorts[: len(START)], step.sorts[-1] if len(self.chain.origin) > len(START) else NOTHING

    def made(self, k: int, sorts: Sorts, kept: str, here: Flags) -> Step:
        """A step after states of these sorts, and of what is remembered; ``here`` are those that can be reached."""
        step, remembers = self.chain.steps[k], len(self.chain.origin) > len(START)
        of_both = here.reshape(-1, self.size[kept] if remembers else 1)
        self.here = of_both.any(axis=1).reshape(self.size[sorts[0]], self.size[sorts[1]])
        make: Callable[..., Step] = getattr(self, step.func.__name__)
        one = make(k, sorts, *step.args[1:], **step.keywords)
        if k == self.chain.first_fused:  # moves have the place of FP first
            first = np.isin(np.arange(self.n), self.chain.firsts)
            one = one._replace(exist=np.resize(np.repeat(first, one.each // self.n), one.to.size))
        return self.remembering(k, one, kept, of_both[of_both.any(axis=1)]) if remembers else one

    def remembering(self, k: int, step: Step, kept: str, here: Flags) -> Step:
        """With an axis for what is remembered, as :meth:`~.chain_shortcuts.Shortcuts.remembering`."""
        to = step.to.reshape(-1, 1, step.each)
        many, after, added, which = self.size[kept], kept, step.added, step.which.reshape(to.shape)
        if k in self.chain.ended:
            added, which = self.grouped(added[which] + self.longer(k, to))
            after = kept if self.chain.steps[k].func is Chain.join else NOTHING
        if k in self.chain.opened:
            to, after = to * self.n**2 + to, PLACES
        elif after != NOTHING:
            to = to * many + np.arange(many, dtype=np.int32)[:, None]

        def reached(part: NDArray[Any]) -> NDArray[Any]:
            found: NDArray[Any] = np.broadcast_to(part, (len(to), many, step.each))[here].reshape(-1)
            return found

        exist = None if step.exist is None else reached(step.exist.reshape(len(to), 1, -1))
        return Step(
            (*step.sorts, after), step.each, reached(to), added, reached(which), step.pairs, step.numbers, exist
        )

    def longer(self, k: int, to: Small) -> Whole:
        """What the transfers of a shortcut add, by state, what is remembered, and move."""
        step, inner = self.chain.steps[k], self.chain.ended[k]
        outer, (i, i2) = step.args[1], np.divmod(np.arange(self.n**2)[:, None], self.n)
        j, a = np.divmod(to, self.n)
        none = np.zeros((len(to), self.n**2, to.shape[-1]), np.int64)
        forth = none if step.func is Chain.join else self.moved(("FP", inner, -1), ("FP", outer, -1))[j, i]
        back = none if step.func is Chain.begin else self.moved(("BP", outer, -1), ("BP", inner, -1))[i2, a]
        return self.alone(back, self.one[a], forth)

    def cost(self, k: int, added: Whole) -> Whole:
        """What moves add to the numbers that have weights, as :meth:`~.chain_moves.Moves.cost`."""
        return added[:, : self.chain.weighed] if self.chain.inner(k + 1) else added

    # ---- states ----

    def named(self, *parts: Whole) -> list[Whole]:
        """States, one a row, with accelerators and shares in the order of :meth:`~.chain_moves.Moves.named`."""
        if not self.chain.counted:
            return [*parts]
        rows, cuts = np.hstack(parts), np.cumsum([part.shape[1] for part in parts])
        runs = [
            [end - part.shape[1] + b for b in run]
            for part, end in zip(parts, cuts, strict=True)
            for run in (self.chain.runs if part.shape[1] == self.m else [[0]] * part.shape[1])
        ]
        held, here = np.zeros((len(rows), self.n), np.int64), np.arange(len(rows))[:, None]
        for run in runs:
            held = held * (self.m + 1) + self.one[rows[:, run]].sum(axis=1)
        rank, name = np.array(self.chain.rank), np.zeros((len(rows), self.n), np.int64)
        for q in {*self.chain.like}:
            own = np.array([a for a in self.chain.places if self.chain.like[a] == q])
            name[here, own[np.argsort(-held[:, own], axis=1, kind="stable")]] = own
        found = name[here, rows]
        for run in runs:
            found[:, run] = np.argsort(rank)[np.sort(rank[found[:, run]], axis=1)]
        return np.split(found, cuts[:-1], axis=1)

    def number(self, sorts: Sorts, chosen: bool) -> Whole:
        """The numbers of states with both parts, the first one a way to choose it or a front, when they have names."""
        if (sorts, chosen) not in self.known_states:
            alone = {NOTHING: np.zeros((1, 0), np.int64), PLACE: np.arange(self.n)[:, None], SPREAD: self.spreads}
            first, second = ((self.ways if chosen else self.fronts) | alone)[sorts[0]], alone[sorts[1]]
            both = self.named(np.repeat(first, len(second), axis=0), np.tile(second, (len(first), 1)))
            fronts = self.found((self.fronts | alone)[sorts[0]], both[0])
            self.known_states[sorts, chosen] = fronts * len(second) + self.found(second, both[1])
        return self.known_states[sorts, chosen]

    def found(self, tuples: Whole, rows: Whole) -> Whole:
        """Which of some tuples of places each row is."""
        power = self.n ** np.arange(rows.shape[1])[::-1]
        codes = tuples @ power
        order = np.argsort(codes)
        found: Whole = order[np.searchsorted(codes[order], rows @ power)]
        return found

    # ---- tables ----

    def moved(self, o: Any, p: Any) -> Whole:
        """The transfer of an operation from its predecessor: by the place of this one, and its own."""
        return self.transfer(self.chain.sizes.get((o, p), 0))

    def transfer(self, size: int) -> Whole:
        """From every accelerator to every other one."""
        if size not in self.known:
            places = self.chain.places
            self.known[size] = np.array([[self.chain.ticks(size, i, a) for a in places] for i in places], np.int64)
        return self.known[size]

    def itself(self, o: Any, p: Any, b: int, before: Whole, own: Whole) -> Whole:
        """What an operation of a share reads of another one of it: by the spread of that, and own spread.

        Of shares that are counted as many are where they were as can be, the first ones of their run.
        """
        here = own[:, b]
        if not self.chain.counted:
            return self.moved(o, p)[before[:, b]][:, here]
        run = next(run for run in self.chain.runs if b in run)
        sooner = (own[:, run[: run.index(b)]] == here[:, None]).sum(axis=1)
        there: Flags = self.one[before[:, run]].sum(axis=1)[:, here] > sooner
        return self.read(o, p, there, here)

    def loss(self, o: Any, p: Any, b: int) -> Whole:
        """What WU of a share reads of its BP in the next layer: by spread of that, and own place.

        Of shares that are counted any one of the run may be its own.
        """
        if not self.chain.counted:
            return self.moved(o, p)[self.spreads[:, b]]
        run = next(run for run in self.chain.runs if b in run)
        return self.read(o, p, self.one[self.spreads[:, run]].max(axis=1) > 0, np.arange(self.n))

    def read(self, o: Any, p: Any, there: Flags, own: Whole) -> Whole:
        """The transfers to ``own`` places of what is there, or comes over the quickest link."""
        table = self.moved(o, p)
        least = np.where(np.eye(self.n, dtype=np.bool_), table.max(), table).min(axis=0)
        found: Whole = np.where(there, np.diag(table)[own], least[own])
        return found

    def compute(self, o: Any) -> Whole:
        return np.array([self.chain.compute(o, a) for a in self.chain.places], np.int64)

    def loads(self, time: Whole) -> Whole:
        """Of all accelerators, if the shares of all spreads, the two last axes, take so long."""
        found: Whole = np.einsum("...cb,cba->...ca", time, self.on)
        return found

    def at(self, ticks: Whole) -> Whole:
        """Rows that have the ticks of an accelerator, the last axis, there and 0 elsewhere."""
        found: Whole = ticks[..., None] * self.one
        return found

    def alone(self, ticks: Whole, where: Whole, since: Whole | int = 0) -> Whole:
        """What fused operations of BP add; ``where`` has a row of 0 and 1 for the accelerator of each."""
        others = -ticks[..., None] * (1 - where)
        return np.concatenate([(since + ticks)[..., None], others], axis=-1)

    def step(
        self,
        k: int,
        sorts: Sorts,
        to: Whole,
        *parts: Whole,
        grouped: tuple[Whole, Small] | None = None,
        pairs: Flags | None = None,
        numbers: Whole | None = None,
        exist: Flags | None = None,
        chosen: bool = False,
    ) -> Step:
        """A step with the states after it, by both parts of that before and move, or by some of these.

        So are the numbers that it adds, whose parts are put side by side, or they are ``grouped`` already. Moves have
        ``chosen`` a spread of FP, whose number is that among all ways, or it is that of before.
        """
        each = to.shape[-1]
        if self.chain.counted:
            to = self.number(sorts, chosen)[to]

        def reached(part: NDArray[Any], *width: int) -> NDArray[Any]:
            found: NDArray[Any] = np.broadcast_to(part, (*self.here.shape, each, *width))[self.here]
            return found.reshape(-1, *width)

        full = list(parts)
        if self.chain.waits and self.chain.inner(k):
            full = self.waiting(full, pairs)
        added, which = self.grouped(*full) if grouped is None else grouped
        pairs = None if pairs is None else reached(pairs, *pairs.shape[-2:])
        exist = None if exist is None else reached(exist)
        numbers = np.arange(each) if numbers is None else numbers
        return Step(sorts, each, reached(to.astype(np.int32)), added, reached(which), pairs, numbers, exist)

    def grouped(self, *parts: Whole) -> tuple[Whole, Small]:
        """Rows of numbers, whose parts are side by side, that differ, and which of them each is."""
        shape = np.broadcast_shapes(*(part.shape[:-1] for part in parts))
        rows = np.concatenate([np.broadcast_to(part, (*shape, part.shape[-1])) for part in parts], axis=-1)
        which = np.empty(shape, np.int32)
        rows = np.ascontiguousarray(rows).reshape(which.size, rows.shape[-1])
        return different(rows, which.reshape(-1)), which

    def waiting(self, parts: list[Whole], pairs: Flags | None) -> list[Whole]:
        """As :meth:`~.chain_moves.Moves.waiting`."""
        time, work, since = parts
        if pairs is None:
            least = np.repeat(time.min(axis=-1)[..., None], self.n, axis=-1)
            return [time, work, least, np.repeat(time, self.n, axis=-1), since]
        one = pairs.sum(axis=(-2, -1)) == 1
        own = np.where(pairs, np.where(one[..., None, None], work[..., None, :], time[..., None]), 0)
        return [time, work, work, own.reshape(*own.shape[:-2], -1), since]

    def count(self, sorts: Sorts) -> int:
        """How many states there are."""
        return prod(self.size[sort] for sort in sorts)

    def states(self, sorts: Sorts) -> Whole:
        """The numbers of states by both parts, with an axis for moves."""
        return np.arange(self.count(sorts)).reshape(*(self.size[sort] for sort in sorts), 1)

    # ---- steps: axes are the part of FP, that of BP, and moves ----

    def same(self, k: int, sorts: Sorts) -> Step:
        return self.step(k, sorts, self.states(sorts), self.none[:0])

    def work(self, k: int, sorts: Sorts, o: Any) -> Step:
        to = self.states(sorts) + self.none
        return self.step(k, sorts, to, np.zeros(1, np.int64), self.at(self.compute(o)))

    def spared(self, k: int, sorts: Sorts, layer: int, phase: str, low: int, high: int) -> Step:
        ticks = np.array([self.chain.least(phase, layer, a, low, high) for a in self.chain.places], np.int64)
        return self.step(k, sorts, self.states(sorts) + self.none, np.zeros(1, np.int64), self.at(ticks))

    def update(self, k: int, sorts: Sorts, here: int, inner: int | None, b: int) -> Step:
        o, to = ("WU", here, b), self.states(sorts) + self.none
        front = self.fronts[sorts[0]]
        held = self.one[front].max(axis=1)  # who has the weights
        ticks = self.compute(o) + self.moved(o, ("FP", here, b))[front[:, b]]
        ticks = (ticks + held @ self.transfer(self.chain.layers[here]["weight_bytes"]).T)[:, None]
        if inner is not None and not self.chain.split(inner):
            ticks = ticks + self.moved(o, ("BP", inner, -1))
            return self.step(k, sorts, to, np.zeros(1, np.int64), self.at(ticks))
        if inner is not None:
            ticks = ticks + self.loss(o, ("BP", inner, b), b)
        pairs = np.zeros((self.n, self.m, self.n), np.bool_)
        pairs[:, b] = self.one
        return self.step(k, sorts, to, np.zeros(self.m, np.int64), self.at(ticks), self.none, pairs=pairs)

    def backward(self, here: int, inner: int | None, front: Whole) -> tuple[Whole, Whole]:
        """The time of shares in BP, a sum: by share, spread of FP and spread, and by share, state of BP and spread."""
        own, first, second = self.spreads, list[Whole](), list[Whole]()
        for b in range(self.m):
            o = ("BP", here, b)
            first.append(self.compute(o)[own[:, b]] + self.itself(o, ("FP", here, b), b, front, own))
            if inner is None:
                second.append(np.zeros((1, len(own)), np.int64))
            elif self.chain.split(inner):
                second.append(self.itself(o, ("BP", inner, b), b, own, own))
            else:
                second.append(self.moved(o, ("BP", inner, -1))[:, own[:, b]])
        return np.array(first), np.array(second)

    def gathered(self, fused: int, inner: int) -> Whole:
        """As :meth:`~.chain_costs.Costs.gathered`: by spread and place."""
        o = ("BP", fused, -1)
        moved = [self.moved(o, ("BP", inner, b))[c] for b, c in enumerate(self.spreads.T)]
        found: Whole = self.compute(o) + np.sum(moved, axis=0)
        return found

    def spread(self, k: int, sorts: Sorts, here: int, after: int) -> Step:
        o, i2 = ("FP", after, -1), np.arange(self.n)[:, None]
        ticks = np.sum([self.moved(o, ("FP", here, b))[c] for b, c in enumerate(self.ways[RISING].T)], axis=0)
        to = np.arange(len(self.rising)) * self.n + i2
        parts = ticks.T[:, None, :, None], self.none
        return self.step(k, (RISING, PLACE), to, *parts, numbers=self.rising, chosen=True)

    def back(self, k: int, sorts: Sorts, here: int, after: int) -> Step:
        first, second = self.backward(here, after, self.fronts[RISING])
        which = np.zeros((*self.here.shape, len(self.spreads)), np.int32)
        grouped = deal(first, second, self.spreads, self.n, self.here, which), which
        return self.step(k, (RISING, SPREAD), self.both(RISING), grouped=grouped, exist=self.exist)

    def both(self, front: str) -> Whole:
        """The number of the state with a spread of FP, the first axis, and one of BP, the last one."""
        return np.arange(self.size[front] * len(self.spreads)).reshape(-1, 1, len(self.spreads))

    @cached_property
    def exist(self) -> Flags:
        """Whether shares that are alike rise in both, with axes as :meth:`both`."""
        front, own = self.fronts[RISING], self.spreads
        found = np.ones((len(front), len(own)), np.bool_)
        for b in self.chain.alike_shares:
            found &= (front[:, b] != front[:, b + 1])[:, None] | (own[:, b] <= own[:, b + 1])
        return found[:, None] | self.chain.counted

    def join(self, k: int, sorts: Sorts, fused: int, inner: int) -> Step:
        s, a = np.arange(self.size[RISING]), np.arange(self.n)
        to = (s[:, None] * self.n + a)[:, None]
        return self.step(k, (RISING, PLACE), to, self.alone(self.gathered(fused, inner), self.one))

    def begin(self, k: int, sorts: Sorts, fused: int, inner: int) -> Step:
        a, own = np.arange(self.n), self.moved(("BP", fused, -1), ("FP", fused, -1)).T
        since = (self.compute(("FP", fused, -1)) + self.forward(inner, fused))[:, None]
        added = self.alone(own + since * 0, self.one[:, None], since)
        return self.step(k, (PLACE, PLACE), a * self.n + a[:, None], added)

    def forward(self, here: int, fused: int | None) -> Whole:
        """The time of FP: by spread, and by the place of the fused one that it reads from, or one column."""
        front, found = self.fronts[RISING], list[Whole]()
        for b, c in enumerate(front.T):
            o = ("FP", here, b)
            found.append(self.compute(o)[c] + (self.moved(o, ("FP", fused, -1))[:, c] if fused is not None else 0))
        longest: Whole = np.einsum("...cb,cba->...ca", np.stack(found, axis=-1), self.one[front]).max(axis=-1)
        return longest.reshape(-1, len(front)).T

    def head(self, k: int, sorts: Sorts, here: int) -> Step:
        to = np.zeros((*(self.size[sort] for sort in sorts), 1), np.int64)
        return self.step(k, START, to, self.forward(here, None)[:, None, :, None], self.none)

    def meet(self, k: int, sorts: Sorts, fused: int, after: int) -> Step:
        b, n = ("BP", fused, -1), self.n
        since = self.compute(("FP", fused, -1))[:, None] + self.moved(("FP", after, -1), ("FP", fused, -1))
        ticks = self.compute(b) + self.moved(b, ("BP", after, -1))[:, None] + self.moved(b, ("FP", fused, -1))
        # axes are both parts of the state, then those of the move
        added = self.alone(np.broadcast_to(ticks, (n, n, n, n)), self.one, since.T[:, None, :, None])
        return self.step(k, (PLACE, PLACE), np.arange(n * n), added.reshape(n, n, n * n, -1))

    # ---- the tail ----

    def spread_alone(self, k: int, sorts: Sorts, here: int, inner: int | None) -> Step:
        sort, sizes = RISING if inner is None else FRONT, range(self.m)
        own = self.ways[sort]
        on = self.one[own]
        time = np.stack([self.compute(("FP", here, b))[own[:, b]] for b in sizes], axis=-1)
        holds, loads = on.max(axis=1), np.einsum("cb,cba->ca", time, on)
        if inner is None:
            both, work, there = time[None], loads[None], np.zeros((1, 1, self.n), np.int64)
        else:
            front = self.fronts[sorts[0]]
            reads = [self.itself(("FP", inner, b), ("FP", here, b), b, own, front).T for b in sizes]
            read = np.stack(reads, axis=-1)  # by spread of the inner layer, and own one
            both, work = time + read, loads + np.einsum("cob,cba->coa", read, self.one[front])
            there = self.one[front].max(axis=1)[:, None]
        soonest = np.where(there > 0, time.min(axis=-1)[:, None], both.min(axis=-1)[..., None])
        since = np.where(holds > 0, -2 * NEVER, soonest)
        rest = self.size[sorts[1]]
        to = np.arange(len(own)) * rest + np.arange(rest)[:, None]
        numbers = self.rising if inner is None else None
        parts = (part[:, None] for part in (both, work, since))
        return self.step(k, (sort, sorts[1]), to, *parts, numbers=numbers, chosen=True)

    def back_alone(self, k: int, sorts: Sorts, here: int, inner: int | None) -> Step:
        first, second = self.backward(here, inner, self.fronts[sorts[0]])
        time = np.moveaxis(first[:, :, None] + second[:, None], 0, -1)  # by spread of FP, state of BP, spread and share
        to, exist = self.both(sorts[0]), self.exist if inner is None else None
        loads, after = self.loads(time), (sorts[0], SPREAD)
        return self.step(k, after, to, time, loads, self.none, pairs=self.on > 0, exist=exist)

    def reach(self, k: int, sorts: Sorts, fused: int, inner: int | None) -> Step:
        if inner is None:
            to = np.arange(self.n)[None, None]
            return self.step(k, (PLACE, NOTHING), to, np.zeros(self.m + 2 * self.n, np.int64))
        front = self.fronts[sorts[0]]
        moved = [self.moved(("FP", inner, b), ("FP", fused, -1))[:, c].T for b, c in enumerate(front.T)]
        read, on = np.stack(moved, axis=-1), self.one[front]  # by spread and place
        work = np.einsum("cib,cba->cia", read, on)
        since = np.where(on.max(axis=1)[:, None] > 0, 0, read.min(axis=-1)[..., None])
        rest = self.size[sorts[1]]
        to = np.arange(self.n) * rest + np.arange(rest)[:, None]
        return self.step(k, (PLACE, sorts[1]), to, *(part[:, None] for part in (read, work, since)))

    def close(self, k: int, sorts: Sorts, fused: int, inner: int | None) -> Step:
        o, i = ("BP", fused, -1), ("FP", fused, -1)
        ticks = self.compute(o)[None] if inner is None else self.gathered(fused, inner)
        ticks = ticks + self.moved(o, i)[:, None]
        to = np.arange(self.n)[:, None, None] * self.n + np.arange(self.n)
        since = self.compute(i)[:, None, None]
        return self.step(k, (PLACE, PLACE), to, self.alone(ticks, self.one, since))
