"""Proofs for :mod:`mapgap.problems.layer_flow.certificate`: nothing where limits suffice, else weights of holdings."""

from __future__ import annotations

import json
from typing import Any

from mapgap.core import Budget
from mapgap.formulations.layer_flow.cover_bound import Covers
from mapgap.formulations.layer_flow.params import Covers as Params
from mapgap.problems.layer_flow import Instance
from mapgap.problems.layer_flow.lowered.limits import flow_limit


def prove(instance: dict[str, Any], bound: int, budget: Budget) -> list[Any] | None:
    """The proof that no more than ``bound`` units flow; ``None`` if none is found within the budget."""
    expanded = Instance.model_validate_json(json.dumps(instance))
    if flow_limit(expanded) <= bound:
        return []
    weights = Covers(expanded).refute(bound + 1, budget)
    return None if weights is None else [Params().grid, weights]
