"""How far Asteroid is from the optimum: apart where a pipeline pays and where it does not, and under other readings.

A pipeline *pays* where the optimum is faster by :data:`PAYS` at least than the best plan of one stage, which is the
optimum of the instance whose layers are one (``+whole``). Elsewhere an instance says nothing of pipelines: Asteroid,
which uses every board, is compared with a plan that leaves most of them idle, or both train without a pipeline.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from typing import Any

from mapgap.records.runs import Runs
from mapgap.reporting.tables import Rows, tabulated
from mapgap.studies.hybrid_pipeline.experiments import ASTEROID, BEST_TIES, EXACT, cases

PAYS = 0.01
"""Share by which the best plan of one stage is slower than the optimum where a pipeline pays."""
OPTIMAL = 0.005
"""Percent above the optimum below which a plan counts as optimal."""
GRID = tuple((e, b) for e in "abcd" for b in (100, 1000))
"""Environments of Table 6, and Mbit/s of Sec. 5.1."""
READINGS: Mapping[str, str] = {
    "": "as derived",
    "+bytes2": "activations / 2",
    "+bytes4": "activations / 4",
    "+links": "parallel links",
    "+medium": "shared medium",
}
"""What else the paper may mean, by the variant of the instances."""
PIPELINE, GROUP, BOARD = "pipeline", "one group", "one board"


def whole_name(name: str) -> str:
    """The instance whose best plan of one stage counts; only the medium of an AllReduce matters to that."""
    base, _, words = name.partition("+")
    return f"{base}+medium+whole" if words == "medium" else f"{base}+whole"


def pays(runs: Runs, name: str) -> str | None:
    """Whether a pipeline pays, or else what trains best; ``None`` without runs."""
    best, single = runs.objective(name, EXACT), runs.get(whole_name(name), EXACT)
    if best is None or single is None:
        return None
    if single.objective is None or single.plan is None or single.objective >= (1 + PAYS) * best:
        return PIPELINE
    (stage,) = single.plan["stages"]
    return BOARD if len(stage["devices"]) == 1 else GROUP


def gap_rows(runs: Runs, reading: str = "") -> Rows:
    """One row per instance of :data:`GRID`, losses in percent of the optimum."""
    for base, place in cases(GRID):
        name = base + reading
        kind, record = pays(runs, name), runs.get(name, EXACT)
        if kind is None or record is None or record.plan is None:
            continue
        best, single = runs.objective(name, EXACT), runs.objective(whole_name(name), EXACT)
        stages = record.plan["stages"]
        row = place | {"reading": READINGS[reading], "kind": kind, "stages": len(stages)}
        row |= {"boards": sum(len(stage["devices"]) for stage in stages), "gain": best and single and single / best}
        for key, ties in (("default", {}), ("best", BEST_TIES)):
            value = runs.objective(name, ASTEROID, **ties)
            row[key] = 100 * (value / best - 1) if value and best else None
        yield row


_PLACE = "environment: env. | network | mbps: Mbit/s"
_LOSS = "best: Asteroid, best order [%]; .2f | default: fastest first [%]; .2f"


@tabulated(
    "gaps",
    "Where a pipeline pays: Asteroid above the optimum",
    f"{_PLACE} | stages | boards | gain: over one stage; .2f | {_LOSS}",
    "Latency of Algorithm 2's plan above the certified optimum, along the best of all orders that descending "
    "memory permits and along the default one. Over one stage: the best plan without a pipeline over the optimum, "
    "1.01 at least in this table.",
)
def gaps(runs: Runs) -> Rows:
    """Asteroid's loss where a pipeline pays."""
    return (row for row in gap_rows(runs) if row["kind"] == PIPELINE)


@tabulated(
    "apart",
    "Where no pipeline pays",
    f"{_PLACE} | kind: trains best | gain: over one stage; .4f | {_LOSS}",
    "The best plan of one stage is within 1 % of the optimum. On one board: Algorithm 2 must use every board, and "
    "that costs what the table says; this is no loss of pipeline planning.",
)
def apart(runs: Runs) -> Rows:
    """Asteroid's loss elsewhere."""
    return (row for row in gap_rows(runs) if row["kind"] != PIPELINE)


@tabulated(
    "readings",
    "Asteroid above the optimum under other readings",
    "reading | instances | pipeline_count: a pipeline pays | pipeline_optimal: there optimal "
    "| pipeline_median: else median [%]; .2f | pipeline_max: most [%]; .2f | group_count: one group "
    "| group_max: most [%]; .2f | board_count: one board | board_max: most [%]; .2f",
    "Asteroid along its best order; optimal: within 0.005 %. Activations / k: every cut carries so many times "
    "fewer bytes, as 16- or 8-bit activations would. Parallel links: two groups are joined by as many links as the "
    "smaller one has members (Sec. 4), else by one. Shared medium: an AllReduce of m boards takes m times Eq. (5).",
)
def readings(runs: Runs) -> Rows:
    """What the losses become under other readings of the paper, all instances together."""
    for reading, title in READINGS.items():
        found = [row for row in gap_rows(runs, reading) if row["best"] is not None]
        if not found:
            continue
        row: dict[str, Any] = {"reading": title, "instances": len(found)}
        for kind, key in ((PIPELINE, "pipeline"), (GROUP, "group"), (BOARD, "board")):
            losses = [each["best"] for each in found if each["kind"] == kind]
            row |= {f"{key}_count": len(losses), f"{key}_max": max(losses, default=None)}
            if kind == PIPELINE and losses:
                worse = [loss for loss in losses if loss >= OPTIMAL]
                row |= {"pipeline_optimal": len(losses) - len(worse)}
                row |= {"pipeline_median": statistics.median(worse) if worse else None}
        yield row


def _key(reading: str) -> str:
    return reading.removeprefix("+") or "derived"


@tabulated(
    "sensitivity",
    "Asteroid above the optimum, by reading and instance",
    _PLACE + "".join(f" | {_key(each)}_kind: {title} | {_key(each)}: [%]; .2f" for each, title in READINGS.items()),
    "What trains best under a reading, and Asteroid's loss there along its best order.",
)
def sensitivity(runs: Runs) -> list[dict[str, Any]]:
    """The loss along the best order under every reading, by instance."""
    found: dict[tuple[str, str, int], dict[str, Any]] = {}
    for reading in READINGS:
        for row in gap_rows(runs, reading):
            place = {key: row[key] for key in ("environment", "network", "mbps")}
            same = found.setdefault(tuple(place.values()), place)
            same |= {f"{_key(reading)}_kind": row["kind"], _key(reading): row["best"]}
    return list(found.values())
