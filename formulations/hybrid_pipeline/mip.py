"""MIP over columns. Both parts of the latency are maxima of linear functions of the columns, so no big-M is needed.

===========  ==========================================================================  ===========
Symbol       Meaning                                                                     Shape
===========  ==========================================================================  ===========
x[c]         column c (stage, group, stages behind) is used                              columns
z[k]         link k joins two stages                                                     links
D            largest aligned step, max_i (M E_i + sum_{j<i} E_j)                         ticks
A            largest AllReduce excess, max_s (Ta_s - sum_{j<s} Eb_j)                     ticks
G            longest migration (with a failure)                                          ticks
===========  ==========================================================================  ===========

Minimise R (D + A) + G such that

- exactly one column starts at layer 0, and at every (cut, stages behind, group) what ends is linked to what starts;
- every class of devices is used at most (with ``all_devices``: exactly) as often as it has members;
- D, A and G are at least their terms for every stage, counted by the number q of stages behind it: the steps before
  it are the columns and links of larger q.

All variables are declared integer: HiGHS presolves purely integer models only (see ``solvers.mip``).
"""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from typing import Any, Literal

from formulations.hybrid_pipeline._columns import Columns, build
from formulations.hybrid_pipeline._lowered import lower
from mapgap.core import Budget, Method, SolveResult, Status, Stop
from problems.hybrid_pipeline import Instance
from problems.hybrid_pipeline.batching import every_micro_batch
from problems.hybrid_pipeline.evaluate import diagnose


class Model:
    """The model of one micro-batch size.

    Attributes
    ----------
    problem : pulp.LpProblem
    x : list of variable, by column
    """

    def __init__(self, columns: Columns) -> None:
        import pulp

        self.columns, self.low = columns, columns.low
        self.problem = pulp.LpProblem("hybrid_pipeline", pulp.LpMinimize)
        self.x = [pulp.LpVariable(f"x_{c}", cat="Binary") for c in range(len(columns.columns))]
        self.z = [pulp.LpVariable(f"z_{k}", cat="Binary") for k in range(len(columns.links))]
        self.d = pulp.LpVariable("D", 0, cat="Integer")
        self.a = pulp.LpVariable("A", 0, cat="Integer")
        self.g = pulp.LpVariable("G", 0, cat="Integer")
        self.problem += self.low.rounds * (self.d + self.a) + self.g
        self._flow(pulp.lpSum)
        self._devices(pulp.lpSum)
        self._latency(pulp.lpSum)

    def _flow(self, total: Any) -> None:
        """One chain of stages from the first layer to the last."""
        ends, starts, entry = defaultdict(list), defaultdict(list), []
        for x, column in zip(self.x, self.columns.columns, strict=True):
            key = self.columns.key(column.group)
            if column.stop < self.low.layers:
                ends[column.stop, column.behind, key].append(x)
            if column.start > 0:
                starts[column.start, column.behind + 1, key].append(x)
            else:
                entry.append(x)
        out, into = defaultdict(list), defaultdict(list)
        for z, link in zip(self.z, self.columns.links, strict=True):
            out[link.cut, link.behind, link.group].append(z)
            into[link.cut, link.behind, link.next].append(z)
        self.problem += total(entry) == 1, "one_chain"
        for name, stages, links in (("leave", ends, out), ("enter", starts, into)):
            for node in sorted(stages.keys() | links.keys()):
                row = total(stages[node]) == total(links[node])
                self.problem += row, f"{name}_{'_'.join(map(str, node))}"

    def _devices(self, total: Any) -> None:
        """No device in two stages; with ``all_devices`` every one in one."""
        for c, size in enumerate(self.low.size.tolist()):
            used = total(
                int(self.low.groups[column.group, c]) * x
                for x, column in zip(self.x, self.columns.columns, strict=True)
                if self.low.groups[column.group, c]
            )
            self.problem += (used == size if self.low.instance.all_devices else used <= size), f"class_{c}"

    def _latency(self, total: Any) -> None:
        """D, A and G; q counts stages from the end, so the stages in front are those of larger q."""
        m = self.low.micro_batches
        stage = defaultdict(list)
        link = defaultdict(list)
        for x, column in zip(self.x, self.columns.columns, strict=True):
            stage[column.behind].append((x, column))
        for z, step in zip(self.z, self.columns.links, strict=True):
            link[step.behind].append((z, step.ticks))
        for q in range(self.columns.depth):
            e = total(column.both * x for x, column in stage[q])
            ahead = total(column.both * x for p in range(q + 1, self.columns.depth) for x, column in stage[p])
            ahead += total(2 * ticks * z for p in range(q + 1, self.columns.depth) for z, ticks in link[p])
            self.problem += self.d >= m * e + ahead, f"execution_{q}"
            if link[q]:
                self.problem += self.d >= m * total(2 * t * z for z, t in link[q]) + e + ahead, f"communication_{q}"
            back = total(column.backward * x for p in range(q + 1, self.columns.depth) for x, column in stage[p])
            back += total(ticks * z for p in range(q + 1, self.columns.depth) for z, ticks in link[p])
            self.problem += self.a >= total(column.allreduce * x for x, column in stage[q]) - back, f"allreduce_{q}"
            moved = [column.migration * x for x, column in stage[q] if column.migration]
            if moved:
                self.problem += self.g >= total(moved), f"migration_{q}"


