"""Compiled: least sums of all stages in front of a cut, by the devices left for them.

The sums of ``label_stages.least_sums`` take all devices left for one stage. Here stages are put one behind the other,
from the first layer on: of all ways to cover the layers in front with groups of the devices left, inside windows and
each with its aligned step below the upper bound, the least sum of E (with the transfers between the stages) and, on its
own, the least sum of E_f; only where the other devices cover the layers behind the cut. The time of a stage is bounded
as in ``least_sums``: of shares ``z_d`` with ``sum (z_d - 1) < B`` one at least is taken or passed by the member that
has it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mapgap.formulations.hybrid_pipeline.label.stages import exchange, fastest, largest, nearest_link
from mapgap.formulations.hybrid_pipeline.label.tables import Array, Links, Round, Small, Small2, Stages
from mapgap.kernels import Flags, Integers, Integers2, kernel

WORK = 100_000_000
"""Places looked at between two looks at the clock."""

NO_FRONT = 2**31 - 1
"""In place of a sum: the devices do not cover the layers below the upper bound, which is no larger."""


class Ways(NamedTuple):
    """``groups.Moves`` from the front, whose states are groups of devices used, and ``window``, ``nearest`` and
    ``open`` of ``label_tables.Space`` over all cuts."""

    first: Integers
    group: Small
    target: Small
    window: Small2
    nearest: Small2
    open: Flags


class Times(NamedTuple):
    """Bounds on E and E_f of the stages ``[i, j)`` of a group g inside its windows, from ``place[g, i]`` on."""

    place: Integers2
    both: Small
    forward: Small


@kernel("i4[::1](i8[:,:,::1],i8[:,::1],i8,i4[:,::1],i8[:,::1])")
def stage_times(table: Array, groups: Array, batch: int, window: Array, place: Array) -> Array:
    """Lower bounds on the sum of a table over the stages of a group inside its windows, from ``place`` on."""
    classes, layers = table.shape[0], table.shape[1] - 1
    found = np.zeros(place[-1, -1] + 1, np.int32)
    caps, share = np.full(classes, batch, np.int64), np.zeros(classes, np.int64)
    for g in range(1, len(groups)):
        limit = fastest(table, groups[g], caps, batch, 0, layers)
        if limit == 0:
            continue
        for c in range(classes):
            if groups[g, c] > 0:
                share[c] = largest(table[c, 0], table[c, layers], limit - 1, batch) + 1
        for i in range(layers):
            at, first = place[g, i] - i - 1, True
            for c in range(classes):
                if groups[g, c] == 0:
                    continue
                begin = table[c, i, share[c]]
                for j in range(i + 1, window[i, g] + 1):
                    ticks = table[c, j, share[c]] - begin
                    if first or ticks < found[at + j]:
                        found[at + j] = ticks
                first = False
    return found


@kernel("i8[::1](Ways)", Ways)
def behind(ways: Ways) -> Array:
    """By group of devices, the first layer from which on they cover all with stages inside windows."""
    count, layers = len(ways.first) - 1, len(ways.open) - 1
    begin = np.full(count, layers, np.int64)
    for used in range(count):
        while not ways.open[begin[used]]:
            begin[used] += 1
        for k in range(ways.first[used], ways.first[used + 1]):
            t = ways.target[k]
            begin[t] = min(begin[t], ways.nearest[begin[used], ways.group[k]])
    return begin


@kernel(
    "i8(Stages,Links,Round,Ways,Times,i8[::1],i4[:,::1],i4[:,::1],i8,i8)",
    Stages,
    Links,
    Round,
    Ways,
    Times,
)
def fronts(
    stages: Stages,
    links: Links,
    round_: Round,
    ways: Ways,
    times: Times,
    least: Array,
    found: Array,
    found_f: Array,
    upper: int,
    begin: int,
) -> int:
    """Least sums of E and of E_f in front of every cut, (G, L + 1) each, by the groups of devices used.

    ``least``: as :func:`behind` gives it; no sums are needed in front of it. Puts one stage behind what the devices of
    the groups from ``begin`` on can cover, for some groups; the first group not yet done.
    """
    layers, spent, used, last = stages.both.shape[1] - 1, 0, begin, len(stages.groups) - 1
    limit = -(-upper // round_.rounds)
    while used < len(stages.groups) and spent < WORK:
        for i in range(least[last - used], layers):
            if found[used, i] >= NO_FRONT or not ways.open[i]:
                continue
            for k in range(ways.first[used], ways.first[used + 1]):
                g, t = ways.group[k], ways.target[k]
                c = links.comm[nearest_link(stages, links, g, used), i]
                if round_.busy * round_.ways * c >= limit:
                    continue
                ahead, ahead_f = found[used, i] + round_.ways * c, found_f[used, i] + c
                at = times.place[g, i] - i - 1
                spent += 10
                for j in range(max(i + 1, least[last - t]), ways.window[i, g] + 1):
                    e = times.both[at + j] + round_.ways * links.load[i]
                    if links.every_step > 0:
                        e += exchange(links, g, i, j)
                    spent += 1
                    if round_.busy * e + round_.aligned * ahead + round_.drain * (e + ahead) >= limit:
                        break  # so far e never falls with j
                    e += round_.ways * links.load[j]
                    f = times.forward[at + j] + links.load[i] + links.load[j]
                    found[t, j] = min(found[t, j], ahead + e)
                    found_f[t, j] = min(found_f[t, j], ahead_f + f)
        used += 1
    return used
