"""Where Asteroid's latency above the optimum comes from (table and waterfalls).

Each cause is the difference of two optima, the second of which is a relaxation of the first:

    asteroid >= asteroid along the best order that descending memory permits >= asteroid_pareto over these orders
             >= label_dp over these orders >= over any groups with all devices >= with idle devices,

and beside them the model error: the simulated round of a plan less its closed form.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mapgap.records.runs import Runs
from mapgap.reporting.report import Picture, picture
from mapgap.reporting.tables import Rows, tabulated
from mapgap.studies.hybrid_pipeline.experiments import ASTEROID, BEST_TIES, EXACT, NETWORKS, cases, instance, schedule
from mapgap.studies.hybrid_pipeline.figures import waterfall
from mapgap.studies.hybrid_pipeline.gaps import OPTIMAL, PIPELINE, pays

PARETO = "asteroid_pareto"
BEST_ORDER = {"order": "best"}
CHAIN = tuple((e, b) for e in "bc" for b in (100, 1000))
"""Environments whose boards differ in speed, and Mbit/s."""
CAUSES = {
    "ties": "tie rule",
    "substructure": "substructure",
    "allocation": "allocation",
    "order": "order and grouping",
    "idle": "idle devices",
}


def optima(runs: Runs, name: str) -> list[int] | None:
    """Latencies from Asteroid's plan down to the optimum, one per restriction that is lifted; ``None`` if one lacks."""
    found = [
        runs.objective(name, ASTEROID),
        runs.objective(name, ASTEROID, **BEST_TIES),
        runs.objective(name, PARETO, **BEST_TIES),
        runs.objective(name, EXACT, **BEST_ORDER),
        runs.objective(f"{name}+all", EXACT),
        runs.objective(name, EXACT),
    ]
    known = [value for value in found if value is not None]
    return known if len(known) == len(found) else None


def _simulated(runs: Runs, name: str, method: str) -> int | None:
    """Simulated round of a method's plan, ticks."""
    row = schedule(runs, name, method)
    return None if row is None else round(row["latency_s"] / instance(name).seconds_per_tick)


def _steps(runs: Runs) -> Iterator[tuple[dict[str, Any], list[tuple[str, float]]]]:
    """The rows of the table of losses, each with the steps of its waterfall."""
    for name, place in cases(CHAIN):
        chain, kind = optima(runs, name), pays(runs, name)
        if chain is None or kind is None:
            continue
        best = chain[-1]
        values = [100 * value / best for value in chain]
        row = place | {"kind": kind, "total": values[0] - 100}
        row |= dict.fromkeys(("model_asteroid", "model", "simulated"))  # where nothing is simulated
        row |= {key: values[k] - values[k + 1] for k, key in enumerate(CAUSES)}
        steps = [("Asteroid", values[0]), *zip(CAUSES.values(), values[1:], strict=True), ("optimum", 100.0)]
        real, ours = _simulated(runs, name, EXACT), _simulated(runs, name, ASTEROID)
        if real is not None and ours is not None:
            row |= {"model_asteroid": 100 * (ours / chain[0] - 1), "model": 100 * (real / best - 1)}
            row["simulated"] = 100 * (ours / real - 1)
            steps += [("model error", 100 * real / best), ("optimum,\nsimulated", 100 * real / best)]
        yield row, steps


@tabulated(
    "losses",
    "What Asteroid loses, and why",
    "environment: env. | mbps: Mbit/s | network | kind: trains best | total; .2f | "
    + " | ".join(f"{key}: {text}; .2f" for key, text in CAUSES.items())
    + "| model_asteroid: model error, Asteroid; .2f | model: model error, optimum; .2f "
    "| simulated: total, simulated; .2f",
    "Percent of the optimum. Each cause is the difference of two optima. Tie rule: fastest first among boards of "
    "equal memory against the best of all orders that descending memory permits. Substructure: one sub-pipeline "
    "per state against Pareto sets. Allocation: Algorithm 1 against Eq. (7). Order and grouping: against any "
    "groups that use all devices. Idle devices: against the optimum that need not. Model error (at 100 Mbit/s): "
    "the simulated round (half duplex) over the closed form of the same plan, in percent of the latter; total, "
    "simulated: both plans simulated.",
)
def losses(runs: Runs) -> Rows:
    """One row per network on environments B and C, in percent of the optimum."""
    return (row for row, _ in _steps(runs))


def loss_pictures(runs: Runs) -> list[Picture]:
    """A waterfall where a pipeline pays and Asteroid does not find the best one."""
    keys = {title: network for network, title in NETWORKS.items()}
    pictures = []
    for row, steps in _steps(runs):
        if row["kind"] == PIPELINE and row["total"] >= OPTIMAL:
            environment, mbps, network = row["environment"], row["mbps"], row["network"]
            heading = f"{network}, environment {environment}, {mbps} Mbit/s"
            totals = {k for k, (step, _) in enumerate(steps) if k == 0 or step.startswith("optimum")}
            text = f"Loss of Asteroid, {heading}."
            name = f"loss_{environment.lower()}_{keys[network]}_{mbps}"
            pictures.append(picture(name, waterfall(steps, totals, heading), text))
    return pictures
