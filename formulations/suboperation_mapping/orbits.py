"""Accelerators that nothing tells apart, and the orbits of tuples of accelerators under their exchange.

Two accelerators are *equal* if all their compute tables are equal and if exchanging them leaves bandwidths and
latencies as they are. DRAM sizes do not count: the relaxations that use this module leave the DRAM out. Equal
accelerators form classes, and every permutation within classes turns a schedule into a schedule of the same makespan.
The average of a feasible point of a linear relaxation over all these permutations is feasible too, has the same
objective, and is constant on orbits; so one variable per orbit is enough.
"""

from __future__ import annotations

from collections.abc import Collection
from itertools import product

from mapgap.problems.suboperation_mapping import Instance

Places = tuple[int, ...]


class Orbits:
    """Classes of equal accelerators, and one representative of every orbit of tuples.

    A representative names the members of a class in the order in which they first appear, so a prefix of a
    representative is one too.

    Parameters
    ----------
    instance : Instance
    apart : collection of int
        Accelerators that are told apart from all others, each a class of its own.

    Attributes
    ----------
    kind : list of int, length N
        Class of every accelerator.
    members : list of list of int
        Accelerators of every class.
    """

    def __init__(self, instance: Instance, apart: Collection[int] = ()) -> None:
        self.count = len(instance.accelerators)
        self.members: list[list[int]] = []
        self.kind: list[int] = []
        for a in range(self.count):
            alike = (q for q, (b, *_) in enumerate(self.members) if b not in apart and _equal(instance, b, a))
            home = None if a in apart else next(alike, None)
            if home is None:
                home = len(self.members)
                self.members.append([])
            self.members[home].append(a)
            self.kind.append(home)

    def representative(self, places: Places) -> Places:
        """The first tuple of the orbit."""
        names: dict[int, int] = {}
        used = [0] * len(self.members)
        for a in places:
            if a not in names:
                q = self.kind[a]
                names[a] = self.members[q][used[q]]
                used[q] += 1
        return tuple(names[a] for a in places)

    def tuples(self, length: int) -> list[Places]:
        """Representatives of all orbits of tuples of a length."""
        found: list[Places] = [()]
        for _ in range(length):
            found = [w for prefix in found for w in self.extensions(prefix)]
        return found

    def extensions(self, prefix: Places) -> list[Places]:
        """Representatives that are one longer than a given one."""
        return list(dict.fromkeys(self.representative((*prefix, a)) for a in range(self.count)))

    def size(self, places: Places) -> int:
        """Number of tuples in the orbit."""
        total = 1
        used = [0] * len(self.members)
        for a in dict.fromkeys(places):
            q = self.kind[a]
            total *= len(self.members[q]) - used[q]
            used[q] += 1
        return total


def _equal(instance: Instance, a: int, b: int) -> bool:
    """Whether exchanging two accelerators changes nothing but DRAM sizes and names."""
    tables = (t for layer in instance.layers for t in (layer.fp, layer.bp, layer.wu) if t)
    if any(table[a] != table[b] for table in tables):
        return False
    swap = list(range(len(instance.accelerators)))
    swap[a], swap[b] = b, a
    matrices = [instance.bandwidth, *([instance.latency_ns] if instance.latency_ns else [])]
    pairs = [(i, j) for i, j in product(range(len(swap)), repeat=2) if i != j]
    return all(each[i][j] == each[swap[i]][swap[j]] for each in matrices for i, j in pairs)
