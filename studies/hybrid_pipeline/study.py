"""Asteroid and its rivals next to the certified optimum (Tables 2, 4, 6, 7, 8; Figs. 13, 15-18).

All plans are of the library's instances, whose time tables are derived (a roofline scaled to Table 1), so absolute
numbers are not the authors'. Ratios between methods stand next to the printed ones.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from typing import Any

from mapgap.execution.sweep import Job, MethodJob
from mapgap.problems.hybrid_pipeline import PROBLEM
from mapgap.records.runs import Runs
from mapgap.reporting.report import Page, Section
from mapgap.reporting.run_tables import instance_table, method_table, run_table
from mapgap.reporting.study import Phase, Study
from mapgap.reporting.tables import Table
from mapgap.studies.hybrid_pipeline.claims import ENERGY, NANOS, SYSTEMS, claims, hetpipe_s, ranges, table_7, table_8
from mapgap.studies.hybrid_pipeline.costs import (
    REPEAT,
    SCALED,
    SHOWN,
    TIMED,
    cost,
    cost_pictures,
    nano_name,
    scalability,
    scaling_claims,
)
from mapgap.studies.hybrid_pipeline.experiments import (
    ASTEROID,
    BEST_TIES,
    EXACT,
    NETWORKS,
    cases,
    instance,
    library_name,
)
from mapgap.studies.hybrid_pipeline.failures import (
    FAILED,
    REPLANNING,
    failure_figures,
    failure_name,
    failures,
    recovery,
)
from mapgap.studies.hybrid_pipeline.gaps import GRID, OPTIMAL, READINGS, apart, gaps, readings, sensitivity, whole_name
from mapgap.studies.hybrid_pipeline.losses import BEST_ORDER, CHAIN, PARETO, loss_pictures, losses
from mapgap.studies.hybrid_pipeline.published import CONVENTIONAL, ENVIRONMENTS, implied, table_2, table_4, table_6
from mapgap.studies.hybrid_pipeline.schedules import (
    MBPS,
    PIPELINE,
    as_hpp,
    comparison,
    model_error,
    plans,
    policies,
    policy_name,
)

ABLATIONS = ("asteroid_naive", "asteroid_inter_stage")
SIMULATE = {"simulate": True}


def _jobs(
    names: Iterable[str], methods: Iterable[str], options: dict[str, Any] | None = None, limit_s: float = 60.0
) -> list[Job]:
    chosen = tuple(methods)
    return [MethodJob(instance(name), method, limit_s, options=options or {}) for name in names for method in chosen]


def phases(quick: bool) -> list[Phase]:
    """The runs; the quick version has environments A and C at 100 Mbit/s, two networks and one failure."""
    networks = ("efficientnet_b1", "resnet50") if quick else tuple(NETWORKS)
    conventional = [library_name(e, n, b) for e, b in (ENVIRONMENTS[:1] if quick else ENVIRONMENTS) for n in networks]
    systems = [library_name(e, n) for e in ("c" if quick else "bc") for n in networks]
    chained = systems if quick else [name for name, _ in cases(CHAIN)]
    grid = [name for name, _ in cases(GRID)]
    if quick:
        grid = list(dict.fromkeys([*conventional, *systems]))
    nanos = [nano_name(count, network) for count in range(1, 9) for network in SCALED]
    timed = (library_name("c", "efficientnet_b1"), "scaling_2") if quick else TIMED
    lost = [failure_name(device) for device in (FAILED[1:2] if quick else FAILED)]
    variants = [name + reading for reading in READINGS if reading for name in ([] if quick else grid)]
    single = list(dict.fromkeys(whole_name(name) for name in [*grid, *variants]))
    shared = [f"{name}+medium" for name in conventional]
    medium = [] if quick else [f"{name}+medium" for name in systems]
    found = [
        Phase("Exact and Asteroid", _jobs(grid, (EXACT, ASTEROID))),
        Phase("Best order", _jobs([*grid, *variants], (ASTEROID,), dict(BEST_TIES))),
        Phase("Readings", _jobs(variants, (EXACT,))),
        Phase("One stage", _jobs(single, (EXACT,))),
        Phase("Pareto sets", _jobs(chained, (PARETO,), dict(BEST_TIES))),
        Phase("Exact along the best order", _jobs(chained, (EXACT,), dict(BEST_ORDER))),
        Phase("No idle devices", _jobs([f"{name}+all" for name in chained], (EXACT,))),
        Phase("Conventional training", _jobs(conventional, CONVENTIONAL)),
        Phase("Without memory limits", _jobs([f"{name}+memory" for name in conventional], ("gpipe",))),
        Phase("Shared medium, Asteroid", _jobs(dict.fromkeys([*shared, *medium]), (ASTEROID,))),
        Phase("Shared medium, DP", _jobs(shared, ("data_parallel",))),
        Phase("Volumes", _jobs([library_name("a", n) for n in networks], ("hetpipe",))),
        Phase("Other systems", _jobs(systems, (*SYSTEMS, *ABLATIONS))),
        Phase("Simulated plans", _jobs(systems, (EXACT, ASTEROID), SIMULATE)),
        Phase("Bounds of the simulation", _jobs(systems, ("simulator_bound",))),
        Phase("1F1B policies", _jobs(map(policy_name, MBPS), (PIPELINE,), SIMULATE)),
        Phase("Memory of DP", _jobs([policy_name(100)], ("data_parallel",))),
        Phase("Cost of planning", _jobs(timed, (EXACT, ASTEROID), REPEAT, 180.0)),
        Phase("Failures", _jobs(lost, REPLANNING)),
    ]
    if not quick:
        found.append(Phase("Shared medium, other systems", _jobs(medium, SYSTEMS)))
        found.append(Phase("Energy", _jobs([ENERGY, f"{ENERGY}+medium"], ("data_parallel",))))
        wider = [f"{name}+medium" for name in (ENERGY, *NANOS)]
        found.append(Phase("Shared medium, Asteroid elsewhere", _jobs(wider, (ASTEROID,))))
        found.append(Phase("Shared medium, DP on Nano", _jobs(wider[1:], ("data_parallel",))))
        found.append(Phase("Scalability", _jobs(nanos, SHOWN)))
    return found


def page(runs: Runs, quick: bool) -> Page:
    """The page of the study."""
    paying, others = gaps(runs), apart(runs)
    lead = [
        "Asteroid plans training pipelines over heterogeneous edge devices by a dynamic programme. Here its plans and "
        "those of its baselines stand next to the certified optimum of the same cost model (Eqs. 3-8).",
        "Time tables are derived, not measured: a roofline scaled to the paper's Table 1.",
        *headline(paying, others),
        *network_words(ranges(runs)),
    ]
    sections = [
        Section("What Asteroid loses", tables=[paying, others, readings(runs), sensitivity(runs)]),
        Section("Why", tables=[losses(runs)], figures=loss_pictures(runs)),
        Section("Conventional training", tables=[table_6(), table_4(runs), implied(runs), table_2(runs)]),
        *_systems(runs),
        *_execution(runs, quick),
        Section("Failures", tables=[failures(runs), recovery(runs)], figures=failure_figures(runs)),
        Section("Claims", tables=[claims(runs)]),
        Section("All runs", tables=[method_table(runs), instance_table(runs), run_table(runs)]),
    ]
    return Page("Hybrid pipelines: how far from optimal is Asteroid?", lead, sections)


def headline(paying: Table, apart: Table) -> list[str]:
    """What the tables of losses say in one sentence each."""
    found = []
    losses = [row["best"] for row in paying.rows if row["best"] is not None]
    worse = [loss for loss in losses if loss >= OPTIMAL]
    if losses:
        found.append(
            f"On {len(losses)} instances a pipeline pays (1 % faster at least than the best plan of one stage). There, "
            "along the best order that descending memory permits, Asteroid is optimal on "
            f"{len(losses) - len(worse)}."
        )
    if worse:
        found[-1] += (
            f" On the others it is {statistics.median(worse):.1f} % above the optimum in the median and "
            f"{max(worse):.1f} % at most."
        )
    if apart.rows:
        idle = [row["best"] for row in apart.rows if row["kind"] == "one board" and row["best"] is not None]
        text = f"On {len(apart.rows)} other instances no pipeline pays; they stand apart."
        why = f" {len(idle)} of them train best on one board, which Algorithm 2 may not choose." if idle else ""
        found.append(text + why)
    return found


def network_words(table: Table) -> list[str]:
    """What the reading of the network makes of the paper's speedups."""
    over = {row["system"]: row for row in table.rows}["eddl"]
    if over["low"] is None or over["low_medium"] is None:
        return []
    return [
        "Tables have both readings of the network. Over EDDL Asteroid gains "
        f"{over['low_medium']:.1f} to {over['high_medium']:.1f} times where boards share one medium, "
        f"{over['low']:.1f} to {over['high']:.1f} times by Eq. (5), and {over['low_printed']:g} to "
        f"{over['high_printed']:g} times as printed."
    ]


