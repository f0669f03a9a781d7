"""The MIP of multi-model splitting: every pipeline is a path over whole segments."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import product
from typing import TypeAlias

import numpy as np
import pulp

from mapgap.core import PlanBase
from mapgap.formulations.multi_model_splitting.chains import Chain, sharing_groups, signal_groups
from mapgap.problems.multi_model_splitting import RESOURCES, UNITS, Instance, PipelinePlan, Plan, Segment
from mapgap.problems.multi_model_splitting.evaluate import MEDIUM
from mapgap.problems.multi_model_splitting.lowered.tables import capacities
from mapgap.solvers.mip import Engine, MipModel
from mapgap.solvers.model import Value, row

Key = tuple[int, int, int]
"""``(i, j, d)``: blocks ``i..j-1`` on device ``d``."""
Variable: TypeAlias = pulp.LpVariable
Sum: TypeAlias = pulp.LpAffineExpression


class FlowModel(MipModel):
    """Plans of objective from ``lower`` to ``limit``, the best one or (``minimise=False``) any of them.

    Sets and data (times in ticks)
        p                 pipelines; boundaries 0..K[p] around its blocks
        q                 an earlier twin of p: same signal, same model, operation sharing (rule 9 of the problem)
        d, s, t           devices; S[p] and T[p] those that p may start from and end at
        A[p]              (i, j, d): the blocks i..j-1 of p may be a segment on d
        size_r[p,i,j]     weights, bias and layers (r) of a segment; W_r[d] what an accelerator holds
        ticks             of the six types of tasks (Sec. 5.4.1) that a variable stands for, on their units: y for
                          loading, inference, unloading, reception if i > 0 and transmission if j < K; a for sensing
                          and, if s /= d, the transfer of the input; b, if d /= t, for the transfer of the output

    Variables (binary unless said)
        y[p,i,j,d]        the blocks i..j-1 of p are a segment on d, for (i, j, d) in A[p]
        a[p,s,d]          p senses on s in S[p] and its first segment is on d
        b[p,d,t]          the last segment of p is on d and its target is t in T[p]
        same[p,q,k]       p and q agree on the source and on all segments up to boundary k, where both are cut
        m[p,q,i,j,d]      segment (i, j, d) of p is merged with that of q
        n[p,q,k,d,e]      the transfer of boundary k > 0 from d to e is the same one in p and q
        late[p,k,d,e]     a segment of p that ends at 0 < k < K is on d, and one that begins there on e; with the
                          variable comes late >= sum of both - 1; only where a message from d to e takes longer than the
                          least of d (rule 14), for the ticks beyond
        free[p,i,j,d], freed[p,k,d,e], heard[p,s], fetched[p,s,d]
                          share from 0 to 1 of a segment, of a transfer, of sensing on s, of the transfer of the input
                          from s to d that p need not pay; 1 in an optimum where the rows permit it
        C                 integer, cycle time; the program has C - lower in 0..limit - lower

    Objective
        minimise C (throughput), or the sum of ticks of all variables (latency). As a variable that an equation of
        millions of ticks binds to the sum, latency makes HiGHS 1.13 prove bounds beyond verified plans.

    Rows
        (1)   sum_{j,d} y[p,0,j,d] = 1
        (2)   sum_{i,d} y[p,i,k,d] = sum_{j,d} y[p,k,j,d]                                    0 < k < K
        (3)   sum_{i,j} y[p,i,j,d] <= 1
        (4)   sum_s a[p,s,d] = sum_j y[p,0,j,d]
        (5)   sum_t b[p,d,t] = sum_i y[p,i,K,d]
        (6)   |sum_d a[p,s,d] - sum_d a[q,s,d]| <= 1 - same[p,q,0]
        (7)   m[p,q,i,j,d] <= y[p,i,j,d], y[q,i,j,d] and same[p,q,i]
        (8)   same[p,q,k] <= sum_{i,d} m[p,q,i,k,d]                                          k > 0
        (9)   free[p,i,j,d] <= sum_q m[p,q,i,j,d]
        (10)  free[p,i,j,d] <= y[p,i,j,d]                                                    implied
        (11)  n[p,q,k,d,e] <= same[p,q,k] and, for p and q, what leaves d at k and what arrives on e
        (12)  freed[p,k,d,e] <= sum_q n[p,q,k,d,e]
        (13)  heard[p,s] <= sum_d a[p,s,d] and sum_{q,d} a[q,s,d], fetched[p,s,d] <= a[p,s,d] and sum_q a[q,s,d],
              q earlier and of the same signal
        (14)  sum size_r[p,i,j] (y[p,i,j,d] - free[p,i,j,d]) <= W_r[d]
        (15)  sum of ticks of a unit, less those of the shares that are free <= C            if throughput
              the same of all transmissions, on one medium (rule 13)
        (16)  lower <= sum of ticks <= limit                                                 if latency, implied

    Adjacent segments lie on different devices, so a segment that begins (ends) inside the model always pays reception
    (transmission). Total latency counts a merged task in each pipeline. Row (16) is implied between a proven bound
    and a limit that some plan keeps.

    Parameters
    ----------
    chains : list of Chain
        Of the same limit, or whole.
    limit : int
    lower : int
        A proven bound.
    minimise : bool
        Otherwise there is no objective, and neither value nor bound of a solution mean anything.
    """

    def __init__(
        self,
        instance: Instance,
        chains: list[Chain],
        limit: int,
        lower: int = 0,
        minimise: bool = True,
        engine: Engine = "highs",
        without: Collection[int] = (),
    ) -> None:
        super().__init__("multi_model_splitting", engine)
        self.instance, self.chains = instance, chains
        self.limit, self.lower = limit, lower
        self.devices = range(len(instance.devices))
        self.twins = [(p, q) for group in sharing_groups(instance) for i, p in enumerate(group) for q in group[:i]]
        self.hearers = [(p, group[:i]) for group in signal_groups(instance) for i, p in enumerate(group) if i]
        self.y: list[dict[Key, Variable]] = []
        self.a: list[dict[tuple[int, int], Variable]] = []
        self.b: list[dict[tuple[int, int], Variable]] = []
        for p, chain in enumerate(chains):
            self._path(p, chain)
        self.load: dict[tuple[int, str], list[Sum]] = {(d, unit): [] for d in self.devices for unit in UNITS}
        self.load[MEDIUM] = []
        self.used: dict[tuple[int, int], list[Sum]] = {(r, d): [] for r in range(len(RESOURCES)) for d in self.devices}
        self.latency: list[Sum] = []
        for p in range(len(chains)):
            self._work(p)
        self._merge()
        self._share()
        self.above = pulp.LpVariable("C_above", 0, limit - lower, cat="Integer")
        self.constant = lower if instance.objective == "throughput" else 0
        if minimise:
            self.program.setObjective(pulp.lpSum(self.latency if instance.objective == "latency" else [self.above]))
        self.add_rows(without)

    # --- variables and what they stand for ---

    def _binary(self, name: str, *index: int) -> Variable:
        return pulp.LpVariable("_".join([name, *map(str, index)]), cat="Binary")

    def _part(self, name: str, *index: int) -> Variable:
        """Between 0 and 1; whole where it matters because the binaries around it are."""
        return pulp.LpVariable("_".join([name, *map(str, index)]), 0, 1)

    def _path(self, p: int, chain: Chain) -> None:
        """Segments of one pipeline; ``a`` and ``b`` join them to source and target."""
        keys = [(int(i), int(j), int(d)) for i, j, d in np.argwhere(chain.segments)]
        self.y.append({key: self._binary("y", p, *key) for key in keys})
        sources, targets = chain.profile.sources, chain.profile.targets
        self.a.append({(s, d): self._binary("a", p, s, d) for s in sources for d in self.devices})
        self.b.append({(d, t): self._binary("b", p, d, t) for t in targets for d in self.devices})

    def _work(self, p: int) -> None:
        """Six types of tasks (Sec. 5.4.1) and memory, as if nothing were shared."""
        chain, last = self.chains[p], self.chains[p].blocks
        transmit, receive, sensing = chain.transmit.tolist(), chain.receive.tolist(), chain.profile.sensing.tolist()
        load, unload, running, need = (a.tolist() for a in (chain.load, chain.unload, chain.running, chain.need))

        def task(d: int, unit: str, ticks: int, variable: Variable, sends: bool = False) -> None:
            if ticks:
                term = ticks * variable
                self.load[d, unit].append(term)
                self.latency.append(term)
                if sends and self.instance.in_turn:
                    self.load[MEDIUM].append(term)

        for (i, j, d), v in self.y[p].items():
            task(d, "mcu", load[i][d] + unload[j][d], v)  # (3), (5)
            task(d, "accelerator", running[j][d] - running[i][d], v)  # (4)
            task(d, "radio", receive[i][d] if i > 0 else 0, v)  # (2)
            task(d, "radio", transmit[j][d] if j < last else 0, v, True)  # (6)
            for r, before in enumerate(need):
                if size := before[j] - before[i]:
                    self.used[r, d].append(size * v)
        for (s, d), v in self.a[p].items():
            task(s, "sensor", sensing[s], v)  # (1)
            if s != d:
                task(s, "radio", transmit[0][s] + chain.beyond(0, s, d), v, True)
                task(d, "radio", receive[0][d], v)
        for (d, t), v in self.b[p].items():
            if d != t:
                task(d, "radio", transmit[last][d] + chain.beyond(last, d, t), v, True)
                task(t, "radio", receive[last][t], v)
        for (d, e), k in product(chain.profile.later, range(1, last)):
            if all(sides := self._transfer(p, k, d, e)) and (beyond := chain.beyond(k, d, e)):
                late = self._binary("late", p, k, d, e)
                self.program += late >= pulp.lpSum(v for side in sides for v in side) - 1
                task(d, "radio", beyond, late, True)

    def _merge(self) -> None:
        """Refund of what a pipeline merges with twins: segments up to a common cut, the transfer after it."""
        self.same: dict[tuple[int, int], list[Variable]] = {}
        self.m: dict[tuple[int, int], dict[Key, Variable]] = {}
        self.n: dict[tuple[int, int], dict[Key, Variable]] = {}
        for p, q in self.twins:
            last = self.chains[p].blocks
            self.same[p, q] = [self._binary("same", p, q, k) for k in range(last + 1)]
            shared = sorted(self.y[p].keys() & self.y[q].keys())
            self.m[p, q] = {key: self._binary("m", p, q, *key) for key in shared}
            moves = [(k, d, e) for k in range(1, last + 1) for d in self.devices for e in self.devices if d != e]
            possible = [key for key in moves if all(all(self._transfer(r, *key)) for r in (p, q))]
            self.n[p, q] = {key: self._binary("n", p, q, *key) for key in possible}
        merging = sorted({p for p, _ in self.twins})
        self.free = {p: {key: self._part("free", p, *key) for key in self._keys(self.m, p)} for p in merging}
        self.freed = {p: {key: self._part("freed", p, *key) for key in self._keys(self.n, p)} for p in merging}
        for p in merging:
            chain = self.chains[p]
            for (i, j, d), v in self.free[p].items():
                self._refund(d, "mcu", chain.load[i, d] + chain.unload[j, d], v)
                self._refund(d, "accelerator", chain.running[j, d] - chain.running[i, d], v)
                for r in range(len(RESOURCES)):
                    self.used[r, d].append(-int(chain.need[r, j] - chain.need[r, i]) * v)
            for (k, d, e), v in self.freed[p].items():
                self._refund(d, "radio", chain.transmit[k, d] + chain.beyond(k, d, e), v, True)
                self._refund(e, "radio", chain.receive[k, e], v)

    def _share(self) -> None:
        """Refund of sensing and input transfers that an earlier pipeline of the same signal already pays."""
        self.heard: dict[tuple[int, int], Variable] = {}
        self.fetched: dict[Key, Variable] = {}
        for p, earlier in self.hearers:
            chain = self.chains[p]
            for s in chain.profile.sources:
                self.heard[p, s] = self._part("heard", p, s)
                self._refund(s, "sensor", chain.profile.sensing[s], self.heard[p, s])
            for s, d in self.a[p]:
                if s != d and any((s, d) in self.a[q] for q in earlier):
                    self.fetched[p, s, d] = self._part("fetched", p, s, d)
                    sent = chain.transmit[0, s] + chain.beyond(0, s, d)
                    self._refund(s, "radio", sent, self.fetched[p, s, d], True)
                    self._refund(d, "radio", chain.receive[0, d], self.fetched[p, s, d])

    def _refund(self, d: int, unit: str, ticks: int, variable: Variable, sends: bool = False) -> None:
        self.load[d, unit].append(-int(ticks) * variable)
        if sends and self.instance.in_turn:
            self.load[MEDIUM].append(-int(ticks) * variable)

    # --- rows ---

    @row(1)
    def _begins(self) -> None:
        """A path begins at the input."""
        for y in self.y:
            self.program += pulp.lpSum(v for (i, _, _), v in y.items() if i == 0) == 1

    @row(2)
    def _goes_on(self) -> None:
        """Where a segment ends, the next one begins."""
        for y, chain in zip(self.y, self.chains, strict=True):
            for k in range(1, chain.blocks):
                ending = pulp.lpSum(v for (_, j, _), v in y.items() if j == k)
                self._add(ending == pulp.lpSum(v for (i, _, _), v in y.items() if i == k))

    @row(3)
    def _one_segment(self) -> None:
        """A pipeline has at most one segment on a device."""
        for y in self.y:
            for d in self.devices:
                self._add(pulp.lpSum(v for (_, _, e), v in y.items() if e == d) <= 1)

    @row(4)
    def _source(self) -> None:
        """One source, which knows the device of the first segment."""
        for y, a in zip(self.y, self.a, strict=True):
            for d in self.devices:
                first = pulp.lpSum(v for (i, _, e), v in y.items() if i == 0 and e == d)
                self._add(pulp.lpSum(v for (_, e), v in a.items() if e == d) == first)

    @row(5)
    def _target(self) -> None:
        """One target, which knows the device of the last segment."""
        for y, b, chain in zip(self.y, self.b, self.chains, strict=True):
            for d in self.devices:
                final = pulp.lpSum(v for (_, j, e), v in y.items() if j == chain.blocks and e == d)
                self._add(pulp.lpSum(v for (e, _), v in b.items() if e == d) == final)

    @row(6)
    def _same_source(self) -> None:
        """Agreement begins with the source."""
        for (p, q), same in self.same.items():
            for s in sorted({s for s, _ in self.a[p] | self.a[q]}):
                mine, theirs = self._senses(p, s), self._senses(q, s)
                self.program += mine <= theirs + 1 - same[0]
                self.program += theirs <= mine + 1 - same[0]

    @row(7)
    def _merges(self) -> None:
        """Equal segments are merged that follow an agreement."""
        for (p, q), merged in self.m.items():
            for key, m in merged.items():
                self.program += m <= self.y[p][key]
                self.program += m <= self.y[q][key]
                self.program += m <= self.same[p, q][key[0]]

    @row(8)
    def _agrees(self) -> None:
        """Who agrees up to a boundary has a merged segment that ends there."""
        for (p, q), same in self.same.items():
            for k in range(1, len(same)):
                self.program += same[k] <= pulp.lpSum(m for (_, j, _), m in self.m[p, q].items() if j == k)

    @row(9)
    def _free_segment(self) -> None:
        """A segment is free if it is merged with a twin's."""
        for p, free in self.free.items():
            for key, v in free.items():
                self.program += v <= pulp.lpSum(self._of(self.m, p, key))

    @row(10, implied=True)
    def _free_if_there(self) -> None:
        """Only a segment that is there is free."""
        for p, free in self.free.items():
            for key, v in free.items():
                self.program += v <= self.y[p][key]

    @row(11)
    def _same_transfer(self) -> None:
        """A transfer after an agreement is the same one if it happens in both plans."""
        for (p, q), moves in self.n.items():
            for (k, d, e), n in moves.items():
                self.program += n <= self.same[p, q][k]
                for r in (p, q):
                    for variables in self._transfer(r, k, d, e):
                        self.program += n <= pulp.lpSum(variables)

    @row(12)
    def _free_transfer(self) -> None:
        """A transfer is free if it is a twin's."""
        for p, freed in self.freed.items():
            for key, v in freed.items():
                self.program += v <= pulp.lpSum(self._of(self.n, p, key))

    @row(13)
    def _free_input(self) -> None:
        """Sensing and input transfer are free that an earlier pipeline of the signal pays for."""
        for p, earlier in self.hearers:
            for s in self.chains[p].profile.sources:
                self.program += self.heard[p, s] <= self._senses(p, s)
                self.program += self.heard[p, s] <= pulp.lpSum(self._senses(q, s) for q in earlier)
            for (r, s, d), v in self.fetched.items():
                if r == p:
                    self.program += v <= self.a[p][s, d]
                    self.program += v <= pulp.lpSum(self.a[q][s, d] for q in earlier if (s, d) in self.a[q])

    @row(14)
    def _memory(self) -> None:
        """Weights, bias and layers fit into every accelerator (Sec. 5.2)."""
        capacity = capacities(self.instance)
        for (r, d), terms in self.used.items():
            self._add(pulp.lpSum(terms) <= int(capacity[r, d]))

    @row(15)
    def _cycle(self) -> None:
        """C is at least the load of every unit (Sec. 5.4.2), and of one medium (rule 13)."""
        for place, terms in self.load.items() if self.instance.objective == "throughput" else ():
            if place != MEDIUM or self.instance.in_turn:
                self.program += pulp.lpSum(terms) <= self.above + self.lower

    @row(16, implied=True)
    def _within(self) -> None:
        """Latency lies between what is proven and what is asked for."""
        if self.instance.objective == "latency":
            self.program += pulp.lpSum(self.latency) <= self.limit
            self.program += pulp.lpSum(self.latency) >= self.lower

    # --- what rows are made of ---

    def _add(self, constraint: pulp.LpConstraint) -> None:
        """Add a row, unless there is nothing in it."""
        if len(constraint) or not constraint.valid():
            self.program += constraint

    def _senses(self, p: int, s: int) -> Sum:
        return pulp.lpSum(v for (at, _), v in self.a[p].items() if at == s)

    def _transfer(self, p: int, k: int, d: int, e: int) -> tuple[list[Variable], list[Variable]]:
        """What makes boundary ``k`` of ``p`` leave ``d`` and arrive on ``e``."""
        leaves = [v for (_, j, at), v in self.y[p].items() if j == k and at == d]
        if k == self.chains[p].blocks:
            return leaves, [self.b[p][d, e]] if (d, e) in self.b[p] else []
        return leaves, [v for (i, _, at), v in self.y[p].items() if i == k and at == e]

    def _keys(self, pairs: dict[tuple[int, int], dict[Key, Variable]], p: int) -> Iterable[Key]:
        return dict.fromkeys(key for (r, _), found in pairs.items() if r == p for key in found)

    def _of(self, pairs: dict[tuple[int, int], dict[Key, Variable]], p: int, key: Key) -> list[Variable]:
        return [found[key] for (r, _), found in pairs.items() if r == p and key in found]

    # --- plans ---

    def assignment(self, plan: PlanBase) -> dict[Variable, int] | None:
        """Segments, source and target; ``None`` if the chains lack one."""
        assert isinstance(plan, Plan)
        values: dict[Variable, int] = {}
        for p, decisions in enumerate(plan.pipelines):
            chain, segments = self.chains[p], decisions.segments
            if not chain.holds(decisions):
                return None
            place = {boundary: k for k, boundary in enumerate(chain.cuts)}
            chosen = {(place[s.first], place[s.last], s.device) for s in segments}
            begin, end = (decisions.source, segments[0].device), (segments[-1].device, decisions.target)
            values |= {v: int(key in chosen) for key, v in self.y[p].items()}
            values |= {v: int(key == begin) for key, v in self.a[p].items()}
            values |= {v: int(key == end) for key, v in self.b[p].items()}
        return values

    def plan(self, value: Value) -> Plan:
        """The path of every pipeline."""
        found = []
        for chain, y, a, b in zip(self.chains, self.y, self.a, self.b, strict=True):
            path = sorted(key for key, v in y.items() if value(v))
            source = next(s for (s, _), v in a.items() if value(v))
            target = next(t for (_, t), v in b.items() if value(v))
            segments = tuple(Segment(device=d, first=chain.cuts[i], last=chain.cuts[j]) for i, j, d in path)
            found.append(PipelinePlan(source=source, target=target, segments=segments))
        return Plan(pipelines=tuple(found))
