"""Boxes of ratios that are bounded along a chain: each share has its least samples, and some are left out.

Compute tables rise in steps, so that many ratios take no less than their box says: it is divided where its tables rise
most above their least. A step of a chain has moves for all places of its shares in FP and BP; alike shares have fewer,
as their places can be sorted, and far fewer where they are counted, which chains do on more than ``told_apart``
accelerators (:mod:`~.chain_size`). Where moves are too many, shares next to each other are made alike, or some of
them are left out but for their work of BP and WU, whatever leaves most work.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from itertools import accumulate, combinations, groupby, permutations, product
from typing import Any, NamedTuple

from mapgap.formulations.suboperation_mapping.ascent import Ascent, Known, chained
from mapgap.formulations.suboperation_mapping.boxes import LowCutter, contains, roots, single
from mapgap.formulations.suboperation_mapping.chain_size import Devices, devices_of, headed_devices, moves
from mapgap.formulations.suboperation_mapping.located_frame import Box
from mapgap.formulations.suboperation_mapping.params import Chains as Params
from mapgap.problems.suboperation_mapping import Instance
from mapgap.problems.suboperation_mapping.certificate.lengths import limits
from mapgap.problems.suboperation_mapping.lowered.ratios import Ratio


@cache
def cut(shares: int) -> tuple[tuple[int, ...], ...]:
    """Ways to cut so many shares into runs, in the order of their numbers."""
    return ((),) if not shares else tuple((n, *rest) for n in range(1, shares + 1) for rest in cut(shares - n))


Work = tuple[int, ...]  #: of a share, by its number of samples


def work_of(instance: dict[str, Any]) -> Work:
    """What shares take on all accelerators, one after the other, if all that layers read in FP and BP comes to them."""
    places = range(len(instance["accelerators"]))
    tables = [
        table
        for layer in instance["layers"]
        if layer["kind"] == "split"
        for phase in ("fp", "bp", "wu")
        for table in layer[phase] or ()
    ]
    ns = [10**9 / instance["bandwidth"][i][a] for i, a in permutations(places, 2)]
    read = 2 * sum(edge["bytes"] for layer in instance["layers"] for edge in layer["inputs"])
    sample = read * sum(ns) / instance["tick_ns"] / max(1, len(places) - 1)
    return tuple(int(s * sample) + ticks for s, ticks in enumerate((0, *map(sum, zip(*tables, strict=True)))))


class Share(NamedTuple):
    """Limits of the samples of a share, and whether a chain leaves it out but for its work of BP and WU."""

    low: int
    high: int
    out: bool = False


def shares_of_box(groups: Box) -> tuple[Share, ...]:
    return tuple(Share(g.low, g.high) for g in groups for _ in range(g.number))


def kept_of_name(name: str) -> tuple[Share, ...]:
    """What a chain has of a box, or of a ratio, by the name of its case."""
    return tuple(Share(*share) for share in limits(name))


def name_of_kept(kept: Sequence[Share]) -> str:
    """Without the kind of chain."""
    if all(share == Share(share.low, share.low) for share in kept):
        return ",".join(str(share.low) for share in kept)
    groups = ((share, len(list(those))) for share, those in groupby(kept))
    return ",".join(f"{low}-{high}{'w' if out else 'x'}{number}" for (low, high, out), number in groups)


def done_by(kept: Sequence[Share], work: Work) -> int:
    """What a chain has of the work of its shares; of those that are left out a third, as nothing waits for their BP."""
    return sum(work[share.low] // (3 if share.out else 1) for share in kept)


@lru_cache(10_000)
def narrowed(groups: Box, devices: Devices, work: Work, most: int) -> tuple[Share, ...]:
    """What a chain with moves few enough has of a box, that of most work; no shares if there is none.

    Shares next to each other are made alike, or some are left out.
    """
    shares = shares_of_box(groups)
    best, found, every = -1, tuple[Share, ...](), len(shares)
    for begin, end in [(every, every), *combinations(range(every + 1), 2)]:
        if end - begin == every or moves((every - end + begin,), devices) > most:
            continue
        left = [share._replace(out=True) for share in shares[begin:end]]
        for one, other in product(cut(begin), cut(every - end)):
            before, after = alike(shares[:begin], one), alike(shares[end:], other)
            done = done_by([*before, *left, *after], work)
            runs = tuple(len(list(those)) for _, those in groupby([*before, *after]))
            if done > best and moves(runs, devices) <= most:
                best, found = done, (*before, *left, *after)
    return found


def alike(shares: Sequence[Share], runs: Sequence[int]) -> list[Share]:
    """With the limits that all of a run lie between."""
    ends = list(accumulate(runs))
    return [
        Share(shares[end - 1].low, shares[end - n].high) for end, n in zip(ends, runs, strict=True) for _ in range(n)
    ]


def chains(instance: Instance, params: Params) -> bool:
    """Whether every ratio is bounded along a chain: the network has one, and at least one share has places few enough.

    Where nothing is fused no share is left out: then all of them have.
    """
    devices, data = len(instance.accelerators), instance.to_json()
    alone = moves((1,), devices_of(data, params)) <= params.widest
    return chained(data) and (alone if fused(instance) else devices**devices <= params.spreads)


def fused(instance: Instance) -> bool:
    """Whether any layer is."""
    return any(layer.kind == "fused" for layer in instance.layers)


class Narrowing:
    """What chains have of the ratios of an expanded instance.

    Attributes
    ----------
    devices : Devices
    work : tuple of int
        What a share takes on all accelerators, one after the other, by its number of samples.
    named : bool
        As :class:`~.ascent.Ascent` has it.
    known : dict
        Divisions of trees, by the moves of their chains.
    """

    def __init__(self, instance: dict[str, Any], params: Params, named: bool = False) -> None:
        self.instance, self.params, self.named = instance, params, named
        self.devices, self.work = devices_of(instance, params), work_of(instance)
        self.known: Known = defaultdict(dict)

    def kept(self, groups: Box) -> tuple[Share, ...]:
        """What a chain has of a box; that of a ratio alone may have more moves."""
        widest = self.params.widest_alone if single(groups) else self.params.widest
        return narrowed(groups, self.devices, self.work, widest)

    def kept_of_tree(self, groups: Box) -> tuple[Share, ...]:
        """What a chain has of a ratio whose tree has moves few enough, where shares are counted; nothing if all has."""
        found = narrowed(groups, headed_devices(self.instance), self.work, self.params.widest_alone)
        return () if found == self.kept(groups) else found

    def part(self, groups: Box) -> float:
        """Of the work of a box that it has at least."""
        done, every = (done_by(those, self.work) for those in (self.kept(groups), shares_of_box(groups)))
        return done / every if every else 1.0

    def ascent(self, kept: Sequence[Share], goal: int) -> Ascent:
        """What bounds the ratios of a box by what a chain has of it."""
        here, left = ([share for share in kept if share.low and share.out == out] for out in (False, True))
        low, high = [share.low for share in here], [share.high for share in here]
        out = [(share.low, share.high) for share in left]
        return Ascent(self.instance, low, goal, self.params, high, out, self.named, self.known)

    def weighed(self, groups: Box, goal: int) -> int:
        """What weights alone prove of all ratios of a box."""
        ascent = self.ascent(self.kept(groups), goal)
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