def _systems(runs: Runs) -> list[Section]:
    own = {"hetpipe": hetpipe_s}
    systems, system_pictures = comparison(runs, "fig13", "Fig. 13: other systems", SYSTEMS, own)
    ablated, ablation_pictures = comparison(runs, "fig15a", "Fig. 15(a): ablation of the planner", ABLATIONS)
    return [
        Section("Other systems", tables=[systems, as_hpp(runs), ranges(runs)], figures=system_pictures),
        Section("Ablation", tables=[ablated], figures=ablation_pictures),
    ]


def _execution(runs: Runs, quick: bool) -> list[Section]:
    tables, pictures = policies(runs)
    costs = cost(runs)
    return [
        Section("Execution", tables=[*tables, model_error(runs)], figures=pictures),
        Section("Plans", figures=plans(runs)),
        Section("Planning time", tables=[table_7(runs), costs, table_8()], figures=cost_pictures(costs)),
        *([] if quick else [Section("Scalability", tables=[scaling_claims(runs)], figures=scalability(runs))]),
    ]


STUDY = Study(
    name="hybrid_pipeline",
    title="Hybrid pipelines (Asteroid, Tables 2, 4, 6, 7, 8 and Figs. 13, 15-18)",
    problem=PROBLEM.name,
    phases=phases,
    page=page,
    headline=("gaps", "readings"),
)
