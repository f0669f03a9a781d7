"""Throughput and cost of planning against the size of the cluster and of the network (Fig. 18)."""

from __future__ import annotations

from mapgap import figures
from mapgap.report import Picture, picture
from mapgap.studies._hybrid_pipeline_runs import ASTEROID, EXACT, NETWORKS, Runs, instance, library_name


def scalability(runs: Runs) -> list[Picture]:
    """Fig. 18: throughput over the number of Nano; and the cost of planning."""
    pictures = []
    cost: dict[str, list[tuple[float, float]]] = {}
    for network in tuple(NETWORKS)[:2]:
        series: dict[str, list[tuple[float, float]]] = {}
        for method in (EXACT, ASTEROID, "data_parallel", "gpipe"):
            for count in range(1, 9):
                name = f"asteroid_nano{count}_{network}_100mbps"
                value = runs.term(name, method, "samples_per_s")
                if value is not None:
                    series.setdefault(method, []).append((count, value))
                seconds = runs.note(name, method, "search_s" if method == EXACT else "cpu_s")
                if seconds is not None and method in (EXACT, ASTEROID):
                    label = f"{method}, L = {len(instance(name).layers)}"
                    cost.setdefault(label, []).append((count, 1000 * seconds))
        figure = figures.lines(series, xlabel="Jetson Nano", ylabel="samples per second", title=NETWORKS[network])
        pictures.append(picture(f"fig18_{network}", figure, "Throughput; a missing point is out of memory."))
    figure = figures.lines(cost, xlabel="devices (one type)", ylabel="planning [ms CPU]")
    return [*pictures, picture("planning_cost", figure, "Cost of planning against devices and layers.")]


def layer_cost(runs: Runs) -> list[Picture]:
    """Cost of planning against the number of layers, environment C."""
    series: dict[str, list[tuple[float, float]]] = {}
    for network in NETWORKS:
        name = library_name("c", network)
        for method, note in ((EXACT, "search_s"), (ASTEROID, "cpu_s")):
            seconds = runs.note(name, method, note)
            if seconds is not None:
                series.setdefault(method, []).append((len(instance(name).layers), 1000 * seconds))
    figure = figures.lines(series, xlabel="layers (environment C)", ylabel="planning [ms CPU]")
    return [picture("planning_layers", figure, "Cost of planning against the number of layers.")]
