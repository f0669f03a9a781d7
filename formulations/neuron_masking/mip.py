"""MIP of neuron masking: binary expansion of every second layer, exact McCormick products. One device and cycle time.

Costs are Eqs. (1)-(4) of ELFISH with both neighbours of a layer masked, limits Eq. (5); see
:mod:`mapgap.problems.neuron_masking`. Products are McCormick's envelopes (1976), of a binary and an integer variable.

Work and memory are whole numbers, hence their limits are relaxed by half a unit, which excludes no mask, allows none,
and keeps the engine's floating-point tolerance from excluding one. Every mask is checked again in integers
(:mod:`mapgap.formulations.neuron_masking.fleet`). HiGHS only: CBC's preprocessing was seen to report objectives other
than its solution's on these models.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any

import pulp

from mapgap.core import Budget, SolveResult
from mapgap.formulations.neuron_masking.fleet import solve, trusted
from mapgap.formulations.neuron_masking.params import Fleet as Params
from mapgap.formulations.neuron_masking.program import MaskProgram, parts
from mapgap.problems.neuron_masking import SHARE, Instance, Plan
from mapgap.problems.neuron_masking.lowered.chain import Chain
from mapgap.solvers.mip import MipModel
from mapgap.solvers.model import Part, row

HALF = 0.5


@dataclass(frozen=True)
class Product:
    """``y[d,i,b,j]``, which stands for bit b of layer i times the count of its neighbour j; layers from 0."""

    y: Any
    x: Any
    device: int
    layer: int
    neighbour: int
    bit: int

    @property
    def place(self) -> tuple[int, int, int, int]:
        """Among the products."""
        return self.device, self.layer, self.neighbour, self.bit


class MipMasks(MaskProgram, MipModel):
    """Masks of a fleet under one cycle time, every second layer in binary.

    Sets: devices d, layers i = 1..I; E, the odd or the even layers, whichever need fewer products; bits b of
    ``N_i - least_i``; buckets g of equal contribution.
    Data: ``N_i``, ``least_i``; coefficients ``work_i``, ``weights_i``, ``features_i``; per device the limits ``b_T``,
    ``b_W``, ``b_M``, the overhead ``O_T``, transfer rates ``ticks / per`` of main and secondary memory; ``u_dig``, the
    g-th largest contribution beyond those of the ``least_i`` largest, and ``U_di``, the sum of the latter.

    =============  ============================================================  =============  ==================
    Variable       Meaning                                                       Unit           Exists
    =============  ============================================================  =============  ==================
    n[d,i]         neurons kept, least_i to N_i; n[d,0] = n_0 are the inputs     neurons
    x[d,i,b]       bit b of n[d,i] - least_i                                     1              i in E
    y[d,i,b,j]     x[d,i,b] n[d,j] from below, j a neighbour of i                neurons        i in E
    tM[d], tS[d]   transfers in whole ticks                                      ticks          rate above 0
    t[d,i,g]       neurons whose contribution is u_dig, at most as many          neurons        contribution, rate
    s              smallest share                                                1/10000        smallest_share
    =============  ============================================================  =============  ==================

    A pair n[d,i] n[d,j] of neighbours, i in E, stands for least_i n[d,j] + sum_b 2^b y[d,i,b,j]. W[d] and M[d] are
    linear in pairs and counts: sum_i work_i n[d,i-1] n[d,i], and sum_i weights_i n[d,i-1] n[d,i] + features_i n[d,i].

        maximise  sum_di n[d,i]  or  sum_di U_di + sum_dig u_dig t[d,i,g]  or  s;  the rate is 3600000 times the second
        // cycle_ms

        (1)   sum_g t[d,i,g] = n[d,i] - least_i
        (2)   N_i s <= 10000 n[d,i]
        (3)   n[d,i] = least_i + sum_b 2^b x[d,i,b]                                  i in E
        (4)   y[d,i,b,j] >= n[d,j] - N_j (1 - x[d,i,b])
        (5)   y[d,i,b,j] >= least_j x[d,i,b]                                         implied at integral points
        (6)   W[d] <= min(b_W, b_T - O_T) + 1/2                                      where it can be broken
        (7)   M[d] <= b_M + 1/2                                                      hard memory, the same
        (8)   tS[d] >= (ticks (M[d] - b_M) - 1/2) / per                              spill mode, the same
        (9)   tM[d] >= (ticks M[d] - 1/2) / per
        (10)  W[d] + tM[d] + tS[d] <= b_T - O_T + 1/2

    Products occur with coefficients of at least 0 in limits from above only, so (4), (5) and y >= 0 are all of
    McCormick that is needed: at a binary x the smallest y is the product. Contributions fall from bucket to bucket, so
    the buckets fill from the largest.
    """

    engines = ("highs",)

    def __init__(self, instance: Instance, cycle: int = 0, without: Collection[int] = ()) -> None:
        MaskProgram.__init__(self, instance, cycle)
        MipModel.__init__(self, "neuron_masking")
        self.n = [
            [_integer(f"n_{d}_{i + 1}", chain.lower[i], chain.upper[i]) for i in range(len(chain))]
            for d, chain in enumerate(self.chains)
        ]
        self._make_pairs()
        self._make_ticks()
        self.program += -self._make_objective()
        self.waiting: list[tuple[tuple[int, ...], Any]] = []
        self.add_rows(without)
        for _, constraint in sorted(self.waiting, key=itemgetter(0)):
            self.program += constraint

    def _add(self, constraint: Any, *place: int) -> None:
        """Add a constraint at a place in the program, by number of its row; (3) to (5) of a product lie side by side.

        Grouped by kind, HiGHS takes a quarter longer for them.
        """
        self.waiting.append((place, constraint))

    def _make_pairs(self) -> None:
        """Bits, their products with the neighbours, and W and M of every device."""
        self.bits: list[dict[int, list[Any]]] = []  # by device: x of the expanded layers
        self.products: list[list[Product]] = []
        self.work: list[Any] = []
        self.memory: list[Any] = []
        for d, chain in enumerate(self.chains):
            n = self.n[d]
            pair: list[Any] = [chain.inputs * n[0]] + [None] * (len(chain) - 1)
            bits: dict[int, list[Any]] = {}
            products = []
            for i in expanded(chain):
                names = range(_width(chain, i))
                bits[i] = [pulp.LpVariable(f"x_{d}_{i + 1}_{b}", cat="Binary") for b in names]
                for j in (j for j in (i - 1, i + 1) if 0 <= j < len(chain)):
                    ys = [pulp.LpVariable(f"y_{d}_{i + 1}_{b}_{j + 1}", 0, chain.upper[j]) for b in names]
                    products += [Product(y, x, d, i, j, b) for b, (y, x) in enumerate(zip(ys, bits[i], strict=True))]
                    pair[max(i, j)] = chain.lower[i] * n[j] + pulp.lpSum(2**b * y for b, y in enumerate(ys))
            self.bits.append(bits)
            self.products.append(products)
            self.work.append(_weighted(chain.work, pair))
            self.memory.append(_weighted(chain.weights, pair) + _weighted(chain.features, n))

    def _make_ticks(self) -> None:
        """tM and tS of every device; 0 where nothing is transferred."""
        self.main_ticks: list[Any] = []
        self.spill_ticks: list[Any] = []
        for d, chain in enumerate(self.chains):
            self.main_ticks.append(_integer(f"tM_{d}", 0, None) if chain.transfer.ticks else 0)
            self.spill_ticks.append(_integer(f"tS_{d}", 0, None) if _spills(chain) else 0)

    def _make_objective(self) -> Any:
        """What is maximised, without its constant part, which engines report differently; and t or s."""
        self.buckets: list[list[list[Any]]] = []
        self.s: Any = None
        if self.instance.objective == "neurons":
            return pulp.lpSum(n for row in self.n for n in row)
        if self.instance.objective == "smallest_share":
            self.s = _integer("s", 0, SHARE)
            return self.s
        worth = []
        for d, chain in enumerate(self.chains):
            self.buckets.append([])
            for i, line in enumerate(chain.value):
                gains = [line[k + 1] - line[k] for k in range(chain.lower[i], chain.upper[i])]
                runs = [(gain, len(list(run))) for gain, run in groupby(gains)]
                names = range(len(runs))
                ts = [pulp.LpVariable(f"t_{d}_{i + 1}_{g}", 0, size) for g, (_, size) in zip(names, runs, strict=True)]
                worth += [gain * t for (gain, _), t in zip(runs, ts, strict=True)]
                self.buckets[d].append(ts)
                self.constant += line[chain.lower[i]]
        return pulp.lpSum(worth)

    @row(1)
    def contributions(self) -> None:
        """The neurons beyond the least are in the buckets."""
        for chain, n, buckets in zip(self.chains, self.n, self.buckets, strict=False):
            for i, ts in enumerate(buckets):
                self._add(pulp.lpSum(ts) == n[i] - chain.lower[i], 1)

    @row(2)
    def shares(self) -> None:
        """N_i s <= 10000 n[d,i]."""
        if self.s is not None:
            for chain, row_of in zip(self.chains, self.n, strict=True):
                for n, most in zip(row_of, chain.upper, strict=True):
                    self._add(most * self.s <= SHARE * n, 2)

    @row(3)
    def expansion(self) -> None:
        """n[d,i] in binary, in the expanded layers."""
        for d, (chain, n, bits) in enumerate(zip(self.chains, self.n, self.bits, strict=True)):
            for i, xs in bits.items():
                total = chain.lower[i] + pulp.lpSum(2**b * x for b, x in enumerate(xs))
                self._add(n[i] == total, 3, d, i)

    @row(4)
    def products_of_ones(self) -> None:
        """y >= n_j where the bit is 1."""
        for p in (each for products in self.products for each in products):
            n, most = self.n[p.device][p.neighbour], self.chains[p.device].upper[p.neighbour]
            self._add(p.y >= n - most * (1 - p.x), 3, *p.place, 0)

    @row(5, implied=True)
    def products_of_parts(self) -> None:
        """y >= least_j x: McCormick's other envelope from below, for fractional bits."""
        for p in (each for products in self.products for each in products):
            self._add(p.y >= self.chains[p.device].lower[p.neighbour] * p.x, 3, *p.place, 1)

    @row(6)
    def work_limit(self) -> None:
        """W <= b_W: Eq. (5); what the time limit says of work alone is in the number."""
        for chain, work in zip(self.chains, self.work, strict=True):
            if chain.work_limit < chain.whole_totals[0]:
                self._add(work <= chain.work_limit + HALF, 6)

    @row(7)
    def memory_limit(self) -> None:
        """M <= b_M: Eq. (5), hard memory."""
        for chain, memory in zip(self.chains, self.memory, strict=True):
            if chain.hard and chain.memory_limit < chain.whole_totals[1]:
                self._add(memory <= chain.memory_limit + HALF, 7)

    @row(8)
    def secondary_transfers(self) -> None:
        """Whole ticks of secondary memory: per tS >= ticks (M - b_M), loosened by half of the smallest step."""
        for chain, memory, ticks in zip(self.chains, self.memory, self.spill_ticks, strict=True):
            if _spills(chain):
                moved = chain.spill.ticks * (memory - chain.memory_limit)
                self._add(ticks >= (moved - HALF) * (1.0 / chain.spill.per), 8)

    @row(9)
    def main_transfers(self) -> None:
        """Whole ticks of main memory: per tM >= ticks M, loosened by half of the smallest step."""
        for chain, memory, ticks in zip(self.chains, self.memory, self.main_ticks, strict=True):
            if chain.transfer.ticks:
                self._add(ticks >= (chain.transfer.ticks * memory - HALF) * (1.0 / chain.transfer.per), 9)

    @row(10)
    def time_limit(self) -> None:
        """W + tM + tS <= b_T - O_T: Eqs. (3)-(5)."""
        for chain, work, main, extra in zip(self.chains, self.work, self.main_ticks, self.spill_ticks, strict=True):
            self._add(work + extra + main <= chain.time_limit + HALF, 10)


