"""What Helix's published placements, Petals' and SWARM's layouts pass, beside proven bounds and Gurobi's own logs.

The instances are those of the library: the authors' programs as printed, and three with a table made monotone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import yaml

from mapgap.catalogue.files import load_instance
from mapgap.core import Certificate
from mapgap.evidence.certified import CertifiedJob
from mapgap.execution.sweep import MethodJob
from mapgap.problems.layer_flow import PROBLEM, Instance
from mapgap.records.record import RunRecord
from mapgap.records.runs import Runs
from mapgap.reporting.report import Page, Section
from mapgap.reporting.study import Phase, Study
from mapgap.reporting.tables import Rows, tabulated

PUBLISHED = "helix_placement"
RULES = (PUBLISHED, "swarm", "petals")
PLANNERS = ("one_pipeline", "stages")
BOUND, EXACT = "cover_bound", "portfolio"
SEEDS = range(5)
"""Petals' nodes join in an order that is drawn."""
RULE_S, EXACT_S = 60.0, 60.0
PROVEN = tuple(
    f"helix_llama{name}"
    for name in ("30b_a100", "30b_l4_single", "30b_l4_geo", "30b_t4_single", "30b_t4_geo", "30b_10")
)
LARGE = tuple(f"helix_llama70b_{name}" for name in ("single", "geo", "geo_unpruned", "42", "42_unpruned"))
MONOTONE = tuple(f"helix_llama30b_{name}_monotone" for name in ("l4_single", "t4_single", "10"))
LOGS = yaml.safe_load(Path(__file__).with_name("logs.yaml").read_text(encoding="utf-8"))["logs"]
"""Gurobi's published logs: their last lines."""
SHOWN_LAYERS = (8, 9, 10)
"""Where the table of an L4 rises again."""


def phases(quick: bool) -> list[Phase]:
    """Rules and bounds, then the exact method; the small version has two instances."""
    names = (PROVEN[1], MONOTONE[0]) if quick else (*PROVEN, *MONOTONE, *LARGE)
    rules: list[MethodJob] = []
    for name in names:
        made = load_instance(name)
        rules += (MethodJob(made, rule, RULE_S) for rule in (PUBLISHED, "swarm", *PLANNERS))
        rules += (MethodJob(made, "petals", RULE_S, seed=seed) for seed in SEEDS)
        rules.append(CertifiedJob(made, BOUND, RULE_S))
    exact = [MethodJob(load_instance(name), EXACT, EXACT_S) for name in names]
    return [Phase("Rules and bounds", rules), Phase("Exact", exact)]


@dataclass(frozen=True)
class Known:
    """What the runs, and the ledger beside them, say of an instance; in tokens per second.

    Attributes
    ----------
    found : mapping
        Method to the best value of its plans.
    best, bound : float
    word : str
        Of the bound: ``certified`` or ``solver-proven``.
    """

    instance: Instance
    found: Mapping[str, float]
    best: float
    bound: float
    word: str

    @property
    def gap(self) -> float:
        """Percent of the best plan by which the bound is above it."""
        return 100.0 * (self.bound / self.best - 1)

    def below(self, value: float) -> float:
        """Percent of the bound that a value lacks."""
        return 100.0 * (1 - value / self.bound)


def known_of(runs: Runs) -> dict[str, Known]:
    """By instance, in the order of the study."""
    found: dict[str, list[RunRecord]] = {}
    for record in runs:
        found.setdefault(record.instance, []).append(record)
    known = {}
    for name, records in found.items():
        made = load_instance(name)
        assert isinstance(made, Instance)
        values: dict[str, float] = {}
        for record in records:
            if record.objective is not None:
                values[record.method] = max(values.get(record.method, 0.0), record.objective / made.scale)
        best = max(values.values())
        least = min(record.bound for record in records if record.bound is not None)
        certified = [record.bound for record in records if record.certificate == Certificate.CHECKED]
        word = "certified" if least in certified else "solver-proven"
        known[name] = Known(made, values, best, least / made.scale, word)
    return known


@tabulated(
    "gaps",
    "Published placements, layouts and bounds",
    "instance | nodes | layers | published: published [tokens/s]; .2f | swarm: SWARM; .2f | petals: Petals; .2f "
    "| best: best known; .2f | bound; .2f | gap: bound above best [%]; .2f | proof: bound is "
    "| published_below: below the bound, published [%]; .1f | swarm_below: SWARM; .1f | petals_below: Petals; .1f",
    "Petals: the best of five orders in which nodes join. Best known and bound: of these runs and of the ledger.",
)
def gaps(known: Mapping[str, Known]) -> Rows:
    """A row per instance."""
    for name, each in known.items():
        row: dict[str, Any] = {"instance": name, "nodes": len(each.instance.nodes), "layers": each.instance.layers}
        row |= {"best": each.best, "bound": each.bound, "gap": each.gap, "proof": each.word}
        for key, rule in zip(("published", "swarm", "petals"), RULES, strict=True):
            if rule in each.found:
                row |= {key: each.found[rule], f"{key}_below": each.below(each.found[rule])}
        yield row


