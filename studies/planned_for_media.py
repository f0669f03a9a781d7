"""Plans made for ports or one medium, beside the best plans of links of their own, replayed there.

Of MTrain's problem the library's instances whose best plan of links loses to a single board on ports, as the report on
shared links has them; of Asteroid's the four environments; of Synergy's the four workloads.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from mapgap.catalogue import registry
from mapgap.catalogue.files import load_instance, load_plan, on_medium
from mapgap.clock.replay import Medium
from mapgap.evidence.ledger import Ledger
from mapgap.evidence.media import replayed_s
from mapgap.execution.sweep import MethodJob
from mapgap.records.record import RunRecord
from mapgap.records.runs import Runs
from mapgap.reporting.report import Page, Section
from mapgap.reporting.study import Phase, Study
from mapgap.reporting.tables import Rows, tabulated

TURNED = (
    "mtrain_c2_resnet56_0p125gbs",
    "mtrain_c3_resnet56_0p125gbs",
    "mtrain_c3_resnet56_0p5gbs",
    "mtrain_c3_tinyyolov3_0p125gbs",
    "mtrain_c3_vgg16_0p125gbs",
    "mtrain_scale_6fpga_resnet18_0p5gbs",
    "mtrain_scale_8fpga_resnet18_0p5gbs",
)
NETWORKS = ("bert_small", "efficientnet_b1", "mobilenetv2", "resnet50")
ASTEROID = tuple(f"asteroid_{e}_{net}_{mbps}mbps" for e in "abcd" for net in NETWORKS for mbps in (100, 1000))
SYNERGY = tuple(f"synergy_w{w}_{ends}" for w in range(1, 5) for ends in ("distributed", "overlapped", "any"))
ALONE = {"suboperation_mapping": "single_accelerator", "hybrid_pipeline": "on_device"}
"""What leaves everything on one board; Synergy's problem has no such method."""


def phases(quick: bool) -> list[Phase]:
    """The quick planner on ports; exact methods on one medium; the single boards."""
    kinds = (("ports", TURNED, "annealed_converting", 120.0), ("shared", ASTEROID, "label_dp", 60.0))
    found = []
    for medium, names, method, limit in (*kinds, ("shared", SYNERGY, "joint", 60.0)):
        jobs = [job for name in names[: 1 if quick else None] for job in _jobs(name, medium, method, limit)]
        found.append(Phase(f"{medium}: {method}", jobs))
    return found


def _jobs(name: str, medium: str, method: str, limit: float) -> Iterator[MethodJob]:
    links = load_instance(name)
    instance = on_medium(links, medium)
    if getattr(instance, "tick_ns", 0) != getattr(links, "tick_ns", 0):  # two plans are compared in the same ticks
        return
    yield MethodJob(instance, method, limit)
    if instance.problem in ALONE:
        yield MethodJob(instance, ALONE[instance.problem], 60.0)


@tabulated(
    "planned",
    "Planned for the medium",
    "problem | instance | medium | single: one board [s]; .4g | links: best plan of links, replayed [s]; .4g "
    "| planned: planned for it, replayed [s]; .4g | ratio: of that; .2f | model: planned for it, model [s]; .4g "
    "| status",
    "Seconds of a round on the medium. A plan that is optimal for the model may be longer in the replay than another.",
)
def planned(records: Runs) -> Rows:
    """A row per instance."""
    book = Ledger.load()
    for record in records:
        if record.method in ALONE.values() or record.plan is None:
            continue
        name, _, word = record.instance.partition("@")
        medium: Medium = "ports" if word == "ports" else "shared"
        entry = book.entries.get(name)
        if entry is None or entry.plan is None:
            continue
        instance = load_instance(name)
        links = replayed_s(instance, load_plan(book.plan_path(name), record.problem), medium)
        own = replayed_s(instance, _plan(record), medium)
        alone = [each for each in records if each.instance == record.instance and each.method in ALONE.values()]
        yield {
            "problem": record.problem,
            "instance": name,
            "medium": medium,
            "single": _seconds(instance, alone[0]) if alone else None,
            "links": links,
            "planned": own,
            "ratio": links / own,
            "model": _seconds(instance, record),
            "status": record.status.lower(),
        }


def _plan(record: RunRecord) -> Any:
    return registry.problems()[record.problem].plan_type.model_validate_json(json.dumps(record.plan))


def _seconds(instance: Any, record: RunRecord) -> float | None:
    return None if record.objective is None else record.objective * instance.seconds_per_tick


@tabulated(
    "by_medium",
    "By problem",
    "problem | medium | plans | proven: proven optimal | longer: best plan of links takes longer "
    "| most: times as long, at most; .2f | shorter: shorter | least: times as long, at least; .2f",
    "A difference of a thousandth or less does not count.",
)
def by_medium(rows: list[dict[str, Any]]) -> Rows:
    """How often planning for the medium pays in the replay, and how often not."""
    for problem in dict.fromkeys(row["problem"] for row in rows):
        own = [row for row in rows if row["problem"] == problem]
        ratios = [row["ratio"] for row in own]
        yield {
            "problem": problem,
            "medium": own[0]["medium"],
            "plans": len(own),
            "proven": sum(row["status"] == "optimal" for row in own),
            "longer": sum(ratio > 1.001 for ratio in ratios),
            "most": max(ratios),
            "shorter": sum(ratio < 0.999 for ratio in ratios),
            "least": min(ratios),
        }


def page(records: Runs, quick: bool) -> Page:
    """The page of the study."""
    del quick
    every = planned(records)
    lead = [
        "Exact methods, and MTrain's quick planner, plan for the medium of an instance. Their plans are replayed there "
        "event by event, beside the best plans known of links of their own."
    ]
    tables = [by_medium(list(every.rows)), every]
    return Page("Plans made for ports and for one medium", lead, [Section("Planned for media", tables=tables)])


STUDY = Study(
    name="planned_for_media",
    title="Plans made for ports and for one medium",
    problem="suboperation_mapping",
    phases=phases,
    page=page,
    headline=("by_medium",),
)
