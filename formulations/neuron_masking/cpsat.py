"""CP-SAT model of neuron masking with multiplication constraints, one device and cycle time at a time.

=========  ==========================================================  =====================  =======
Symbol     Meaning                                                     Unit                   Shape
=========  ==========================================================  =====================  =======
n[i]       neurons kept in layer i, least_i to N_i; n[0] the input     neurons                (I,)
z[i]       n[i-1] n[i], by ``add_multiplication_equality``             pairs of neurons       (I,)
W, M       work and memory, sums over z and n: Eqs. (1), (2)           work, memory units
S          memory above b_M (spill mode)                               memory units
tM, tS     transfers in whole ticks                                    ticks
v[i]       contribution of the kept neurons of layer i                 contribution           (I,)
s          smallest share                                              1/10000
=========  ==========================================================  =====================  =======

``v[i]`` is the concave function top-U: below every line through two neighbouring points (n, U of the n largest), one
line per distinct U, and equal to it at the optimum. S, tM and tS are bounded from below only; the time limit presses
them down.
"""

from __future__ import annotations

from typing import Any

from mapgap.core import ACTIVITY_LIMIT, Budget, PlanError, SolveResult, Status
from mapgap.formulations.neuron_masking._chain import Chain
from mapgap.formulations.neuron_masking._fleet import Report, Single, solve
from mapgap.problems.neuron_masking import SHARE, Instance


class Model:
    """The model of one chain; ``cp_model.CpModel`` in ``model``, the objective is minus what the problem maximises."""

    def __init__(self, chain: Chain) -> None:
        from ortools.sat.python import cp_model

        self.model: Any = cp_model.CpModel()
        self.domain = cp_model.Domain.from_values
        self.chain = chain
        self.n = [
            self.model.new_int_var(low, high, f"n[{i}]")
            for i, (low, high) in enumerate(zip(chain.lower, chain.upper, strict=True))
        ]
        self._pairs()
        self._memory()
        self._time()
        self.model.minimize(-self._objective())

    def _pairs(self) -> None:
        """z[i] = n[i-1] n[i]; W and M."""
        chain = self.chain
        self.z: list[Any] = [chain.inputs * self.n[0]]
        for i in range(1, len(chain)):
            low, high = chain.lower[i - 1] * chain.lower[i], chain.upper[i - 1] * chain.upper[i]
            z = self.model.new_int_var(low, high, f"z[{i}]")
            self.model.add_multiplication_equality(z, [self.n[i - 1], self.n[i]])
            self.z.append(z)
        self.work = sum(c * z for c, z in zip(chain.work, self.z, strict=True))
        self.memory = sum(c * z for c, z in zip(chain.weights, self.z, strict=True))
        self.memory += sum(c * n for c, n in zip(chain.features, self.n, strict=True))

    def _memory(self) -> None:
        """M <= b_M, or S >= M - b_M: Eqs. (4), (5)."""
        most = self.chain.whole_totals[1]
        if self.chain.hard:
            self.model.add(self.memory <= min(self.chain.memory_limit, most)).with_name("memory limit")
            self.spilled = 0
        else:
            self.spilled = self.model.new_int_var(0, most, "S")
            limit = min(self.chain.memory_limit, most)
            self.model.add(self.spilled >= self.memory - limit).with_name("spilled")

    def _time(self) -> None:
        """W <= b_W and W + tM + tS <= b_T - O_T: Eqs. (4), (5)."""
        chain = self.chain
        most = chain.whole_totals[0]
        self.model.add(self.work <= min(chain.work_limit, most)).with_name("work limit")
        ticks = []
        for name, rate, units in (("tM", chain.transfer, self.memory), ("tS", chain.spill, self.spilled)):
            if rate.ticks and not isinstance(units, int):
                t = self.model.new_int_var(0, -(-rate.ticks * chain.whole_totals[1] // rate.per), name)
                self.model.add(rate.per * t >= rate.ticks * units).with_name(name)
                ticks.append(t)
        limit = min(chain.time_limit, 2 * ACTIVITY_LIMIT)
        self.model.add(self.work + sum(ticks) <= limit).with_name("time limit")

    def _objective(self) -> Any:
        """Sum of n or of v, or s."""
        chain, model = self.chain, self.model
        if not chain.value:
            pairs = zip(chain.lower, chain.upper, strict=True)
            values = {SHARE * n // most for low, most in pairs for n in range(low, most + 1)}
            # Only shares that a layer can have: a free s creeps up by 1/10000 at a time.
            s = model.new_int_var_from_domain(self.domain(sorted(values)), "s")
            for n, most in zip(self.n, chain.upper, strict=True):
                model.add(most * s <= SHARE * n)
            return s
        if all(row[-1] == len(row) - 1 for row in chain.value):
            return sum(self.n)
        return sum(self._top(i) for i in range(len(chain)))

    def _top(self, i: int) -> Any:
        """v[i] <= U(k) + (U(k+1) - U(k)) (n - k) for every k where the slope changes."""
        row, low, high = self.chain.value[i], self.chain.lower[i], self.chain.upper[i]
        v = self.model.new_int_var(row[low], row[high], f"v[{i}]")
        slope = None
        for k in range(low, high):
            if row[k + 1] - row[k] != slope:
                slope = row[k + 1] - row[k]
                self.model.add(v <= row[k] + slope * (self.n[i] - k))
        if low == high:
            return row[low]
        return v


def solve_single(chain: Chain, budget: Budget, report: Report) -> Single:
    """Best mask of one device under one cycle time, and a bound."""
    from mapgap.solvers import cpsat

    built = Model(chain)
    outcome = cpsat.solve(built.model, budget, on_solution=lambda value: report([value(n) for n in built.n], None))
    kept, worth = None, None
    if outcome.solved:
        kept = tuple(outcome.value(n) for n in built.n)
        worth = chain.worth(kept)
        if not chain.fits(kept) or (outcome.objective is not None and worth < -outcome.objective):
            raise PlanError(f"CP-SAT claims {-(outcome.objective or 0)} for {kept}, which is worth {worth}")
    if outcome.status is Status.INFEASIBLE:
        raise PlanError("CP-SAT finds no mask although the least neurons of every layer are one")
    whole = chain.worth(chain.upper)
    return Single(outcome.stop, worth, kept, min(whole, -outcome.bound) if outcome.bound is not None else whole)


def run(instance: Instance, budget: Budget) -> SolveResult:
    """Solve every device under every cycle time that matters."""
    return solve(instance, budget, solve_single)
