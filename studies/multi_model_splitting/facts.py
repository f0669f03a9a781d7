"""What the paper prints about models and latencies, next to what the layer tables say (Table 1, Fig. 7)."""

from __future__ import annotations

from itertools import pairwise
from statistics import mean
from typing import Any

from mapgap.instances.multi_model_splitting.compact import Compact, CompactDevice, CompactPipeline, expand
from mapgap.instances.multi_model_splitting.models import TITLES, load_model
from mapgap.instances.published_numbers import load_published
from mapgap.reporting.tables import Rows, tabulated
from mapgap.reporting.verdicts import verdict

OTHER = {"WideNet": "ressimplenet", "ResSimpleNet": "widenet"}
"""The two simple networks, each with the file of the other: Table 1 has their totals swapped."""


def printed() -> dict[str, Any]:
    """Printed numbers by identifier."""
    return load_published("synergy")


@tabulated(
    "table_1",
    "Table 1: models",
    "model | printed_layers: layers printed | layers | printed_bytes: bytes printed | bytes "
    '| printed_average: "Avg. Out Size" printed | cycles: mean cycles per layer; .1f | output: mean output bytes; .1f '
    "| verdict: verdict on the last printed column",
    "Mean cycles: the accelerator vendor's latency estimator, summed over the layers and divided by their number. "
    "One constant each of UNet and ResSimpleNet was inferred from this column (networks/synergy/*.yaml), so their "
    "rows are no evidence on their own; the others have no fitted constant.",
)
def table_1() -> Rows:
    """Table 1: layer counts, model bytes, and what its last column holds."""
    for model in map(load_model, TITLES):
        rounded, other = round(model.average_cycles), _other_total(model.title)
        word = "equal to mean cycles" if rounded == model.printed_average else "differs"
        if word == "differs" and other == model.printed_average:
            word = f"total cycles of {load_model(OTHER[model.title]).title} / {len(model.rows)}"
        row = {"model": model.title, "layers": len(model.rows), "bytes": model.model_bytes, "other": other}
        row |= {key: getattr(model, key) for key in ("printed_layers", "printed_bytes", "printed_average")}
        yield row | {
            "cycles": model.average_cycles,
            "output": model.average_output,
            "rounded": rounded,
            "verdict": word,
        }


def _other_total(title: str) -> int | None:
    """Cycles of the other simple network over the number of layers of this one; ``None`` for other models."""
    if title not in OTHER:
        return None
    return round(sum(row.estimated_cycles for row in load_model(OTHER[title]).rows) / len(load_model(title).rows))


FITTED = ("fig7_mem", "fig7_mem_ratio", "fig7_min", "fig7_max")
"""Numbers of Fig. 7 from which constants of the latency model were derived."""


#: Rows of Fig. 7 in their order.
WHAT = {
    "fig7_inf": "mean inference latency of a layer",
    "fig7_mem": "mean memory latency of a layer (loading and unloading)",
    "fig7_comm": "mean communication latency of a layer's output",
    "fig7_comm_inner": "the same, the last output not sent",
    "fig7_min": "lowest communication latency, ours times 10",
    "fig7_max": "highest communication latency, ours times 10",
    "fig7_mem_ratio": "memory over inference [1]",
    "fig7_comm_ratio": "communication over inference [1]",
    "fig7_comm_ratio_inner": "the same, the last output not sent [1]",
    "fig7_range": "highest over lowest communication latency [1]",
}


def _unet() -> dict[str, float]:
    """Ours of every row of Fig. 7, in milliseconds or as a ratio."""
    device, unet = CompactDevice(name="d1", type="MAX78000"), CompactPipeline(model="unet")
    one = expand(Compact(name="unet", devices=(device,), pipelines=(unet,)))
    pipeline, tick = one.pipelines[0], one.seconds_per_tick * 1e3
    cuts = pipeline.boundaries
    sent = [cut.transmit[0] for cut in cuts[1:]]
    ours = {
        "fig7_inf": mean(layer.inference[0] for layer in pipeline.layers) * tick,
        "fig7_mem": mean(a.load[0] + b.unload[0] for a, b in pairwise(cuts)) * tick,
        "fig7_comm": mean(sent) * tick,
        "fig7_comm_inner": sum(sent[:-1]) / len(pipeline.layers) * tick,
        "fig7_min": min(sent) * tick * 10,
        "fig7_max": max(sent) * tick * 10,
    }
    for key in ("fig7_mem", "fig7_comm"):
        ours[f"{key}_ratio"] = ours[key] / ours["fig7_inf"]
    inner = ours["fig7_comm_inner"] / ours["fig7_inf"]
    return ours | {"fig7_comm_ratio_inner": inner, "fig7_range": ours["fig7_max"] / ours["fig7_min"]}


@tabulated(
    "figure_7",
    "Fig. 7: layers of UNet",
    "what: UNet on MAX78000 [ms] | printed; g | ours; .2f | verdict",
    "Fitted: the time per byte of the radio comes from the two extremes (divided by ten, which their contradiction "
    "with the mean asks for), that of copies from the memory latency, so these rows confirm nothing. The mean "
    "communication latency, the ratio of the extremes (no time per byte in it) and inference have no free constant.",
)
def figure_7() -> Rows:
    """Fig. 7: mean latencies of UNet per layer under the latency model of the instances."""
    ours = _unet()
    for key, what in WHAT.items():
        paper = printed()[key.removesuffix("_inner")]
        word = "fitted" if key in FITTED else verdict(paper, ours[key])
        yield {"key": key, "what": what, "printed": paper, "ours": ours[key], "verdict": word}
