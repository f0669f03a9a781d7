"""A second checker of hybrid pipelines, written from the rules of the problem alone. Standard library only.

The first one builds plans from the last stage to the first and compares labels of two terms and the migration. This
one builds them from the first stage to the last, for every number of stages that are to come, so that what a stage
stores (Eq. 3) is known, and keeps the sums that Eqs. (4)-(6) speak of:

    S    ticks E of all steps so far            D    max of M E_i + S_i, S_i the S in front of step i
    Sb   backward ticks of all steps so far     A    max of Ta_s - Sb_s, Sb_s the Sb in front of step s
    G    longest migration so far (rule 11)     objective = G + R (D + A)

A flow shop (rule 13) has D = (M - 1) max E and A = S, a bottleneck (rule 14) D = max E and A = 0. Of two labels at the
same cut, with the same devices, last group and number of stages to come, one is not needed if the other is no larger
in S, D, A, G and no smaller in Sb: whatever stages follow, they add the same numbers to both.

On one medium (rule 18) it also has W, what a micro-batch takes of it, T, the AllReduces so far, and E of the first
stage; at the end D is at least M W + E of the first stage, and AllReduces take turns: A = max of T_s - Sb_s with T_s
the AllReduces up to stage s.

A label is dropped, too, if the least D of all stages that may follow, found by a recursion of its own, leaves nothing
below the bound; and so is a stage whose own E does. Nothing else is left out.

Cuts are sets of layers, as integers of a bit per layer; of a chain they are its beginnings. Devices need to be told
apart unless all links are equal and they have the same type and the same weights after a failure: then, of those
left, the ones with the lowest numbers are taken.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable
from functools import cache
from itertools import combinations
from typing import Any, NamedTuple

Group = tuple[int, ...]


class State(NamedTuple):
    """Where an unfinished plan stands: stages to come, layers in front, devices used, group of the last stage."""

    to_come: int
    cut: int
    used: int
    last: Group


class Step(NamedTuple):
    """A stage with the communication in front of it: ticks E and Eb of both, AllReduce, migration, and what follows."""

    moved: int
    moved_back: int
    both: int
    back: int
    allreduce: int
    medium: int
    migration: int
    after: State


class Label(NamedTuple):
    """The sums of the module's docstring; the backward one is negative, so that smaller is better in all."""

    s: int = 0
    d: int = 0
    minus_sb: int = 0
    a: int = 0
    g: int = 0
    w: int = 0
    t: int = 0
    first: int = 0


def least(holds: Callable[[int], bool], low: int, high: int) -> int:
    """The least value from ``low`` on for which something holds that holds for ``high`` and above whatever it does."""
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return low


def cuts(instance: dict[str, Any]) -> list[int]:
    """Sets of layers that may lie in front of a cut (rule 15), found one layer, or co-location class, at a time."""
    count, graph = len(instance["layers"]), instance.get("graph") or {}
    edges = graph.get("edges")
    edges = [(u, u + 1) for u in range(count - 1)] if edges is None else edges
    classes = graph.get("together") or []

    needed = [{layer} for layer in range(count)]  # what lies in front of a cut whenever a layer does
    changed = True
    while changed:
        before = sum(map(len, needed))
        for u, v in edges:
            needed[v] |= needed[u]
        for each in classes:
            together = set().union(*(needed[layer] for layer in each))
            for layer in each:
                needed[layer] |= together
        changed = sum(map(len, needed)) > before
    wanted = [sum(1 << i for i in needs) for needs in needed]
    found, waiting = {0}, [0]
    while waiting:
        front = waiting.pop()
        larger = {front | needs for needs in wanted} - found
        found |= larger
        waiting += larger
    return sorted(found)


