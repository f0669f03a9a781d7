"""The ways of one pipeline over the devices: part of the writer, standard library only."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate, product
from typing import Any

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
    late : {(k, sender, receiver): variable}
    """

    def __init__(self, found: Any, instance: dict[str, Any], pipeline: dict[str, Any], bound: int) -> None:
        self.facts, self.cuts, self.last = pipeline, pipeline["boundaries"], len(pipeline["layers"])
        devices, layers = range(len(instance["devices"])), pipeline["layers"]
        self.ran = [[0, *accumulate(layer["inference"][d] for layer in layers)] for d in devices]
        self.pairs = ticks_late(instance)
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
                    moved = (self.cuts[i]["receive"][d] if i else 0) + (self.sent(j, d) if j < self.last else 0)
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
        self.late: dict[tuple[int, int, int], int] = {}
        for k, d, e in product(range(1, self.last), devices, devices):
            if self.beyond(k, d, e) and (stops := self.stops(k, d)) and (starts := self.starts(k, e)):
                self.late[k, d, e] = found.variable(0, 1)
                found.at_most([*stops, *starts, (self.late[k, d, e], -1)], 1)

    def sent(self, k: int, d: int) -> int:
        """Ticks to transmit a boundary, to whom that takes least (rule 14)."""
        late = min((ticks for (s, _), ticks in self.pairs.items() if s == d), default=0)
        return int(self.cuts[k]["transmit"][d] + (late if self.cuts[k]["bytes"] else 0))

    def beyond(self, k: int, d: int, e: int) -> int:
        """What it takes longer to this receiver."""
        late = self.pairs.get((d, e), 0) - min((t for (s, _), t in self.pairs.items() if s == d), default=0)
        return late if self.cuts[k]["bytes"] and d != e else 0

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


def ticks_late(instance: dict[str, Any]) -> dict[tuple[int, int], int]:
    """By sender and receiver what a message takes beside its bytes."""
    rows = enumerate(instance.get("latency_ns") or ())
    return {(d, e): -(-ns // instance["tick_ns"]) for d, row in rows for e, ns in enumerate(row) if d != e}


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
