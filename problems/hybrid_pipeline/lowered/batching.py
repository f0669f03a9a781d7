"""Several allowed micro-batch sizes (rule 9): any method for one size becomes a method for all of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

from mapgap.core import Budget, SolveResult, Status, Stop
from mapgap.problems.hybrid_pipeline.evaluate import evaluate
from mapgap.problems.hybrid_pipeline.instance import Instance, Plan

Run = Callable[..., SolveResult]


def every_micro_batch(run: Run) -> Run:
    """Make ``run`` search all allowed micro-batch sizes, one after the other, and keep the best plan.

    With one size the result is that of ``run``. Otherwise sizes share the remaining time equally; the bound is the
    smallest of all sizes, and the result is OPTIMAL (INFEASIBLE) when every size is settled.
    """

    @wraps(run)
    def search(instance: Instance, budget: Budget, **options: object) -> SolveResult:
        sizes = instance.micro_batch_sizes
        if len(sizes) == 1:
            return run(instance, budget, **options)
        found: dict[int, SolveResult] = {}
        best: tuple[int, int] | None = None  # objective, size
        for position, size in enumerate(sizes):
            share = Budget(budget.remaining_s / (len(sizes) - position), budget.memory_mb, budget.workers, budget.seed)
            found[size] = run(instance.with_micro_batch(size), share, **options)
            plan = found[size].plan
            if isinstance(plan, Plan):
                value = evaluate(instance, plan).objective
                if value is not None and (best is None or value < best[0]):
                    best = (value, size)
                    budget.report(plan=plan)
        return _combined(found, None if best is None else best[1], None if best is None else best[0])

    return search


def _combined(found: dict[int, SolveResult], winner: int | None, value: int | None) -> SolveResult:
    open_sizes = {size: r for size, r in found.items() if r.status is not Status.INFEASIBLE}
    notes = {"micro_batch_sizes": {str(size): dict(r.notes) for size, r in found.items()}}
    if not open_sizes:
        reason = "; ".join(f"B = {size}: {r.reason}" for size, r in found.items())
        enumerated = all(r.enumerated for r in found.values())
        return SolveResult(Status.INFEASIBLE, Stop.PROVED, reason=reason, enumerated=enumerated, notes=notes)
    bounds = [r.bound for r in open_sizes.values()]
    known = [bound for bound in bounds if bound is not None]
    bound = min(known) if len(known) == len(bounds) else None
    stop = next((r.stop for r in found.values() if r.stop not in (Stop.PROVED, Stop.DONE)), Stop.DONE)
    if winner is None:
        reason = "; ".join(f"B = {size}: {r.reason}" for size, r in found.items() if r.reason)
        return SolveResult(Status.UNKNOWN, stop, bound=bound, reason=reason, notes=notes)
    best = found[winner]
    proven = bound is not None and bound == value
    return SolveResult(
        status=Status.OPTIMAL if proven else Status.FEASIBLE,
        stop=Stop.PROVED if proven else stop,
        plan=best.plan,
        bound=bound,
        claimed=best.claimed,
        enumerated=proven and all(r.enumerated for r in found.values()),
        reason=best.reason,
        notes=notes,
    )
