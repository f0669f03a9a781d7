"""CP-SAT over the columns of :mod:`mapgap.formulations.hybrid_pipeline.columns`, as a path through a graph.

===========  ==========================================================================  ===========
Symbol       Meaning                                                                     Shape
===========  ==========================================================================  ===========
x[c]         column c (stage, group, stages behind) is used                              columns
z[k]         link k joins two stages                                                     links
E[q], ...    times of the stage with q stages behind it (0 where there is none)          (depth,)
D, A, G      the three maxima of the objective R (D + A) + G                             ticks
===========  ==========================================================================  ===========

The times are variables of their own, each fixed by one row over columns, so that rows of the latency stay short and
their activity small.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

from mapgap.core import Budget, SolveResult, Status, Stop
from mapgap.formulations.hybrid_pipeline.columns import Column, Columns, Link, build
from mapgap.formulations.hybrid_pipeline.lowered import lower
from mapgap.formulations.hybrid_pipeline.windows import Filter
from mapgap.problems.hybrid_pipeline import Instance
from mapgap.problems.hybrid_pipeline.evaluate import diagnose
from mapgap.problems.hybrid_pipeline.shared.batching import every_micro_batch

ROW_ACTIVITY = 2**30
"""Most that the terms of one row may add up to if all of them were used (``mapgap.solvers.cpsat`` refuses twice as
much)."""


class Model:
    """The model of one micro-batch size."""

    def __init__(self, columns: Columns) -> None:
        from ortools.sat.python import cp_model

        self.model: Any = cp_model.CpModel()
        self.columns, self.low = columns, columns.low
        self.x = [self.model.new_bool_var(f"x[{c}]") for c in range(len(columns.columns))]
        self.z = [self.model.new_bool_var(f"z[{k}]") for k in range(len(columns.links))]
        self._chain()
        self._devices()
        self._latency()

    def _chain(self) -> None:
        """Exactly one column at layer 0; at most one stage per q; ends and starts agree with the links."""
        sides: dict[tuple[str, int, int, int], list[Any]] = defaultdict(list)
        links: dict[tuple[str, int, int, int], list[Any]] = defaultdict(list)
        entry, stages = [], defaultdict(list)
        for x, column in zip(self.x, self.columns.columns, strict=True):
            key = self.columns.key(column.group)
            stages[column.behind].append(x)
            if column.stop < self.low.layers:
                sides["leave", column.stop, column.behind, key].append(x)
            if column.start > 0:
                sides["enter", column.start, column.behind + 1, key].append(x)
            else:
                entry.append(x)
        for z, link in zip(self.z, self.columns.links, strict=True):
            links["leave", link.cut, link.behind, link.group].append(z)
            links["enter", link.cut, link.behind, link.next].append(z)
        self.model.add_exactly_one(entry)
        for same in stages.values():
            self.model.add_at_most_one(same)
        for node in sorted(sides.keys() | links.keys()):
            self.model.add(sum(sides[node]) == sum(links[node])).with_name(str(node))

    def _devices(self) -> None:
        """No device in two stages; with ``all_devices`` every one in one."""
        for c, size in enumerate(self.low.size.tolist()):
            used = sum(
                int(self.low.groups[column.group, c]) * x
                for x, column in zip(self.x, self.columns.columns, strict=True)
            )
            everyone = self.low.instance.all_devices
            self.model.add(used == size if everyone else used <= size).with_name(f"class[{c}]")

    def _latency(self) -> None:
        """D, A, G over the stages and links by q, from the end of the pipeline."""
        model, m, depth = self.model, self.low.micro_batches, self.columns.depth
        e = self._times("E", lambda column: column.both)
        back = self._times("Eb", lambda column: column.backward)
        ta = self._times("Ta", lambda column: column.allreduce)
        moved = self._times("migration", lambda column: column.migration)
        comm = self._link_times()
        rounds = self.low.rounds
        longest = max(max(c.both for c in self.columns.columns), *(2 * k.ticks for k in self.columns.links), 0)
        worst = min(self.columns.upper // rounds, (m + 2 * depth) * longest)  # the plan known is at least as good
        slowest = max(c.allreduce for c in self.columns.columns)
        self.d = model.new_int_var(0, worst, "D")
        self.a = model.new_int_var(0, min(worst, slowest) if self.columns.start else slowest, "A")
        self.g = model.new_int_var(0, max(c.migration for c in self.columns.columns), "G")
        for q in range(depth):
            ahead = sum(e[p] + 2 * comm[p] for p in range(q + 1, depth))
            model.add(self.d >= m * e[q] + ahead).with_name(f"execution[{q}]")
            model.add(self.d >= 2 * m * comm[q] + e[q] + ahead).with_name(f"communication[{q}]")
            returned = sum(back[p] + comm[p] for p in range(q + 1, depth))
            model.add(self.a >= ta[q] - returned).with_name(f"allreduce[{q}]")
            model.add(self.g >= moved[q]).with_name(f"migration[{q}]")
        model.minimize(rounds * self.d + rounds * self.a + self.g)

    def _times(self, name: str, of: Callable[[Column], int]) -> list[Any]:
        """One variable per q that equals the time of the column used there."""
        terms: dict[int, list[tuple[int, Any]]] = defaultdict(list)
        for x, column in zip(self.x, self.columns.columns, strict=True):
            terms[column.behind].append((of(column), x))
        return [self._sum(f"{name}[{q}]", terms[q]) for q in range(self.columns.depth)]

    def _link_times(self) -> list[Any]:
        terms: dict[int, list[tuple[int, Any]]] = defaultdict(list)
        links: list[Link] = self.columns.links
        for z, link in zip(self.z, links, strict=True):
            terms[link.behind].append((link.ticks, z))
        return [self._sum(f"comm[{q}]", terms[q]) for q in range(self.columns.depth)]

    def _sum(self, name: str, terms: list[tuple[int, Any]]) -> Any:
        """The time of the one term that is used, 0 if none is; over parts of the terms where the row is too active."""
        longest = max((ticks for ticks, _ in terms), default=0)
        variable = self.model.new_int_var(0, longest, name)
        most = max(2, ROW_ACTIVITY // max(1, longest))
        parts = [terms[k : k + most] for k in range(0, len(terms), most)]
        if len(parts) > 1:
            terms = [(1, self._sum(f"{name}/{k}", part)) for k, part in enumerate(parts)]
        self.model.add(variable == sum(ticks * literal for ticks, literal in terms)).with_name(name)
        return variable

    def stages(self, value: Callable[[Any], int]) -> list[tuple[int, int, int]]:
        """The stages of a solution in pipeline order."""
        chosen = [column for x, column in zip(self.x, self.columns.columns, strict=True) if value(x)]
        return [(c.start, c.stop, c.group) for c in sorted(chosen, key=lambda c: c.start)]

    def hint(self) -> dict[Any, int]:
        """Variables of the plan known before."""
        path = self.columns.start
        place = {(start, stop, group, len(path) - 1 - p) for p, (start, stop, group) in enumerate(path)}
        return {
            x: int((column.start, column.stop, column.group, column.behind) in place)
            for x, column in zip(self.x, self.columns.columns, strict=True)
        }


@every_micro_batch
def run(instance: Instance, budget: Budget, keep: Filter = "front") -> SolveResult:
    """Build the columns that pass the tests up to ``keep`` and solve; UNKNOWN where they are too many."""
    from mapgap.solvers.cpsat import solve

    low = lower(instance)
    columns = build(low, budget, keep)
    if columns is None:
        return SolveResult(Status.UNKNOWN, Stop.TIME, reason="too many stages to build a model of in the time given")
    notes = columns.notes(budget)
    infeasible = SolveResult(
        Status.INFEASIBLE,
        Stop.PROVED,
        reason="; ".join(diagnose(instance)) or "memory: no chain of stages holds a micro-batch",
        notes=notes,
    )
    if not columns.columns:
        return infeasible
    model = Model(columns)
    outcome = solve(
        model.model,
        budget,
        hint=model.hint() if columns.start else None,
        on_solution=lambda value: budget.report(plan=low.plan(model.stages(value))),
    )
    if outcome.status is Status.INFEASIBLE and not columns.start:
        return infeasible
    if outcome.solved:
        plan = low.plan(model.stages(outcome.value))
        claimed = outcome.objective if outcome.status is Status.OPTIMAL else None
        return SolveResult(outcome.status, outcome.stop, plan, outcome.bound, claimed, notes=notes)
    if columns.start:
        return SolveResult(Status.FEASIBLE, outcome.stop, low.plan(columns.start), outcome.bound, notes=notes)
    return SolveResult(Status.UNKNOWN, outcome.stop, bound=outcome.bound, reason="no plan found in time", notes=notes)
