"""MIP over columns. Both parts of the latency are maxima of linear functions of the columns, so no big-M is needed.

===========  ==========================================================================  ===========
Symbol       Meaning                                                                     Shape
===========  ==========================================================================  ===========
x[c]         column c (stage, group, stages behind) is used                              columns
z[k]         link k joins two stages                                                     links
P[l]         steps in front of the stage that has layer l                                ticks
H[l]         aligned step M E + P[l] of the stage that has layer l                       ticks
Q[l]         AllReduce excess Ta - sum Eb of the stage that has layer l                  ticks
V[l]         migration of the stage that has layer l (with a failure)                    ticks
D, A, G      largest H and aligned communication step, largest Q, largest V              ticks
W            R (D + A) + G less the value of the plan known before                       ticks
===========  ==========================================================================  ===========

Minimise W such that

- exactly one column starts at layer 0, and at every (cut, stages behind, group) what ends is linked to what starts;
- every class of devices is used at most (with ``all_devices``: exactly) as often as it has members;
- from one first layer of stages to the next, P, H, Q and V change by the columns that end and begin there. One column
  has layer l, and the columns that end at or before l are the stages in front of it: four sums of columns, exact at
  integer points, and at every layer, not only per stage, for the relaxation.

All variables are declared integer: HiGHS presolves purely integer models only (see ``mapgap.solvers.mip``). W is
small where the plan known before is good, so that an engine's relative tolerance is less than one tick.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any, Literal

from mapgap.core import Budget, SolveResult, Status, Stop
from mapgap.formulations.hybrid_pipeline.columns import Columns, build
from mapgap.formulations.hybrid_pipeline.lowered import lower
from mapgap.formulations.hybrid_pipeline.windows import Filter
from mapgap.problems.hybrid_pipeline import Instance
from mapgap.problems.hybrid_pipeline.evaluate import diagnose
from mapgap.problems.hybrid_pipeline.shared.batching import every_micro_batch


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
        self.base = columns.upper if columns.start else 0
        self.d = pulp.LpVariable("D", 0, cat="Integer")
        self.a = pulp.LpVariable("A", 0, cat="Integer")
        self.g = pulp.LpVariable("G", 0, cat="Integer")
        self.w = pulp.LpVariable("W", -self.base, 0 if columns.start else None, cat="Integer")
        self.problem += self.w
        self.problem += self.w == self.low.rounds * (self.d + self.a) + self.g - self.base, "objective_shifted"
        self._flow(pulp.lpSum)
        self._devices(pulp.lpSum)
        self._latency(pulp)

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

    def _latency(self, pulp: Any) -> None:
        """D, A and G over the layers at which stages begin."""
        m, total = self.low.micro_batches, pulp.lpSum
        begin, end, links = defaultdict(list), defaultdict(list), defaultdict(list)
        for x, column in zip(self.x, self.columns.columns, strict=True):
            begin[column.start].append((x, column))
            end[column.stop].append((x, column))
        for z, step in zip(self.z, self.columns.links, strict=True):
            links[step.cut].append((z, step.ticks))
        p = h = q = v = pulp.lpSum([])
        for layer in sorted(begin):
            new, old = begin[layer], end[layer]
            c = total(ticks * z for z, ticks in links[layer])
            ahead = p + total(column.both * x for x, column in old)
            if links[layer]:
                self.problem += self.d >= ahead + 2 * m * c, f"communication_{layer}"
            p_next = ahead + 2 * c
            h_next = h + 2 * c + total(m * column.both * x for x, column in new)
            h_next -= total((m - 1) * column.both * x for x, column in old)
            q_next = q - c + total(column.allreduce * x for x, column in new)
            q_next -= total((column.allreduce + column.backward) * x for x, column in old)
            v_next = v + total(column.migration * x for x, column in new)
            v_next -= total(column.migration * x for x, column in old)
            p, h, q, v = (
                self._equal(pulp, f"{name}_{layer}", value, least)
                for name, value, least in (("P", p_next, 0), ("H", h_next, 0), ("Q", q_next, None), ("V", v_next, 0))
            )
            self.problem += self.d >= h, f"execution_{layer}"
            self.problem += self.a >= q, f"allreduce_{layer}"
            self.problem += self.g >= v, f"migration_{layer}"

    def _equal(self, pulp: Any, name: str, value: Any, least: int | None) -> Any:
        """A variable of that value, at least ``least`` at integer points."""
        variable = pulp.LpVariable(name, least, cat="Integer")
        self.problem += variable == value, f"define_{name}"
        return variable


def decode(columns: Columns, used: list[bool]) -> list[tuple[int, int, int]]:
    """The stages of a solution in pipeline order."""
    chosen = [column for column, on in zip(columns.columns, used, strict=True) if on]
    return [(c.start, c.stop, c.group) for c in sorted(chosen, key=lambda c: c.start)]


@every_micro_batch
def run(
    instance: Instance, budget: Budget, solver: Literal["highs", "cbc"] = "highs", keep: Filter = "front"
) -> SolveResult:
    """Build the columns that pass the tests up to ``keep`` and solve; UNKNOWN where they are too many."""
    from mapgap.solvers.mip import solve

    low = lower(instance)
    columns = build(low, budget, keep)
    if columns is None:
        return SolveResult(Status.UNKNOWN, Stop.TIME, reason="too many stages to build a model of in the time given")
    notes = columns.notes(budget)
    if not columns.columns:
        return SolveResult(Status.INFEASIBLE, Stop.PROVED, reason=_reason(instance), notes=notes)
    model = Model(columns)
    outcome = solve(model.problem, budget, solver)
    if outcome.status is Status.INFEASIBLE and not columns.start:
        return SolveResult(Status.INFEASIBLE, Stop.PROVED, reason=_reason(instance), notes=notes)
    bound = None if outcome.bound is None else outcome.bound + model.base
    if outcome.solved and outcome.objective is not None:
        plan = low.plan(decode(columns, [outcome.value(x) == 1 for x in model.x]))
        claimed = outcome.objective + model.base if outcome.status is Status.OPTIMAL else None
        return SolveResult(outcome.status, outcome.stop, plan, bound, claimed, notes=notes)
    if columns.start:
        return SolveResult(Status.FEASIBLE, outcome.stop, low.plan(columns.start), bound, notes=notes)
    return SolveResult(Status.UNKNOWN, outcome.stop, bound=bound, reason="no plan found in time", notes=notes)


def _reason(instance: Instance) -> str:
    return "; ".join(diagnose(instance)) or "memory: no chain of stages holds a micro-batch"
