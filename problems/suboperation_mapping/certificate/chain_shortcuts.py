"""What fused layers read past other layers of a chain; see :mod:`~.chain`. Part of the writer, standard library only.

A *shortcut* leads from a fused layer of the path to another one further in that is not the next one, as in a residual
block. Its transfers are part of FP of the inner layer and of BP of the outer one, which all else of the path waits for.
Both places of the inner layer are remembered until the outer one has its own; shortcuts that begin meanwhile are left
out.
"""

from __future__ import annotations

from operator import add
from typing import Any

from .chain_costs import Label, Move, State
from .chain_path import Path
from .chain_shares import CHAIN, SHORTCUTS, Limits, Sizes

START: State = (None, None)  #: the state before all steps


class Shortcuts(Path):
    """The steps of a path; with shortcuts they remember where one begins.

    Attributes
    ----------
    origin : tuple
        The state before all steps; with shortcuts it has a third part, what is remembered.
    opened : set of int
        The steps after which both places of their layer are remembered.
    ended : dict of int to int
        By step in which the outer layer of a shortcut gets a place, or both, the inner one, which is remembered.
    """

    def __init__(
        self, instance: dict[str, Any], ratio: Sizes, kind: str = CHAIN, most: Sizes = (), out: Limits = ()
    ) -> None:
        super().__init__(instance, ratio, kind, most, out)
        self.origin = (*START, None) if kind == SHORTCUTS else START
        self.ended: dict[int, int] = {}
        self.opened: set[int] = set()
        inner, outer = None, None
        for k, step in enumerate(self.steps if kind == SHORTCUTS else ()):
            if inner is not None and step.func in (Path.join, Path.begin, Path.meet) and step.args[1] == outer:
                self.ended[k] = inner
                inner = inner if step.func is Path.join else None
            if inner is None and step.func in (Path.close, Path.begin, Path.meet):
                outer = self.source(step.args[1])
                if outer is not None:
                    self.opened.add(k)
                    inner = step.args[1]

    def source(self, layer: int) -> int | None:
        """The innermost fused layer of the path that one reads beside the next one."""
        further = self.path[self.path.index(layer) + 2 :]
        read = {edge["source"] for edge in self.layers[layer]["inputs"]}
        return next((i for i in further if i in read and not self.split(i)), None)

    def remembering(self, k: int, kept: Any, move: Move) -> Move:
        """A move of a state that something is remembered of."""
        after, added, pairs = move
        if k in self.ended:
            added = self.longer(k, kept, after, added)
            kept = kept if self.steps[k].func is Path.join else None
        return (*after, after if k in self.opened else kept), added, pairs

    def longer(self, k: int, kept: Any, after: State, added: Label) -> Label:
        """What a move adds with the transfers of a shortcut: of FP when both FP have places, and of BP likewise."""
        kind, outer, inner = self.steps[k].func, self.steps[k].args[1], self.ended[k]
        (j, a), (i, i2) = after, kept
        forth = 0 if kind is Path.join else self.moved(("FP", inner, -1), ("FP", outer, -1), j, i)
        back = 0 if kind is Path.begin else self.moved(("BP", outer, -1), ("BP", inner, -1), i2, a)
        return tuple(map(add, added, self.alone(a, back, forth)))

    def told(self, k: int) -> tuple[Any, ...]:
        """What moves of a step depend on beside its own layers."""
        if k not in self.ended:
            return (k in self.opened,)
        inner, outer = self.ended[k], self.steps[k].args[1]
        ends = ("FP", inner, -1), ("FP", outer, -1)
        return k in self.opened, self.sizes.get(ends), self.sizes.get((("BP", outer, -1), ("BP", inner, -1)))
