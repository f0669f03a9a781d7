"""How plans are executed: 1F1B policies (Fig. 15b), the error of the closed form, plans and schedules (Figs. 4, 12)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mapgap.problems.hybrid_pipeline import PROBLEM
from mapgap.records.runs import Runs
from mapgap.reporting import figures
from mapgap.reporting.gantt import plan_chart
from mapgap.reporting.report import Picture, picture
from mapgap.reporting.tables import Rows, Table, header, tabulated
from mapgap.studies.hybrid_pipeline.claims import hetpipe_s
from mapgap.studies.hybrid_pipeline.experiments import (
    ASTEROID,
    EXACT,
    FAST,
    NETWORKS,
    cases,
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


@tabulated(
    "fig15b",
    "Fig. 15(b), right: 1F1B policies",
    "mbps: Mbit/s | policy | kept: K_p | half: half duplex [1/s]; .1f | relative: over Asteroid's; .3f "
    "| full: full duplex [1/s]; .1f | memory: peak memory [GB]; .2f | memory_relative: over Asteroid's; .2f",
    "EfficientNet-B1 on three TX2, one balanced stage each, 16 micro-batches of 128; throughput by the "
    "event-driven simulator. K_p is at most 16. Bandwidth and micro-batch of Fig. 15(b) are not printed.",
)
def _policies(runs: Runs) -> Rows:
    """Simulated throughput and peak memory (Eq. 3) of the policies."""
    for name, mbps in ((policy_name(mbps), mbps) for mbps in MBPS):
        ours = schedule(runs, name, PIPELINE, "ours")
        for policy in POLICIES:
            half, full = (schedule(runs, name, PIPELINE, policy, duplex) for duplex in ("half", "full"))
            if half is None or full is None or ours is None:
                continue
            memory, least = (_gigabytes(name, each["peak_memory"]) for each in (half, ours))
            row = {"mbps": mbps, "policy": TITLES[policy], "kept": POLICIES[policy], "half": half["samples_per_s"]}
            row |= {"relative": half["samples_per_s"] / ours["samples_per_s"], "full": full["samples_per_s"]}
            yield row | {"memory": memory, "memory_relative": memory / least}


def policies(runs: Runs) -> tuple[list[Table], list[Picture]]:
    """Fig. 15(b): throughput and memory of the policies, and what Sec. 5.4 says."""
    table, left = _policies(runs), _schedule_memory(runs)
    pictures = [
        picture(f"fig15b_{mbps}", policy_figure(shown), f"1F1B policies (Fig. 15b, right), {mbps} Mbit/s.")
        for mbps in MBPS
        if (shown := [row for row in table.rows if row["mbps"] == mbps])
    ]
    return [table, left, _claims(table, left)], pictures


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
        for stage, (device, peak) in enumerate(with_it["peak_memory"].items()):
            row = {"stage": stage, "ours": peak * unit, "without": without["peak_memory"][device] * unit}
            at_once = state + rounds * (whole[device] - state)
            yield row | {"dp": whole[device] * unit, "dp_whole": at_once * unit}


@tabulated(
    "fig15b_claims",
    "Sec. 5.4: what the paper says of K_p = 2 (P - p) - 1",
    "id | claim | printed | value: here; .3f | margin; +.3f",
    "Margin: below 0 where the memory is smaller as the paper says; above 0 where the throughput reaches "
    f"{COMPARABLE:g} of the other policies'. That K_p = 2 (P - p) - 1 has the smallest peak memory is no claim to "
    "be tested: by Eq. (3) a larger K_p never stores less, so (a) and (c) are above it and (b) is below, always.",
)
def _claims(right: Table, left: Table) -> Rows:
    """What Sec. 5.4 says of both sides of Fig. 15(b), next to what is so here."""
    printed = published()
    if left.rows:
        ours, *others = (max(row[key] for row in left.rows) for key in ("ours", "without", "dp", "dp_whole"))
        names = {"without": "without 1F1B", "dp_micro": "DP by micro-batches", "dp_mini": "DP, mini-batch at once"}
        for (key, name), other in zip(names.items(), others, strict=True):
            row = {"id": f"memory_{key}", "claim": f"peak memory of 1F1B, over {name}"}
            row |= {"printed": printed["f15b_schedules"], "value": ours / other}
            yield row | {"margin": ours / other - 1}
    for mbps in sorted({row["mbps"] for row in right.rows}):
        by = {row["policy"]: row["relative"] for row in right.rows if row["mbps"] == mbps}
        value = 1 / max(by["(a)"], by["(c)"])
        claim = f"throughput over the better of (a) and (c), {mbps} Mbit/s"
        row = {"id": f"throughput_{mbps}", "claim": claim, "printed": printed["f15b_throughput"]}
        yield row | {"value": value, "margin": value - COMPARABLE}


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
    for name, place in cases(FAST):
        bound = runs.get(name, "simulator_bound")
        least = bound.bound * instance(name).seconds_per_tick if bound and bound.bound else None
        for method in (ASTEROID, EXACT):
            model = runs.term(name, method, "latency_s", simulate=True)
            half, full = (schedule(runs, name, method, duplex=duplex) for duplex in ("half", "full"))
            if model is None or half is None or full is None:
                continue
            seconds = half["latency_s"]
            row = place | {"method": method, "model": model, "simulated": seconds, "ratio": seconds / model}
            yield row | {"full": full["latency_s"] / model, "bound": seconds / least if least else None}


def plans(runs: Runs) -> list[Picture]:
    """Plans of Asteroid and of the exact method (Figs. 4 and 12), and what they store."""
    pictures = []
    for network, title in NETWORKS.items():
        made, peaks = instance(library_name("c", network)), {}
        for method in (ASTEROID, EXACT):
            plan = plan_of(runs, made.name, method)
            if plan is None:
                continue
            text = f"{title}, environment C, 100 Mbit/s, {method}"
            figure = plan_figure(made, plan, f"{title}: {method}")
            pictures.append(picture(f"plan_{network}_{method}", figure, f"{text}: stages, devices, shares (Fig. 12)."))
            peaks[method] = runs.term(made.name, method, "peak_memory")
            if method == EXACT:
                chart = plan_chart(PROBLEM, made, plan)
                pictures.append(picture(f"schedule_{network}", chart, f"{text}: simulated 1F1B schedule (Fig. 4)."))
        if peaks:
            text = f"{title}: memory by Eq. (3)."
            pictures.append(picture(f"memory_{network}", memory_figure(made, peaks), text))
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
    for environment in FAST:
        found = [(name, place) for name, place in cases([environment]) if runs.get(name, methods[0])]
        for name, row in found:
            best = runs.term(name, EXACT, "latency_s")
            for method in shown:
                seconds = (own or {}).get(method, _latency_s(method))(runs, name)
                row[method] = seconds / best if seconds and best else None
        mine = [row for _, row in found]
        rows += mine
        if mine:
            labels = [row["network"].replace("-", "-\n") for row in mine]
            series = {method: [100 / row[method] if row[method] else None for row in mine] for method in shown}
            bars = figures.grouped_bars(labels, series, ylabel="throughput, optimum = 100")
            text = f"Environment {environment[0].upper()}, 100 Mbit/s; an empty place is out of memory."
            pictures.append(picture(f"{key}_{environment[0]}", bars, text))
    columns = header("environment: env. | network" + "".join(f" | {method}; .3f" for method in shown))
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
    for name, place in cases(FAST):
        own, best = hetpipe_s(runs, name), runs.term(name, EXACT, "latency_s")
        if own is not None and best is not None:
            row = place | {"own": own / best, "workers": runs.note(name, "hetpipe", "workers")}
            yield row | {"hpp": ratio(runs, name, "hetpipe", EXACT)}
