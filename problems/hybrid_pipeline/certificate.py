"""The checker of hybrid pipelines for certificates; rules as in the package's docstring. Standard library only.

It needs no proof: it looks for a plan with an objective below the bound and leaves out only what leads to none.

**Labels.** By the package's docstring ``latency = D + A``, where D is the largest aligned step and A the largest
excess of an AllReduce, at least 0 as the first step has a ``Ta >= 0``. A stage with ``E = Ef + Eb`` and ``Ta``, put
in front of the stages from layer j on, with c ticks each way over the cut, turns their D and A (0 if there are none)
and the migration G into

    D' = max(M E, E + 2 M c, E + 2 c + D),    A' = max(Ta, A - Eb - c),    G' = max(G, migration of the stage).

None of them falls as D, A, G grow, nor does the objective ``R (D + A) + G`` (R = 1, G = 0 without a failure). What may
be put in front, and at what cost, depends on the cut, the devices left, the number of stages behind (it gives K), and
the slowest link from each device left to the first group behind. Of two labels that agree in these, one that is no
smaller in D, A and G is not needed: each plan that it leads to has a counterpart that is no worse.

**Shares.** No plan is credited for other shares than those of Eq. (7) (rule 6). Times never fall with the share, so
there are shares within limits on F + B, F and B if and only if the largest ones add up to B samples or more. This
gives T, the least limit on F + B. Then the limit on F takes every value of the tables, from the largest on, each with
the least limit on B. For any shares one of these pairs of limits is no larger in either than their (Ef, Eb); and for
any pair there are shares whose (Ef, Eb) is no larger. So the pair of least sum, then of least first limit, is the
(Ef, Eb) of Eq. (7).

**Classes.** Two devices of equal type, weights held and links to every third device are alike: what one lacks the
other one lacks and fetches from the same devices over equal links, so exchanging them in a plan changes nothing. A
group is a vector of counts by class; two disjoint ones may be taken as the first and the last members of each class.

**Left out** is what leads to no plan below the bound:

1.  As ``D >= M E``, ``A >= 0`` and E is at least F + B of each member, the members of a stage hold B samples with the
    memory of K = 1 and ``F + B <= (bound - 1) / (R M)``, rounded down. Members that do not, do not hold more layers
    either. So there is a last cut that devices *reach*, up to which such stages of theirs can cover the layers from
    the first one on; by induction over the stages it is the best of: as far as the others reach, then one group.
2.  Every stage in front adds its E to D, leaves ``A >= 0``, and adds at least its Ef to ``D + A``. If k devices are
    left, a stage has k at most, so some member has ``ceil(B / k)`` samples or more. So E and Ef of all stages in front
    add up to at least the sum over their layers of the least time of a device left for so many samples.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import accumulate, product
from operator import add, sub
from typing import Any

SENSE = "min"
FACTS = ("state_memory", "activation_memory", "weight_bytes", "output_bytes")

Group = tuple[int, ...]  # devices by class
Stage = tuple[int, int, Group]  # first layer, cut behind the last one
Label = tuple[int, int, int]  # D, A, G


def check(instance: dict[str, Any], bound: int, proof: dict[str, Any]) -> str | None:
    """Why the bound is refused; ``None`` if no plan has an objective below it. The proof is empty."""
    if proof != {}:
        return "expected an empty proof"
    if (reason := fault(instance)) is not None:
        return reason
    for batch in instance["micro_batch_sizes"]:
        value = Search(instance, batch, bound).better()
        if value is not None:
            return f"micro-batches of {batch} samples: there is a plan of objective {value}"
    return None


def fault(instance: dict[str, Any]) -> str | None:
    """What the argument asks of an instance and this one lacks."""
    if "execution" in instance or instance.get("objective", "latency") != "latency":
        return "an execution other than Asteroid's, or another objective than the latency: not covered by the argument"
    layers, links, sizes = instance["layers"], instance["bandwidth"], instance["micro_batch_sizes"]
    rounds = 1 if instance["replanning"] is None else instance["replanning"]["rounds"]
    if min(*sizes, rounds, instance["mini_batch"], instance["tick_ns"]) < 1:
        return "a number below 1"
    if any(instance["mini_batch"] % batch for batch in sizes):
        return "a micro-batch size that does not divide the mini-batch"
    for rows in (kind[phase] for kind in instance["types"] for phase in ("forward", "backward")):
        if len(rows) != len(layers) or any(len(r) < max(sizes) or r[0] < 0 or r != sorted(r) for r in rows):
            return "times that are missing, below 0 or fall with more samples"
    if any(layer[fact] < 0 for layer in layers for fact in FACTS):
        return "a size below 0"
    if any(links[d][e] != links[e][d] or links[d][e] < 1 for d in range(len(links)) for e in range(d)):
        return "a link without a bandwidth"
    return None


def holdings(instance: dict[str, Any]) -> list[set[int]]:
    """Layers whose weights each device has (rule 11); none without a failure."""
    failure = instance["replanning"]
    rows = [[] for _ in instance["devices"]] if failure is None else failure["held"]
    return [{layer for start, stop in row for layer in range(start, stop)} for row in rows]


def alike(instance: dict[str, Any]) -> list[list[int]]:
    """The classes of devices."""
    devices, links, held = instance["devices"], instance["bandwidth"], holdings(instance)
    found: list[list[int]] = []
    for d in range(len(devices)):
        for members in found:
            e = members[0]
            same = devices[d]["type"] == devices[e]["type"] and held[d] == held[e]
            if same and all(links[d][x] == links[e][x] for x in range(len(devices)) if x not in (d, e)):
                members.append(d)
                break
        else:
            found.append([d])
    return found


def parts(devices: Group) -> Iterator[tuple[Group, Group]]:
    """Every group of at least one of the devices, and the others."""
    for group in product(*(range(n + 1) for n in devices)):
        if any(group):
            yield group, tuple(map(sub, devices, group))


def sums(rows: Sequence[Sequence[int]]) -> list[list[int]]:
    """Sums of the rows before each row, and of all rows."""
    return list(accumulate(rows, lambda total, row: list(map(add, total, row)), initial=[0] * len(rows[0])))


def least(tables: list[tuple[int, list[int]]], batch: int) -> int | None:
    """Least limit on times by share within which n members per table hold the samples; ``None`` if they never do."""

    def enough(limit: int) -> bool:
        return sum(n * (bisect_right(row, limit) - 1) for n, row in tables) >= batch

    places = [(row, bisect_left(row, True, key=enough)) for _, row in tables]
    return min((row[k] for row, k in places if k < len(row)), default=None)


def keep(labels: list[Label], new: Label) -> None:
    """Add a label unless another one makes it needless, and drop those that it makes needless."""
    if not any(d <= new[0] and a <= new[1] and g <= new[2] for d, a, g in labels):
        labels[:] = [old for old in labels if any(x < y for x, y in zip(old, new, strict=True))] + [new]


class Search:
    """Plans of one micro-batch size with an objective below the bound."""

    def __init__(self, instance: dict[str, Any], batch: int, bound: int) -> None:
        layers, failure = instance["layers"], instance["replanning"]
        self.instance, self.batch, self.bound, self.last = instance, batch, bound, len(layers)
        self.tick: int = instance["tick_ns"]
        self.micro_batches: int = instance["mini_batch"] // batch
        self.rounds: int = 1 if failure is None else failure["rounds"]
        self.limit = (bound - 1) // (self.rounds * self.micro_batches)
        self.held, self.classes = holdings(instance), alike(instance)
        self.size = tuple(map(len, self.classes))
        kinds = [instance["types"][instance["devices"][members[0]]["type"]] for members in self.classes]
        self.room = [kind["memory"] for kind in kinds]
        self.state, self.stored, self.weights, _ = zip(
            *sums([[layer[x] for x in FACTS] for layer in layers]), strict=True
        )
        # By class, cut and share: times of all layers before the cut.
        self.forward = [sums([[0, *row[:batch]] for row in kind["forward"]]) for kind in kinds]
        self.backward = [sums([[0, *row[:batch]] for row in kind["backward"]]) for kind in kinds]
        self.both = [
            [list(map(add, f, b)) for f, b in zip(*tables, strict=True)]
            for tables in zip(self.forward, self.backward, strict=True)
        ]
        for method in (self.first, self.reach, self.times, self.allreduce, self.fetching, self.front, self.links):
            setattr(self, method.__name__, cache(method))

    def ticks(self, size: int, bandwidth: int, parts: int = 1) -> int:
        """Ticks of a transfer of ``size / parts`` bytes, rounded up."""
        return -(-size * 10**9 // (parts * bandwidth * self.tick))

    def crossing(self, cut: int, bandwidth: int) -> int:
        """c: ticks of a micro-batch over a cut, one way (rule 2)."""
        return self.ticks(self.batch * self.instance["layers"][cut - 1]["output_bytes"], bandwidth)

    def share(self, c: int, i: int, j: int, kept: int) -> int:
        """Largest share of a member for layers ``[i, j)``: Eq. (3), F + B within the limit; -1 if no weights fit."""
        room, stored = self.room[c] - self.state[j] + self.state[i], kept * (self.stored[j] - self.stored[i])
        if room < 0:
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

    def reach(self, devices: Group) -> int:
        """The last cut that the devices reach (1)."""
        best = 0
        for group, others in parts(devices):
            i = self.reach(others)
            longer = range(i + 1, self.last + 1)
            best = max(best, i + bisect_left(longer, True, key=lambda j: not self.holds(i, j, group)))
        return best

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

    def allreduce(self, i: int, j: int, group: Group) -> int:
        """Ta of Eq. (5)."""
        members = [d for c, n in enumerate(group) for d in self.classes[c][:n]]
        if len(members) == 1:
            return 0
        slowest = min(self.instance["bandwidth"][d][e] for d in members for e in members if d != e)
        return self.ticks(2 * (len(members) - 1) * (self.weights[j] - self.weights[i]), slowest, len(members))

    def migration(self, i: int, j: int, group: Group) -> int:
        """Ticks until all members hold the weights of a stage (rule 11); 0 without a failure."""
        return max(self.fetching(i, j, c) for c, n in enumerate(group) if n) if self.instance["replanning"] else 0

    def fetching(self, i: int, j: int, c: int) -> int:
        """Ticks of one member."""
        device, links = self.classes[c][0], self.instance["bandwidth"]
        received: dict[int, int] = {}
        for layer in set(range(i, j)) - self.held[device]:
            source = max((d for d, held in enumerate(self.held) if layer in held), key=lambda d: (links[d][device], -d))
            received[source] = received.get(source, 0) + self.instance["layers"][layer]["weight_bytes"]
        return max((self.ticks(size, links[d][device]) for d, size in received.items()), default=0)

    def front(self, devices: Group) -> tuple[list[int], list[int]]:
        """By cut, least sums of E and of Ef of all stages in front of it (2)."""
        if not any(devices):
            return [0], [0]  # only in front of nothing
        share = -(-self.batch // sum(devices))
        found = []
        for tables in (self.both, self.forward):
            columns = [[row[share] for row in table] for table, n in zip(tables, devices, strict=True) if n]
            steps = [min(column[k + 1] - column[k] for column in columns) for k in range(self.last)]
            found.append(list(accumulate(steps, initial=0)))
        return found[0], found[1]

    def links(self, group: Group, left: Group) -> tuple[int, ...]:
        """Slowest link to the group from a device left, by class; 0 if none is left."""
        members = [d for c, n in enumerate(group) if n for d in self.classes[c][-n:]]
        rows = [self.instance["bandwidth"][others[0]] for others in self.classes]
        return tuple(min(row[d] for d in members) if n else 0 for row, n in zip(rows, left, strict=True))

    def better(self) -> int | None:
        """The objective of a plan below the bound; ``None`` if there is none."""
        nodes: list[dict[tuple[Group, int, tuple[int, ...]], list[Label]]] = [{} for _ in range(self.last + 1)]
        nodes[self.last][self.size, 1, ()] = [(0, 0, 0)]  # by devices left, K of the next stage in front, links
        for j in range(self.last, 0, -1):
            for (devices, kept, links), labels in nodes[j].items():
                for group, left in parts(devices):
                    c = self.crossing(j, min(link for link, n in zip(links, group, strict=True) if n)) if links else 0
                    if 2 * c > self.limit:
                        continue  # D is at least M times that
                    key = (left, min(kept + 2, self.micro_batches), self.links(group, left))
                    for i in range(self.first(j, group), min(j - 1, self.reach(left)) + 1):
                        if i == 0 and any(left) and self.instance["all_devices"]:
                            continue
                        for d, a, g in self.extended(labels, (i, j, group), kept, c, left):
                            if i == 0:
                                return self.rounds * (d + a) + g
                            keep(nodes[i].setdefault(key, []), (d, a, g))
        return None

    def extended(self, labels: list[Label], stage: Stage, kept: int, c: int, left: Group) -> Iterator[Label]:
        """The labels with a stage in front that may lead to a plan below the bound."""
        i, j, group = stage
        m, ta, moved = self.micro_batches, self.allreduce(*stage), self.migration(*stage)
        both, forward = (least[i] for least in self.front(left))

        def aligned(e: int, d: int) -> int:
            return max(m * e, e + 2 * m * c, e + 2 * c + d)

        def promising(d: int, a: int, g: int) -> bool:
            return self.rounds * max(d + both, d + a + forward) + g < self.bound

        own, _ = self.front(group)
        e = own[j] - own[i]  # at least; A' is Ta at least (this saves most calls of ``times``)
        labels = [(d, a, g) for d, a, g in labels if promising(aligned(e, d), ta, max(g, moved))]
        times = self.times(*stage, kept) if labels else None
        if times is not None:
            e, eb = sum(times), times[1]
            for d, a, g in labels:
                new = aligned(e, d), max(ta, a - eb - c), max(g, moved)
                if promising(*new):
                    yield new
