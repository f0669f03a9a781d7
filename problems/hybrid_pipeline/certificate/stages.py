"""What a stage costs, and which ones may be part of a plan: part of the checker, standard library only.

**Shares.** No plan is credited for other shares than those of Eq. (7) (rule 6). Times never fall with the share, so
there are shares within limits on F + B, F and B if and only if the largest ones add up to B samples or more. This
gives T, the least limit on F + B. Then the limit on F takes every value of the tables, from the largest on, each with
the least limit on B. For any shares one of these pairs of limits is no larger in either than their (Ef, Eb); and for
any pair there are shares whose (Ef, Eb) is no larger. So the pair of least sum, then of least first limit, is the
(Ef, Eb) of Eq. (7).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from functools import cache
from operator import add, sub
from typing import Any

from .labels import Objective
from .transfers import Group, Transfers


def least(tables: list[tuple[int, list[int]]], batch: int) -> int | None:
    """Least limit on times by share within which n members per table hold the samples; ``None`` if they never do."""

    def enough(limit: int) -> bool:
        return sum(n * (bisect_right(row, limit) - 1) for n, row in tables) >= batch

    places = [(row, bisect_left(row, True, key=enough)) for _, row in tables]
    return min((row[k] for row, k in places if k < len(row)), default=None)


class Stages(Transfers):
    """Stages of plans of one micro-batch size with an objective below the bound."""

    def __init__(self, instance: dict[str, Any], batch: int, bound: int) -> None:
        super().__init__(instance, batch)
        self.bound = bound
        self.micro_batches = int(instance["mini_batch"] // batch)
        training = self.rules["training"]
        self.form = Objective(instance, self.rules, self.micro_batches)
        self.limit = (bound - 1) // (self.form.rounds * (self.form.busy + self.form.drain))
        # K of the last stage, and by how much it rises with a stage behind (Eq. 3).
        stored = self.rules["stored"] if training else "one"
        self.kept = self.micro_batches if stored == "all" else 1
        self.step = {"warm_up": 2, "behind": 1}.get(stored, 0)
        self.size = tuple(map(len, self.classes))
        self.most = sum(self.size) if self.rules["replication"] else 1  # members of a stage
        kinds = [instance["types"][kind] for kind in self.kinds]
        self.room = [kind["memory"] for kind in kinds]
        # By class, cut and share: times of all layers before the cut.
        self.forward = [self.sums([[0, *row[:batch]] for row in kind["forward"]]) for kind in kinds]
        self.backward = [
            self.sums([[0, *(training * t for t in row[:batch])] for row in kind["backward"]]) for kind in kinds
        ]
        self.both = [
            [list(map(add, f, b)) for f, b in zip(*tables, strict=True)]
            for tables in zip(self.forward, self.backward, strict=True)
        ]
        lacking = (instance.get("graph") or {}).get("unsupported") or [[] for _ in instance["types"]]
        # By class and cut, layers that it does not support.
        self.lacking = [
            [row[0] for row in self.sums([[int(i in lacking[kind])] for i in range(len(instance["layers"]))])]
            for kind in self.kinds
        ]
        for method in (self.first, self.before, self.times):
            setattr(self, method.__name__, cache(method))

    def share(self, c: int, i: int, j: int, kept: int) -> int:
        """Largest share of a member for layers ``[i, j)``: Eq. (3), F + B within the limit; -1 if no weights fit,
        or a layer is not supported."""
        room, stored = self.room[c] - self.state[j] + self.state[i], kept * (self.stored[j] - self.stored[i])
        if room < 0 or self.lacking[c][j] > self.lacking[c][i]:
            return -1
        most = min(self.batch, room // stored) if stored else self.batch
        before, after = self.both[c][i], self.both[c][j]
        return bisect_right(range(most + 1), self.limit, key=lambda y: after[y] - before[y]) - 1

    def holds(self, i: int, j: int, group: Group) -> bool:
        """Whether the members hold the samples of a stage (1)."""
        shares = [(n, self.share(c, i, j, 1)) for c, n in enumerate(group) if n]
        return all(y >= 0 for _, y in shares) and sum(n * y for n, y in shares) >= self.batch

    def first(self, j: int, group: Group) -> int:
        """First layer of the longest stage before cut j that the members hold."""
        return bisect_left(range(j), True, key=lambda i: self.holds(i, j, group))

    def before(self, j: int, group: Group) -> list[int]:
        """Of a graph, first cuts of the stages before cut j that the members hold."""
        return self.cuts.fronts(j, lambda i: self.holds(i, j, group)) if self.cuts is not None else []

    def times(self, i: int, j: int, group: Group, kept: int) -> tuple[int, int] | None:
        """``(Ef, Eb)`` by Eqs. (7), (8) and rule 6; ``None`` if the members do not hold the samples."""
        rows = []
        for c, n in enumerate(group):
            if n:
                stop = self.share(c, i, j, kept) + 1
                if stop == 0:
                    return None
                f, b = (list(map(sub, table[c][j][:stop], table[c][i])) for table in (self.forward, self.backward))
                rows.append((n, f, b))
        both = [(n, list(map(add, f, b))) for n, f, b in rows]
        total = least(both, self.batch)
        if total is None:
            return None
        stops = [bisect_right(row, total) for _, row in both]
        pairs = []
        while all(stops):
            rows = [(n, f[:stop], b[:stop]) for (n, f, b), stop in zip(rows, stops, strict=True)]
            eb = least([(n, b) for n, _, b in rows], self.batch)
            if eb is None:
                break
            ef = max(f[-1] for _, f, _ in rows)
            pairs.append((ef + eb, ef, eb))
            stops = [bisect_left(f, ef) for _, f, _ in rows]  # 0 if ef is: nothing is less
        return min(pairs)[1:]
