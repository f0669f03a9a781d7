"""What operation sharing refunds (rule 9): part of the writer, standard library only.

A task is not paid again that an earlier pipeline has too. Variables say which tasks these are and are refunded from
units and memory (not from latencies, which count a merged task in each pipeline). Rows keep a refund at 0 unless the
task is equal. The point of a plan has it at 1 where the task is equal to an earlier one:

- Sensing is equal if an earlier pipeline of the same signal senses on the same device, the transfer of the input if
  that one sends it to the same device.
- ``same[k]``: a twin, earlier, of the same signal and model, has the same source and the same segments up to boundary
  k, where both are cut. The segments that begin there are equal if they end together on one device, and the
  transfers of boundary k if they lead from one device to one other.

Variables of a pipeline, in this order: sensing by source; transfers of the input by source and device; per twin
``same``, equal segments, and equal transfers by boundary, sender and receiver; then what is refunded, segments in their
order and transfers as they first appear.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import permutations
from typing import Any

from .paths import RESOURCES, UNITS, Path, Terms, minus


class Totals:
    """Loads of all units, all transmissions and needs of all memories, as sums of variables."""

    def __init__(self, count: int) -> None:
        self.loads: dict[tuple[int, str], Terms] = {(d, unit): [] for d in range(count) for unit in UNITS}
        self.used: dict[tuple[int, str], Terms] = {(d, r): [] for d in range(count) for r in RESOURCES}
        self.sent: Terms = []

    def sensing(self, path: Path, s: int, x: int, sign: int = 1) -> None:
        self.loads[s, "sensor"].append((x, sign * path.facts["sensing"][s]))

    def transfer(self, path: Path, k: int, d: int, e: int, x: int, sign: int = 1) -> None:
        if d != e:
            sent = path.sent(k, d) + path.beyond(k, d, e)
            self.loads[d, "radio"].append((x, sign * sent))
            self.sent.append((x, sign * sent))
            self.loads[e, "radio"].append((x, sign * path.cuts[k]["receive"][e]))

    def segment(self, path: Path, i: int, j: int, d: int, y: int, sign: int = 1) -> None:
        for unit, ticks in path.work(i, j, d).items():
            self.loads[d, unit].append((y, sign * ticks))
        for resource in RESOURCES:
            self.used[d, resource].append((y, sign * path.need(i, j, resource)))


def refund(found: Any, totals: Totals, path: Path, earlier: list[Path]) -> None:
    """What a pipeline need not pay (rule 9), given the earlier ones of its signal."""

    def equal_to(*sides: Iterable[tuple[int, int]]) -> int:
        """A new variable that is 0 unless each of these sums is at least 1."""
        x: int = found.variable(0, 1)
        for terms in sides:
            found.at_most([(x, 1), *minus(terms)], 0)
        return x

    for s in sorted({s for s, _ in path.first}) if earlier else ():
        totals.sensing(path, s, equal_to(path.senses(s), [x for q in earlier for x in q.senses(s)]), -1)
    for (s, d), x in path.first.items() if earlier else ():
        if s != d:
            theirs = [(q.first[s, d], 1) for q in earlier if (s, d) in q.first]
            totals.transfer(path, 0, s, d, equal_to([(x, 1)], theirs), -1)
    segments: dict[tuple[int, int, int], Terms] = {}
    moves: dict[tuple[int, int, int], Terms] = {}
    for q in (q for q in earlier if q.facts["model"] == path.facts["model"]):
        same = [found.variable(0, 1) for _ in range(path.last + 1)]
        for s in sorted({s for s, _ in path.first}):  # same[0]: whatever p senses on, q does
            found.at_most([(same[0], 1), *path.senses(s), *minus(q.senses(s))], 1)
        ending: dict[int, Terms] = {}
        for (i, j, d), y in path.segments.items():
            if (i, j, d) in q.segments:
                x = equal_to([(y, 1)], [(q.segments[i, j, d], 1)], [(same[i], 1)])
                segments.setdefault((i, j, d), []).append((x, 1))
                ending.setdefault(j, []).append((x, 1))
        for k in range(1, path.last + 1):
            found.at_most([(same[k], 1), *minus(ending.get(k, []))], 0)
            for d, e in permutations(range(len(path.facts["sensing"])), 2):
                both = [side for r in (path, q) for side in (r.stops(k, d), r.arrives(k, e))]
                if all(both):
                    moves.setdefault((k, d, e), []).append((equal_to([(same[k], 1)], *both), 1))
    for (i, j, d), merged in segments.items():
        totals.segment(path, i, j, d, equal_to([(path.segments[i, j, d], 1)], merged), -1)
    for (k, d, e), merged in moves.items():
        totals.transfer(path, k, d, e, equal_to(merged), -1)