class Plans:
    """Plans of one micro-batch size with an objective below a bound."""

    def __init__(self, instance: dict[str, Any], batch: int, bound: int) -> None:
        self.instance, self.batch, self.bound = instance, batch, bound
        self.layers, self.types = instance["layers"], instance["types"]
        self.kind = [device["type"] for device in instance["devices"]]
        self.n, self.micro_batches = len(self.kind), instance["mini_batch"] // batch
        self.rules, self.graph = instance.get("execution") or {}, instance.get("graph") or {}
        self.training = self.rules.get("training", True)
        self.replanning = instance.get("replanning")
        self.rounds = self.replanning["rounds"] if self.replanning else 1
        flow = not self.training or self.rules.get("latency") == "flow_shop"
        self.objective = "flow_shop" if flow else "round"
        if instance.get("objective") == "bottleneck":
            self.objective = "bottleneck"
        self.weight = 1 if self.objective == "bottleneck" else self.micro_batches
        self.limit = (bound - 1) // self.rounds // self.weight  # most E of a step
        self.cuts, self.all = cuts(instance), (1 << len(self.layers)) - 1
        self.turns, self.late = instance.get("medium") == "shared", instance.get("latency_ns") or None
        links = {
            (rate, self.late[d][e] if self.late else 0)
            for d, row in enumerate(instance["bandwidth"])
            for e, rate in enumerate(row)
            if d != e
        }
        self.equal_links = len(links) < 2
        held = self.replanning["held"] if self.replanning else [()] * self.n
        self.alike = [(self.kind[d], str(held[d])) if self.equal_links else d for d in range(self.n)]
        self.holders = [
            [d for d in range(self.n) if any(a <= i < b for a, b in held[d])] for i in range(len(self.layers))
        ]
        self.tensors = [self.made("tensors"), self.made("gradients")]
        for name in ("known", "front_times", "stage_tables", "times", "stage", "groups", "steps", "rest"):
            setattr(self, name, cache(getattr(self, name)))

    def made(self, field: str) -> list[tuple[int, int]]:
        """Tensors (rule 16): the set of layers that know each, and its bytes per sample."""
        given = self.graph.get(field)
        if given is None:
            given = self.graph.get("tensors")
        if given is not None:
            return [(sum(1 << i for i in each["layers"]), each["size"]) for each in given]
        edges = self.graph.get("edges")
        edges = [(u, u + 1) for u in range(len(self.layers) - 1)] if edges is None else edges
        readers: dict[int, int] = {}
        for u, v in edges:
            readers[u] = readers.get(u, 1 << u) | 1 << v
        return [(known, self.layers[u]["output_bytes"]) for u, known in readers.items()]

    def known(self, layers: int, way: int) -> int:
        """Bytes per sample of what layers inside and outside of a set know."""
        return sum(size for knows, size in self.tensors[way] if knows & layers and knows & ~layers)

    def ticks(self, size: int, rate: int) -> int:
        return -(-size * 10**9 // (rate * self.instance["tick_ns"]))

    def slowest(self, group: Group, other: Group) -> int:
        """The slowest link between members of two groups, or of one group given twice."""
        return min(self.instance["bandwidth"][d][e] for d in group for e in other if d != e)

    def members(self, layers: int) -> list[int]:
        return [i for i in range(len(self.layers)) if layers >> i & 1]

    def front_times(self, cut: int, kind: int) -> list[list[int]]:
        """Forward and backward ticks of all layers in front of a cut, by share from 1 on."""
        rows = self.members(cut)
        tables = [[self.types[kind][name][i][: self.batch] for i in rows] for name in ("forward", "backward")]
        found = [[sum(column) for column in zip(*table, strict=True)] or [0] * self.batch for table in tables]
        return found if self.training else [found[0], [0] * len(found[0])]

    def stage_tables(self, i: int, j: int, kind: int) -> tuple[list[int], list[int], list[int], int, int]:
        """F, B and F + B by share from 1 on, and memory units for the state and per sample."""
        f, b = (
            [after - before for after, before in zip(y, x, strict=True)]
            for y, x in zip(self.front_times(j, kind), self.front_times(i, kind), strict=True)
        )
        rows = [self.layers[k] for k in self.members(j & ~i)]
        units = (sum(row[name] for row in rows) for name in ("state_memory", "activation_memory"))
        return f, b, [x + y for x, y in zip(f, b, strict=True)], *units

    def times(self, i: int, j: int, kinds: tuple[int, ...], kept: int) -> tuple[int, int] | None:
        """``(Ef, Eb)`` of the shares of Eq. (7) and rule 6; ``None`` if no shares hold a micro-batch in the limit."""
        tables = []
        for kind, number in Counter(kinds).items():
            if self.graph.get("unsupported") and any(j & ~i & 1 << k for k in self.graph["unsupported"][kind]):
                return None
            f, b, both, state, activation = self.stage_tables(i, j, kind)
            free = self.types[kind]["memory"] - state
            if free < 0:
                return None
            most = free // (kept * activation) if activation else self.batch
            tables.append((f, b, both, most, number))

        def enough(total: int, forward: int, backward: int) -> bool:
            """Whether shares within limits on F + B, F and B make up a micro-batch; no time falls with the share."""
            samples = 0
            for f, b, both, most, number in tables:
                share = min(bisect_right(both, total), bisect_right(f, forward), bisect_right(b, backward), most)
                samples += number * share
            return samples >= self.batch

        if not enough(self.limit, self.limit, self.limit):
            return None
        t = least(lambda t: enough(t, t, t), 0, self.limit)
        pairs, forward = [], 0
        backward = t + 1
        while enough(t, t, backward - 1):  # the next pair of least limits: a smaller Eb for a larger Ef
            forward = least(lambda f, b=backward - 1: enough(t, f, b), forward, t)
            backward = least(lambda b, f=forward: enough(t, f, b), 0, backward - 1)
            pairs.append((forward + backward, forward))
        total, forward = min(pairs)
        return forward, total - forward

    def stage(self, i: int, j: int, group: Group, kept: int) -> tuple[int, int, int, int] | None:
        """E, Eb and Ta of a stage, with what rules 12 and 16 make part of it, and what it takes of one medium."""
        times = self.times(i, j, tuple(sorted(self.kind[d] for d in group)), kept)
        if times is None:
            return None
        forward, backward = times
        ways = self.training + 1
        how, extra, medium = self.rules.get("communication", "step"), [0, 0], 0
        if how == "load":
            crossing = [self.crossing(cut, group, group) for cut in (i, j) if 0 < cut < self.all]
            extra = [sum(crossing)] * 2
            medium = ways * self.crossing(i, group, group) if i else 0
        if how == "tensors" and self.n > 1 and self.kind[group[0]] not in (self.graph.get("hosts") or []):
            others = tuple(d for d in range(self.n) if d not in group)
            extra = [self.ticks(self.batch * self.known(j & ~i, way), self.slowest(group, others)) for way in (0, 1)]
        reduced, m = 0, len(group)
        if m > 1 and self.training:
            moved = (
                self.rules.get("allreduce_factor", 2)
                * (m - 1)
                * sum(self.layers[k]["weight_bytes"] for k in self.members(j & ~i))
            )
            parts = 1 if self.turns or self.rules.get("medium") == "shared" else m
            parts *= m if self.rules.get("allreduce") == "rotating" else 1
            rate, factor = self.slowest(group, group), self.rules.get("allreduce_factor", 2) * (m - 1)
            waits = factor * m * self.latest(group, group) * rate if moved else 0
            reduced = -(-(moved * 10**9 + waits) // (parts * rate * self.instance["tick_ns"]))
        forward, backward = forward + extra[0], backward + (extra[1] if ways == 2 else 0)
        if self.rules.get("allreduce", "round") != "round":
            backward, reduced, medium = backward + reduced, 0, medium + reduced
        return forward + backward, backward, reduced, medium * self.turns

    def crossing(self, cut: int, before: Group, after: Group) -> int:
        """Ticks of a micro-batch over a cut, one way (rules 2, 12, 16)."""
        bytes_ = self.known(cut, 0) if self.graph else self.layers[cut.bit_length() - 1]["output_bytes"]
        links = min(len(before), len(after)) if self.rules.get("transfers") == "parallel" else 1
        rate = next(r for d, row in enumerate(self.instance["bandwidth"]) for e, r in enumerate(row) if d != e)
        rate = links * (rate if self.equal_links else self.slowest(before, after))
        late = max(map(max, self.late)) if self.late and self.equal_links else self.latest(before, after)
        moved = self.batch * bytes_ * 10**9
        return -(-(moved + late * rate) // (rate * self.instance["tick_ns"])) if moved else 0

    def latest(self, before: Group, after: Group) -> int:
        """The largest latency between two groups, or inside one (rule 19)."""
        return max((self.late[d][e] for d in before for e in after if d != e), default=0) if self.late else 0

    def migration(self, i: int, j: int, group: Group) -> int:
        """Ticks until all members have the weights of a stage (rule 11)."""
        if not self.replanning:
            return 0
        longest, rates = 0, self.instance["bandwidth"]
        for d in group:
            received: Counter[int] = Counter()
            for k in self.members(j & ~i):
                if d not in self.holders[k]:
                    source = max(self.holders[k], key=lambda e: (rates[e][d], -e))
                    received[source] += self.layers[k]["weight_bytes"]
            longest = max([longest, *(self.ticks(size, rates[e][d]) for e, size in received.items())])
        return longest

    def groups(self, used: int, to_come: int) -> list[Group]:
        """Groups for the next stage: a device for each later one is left, and none at the end if all have to work."""
        free = [d for d in range(self.n) if not used >> d & 1]
        most = len(free) - to_come + 1 if self.rules.get("replication", True) else 1
        least_ = len(free) if to_come == 1 and self.instance.get("all_devices", True) else 1
        return [
            group
            for size in range(least_, most + 1)
            for group in combinations(free, size)
            if not any(d < e and d not in group and self.alike[d] == self.alike[e] for e in group for d in free)
        ]

    def kept(self, behind: int) -> int:
        """Micro-batches that a stage stores with so many stages behind it (rules 4, 12, 13)."""
        stored = self.rules.get("stored", "warm_up")
        if not self.training or stored == "one":
            return 1
        wanted = {"warm_up": 2 * behind + 1, "behind": behind + 1, "all": self.micro_batches}[stored]
        return min(wanted, self.micro_batches)

    def steps(self, state: State) -> list[Step]:
        """Every next stage whose E, and that of the communication in front, is within the limit."""
        found, kept, training = [], self.kept(state.to_come - 1), self.training
        later = [j for j in self.cuts if j & state.cut == state.cut and j != state.cut]
        for group in self.groups(state.used, state.to_come):
            used = state.used + sum(1 << d for d in group)
            steps = self.rules.get("communication", "step") == "step" and state.cut
            c = self.crossing(state.cut, state.last, group) if steps else 0
            last = group if not self.equal_links else (0,) * len(group)
            if self.equal_links and self.rules.get("transfers") != "parallel":
                last = ()
            for j in later if c + training * c <= self.limit else []:
                if (j == self.all) != (state.to_come == 1):
                    continue
                cost = self.stage(state.cut, j, group, kept)
                if cost is None and not self.graph:
                    break  # on a chain later cuts make longer stages
                if cost is not None and cost[0] <= self.limit:
                    after = State(state.to_come - 1, j, used, last)
                    moved = (c + training * c, training * c)
                    found.append(Step(*moved, *cost, self.migration(state.cut, j, group), after))
        return found

    def ahead(self, label: Label, both: int, back: int, allreduce: int) -> Label:
        """A label with one more step at its end."""
        s, d, minus_sb, a, g, *medium, t, first = label
        if self.objective == "bottleneck":
            return Label(0, max(d, both), 0, 0, g, *medium)
        if self.objective == "flow_shop":
            return Label(s + both, max(d, (self.micro_batches - 1) * both), 0, s + both, g, *medium)
        d, a = max(d, self.micro_batches * both + s), max(a, allreduce + t + minus_sb)
        return Label(s + both, d, minus_sb - back, a, g, *medium, t + allreduce * self.turns, first)

    def whole(self, label: Label) -> Label:
        """The label of a plan, in which the medium is one more step (rule 18)."""
        busy = {"round": self.micro_batches, "flow_shop": self.micro_batches - 1, "bottleneck": 1}[self.objective]
        aligned = label.first if self.objective == "round" else 0
        return label._replace(d=max(label.d, busy * label.w + aligned)) if self.turns else label

    def rest(self, state: State) -> int | None:
        """The least D of all stages to come, as if the plan began here; ``None`` if none can."""
        if state.to_come == 0:
            return 0
        found = []
        for step in self.steps(state):
            if (d := self.rest(step.after)) is not None:
                label = self.ahead(self.ahead(Label(), step.moved, 0, 0), step.both, 0, 0)
                found.append(max(label.d, d + label.s if self.objective == "round" else d))
        return min(found, default=None)

    def least_value(self, label: Label, state: State) -> int:
        """No plan that begins like this is worth less."""
        rest = self.rest(state)
        if rest is None:
            return self.bound
        d = max(label.d, rest + label.s if self.objective == "round" else rest)
        return label.g + self.rounds * (d + label.a)

    def better(self) -> int | None:
        """The objective of a plan below the bound; ``None`` if there is none."""
        fronts: dict[State, list[Label]] = {State(r, 0, 0, ()): [Label()] for r in range(1, self.n + 1)}
        for to_come in range(self.n, 0, -1):
            for state in [state for state in fronts if state.to_come == to_come]:
                for step in self.steps(state):
                    for label in fronts[state]:
                        new = self.ahead(label, step.moved, step.moved_back, 0)
                        new = self.ahead(new, step.both, step.back, step.allreduce)
                        new = new._replace(g=max(new.g, step.migration))
                        if self.turns:
                            w, first = label.w + step.moved + step.medium, label.first if state.cut else step.both
                            new = new._replace(w=w, first=first)
                        if step.after.to_come == 0:
                            new = self.whole(new)
                        if (value := self.least_value(new, step.after)) < self.bound:
                            if step.after.to_come == 0:
                                return value
                            keep(fronts.setdefault(step.after, []), new)
        return None


def keep(labels: list[Label], new: Label) -> None:
    """Add a label unless one is no larger in anything, and drop those that are no smaller in anything."""
    if not any(all(x <= y for x, y in zip(label, new, strict=True)) for label in labels):
        labels[:] = [label for label in labels if not all(x <= y for x, y in zip(new, label, strict=True))] + [new]


def better(instance: dict[str, Any], bound: int) -> int | None:
    """The objective of a plan below the bound, of whatever micro-batch size; ``None`` if there is none."""
    found = (Plans(instance, batch, bound).better() for batch in instance["micro_batch_sizes"])
    return next((value for value in found if value is not None), None)


def check(instance: dict[str, Any], bound: int, proof: Any) -> str | None:
    """Why the bound is refused; ``None`` if no plan has an objective below it."""
    value = better(instance, bound)
    return None if value is None and proof == {} else f"a plan of objective {value}"


def optimum(instance: dict[str, Any]) -> int | None:
    """The least objective of a plan, found by asking for better ones until there is none; ``None`` without a plan."""
    value = None
    bound = 1 << 62
    while (found := better(instance, bound)) is not None:
        value = bound = found
    return value
