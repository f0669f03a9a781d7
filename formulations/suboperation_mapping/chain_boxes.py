"""Boxes of ratios that are bounded along a chain: each share has its least samples, and some are left out.

Compute tables rise in steps, so that many ratios take no less than their box says: it is divided where its tables rise
most above their least. A step of a chain has moves for all places of its shares in FP and BP; alike shares have fewer,
as their places can be sorted. Where moves are too many, shares next to each other are made alike, or the last ones are
left out: what is left has to be done in every ratio of the box, whatever is done beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from itertools import accumulate, groupby
from math import comb, prod
from operator import itemgetter
from typing import Any

from mapgap.formulations.suboperation_mapping.ascent import Ascent, chained
from mapgap.formulations.suboperation_mapping.boxes import LowCutter, contains, roots, single
from mapgap.formulations.suboperation_mapping.located_frame import Box, Group
from mapgap.formulations.suboperation_mapping.params import Chains as Params
from mapgap.problems.suboperation_mapping import Instance
from mapgap.problems.suboperation_mapping.lowered.ratios import Ratio


def moves(runs: Sequence[int], devices: int) -> int:
    """Of a step between fused layers at most: places of FP, of a fused BP, and of BP; of runs of alike shares."""
    fronts: int = prod(comb(number + devices - 1, number) for number in runs)
    return fronts * int(devices ** (1 + sum(runs)))


@cache
def cut(shares: int) -> tuple[tuple[int, ...], ...]:
    """Ways to cut so many shares into runs, in the order of their numbers."""
    return ((),) if not shares else tuple((n, *rest) for n in range(1, shares + 1) for rest in cut(shares - n))


@lru_cache(10_000)
def narrowed(groups: Box, devices: int, most: int) -> Box:
    """The box, or a larger one whose chain has moves few enough, that of most samples; no groups if there is none.

    Shares next to each other are made alike, or the last ones have a least number of 0: these are left out.
    """
    shares = [(g.low, g.high) for g in groups for _ in range(g.number)]
    best, found = -1, tuple[Group, ...]()
    for kept in range(len(shares), 0, -1):
        for runs in cut(kept) if moves([kept], devices) <= most else ():
            ends = list(accumulate(runs))
            limits = [(shares[end - 1][0], shares[end - n][1]) for end, n in zip(ends, runs, strict=True)]
            samples = sum(low * n for (low, _), n in zip(limits, runs, strict=True))
            alike = [sum(n for n, _ in those) for _, those in groupby(zip(runs, limits, strict=True), itemgetter(1))]
            if samples > best and moves(alike, devices) <= most:
                every = [limit for limit, n in zip(limits, runs, strict=True) for _ in range(n)]
                every += [(0, high) for _, high in shares[kept:]]
                best, found = samples, tuple(Group(*limit, len(list(those))) for limit, those in groupby(every))
    return found


def samples(groups: Box) -> int:
    """Of all shares at least."""
    return sum(g.low * g.number for g in groups)


def chains(instance: Instance, params: Params) -> bool:
    """Whether every ratio is bounded along a chain: the network has one, and at least one share has places few enough.

    Where nothing is fused no share is left out: then all of them have.
    """
    devices = len(instance.accelerators)
    few = moves([1], devices) <= params.widest if fused(instance) else devices**devices <= params.spreads
    return few and chained(instance.to_json())


def fused(instance: Instance) -> bool:
    """Whether any layer is."""
    return any(layer.kind == "fused" for layer in instance.layers)


def ascent_of(instance: dict[str, Any], groups: Box, goal: int, params: Params) -> Ascent:
    """What bounds the ratios of a box."""
    kept = narrowed(groups, len(instance["accelerators"]), params.widest)
    low, high = ([group[end] for group in kept for _ in range(group.number) if group.low] for end in (0, 1))
    return Ascent(instance, low, goal, params, high)


def weighed_box(instance: dict[str, Any], groups: Box, goal: int, params: Params) -> int:
    """What weights alone prove of all ratios of a box."""
    ascent = ascent_of(instance, groups, goal, params)
    ascent.weigh(ascent.diagram())
    return ascent.bound


@dataclass
class Branch:
    """A box, and what it was divided into.

    Attributes
    ----------
    asked, tried : bool
        It is being bounded along its chain; and was.
    """

    box: Box
    asked: bool = False
    tried: bool = False
    parts: list[Branch] = field(default_factory=list)


class ChainBoxes:
    """All ratios in boxes, which are divided where that is asked for."""

    def __init__(self, cutter: LowCutter, devices: int) -> None:
        self.cutter = cutter
        self.roots = [Branch(box) for box in roots(cutter.batch, devices)]

    def next(self, ratio: Ratio) -> Branch | None:
        """The largest box with a ratio that was not tried; ``None`` if only the ratio alone is left."""
        here = self.with_ratio(self.roots, ratio)
        while here.tried:
            here.parts = here.parts or [Branch(box) for box in self.cutter.split(here.box)]
            here = self.with_ratio(here.parts, ratio)
        return None if single(here.box) else here

    def with_ratio(self, branches: list[Branch], ratio: Ratio) -> Branch:
        return next(branch for branch in branches if contains(branch.box, ratio))
