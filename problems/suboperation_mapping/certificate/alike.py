"""Accelerators that nothing tells apart: part of the writer, standard library only.

Two are *equal* if all their tables are, and exchanging them leaves bandwidths and latencies as they are. So whatever
the plan, exchanging two of them in all places gives one of the same ratio and makespan, the DRAM being left out.

The program of a box does not name the members of a class of equal accelerators. What lies on a class, and takes time
there, is the sum over its members; a row that holds for each of them holds for their sum. Of a tuple of accelerators,
such as a state, the members of each class are named in the order in which they first appear: one that appears already,
or one of those that do not, which are alike to the tuple.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

PHASES = ("fp", "bp", "wu")


def equal(instance: dict[str, Any], a: int, b: int) -> bool:
    """Whether exchanging two accelerators changes no table, no bandwidth and no latency."""
    links = [instance["bandwidth"], *([instance["latency_ns"]] if instance.get("latency_ns") else [])]
    places = range(len(instance["accelerators"]))
    swap = [b if i == a else a if i == b else i for i in places]
    tables = [layer[phase] for layer in instance["layers"] for phase in PHASES if layer[phase]]
    pairs = [(i, j) for i, j in product(places, repeat=2) if i != j]
    return all(t[a] == t[b] for t in tables) and all(m[i][j] == m[swap[i]][swap[j]] for m in links for i, j in pairs)


def firsts(instance: dict[str, Any]) -> list[int]:
    """Of every accelerator the first one that is equal to it."""
    places = range(len(instance["accelerators"]))
    return [next(b for b in places if equal(instance, b, a)) for a in places]


def classes(instance: dict[str, Any], apart: bool) -> tuple[list[int], list[int]]:
    """The order in which first members come first, and the class of every accelerator in it.

    ``apart``: the first one of equal accelerators is a class of its own.
    """
    found: list[list[int]] = []
    for a, _ in enumerate(instance["accelerators"]):
        alike = [those for those in found if equal(instance, those[0], a)]
        if len(alike) > apart:
            alike[-1].append(a)
        else:
            found.append([a])
    order = [those[0] for those in found] + sorted(a for those in found for a in those[1:])
    return order, [next(q for q, those in enumerate(found) if a in those) for a in order]


def renamed(instance: dict[str, Any], order: list[int]) -> dict[str, Any]:
    """The instance with its accelerators in another order."""
    layers = [
        {**layer, **{phase: [layer[phase][a] for a in order] for phase in PHASES if layer[phase]}}
        for layer in instance["layers"]
    ]
    links = ("bandwidth", *(("latency_ns",) if instance.get("latency_ns") else ()))
    moved = {field: [[instance[field][i][j] for j in order] for i in order] for field in links}
    accelerators = [instance["accelerators"][a] for a in order]
    return {**instance, "accelerators": accelerators, "layers": layers, **moved}


class Classes:
    """``kind`` is the class of every accelerator, ``places`` are the classes, ``members`` how many lie in each.

    Classes are numbered as their first members are, and have one member each but in programs of boxes.
    """

    def __init__(self, count: int, kind: Sequence[int]) -> None:
        self.everywhere = range(count)
        self.kind = kind or self.everywhere
        self.places = range(max(self.kind) + 1)
        self.members = [sum(q == k for k in self.kind) for q in self.places]

    def extended(self, state: Any) -> list[int]:
        """What can be told apart beside a state: its accelerators, and of the others the first one of every class."""
        return [a for a in self.everywhere if a in state or all(b in state for b in self.alike(a) if b < a)]

    def stands(self, state: Any, a: int) -> int:
        """For how many accelerators one of these stands."""
        return 1 if a in state else self.members[self.kind[a]] - len({b for b in state if b in self.alike(a)})

    def alike(self, a: int) -> list[int]:
        return [b for b in self.everywhere if self.kind[b] == self.kind[a]]
