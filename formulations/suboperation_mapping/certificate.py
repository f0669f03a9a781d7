"""Proofs for :mod:`mapgap.problems.suboperation_mapping.certificate`: one tree for all ratios, or one for each."""

from __future__ import annotations

from itertools import islice
from typing import Any

from mapgap.core import Budget
from mapgap.evidence.check import Program
from mapgap.formulations.suboperation_mapping.refutation import refute
from mapgap.problems.suboperation_mapping.certificate import Writer, partitions

MOST_RATIOS = 1000
"""Ratios above which only the program of all ratios is tried."""
BOXES = 300
"""Boxes after which a ratio is tried with orders."""


def prove(instance: dict[str, Any], bound: int, budget: Budget) -> dict[str, list[Any]] | None:
    """The proof that no plan has a makespan below ``bound``; ``None`` if none is found within the budget."""
    tree = refute(Writer(instance, bound, Program(), None).program, budget, (), boxes=1)
    if tree is not None:
        return {"all": tree}
    batch = instance["batch"]
    ratios = list(islice(partitions(batch, batch, len(instance["accelerators"])), MOST_RATIOS + 1))
    proof: dict[str, list[Any]] = {}
    for ratio in ratios if len(ratios) <= MOST_RATIOS else ():
        for ordered in (False, True):
            written = Writer(instance, bound, Program(), ratio, ordered)
            places = [j for o in written.operations for j in written.x[o]]
            boxes = BOXES if not ordered else 1 << 30
            tree = refute(written.program, budget, (places, written.orders), boxes)
            if tree is not None:
                proof[",".join(map(str, ratio)) + (" order" if ordered else "")] = tree
                break
        else:
            return None
    return proof or None
