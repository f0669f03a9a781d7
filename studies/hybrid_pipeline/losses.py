"""Where Asteroid's latency above the optimum comes from (table and waterfalls).

Each cause is the difference of two optima, the second of which is a relaxation of the first:

    asteroid >= asteroid_pareto >= label_dp over the same order >= over the better order of equal memories
             >= over any groups with all devices >= with idle devices,

and beside them the model error: the simulated round of a plan less its closed form.
"""

from __future__ import annotations

from typing import Any

from mapgap.records.runs import Runs
from mapgap.reporting.report import Picture, picture
from mapgap.reporting.tables import Column, Table
from mapgap.studies.hybrid_pipeline.experiments import ASTEROID, EXACT, NETWORKS, instance, library_name, schedule
from mapgap.studies.hybrid_pipeline.figures import waterfall

PARETO = "asteroid_pareto"
TIES = ("fastest_first", "slowest_first")
CAUSES = {
    "substructure": "substructure",
    "allocation": "allocation",
    "ties": "tie rule",
    "order": "order and grouping",
    "idle": "idle devices",
}


def optima(runs: Runs, name: str) -> list[int] | None:
    """Latencies from Asteroid's plan down to the optimum, one per restriction that is lifted; ``None`` if one lacks."""
    along = [runs.objective(name, EXACT, order=ties) for ties in TIES]
    found = [
        runs.objective(name, ASTEROID),
        runs.objective(name, PARETO),
        along[0],
        min((value for value in along if value is not None), default=None),
        runs.objective(f"{name}+all", EXACT),
        runs.objective(name, EXACT),
    ]
    known = [value for value in found if value is not None]
    return known if len(known) == len(found) and along[1] is not None else None


def _simulated(runs: Runs, name: str, method: str) -> int | None:
    """Simulated round of a method's plan, ticks."""
    row = schedule(runs, name, method)
    return None if row is None else round(row["latency_s"] / instance(name).seconds_per_tick)


def losses(runs: Runs) -> tuple[Table, list[Picture]]:
    """One row and one waterfall per network on environments B and C, in percent of the optimum."""
    rows, pictures = [], []
    for environment in "bc":
        for network, title in NETWORKS.items():
            name = library_name(environment, network)
            chain = optima(runs, name)
            if chain is None:
                continue
            best = chain[-1]
            values = [100 * value / best for value in chain]
            row: dict[str, Any] = {"environment": environment.upper(), "network": title, "total": values[0] - 100}
            row |= {key: values[k] - values[k + 1] for k, key in enumerate(CAUSES)}
            steps = [("Asteroid", values[0]), *zip(CAUSES.values(), values[1:], strict=True), ("optimum", 100.0)]
            totals = {0, len(steps) - 1}
            real, ours = _simulated(runs, name, EXACT), _simulated(runs, name, ASTEROID)
            if real is not None and ours is not None:
                row |= {"model_asteroid": 100 * (ours / chain[0] - 1), "model": 100 * (real / best - 1)}
                row["simulated"] = 100 * (ours / real - 1)
                steps += [("model error", 100 * real / best), ("optimum,\nsimulated", 100 * real / best)]
                totals.add(len(steps) - 1)
            rows.append(row)
            heading = f"{title}, environment {environment.upper()}"
            text = f"Loss of Asteroid, {heading}, 100 Mbit/s."
            pictures.append(picture(f"loss_{environment}_{network}", waterfall(steps, totals, heading), text))
    columns = [
        Column("environment", "env."),
        Column("network", "network"),
        Column("total", "total", ".2f"),
        *(Column(key, text, ".2f") for key, text in CAUSES.items()),
        Column("model_asteroid", "model error, Asteroid", ".2f"),
        Column("model", "model error, optimum", ".2f"),
        Column("simulated", "total, simulated", ".2f"),
    ]
    note = (
        "Percent of the optimum, fastest first among boards of equal memory. Each cause is the difference of two "
        "optima. Substructure: one sub-pipeline per state against Pareto sets. Allocation: Algorithm 1 against Eq. "
        "(7). Tie rule: against the better order of boards of equal memory. Order and grouping: against any groups "
        "that use all devices. Idle devices: against the optimum that need not. Model error: the simulated round (half "
        "duplex) over the closed form of the same plan, in percent of the latter; total, simulated: both plans "
        "simulated."
    )
    return Table("losses", "What Asteroid loses, and why", columns, rows, note), pictures
