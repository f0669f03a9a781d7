"""Hybrid pipelines: Asteroid and its rivals next to the certified optimum (Tables 2, 4, 6, 7; Figs. 13, 15-18).

All plans are of the library's instances, whose time tables are derived (a roofline scaled to Table 1), so absolute
numbers are not the authors'. Ratios between methods are compared with the printed ones, each with a verdict.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mapgap.execution.sweep import Job, MethodJob
from mapgap.problems.hybrid_pipeline import PROBLEM
from mapgap.records.runs import Runs
from mapgap.reporting.report import Page, Section, instance_table, method_table, run_table
from mapgap.reporting.study import Phase, Study
from mapgap.studies.hybrid_pipeline.costs import REPEAT, SCALED, SHOWN, TIMED, cost, nano_name, planners, scalability
from mapgap.studies.hybrid_pipeline.experiments import ASTEROID, EXACT, NETWORKS, instance, library_name
from mapgap.studies.hybrid_pipeline.failures import (
    FAILED,
    REPLANNING,
    failure_figures,
    failure_name,
    failures,
    recovery,
)
from mapgap.studies.hybrid_pipeline.losses import PARETO, TIES, losses
from mapgap.studies.hybrid_pipeline.published import (
    CONVENTIONAL,
    ENVIRONMENTS,
    SYSTEMS,
    implied,
    ranges,
    table_2,
    table_4,
    table_6,
    table_7,
)
from mapgap.studies.hybrid_pipeline.schedules import (
    MBPS,
    PIPELINE,
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
    nanos = [nano_name(count, network) for count in range(1, 9) for network in SCALED]
    timed = (library_name("c", "efficientnet_b1"), "scaling_2") if quick else TIMED
    lost = [failure_name(device) for device in (FAILED[1:2] if quick else FAILED)]
    main = list(dict.fromkeys([*conventional, *systems]))
    found = [
        Phase("Exact and Asteroid", _jobs(main, (EXACT, ASTEROID)), parallel=2),
        Phase("Pareto sets", _jobs(systems, (PARETO,)), parallel=2),
        *(Phase(f"Order, {ties}", _jobs(systems, (EXACT,), {"order": ties}), parallel=2) for ties in TIES),
        Phase("No idle devices", _jobs([f"{name}+all" for name in systems], (EXACT,)), parallel=2),
        Phase("Conventional training", _jobs(conventional, CONVENTIONAL), parallel=2),
        Phase("Volumes", _jobs([library_name("a", n) for n in networks], ("hetpipe",)), parallel=2),
        Phase("Other systems", _jobs(systems, (*SYSTEMS, *ABLATIONS)), parallel=2),
        Phase("Simulated plans", _jobs(systems, (EXACT, ASTEROID), SIMULATE), parallel=2),
        Phase("Bounds of the simulation", _jobs(systems, ("simulator_bound",)), parallel=2),
        Phase("1F1B policies", _jobs(map(policy_name, MBPS), (PIPELINE,), SIMULATE), parallel=2),
        Phase("Memory of DP", _jobs([policy_name(100)], ("data_parallel",)), parallel=2),
        Phase("Cost of planning", _jobs(timed, (EXACT, ASTEROID), REPEAT, 180.0)),
        Phase("Failures", _jobs(lost, REPLANNING), parallel=2),
    ]
    if not quick:
        found.append(Phase("Scalability", _jobs(nanos, SHOWN), parallel=2))
    return found


def page(runs: Runs, quick: bool) -> Page:
    """The page of the study."""
    lost, loss_pictures = losses(runs)
    lead = [
        "Asteroid plans training pipelines over heterogeneous edge devices by a dynamic programme. Here its plans and "
        "those of its baselines stand next to the certified optimum of the same cost model (Eqs. 3-8).",
        "Time tables are derived, not measured: a roofline scaled to the paper's Table 1.",
    ]
    totals = [row["total"] for row in lost.rows]
    if totals:
        lead.append(f"Asteroid ends {min(totals):.1f} % to {max(totals):.1f} % above the optimum here.")
    sections = [
        Section("Conventional training", tables=[table_6(), table_4(runs), implied(runs), table_2(runs)]),
        Section("What Asteroid loses", tables=[lost], figures=loss_pictures),
        *_systems(runs),
        *_execution(runs, quick),
        Section("Failures", tables=[failures(runs), recovery(runs)], figures=failure_figures(runs)),
        Section("All runs", tables=[method_table(runs), instance_table(runs), run_table(runs)]),
    ]
    return Page("Hybrid pipelines: how far from optimal is Asteroid?", lead, sections)


def _systems(runs: Runs) -> list[Section]:
    systems, system_pictures = comparison(runs, "fig13", "Fig. 13: other systems", SYSTEMS)
    ablated, ablation_pictures = comparison(runs, "fig15a", "Fig. 15(a): ablation of the planner", ABLATIONS)
    return [
        Section("Other systems", tables=[systems, ranges(runs)], figures=system_pictures),
        Section("Ablation", tables=[ablated], figures=ablation_pictures),
    ]


def _execution(runs: Runs, quick: bool) -> list[Section]:
    tables, pictures = policies(runs)
    costs, cost_pictures = cost(runs)
    alone = planners(runs)
    scaled, scaled_pictures = scalability(runs)
    return [
        Section("Execution", tables=[*tables, model_error(runs)], figures=pictures),
        Section("Plans", figures=plans(runs)),
        Section(
            "Planning time", tables=[table_7(runs), costs, *([alone] if alone.rows else [])], figures=cost_pictures
        ),
        *([] if quick else [Section("Scalability", tables=[scaled], figures=scaled_pictures)]),
    ]


STUDY = Study(
    name="hybrid_pipeline",
    title="Hybrid pipelines (Asteroid, Tables 2, 4, 6, 7 and Figs. 13, 15-18)",
    problem=PROBLEM.name,
    phases=phases,
    page=page,
    headline=("table_4", "losses"),
)
