"""How plans are executed: 1F1B policies (Fig. 15b), the error of the closed form, plans and schedules (Figs. 4, 12)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mapgap.problems.hybrid_pipeline import PROBLEM
from mapgap.records.runs import Runs
from mapgap.reporting import figures
from mapgap.reporting.gantt import plan_chart
from mapgap.reporting.report import Picture, picture
from mapgap.reporting.tables import Column, Rows, Table, header, tabulated
from mapgap.studies.hybrid_pipeline.claims import hetpipe_s
from mapgap.studies.hybrid_pipeline.experiments import (
    ASTEROID,
    EXACT,
    NETWORKS,
    instance,
    library_name,
    plan_of,
    published,
    ratio,
    schedule,
)
from mapgap.studies.hybrid_pipeline.figures import memory_figure, plan_figure, policy_figure

PIPELINE = "gpipe"
"""Whose straight pipeline of three stages Fig. 15(b) is drawn for: balanced stages, one board each."""
POLICIES = {"ours": "2(P-p)-1", "a": "2(P-p)", "b": "P-p", "c": "2(P-p)+1", "gpipe": "M"}
TITLES = {"ours": "Asteroid", "a": "(a)", "b": "(b)", "c": "(c)", "gpipe": "without 1F1B"}
MBPS = (100, 1000)
COMPARABLE = 0.95
"""Throughputs within 5 % are called comparable."""
Latency = Callable[[Runs, str], float | None]
"""Seconds of a method's round on an instance."""


def policy_name(mbps: int) -> str:
    """Library name of the three TX2 of Fig. 15(b)."""
    return f"asteroid_tx2x3_efficientnet_b1_{mbps}mbps"


def _gigabytes(name: str, peaks: dict[str, int]) -> float:
    unit: int = instance(name).memory_unit_bytes
    return max(peaks.values()) * unit / 1e9


def _policy_rows(runs: Runs) -> list[dict[str, Any]]:
    rows = []
    for mbps in MBPS:
        name = policy_name(mbps)
        found = {p: (schedule(runs, name, PIPELINE, p), schedule(runs, name, PIPELINE, p, "full")) for p in POLICIES}
        ours = found["ours"][0]
        for policy, (half, full) in found.items():
            if half is None or full is None or ours is None:
                continue
            rows.append(
                {
                    "mbps": mbps,
                    "policy": TITLES[policy],
                    "kept": POLICIES[policy],
                    "half": half["samples_per_s"],
                    "relative": half["samples_per_s"] / ours["samples_per_s"],
                    "full": full["samples_per_s"],
                    "memory": _gigabytes(name, half["peak_memory"]),
                    "memory_relative": _gigabytes(name, half["peak_memory"]) / _gigabytes(name, ours["peak_memory"]),
                }
            )
    return rows


def policies(runs: Runs) -> tuple[list[Table], list[Picture]]:
    """Fig. 15(b): simulated throughput and peak memory (Eq. 3) of the policies, and what Sec. 5.4 says."""
    rows = _policy_rows(runs)
    columns = header(
        "mbps: Mbit/s | policy | kept: K_p | half: half duplex [1/s]; .1f | relative: over Asteroid's; .3f "
        "| full: full duplex [1/s]; .1f | memory: peak memory [GB]; .2f | memory_relative: over Asteroid's; .2f"
    )
    note = (
        "EfficientNet-B1 on three TX2, one balanced stage each, 16 micro-batches of 128; throughput by the "
        "event-driven simulator. K_p is at most 16. Bandwidth and micro-batch of Fig. 15(b) are not printed."
    )
    table = Table("fig15b", "Fig. 15(b), right: 1F1B policies", columns, rows, note)
    pictures = [
        picture(f"fig15b_{mbps}", policy_figure(shown), f"1F1B policies (Fig. 15b, right), {mbps} Mbit/s.")
        for mbps in MBPS
        if (shown := [row for row in rows if row["mbps"] == mbps])
    ]
    return [table, _schedule_memory(runs), _claims(rows, runs)], pictures