def decode(columns: Columns, used: list[bool]) -> list[tuple[int, int, int]]:
    """The stages of a solution in pipeline order."""
    chosen = [column for column, on in zip(columns.columns, used, strict=True) if on]
    return [(c.start, c.stop, c.group) for c in sorted(chosen, key=lambda c: c.start)]


def run(instance: Instance, budget: Budget, solver: Literal["highs", "cbc"] = "highs") -> SolveResult:
    """Build the columns and solve; UNKNOWN where they are too many."""
    from solvers.mip import solve

    low = lower(instance)
    columns = build(low, budget)
    if columns is None:
        return SolveResult(Status.UNKNOWN, Stop.TIME, reason="too many stages to build a model of in the time given")
    notes = {"columns": len(columns.columns), "links": len(columns.links), "build_s": budget.elapsed_s}
    if not columns.columns:
        return SolveResult(Status.INFEASIBLE, Stop.PROVED, reason=_reason(instance), notes=notes)
    model = Model(columns)
    outcome = solve(model.problem, budget, solver)
    if outcome.status is Status.INFEASIBLE:
        return SolveResult(Status.INFEASIBLE, Stop.PROVED, reason=_reason(instance), notes=notes)
    if outcome.solved:
        plan = low.plan(decode(columns, [outcome.value(x) == 1 for x in model.x]))
        claimed = outcome.objective if outcome.status is Status.OPTIMAL else None
        return SolveResult(outcome.status, outcome.stop, plan, outcome.bound, claimed, notes=notes)
    if columns.start:
        plan = low.plan(columns.start)
        return SolveResult(Status.FEASIBLE, outcome.stop, plan, outcome.bound, notes=notes)
    return SolveResult(Status.UNKNOWN, outcome.stop, bound=outcome.bound, reason="no plan found in time", notes=notes)


def _reason(instance: Instance) -> str:
    return "; ".join(diagnose(instance)) or "memory: no chain of stages holds a micro-batch"


METHODS = [
    Method(
        name="mip" if solver == "highs" else "mip_cbc",
        problem="hybrid_pipeline",
        kind="exact",
        reference=f"MIP over columns ({'HiGHS' if solver == 'highs' else 'CBC'})",
        run=every_micro_batch(partial(run, solver=solver)),
        summary="one binary per stage, group and number of stages behind",
        rank=1 if solver == "highs" else 0,
        engines=("HiGHS" if solver == "highs" else "CBC",),
    )
    for solver in ("highs", "cbc")
]
