"""The execution plans of one pipeline, given what is placed, and the best one (Algorithm 1, lines 5 to 11)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from mapgap.core import Budget
from mapgap.heuristics.multi_model_splitting.search.candidate_search import FORBIDDEN, Path, Search
from mapgap.heuristics.multi_model_splitting.search.resources import SENSOR, Ends, Ledger, costs, misfits, remaining
from mapgap.problems.multi_model_splitting import Instance
from mapgap.problems.multi_model_splitting.lowered.tables import Array, Tables

Choice = tuple[Path, Ends | None]


@dataclass(frozen=True)
class Candidates:
    """Every way to run one pipeline that fits beside the plans selected before.

    They are not listed (:mod:`.search`); the first one in the order of the list is kept among equal ones. Source and
    target go through their candidates by number (Sec. 5.1); why plans whose first segment is on the source are apart
    says :func:`mapgap.heuristics.multi_model_splitting.search.resources.costs`.

    Parameters
    ----------
    index : int
        Of the pipeline.
    tables : Tables
        Of the pipeline.
    ledger : Ledger
        What the selected plans occupy.
    ends : bool
        Plan source and target together with the segments; otherwise the model's own tasks alone decide.
    """

    instance: Instance
    index: int
    tables: Tables
    ledger: Ledger
    budget: Budget
    ends: bool = True

    def best(self) -> Choice | None:
        """Line 8 or 10, by the objective; ``None`` if nothing fits (out of resource) or time is up."""
        if self.instance.objective == "throughput":
            return self.least_latency(self.least_cycle())
        return self.least_latency()

    def least_cycle(self) -> int:
        """The least cycle time of any candidate joined with the selected plans."""
        least = FORBIDDEN
        for ends in self._ends():
            largest, _ = costs(self.tables, self.ledger, ends)
            found = self._search(largest, "max").run(floor=self._floor(ends), below=least)
            least = least if found is None else found[0]
        return least

    def least_latency(self, cycle: int = FORBIDDEN - 1) -> Choice | None:
        """The first candidate of least latency among those up to a cycle time."""
        choice, least = None, FORBIDDEN
        for ends in self._ends():
            if ends and self._floor(ends) > cycle:
                continue
            largest, latency = costs(self.tables, self.ledger, ends)
            sensing = int(self.tables.sensing[ends.source]) if ends else 0
            allowed = np.where(largest > cycle, FORBIDDEN, latency)
            found = self._search(allowed, "sum").run(floor=sensing, below=least)
            if found is not None:
                least, choice = found[0], (found[1], ends)
        return choice

    def _ends(self) -> list[Ends | None]:
        if not self.ends:
            return [None]
        pairs = [(s, t) for s in self.instance.sources(self.index) for t in self.instance.targets(self.index)]
        return [Ends(s, t, at_source) for s, t in pairs for at_source in (True, False)]

    def _floor(self, ends: Ends | None) -> int:
        """Cycle time before any segment is placed: what is there, and sensing."""
        if ends is None:
            return self.ledger.cycle
        sensing = int(self.ledger.load[SENSOR, ends.source] + self.tables.sensing[ends.source])
        return max(self.ledger.cycle, sensing)

    def _search(self, cost: Array, combine: Literal["sum", "max"]) -> Search:
        numbers = list(range(self.ledger.left.shape[1]))
        return Search(cost, combine, numbers, self.ledger.left, remaining(self.tables), self.budget)


def best_split(
    tables: Tables, ledger: Ledger, budget: Budget, segments: int, *, order: list[int], by_bytes: bool
) -> Path | None:
    """First split into that many segments, or the one that moves the fewest bytes between its devices."""
    cost = np.zeros((len(order), tables.layers, tables.layers + 1), np.int64)
    if by_bytes:
        cost[:, 1:] += tables.cut[1 : tables.layers, None]
    cost[misfits(tables, ledger.left)] = FORBIDDEN
    search = Search(cost, "sum", order, ledger.left, remaining(tables), budget, exactly=segments)
    found = search.run()
    return None if found is None else found[1]
