"""The CP-SAT model of multi-model splitting: which device runs which block of which pipeline."""

from __future__ import annotations

from collections.abc import Collection
from itertools import chain as joined
from itertools import pairwise, product
from typing import NamedTuple, TypeAlias

import numpy as np
from ortools.sat.python import cp_model

from mapgap.core import PlanBase
from mapgap.formulations.multi_model_splitting.chains import Chain, sharing_groups, signal_groups
from mapgap.problems.multi_model_splitting import RESOURCES, UNITS, Instance, PipelinePlan, Plan
from mapgap.problems.multi_model_splitting.evaluate import MEDIUM
from mapgap.problems.multi_model_splitting.lowered.tables import Mask, capacities
from mapgap.solvers.cpsat import CpSatModel
from mapgap.solvers.model import Value, row

ROW = 2**30
"""Rows are split so that their activity stays below this."""

Literal: TypeAlias = cp_model.IntVar
Terms = list[tuple[int, Literal]]


class Task(NamedTuple):
    """A task that happens if ``literal``: in the latency always, on the unit if ``paid``; ``sends``: a transmission."""

    device: int
    unit: str
    ticks: int
    literal: Literal
    paid: Literal
    sends: bool = False


class AssignmentModel(CpSatModel):
    """Plans of objective at most ``limit``, the best one or (``minimise=False``) any of them.

    Sets and data (times in ticks)
        p                 pipelines; k = 0..K[p]-1 its blocks, boundary k before block k, boundary K[p] at the end
        q                 an earlier twin of p: same signal, same model, operation sharing (rule 9 of the problem)
        d; S[p], T[p]     devices; those that p may start from and end at
        A[p]              (i, j, d): the blocks i..j-1 of p may be a segment on d
        size_r[p,k]       weights, bias and layers (r) of a block; W_r[d] what an accelerator holds
        tasks             the six types of Sec. 5.4.1, each with a device, a unit, ticks and the literal z that says
                          whether it happens: sensing src; loading st; inference x; unloading en; transfers st and
                          en for 0 < k < K, send, get, leave, reach at the ends

    Variables (binary unless said)
        x[p,k,d]          block k runs on d
        st[p,k,d]         a segment on d starts with block k;  en[p,k,d] one ends with block k-1
                          (st[p,0,d] is x[p,0,d], en[p,K,d] is x[p,K-1,d])
        src[p,d]          sensing on d in S[p];  tgt[p,d] the target is d in T[p]
        send[p,d]         d sends the input because block 0 is elsewhere;  get[p,d] d receives it
        leave[p,d]        d sends the output because the target is elsewhere;  reach[p,d] d receives it
        same[p,q,k]       p and q agree on the source and on the blocks before k; k = K+1: on the target as well
        last[p,q,k]       ... and both are cut at k: the tasks before are merged with those of q
        move[p,q,k]       ... and the transfer of boundary k too
        merged[p,k]       the tasks on block k are merged;  moved[p,k] those that transfer boundary k > 0
        sensed[p,d]       sensing on d is merged;  alike[p,q] p and q of one signal have the same source and first
                          device;  moved[p,0] the transfer of the input is merged
        late[p,k,d,e]     boundary k moves from d to e: en[p,k,d] (src if k = 0) and st[p,k,e] (tgt if k = K), by rows
                          that come with it; only where that takes longer than the least latency of d (rule 14), and
                          then a task on the radio of d for the ticks beyond
        paid[z,m]         a task z, or a block in memory, that m does not merge
        latency[p]        integer, sum of the tasks of p
        C                 integer in lower..limit, cycle time or total latency

    Objective
        minimise C

    Rows
        (1)   sum_d x[p,k,d] = 1
        (2)   st[p,k,d] - en[p,k,d] = x[p,k,d] - x[p,k-1,d],  st[p,k,d] <= x[p,k,d]          0 < k < K
        (3)   sum_k st[p,k,d] <= 1
        (4)   sum_d src[p,d] = 1
        (5)   sum_d tgt[p,d] = 1
        (6)   send[p,d] = src[p,d] and not x[p,0,d],  get[p,d] = x[p,0,d] and not src[p,d]
        (7)   leave[p,d] = x[p,K-1,d] and not tgt[p,d],  reach[p,d] = tgt[p,d] and not x[p,K-1,d]
        (8)   sum_d st[p,k,d] <= 1                                                           implied
        (9)   not (x[p,i,d] and x[p,j,d])                     if no segment on d in A[p] has i and j; implied
        (10)  sum_{i<k<=j, d} st[p,k,d] >= 1                  if no segment in A[p] has i and j; implied
        (11)  st[p,i,d] -> en[p,j,d] for some (i, j, d) in A[p], and the reverse             implied
        (12)  same[p,q,k] -> same[p,q,k-1]
        (13)  same[p,q,0] -> src[p,d] = src[q,d]
        (14)  same[p,q,k] -> x[p,k-1,d] = x[q,k-1,d]                                         0 < k <= K
        (15)  same[p,q,K+1] -> tgt[p,d] = tgt[q,d]
        (16)  last[p,q,k] -> same[p,q,k] and, if k < K, sum_d st[p,k,d] = sum_d st[q,k,d] = 1
        (17)  move[p,q,k] -> last[p,q,k] and same[p,q,k+1]
        (18)  sum_{q,k} last[p,q,k] <= 1                                                     implied
        (19)  merged[p,k] -> last[p,q,i] for some q and i > k
        (20)  moved[p,k] -> move[p,q,k] or last[p,q,i] for some q and i > k                  0 < k
        (21)  alike[p,q] -> src[p,d] = src[q,d] and x[p,0,d] = x[q,0,d]
        (22)  sensed[p,d] -> src[q,d] and moved[p,0] -> alike[p,q] for some earlier q of the same signal
        (23)  paid[z,m] or m or not z
        (24)  sum_{p,k} size_r[p,k] paid[x[p,k,d], merged[p,k]] <= W_r[d]
        (25)  sum of ticks paid[z,m] over the tasks of a unit <= C, none longer than limit   if throughput
              the same over all transmissions, on one medium (rule 13)
        (26)  sum of ticks z over the tasks of p = latency[p],  sum_p latency[p] = C         if latency

    Rows (9) to (11) tell the linear relaxation, which otherwise spreads a model evenly over all devices and never
    cuts, where it must be cut.

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
        without: Collection[int] = (),
    ) -> None:
        super().__init__()
        self.instance, self.chains, self.limit = instance, chains, limit
        self.devices = range(len(instance.devices))
        self.x: list[dict[tuple[int, int], Literal]] = []
        self.st: list[dict[tuple[int, int], Literal]] = []
        self.en: list[dict[tuple[int, int], Literal]] = []
        self.src: list[dict[int, Literal]] = []
        self.tgt: list[dict[int, Literal]] = []
        self.send: list[dict[int, Literal]] = []
        self.get: list[dict[int, Literal]] = []
        self.leave: list[dict[int, Literal]] = []
        self.reach: list[dict[int, Literal]] = []
        for p, chain in enumerate(chains):
            self._assign(p, chain)
        self._merge()
        self.paid: dict[tuple[str, str], tuple[Literal, Literal, Literal]] = {}
        self.held = [
            {(k, d): self._paid(z, self.merged.get((p, k))) for (k, d), z in self.x[p].items()}
            for p in range(len(chains))
        ]
        self.tasks = [self._tasks(p, chain) for p, chain in enumerate(chains)]
        self.ticks = self.program.new_int_var(lower, limit, "C")
        self.add_rows(without)
        if minimise:
            self.program.minimize(self.ticks)

    # --- variables ---

    def _bool(self, name: str) -> Literal:
        return self.program.new_bool_var(name)

    def _but_not(self, name: str, here: dict[int, Literal], there: dict[int, Literal]) -> dict[int, Literal]:
        """Variables for ``here and not there``; ``here`` itself where there is no ``there``."""
        return {d: self._bool(f"{name},{d}]") if d in there else z for d, z in here.items()}

    def _assign(self, p: int, chain: Chain) -> None:
        """Variables of one pipeline; only where an allowed segment exists."""
        last, bool_ = chain.blocks, self._bool
        on = chain.cover[np.arange(last), np.arange(last)]
        begins, ends = np.asarray(chain.segments.any(axis=1)), np.asarray(chain.segments.any(axis=0))
        x = {(k, d): bool_(f"x[{p},{k},{d}]") for k in range(last) for d in self.devices if on[k, d]}
        st = {(k, d): bool_(f"st[{p},{k},{d}]") for k, d in x if k > 0 and begins[k, d]}
        en = {(k + 1, d): bool_(f"en[{p},{k + 1},{d}]") for k, d in x if k + 1 < last and ends[k + 1, d]}
        first = {d: x[0, d] for d in self.devices if (0, d) in x}
        final = {d: x[last - 1, d] for d in self.devices if (last - 1, d) in x}
        self.x.append(x)
        self.st.append(st | {(0, d): z for d, z in first.items()})
        self.en.append(en | {(last, d): z for d, z in final.items()})
        self.src.append({d: bool_(f"src[{p},{d}]") for d in chain.profile.sources})
        self.tgt.append({d: bool_(f"tgt[{p},{d}]") for d in chain.profile.targets})
        self.send.append(self._but_not(f"send[{p}", self.src[p], first))
        self.get.append(self._but_not(f"get[{p}", first, self.src[p]))
        self.leave.append(self._but_not(f"leave[{p}", final, self.tgt[p]))
        self.reach.append(self._but_not(f"reach[{p}", self.tgt[p], final))

    def _merge(self) -> None:
        """Variables of operation sharing."""
        self.same: dict[tuple[int, int], list[Literal]] = {}
        self.last: dict[tuple[int, int, int], Literal] = {}
        self.move: dict[tuple[int, int, int], Literal] = {}
        self.merged: dict[tuple[int, int], Literal] = {}
        self.moved: dict[tuple[int, int], Literal] = {}
        self.sensed: dict[tuple[int, int], Literal] = {}
        self.alike: dict[tuple[int, int], Literal] = {}
        for group in sharing_groups(self.instance):
            for position, p in enumerate(group[1:], 1):
                blocks = self.chains[p].blocks
                for q in group[:position]:
                    self.same[p, q] = [self._bool(f"same[{p},{q},{k}]") for k in range(blocks + 2)]
                    for k in range(1, blocks + 1):
                        self.last[p, q, k] = self._bool(f"last[{p},{q},{k}]")
                        self.move[p, q, k] = self._bool(f"move[{p},{q},{k}]")
                self.merged |= {(p, k): self._bool(f"merged[{p},{k}]") for k in range(blocks)}
                self.moved |= {(p, k): self._bool(f"moved[{p},{k}]") for k in range(1, blocks + 1)}
        for group in signal_groups(self.instance):
            for position, p in enumerate(group[1:], 1):
                heard = set().union(*(self.src[q] for q in group[:position]))
                self.sensed |= {(p, d): self._bool(f"sensed[{p},{d}]") for d in self.src[p] if d in heard}
                self.alike |= {(p, q): self._bool(f"alike[{p},{q}]") for q in group[:position]}
                self.moved[p, 0] = self._bool(f"moved[{p},0]")

    def _paid(self, literal: Literal, merged: Literal | None) -> Literal:
        """The literal of a task that loads its unit: ``literal`` itself where nothing can merge it."""
        if merged is None:
            return literal
        key = literal.name, merged.name
        if key not in self.paid:
            self.paid[key] = (self._bool(f"paid[{key[0]},{key[1]}]"), literal, merged)
        return self.paid[key][0]

    def _tasks(self, p: int, chain: Chain) -> list[Task]:
        """The tasks of one pipeline (Sec. 5.4.1)."""
        found: list[Task] = []
        last, merged, moved = chain.blocks, self.merged, self.moved

        def task(d: int, unit: str, ticks: int, literal: Literal, merge: Literal | None, sends: bool = False) -> None:
            if ticks:
                found.append(Task(d, unit, int(ticks), literal, self._paid(literal, merge), sends))

        for d, z in self.src[p].items():
            task(d, "sensor", chain.profile.sensing[d], z, self.sensed.get((p, d)))  # (1)
        ends = ((self.send, chain.transmit, 0), (self.get, chain.receive, 0))
        for literals, ticks, k in (*ends, (self.leave, chain.transmit, last), (self.reach, chain.receive, last)):
            for d, z in literals[p].items():
                task(d, "radio", ticks[k, d], z, moved.get((p, k)), ticks is chain.transmit)  # (6), (2) at the ends
        for (k, d), z in self.x[p].items():
            task(d, "accelerator", chain.inference[k, d], z, merged.get((p, k)))  # (4)
        for (k, d), z in self.st[p].items():
            task(d, "mcu", chain.load[k, d], z, merged.get((p, k)))  # (3)
            if k > 0:
                task(d, "radio", chain.receive[k, d], z, moved.get((p, k)))  # (2)
        for (k, d), z in self.en[p].items():
            task(d, "mcu", chain.unload[k, d], z, merged.get((p, k - 1)))  # (5)
            if k < last:
                task(d, "radio", chain.transmit[k, d], z, moved.get((p, k)), True)  # (6)
        for (d, e), k in product(chain.profile.later, range(last + 1)):
            z = self.en[p].get((k, d)) if k else self.src[p].get(d)
            w = self.st[p].get((k, e)) if k < last else self.tgt[p].get(e)
            if z is not None and w is not None and (beyond := chain.beyond(k, d, e)):
                task(d, "radio", beyond, self._both(f"late[{p},{k},{d},{e}]", z, w), moved.get((p, k)), True)
        return found

    def _both(self, name: str, first: Literal, second: Literal) -> Literal:
        """A variable that is 1 exactly where two others are."""
        both = self._bool(name)
        self.program.add_implication(both, first)
        self.program.add_implication(both, second)
        self.program.add_bool_or([both, first.negated(), second.negated()])
        return both

    # --- rows ---

    @row(1)
    def _one_device(self) -> None:
        """Each block runs on one device."""
        for p, chain in enumerate(self.chains):
            for k in range(chain.blocks):
                self.program.add_exactly_one(self._at(self.x[p], k))

    @row(2)
    def _changes(self) -> None:
        """A segment starts where its device begins to run blocks, and ends where it no longer does."""
        for x, st, en, chain in zip(self.x, self.st, self.en, self.chains, strict=True):
            for d in self.devices:
                for k in range(1, chain.blocks):
                    change = x.get((k, d), 0) - x.get((k - 1, d), 0)
                    self.program.add(change == st.get((k, d), 0) - en.get((k, d), 0))
                    if (k, d) in st:
                        self.program.add_implication(st[k, d], x[k, d])

    @row(3)
    def _one_segment(self) -> None:
        """A pipeline has at most one segment on a device."""
        for st in self.st:
            for d in self.devices:
                self.program.add_at_most_one([z for (_, at), z in st.items() if at == d])

    @row(4)
    def _one_source(self) -> None:
        """Each pipeline has one source."""
        for src in self.src:
            self.program.add_exactly_one(src.values())

    @row(5)
    def _one_target(self) -> None:
        """Each pipeline has one target."""
        for tgt in self.tgt:
            self.program.add_exactly_one(tgt.values())

    @row(6)
    def _input_moves(self) -> None:
        """The input moves if the first segment is not on the source."""
        for p in range(len(self.chains)):
            first = self._on(self.st[p], 0)
            self._define(self.send[p], self.src[p], first)
            self._define(self.get[p], first, self.src[p])

    @row(7)
    def _output_moves(self) -> None:
        """The output moves if the last segment is not on the target."""
        for p, chain in enumerate(self.chains):
            final = self._on(self.en[p], chain.blocks)
            self._define(self.leave[p], final, self.tgt[p])
            self._define(self.reach[p], self.tgt[p], final)

    @row(8, implied=True)
    def _one_start(self) -> None:
        """At most one segment starts with a block."""
        for p, chain in enumerate(self.chains):
            for k in range(chain.blocks):
                self.program.add_at_most_one(self._at(self.st[p], k))

    @row(9, implied=True)
    def _apart(self) -> None:
        """Two blocks that no segment on a device contains are not both on it."""
        for x, chain in zip(self.x, self.chains, strict=True):
            for d in self.devices:
                for i, j in smallest_gaps(chain.cover[:, :, d]):
                    self.program.add_bool_or([x[i, d].negated(), x[j, d].negated()])

    @row(10, implied=True)
    def _cut_somewhere(self) -> None:
        """A stretch of blocks that no segment contains is cut inside."""
        for st, chain in zip(self.st, self.chains, strict=True):
            for i, j in smallest_gaps(np.asarray(chain.cover.any(axis=2))):
                self.program.add_bool_or([z for k in range(i + 1, j + 1) for z in self._at(st, k)])

    @row(11, implied=True)
    def _whole_segments(self) -> None:
        """A segment ends where some segment that starts like it may end, and the reverse."""
        for st, en, chain in zip(self.st, self.en, self.chains, strict=True):
            for (k, d), z in st.items():
                ends = np.flatnonzero(chain.segments[k, :, d]).tolist()
                self.program.add_bool_or([z.negated(), *(en[j, d] for j in ends if (j, d) in en)])
            for (k, d), z in en.items():
                starts = np.flatnonzero(chain.segments[:, k, d]).tolist()
                self.program.add_bool_or([z.negated(), *(st[i, d] for i in starts if (i, d) in st)])

    @row(12)
    def _agreement_grows(self) -> None:
        """Who agrees up to a boundary agrees up to the one before."""
        for same in self.same.values():
            for k in range(1, len(same)):
                self.program.add_implication(same[k], same[k - 1])

    @row(13)
    def _same_source(self) -> None:
        """Agreement begins with the source."""
        for (p, q), same in self.same.items():
            self._equal(same[0], self.src[p], self.src[q])

    @row(14)
    def _same_devices(self) -> None:
        """Who agrees up to a boundary has the block before it on the same device."""
        for (p, q), same in self.same.items():
            for k in range(1, len(same) - 1):
                self._equal(same[k], self._on(self.x[p], k - 1), self._on(self.x[q], k - 1))

    @row(15)
    def _same_target(self) -> None:
        """Agreement beyond the last boundary is about the target."""
        for (p, q), same in self.same.items():
            self._equal(same[-1], self.tgt[p], self.tgt[q])

    @row(16)
    def _common_cut(self) -> None:
        """A common cut lies where both agree and both are cut."""
        for (p, q, k), z in self.last.items():
            self.program.add_implication(z, self.same[p, q][k])
            for r in (p, q) if k < self.chains[p].blocks else ():
                self.program.add_bool_or([z.negated(), *self._at(self.st[r], k)])

    @row(17)
    def _common_transfer(self) -> None:
        """The transfer at a common cut is the same one if it leads to the same device."""
        for (p, q, k), z in self.move.items():
            self.program.add_implication(z, self.last[p, q, k])
            self.program.add_implication(z, self.same[p, q][k + 1])

    @row(18, implied=True)
    def _one_common_cut(self) -> None:
        """One twin and one cut will do: who shares the longest beginning shares all that others would."""
        for p in {p for p, _, _ in self.last}:
            self.program.add_at_most_one([z for (r, _, _), z in self.last.items() if r == p])

    @row(19)
    def _merged_block(self) -> None:
        """Only what lies before a common cut is merged."""
        for (p, k), z in self.merged.items():
            self.program.add_bool_or([z.negated(), *self._cuts_behind(p, k)])

    @row(20)
    def _merged_transfer(self) -> None:
        """A transfer is merged before a common cut, or at it."""
        for (p, k), z in self.moved.items():
            if k > 0:
                at = [m for (r, _, i), m in self.move.items() if (r, i) == (p, k)]
                self.program.add_bool_or([z.negated(), *self._cuts_behind(p, k), *at])

    @row(21)
    def _same_input(self) -> None:
        """Two inputs are alike that move from the same source to the same first device."""
        for (p, q), z in self.alike.items():
            self._equal(z, self.src[p], self.src[q])
            self._equal(z, self._on(self.st[p], 0), self._on(self.st[q], 0))

    @row(22)
    def _merged_input(self) -> None:
        """Sensing is merged if an earlier pipeline of the signal senses there, and the transfer with an alike one."""
        for (p, d), z in self.sensed.items():
            others = [self.src[q][d] for r, q in self.alike if r == p and d in self.src[q]]
            self.program.add_bool_or([z.negated(), *others])
        for p in {p for p, _ in self.alike}:
            alike = [z for (r, _), z in self.alike.items() if r == p]
            self.program.add_bool_or([self.moved[p, 0].negated(), *alike])

    @row(23)
    def _pays(self) -> None:
        """What happens and is not merged is paid."""
        for paid, literal, merged in self.paid.values():
            self.program.add_bool_or([paid, literal.negated(), merged])

    @row(24)
    def _memory(self) -> None:
        """Weights, bias and layers fit into every accelerator (Sec. 5.2)."""
        for r, resource in enumerate(RESOURCES):
            for d, capacity in enumerate(capacities(self.instance)[r].tolist()):
                terms = [
                    (int(chain.demand[r, k]), held[k, d])
                    for held, chain in zip(self.held, self.chains, strict=True)
                    for k in range(chain.blocks)
                    if (k, d) in held and chain.demand[r, k]
                ]
                if sum(size for size, _ in terms) > capacity:
                    total = sum(size * z for size, z in terms)
                    self.program.add(total <= capacity).with_name(f"{resource}[{d}]")

    @row(25)
    def _cycle(self) -> None:
        """C is at least the load of every unit (Sec. 5.4.2), and of one medium (rule 13)."""
        if self.instance.objective != "throughput":
            return
        loads: dict[tuple[int, str], Terms] = {(d, unit): [] for d in self.devices for unit in UNITS}
        loads[MEDIUM] = []
        for task in joined(*self.tasks):
            if task.ticks > self.limit:  # even a merged task loads the unit once
                self.program.add(task.literal == 0)
            else:
                loads[task.device, task.unit].append((task.ticks, task.paid))
                if self.instance.in_turn and task.sends:
                    loads[MEDIUM].append((task.ticks, task.paid))
        for (d, unit), terms in loads.items():
            if not terms and (d, unit) == MEDIUM:
                continue
            name = f"load[{d},{unit}]"
            self.program.add(self._sum(name, terms, self.limit) <= self.ticks).with_name(name)

    @row(26)
    def _latency(self) -> None:
        """C is the sum of all tasks of all pipelines."""
        if self.instance.objective != "latency":
            return
        slack = self.limit - sum(chain.shortest for chain in self.chains)
        lengths = []
        for p, chain in enumerate(self.chains):
            name, most = f"latency[{p}]", min(chain.shortest + slack, chain.profile.longest)
            length = self.program.new_int_var(chain.shortest, most, name)
            terms = [(task.ticks, task.literal) for task in self.tasks[p]]
            self.program.add(self._sum(name, terms, most) == length).with_name(name)
            lengths.append(length)
        self.program.add(sum(lengths) == self.ticks).with_name("total")

    # --- what rows are made of ---

    def _at(self, literals: dict[tuple[int, int], Literal], k: int) -> list[Literal]:
        return list(self._on(literals, k).values())

    def _on(self, literals: dict[tuple[int, int], Literal], k: int) -> dict[int, Literal]:
        return {d: literals[k, d] for d in self.devices if (k, d) in literals}

    def _define(self, both: dict[int, Literal], here: dict[int, Literal], there: dict[int, Literal]) -> None:
        """``both = here and not there`` where the two meet."""
        for d in sorted(here.keys() & there.keys()):
            self.program.add_implication(both[d], here[d])
            self.program.add_implication(both[d], there[d].negated())
            self.program.add_bool_or([both[d], here[d].negated(), there[d]])

    def _equal(self, condition: Literal, first: dict[int, Literal], second: dict[int, Literal]) -> None:
        """``first = second`` on every device if ``condition``."""
        for d in sorted(first | second):
            self.program.add(first.get(d, 0) == second.get(d, 0)).only_enforce_if(condition)

    def _cuts_behind(self, p: int, k: int) -> list[Literal]:
        return [z for (r, _, i), z in self.last.items() if r == p and i > k]

    def _sum(self, name: str, terms: Terms, most: int) -> cp_model.LinearExprT:
        """A sum that stays below ``most``; long ones in parts (see ``ROW``)."""
        if len(terms) == 1 or sum(ticks for ticks, _ in terms) < ROW:
            return sum(ticks * z for ticks, z in terms)
        half = len(terms) // 2
        parts = []
        for suffix, some in (("a", terms[:half]), ("b", terms[half:])):
            variable = self.program.new_int_var(0, most, f"{name}{suffix}")
            self.program.add(self._sum(f"{name}{suffix}", some, most) == variable)
            parts.append(variable)
        return sum(parts)

    # --- plans ---

    def assignment(self, plan: PlanBase) -> dict[Literal, int] | None:
        """Blocks, source and target; ``None`` if the chains lack a segment, or one device has two adjacent ones."""
        assert isinstance(plan, Plan)
        for chain, decisions in zip(self.chains, plan.pipelines, strict=True):
            used = [segment.device for segment in decisions.segments]
            if not chain.holds(decisions) or any(a == b for a, b in pairwise(used)):
                return None
        return self._nearest(plan)

    def hint(self, plan: PlanBase) -> bool:
        """Give the engine as much of a plan as this model has the variables for."""
        assert isinstance(plan, Plan)
        for variable, value in self._nearest(plan).items():
            self._hint(variable, value)
        return self.assignment(plan) is not None

    def _nearest(self, plan: Plan) -> dict[Literal, int]:
        values: dict[Literal, int] = {}
        for p, decisions in enumerate(plan.pipelines):
            cuts = self.chains[p].cuts
            home = {i: s.device for s in decisions.segments for i in range(s.first, s.last)}
            values |= {z: int(home[cuts[k]] == d) for (k, d), z in self.x[p].items()}
            values |= {z: int(decisions.source == d) for d, z in self.src[p].items()}
            values |= {z: int(decisions.target == d) for d, z in self.tgt[p].items()}
        return values

    def plan(self, value: Value) -> Plan:
        """The device of every block, source and target."""
        found: list[PipelinePlan] = []
        for chain, x, src, tgt in zip(self.chains, self.x, self.src, self.tgt, strict=True):
            devices = [next(d for d, z in self._on(x, k).items() if value(z)) for k in range(chain.blocks)]
            source = next(d for d, z in src.items() if value(z))
            target = next(d for d, z in tgt.items() if value(z))
            found.append(chain.plan(source, target, devices))
        return Plan(pipelines=tuple(found))


def smallest_gaps(cover: Mask) -> list[tuple[int, int]]:
    """Pairs ``i < j`` without a common segment of which every proper stretch has one; single blocks excluded."""
    found, count = [], len(cover)
    for i in range(count):
        for j in range(i + 1, count):
            if cover[i, j]:
                continue
            if cover[i + 1, j] and cover[i, j - 1]:
                found.append((i, j))
            break
    return found
