"""CP-SAT over columns (stages with constant costs): a path through a graph, its latency in closed form.

The latency ``max_i (M E_i + sum_{j<i} E_j) + max_s (Ta_s - sum_{j<s} Eb_j)`` of Eqs. (4)-(6) is derived in
docs/methods/hybrid_pipeline.md. Costs of columns are constants, because the latency is not monotone in ``Eb``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from ortools.sat.python.cp_model import IntVar, LinearExpr

from mapgap.core import Budget, PlanBase, SolveResult
from mapgap.formulations.hybrid_pipeline.columns import Column, Columns, parts, prove_columns
from mapgap.formulations.hybrid_pipeline.params import Columns as Params
from mapgap.formulations.hybrid_pipeline.windows import Filter
from mapgap.problems.hybrid_pipeline import Instance, Plan
from mapgap.problems.hybrid_pipeline.lowered.batching import every_micro_batch
from mapgap.solvers.cpsat import CpSatModel
from mapgap.solvers.model import Part, Value, row

ROW_ACTIVITY = 2**30
"""Most that the terms of one row may add up to if all of them were used (``mapgap.solvers.cpsat`` refuses twice as
much)."""


class ColumnCpSat(CpSatModel):
    """One micro-batch size as an integer program.

    Sets
        K columns k = (i, j, g, q): a stage of layers [i, j) on group g with q stages behind it; K_q those with q.
        Z links (l, q, g, h): at the cut before layer l from a stage on g with q stages behind it to one on h. Where all
        links are equal, the groups do not matter to a link and are left out.
        C classes of interchangeable devices; q = 0, 1, ... from the end of the pipeline.
    Data
        E_k = Ef_k + Eb_k, Eb_k, Ta_k (Eqs. 5, 7, 8), V_k migration, c_z one way over a link; all in ticks. On one
        medium W_k, what a micro-batch takes of it for a stage, and m = 1; elsewhere m = 0.
        n_gc devices of class c in group g, N_c in all; R rounds (1 without a failure).
        u, v, w, x, y: busy, aligned, ways, excess, drain of ``lowered.Form``: M, 1, 2, 1, 0 for the latency of training
        with M micro-batches, M - 1, 0, 1, 0, 1 of inference; 1, 0, 2 (1 in inference), 0, 0 for the bottleneck.
    Variables
        x_k = 1 if the stage is used, z_z = 1 if the link is.
        e_q, b_q, t_q, v_q, s_q: E, Eb, Ta and V of the stage with q stages behind it, c of the link behind it; ticks.
        On one medium also r_q, W of that stage, and f, E of the first one.
        D largest aligned step, A largest AllReduce excess, G largest migration; ticks.

    Minimise R (D + A) + G such that

        (1)  sum_{k: i = 0} x_k = 1                                             one stage has the first layer
        (2)  sum_{k in K_q} x_k <= 1                             for all q      implied by (1), (3), (4)
        (3)  sum_{k: j = l, q, g} x_k = sum_{z: l, q, g} z_z     for all l < L, q, g      a link leaves what ends
        (4)  sum_{k: i = l, q - 1, h} x_k = sum_{z: l, q, h} z_z for all l > 0, q, h      a link enters what begins
        (5)  sum_k n_gc x_k <= N_c  (= with all_devices)         for all c      no device in two stages
        (6)  e_q = sum_{k in K_q} E_k x_k                        for all q
        (7)  b_q = sum_{k in K_q} Eb_k x_k                       for all q
        (8)  t_q = sum_{k in K_q} Ta_k x_k                       for all q
        (9)  v_q = sum_{k in K_q} V_k x_k                        for all q
        (10) s_q = sum_{z: q} c_z z_z                            for all q
        (11) D >= u e_q + v sum_{p > q} (e_p + w s_p)            for all q      execution steps, aligned
        (12) D >= u w s_q + v e_q + v sum_{p > q} (e_p + w s_p)  for all q      communication steps, aligned
             D >= m (u sum_q (w s_q + r_q) + v f)                               the one medium
        (13) A >= t_q + m sum_{p > q} t_p - x sum_{p > q} (b_p + s_p) + y e_q + y sum_{p > q} (e_p + w s_p)   for all q
        (14) G >= v_q                                            for all q

    r_q and f are defined in (6), as e_q. The times of (6)-(10) are variables of their own so that (11)-(13) stay short
    and their activity small.
    """

    def __init__(self, columns: Columns, without: Collection[int] = ()) -> None:
        super().__init__()
        self.columns, self.low = columns, columns.low
        self.x = [self.program.new_bool_var(f"x[{c.start},{c.stop},{c.group},{c.behind}]") for c in columns.columns]
        self.z = [
            self.program.new_bool_var(f"z[{link.cut},{link.behind},{link.group},{link.next}]") for link in columns.links
        ]
        self.by_depth: dict[int, list[tuple[IntVar, Column]]] = defaultdict(list)
        for x, column in zip(self.x, columns.columns, strict=True):
            self.by_depth[column.behind].append((x, column))
        self.depth = range(columns.depth)
        self.e = self._times("E", lambda column: column.both)
        self.b = self._times("Eb", lambda column: column.backward)
        self.t = self._times("Ta", lambda column: column.allreduce)
        self.v = self._times("migration", lambda column: column.migration)
        self.s = [self._time(f"comm[{q}]", (k.ticks for k in columns.links if k.behind == q)) for q in self.depth]
        self.r = self._times("W", lambda column: column.medium) if self.low.form.turns else []
        rounds, m = self.low.rounds, self.low.micro_batches
        longest = max((*(c.both for c in columns.columns), *(2 * k.ticks for k in columns.links)), default=0)
        known = columns.upper // rounds  # the latency of a plan, if one is known: neither D nor A is worth more
        slowest = max((c.allreduce for c in columns.columns), default=0)
        if self.low.form.turns:
            slowest *= columns.depth
            known = min(known, ROW_ACTIVITY)
            longest = columns.depth * (longest + max((c.medium for c in columns.columns), default=0))
        if self.low.form.drain:
            slowest = 2 * columns.depth * longest
        self.d = self.program.new_int_var(0, min(known, (m + 2 * columns.depth) * longest), "D")
        self.a = self.program.new_int_var(0, min(known, slowest) if columns.start else slowest, "A")
        self.g = self.program.new_int_var(0, max((c.migration for c in columns.columns), default=0), "G")
        self.program.minimize(rounds * self.d + rounds * self.a + self.g)
        self.add_rows(without)

    def _times(self, name: str, of: Callable[[Column], int]) -> list[IntVar]:
        """One variable per number of stages behind."""
        return [self._time(f"{name}[{q}]", (of(column) for _, column in self.by_depth[q])) for q in self.depth]

    def _time(self, name: str, ticks: Iterable[int]) -> IntVar:
        """A variable up to the largest of some ticks."""
        return self.program.new_int_var(0, max(ticks, default=0), name)

    @row(1)
    def one_pipeline(self) -> None:
        """Exactly one stage has the first layer."""
        entry = [x for x, column in zip(self.x, self.columns.columns, strict=True) if column.start == 0]
        self.program.add_exactly_one(entry)

    @row(2, implied=True)
    def one_stage_per_depth(self) -> None:
        """At most one stage has q stages behind it."""
        for q in self.depth:
            self.program.add_at_most_one(x for x, _ in self.by_depth[q])

    @row(3)
    def leave(self) -> None:
        """A link leaves every stage but the last."""
        nodes, links = self.columns.leaving(self.x, self.z)
        for node in sorted(nodes.keys() | links.keys()):
            self.program.add(sum(nodes[node]) == sum(links[node])).with_name(f"leave{list(node)}")

    @row(4)
    def enter(self) -> None:
        """A link enters every stage but the first."""
        nodes, links = self.columns.entering(self.x, self.z)
        for node in sorted(nodes.keys() | links.keys()):
            self.program.add(sum(nodes[node]) == sum(links[node])).with_name(f"enter{list(node)}")

    @row(5)
    def devices(self) -> None:
        """No device is in two stages; with ``all_devices`` every one is in one."""
        for c, size in enumerate(self.low.size.tolist()):
            used = sum(
                int(self.low.groups[column.group, c]) * x
                for x, column in zip(self.x, self.columns.columns, strict=True)
            )
            everyone = self.low.instance.all_devices
            self.program.add(used == size if everyone else used <= size).with_name(f"class[{c}]")

    @row(6)
    def execution_times(self) -> None:
        """E of the stage with q stages behind it; on one medium also what it takes of that, and E of the first one."""
        self._define(self.e, lambda column: column.both)
        if self.low.form.turns:
            self._define(self.r, lambda column: column.medium)
            first = [(c.both, x) for x, c in zip(self.x, self.columns.columns, strict=True) if c.start == 0 and c.both]
            self.f = self._time("first", (ticks for ticks, _ in first))
            self._equal(self.f, first)

    @row(7)
    def backward_times(self) -> None:
        """Eb of the stage with q stages behind it."""
        self._define(self.b, lambda column: column.backward)

    @row(8)
    def allreduce_times(self) -> None:
        """Ta of the stage with q stages behind it."""
        self._define(self.t, lambda column: column.allreduce)

    @row(9)
    def migration_times(self) -> None:
        """Migration of the stage with q stages behind it."""
        self._define(self.v, lambda column: column.migration)

    @row(10)
    def link_times(self) -> None:
        """Ticks one way over the link behind the stage with q stages behind it."""
        terms: dict[int, list[tuple[int, IntVar]]] = defaultdict(list)
        for z, link in zip(self.z, self.columns.links, strict=True):
            terms[link.behind].append((link.ticks, z))
        for q in self.depth:
            self._equal(self.s[q], terms[q])

    @row(11)
    def execution(self) -> None:
        """D is at least every aligned execution step."""
        for q in self.depth:
            step = self.low.form.busy * self.e[q] + self.low.form.aligned * self._ahead(q)
            self.program.add(self.d >= step).with_name(f"execution[{q}]")

    @row(12)
    def communication(self) -> None:
        """D is at least every aligned communication step, and what they take of one medium."""
        form = self.low.form
        for q in self.depth:
            step = form.busy * form.ways * self.s[q] + form.aligned * (self.e[q] + self._ahead(q))
            self.program.add(self.d >= step).with_name(f"communication[{q}]")
        if form.turns:
            taken = sum(form.ways * self.s[q] + self.r[q] for q in self.depth)
            self.program.add(self.d >= form.busy * taken + form.aligned * self.f).with_name("medium")

    @row(13)
    def allreduce(self) -> None:
        """A is at least every AllReduce excess."""
        form = self.low.form
        for q in self.depth:
            late = self.t[q] - form.excess * sum(self.b[p] + self.s[p] for p in self.depth[q + 1 :])
            late += form.turns * sum(self.t[p] for p in self.depth[q + 1 :])
            late += form.drain * (self.e[q] + self._ahead(q))
            self.program.add(self.a >= late).with_name(f"allreduce[{q}]")

    @row(14)
    def migration(self) -> None:
        """G is at least the migration of every stage."""
        for q in self.depth:
            self.program.add(self.g >= self.v[q]).with_name(f"migration[{q}]")

    def _ahead(self, q: int) -> LinearExpr | int:
        """Steps in front of the stage with q stages behind it."""
        return sum(self.e[p] + self.low.form.ways * self.s[p] for p in self.depth[q + 1 :])

    def _define(self, times: list[IntVar], of: Callable[[Column], int]) -> None:
        for q in self.depth:
            self._equal(times[q], [(of(column), x) for x, column in self.by_depth[q]])

    def _equal(self, time: IntVar, terms: list[tuple[int, IntVar]]) -> None:
        """``time`` is that of the one term used, 0 if none is; in partial sums where the row would be too active."""
        longest = max((ticks for ticks, _ in terms), default=0)
        most = max(2, ROW_ACTIVITY // max(1, longest))
        if len(terms) > most:
            partial = [terms[k : k + most] for k in range(0, len(terms), most)]
            terms = []
            for k, some in enumerate(partial):
                terms.append((1, self._time(f"{time.name}/{k}", (ticks for ticks, _ in some))))
                self._equal(terms[-1][1], some)
        self.program.add(time == sum(ticks * literal for ticks, literal in terms)).with_name(time.name)

    def assignment(self, plan: PlanBase) -> Mapping[Any, int] | None:
        used = self.columns.used_by(plan) if isinstance(plan, Plan) else None
        return None if used is None else {x: int(k in used) for k, x in enumerate(self.x)}

    def plan(self, value: Value) -> Plan:
        return self.columns.plan([value(x) == 1 for x in self.x])


@every_micro_batch
def run(
    instance: Instance,
    budget: Budget,
    keep: Filter = "front",
    start: str | Plan | None = None,
    params: Params = Params(),
) -> SolveResult:
    """The optimum over the columns that pass the tests up to ``keep``."""
    return prove_columns(instance, budget, keep, ColumnCpSat, hint=True, start=start, params=params)


def models(instance: Instance) -> list[Part]:
    """One model per micro-batch size."""
    return parts(instance, ColumnCpSat)
