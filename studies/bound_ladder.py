"""Which kind of work of MTrain's strongest exact method proves how much: rungs of its ladder of bounds by instance.

``stage_mip`` notes the bound of the instance after each kind of work that raised it: the ladder of its record. Every
network of the paper on each of its clusters at one bandwidth, and clusters of more FPGAs, each for the same time. Gaps
are to the best plan that the ledger knows, which the method does not.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import fmean
from typing import Any

from mapgap.catalogue.files import load_instance
from mapgap.execution.sweep import MethodJob
from mapgap.records.record import RunRecord
from mapgap.records.runs import Runs
from mapgap.reporting.report import Page, Section
from mapgap.reporting.study import Phase, Study
from mapgap.reporting.tables import Rows, tabulated

PROBLEM, METHOD, TIME_S = "suboperation_mapping", "stage_mip", 30.0
RUNGS = ("path", "flow", "boxes", "places", "chain", "stage LP", "destructive", "complete")
"""In the order of their price."""
NETWORKS = ("alexnet", "vgg16", "resnet18", "tinyyolov3", "resnet56")
SCALE = ("2fpga", "4fpga", "6fpga", "8fpga")
NAMES = [
    *(f"mtrain_c{cluster}_{network}_1gbs" for cluster in (1, 2, 3) for network in NETWORKS),
    *(f"mtrain_scale_{size}_resnet18_3gbs" for size in SCALE),
]


def phases(quick: bool) -> list[Phase]:
    """One run per instance, two at a time; the small version has two instances for a second."""
    names, time_s = (NAMES[:2], 1.0) if quick else (NAMES, TIME_S)
    return [Phase("ladder", [MethodJob(load_instance(name), METHOD, time_s) for name in names], parallel=2)]


def climbed(records: Runs) -> Iterator[tuple[RunRecord, int, dict[str, int]]]:
    """Of every run the best plan known, and the bound by rung that raised it."""
    best = {
        name: min(r.objective for r in records if r.instance == name and r.objective is not None)
        for name in dict.fromkeys(r.instance for r in records if r.objective is not None)
    }
    for record in records:
        if record.method == METHOD and "ladder" in record.notes:
            yield record, best[record.instance], dict(record.notes["ladder"])


@tabulated(
    "rungs",
    "What each rung proves",
    "rung | raised: raised the bound | last: had the last word | far: gap at most 10 % | near: at most 5 % "
    "| close: at most 1 % | closed: 0 | mean: mean gap [%]; .1f | worst: worst gap [%]; .1f",
    "Numbers of instances; gaps are of the best plan known over the bound when the rung, and those above it in this "
    "table, had done their work.",
)
def rungs(records: Runs) -> Rows:
    """A row per rung, the cheapest first."""
    runs = list(climbed(records))
    for k, rung in enumerate(RUNGS):
        gaps = [best / max(b for r, b in ladder.items() if RUNGS.index(r) <= k) - 1.0 for _, best, ladder in runs]
        if gaps:
            yield {
                "rung": rung,
                "raised": sum(rung in ladder for _, _, ladder in runs),
                "last": sum(max(ladder, key=lambda r: ladder[r]) == rung for _, _, ladder in runs),
                **{key: sum(g <= most for g in gaps) for key, most in _COUNTED.items()},
                "mean": 100.0 * fmean(gaps),
                "worst": 100.0 * max(gaps),
            }


_COUNTED = {"far": 0.10, "near": 0.05, "close": 0.01, "closed": 0.0}


@tabulated(
    "each",
    "Gap after each rung",
    "instance | " + " | ".join(f"{rung.replace(' ', '_')}: {rung}; .2f" for rung in RUNGS),
    "In percent of the bound; blank where the rung has not raised it.",
)
def each(records: Runs) -> Rows:
    """A row per instance."""
    for record, best, ladder in climbed(records):
        row: dict[str, Any] = {"instance": record.instance}
        yield row | {rung.replace(" ", "_"): 100.0 * (best / bound - 1.0) for rung, bound in ladder.items()}


def page(records: Runs, quick: bool) -> Page:
    """Both tables."""
    lead = [
        f"The bounds of {METHOD} in {1.0 if quick else TIME_S:g} s, one worker, by the kind of work that proved them."
    ]
    return Page("Ladder of bounds", lead, [Section("Rungs", tables=[rungs(records), each(records)])])


STUDY = Study(
    name="bound_ladder",
    title="Ladder of bounds of sub-operation mapping",
    problem=PROBLEM,
    phases=phases,
    page=page,
    headline=["rungs"],
    knows=True,
)
