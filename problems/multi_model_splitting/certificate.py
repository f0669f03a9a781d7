"""The writer of multi-model splitting for certificates; rules as in the package's docstring. Standard library only.

Every plan better than the bound is a point: per pipeline, one variable per segment (layers ``i..j-1`` on device d), one
per source and first device, one per last device and target. Adjacent segments lie on different devices (rule 1), so a
segment that begins (ends) inside the model always pays reception (transmission).

With operation sharing (rule 9) a task is not paid again that an earlier pipeline has too. Variables say which tasks
these are and are refunded from units and memory (not from latencies, which count a merged task in each pipeline). Rows
keep a refund at 0 unless the task is equal. The point of a plan has it at 1 where the task is equal to an earlier one:

- Sensing is equal if an earlier pipeline of the same signal senses on the same device, the transfer of the input if
  that one sends it to the same device.
- ``same[k]``: a twin, earlier, of the same signal and model, has the same source and the same segments up to boundary
  k, where both are cut. The segments that begin there are equal if they end together on one device, and the
  transfers of boundary k if they lead from one device to one other.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate, permutations
from typing import Any

SENSE = "min"
UNITS = ("sensor", "mcu", "accelerator", "radio")
RESOURCES = ("weights", "bias", "layers")

Terms = list[tuple[int, int]]


class Path:
    """Variables of one pipeline, and what each of them stands for.

    Attributes
    ----------
    segments : {(i, j, d): variable}
    first : {(source, d): variable}
    final : {(d, target): variable}
    """

    def __init__(self, found: Any, instance: dict[str, Any], pipeline: dict[str, Any], bound: int) -> None:
        self.facts, self.cuts, self.last = pipeline, pipeline["boundaries"], len(pipeline["layers"])
        devices, layers = range(len(instance["devices"])), pipeline["layers"]
        self.ran = [[0, *accumulate(layer["inference"][d] for layer in layers)] for d in devices]
        self.held: dict[str, list[int]] = {
            r: [0, *accumulate(layer[r] for layer in layers)] for r in ("weights", "bias")
        }
        self.held["layers"] = list(range(self.last + 1))
        worst = max if instance["objective"] == "throughput" else sum
        self.segments: dict[tuple[int, int, int], int] = {}
        for d, device in enumerate(instance["devices"]):
            for i in range(self.last):
                for j in range(i + 1, self.last + 1):
                    if any(self.need(i, j, r) > device[r] for r in RESOURCES):
                        continue
                    moved = (self.cuts[i]["receive"][d] if i else 0) + (
                        self.cuts[j]["transmit"][d] if j < self.last else 0
                    )
                    if worst([*self.work(i, j, d).values(), moved]) < bound:
                        self.segments[i, j, d] = found.variable(0, 1)
        sources, targets = allowed(instance, pipeline, "source"), allowed(instance, pipeline, "target")
        self.first = {(s, d): found.variable(0, 1) for s in sources for d in devices}
        self.final = {(d, t): found.variable(0, 1) for d in devices for t in targets}
        for d in devices:
            found.at_most([(y, 1) for (_, _, e), y in self.segments.items() if e == d], 1)  # rule 1
            found.equal([*((x, 1) for (_, e), x in self.first.items() if e == d), *minus(self.starts(0, d))], 0)
            found.equal([*((x, 1) for (e, _), x in self.final.items() if e == d), *minus(self.stops(self.last, d))], 0)
        found.equal([term for d in devices for term in self.starts(0, d)], 1)
        for k in range(1, self.last):
            stops, starts = ([term for d in devices for term in side(k, d)] for side in (self.stops, self.starts))
            found.equal([*stops, *minus(starts)], 0)

    def starts(self, k: int, d: int) -> Terms:
        """Segments that begin at boundary k on d."""
        return [(y, 1) for (i, _, e), y in self.segments.items() if (i, e) == (k, d)]

    def stops(self, k: int, d: int) -> Terms:
        """Segments that end at boundary k on d."""
        return [(y, 1) for (_, j, e), y in self.segments.items() if (j, e) == (k, d)]

    def arrives(self, k: int, d: int) -> Terms:
        """What makes boundary k > 0, if it moves, move to d."""
        return self.starts(k, d) if k < self.last else [(x, 1) for (_, t), x in self.final.items() if t == d]

    def senses(self, s: int) -> Terms:
        return [(x, 1) for (source, _), x in self.first.items() if source == s]

    def work(self, i: int, j: int, d: int) -> dict[str, int]:
        """Ticks of a segment by unit, transfers aside."""
        loading = self.cuts[i]["load"][d] + self.cuts[j]["unload"][d]
        return {"mcu": loading, "accelerator": self.ran[d][j] - self.ran[d][i]}

    def need(self, i: int, j: int, resource: str) -> int:
        return self.held[resource][j] - self.held[resource][i]


class Totals:
    """Loads of all units and needs of all memories, as sums of variables."""

    def __init__(self, count: int) -> None:
        self.loads: dict[tuple[int, str], Terms] = {(d, unit): [] for d in range(count) for unit in UNITS}
        self.used: dict[tuple[int, str], Terms] = {(d, r): [] for d in range(count) for r in RESOURCES}

    def sensing(self, path: Path, s: int, x: int, sign: int = 1) -> None:
        self.loads[s, "sensor"].append((x, sign * path.facts["sensing"][s]))

    def transfer(self, path: Path, k: int, d: int, e: int, x: int, sign: int = 1) -> None:
        if d != e:
            self.loads[d, "radio"].append((x, sign * path.cuts[k]["transmit"][d]))
            self.loads[e, "radio"].append((x, sign * path.cuts[k]["receive"][e]))

    def segment(self, path: Path, i: int, j: int, d: int, y: int, sign: int = 1) -> None:
        for unit, ticks in path.work(i, j, d).items():
            self.loads[d, unit].append((y, sign * ticks))
        for resource in RESOURCES:
            self.used[d, resource].append((y, sign * path.need(i, j, resource)))


def program(instance: dict[str, Any], bound: int, new: Any) -> Any:
    """All plans of an objective below ``bound``."""
    found, totals = new(), Totals(len(instance["devices"]))
    paths = [Path(found, instance, pipeline, bound) for pipeline in instance["pipelines"]]
    for path in paths:
        for (i, j, d), y in path.segments.items():
            totals.segment(path, i, j, d, y)
            totals.loads[d, "radio"].append((y, path.cuts[i]["receive"][d] if i else 0))
            totals.loads[d, "radio"].append((y, path.cuts[j]["transmit"][d] if j < path.last else 0))
        for (s, d), x in path.first.items():
            totals.sensing(path, s, x)
            totals.transfer(path, 0, s, d, x)
        for (d, t), x in path.final.items():
            totals.transfer(path, path.last, d, t, x)
    latency = [term for load in totals.loads.values() for term in load]
    if instance["sharing"]:
        for p, path in enumerate(paths):
            refund(found, totals, path, [q for q in paths[:p] if q.facts["signal"] == path.facts["signal"] != ""])
    for (d, resource), terms in totals.used.items():
        found.at_most(terms, instance["devices"][d][resource])
    if instance["objective"] == "latency":
        found.cutoff = found.at_most(latency, bound - 1)
        return found
    cycle = found.variable(0, bound - 1)
    for load in totals.loads.values():
        found.at_most([*load, (cycle, -1)], 0)
    found.cutoff = found.at_most([(cycle, 1)], bound - 1)
    return found


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


def minus(terms: Iterable[tuple[int, int]]) -> Terms:
    return [(x, -a) for x, a in terms]


def allowed(instance: dict[str, Any], pipeline: dict[str, Any], role: str) -> list[int]:
    """Devices that satisfy a requirement (rule 8)."""
    need = pipeline[role]
    kinds = "sensors" if role == "source" else "interfaces"
    if need.get("device") is not None:
        return [d for d, device in enumerate(instance["devices"]) if device["name"] == need["device"]]
    if need.get("type") is not None:
        return [d for d, device in enumerate(instance["devices"]) if need["type"] in device[kinds]]
    return list(range(len(instance["devices"])))
