"""CP-SAT model of neuron masking with multiplication constraints, one device and cycle time at a time.

Costs are Eqs. (1)-(4) of ELFISH with both neighbours of a layer masked, limits Eq. (5); see
:mod:`mapgap.problems.neuron_masking`.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from ortools.sat.python import cp_model

from mapgap.core import ACTIVITY_LIMIT, Budget, SolveResult
from mapgap.formulations.neuron_masking.fleet import solve, trusted
from mapgap.formulations.neuron_masking.params import Fleet as Params
from mapgap.formulations.neuron_masking.program import MaskProgram, parts
from mapgap.problems.neuron_masking import SHARE, Instance, Plan
from mapgap.solvers.cpsat import CpSatModel
from mapgap.solvers.model import Part, row


class CpSatMasks(MaskProgram, CpSatModel):
    """Masks of a fleet under one cycle time, with products of counts as constraints.

    Sets: devices d, layers i = 1..I.
    Data: ``N_i``, ``least_i``; coefficients ``work_i``, ``weights_i``, ``features_i``; per device the limits ``b_T``,
    ``b_W``, ``b_M``, the overhead ``O_T``, transfer rates ``ticks / per`` of main and secondary memory, and
    ``U_di(k)``, the sum of its k largest contributions in layer i.

    =========  ===============================================================  =============  =================
    Variable   Meaning                                                          Unit           Exists
    =========  ===============================================================  =============  =================
    n[d,i]     neurons kept, least_i to N_i; n[d,0] = n_0 are the inputs        neurons
    z[d,i]     pairs of neurons n[d,i-1] n[d,i]; z[d,1] = n_0 n[d,1]            pairs          i >= 2
    S[d]       memory above b_M                                                 memory units   spill mode
    tM[d]      transfers of main memory                                         ticks          rate above 0
    tS[d]      transfers of secondary memory                                    ticks          spill, rate above 0
    v[d,i]     contribution of the kept neurons, U_di(least_i) to U_di(N_i)     contribution   contribution, rate
    s          smallest share, among those that a layer can have                1/10000        smallest_share
    =========  ===============================================================  =============  =================

    With W[d] = sum_i work_i z[d,i] and M[d] = sum_i weights_i z[d,i] + features_i n[d,i]:

        maximise  sum_di n[d,i]  or  sum_di v[d,i]  or  s;  the rate is 3600000 sum_di v[d,i] // cycle_ms

        (1)  z[d,i] = n[d,i-1] n[d,i]                                               i >= 2
        (2)  M[d] <= b_M                                                            hard memory
        (3)  S[d] >= M[d] - b_M                                                     spill mode
        (4)  W[d] <= min(b_W, b_T - O_T)
        (5)  per tM[d] >= ticks M[d]                                                main memory
        (6)  per tS[d] >= ticks S[d]                                                secondary memory
        (7)  W[d] + tM[d] + tS[d] <= b_T - O_T
        (8)  v[d,i] <= U_di(k) + (U_di(k+1) - U_di(k)) (n[d,i] - k)                 k where the slope changes
        (9)  N_i s <= 10000 n[d,i]

    S, tM and tS are bounded from below only: the time limit presses them down. ``U_di`` is concave, hence below the
    lines (8) through its neighbouring points, one per distinct contribution, and at the optimum v is equal to it.
    """

    def __init__(self, instance: Instance, cycle: int = 0, without: Collection[int] = ()) -> None:
        MaskProgram.__init__(self, instance, cycle)
        CpSatModel.__init__(self)
        chains, integer = self.chains, self.program.new_int_var
        self.n = [
            [integer(c.lower[i], c.upper[i], f"n[{d},{i + 1}]") for i in range(len(c))] for d, c in enumerate(chains)
        ]
        self.z = [
            [
                chains[d].inputs * n[0],
                *(
                    integer(
                        chains[d].lower[i - 1] * chains[d].lower[i],
                        chains[d].upper[i - 1] * chains[d].upper[i],
                        f"z[{d},{i + 1}]",
                    )
                    for i in range(1, len(n))
                ),
            ]
            for d, n in enumerate(self.n)
        ]
        self._make_transfers()
        self.program.minimize(-self._make_objective())
        self.add_rows(without)

    def _make_transfers(self) -> None:
        """W, M, S, tM and tS of every device."""
        self.work: list[Any] = []
        self.memory: list[Any] = []
        self.spilled: list[Any] = []
        self.main_ticks: list[Any] = []
        self.spill_ticks: list[Any] = []
        for d, chain in enumerate(self.chains):
            most = chain.whole_totals[1]
            pairs, memory = self.z[d], sum(c * z for c, z in zip(chain.weights, self.z[d], strict=True))
            self.work.append(sum(c * z for c, z in zip(chain.work, pairs, strict=True)))
            self.memory.append(memory + sum(c * n for c, n in zip(chain.features, self.n[d], strict=True)))
            self.spilled.append(0 if chain.hard else self.program.new_int_var(0, most, f"S[{d}]"))
            for name, rate, there, ticks in (
                ("tM", chain.transfer, True, self.main_ticks),
                ("tS", chain.spill, not chain.hard, self.spill_ticks),
            ):
                reach = -(-rate.ticks * most // rate.per)
                ticks.append(self.program.new_int_var(0, reach, f"{name}[{d}]") if rate.ticks and there else 0)

    def _make_objective(self) -> Any:
        """What is maximised, and v or s."""
        self.v: list[list[Any]] = []
        self.s: Any = None
        if self.instance.objective == "neurons":
            return sum(n for row in self.n for n in row)
        if self.instance.objective == "smallest_share":
            values = {SHARE * n // y.neurons for y in self.instance.layers for n in range(y.least, y.neurons + 1)}
            # Only shares that a layer can have: a free s creeps up by 1/10000 at a time.
            self.s = self.program.new_int_var_from_domain(cp_model.Domain.from_values(sorted(values)), "s")
            return self.s
        for d, chain in enumerate(self.chains):
            ends = zip(chain.value, chain.lower, chain.upper, strict=True)
            self.v.append(
                [
                    self.program.new_int_var(row[low], row[high], f"v[{d},{i + 1}]")
                    for i, (row, low, high) in enumerate(ends)
                ]
            )
        return sum(v for row in self.v for v in row)

    @row(1)
    def pairs(self) -> None:
        """z[d,i] = n[d,i-1] n[d,i]."""
        for n, z in zip(self.n, self.z, strict=True):
            for i in range(1, len(n)):
                self.program.add_multiplication_equality(z[i], [n[i - 1], n[i]])

    @row(2)
    def memory_limit(self) -> None:
        """M <= b_M: Eq. (5), hard memory."""
        for chain, memory in zip(self.chains, self.memory, strict=True):
            if chain.hard:
                limit = min(chain.memory_limit, chain.whole_totals[1])
                self.program.add(memory <= limit).with_name("memory limit")

    @row(3)
    def spilled_memory(self) -> None:
        """S >= M - b_M: Eq. (4), spill mode."""
        for chain, memory, spilled in zip(self.chains, self.memory, self.spilled, strict=True):
            if not chain.hard:
                limit = min(chain.memory_limit, chain.whole_totals[1])
                self.program.add(spilled >= memory - limit).with_name("spilled")

    @row(4)
    def work_limit(self) -> None:
        """W <= b_W: Eq. (5); what the time limit says of work alone is in the number."""
        for chain, work in zip(self.chains, self.work, strict=True):
            self.program.add(work <= min(chain.work_limit, chain.whole_totals[0])).with_name("work limit")

    @row(5)
    def main_transfers(self) -> None:
        """Whole ticks of main memory: per tM >= ticks M."""
        for chain, memory, ticks in zip(self.chains, self.memory, self.main_ticks, strict=True):
            if chain.transfer.ticks:
                self.program.add(chain.transfer.per * ticks >= chain.transfer.ticks * memory).with_name("tM")

    @row(6)
    def secondary_transfers(self) -> None:
        """Whole ticks of secondary memory: per tS >= ticks S."""
        for chain, spilled, ticks in zip(self.chains, self.spilled, self.spill_ticks, strict=True):
            if chain.spill.ticks and not chain.hard:
                self.program.add(chain.spill.per * ticks >= chain.spill.ticks * spilled).with_name("tS")

    @row(7)
    def time_limit(self) -> None:
        """W + tM + tS <= b_T - O_T: Eqs. (3)-(5)."""
        for chain, work, main, extra in zip(self.chains, self.work, self.main_ticks, self.spill_ticks, strict=True):
            limit = min(chain.time_limit, 2 * ACTIVITY_LIMIT)
            self.program.add(work + main + extra <= limit).with_name("time limit")

    @row(8)
    def contributions(self) -> None:
        """v lies below every line through two neighbouring points of U_di, one per distinct slope."""
        for chain, n, v in zip(self.chains, self.n, self.v, strict=False):
            for i, line in enumerate(chain.value):
                slope = None
                for k in range(chain.lower[i], chain.upper[i]):
                    if line[k + 1] - line[k] != slope:
                        slope = line[k + 1] - line[k]
                        self.program.add(v[i] <= line[k] + slope * (n[i] - k))

    @row(9)
    def shares(self) -> None:
        """N_i s <= 10000 n[d,i]."""
        if self.s is not None:
            for chain, row_of in zip(self.chains, self.n, strict=True):
                for n, most in zip(row_of, chain.upper, strict=True):
                    self.program.add(most * self.s <= SHARE * n)


def models(instance: Instance) -> list[Part]:
    """One program of the whole fleet per cycle time."""
    return parts(instance, CpSatMasks)


def solve_single(single: Instance, budget: Budget, start: Plan | None = None) -> SolveResult:
    """Best mask of one device under one cycle time, and a bound."""
    return trusted(single, CpSatMasks, budget, announce=True, start=start)


def run(instance: Instance, budget: Budget, start: str | Plan | None = None, params: Params = Params()) -> SolveResult:
    """Solve every device under every cycle time that matters."""
    return solve(instance, budget, solve_single, start, params)
