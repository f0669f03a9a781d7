"""One run on a dask cluster of so many local worker processes, and the table of such runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mapgap.catalogue import registry
from mapgap.catalogue.files import load_instance
from mapgap.core import Budget
from mapgap.execution import cluster
from mapgap.execution.progress import Tell, silence
from mapgap.execution.run import run_method
from mapgap.execution.sweep import MethodJob
from mapgap.records.record import RunRecord, relative
from mapgap.records.runs import Runs
from mapgap.reporting.tables import Column, Table

OPTION = "dask_workers"
"""What the record of such a run says among its options; the method does not see it."""
WORKERS = (2, 4)
SPLITTING, MAPPING = "dask:mixed_20x16_200", "mtrain_c2_resnet18_1gbs"
METHODS: Mapping[str, tuple[str, float]] = {SPLITTING: ("joint", 20.0), MAPPING: ("cpsat", 30.0)}
"""Method and time limit of every instance."""


@dataclass(frozen=True)
class ClusterJob(MethodJob):
    """A run whose parts are done by local processes; ``options`` holds their number and nothing else."""

    def execute(self, plugins: tuple[Path, ...] = (), tell: Tell = silence) -> RunRecord:
        """Start the processes, run, end them."""
        count = int(self.options[OPTION])
        pool = cluster.library("local").LocalCluster(n_workers=count, threads_per_worker=1, dashboard_address=None)
        with pool:
            budget = Budget(time_s=self.time_s, memory_mb=self.memory_mb, workers=self.workers, seed=self.seed)
            address = pool.scheduler_address
            record = run_method(self.instance, self.method, budget, plugins=plugins, cluster=address, tell=tell)
        return replace(record, options=dict(self.options))


def jobs() -> list[MethodJob]:
    """Both instances without a cluster, and with every number of processes."""
    library = registry.library("multi_model_splitting")
    found: list[MethodJob] = []
    for instance in (library.generate("mixed_20x16", 200).changed(name=SPLITTING), load_instance(MAPPING)):
        method, limit = METHODS[instance.name]
        found.append(MethodJob(instance, method, limit))
        found += [ClusterJob(instance, method, limit, options={OPTION: count}) for count in WORKERS]
    return found


def table(records: Runs) -> Table:
    """A row per instance and number of processes."""
    rows = [_row(record, records) for record in records if record.instance in METHODS]
    columns = [
        Column("instance", "instance"),
        Column("method", "method"),
        Column("processes", "worker processes"),
        Column("limit", "limit [s]", "g"),
        Column("wall_s", "time [s]", ".1f"),
        Column("objective", "objective"),
        Column("bound", "bound"),
        Column("gap", "gap to own bound [%]", ".2f"),
        Column("to_best", "above the best of the rows [%]", ".2f"),
        Column("parts", "parts done"),
        Column("error", "error"),
    ]
    note = "No worker processes: the plain run in one process. The machine has two cores and did other things as well."
    return Table("dask", "One run in parts", columns, rows, note)


def _row(record: RunRecord, records: Runs) -> dict[str, Any]:
    fact = records.facts[record.instance_hash]
    gap = relative(record.objective, record.bound, record.sign)
    to_best = relative(record.objective, fact.best, record.sign)
    return {
        "instance": record.instance.removeprefix("dask:"),
        "method": record.method,
        "processes": record.options.get(OPTION, 0),
        "limit": record.time_limit_s,
        "wall_s": record.wall_s,
        "objective": record.objective,
        "bound": record.bound,
        "gap": None if gap is None else 100 * gap,
        "to_best": None if to_best is None else 100 * to_best,
        "parts": record.notes.get("parts"),
        "error": record.error,
    }
