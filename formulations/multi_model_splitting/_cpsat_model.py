"""The CP-SAT model of multi-model splitting on chains of blocks.

============  ========================================================================  ==============
Symbol        Meaning                                                                   Shape
============  ========================================================================  ==============
x[k, d]       block k runs on device d                                                  (K, N) each p
st[k, d]      a segment on d starts with block k                                        (K, N) each p
en[k, d]      a segment on d ends with block k - 1                                      (K + 1, N)
src[s]        sensing on device s; tgt[t] likewise                                      (N,) each p
out[d]        end[0] sent by d because block 0 lies elsewhere (output: received)        (N,) each p, end
into[d]       received by d because the source lies elsewhere (output: sent)            (N,) each p, end
same[q, k]    p and an earlier twin q agree on source and blocks before k (sharing)     pairs of twins
last[q, k]    ... and both cut there: all tasks of p before the cut are merged with q's pairs of twins
C             cycle time or total latency, ticks
============  ========================================================================  ==============

``x[k, d] - x[k-1, d] = st[k, d] - en[k, d]`` and at most one start per (p, d). Valid clauses for each pipeline: two
blocks that no segment on ``d`` contains are not both on ``d``; a stretch of blocks that no segment of any device
contains is cut inside; a segment ends where some segment that begins like it may end. They tell the linear
relaxation, which otherwise spreads a model evenly over all devices and never cuts, where it must be cut.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from mapgap.formulations.multi_model_splitting._chains import Chain, Mask, capacities, sharing_groups, signal_groups
from mapgap.problems.multi_model_splitting import RESOURCES, UNITS, Instance, PipelinePlan, Plan

ROW = 2**30
"""Rows are split so that their activity stays below this."""


class Term(NamedTuple):
    """A task that happens if ``literal``: in the latency always, on the unit unless it is ``merged``."""

    device: int
    unit: str
    ticks: int
    literal: Any
    merged: Any = None


class Model:
    """Plans of objective at most ``limit``; ``minimise`` or any of them.

    Parameters
    ----------
    chains : list of Chain
        Of the same limit.
    limit : int
    lower : int
        A proven bound.
    """

    def __init__(
        self, instance: Instance, chains: list[Chain], limit: int, minimise: bool = True, lower: int = 0
    ) -> None:
        from ortools.sat.python import cp_model

        self.model: Any = cp_model.CpModel()
        self.instance, self.chains, self.limit = instance, chains, limit
        self.n = len(instance.devices)
        self.x: list[dict[tuple[int, int], Any]] = []
        self.st: list[dict[tuple[int, int], Any]] = []
        self.en: list[dict[tuple[int, int], Any]] = []
        self.src: list[dict[int, Any]] = []
        self.tgt: list[dict[int, Any]] = []
        for p, chain in enumerate(chains):
            self._segments(p, chain)
            self._clauses(p, chain)
            self.src.append(self._choice(f"src[{p}", chain.profile.sources))
            self.tgt.append(self._choice(f"tgt[{p}", chain.profile.targets))
        self.merged_block: dict[tuple[int, int], Any] = {}
        self.merged_move: dict[tuple[int, int], Any] = {}
        for group in sharing_groups(instance):
            for position, p in enumerate(group[1:], 1):
                self._twins(p, group[:position])
        self.terms = [self._terms(p, chain) for p, chain in enumerate(chains)]
        self._limits()
        self.objective = self.model.new_int_var(lower, limit, "C")
        if instance.objective == "throughput":
            self._cycle()
        else:
            self._latency()
        if minimise:
            self.model.minimize(self.objective)

    def _bool(self, name: str) -> Any:
        return self.model.new_bool_var(name)

    def _choice(self, name: str, among: tuple[int, ...]) -> dict[int, Any]:
        chosen = {d: self._bool(f"{name},{d}]") for d in among}
        self.model.add_exactly_one(chosen.values())
        return chosen

    def _segments(self, p: int, chain: Chain) -> None:
        """x, st, en of one pipeline; only where an allowed segment exists."""
        model, last = self.model, chain.blocks
        on = chain.cover[np.arange(last), np.arange(last)]
        begins, ends = np.asarray(chain.segments.any(axis=1)), np.asarray(chain.segments.any(axis=0))
        x = {(k, d): self._bool(f"x[{p},{k},{d}]") for k in range(last) for d in range(self.n) if on[k, d]}
        st = {(k, d): self._bool(f"st[{p},{k},{d}]") for k, d in x if k > 0 and begins[k, d]}
        en = {(k + 1, d): self._bool(f"en[{p},{k + 1},{d}]") for k, d in x if k + 1 < last and ends[k + 1, d]}
        st |= {(0, d): x[0, d] for d in range(self.n) if (0, d) in x and begins[0, d]}
        en |= {(last, d): x[last - 1, d] for d in range(self.n) if (last - 1, d) in x and ends[last, d]}
        for k in range(last):
            model.add_exactly_one([x[k, d] for d in range(self.n) if (k, d) in x])
            model.add_at_most_one([st[k, d] for d in range(self.n) if (k, d) in st])
        for d in range(self.n):
            for k in range(1, last):
                change = x.get((k, d), 0) - x.get((k - 1, d), 0)
                model.add(change == st.get((k, d), 0) - en.get((k, d), 0))
            model.add_at_most_one([st[k, d] for k in range(last) if (k, d) in st])
            if (0, d) in x and (0, d) not in st:
                model.add(x[0, d] == 0)
            if (last - 1, d) in x and (last, d) not in en:
                model.add(x[last - 1, d] == 0)
        self.x.append(x)
        self.st.append(st)
        self.en.append(en)

    def _clauses(self, p: int, chain: Chain) -> None:
        """Where the pipeline must be cut (see the module)."""
        model, x, st, en = self.model, self.x[p], self.st[p], self.en[p]
        cover, anywhere = chain.cover, np.asarray(chain.cover.any(axis=2))
        for d in range(self.n):
            for i, j in _smallest_gaps(cover[:, :, d]):
                model.add_bool_or([x[i, d].negated(), x[j, d].negated()])
            for k in range(chain.blocks):
                if (k, d) in st:
                    stops = np.flatnonzero(chain.segments[k, :, d]).tolist()
                    ends = [en[j, d] for j in stops if (j, d) in en]
                    model.add_bool_or([st[k, d].negated(), *ends])
                if (k + 1, d) in en:
                    begins = np.flatnonzero(chain.segments[:, k + 1, d]).tolist()
                    starts = [st[i, d] for i in begins if (i, d) in st]
                    model.add_bool_or([en[k + 1, d].negated(), *starts])
        for i, j in _smallest_gaps(anywhere):
            model.add_bool_or([st[k, d] for k in range(i + 1, j + 1) for d in range(self.n) if (k, d) in st])

    def _twins(self, p: int, earlier: list[int]) -> None:
        """Merging of ``p`` with one earlier twin, up to a common cut and perhaps the transfer after it (rule 9)."""
        model, last = self.model, self.chains[p].blocks
        ends: dict[int, list[Any]] = {k: [] for k in range(1, last + 1)}
        moves: dict[int, list[Any]] = {k: [] for k in range(1, last + 1)}
        for q in earlier:
            same = [self._bool(f"same[{p},{q},{k}]") for k in range(last + 2)]
            for s in sorted(self.src[p] | self.src[q]):
                self._agree(same[0], self.src[p].get(s, 0), self.src[q].get(s, 0))
            for t in sorted(self.tgt[p] | self.tgt[q]):
                self._agree(same[last + 1], self.tgt[p].get(t, 0), self.tgt[q].get(t, 0))
            for k in range(1, last + 2):
                model.add_implication(same[k], same[k - 1])
                for d in range(self.n) if k <= last else ():
                    self._agree(same[k], self.x[p].get((k - 1, d), 0), self.x[q].get((k - 1, d), 0))
            for k in range(1, last + 1):
                end, move = self._bool(f"last[{p},{q},{k}]"), self._bool(f"move[{p},{q},{k}]")
                model.add_implication(end, same[k])
                model.add_implication(move, end)
                model.add_implication(move, same[k + 1])
                if k < last:
                    for r in (p, q):
                        model.add_bool_or([end.negated(), *(self.st[r][i, d] for i, d in self.st[r] if i == k)])
                ends[k].append(end)
                moves[k].append(move)
        model.add_at_most_one([end for k in ends for end in ends[k]])
        for k in range(last):  # block k is merged if the common cut lies behind it, its transfer also if at it
            behind = [end for i in range(k + 1, last + 1) for end in ends[i]]
            self.merged_block[p, k] = self._any(behind, f"merged[{p},{k}]")
            if k > 0:
                self.merged_move[p, k] = self._any([*behind, *moves[k]], f"moved[{p},{k}]")
        self.merged_move[p, last] = self._any(moves[last], f"moved[{p},{last}]")

    def _agree(self, condition: Any, first: Any, second: Any) -> None:
        self.model.add(first == second).only_enforce_if(condition)

    def _any(self, literals: list[Any], name: str) -> Any:
        """A literal that is only true if one of the given is."""
        found = self._bool(name)
        self.model.add_bool_or([found.negated(), *literals])
        return found

    def _terms(self, p: int, chain: Chain) -> list[Term]:
        """Tasks (2) to (6) of one pipeline; sensing and the input transfer are in :meth:`_inputs`."""
        found, last = self._inputs(p, chain), chain.blocks
        block = {k: self.merged_block.get((p, k)) for k in range(last)}
        move = {k: self.merged_move.get((p, k)) for k in range(1, last + 1)}
        for (k, d), literal in self.x[p].items():
            found.append(Term(d, "accelerator", int(chain.inference[k, d]), literal, block[k]))
        for (k, d), literal in self.st[p].items():
            found.append(Term(d, "mcu", int(chain.load[k, d]), literal, block[k]))
            if k > 0:
                found.append(Term(d, "radio", int(chain.receive[k, d]), literal, move[k]))
        for (k, d), literal in self.en[p].items():
            found.append(Term(d, "mcu", int(chain.unload[k, d]), literal, block[k - 1]))
            if k < last:
                found.append(Term(d, "radio", int(chain.transmit[k, d]), literal, move[k]))
        leaving = {d: self.en[p][last, d] for d in range(self.n) if (last, d) in self.en[p]}
        for d, literal in self._unless(leaving, self.tgt[p]).items():
            found.append(Term(d, "radio", int(chain.transmit[last, d]), literal, move[last]))
        for d, literal in self._unless(self.tgt[p], leaving).items():
            found.append(Term(d, "radio", int(chain.receive[last, d]), literal, move[last]))
        return found

    def _inputs(self, p: int, chain: Chain) -> list[Term]:
        """Sensing and the input transfer; merged with those of earlier pipelines of the same signal (rule 9)."""
        first = {d: self.st[p][0, d] for d in range(self.n) if (0, d) in self.st[p]}
        earlier = [q for group in signal_groups(self.instance) if p in group for q in group if q < p]
        found = []
        for s, literal in self.src[p].items():
            shared = None
            if others := [self.src[q][s] for q in earlier if s in self.src[q]]:
                shared = self._any(others, f"sensed[{p},{s}]")
            found.append(Term(s, "sensor", int(chain.profile.sensing[s]), literal, shared))
        send, receive = self._unless(self.src[p], first), self._unless(first, self.src[p])
        moved = self._any(self._same_input(p, earlier), f"input[{p}]") if earlier else None
        found += [Term(s, "radio", int(chain.transmit[0, s]), literal, moved) for s, literal in send.items()]
        found += [Term(d, "radio", int(chain.receive[0, d]), literal, moved) for d, literal in receive.items()]
        return found

    def _same_input(self, p: int, earlier: list[int]) -> list[Any]:
        """Literals that are only true if an earlier pipeline has the same source and the same first device."""
        found = []
        for q in earlier:
            both = self._bool(f"input[{p},{q}]")
            for s in sorted(self.src[p] | self.src[q]):
                self._agree(both, self.src[p].get(s, 0), self.src[q].get(s, 0))
            for d in range(self.n):
                self._agree(both, self.x[p].get((0, d), 0), self.x[q].get((0, d), 0))
            found.append(both)
        return found

    def _unless(self, here: dict[int, Any], there: dict[int, Any]) -> dict[int, Any]:
        """Per device of ``here`` a literal that equals ``here and not there``."""
        found = {}
        for d, literal in here.items():
            other = there.get(d)
            if other is None:
                found[d] = literal
                continue
            both = self._bool("unless")
            self.model.add_implication(both, literal)
            self.model.add_implication(both, other.negated())
            self.model.add_bool_or([both, literal.negated(), other])
            found[d] = both
        return found

    def _counted(self, literal: Any, merged: Any) -> Any:
        """``literal`` unless ``merged`` (at least; minimisation does the rest)."""
        if merged is None:
            return literal
        counted = self._bool("counted")
        self.model.add_bool_or([counted, literal.negated(), merged])
        return counted

    def _limits(self) -> None:
        """Weights, bias and layers of every device (Sec. 5.2)."""
        capacity = capacities(self.instance)
        rows: dict[tuple[int, int], list[tuple[int, Any]]] = {}
        for p, chain in enumerate(self.chains):
            for (k, d), literal in self.x[p].items():
                counted = self._counted(literal, self.merged_block.get((p, k)))
                for r in range(len(RESOURCES)):
                    if chain.demand[r, k]:
                        rows.setdefault((r, d), []).append((int(chain.demand[r, k]), counted))
        for (r, d), terms in rows.items():
            if sum(size for size, _ in terms) > capacity[r, d]:
                row = sum(size * literal for size, literal in terms)
                self.model.add(row <= int(capacity[r, d])).with_name(f"{RESOURCES[r]}[{d}]")

    def _cycle(self) -> None:
        """C is at least the load of every unit (Sec. 5.4.2)."""
        loads: dict[tuple[int, str], list[tuple[int, Any]]] = {(d, u): [] for d in range(self.n) for u in UNITS}
        for terms in self.terms:
            for term in terms:
                if term.ticks > self.limit:  # even a merged task loads the unit once
                    self.model.add(term.literal == 0)
                elif term.ticks:
                    loads[term.device, term.unit].append((term.ticks, self._counted(term.literal, term.merged)))
        for (d, unit), load in loads.items():
            self.model.add(self._sum(load) <= self.objective).with_name(f"load[{d},{unit}]")

    def _latency(self) -> None:
        """C is the sum of all tasks of all pipelines."""
        slack = self.limit - sum(chain.shortest for chain in self.chains)
        lengths = []
        for p, chain in enumerate(self.chains):
            most = min(chain.shortest + slack, chain.profile.longest)
            length = self.model.new_int_var(chain.shortest, most, f"latency[{p}]")
            terms = [(term.ticks, term.literal) for term in self.terms[p] if term.ticks]
            self.model.add(self._sum(terms, most) == length).with_name(f"latency[{p}]")
            lengths.append(length)
        self.model.add(sum(lengths) == self.objective).with_name("total")

    def _sum(self, terms: list[tuple[int, Any]], most: int | None = None) -> Any:
        """The sum of terms that stays below ``most``; long rows in parts (see ``ROW``)."""
        most = self.limit if most is None else most
        if len(terms) == 1 or sum(ticks for ticks, _ in terms) < ROW:
            return sum(ticks * literal for ticks, literal in terms)
        parts = []
        for part in (terms[: len(terms) // 2], terms[len(terms) // 2 :]):
            variable = self.model.new_int_var(0, most, "part")
            self.model.add(self._sum(part, most) == variable)
            parts.append(variable)
        return sum(parts)

    def hint(self, plan: Plan) -> dict[Any, int]:
        """x, source and target of a plan, where this model has the variables."""
        values: dict[Any, int] = {}
        for p, decisions in enumerate(plan.pipelines):
            cuts = self.chains[p].cuts
            home = {i: s.device for s in decisions.segments for i in range(s.first, s.last)}
            values |= {literal: int(home[cuts[k]] == d) for (k, d), literal in self.x[p].items()}
            values |= {literal: int(decisions.source == s) for s, literal in self.src[p].items()}
            values |= {literal: int(decisions.target == t) for t, literal in self.tgt[p].items()}
        return values

    def decode(self, value: Any) -> Plan:
        """The plan of a solution."""
        found: list[PipelinePlan] = []
        for p, chain in enumerate(self.chains):
            devices = [
                next(d for d in range(self.n) if (k, d) in self.x[p] and value(self.x[p][k, d]))
                for k in range(chain.blocks)
            ]
            source = next(s for s, literal in self.src[p].items() if value(literal))
            target = next(t for t, literal in self.tgt[p].items() if value(literal))
            found.append(chain.plan(source, target, devices))
        return Plan(pipelines=tuple(found))


def _smallest_gaps(cover: Mask) -> list[tuple[int, int]]:
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
