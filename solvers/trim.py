"""Leave out what a refutation does not need.

A search writes down every row that tightened something, and every part that it cut off. Most of it no box that ends
empty rests on. So the steps are followed once, each bound with the steps that it follows from; then, from where boxes
are empty back to the beginning, only those are kept that something rests on. A division goes where one half is empty
without the bound that made it a half: what empties it empties all.
"""

from __future__ import annotations

from typing import Any

from mapgap.solvers.refute import Box, Program, Steps, added

Cause = int
ROWS = "whm"
"""Kinds of steps that append a row."""


class State:
    """A box that is followed, with the causes of its bounds and of its rows."""

    def __init__(self, box: Box, low: list[Cause], high: list[Cause], rows: list[Cause]) -> None:
        self.box, self.low, self.high, self.rows = box, low, high, rows

    def halves(self, j: int, v: int, cause: Cause) -> tuple[State, State]:
        below, above = (State(box, self.low[:], self.high[:], self.rows[:]) for box in self.box.halves(j, v))
        below.high[j] = above.low[j] = cause
        return below, above


class Node:
    """What is done in a box, by cause and with all that it rests on, and how the box is divided.

    Attributes
    ----------
    split : tuple or None
        The step, its cause, and the numbers of both halves.
    needed : set of causes
        Of steps before this box, that what is kept of it rests on.
    """

    def __init__(self) -> None:
        self.done: list[tuple[Cause, list[Any], tuple[Cause, ...]]] = []
        self.split: tuple[list[Any], Cause, int, int] | None = None
        self.needed: set[Cause] = set()


