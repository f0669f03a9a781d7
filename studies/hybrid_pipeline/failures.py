"""Re-planning after a failure (Figs. 16 and 17): throughput before and after, and the outage between them."""

from __future__ import annotations

from typing import Any

from mapgap.records.runs import Runs
from mapgap.reporting import figures
from mapgap.reporting.report import Picture, picture
from mapgap.reporting.tables import Rows, tabulated
from mapgap.studies.hybrid_pipeline.experiments import ASTEROID, EXACT, instance, library_name, published, ratio
from mapgap.studies.hybrid_pipeline.figures import outage_figure

LIGHT, HEAVY = "flops_recut", "heavy_rescheduling"
REPLANNING = (LIGHT, "cuts_only", HEAVY, EXACT)
FAILED = ("tx2", "nano1", "nano2", "nano3")
PACE = "heavy_rescheduling, Table 7's pace"


def failure_name(device: str) -> str:
    """Library name of the case in which a device leaves environment D."""
    return f"{library_name('d', 'efficientnet_b1')}_without_{device}"


def failed_device(name: str) -> str:
    """The device that leaves in a case."""
    replanning = instance(name).replanning
    assert replanning is not None
    return replanning.failed


def paper_planning_s(runs: Runs, name: str) -> float | None:
    """Time of Algorithm 2 after the failure at the pace of Table 7, by the number of stages it evaluates."""
    whole = runs.note(library_name("c", "efficientnet_b1"), ASTEROID, "stages_evaluated")
    part = runs.note(name, HEAVY, "stages_evaluated")
    return published()["t7_effnet"] * part / whole if whole and part else None


def _outage(replay: dict[str, Any], planning_s: float | None = None) -> float:
    planning = replay["planning_s"] if planning_s is None else planning_s
    return float(replay["detection_s"] + planning + replay["transport_s"])


@tabulated(
    "failures",
    "Fig. 16: re-planning after a failure",
    "device: failed | method | before: before [1/s]; .1f | after: after [1/s]; .1f | planning: planning [s CPU]; .3f "
    "| transport: transport [s]; .2f | outage: outage [s]; .2f | ratio: objective / exact; .3f",
    "Environment D, EfficientNet-B1, 100 rounds to come. Outage: detection (1 s, assumed), planning here, "
    "transport of weights: between the devices at the same time, with heavy_rescheduling all through the strongest "
    "device. The objective counts the transport between the devices and 100 rounds.",
)
def failures(runs: Runs) -> Rows:
    """Fig. 16: what every way of re-planning costs, for each device that fails."""
    for name, method in ((failure_name(device), method) for device in FAILED for method in REPLANNING):
        replay, after = runs.note(name, method, "replay"), runs.term(name, method, "samples_per_s")
        if replay and after is not None:
            row = {"device": failed_device(name), "method": method, "before": replay["corners"][0][1], "after": after}
            row |= {"planning": replay["planning_s"], "transport": replay["transport_s"]}
            yield row | {"outage": _outage(replay), "ratio": ratio(runs, name, method, EXACT)}


@tabulated(
    "fig17",
    "Fig. 17 and Sec. 5.5: lightweight against heavy",
    "device: failed | kept_printed: throughput kept, printed [%]; g | kept: throughput kept [%]; .1f "
    "| faster_printed: recovers faster, printed; g | faster: recovers faster; .1f "
    "| planning: heavy planning at Table 7's pace [s]; .1f | paced: recovers faster at that pace; .1f "
    "| needed: planning time for the printed factor [s]; .1f",
    "The lightweight re-planning (flops_recut) over heavy rescheduling; printed for device B, whose place the "
    "paper shows in a picture only. Here Algorithm 2 is compiled and takes milliseconds, so transport and "
    "detection are what remains. Table 7's pace: 480 s on an NX for environment C, by the number of stages "
    "evaluated.",
)
def recovery(runs: Runs) -> Rows:
    """Sec. 5.5: the lightweight re-planning against heavy rescheduling, printed and here."""
    printed = published()
    for name in map(failure_name, FAILED):
        light, heavy = (runs.note(name, method, "replay") for method in (LIGHT, HEAVY))
        speeds = [runs.term(name, method, "samples_per_s") for method in (LIGHT, HEAVY)]
        if not light or not heavy or None in speeds:
            continue
        slow, outage = paper_planning_s(runs, name), _outage(light)
        row = {"device": failed_device(name), "kept": 100 * speeds[0] / speeds[1], "faster": _outage(heavy) / outage}
        row |= {"kept_printed": printed["recovery_tput"], "faster_printed": printed["recovery"], "planning": slow}
        row |= {"paced": _outage(heavy, slow) / outage if slow else None}
        yield row | {"needed": printed["recovery"] * outage - _outage(heavy, 0.0)}


def failure_figures(runs: Runs) -> list[Picture]:
    """Fig. 16 (recovery time, throughput) and Fig. 17 (throughput over time) in form."""
    rows, pictures = failures(runs).rows, []
    devices = list(dict.fromkeys(row["device"] for row in rows))
    for key, ylabel in (("outage", "outage [s]"), ("after", "samples per second after")):
        by = {(row["device"], row["method"]): row[key] for row in rows}
        series = {method: [by.get((device, method)) for device in devices] for method in REPLANNING}
        if devices:
            text = f"Fig. 16: {ylabel}, by the device that fails."
            pictures.append(picture(f"fig16_{key}", figures.grouped_bars(devices, series, ylabel=ylabel), text))
    for device in FAILED:
        name = failure_name(device)
        corners = {m: replay["corners"] for m in REPLANNING if (replay := runs.note(name, m, "replay"))}
        slow, heavy = paper_planning_s(runs, name), runs.note(name, HEAVY, "replay")
        if heavy and slow:
            delay = slow - heavy["planning_s"]
            corners[PACE] = [[t + delay * (3 <= k <= 4), y] for k, (t, y) in enumerate(heavy["corners"])]
        if corners:
            failed = failed_device(name)
            text = f"Fig. 17: {failed} stops at second 100; outage of detection, planning and transport."
            pictures.append(picture(f"fig17_{device}", outage_figure(corners, f"{failed} fails"), text))
    return pictures
