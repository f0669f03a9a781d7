"""The strongest exact method per objective.

Cycle times are decided by a few large transfers and by packing: clauses and the ladder refute a limit at once, while
the relaxation of a minimum over maxima is weak. Total latency is a sum, for which the relaxation of whole segments is
nearly tight. So ``joint`` runs ``cpsat`` for throughput and ``mip`` for latency.
"""

from __future__ import annotations

from mapgap.core import Budget, SolveResult
from mapgap.formulations.multi_model_splitting import cpsat, mip
from mapgap.problems.multi_model_splitting import Instance


def run(instance: Instance, budget: Budget) -> SolveResult:
    """Best joint plan."""
    if instance.objective == "throughput":
        return cpsat.run(instance, budget)
    return mip.run(instance, budget)
