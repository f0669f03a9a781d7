"""MIP over columns (stages with constant costs): both parts of the latency are maxima of linear functions of them.

So no row has a big-M. The closed form ``max_i (M E_i + sum_{j<i} E_j) + max_s (Ta_s - sum_{j<s} Eb_j)`` of Eqs. (4)-(6)
is derived in docs/methods/hybrid_pipeline.md. All variables are integer: HiGHS presolves purely integer models only
(see ``mapgap.solvers.mip``).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

from pulp import LpVariable, lpSum

from mapgap.core import Budget, PlanBase, SolveResult
from mapgap.formulations.hybrid_pipeline.columns import Column, Columns, parts, prove_columns
from mapgap.formulations.hybrid_pipeline.params import Columns as Params
from mapgap.formulations.hybrid_pipeline.windows import Filter
from mapgap.problems.hybrid_pipeline import Instance, Plan
from mapgap.problems.hybrid_pipeline.lowered.batching import every_micro_batch
from mapgap.solvers.mip import Engine, MipModel
from mapgap.solvers.model import Part, Value, row


class Cut(NamedTuple):
    """A layer at which columns begin: the columns that begin and end there, the links over the cut before it."""

    layer: int
    begin: list[tuple[LpVariable, Column]]
    end: list[tuple[LpVariable, Column]]
    links: list[tuple[LpVariable, int]]


class ColumnMip(MipModel):
    """One micro-batch size as an integer program.

    Sets
        K columns k = (i, j, g, q): a stage of layers [i, j) on group g with q stages behind it.
        Z links (l, q, g, h): at the cut before layer l from a stage on g with q stages behind it to one on h. Where all
        links are equal, the groups do not matter to a link and are left out.
        C classes of interchangeable devices. S the layers l at which columns begin; l' is the one before l in S.
    Data
        E_k = Ef_k + Eb_k, Eb_k, Ta_k (Eqs. 5, 7, 8), V_k migration, c_z one way over a link; all in ticks. On one
        medium W_k, what a micro-batch takes of it for a stage, and m = 1; elsewhere m = 0.
        n_gc devices of class c in group g, N_c in all; R rounds (1 without a failure); U the value of the plan known
        before (0 without one).
        u, v, w, x, y: busy, aligned, ways, excess, drain of ``lowered.Form``: M, 1, 2, 1, 0 for the latency of training
        with M micro-batches, M - 1, 0, 1, 0, 1 of inference; 1, 0, 2 (1 in inference), 0, 0 for the bottleneck.
    Variables (ticks but for the first two)
        x_k = 1 if the stage is used, z_z = 1 if the link is.
        H_l aligned step of the stage that has layer l, u E and all E in front of it; Q_l its AllReduce excess (with y
        the time of one micro-batch up to its end); V_l its migration. All of them are 0 in front of the first layer.
        D largest aligned step, A largest AllReduce excess, G largest migration; W the objective less U.

    Minimise W such that

        (1)  sum_{k: i = 0} x_k = 1                                             one stage has the first layer
        (2)  sum_{k: j = l, q, g} x_k = sum_{z: l, q, g} z_z     for all l < L, q, g      a link leaves what ends
        (3)  sum_{k: i = l, q - 1, h} x_k = sum_{z: l, q, h} z_z for all l > 0, q, h      a link enters what begins
        (4)  sum_k n_gc x_k <= N_c  (= with all_devices)         for all c      no device in two stages
        (5)  H_l = H_l' + sum_{z: l} v w c_z z_z + sum_{k: i = l} u E_k x_k - sum_{k: j = l} (u - v) E_k x_k  for all l
        (6)  Q_l = Q_l' + sum_{z: l} (y w - x) c_z z_z + sum_{k: i = l} (Ta_k + y E_k) x_k
                   - sum_{k: j = l} ((1 - m) Ta_k + x Eb_k) x_k                                               for all l
        (7)  V_l = V_l' + sum_{k: i = l} V_k x_k - sum_{k: j = l} V_k x_k                              for all l in S
        (8)  D >= H_l                                                           for all l in S
        (9)  D >= H_l' - sum_{k: j = l} (u - v) E_k x_k + sum_{z: l} u w c_z z_z        for all l in S with links
             D >= m (sum_z u w c_z z_z + sum_k u W_k x_k + sum_{k: i = 0} v E_k x_k)                the one medium
        (10) A >= Q_l                                                           for all l in S
        (11) G >= V_l                                                           for all l in S
        (12) W = R (D + A) + G - U

    One column has layer l, and the columns that end at or before l are the stages in front of it: sums of columns give
    all of (5)-(7), exact at integer points, and at every layer, not only per stage, for the relaxation. In (9) a stage
    that ends at the cut leaves of its u E v E, which is in front of the link. W is small where the plan known before
    is good, so that an engine's relative tolerance is less than one tick.
    """

    def __init__(self, columns: Columns, without: Collection[int] = (), engine: Engine = "highs") -> None:
        super().__init__("hybrid_pipeline", engine)
        self.columns, self.low = columns, columns.low
        self.constant = columns.upper if columns.start else 0
        self.x = [LpVariable(f"x_{c.start}_{c.stop}_{c.group}_{c.behind}", cat="Binary") for c in columns.columns]
        self.z = [
            LpVariable(f"z_{link.cut}_{link.behind}_{link.group}_{link.next}", cat="Binary") for link in columns.links
        ]
        self.cuts = list(self._cuts())
        self.h, self.v = (
            [LpVariable(f"{name}_{cut.layer}", 0, cat="Integer") for cut in self.cuts] for name in ("H", "V")
        )
        self.q = [LpVariable(f"Q_{cut.layer}", cat="Integer") for cut in self.cuts]
        self.d, self.a, self.g = (LpVariable(name, 0, cat="Integer") for name in ("D", "A", "G"))
        self.w = LpVariable("W", -self.constant, 0 if columns.start else None, cat="Integer")
        self.program += self.w
        self.add_rows(without)

    def _cuts(self) -> Iterator[Cut]:
        columns = list(zip(self.x, self.columns.columns, strict=True))
        links = list(zip(self.z, self.columns.links, strict=True))
        for layer in sorted({column.start for column in self.columns.columns}):
            yield Cut(
                layer,
                [(x, column) for x, column in columns if column.start == layer],
                [(x, column) for x, column in columns if column.stop == layer],
                [(z, link.ticks) for z, link in links if link.cut == layer],
            )

    @row(1)
    def one_pipeline(self) -> None:
        """Exactly one stage has the first layer."""
        entry = [x for x, column in zip(self.x, self.columns.columns, strict=True) if column.start == 0]
        self.program += lpSum(entry) == 1, "one_chain"

    @row(2)
    def leave(self) -> None:
        """A link leaves every stage but the last."""
        nodes, links = self.columns.leaving(self.x, self.z)
        for node in sorted(nodes.keys() | links.keys()):
            self.program += lpSum(nodes[node]) == lpSum(links[node]), f"leave_{'_'.join(map(str, node))}"

    @row(3)
    def enter(self) -> None:
        """A link enters every stage but the first."""
        nodes, links = self.columns.entering(self.x, self.z)
        for node in sorted(nodes.keys() | links.keys()):
            self.program += lpSum(nodes[node]) == lpSum(links[node]), f"enter_{'_'.join(map(str, node))}"

    @row(4)
    def devices(self) -> None:
        """No device is in two stages; with ``all_devices`` every one is in one."""
        for c, size in enumerate(self.low.size.tolist()):
            used = lpSum(
                int(self.low.groups[column.group, c]) * x
                for x, column in zip(self.x, self.columns.columns, strict=True)
                if self.low.groups[column.group, c]
            )
            self.program += (used == size if self.low.instance.all_devices else used <= size), f"class_{c}"

    @row(5)
    def aligned_steps(self) -> None:
        """H changes by the step that begins and the one that ends."""
        form = self.low.form
        for k, cut in enumerate(self.cuts):
            step = lpSum(self.h[k - 1 : k] if k else [])
            step += lpSum(form.aligned * form.ways * ticks * z for z, ticks in cut.links)
            step += lpSum(form.busy * column.both * x for x, column in cut.begin)
            step -= lpSum((form.busy - form.aligned) * column.both * x for x, column in cut.end)
            self.program += self.h[k] == step, f"define_H_{cut.layer}"

    @row(6)
    def allreduce_excess(self) -> None:
        """Q changes by the AllReduce that begins, the one that ends, and the backward passes in between."""
        form = self.low.form
        for k, cut in enumerate(self.cuts):
            excess = lpSum(self.q[k - 1 : k] if k else [])
            excess += lpSum((form.drain * form.ways - form.excess) * ticks * z for z, ticks in cut.links)
            excess += lpSum((column.allreduce + form.drain * column.both) * x for x, column in cut.begin)
            ended = 0 if form.turns else 1  # on one medium later stages reduce before it
            excess -= lpSum((ended * column.allreduce + form.excess * column.backward) * x for x, column in cut.end)
            self.program += self.q[k] == excess, f"define_Q_{cut.layer}"

    @row(7)
    def migration_of_stages(self) -> None:
        """V changes by the stage that begins and the one that ends."""
        for k, cut in enumerate(self.cuts):
            moved = lpSum(self.v[k - 1 : k] if k else []) + lpSum(column.migration * x for x, column in cut.begin)
            moved -= lpSum(column.migration * x for x, column in cut.end)
            self.program += self.v[k] == moved, f"define_V_{cut.layer}"

    @row(8)
    def execution(self) -> None:
        """D is at least every aligned execution step."""
        for h, cut in zip(self.h, self.cuts, strict=True):
            self.program += self.d >= h, f"execution_{cut.layer}"

    @row(9)
    def communication(self) -> None:
        """D is at least every aligned communication step, and what they take of one medium."""
        form = self.low.form
        for k, cut in enumerate(self.cuts):
            if cut.links:
                step = lpSum(self.h[k - 1 : k] if k else [])
                step += lpSum(form.busy * form.ways * ticks * z for z, ticks in cut.links)
                step -= lpSum((form.busy - form.aligned) * column.both * x for x, column in cut.end)
                self.program += self.d >= step, f"communication_{cut.layer}"
        if form.turns:
            taken = lpSum(form.busy * form.ways * ticks * z for cut in self.cuts for z, ticks in cut.links)
            taken += lpSum(form.busy * column.medium * x for cut in self.cuts for x, column in cut.begin)
            taken += lpSum(form.aligned * column.both * x for cut in self.cuts[:1] for x, column in cut.begin)
            self.program += self.d >= taken, "medium"

    @row(10)
    def allreduce(self) -> None:
        """A is at least every AllReduce excess."""
        for q, cut in zip(self.q, self.cuts, strict=True):
            self.program += self.a >= q, f"allreduce_{cut.layer}"

    @row(11)
    def migration(self) -> None:
        """G is at least the migration of every stage."""
        for v, cut in zip(self.v, self.cuts, strict=True):
            self.program += self.g >= v, f"migration_{cut.layer}"

    @row(12)
    def shifted_objective(self) -> None:
        """W is the objective less the value of the plan known before."""
        value = self.low.rounds * (self.d + self.a) + self.g
        self.program += self.w == value - self.constant, "objective_shifted"

    def assignment(self, plan: PlanBase) -> Mapping[Any, int] | None:
        used = self.columns.used_by(plan) if isinstance(plan, Plan) else None
        return None if used is None else {x: int(k in used) for k, x in enumerate(self.x)}

    def plan(self, value: Value) -> Plan:
        return self.columns.plan([value(x) == 1 for x in self.x])


@every_micro_batch
def run(
    instance: Instance,
    budget: Budget,
    solver: Engine = "highs",
    keep: Filter = "front",
    start: str | Plan | None = None,
    params: Params = Params(),
) -> SolveResult:
    """The optimum over the columns that pass the tests up to ``keep``."""
    return prove_columns(
        instance, budget, keep, partial(ColumnMip, engine=solver), hint=False, start=start, params=params
    )


def models(instance: Instance) -> list[Part]:
    """One model per micro-batch size, solved by HiGHS."""
    return parts(instance, ColumnMip)


def models_cbc(instance: Instance) -> list[Part]:
    """One model per micro-batch size, solved by CBC."""
    return parts(instance, partial(ColumnMip, engine="cbc"))
