"""The placements that Helix's authors published.

References
----------
Mei et al., "Helix", ASPLOS 2025; files ``ilp_sol.ini`` and ``ilp_solution.sol`` in Thesys-lab/Helix-ASPLOS25 (Apache
License 2.0), made by Gurobi under a limit of time or stopped by hand.

Interpretation
--------------
A placement belongs to an instance of the same content. Where several runs of the same cluster were published, the best
is taken.
"""

from __future__ import annotations

from pathlib import Path

import yaml

from mapgap.core import Budget, SolveResult, Status, Stop
from mapgap.problems.layer_flow import Instance, Plan

FILE = Path(__file__).with_name("placements.yaml")


def run(instance: Instance, budget: Budget) -> SolveResult:
    """What is in the file."""
    known = yaml.safe_load(FILE.read_text(encoding="utf-8"))["placements"]
    own = next((each for each in known if each["instance"] == instance.content_hash), None)
    if own is None:
        return SolveResult(Status.UNKNOWN, Stop.DONE, reason="the instance is none that a placement was published for")
    plan = Plan(starts=tuple(own["starts"]), counts=tuple(own["counts"]))
    return SolveResult(Status.FEASIBLE, Stop.DONE, plan)
