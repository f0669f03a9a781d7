"""The located program: one linear program that bounds every plan whose ratio lies in a box."""

from __future__ import annotations

import numpy as np

from mapgap.formulations.suboperation_mapping.located_flow import LocatedFlow, negated
from mapgap.formulations.suboperation_mapping.located_frame import Box, Frame, Located, least
from mapgap.formulations.suboperation_mapping.orbits import Places
from mapgap.formulations.suboperation_mapping.phase_graph import Node
from mapgap.formulations.suboperation_mapping.stage_optima import Costs, least_lengths
from mapgap.problems.suboperation_mapping.certificate.gathering import with_gathering
from mapgap.problems.suboperation_mapping.certificate.lengths import GRAIN
from mapgap.problems.suboperation_mapping.certificate.shortest import by_holders, least_length
from mapgap.solvers.integer_lp import IntegerTerms, LinearOutcome


class LocatedModel(LocatedFlow):
    """A relaxation of all schedules whose ratio lies in a box; ``lp`` minimises column ``M``, the makespan.

    Sets: split nodes ``n`` and fused nodes ``u, v`` of the phase graph, accelerators ``a, i, j``, groups ``g`` of
    ``m_g`` shares with ``l_g`` to ``u_g`` samples; the *state* ``w`` of a split node is the places ``i`` of the fused
    node before it and ``j`` of the one after it, as far as there are such nodes.

    Variables in the image of a schedule, shares of a group averaged, one for each orbit of tuples of accelerators:
    ``z_va`` v is on a; ``lam_nw`` the state is w; ``x_nwga`` so it is, and the share is on a; ``q_nwga`` its samples
    there; ``C_nwga`` its compute; ``L_nga`` the time that it occupies a; ``eta_lih`` the FP of layer l has h holders,
    with i as above; ``S_v, E_v`` start and end of v; ``e_ng`` end of a share of n; ``d_nw`` length of the stage of n in
    state w; ``M``.

    (1)  sum_a z_va = 1
    (2)  sum_w lam_nw = 1, and the states with i (j) have together z of that place
    (3)  sum_a x_nwga = lam_nw,  l_g x <= q <= u_g x,  sum_g m_g sum_a q_nwga = B lam_nw,  sum_wa q_nwga one for all n
    (4)  C >= alpha x + beta q for every line of the convex envelope of the table on [l_g, u_g]
    (5)  L_nga >= C + transfers, a node's load is the sum over its shares; a fused node's is compute and what it gathers
    (6)  y >= x_o - x_p or q_o - q_p between operations o and p of one share; it costs the cheapest transfer
    (7)  flows between places that no state couples have the marginals of both ends
    (8)  sum_a dW_lga >= sum_ih eta_lih (h - 1) W
    (9)  sum_h eta_lih = z_i,  sum_ih h eta_lih >= sum_a max_g x_la
    (10) d_nw >= load of every accelerator in state w,  d_nw >= the time of a share of every group
    (11) d_nw >= D*(i) lam_nw, and for an FP sum_j d_n(ij) >= sum_h eta_lih D*_h(i)
    (12) d_nw + gather_nw >= G*(i, j) lam_nw
    (13) E_v = S_v + load of v,  S_v >= E_u for u before v,  M >= E_v
    (14) S_v >= E_u + sum_w d_nw for the nodes n between u and v;  M in place of S_v where no v follows
    (15) e_ng >= E_u + sum_a L_nga,  e_ng >= e_pg + sum_a L_nga,  S_v >= e_ng,  M >= e_ng
    (16) S_v >= E_u + load of all that lies between u and v, for u the nearest fused nodes before v and the beginning
    (17) M >= E_u + load of all that follows u
    (18) M >= load of all nodes
    (19) M >= e_ng + load of all that follows a share of n,  e_ng >= sum_a L_nga + load of all that it follows

    Loads in (16) to (19) are those of one accelerator: with equal accelerators, the average over a class.
    """

    def __init__(self, frame: Frame, box: Box) -> None:
        super().__init__(frame, box)
        self.start = {v: self.time() for v in frame.fused}
        self.end = {v: self.time() for v in frame.fused}
        loose = [n for n in frame.split if n[0] != "WU" and not frame.staged[n]]
        self.share_end = {(n, g): self.time() for n in loose for g, _ in enumerate(box)}
        self.lengths: dict[Node, dict[Places, int]] = {}
        for n in frame.split:
            if n[0] != "WU" or not self.instance.layers[n[1]].inputs:
                self.stage(n)
        for v in frame.fused:
            self.durations(v)
            self.windows(v)
        for u in frame.last:
            self.after(u)
        for n in frame.split:
            if n in self.lengths:
                self.stage_times(n)
            for g, _ in enumerate(box):
                self.share_times(n, g)
        for q in self.kinds:
            self.area(q)
        for n, g in self.share_end:
            self.around(n, g)

    # ---- stages -------------------------------------------------------------------------------------------------

    def stage(self, n: Node) -> None:
        """(10) All shares of a node lie between two fused nodes: as long as any accelerator or share needs."""
        lengths = self.lengths[n] = {w: self.time() for w in self.chosen[n]}
        for w, d in lengths.items():
            own = [p for p in self.parts[n] if p.state == w]
            for places in dict.fromkeys(p.places for p in own):
                row: IntegerTerms = [(d, self.orbits.size(places) // self.orbits.size(w))]
                for p in own:
                    if p.places == places:
                        row += [(j, -c * self.box[p.group].number) for j, c in p.cost]
                self.lp.row(row, 0)
            for g, _ in enumerate(self.box):
                self.lp.row([(d, 1), *negated([t for p in own if p.group == g for t in p.cost])], 0)
        if self.orbits.count > 1:
            self.optima(n)

    def optima(self, n: Node) -> None:
        """(11) No assignment of the shares is shorter than the best one, with any number of holders and with each."""
        held = self.held(n[1]) if n[0] == "FP" else {}
        first = 0 if self.frame.before[n] is None else 1
        for i in self.orbits.tuples(first):
            own = {w: d for w, d in self.lengths[n].items() if w[:first] == i}
            kinds = *self.ticks_of(n, i), self.box, self.instance.batch
            of_shares = least_lengths(self.costs(n, i))
            of_batch = by_holders(*kinds, len(of_shares))
            best = max(min(of_shares), least_length(*kinds))
            for w, d in own.items():
                self.lp.row([(d, 1), (self.chosen[n][w], -GRAIN * best)], 0)
            if held:
                counts = [(held[i, h], -GRAIN * t) for h, t in enumerate(map(max, of_shares, of_batch), 1)]
                self.lp.row([*((d, 1) for d in own.values()), *counts], 0)
            self.gathers(n, i, own)

    def ticks_of(self, n: Node, i: Places) -> tuple[tuple[tuple[int, ...], ...], tuple[int, ...]]:
        """By accelerator the ticks of a split node, and grains of a sample from the fused node before it at ``i``."""
        u = self.frame.before[n]
        size = self.phases.edge_bytes(n, u) if u is not None else 0
        rates = tuple(self.frame.rate(size, i[0], a) if i else 0 for a in range(self.orbits.count))
        return tuple(map(tuple, self.phases.table(n))), rates

    def gathers(self, n: Node, i: Places, own: dict[Places, int]) -> None:
        """(12) Length of a stage and what the fused node behind it gathers, together at their best."""
        v = self.frame.after[n]
        if v is None:
            return
        for w, d in own.items():
            if rate := self.frame.cheapest(self.phases.edge_bytes(v, n), w[-1]):
                together = with_gathering(*self.ticks_of(n, i), self.box, self.instance.batch, w[-1], rate)
                self.lp.row([(d, 1), *self.gather_terms(n, v, w), (self.chosen[n][w], -together)], 0)

    def costs(self, n: Node, i: Places) -> Costs:
        """Least ticks of every share on every accelerator, with the fused node before it at ``i``."""
        u, table = self.frame.before[n], self.phases.table(n)
        size = 0 if u is None else self.phases.edge_bytes(n, u)
        shares = [group for group in self.box for _ in range(group.number)]
        return np.array(
            [
                [
                    least(table[a], group) + (self.instance.transfer_ticks(size * group.low, i[0], a) if i else 0)
                    for group in shares
                ]
                for a in range(self.orbits.count)
            ],
            np.int64,
        )

    # ---- time ---------------------------------------------------------------------------------------------------

    def durations(self, v: Node) -> None:
        """(13) A fused node takes its load, and starts after those before it."""
        load = [(self.load[v, q], -1) for q in self.kinds]
        self.lp.row([(self.end[v], 1), (self.start[v], -1), *load], 0)
        self.lp.row([(self.M, 1), (self.end[v], -1)], 0)
        for u in self.phases.before[v]:
            if u in self.end:
                self.lp.row([(self.start[v], 1), (self.end[u], -1)], 0)

    def stage_times(self, n: Node) -> None:
        """(14) A stage separates the fused nodes around it by its length."""
        length = [(d, -1) for d in self.lengths[n].values()]
        u = self.frame.before[n]
        for j in self._starts(n) or [self.M]:
            self.lp.row([(j, 1), *([] if u is None else [(self.end[u], -1)]), *length], 0)

    def _starts(self, n: Node) -> list[int]:
        """Starts of the fused nodes after a split one."""
        return [self.start[v] for v in self.phases.after[n] if v in self.start]

    def share_times(self, n: Node, g: int) -> None:
        """(15) A share follows what it reads, takes its load, and comes before what reads it."""
        duration = [(self.share_load[n, g, q], -1) for q in self.kinds]
        ends = self._starts(n) or [self.M]
        if (n, g) in self.share_end:
            own = self.share_end[n, g]
            for j in ends:
                self.lp.row([(j, 1), (own, -1)], 0)
            ends = [own]
        releases = [self.end[p] for p in self.phases.before[n] if p in self.end]
        releases += [self.share_end[p, g] for p in self.phases.before[n] if (p, g) in self.share_end]
        for j in ends:
            if not releases:
                self.lp.row([(j, 1), *duration], 0)
            for release in releases:
                self.lp.row([(j, 1), (release, -1), *duration], 0)

    def _spread(self, j: int, q: int) -> tuple[int, int]:
        """A time against the sum of the loads of a class."""
        return (j, len(self.orbits.members[q]))

    def windows(self, v: Node) -> None:
        """(16) Before a fused node, and between it and the nearest ones before it, all that lies there runs."""
        above = self.phases.ancestors[v]
        inner = [n for n in self.phases.nodes if n in above]
        for u in [*([None] if v in self.frame.first else []), *self.frame.nearest[v]]:
            between = [n for n in inner if u is None or u in self.phases.ancestors[n]]
            for q in self.kinds:
                row = [self._spread(self.start[v], q), *((self.load[n, q], -1) for n in between)]
                if u is not None:
                    row.append((self.end[u], -len(self.orbits.members[q])))
                self.lp.row(row, 0)

    def after(self, u: Node) -> None:
        """(17) After a fused node all that follows it runs."""
        for q in self.kinds:
            behind = [(self.load[n, q], -1) for n in self.phases.descendants[u]]
            end = (self.end[u], -len(self.orbits.members[q]))
            self.lp.row([self._spread(self.M, q), end, *behind], 0)

    def area(self, q: int) -> None:
        """(18) An accelerator runs all its operations one after the other."""
        self.lp.row([self._spread(self.M, q), *((self.load[n, q], -1) for n in self.phases.nodes)], 0)

    def around(self, n: Node, g: int) -> None:
        """(19) A share is preceded by all that it waits for and followed by all that waits for it."""
        end = self.share_end[n, g]
        for q in self.kinds:
            size = len(self.orbits.members[q])
            behind = self._loads(self.phases.descendants[n], n, g, q, forward=True)
            self.lp.row([self._spread(self.M, q), (end, -size), *behind], 0)
            above = [p for p in self.phases.nodes if p in self.phases.ancestors[n]]
            before = self._loads(above, n, g, q, forward=False)
            duration = [(self.share_load[n, g, k], -size) for k in self.kinds]
            self.lp.row([(end, size), *before, *duration], 0)

    def _loads(self, nodes: list[Node], n: Node, g: int, q: int, *, forward: bool) -> IntegerTerms:
        """Loads of what is tied to one share of ``n``: its own chain, and all shares beyond a fused node."""
        found: IntegerTerms = []
        fused = [v for v in nodes if self.phases.fused(v)]
        for d in nodes:
            between = (u in self.phases.ancestors[d] if forward else d in self.phases.ancestors[u] for u in fused)
            if self.phases.fused(d) or any(between):
                found.append((self.load[d, q], -1))
            else:
                found.append((self.share_load[d, g, q], -1))
        return found

    # ---- places of fused nodes ----------------------------------------------------------------------------------

    def closed(self, places: Located) -> set[int]:
        """Columns that are 0 where fused nodes lie at places, each of which is a class of its own."""
        return {j for v, a in places for q, j in enumerate(self.z[v]) if q != self.orbits.kind[a]}

    def parts_of(self, outcome: LinearOutcome) -> dict[Node, float]:
        """How much of every fused node lies on one accelerator."""
        values, members = outcome.values, self.orbits.members
        if values is None:
            return {}
        return {v: max(float(values[j]) / len(members[q]) for q, j in enumerate(z)) for v, z in self.z.items()}

    # ---- reading ------------------------------------------------------------------------------------------------

    def bound(self, outcome: LinearOutcome) -> int:
        """Ticks: no plan of the box has a smaller makespan; exact, from the rounded duals.

        At most the makespan of a simple plan.
        """
        grains = self.lp.dual_bound(outcome)
        return max(0, min(self.frame.limit, -(-grains // GRAIN)))
