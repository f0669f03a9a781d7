"""The writer of sub-operation mapping whose proofs along chains are followed by compiled loops.

They are what :mod:`~mapgap.problems.suboperation_mapping.certificate.chain_labels` follows with the standard library
alone, and the verdict is the same; moves are the arrays of :mod:`~.chain_diagram`, and weights are those that the
writer accepts. So more has to be believed: NumPy, Numba and the modules of arrays. In return all certificates of the
library are checked in minutes. Proofs whose sums might not fit in 64 bits are followed by the writer itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from mapgap.formulations.suboperation_mapping.chain_diagram import Diagram, Weighing, undominated
from mapgap.problems.suboperation_mapping import certificate
from mapgap.problems.suboperation_mapping.certificate import chain_labels
from mapgap.problems.suboperation_mapping.certificate.chain import Chain
from mapgap.problems.suboperation_mapping.certificate.chain_costs import NEVER
from mapgap.problems.suboperation_mapping.certificate.chain_weights import UNIT, by_step


def cases(instance: dict[str, Any], bound: int, new: Any, names: Any) -> Iterator[tuple[str, Any]]:
    """Those of the writer, in the same order."""
    for name, case in certificate.cases(instance, bound, new, names):
        yield name, partial(outlived, *case.args) if callable(case) else case


def outlived(chain: Chain, bound: int, proof: Any) -> str | None:
    """Why a proof does not hold; ``None`` if it does."""
    diagram = Diagram(chain)
    if not fits(diagram, bound):
        return chain_labels.outlived(chain, bound, proof)
    return chain_labels.followed(chain, bound, proof, partial(left, diagram))


def fits(diagram: Diagram, bound: int) -> bool:
    """Whether sums of weighted numbers stay far below the start of nothing; those of a chain alone stay below it."""
    costs = diagram.moves.costs
    most = max(int(costs.max(initial=0)), -int(costs.min(initial=0)))
    return bool(2 * UNIT * max(costs.shape[1] * diagram.last * most, bound) < NEVER >> 3)


def left(diagram: Diagram, chain: Chain, bound: int, proof: Any) -> str | None:
    """Why labels and weights alone do not prove a bound of what is chosen of a chain."""
    diagram.bar(chain)
    grid = proof["grid"]
    known = diagram.known([weighing(diagram, first, runs) for first, runs in proof["weights"]])
    if len(grid) != diagram.last or any(type(g) is not int or not 1 <= g < NEVER for g in grid):
        return "expected a grid of every step"
    labels = diagram.root()
    for k, g in enumerate(grid):
        labels = diagram.after(k, labels, known, UNIT * bound)
        if not len(labels):
            return None
        if len(labels) > chain_labels.MOST:
            return chain_labels.MANY
        if chain.counted:
            return "a label is left where shares are counted"
        if g > 1:
            labels[:, 2:] -= labels[:, 2:] % g
        labels = undominated(labels)
    short = labels[diagram.ends(labels) < bound]
    return f"a label is left: {tuple(short[0, 1:].tolist())}" if len(short) else None


def weighing(diagram: Diagram, first: int, runs: Sequence[Sequence[int]]) -> tuple[int, Weighing]:
    """Weights from a step on; refuses those that prove nothing."""
    by_step(diagram.chain, first, runs)
    return first, diagram.weighing([[*run] for run in runs])
