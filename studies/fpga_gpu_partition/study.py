"""FPGA-GPU partition: Table I and Fig. 4, the paper's rule against the exact front, and when the FPGA stops paying.

All figures rest on a cost model with eleven constants fitted to six published numbers, which do not determine them.
Gains are therefore ranges over all sets of constants found that explain the six numbers alike; where a sign changes,
the conclusion is undecided, and decided is only what the search for extremes was about.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mapgap.records.runs import Runs
from mapgap.reporting.report import Page, Section
from mapgap.reporting.run_tables import method_table, run_table
from mapgap.reporting.study import Study
from mapgap.studies.fpga_gpu_partition.experiments import PROBLEM, phases
from mapgap.studies.fpga_gpu_partition.networks import (
    front_pictures,
    front_table,
    networks_table,
    patterns_table,
    sensitivity,
)
from mapgap.studies.fpga_gpu_partition.published import figure_4, modules_table, ranges_table, table_1
from mapgap.studies.fpga_gpu_partition.robustness import (
    conclusions,
    constants_table,
    fits_table,
    range_picture,
    ranges,
    readings_table,
)

Found = Sequence[Mapping[str, Any]]
"""Rows of a table."""


def _lead(spans: Found, patterns: Found, claims: Found) -> list[str]:
    lead = [
        "The paper fixes one partition rule per module. Here the rule stands next to the proven optimum and the whole "
        "energy-latency front of the same instance, under the fabric that all modules of a network share."
    ]
    gaps = [row for row in spans if row["quantity"] == "gap"]
    if gaps:
        lead.append(
            "Applied to whole networks the rule (folded) needs "
            f"{min(row['low'] for row in gaps):.1f} % to {max(row['high'] for row in gaps):.1f} % more energy than the "
            "optimum, over all sets of constants found that explain Table I "
            f"({min(row['first'] for row in gaps):.1f} % to {max(row['first'] for row in gaps):.1f} % under the first)."
        )
    losses = [row for row in patterns if row["rule_loss"]]
    if losses:
        least = min(row["patterns_loss"] / row["rule_loss"] for row in losses)
        lead.append(
            f"At least {100 * least:.0f} % of that loss is that of the patterns: the best plan within them, first fit, "
            "gains little over the rule."
        )
    if claims:
        sought = [row for row in claims if row["sought"] == "yes"]
        decided, others = sum(row["verdict"] in ("holds", "fails") for row in sought), len(claims) - len(sought)
        alike = sum(row["verdict"].endswith("at all") for row in claims)
        lead.append(
            f"{decided} of {len(sought)} statements about quantities whose extremes were sought are decided alike "
            f"under all sets; of {others} others {alike} came out alike at all sets looked at, which decides nothing."
        )
    return lead


def page(runs: Runs, quick: bool) -> Page:
    """The page of the study."""
    spans, claims, patterns = ranges(runs), conclusions(runs), patterns_table(runs)
    swept, swept_figures = sensitivity(runs)
    drawn = [range_picture(spans)] if spans.rows else []
    decided = [spans, claims, fits_table(runs), constants_table()]
    sections = [
        Section("Published numbers", tables=[table_1(), readings_table(), ranges_table()], figures=[figure_4()]),
        Section("Whole networks", tables=[networks_table(runs), front_table(runs)], figures=front_pictures(runs)),
        Section("Patterns or rule", tables=[patterns]),
        Section("What Table I decides", tables=decided, figures=drawn),
        Section("Sensitivity", tables=[swept], figures=swept_figures),
        Section("All runs", tables=[method_table(runs), run_table(runs)]),
    ]
    if not quick:
        sections.insert(1, Section("Single modules", tables=[modules_table(runs)]))
    title = "Which layer parts belong on the FPGA?" + (" (quick)" if quick else "")
    return Page(title, _lead(spans.rows, patterns.rows, claims.rows), sections)


STUDY = Study(
    name="fpga_gpu_partition",
    title="FPGA-GPU partition (Table I, Fig. 4, fronts, sensitivity)",
    problem=PROBLEM,
    phases=phases,
    page=page,
    headline=("networks", "patterns", "ranges"),
)
