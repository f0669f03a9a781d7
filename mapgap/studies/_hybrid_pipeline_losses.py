"""Where Asteroid's latency above the optimum comes from (table and waterfalls)."""

from __future__ import annotations

from mapgap.report import Picture, picture
from mapgap.studies._hybrid_pipeline_figures import waterfall
from mapgap.studies._hybrid_pipeline_runs import ASTEROID, EXACT, NETWORKS, Runs, library_name
from mapgap.tables import Column, Table

SLOWEST = {"ties": "slowest_first"}


def losses(runs: Runs) -> tuple[Table, list[Picture]]:
    """Where Asteroid's latency above the optimum comes from, one cause after the other."""
    rows, pictures = [], []
    for environment in "bc":
        for network, title in NETWORKS.items():
            name = library_name(environment, network)
            first, other = runs.ticks(name, ASTEROID), runs.ticks(name, ASTEROID, **SLOWEST)
            everyone, best = runs.ticks(f"{name}+all", EXACT), runs.ticks(name, EXACT)
            if first is None or everyone is None or best is None:
                continue
            record = runs.get(name, ASTEROID, **(SLOWEST if other is not None and other < first else {}))
            assert record is not None
            tied = min(first, other) if other is not None else first
            nested = max(everyone, min(tied, record["terms"]["nested_ticks"]))
            names = ("Asteroid", "tie rule", "allocation", "order and\nsubstructure", "idle devices", "optimum")
            values = [100 * v / best for v in (first, tied, nested, everyone, best, best)]
            rows.append(
                {"environment": environment.upper(), "network": title, "total": values[0] - 100}
                | {key: values[k] - values[k + 1] for k, key in enumerate(("ties", "shares", "order", "idle"))}
            )
            steps = list(zip(names, values, strict=True))
            text = f"Loss of Asteroid, {title}, environment {environment.upper()}, 100 Mbit/s."
            pictures.append(picture(f"loss_{environment}_{network}", waterfall(steps, title), text))
    columns = [
        Column("environment", "env."), Column("network", "network"), Column("total", "total", ".2f"),
        Column("ties", "tie rule", ".2f"), Column("shares", "allocation", ".2f"),
        Column("order", "order and substructure", ".2f"), Column("idle", "idle devices", ".2f"),
    ]  # fmt: skip
    note = (
        "Percent of the optimum. Tie rule: fastest-first against the better one. Allocation: Algorithm 1 against Eq. "
        "(7) in the same stages. Order and substructure: against the optimum that uses all devices. Idle devices: "
        "against the optimum that need not."
    )
    return Table("losses", "What Asteroid loses, and why", columns, rows, note), pictures
