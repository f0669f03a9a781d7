"""Proofs for :mod:`mapgap.problems.suboperation_mapping.certificate`: one tree for all ratios, or one for each."""

from __future__ import annotations

from itertools import islice
from typing import Any

from mapgap.core import Budget
from mapgap.evidence.check import Box, Program
from mapgap.problems.suboperation_mapping.certificate import partitions
from mapgap.problems.suboperation_mapping.certificate.times import Writer
from mapgap.solvers.refute import refute

MOST_RATIOS = 1000
"""Ratios above which only the program of all ratios is tried."""
BOXES = 300
"""Boxes after which a ratio is tried with orders."""


def prove(instance: dict[str, Any], bound: int, budget: Budget) -> dict[str, list[Any]] | None:
    """The proof that no plan has a makespan below ``bound``; ``None`` if none is found within the budget."""
    tree = _refuted(Writer(instance, bound, Program(), None), budget, 1)
    if tree is not None:
        return {"all": tree}
    batch = instance["batch"]
    ratios = list(islice(partitions(batch, batch, len(instance["accelerators"])), MOST_RATIOS + 1))
    proof: dict[str, list[Any]] = {}
    for ratio in ratios if len(ratios) <= MOST_RATIOS else ():
        for ordered in (False, True):
            written = Writer(instance, bound, Program(), ratio, ordered)
            tree = _refuted(written, budget, 1 << 30 if ordered else BOXES)
            if tree is not None:
                proof[",".join(map(str, ratio)) + (" order" if ordered else "")] = tree
                break
        else:
            return None
    return proof or None


def _refuted(written: Writer, budget: Budget, boxes: int) -> list[list[Any]] | None:
    """A tree that branches on places, then on orders."""
    program, places = written.program, [j for x in written.x.values() for j in x]
    box = Box(program.lower[:], program.upper[:], [])
    return refute(program, box, budget, (places, written.orders), boxes).proof