@tabulated(
    "fig15b_memory",
    "Fig. 15(b), left: memory per stage",
    "stage | ours: 1F1B [GB]; .2f | without: without 1F1B [GB]; .2f | dp: DP, micro-batches [GB]; .2f "
    "| dp_whole: DP, mini-batch at once [GB]; .2f",
    "By Eq. (3), 100 Mbit/s. Every device of DP holds the whole network and its samples of one micro-batch "
    "(gradients accumulate), or of the mini-batch at once; the paper does not say which.",
)
def _schedule_memory(runs: Runs) -> Rows:
    """Fig. 15(b), left: memory per stage of 1F1B, of the same pipeline without it, and of data parallelism."""
    name = policy_name(100)
    made = instance(name)
    unit, rounds = made.memory_unit_bytes / 1e9, made.mini_batch // made.micro_batch_sizes[0]
    state = sum(layer.state_memory for layer in made.layers)
    whole = runs.term(name, "data_parallel", "peak_memory")
    with_it, without = schedule(runs, name, PIPELINE), schedule(runs, name, PIPELINE, "gpipe")
    if with_it and without and whole:
        for stage, device in enumerate(with_it["peak_memory"]):
            row = {"stage": stage, "ours": with_it["peak_memory"][device] * unit}
            row |= {"without": without["peak_memory"][device] * unit, "dp": whole[device] * unit}
            yield row | {"dp_whole": (state + rounds * (whole[device] - state)) * unit}


@tabulated(
    "fig15b_claims",
    "Sec. 5.4: what the paper says of K_p = 2 (P - p) - 1",
    "id | claim | printed | value: here; .3f | margin; +.3f",
    "Margin: below 0 where the memory is smaller as the paper says; above 0 where the throughput reaches "
    f"{COMPARABLE:g} of the other policies'. That K_p = 2 (P - p) - 1 has the smallest peak memory is no claim to "
    "be tested: by Eq. (3) a larger K_p never stores less, so (a) and (c) are above it and (b) is below, always.",
)
def _claims(rows: list[dict[str, Any]], runs: Runs) -> Rows:
    """What Sec. 5.4 says of Fig. 15(b), next to what is so here."""
    printed = published()
    left = _schedule_memory(runs).rows
    if left:
        ours, *others = (max(row[key] for row in left) for key in ("ours", "without", "dp", "dp_whole"))
        names = {"without": "without 1F1B", "dp_micro": "DP by micro-batches", "dp_mini": "DP, mini-batch at once"}
        for (key, name), other in zip(names.items(), others, strict=True):
            yield {
                "id": f"memory_{key}",
                "claim": f"peak memory of 1F1B, over {name}",
                "printed": printed["f15b_schedules"],
                "value": ours / other,
                "margin": ours / other - 1,
            }
    for mbps in sorted({row["mbps"] for row in rows}):
        by = {row["policy"]: row["relative"] for row in rows if row["mbps"] == mbps}
        value = 1 / max(by["(a)"], by["(c)"])
        yield {
            "id": f"throughput_{mbps}",
            "claim": f"throughput over the better of (a) and (c), {mbps} Mbit/s",
            "printed": printed["f15b_throughput"],
            "value": value,
            "margin": value - COMPARABLE,
        }


@tabulated(
    "simulated",
    "Model error: simulated round over Eqs. (4)-(6)",
    "environment: env. | network | method: plan of | model: model [s]; .3f | simulated: simulated [s]; .3f "
    "| ratio: simulated / model; .3f | full: full duplex / model; .3f | bound: simulated / bound; .3f",
    "Event-driven 1F1B, K_p = 2 (P - p) - 1, half-duplex links unless stated. Bound: simulator_bound, below which "
    "no plan's simulated round (half duplex) can be; 1.000 proves the plan best in the simulation, too.",
)
def model_error(runs: Runs) -> Rows:
    """The simulated 1F1B round over the closed form, of the plans of Asteroid and of the exact method."""
    for environment in "bc":
        for network, title in NETWORKS.items():
            name = library_name(environment, network)
            bound = runs.get(name, "simulator_bound")
            for method in (ASTEROID, EXACT):
                model = runs.term(name, method, "latency_s", simulate=True)
                half, full = (schedule(runs, name, method, duplex=duplex) for duplex in ("half", "full"))
                if model is None or half is None or full is None:
                    continue
                least = bound.bound * instance(name).seconds_per_tick if bound and bound.bound else None
                yield {
                    "environment": environment.upper(),
                    "network": title,
                    "method": method,
                    "model": model,
                    "simulated": half["latency_s"],
                    "ratio": half["latency_s"] / model,
                    "full": full["latency_s"] / model,
                    "bound": half["latency_s"] / least if least else None,
                }