class Trimming:
    """One refutation; causes are numbered as they come, 0 is the program, and what leaves nothing has -1."""

    def __init__(self, program: Program) -> None:
        self.program, self.base, self.causes = program, len(program.rows), 0
        self.nodes: list[Node] = []

    def cause(self) -> Cause:
        self.causes += 1
        return self.causes

    def follow(self, box: Box, steps: Steps) -> None:
        """All boxes, and what each step rests on; a half has a larger number than what was divided."""
        count, listed = len(box.lower), iter(steps)
        waiting = [(0, State(box, [0] * count, [0] * count, []))]
        self.nodes.append(Node())
        while waiting:
            k, state = waiting.pop()
            node = self.nodes[k]
            for step in listed:
                kind, numbers = step[0], step[1:]
                if kind == "s":
                    node.split = step, self.cause(), len(self.nodes), len(self.nodes) + 1
                    j, v = numbers
                    below, above = state.halves(j, v, node.split[1])
                    waiting += [(node.split[3], above), (node.split[2], below)]
                    self.nodes += [Node(), Node()]
                    break
                if kind in ROWS:
                    self.append(node, state, step)
                elif not all(self.tighten(node, state, part) for part in parts(step)):
                    break

    def append(self, node: Node, state: State, step: list[Any]) -> None:
        """A row of the box, which rests on the bounds that it is made of."""
        box, (kind, k, *_) = state.box, step
        followed(self.program, box, step)
        if kind == "h":
            _, length, _ = self.program.products[k]
            needed = {state.low[length], state.high[length]}
        elif kind == "m":
            *_, held = self.program.stores[k]
            needed = set()
            for start, _, _, last, loads in held:
                if box.upper[start] <= step[2] < box.lower[last] + sum(box.lower[j] for j in loads):
                    needed |= {state.high[start], state.low[last], *(state.low[j] for j in loads)}
        else:
            last, tasks = self.program.machines[k]
            row, _ = box.rows[-1]
            needed = {state.low[last]}
            for start, load, place, _, after in tasks:
                if row.get(load) or row.get(place):
                    ends = [((j,), box.upper[j]) for j in (last, *after)]
                    final, _ = min([((start, load), box.upper[start] + box.upper[load]), *ends], key=lambda end: end[1])
                    needed |= {state.low[start], *(state.high[j] for j in final)}
        state.rows.append(self.cause())
        node.done.append((state.rows[-1], step, tuple(needed)))

    def tighten(self, node: Node, state: State, part: list[Any]) -> bool:
        """A sum of rows; ``False`` if nothing of the box is left."""
        box, (kind, *numbers) = state.box, part
        needed: set[Cause] = set()
        if kind == "q":
            row, bound = self.program.rows[numbers[0]]
        else:
            row, bound = added(self.program.rows + box.rows, part)
            numbers[::2] = [i if i < self.base else -state.rows[i - self.base] for i in numbers[::2]]
            part = [kind, *numbers]  # rows of the box by their causes
            needed.update(-i for i in numbers[::2] if i < 0)
        needed.update((state.low if a > 0 else state.high)[j] for j, a in row.items())
        before = [(j, box.lower[j], box.upper[j]) for j in row]
        holds = box.tighten(row, bound)
        rose = [j for j, low, _ in before if box.lower[j] > low]
        fell = [j for j, _, high in before if box.upper[j] < high]
        if rose or fell or not holds:
            cause = self.cause() if holds else -1
            node.done.append((cause, part, tuple(needed)))
            for side, moved in ((state.low, rose), (state.high, fell)):
                for j in moved:
                    side[j] = cause
        return holds

    def keep(self) -> None:
        """From the last box to the first, what something rests on."""
        for node in reversed(self.nodes):
            needed = node.needed
            tail: list[Any] = []
            if node.split is not None:
                _, cause, *halves = node.split
                below, above = (self.nodes[k] for k in halves)
                lone = next((half for half in (below, above) if cause not in half.needed), None)
                if lone is not None:
                    node.split, tail, needed = lone.split, lone.done, lone.needed
                else:
                    few, many = sorted((below.needed, above.needed), key=len)
                    needed = many
                    needed |= few
                    needed.discard(cause)
            kept = []
            for cause, step, own in reversed(node.done):
                if cause in needed or cause < 0:
                    needed.discard(cause)
                    needed.update(own)
                    kept.append((cause, step, own))
            node.done, node.needed = [*reversed(kept), *tail], needed

    def write(self) -> Steps:
        """The steps that are kept; rows of boxes have other numbers."""
        found: Steps = []
        waiting: list[tuple[int, dict[Cause, int]]] = [(0, {})]
        while waiting:
            k, names = waiting.pop()
            node = self.nodes[k]
            singles: list[Any] | None = None
            for cause, (kind, *numbers), _ in node.done:
                if kind in ROWS:
                    names[cause] = self.base + len(names)
                elif kind == "p":
                    numbers[::2] = [i if i >= 0 else names[-i] for i in numbers[::2]]
                elif singles is not None and found[-1] is singles:
                    singles += numbers
                    continue
                found.append([kind, *numbers])
                singles = found[-1] if kind == "q" else singles
            if node.split is not None:
                step, _, below, above = node.split
                found.append(step)
                waiting += [(above, dict(names)), (below, names)]
        return found


def parts(step: list[Any]) -> Steps:
    """Single rows one by one, or a sum."""
    return [["q", i] for i in step[1:]] if step[0] == "q" else [step]


def trimmed(program: Program, box: Box, steps: Steps) -> Steps:
    """The steps of a refutation without those that nothing rests on.

    Parameters
    ----------
    box : Box
        All bounds of the program.
    """
    search = Trimming(program)
    search.follow(box, steps)
    search.keep()
    return search.write()


def followed(program: Program, box: Box, step: list[Any]) -> bool:
    """Do what a step says; ``False`` if nothing of the box is left."""
    kind, *numbers = step
    if kind == "w":
        box.rows.append(box.window(program.machines[numbers[0]], *numbers[1:]))
    elif kind == "m":
        box.rows.append(box.moment(program.stores[numbers[0]], *numbers[1:]))
    elif kind == "h":
        box.rows.append(box.secant(program.products[numbers[0]]))
    elif kind == "q":
        return all(box.tighten(*program.rows[i]) for i in numbers)
    else:
        return box.tighten(*added(program.rows + box.rows, step))
    return True
