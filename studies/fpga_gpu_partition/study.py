"""FPGA-GPU partition: Table I and Fig. 4, the paper's rule against the exact front, and when the FPGA stops paying.

All figures rest on a cost model with eleven constants fitted to six published numbers. Several equally good fits are
kept; the last section says which conclusions hold under all of them.
"""

from __future__ import annotations

from typing import Any

from mapgap.records.runs import Runs
from mapgap.reporting.report import Page, Section, method_table, run_table
from mapgap.reporting.study import Study
from mapgap.studies.fpga_gpu_partition.published import figure_4, modules_table, ranges_table, table_1
from mapgap.studies.fpga_gpu_partition.runs import PROBLEM, phases
from mapgap.studies.fpga_gpu_partition.tables import (
    front_pictures,
    front_table,
    networks_table,
    robustness,
    sensitivity,
)


def _lead(networks: list[dict[str, Any]], claims: list[dict[str, Any]]) -> list[str]:
    lead = [
        "The paper fixes one partition rule per module. Here the rule stands next to the proven optimum and the whole "
        "energy-latency front of the same instance, under the fabric that all modules of a network share."
    ]
    gaps = [row["gap"] for row in networks if row["gap"] is not None]
    if gaps:
        lead.append(
            f"Applied to whole networks the better variant of the rule needs {min(gaps):.1f} % to {max(gaps):.1f} % "
            "more energy than the optimum (first fit)."
        )
    if claims:
        robust = sum(row["verdict"] != "not robust" for row in claims)
        lead.append(f"{robust} of {len(claims)} statements are decided alike under all fits; the others are marked.")
    return lead


def page(runs: Runs, quick: bool) -> Page:
    """The page of the study."""
    networks = networks_table(runs)
    gains, claims = robustness(runs)
    swept, swept_figures = sensitivity(runs)
    sections = [
        Section("Published numbers", tables=[table_1(), ranges_table()], figures=[figure_4()]),
        Section("Whole networks", tables=[networks, front_table(runs)], figures=front_pictures(runs)),
        Section("Sensitivity", tables=[swept], figures=swept_figures),
        Section("Robustness", tables=[gains, claims]),
        Section("All runs", tables=[method_table(runs), run_table(runs)]),
    ]
    if not quick:
        sections.insert(1, Section("Single modules", tables=[modules_table(runs)]))
    title = "Which layer parts belong on the FPGA?" + (" (quick)" if quick else "")
    return Page(title, _lead(list(networks.rows), list(claims.rows)), sections)


STUDY = Study(
    name="fpga_gpu_partition",
    title="FPGA-GPU partition (Table I, Fig. 4, fronts, sensitivity)",
    problem=PROBLEM,
    phases=phases,
    page=page,
    headline=("table_1", "networks", "robustness"),
)