def plans(runs: Runs) -> list[Picture]:
    """Plans of Asteroid and of the exact method (Figs. 4 and 12), and what they store."""
    pictures = []
    for network, title in NETWORKS.items():
        name = library_name("c", network)
        peaks = {}
        for method in (ASTEROID, EXACT):
            plan = plan_of(runs, name, method)
            if plan is None:
                continue
            text = f"{title}, environment C, 100 Mbit/s, {method}"
            figure = plan_figure(instance(name), plan, f"{title}: {method}")
            pictures.append(picture(f"plan_{network}_{method}", figure, f"{text}: stages, devices, shares (Fig. 12)."))
            peaks[method] = runs.term(name, method, "peak_memory")
            if method == EXACT:
                chart = plan_chart(PROBLEM, instance(name), plan)
                pictures.append(picture(f"schedule_{network}", chart, f"{text}: simulated 1F1B schedule (Fig. 4)."))
        if peaks:
            pictures.append(
                picture(f"memory_{network}", memory_figure(instance(name), peaks), f"{title}: memory by Eq. (3).")
            )
    return pictures


def comparison(
    runs: Runs, key: str, title: str, methods: tuple[str, ...], own: Mapping[str, Latency] | None = None
) -> tuple[Table, list[Picture]]:
    """Latency of methods over the optimum on environments B and C, and their throughput.

    Parameters
    ----------
    own : mapping of callable, optional
        Methods that are judged by a latency of their own, in seconds.
    """
    rows: list[dict[str, Any]] = []
    pictures = []
    shown = (*methods, ASTEROID, EXACT)
    for environment in "bc":
        names = {NETWORKS[n]: library_name(environment, n) for n in NETWORKS}
        names = {label: name for label, name in names.items() if runs.get(name, methods[0])}
        series: dict[str, list[float | None]] = {method: [] for method in shown}
        for label, name in names.items():
            row: dict[str, Any] = {"environment": environment.upper(), "network": label}
            best = runs.term(name, EXACT, "latency_s")
            for method in shown:
                seconds = (own or {}).get(method, _latency_s(method))(runs, name)
                row[method] = seconds / best if seconds and best else None
                series[method].append(100 / row[method] if row[method] else None)
            rows.append(row)
        if names:
            labels = [label.replace("-", "-\n") for label in names]
            bars = figures.grouped_bars(labels, series, ylabel="throughput, optimum = 100")
            text = f"Environment {environment.upper()}, 100 Mbit/s; an empty place is out of memory."
            pictures.append(picture(f"{key}_{environment}", bars, text))
    columns = [*header("environment: env. | network"), *(Column(m, m, ".3f") for m in shown)]
    note = "Latency over the certified optimum; blank: out of memory."
    if own:
        note += f" {', '.join(own)} by its own execution, memory not checked."
    return Table(key, title, columns, rows, note), pictures


def _latency_s(method: str) -> Latency:
    return lambda runs, name: runs.term(name, method, "latency_s")


@tabulated(
    "hetpipe",
    "HetPipe: its own execution, and its placement as an HPP",
    "environment: env. | network | workers: virtual workers | own: own execution; .3f | hpp: as an HPP; .3f",
    "Latency over the optimum. Own: every virtual worker is a pipeline, and all weights cross the link of a "
    "parameter server once in each direction. HetPipe chooses the number of workers by that; with one there is no "
    "server, and every stage has one board.",
)
def as_hpp(runs: Runs) -> Rows:
    """HetPipe's placement: by its own execution, and run as an HPP."""
    for environment in "bc":
        for network, title in NETWORKS.items():
            name = library_name(environment, network)
            own, best = hetpipe_s(runs, name), runs.term(name, EXACT, "latency_s")
            if own is None or best is None:
                continue
            row: dict[str, Any] = {"environment": environment.upper(), "network": title, "own": own / best}
            row |= {"workers": runs.note(name, "hetpipe", "workers"), "hpp": ratio(runs, name, "hetpipe", EXACT)}
            yield row