@tabulated(
    "rules",
    "What each loses",
    "rule | instances | optimal | median_most: median, at most [%]; .1f | worst_least: worst, at least [%]; .1f "
    "| worst_most: at most [%]; .1f | worst_on: on",
    "Percent of the optimum, which is between the best plan known and the bound.",
)
def rules(known: Mapping[str, Known]) -> Rows:
    """A row per rule, over the instances for which it has a plan."""
    for rule in (*RULES, *PLANNERS):
        mine = {name: each for name, each in known.items() if rule in each.found}
        if not mine:
            continue
        most = {name: each.below(each.found[rule]) for name, each in mine.items()}
        worst = max(most, key=lambda name: most[name])
        yield {
            "rule": rule,
            "instances": len(mine),
            "optimal": sum(each.found[rule] == each.bound for each in mine.values()),
            "median_most": median(most.values()),
            "worst_least": 100.0 * (1 - mine[worst].found[rule] / mine[worst].best),
            "worst_most": most[worst],
            "worst_on": worst,
        }


@tabulated(
    "logs",
    "Gurobi's published logs beside our bounds",
    "folder | instance | seconds; .0f | nodes: nodes searched | objective: its plan [tokens/s]; .2f "
    "| bound: its bound; .1f | gap: its gap [%]; .1f | best: best known; .2f | ours: our bound; .2f "
    "| left: our bound above its plan [%]; .1f | our_gap: above the best known [%]; .1f | ended",
    "The last line of every log in Thesys-lab/Helix-ASPLOS25 148b733, 20 threads. Gaps in percent of the plan.",
)
def logs(known: Mapping[str, Known]) -> Rows:
    """A row per log of an instance that was run."""
    for log in LOGS:
        if log["instance"] not in known:
            continue
        each = known[log["instance"]]
        row = log | {"gap": 100.0 * (log["bound"] / log["objective"] - 1), "best": each.best, "ours": each.bound}
        yield row | {"left": 100.0 * (each.bound / log["objective"] - 1), "our_gap": each.gap}


@tabulated(
    "tables",
    "Tables as printed and made monotone",
    "instance | table | eight: T(8) [tokens/s]; .1f | nine: T(9); .1f | ten: T(10); .1f | published; .2f "
    "| best: best known; .2f | bound; .2f | proof: bound is | lost: published below the best [%]; .1f",
    "More layers cannot be faster: where T rises the measurement is suspicious. Made monotone, T(k) is the least of "
    "T(1) to T(k). T: of the node with most layers.",
)
def tables(known: Mapping[str, Known]) -> Rows:
    """Two rows per instance that has a monotone twin."""
    for twin in MONOTONE:
        for name, kind in ((twin.removesuffix("_monotone"), "as printed"), (twin, "made monotone")):
            if name not in known:
                continue
            each = known[name]
            largest = max((node.throughput for node in each.instance.nodes), key=len)
            row: dict[str, Any] = {"instance": name, "table": kind, "best": each.best, "bound": each.bound}
            for key, layers in zip(("eight", "nine", "ten"), SHOWN_LAYERS, strict=True):
                if layers <= len(largest):
                    row[key] = largest[layers - 1] / each.instance.scale
            published = known[twin.removesuffix("_monotone")].found.get(PUBLISHED) if twin in known else None
            published = each.found.get(PUBLISHED, published)
            if published is not None:
                row |= {"published": published, "lost": 100.0 * (1 - published / each.best)}
            yield row | {"proof": each.word}


def page(runs: Runs, quick: bool) -> Page:
    """All tables."""
    known = known_of(runs)
    lead = [
        "Helix (ASPLOS 2025) places layers of a language model on unequal nodes by an integer program, stopped by "
        "hand. Its published placements and the layouts that it compares with, beside proven bounds of these programs.",
        "Tokens per second are those of the authors' tables. Published placements are judged on the instances of the "
        "same content.",
    ]
    if quick:
        lead.append("The small version: one instance and its monotone twin.")
    sections = [
        Section("Gaps", tables=[rules(known), gaps(known)]),
        Section("Gurobi", tables=[logs(known)]),
        Section("Tables that rise", tables=[tables(known)]),
    ]
    return Page("Helix: placements and bounds", lead, sections)


STUDY = Study(
    name="helix",
    title="Helix: published placements, layouts and Gurobi's logs beside proven bounds",
    problem=PROBLEM.name,
    phases=phases,
    page=page,
    headline=("rules", "gaps"),
    knows=True,
)
