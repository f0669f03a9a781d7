"""MIP of neuron masking: binary expansion of every second layer, exact McCormick products. One device and cycle time.

=========  ================================================================  ==================  ==================
Symbol     Meaning                                                           Unit                Shape
=========  ================================================================  ==================  ==================
n[i]       neurons kept in layer i, least_i to N_i; n[0] the input           neurons             (I,)
x[i,b]     bit b of n[i] - least_i, in expanded layers                       1                   expanded, bits
y[i,b,j]   x[i,b] n[j] from below, j a neighbour of the expanded layer i     neurons             expanded, bits, 2
W, M       work and memory, linear in n and y: Eqs. (1), (2)                 work, memory units
S          memory above b_M (spill mode)                                     memory units
tM, tS     transfers in whole ticks                                          ticks
t[i,g]     neurons of layer i whose contribution is the g-th largest U       neurons             buckets
s          smallest share                                                    1/10000
=========  ================================================================  ==================  ==================

Products occur with coefficients of at least 0 in limits from above only, so ``y >= N_j (x - 1) + n_j`` and
``y >= least_j x`` are all of McCormick that is needed: at a binary x the smaller y is the product. The expanded layers
are the odd or the even ones, whichever need fewer products. Top-U is concave, so the buckets fill from the largest U.

Work and memory are whole numbers, hence their limits are relaxed by half a unit, which excludes no mask and keeps the
engine's floating-point tolerance from doing so. Every mask is checked again in integers (:meth:`Chain.fits`). HiGHS
only: CBC's preprocessing was seen to report objectives other than its solution's on these models.
"""

from __future__ import annotations

from itertools import groupby
from typing import Any

from mapgap.core import Budget, PlanError, SolveResult, Status
from mapgap.formulations.neuron_masking._chain import Chain
from mapgap.formulations.neuron_masking._fleet import Report, Single, solve
from mapgap.problems.neuron_masking import SHARE, Instance

HALF = 0.5


