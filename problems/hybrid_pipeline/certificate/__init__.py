"""The checker of hybrid pipelines for certificates; rules as in the package's docstring. Standard library only.

It needs no proof: it looks for a plan with an objective below the bound and leaves out only what leads to none.

Plans are built from the last stage to the first. :mod:`~.search` argues which unfinished ones may be left out,
:mod:`~.labels` how they are compared, :mod:`~.stages` what a stage costs at least, :mod:`~.facts` what is covered, and
which devices need not be told apart. Where the layers form a graph, :mod:`~.cuts` says what takes the place of cuts
between layers; graphs with more sets of layers in front of cuts than :mod:`~.graph` allows are refused.
"""

from __future__ import annotations

from typing import Any

from .facts import fault
from .search import Search

SENSE = "min"


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
