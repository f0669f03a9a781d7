"""Re-planning after a failure (Figs. 16 and 17)."""

from __future__ import annotations

from mapgap.studies._hybrid_pipeline_runs import EXACT, Runs, instance, library_name
from mapgap.tables import Column, Table

REPLANNING = ("flops_recut", "cuts_only", "heavy_rescheduling", EXACT)
FAILED = ("tx2", "nano1", "nano2", "nano3")


def failures(runs: Runs) -> Table:
    """Figs. 16 and 17: re-planning after a device left environment D."""
    rows = []
    for device in FAILED:
        name = f"{library_name('d', 'efficientnet_b1')}_without_{device}"
        for method in REPLANNING:
            if runs.ticks(name, method) is not None:
                old = instance(name).replanning.old_latency * instance(name).seconds_per_tick
                rows.append(
                    {
                        "device": instance(name).replanning.failed, "method": method,
                        "before": instance(name).mini_batch / old,
                        "after": runs.term(name, method, "samples_per_s"),
                        "migration": runs.term(name, method, "migration_s"),
                        "ratio": runs.ratio(name, method, EXACT),
                    }
                )  # fmt: skip
    columns = [
        Column("device", "failed"), Column("method", "method"), Column("before", "before [1/s]", ".1f"),
        Column("after", "after [1/s]", ".1f"), Column("migration", "migration [s]", ".2f"),
        Column("ratio", "objective / exact", ".3f"),
    ]  # fmt: skip
    return Table("failures", "Figs. 16 and 17: re-planning, environment D, 100 rounds", columns, rows)