class Model:
    """The model of one chain; ``pulp.LpProblem`` in ``problem``, the objective is minus what the problem maximises."""

    def __init__(self, chain: Chain) -> None:
        import pulp

        self.pulp: Any = pulp
        self.problem: Any = pulp.LpProblem("neuron_masking", pulp.LpMinimize)
        self.chain = chain
        self.n = [self._integer(f"n_{i}", low, chain.upper[i]) for i, low in enumerate(chain.lower)]
        self.base = 0  # constant part of the objective, which engines report differently
        self.problem += -self._objective()
        self._products()
        self._limits()

    def _integer(self, name: str, low: int, high: int) -> Any:
        return self.pulp.LpVariable(name, low, high, cat="Integer")

    def _real(self, name: str, high: int) -> Any:
        return self.pulp.LpVariable(name, 0, high)

    def _bits(self, i: int) -> int:
        return (self.chain.upper[i] - self.chain.lower[i]).bit_length()

    def _expanded(self) -> list[int]:
        """Odd or even layers; a layer counts its bits once for each neighbour."""
        classes = [range(first, len(self.chain), 2) for first in (0, 1)]
        sizes = [sum(self._bits(i) * ((i > 0) + (i + 1 < len(self.chain))) for i in members) for members in classes]
        return list(classes[sizes.index(min(sizes))])

    def _products(self) -> None:
        """``pair[i]`` stands for n[i-1] n[i]: least_i n_j + sum over bits of 2^b y."""
        chain, problem = self.chain, self.problem
        self.pair: list[Any] = [chain.inputs * self.n[0]] + [None] * (len(chain) - 1)
        for i in self._expanded():
            bits = [self.pulp.LpVariable(f"x_{i}_{b}", cat="Binary") for b in range(self._bits(i))]
            problem += self.n[i] == chain.lower[i] + self.pulp.lpSum(2**b * x for b, x in enumerate(bits))
            for j in (i - 1, i + 1):
                if not 0 <= j < len(chain):
                    continue
                product = chain.lower[i] * self.n[j]
                for b, x in enumerate(bits):
                    y = self._real(f"y_{i}_{b}_{j}", chain.upper[j])
                    problem += y >= self.n[j] - chain.upper[j] * (1 - x)
                    problem += y >= chain.lower[j] * x
                    product += 2**b * y
                self.pair[max(i, j)] = product

    def _limits(self) -> None:
        """Eqs. (1)-(5)."""
        chain, problem, total = self.chain, self.problem, self.pulp.lpSum
        work = total(c * pair for c, pair in zip(chain.work, self.pair, strict=True))
        memory = total(c * pair for c, pair in zip(chain.weights, self.pair, strict=True))
        memory += total(c * n for c, n in zip(chain.features, self.n, strict=True))
        most_work, most_memory = chain.whole_totals
        if chain.work_limit < most_work:
            problem += work <= chain.work_limit + HALF
        ticks = []
        if chain.hard:
            if chain.memory_limit < most_memory:
                problem += memory <= chain.memory_limit + HALF
        elif chain.spill.ticks and chain.memory_limit < most_memory:
            ticks.append(self._ticks("tS", chain.spill.ticks, chain.spill.per, memory - chain.memory_limit))
        if chain.transfer.ticks:
            ticks.append(self._ticks("tM", chain.transfer.ticks, chain.transfer.per, memory))
        problem += work + total(ticks) <= chain.time_limit + HALF

    def _ticks(self, name: str, ticks: int, per: int, units: Any) -> Any:
        """Whole ticks from below: per t >= ticks * units, loosened by half of the smallest step."""
        t = self.pulp.LpVariable(name, 0, cat="Integer")
        self.problem += t >= (ticks * units - HALF) * (1.0 / per)
        return t

    def _objective(self) -> Any:
        """Sum of n or of contributions, or s."""
        chain, problem, total = self.chain, self.problem, self.pulp.lpSum
        if not chain.value:
            s = self._integer("s", 0, SHARE)
            for n, most in zip(self.n, chain.upper, strict=True):
                problem += most * s <= SHARE * n
            return s
        if all(row[-1] == len(row) - 1 for row in chain.value):
            return total(self.n)
        return total(self._top(i) for i in range(len(chain)))

    def _top(self, i: int) -> Any:
        """Contribution of layer i beyond its least neurons, by buckets of equal U."""
        row, low, high = self.chain.value[i], self.chain.lower[i], self.chain.upper[i]
        gains = [row[k + 1] - row[k] for k in range(low, high)]
        buckets = [(gain, len(list(run))) for gain, run in groupby(gains)]
        parts = [self._real(f"t_{i}_{g}", size) for g, (_, size) in enumerate(buckets)]
        self.problem += self.pulp.lpSum(parts) == self.n[i] - low
        self.base += row[low]
        return self.pulp.lpSum(gain * t for (gain, _), t in zip(buckets, parts, strict=True))


def solve_single(chain: Chain, budget: Budget, report: Report) -> Single:
    """Best mask of one device under one cycle time, and a bound."""
    from mapgap.solvers import mip

    built = Model(chain)
    outcome = mip.solve(built.problem, budget, "highs")
    if outcome.status is Status.INFEASIBLE:
        raise PlanError("the MIP finds no mask although the least neurons of every layer are one")
    whole = chain.worth(chain.upper)
    bound = whole if outcome.bound is None else min(whole, built.base - outcome.bound)
    if not outcome.solved:
        return Single(outcome.stop, None, None, bound)
    kept = tuple(outcome.value(n) for n in built.n)
    if not chain.fits(kept):
        raise PlanError(f"the MIP returns the mask {kept}, which breaks a limit in integers")
    report(kept, bound)
    return Single(outcome.stop, chain.worth(kept), kept, bound)


def run(instance: Instance, budget: Budget) -> SolveResult:
    """Solve every device under every cycle time that matters, with HiGHS."""
    return solve(instance, budget, solve_single)
