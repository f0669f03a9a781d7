"""The writer of sub-operation mapping whose proofs along chains are followed by compiled loops.

They are what :mod:`~mapgap.problems.suboperation_mapping.certificate.chain_labels` follows with the standard library
alone, and the verdict is the same; moves are the arrays of :mod:`~.chain_diagram`, and weights are those that the
writer accepts. So more has to be believed: NumPy, Numba and the two modules of arrays. In return all certificates of
the library are checked in minutes. Proofs whose sums might not fit in 64 bits are followed by the writer itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from mapgap.formulations.suboperation_mapping.chain_diagram import Choice, Diagram, Weighing, undominated
from mapgap.problems.suboperation_mapping import certificate
from mapgap.problems.suboperation_mapping.certificate import SENSE, SHAPE, chain_labels
from mapgap.problems.suboperation_mapping.certificate.chain import Chain
from mapgap.problems.suboperation_mapping.certificate.chain_weights import UNIT, by_step

SMALL = 1 << 57  #: what sums of weighted numbers are below, far below the start of nothing


def cases(instance: dict[str, Any], bound: int, new: Any, names: Any) -> Iterator[tuple[str, Any]]:
    """Those of the writer, in the same order."""
    for name, case in certificate.cases(instance, bound, new, names):
        yield name, partial(outlived, *case.args) if callable(case) else case


WRITER = SimpleNamespace(SENSE=SENSE, SHAPE=SHAPE, cases=cases)


def outlived(chain: Chain, bound: int, proof: Any) -> str | None:
    """Why a proof does not hold; ``None`` if it does."""
    diagram = Diagram(chain)
    if not fits(diagram, bound):
        return chain_labels.outlived(chain, bound, proof)
    waiting: list[tuple[Choice, ...]] = [()]
    for part in proof if isinstance(proof, list) else [proof]:
        if not waiting:
            return "expected nothing after the last leaf"
        here = waiting.pop()
        if isinstance(part, list):
            step, number = part
            if {type(step), type(number)} != {int}:
                return "expected the numbers of a step and of a move"
            waiting += [(*here, (step, number, yes)) for yes in (False, True)]
            continue
        diagram.narrow(here)
        if reason := left(diagram, bound, part):
            return reason
    return "a leaf is missing" if waiting else None


def fits(diagram: Diagram, bound: int) -> bool:
    """Whether no sum of weighted numbers can leave 64 bits; those of a chain alone are below the start of nothing."""
    steps = np.flatnonzero(np.diff(diagram.moves.rows, prepend=0))
    most = np.maximum.reduceat(np.abs(diagram.moves.costs), steps).astype(float)
    return bool(2 * UNIT * max(most.sum(), bound) < SMALL)


def left(diagram: Diagram, bound: int, proof: Any) -> str | None:
    """Why labels and weights alone do not prove a bound."""
    chain, grid = diagram.chain, proof["grid"]
    known = [weighing(diagram, first, runs) for first, runs in proof["weights"]]
    if len(grid) != diagram.last or any(type(g) is not int or not 1 <= g < SMALL for g in grid):
        return "expected a grid of every step"
    labels = diagram.root()
    for k, g in enumerate(grid):
        ready = [weights for first, weights in known if first <= k + 1]
        labels = diagram.after(k, labels)
        for weights in ready:
            labels = labels[diagram.value(weights, k + 1, labels) < UNIT * bound]
        if not len(labels):
            return None
        if chain.counted:
            return "a label is left where shares are counted"
        labels[:, 2:] -= labels[:, 2:] % g
        labels = undominated(labels)
    short = labels[diagram.ends(labels) < bound]
    return f"a label is left: {tuple(short[0, 1:].tolist())}" if len(short) else None


def weighing(diagram: Diagram, first: int, runs: Sequence[Sequence[int]]) -> tuple[int, Weighing]:
    """Weights from a step on; refuses those that prove nothing."""
    by_step(diagram.chain, first, runs)
    return first, diagram.weighing([[*run] for run in runs])
