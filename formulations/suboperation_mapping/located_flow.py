"""Places, amounts and loads of the located program; :mod:`located_model` adds stages and time."""

from __future__ import annotations

from dataclasses import dataclass, field

from mapgap.formulations.suboperation_mapping.located_frame import Box, Frame
from mapgap.formulations.suboperation_mapping.orbits import Places
from mapgap.formulations.suboperation_mapping.phase_graph import Node
from mapgap.problems.suboperation_mapping.certificate.lengths import GRAIN, lines
from mapgap.solvers.integer_lp import IntegerLP, IntegerTerms


@dataclass
class Part:
    """Shares of one group of a split node on the last of ``places``, in the state that the others name.

    Attributes
    ----------
    chosen : int
        Column: how many of the orbit's tuples, on the average over the shares of the group.
    amount : (column, coefficient)
        Samples.
    cost : IntegerTerms
        Compute and transfer from the fused node of the state, in grains.
    """

    state: Places
    group: int
    places: Places
    chosen: int
    amount: tuple[int, int]
    cost: IntegerTerms = field(default_factory=list)

    @property
    def accelerator(self) -> int:
        return self.places[-1]


class LocatedFlow:
    """Rows (1) to (8) of :class:`~mapgap.formulations.suboperation_mapping.located_model.LocatedModel`."""

    def __init__(self, frame: Frame, box: Box) -> None:
        self.frame, self.box, self.instance = frame, box, frame.instance
        self.phases, self.orbits = frame.phases, frame.orbits
        self.kinds = range(len(self.orbits.members))
        self.lp = IntegerLP()
        self.M = self.time(cost=1)
        self.z = {v: [self.lp.column(1) for _ in self.kinds] for v in frame.fused}
        self.places()
        self.samples = [self.lp.column(group.high, unit=float(group.high)) for group in box]
        self.chosen: dict[Node, dict[Places, int]] = {}
        self.parts: dict[Node, list[Part]] = {}
        self.share_load: dict[tuple[Node, int, int], int] = {}
        self.holders: dict[int, dict[tuple[Places, int], int]] = {}
        for n in frame.split:
            self.states(n)
            self.amounts(n)
            self.computes(n)
        self.load: dict[tuple[Node, int], int] = {}
        for n in self.phases.nodes:
            self.loads(n)

    def time(self, cost: int = 0) -> int:
        """A column of a time in grains, or of a sum of times of equal accelerators."""
        bound = self.frame.limit * GRAIN
        return self.lp.column(bound * self.orbits.count, cost, unit=bound / 1000.0, hidden=True)

    # ---- places and amounts -------------------------------------------------------------------------------------

    def places(self) -> None:
        """(1) Every fused node has one place, and the shares add up to the batch."""
        for z in self.z.values():
            self.lp.row([(j, 1) for j in z], 1, 1)

    def states(self, n: Node) -> None:
        """(2) Of all places of its fused neighbours a split node has one, which agrees with theirs."""
        around = [v for v in self.frame.states(n) if v is not None]
        chosen = {w: self.lp.column(1) for w in self.orbits.tuples(len(around))}
        self.chosen[n] = chosen
        if not around:
            self.lp.row([(j, 1) for j in chosen.values()], 1, 1)
        for position, v in enumerate(around):
            for q in self.kinds:
                row = [(j, 1) for w, j in chosen.items() if self.orbits.kind[w[position]] == q]
                self.lp.row([*row, (self.z[v][q], -1)], 0, 0)

    def amounts(self, n: Node) -> None:
        """(3) Every share lies somewhere, within its limits; all of the batch does; shares keep their samples."""
        lp, parts = self.lp, []
        for w, chosen in self.chosen[n].items():
            batch: IntegerTerms = [(chosen, -self.instance.batch)]
            for g, group in enumerate(self.box):
                here = []
                for places in self.orbits.extensions(w):
                    x = lp.column(1)
                    amount = (x, group.low)
                    if group.low < group.high:
                        sigma = lp.column(group.high, unit=float(group.high))
                        lp.row([(sigma, 1), (x, -group.low)], 0)
                        lp.row([(sigma, 1), (x, -group.high)], upper=0)
                        amount = (sigma, 1)
                    here.append(Part(w, g, places, x, amount))
                    batch.append((amount[0], amount[1] * group.number))
                lp.row([(chosen, -1), *((p.chosen, 1) for p in here)], 0, 0)
                parts += here
            lp.row(batch, 0, 0)
        for g, group in enumerate(self.box):
            if group.low < group.high:
                lp.row([(self.samples[g], -1), *(p.amount for p in parts if p.group == g)], 0, 0)
        self.parts[n] = parts

    def computes(self, n: Node) -> None:
        """(4) A share takes at least its table's convex envelope, and its transfer from the fused node before it."""
        u = self.frame.before[n]
        for part in self.parts[n]:
            group = self.box[part.group]
            below = lines(self.phases.table(n)[part.accelerator], group.low, group.high)
            pieces = [[(part.chosen, alpha), (part.amount[0], beta * part.amount[1])] for alpha, beta in below]
            if len(pieces) == 1:
                part.cost += pieces[0]
            else:
                cost = self.time()
                part.cost.append((cost, 1))
                for piece in pieces:
                    self.lp.row([(cost, 1), *negated(piece)], 0)
            if u is not None:
                rate = self.frame.rate(self.phases.edge_bytes(n, u), part.state[0], part.accelerator)
                part.cost.append((part.amount[0], rate * part.amount[1]))

    # ---- loads --------------------------------------------------------------------------------------------------

    def total(self, n: Node, g: int, kind: int, samples: bool) -> IntegerTerms:
        """How much of the shares of a group of a split node lies on the accelerators of a class."""
        own = [p for p in self.parts[n] if p.group == g and self.orbits.kind[p.accelerator] == kind]
        return [p.amount if samples else (p.chosen, 1) for p in own]

    def loads(self, n: Node) -> None:
        """(5) The load of a node on a class of accelerators: compute and all transfers."""
        if self.phases.fused(n):
            found = self.fused_loads(n)
            for q in self.kinds:
                self.load[n, q] = self.time()
                self.lp.row([(self.load[n, q], 1), *negated(found[q])], 0)
            return
        for g, _ in enumerate(self.box):
            extra = self.transfers(n, g)
            for q in self.kinds:
                terms = list(extra[q])
                for part in self.parts[n]:
                    if part.group == g and self.orbits.kind[part.accelerator] == q:
                        terms += part.cost
                j = self.share_load[n, g, q] = self.time()
                self.lp.row([(j, 1), *negated(terms)], 0)
        for q in self.kinds:
            terms = [(self.share_load[n, g, q], group.number) for g, group in enumerate(self.box)]
            if len(terms) == 1 and terms[0][1] == 1:
                self.load[n, q] = terms[0][0]
            else:
                self.load[n, q] = self.time()
                self.lp.row([(self.load[n, q], 1), *negated(terms)], 0)

    def transfers(self, n: Node, g: int) -> list[IntegerTerms]:
        """Transfers that a share of a group pays for, by class, those of the state left out."""
        found: list[IntegerTerms] = [[] for _ in self.kinds]
        layer = self.instance.layers[n[1]]
        sources: list[list[IntegerTerms]] = []
        for p in self.phases.before[n]:
            if p == ("FP", n[1]) and n[0] != "FP":
                loss = 0 if self.phases.consumers[n[1]] else layer.output_bytes
                if n[0] == "BP":
                    sources.append(self.moved(n, p, g, layer.weight_bytes, samples=False))
                    sources.append(self.moved(n, p, g, loss, samples=True))
                else:
                    sources.append(self.moved(n, p, g, layer.input_bytes + loss, samples=True))
                    sources.append(self.gradients(n[1]))
            elif not self.phases.fused(p):
                sources.append(self.moved(n, p, g, self.phases.edge_bytes(n, p), samples=True))
            elif p != self.frame.before[n]:
                sources.append(self.carried(p, n, g, self.phases.edge_bytes(n, p), inward=True))
        for source in sources:
            for q in self.kinds:
                found[q] += source[q]
        return found

    def moved(self, n: Node, p: Node, g: int, size: int, samples: bool) -> list[IntegerTerms]:
        """(6) What lies on a class more than where it comes from was moved there, at the cheapest rate."""
        found: list[IntegerTerms] = [[] for _ in self.kinds]
        for q in self.kinds:
            cost = min(self.frame.cheapest(size, a) for a in self.orbits.members[q])
            if cost:
                y = self.lp.column(self.box[g].high, unit=float(self.box[g].high)) if samples else self.lp.column(1)
                here, there = self.total(n, g, q, samples), self.total(p, g, q, samples)
                self.lp.row([(y, 1), *negated(here), *there], 0)
                found[q].append((y, cost))
        return found

    def carried(self, v: Node, n: Node, g: int, size: int, inward: bool) -> list[IntegerTerms]:
        """(7) Samples of a share between the place of a fused node and its own, where no state couples the two.

        By class of the share's accelerator (``inward``: it pays), or of the fused node's.
        """
        found: list[IntegerTerms] = [[] for _ in self.kinds]
        fixed: list[IntegerTerms] = [[(self.z[v][q], -1)] for q in self.kinds]
        high = self.box[g].high
        flows = {pair: self.lp.column(high, unit=float(high)) for pair in self.orbits.tuples(2)}
        into: list[IntegerTerms] = [negated(self.total(n, g, q, samples=True)) for q in self.kinds]
        for (i, a), f in flows.items():
            into[self.orbits.kind[a]].append((f, 1))
            fixed[self.orbits.kind[i]].append((f, 1))
            rate = self.frame.rate(size, i, a) if inward else self.frame.rate(size, a, i)
            if rate:
                found[self.orbits.kind[a if inward else i]].append((f, rate))
        for row in into:
            self.lp.row(row, 0, 0)
        for q in self.kinds:  # at most ``high`` samples, and only where the fused node is
            (z, _), *flow = fixed[q]
            self.lp.row([*flow, (z, -high)], upper=0)
        return found

    def gradients(self, layer: int) -> list[IntegerTerms]:
        """(8) A WU sends dW to every other holder of an FP of the layer: at least to all holders but one."""
        found: list[IntegerTerms] = [[] for _ in self.kinds]
        size = self.instance.layers[layer].weight_bytes
        rates = [self.frame.cheapest(size, a) for a in range(self.orbits.count)]
        rate = min(rates, default=0)
        if rate and sum(group.number for group in self.box) > 1:
            sent = [self.time() for _ in self.kinds]
            copies = [(j, -(h - 1) * rate) for (_, h), j in self.held(layer).items() if h > 1]
            self.lp.row([*((j, 1) for j in sent), *copies], 0)
            for q in self.kinds:
                found[q].append((sent[q], 1))
        return found

    def held(self, layer: int) -> dict[tuple[Places, int], int]:
        """(9) The number of holders of a layer, with the place of the fused node before its FP."""
        if layer in self.holders:
            return self.holders[layer]
        lp = self.lp
        node: Node = ("FP", layer)
        u = self.frame.before[node]
        shares = sum(group.number for group in self.box)
        most = min(self.orbits.count, shares)
        places = self.orbits.tuples(0 if u is None else 1)
        found = {(i, h): lp.column(1) for i in places for h in range(1, most + 1)}
        for i in places:
            fixed = 1 if u is None else 0
            own = [] if u is None else [(self.z[u][self.orbits.kind[i[0]]], -1)]
            lp.row([*((found[i, h], 1) for h in range(1, most + 1)), *own], fixed, fixed)
        holding = [lp.column(len(those), unit=float(len(those))) for those in self.orbits.members]
        for q in self.kinds:
            for g, _ in enumerate(self.box):
                lp.row([(holding[q], 1), *negated(self.total(node, g, q, samples=False))], 0)
        lp.row([*((j, -1) for j in holding), *((j, h) for (_, h), j in found.items())], 0)
        self.holders[layer] = found
        return found

    def fused_loads(self, v: Node) -> list[IntegerTerms]:
        """Compute of a fused node and what it gathers, by class of its place."""
        found: list[IntegerTerms] = [[] for _ in self.kinds]
        for q, those in enumerate(self.orbits.members):
            found[q].append((self.z[v][q], GRAIN * self.phases.table(v)[those[0]][0]))
        layer, batch = self.instance.layers[v[1]], self.instance.batch
        for p in self.phases.before[v]:
            own = p == ("FP", v[1]) and v[0] == "BP"
            if own or self.phases.fused(p):
                loss = 0 if self.phases.consumers[v[1]] else layer.output_bytes * batch
                size = layer.weight_bytes + loss if own else self.phases.edge_bytes(v, p) * batch
                source = self.shifted(p, v, size)
            elif self.frame.after[p] == v:
                source = self.gathered(p, v)
            else:
                source = [[] for _ in self.kinds]
                for g, group in enumerate(self.box):
                    for q, terms in enumerate(self.carried(v, p, g, self.phases.edge_bytes(v, p), inward=False)):
                        source[q] += [(j, c * group.number) for j, c in terms]
            for q in self.kinds:
                found[q] += source[q]
        return found

    def shifted(self, p: Node, v: Node, size: int) -> list[IntegerTerms]:
        """(7) The pair of places of two fused nodes, and what the second fetches from the first."""
        found: list[IntegerTerms] = [[] for _ in self.kinds]
        if not size or self.orbits.count == 1:
            return found
        pairs = {pair: self.lp.column(1) for pair in self.orbits.tuples(2)}
        for q in self.kinds:
            for position, node in ((0, p), (1, v)):
                row = [(j, 1) for pair, j in pairs.items() if self.orbits.kind[pair[position]] == q]
                self.lp.row([*row, (self.z[node][q], -1)], 0, 0)
        for (i, a), j in pairs.items():
            found[self.orbits.kind[a]].append((j, GRAIN * self.instance.transfer_ticks(size, i, a)))
        return found

    def gathered(self, p: Node, v: Node) -> list[IntegerTerms]:
        """What a fused node gathers from a split one whose state has its place."""
        found: list[IntegerTerms] = [[] for _ in self.kinds]
        for w in self.chosen[p]:
            found[self.orbits.kind[w[-1]]] += self.gather_terms(p, v, w)
        return found

    def gather_terms(self, p: Node, v: Node, w: Places) -> IntegerTerms:
        """The same in one state."""
        size = self.phases.edge_bytes(v, p)
        found = []
        for part in self.parts[p]:
            if part.state == w:
                rate = self.frame.rate(size, part.accelerator, w[-1])
                found.append((part.amount[0], part.amount[1] * rate * self.box[part.group].number))
        return found


def negated(terms: IntegerTerms) -> IntegerTerms:
    return [(j, -v) for j, v in terms]