def _integer(name: str, low: int, high: int | None) -> Any:
    return pulp.LpVariable(name, low, high, cat="Integer")


def _weighted(coefficients: Collection[int], terms: Collection[Any]) -> Any:
    return pulp.lpSum(c * term for c, term in zip(coefficients, terms, strict=True))


def _width(chain: Chain, i: int) -> int:
    """Bits of n_i - least_i."""
    return (chain.upper[i] - chain.lower[i]).bit_length()


def _spills(chain: Chain) -> bool:
    """Whether a mask can pay for spilled memory."""
    return not chain.hard and chain.spill.ticks > 0 and chain.memory_limit < chain.whole_totals[1]


def expanded(chain: Chain) -> range:
    """Odd or even layers, whichever have fewer products; a layer counts its bits once for each neighbour."""
    classes = [range(first, len(chain), 2) for first in (0, 1)]
    sizes = [sum(_width(chain, i) * ((i > 0) + (i + 1 < len(chain))) for i in members) for members in classes]
    return classes[sizes.index(min(sizes))]


def models(instance: Instance) -> list[Part]:
    """One program of the whole fleet per cycle time."""
    return parts(instance, MipMasks)


def solve_single(single: Instance, budget: Budget, start: Plan | None = None) -> SolveResult:
    """Best mask of one device under one cycle time, and a bound."""
    found = trusted(single, MipMasks, budget, start=start)
    budget.report(found.plan, found.bound)
    return found


def run(instance: Instance, budget: Budget, start: str | Plan | None = None, params: Params = Params()) -> SolveResult:
    """Solve every device under every cycle time that matters, with HiGHS."""
    return solve(instance, budget, solve_single, start, params)
