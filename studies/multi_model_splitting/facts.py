"""What the paper prints about models and latencies, next to what the layer tables say (Table 1, Fig. 7)."""

from __future__ import annotations

from itertools import pairwise
from statistics import mean
from typing import Any

from mapgap.instances.multi_model_splitting.compact import Compact, CompactDevice, CompactPipeline, expand
from mapgap.instances.multi_model_splitting.models import TITLES, load_model
from mapgap.instances.published_numbers import load_published
from mapgap.reporting.analysis import verdict
from mapgap.reporting.tables import Column, Table


def printed() -> dict[str, Any]:
    """Printed numbers by identifier."""
    return load_published("synergy")


def table_1() -> Table:
    """Table 1: layer counts, model bytes, and what its last column holds."""
    rows = []
    for name in TITLES:
        model = load_model(name)
        same = round(model.average_cycles) == model.printed_average
        rows.append(
            {
                "model": model.title,
                "layers": len(model.rows),
                "printed_layers": model.printed_layers,
                "bytes": model.model_bytes,
                "printed_bytes": model.printed_bytes,
                "printed_average": model.printed_average,
                "cycles": model.average_cycles,
                "output": model.average_output,
                "verdict": "equal to mean cycles" if same else _swapped(model.title, model.printed_average),
            }
        )
    columns = [
        Column("model", "model"),
        Column("printed_layers", "layers printed"),
        Column("layers", "layers"),
        Column("printed_bytes", "bytes printed"),
        Column("bytes", "bytes"),
        Column("printed_average", '"Avg. Out Size" printed'),
        Column("cycles", "mean cycles per layer", ".1f"),
        Column("output", "mean output bytes", ".1f"),
        Column("verdict", "verdict on the last printed column"),
    ]
    note = (
        "Mean cycles: the accelerator vendor's latency estimator, summed over the layers and divided by their number. "
        "One constant each of UNet and ResSimpleNet was inferred from this column (networks/synergy/*.yaml), so their "
        "rows are no evidence on their own; the others have no fitted constant."
    )
    return Table("table_1", "Table 1: models", columns, rows, note)


def _swapped(title: str, value: int) -> str:
    """The two simple networks: each row prints the other's total over its own number of layers."""
    other = {"WideNet": "ressimplenet", "ResSimpleNet": "widenet"}.get(title)
    if other is None:
        return "differs"
    model, mine = load_model(other), load_model(title)
    total = sum(row.estimated_cycles for row in model.rows) / len(mine.rows)
    return f"total cycles of {model.title} / {len(mine.rows)}" if round(total) == value else "differs"


def figure_7() -> Table:
    """Fig. 7: mean latencies of UNet per layer under the latency model of the instances."""
    one = expand(
        Compact(
            name="unet",
            devices=(CompactDevice(name="d1", type="MAX78000"),),
            pipelines=(CompactPipeline(model="unet"),),
        )
    )
    pipeline, tick = one.pipelines[0], one.seconds_per_tick * 1e3
    cuts = pipeline.boundaries
    sent = sum(cut.transmit[0] for cut in cuts[1:-1])
    ours = {
        "fig7_inf": mean(layer.inference[0] for layer in pipeline.layers) * tick,
        "fig7_mem": mean(a.load[0] + b.unload[0] for a, b in pairwise(cuts)) * tick,
        "fig7_comm": mean(cut.transmit[0] for cut in cuts[1:]) * tick,
        "fig7_comm_inner": sent / len(pipeline.layers) * tick,
        "fig7_min": min(cut.transmit[0] for cut in cuts[1:]) * tick * 10,
        "fig7_max": max(cut.transmit[0] for cut in cuts[1:]) * tick * 10,
    }
    what = {
        "fig7_inf": "mean inference latency of a layer",
        "fig7_mem": "mean memory latency of a layer (loading and unloading)",
        "fig7_comm": "mean communication latency of a layer's output",
        "fig7_comm_inner": "the same, the last output not sent",
        "fig7_min": "lowest communication latency, ours times 10",
        "fig7_max": "highest communication latency, ours times 10",
    }
    rows = []
    for key, value in ours.items():
        paper = printed()[key.removesuffix("_inner")]
        rows.append({"what": what[key], "printed": paper, "ours": value, "verdict": verdict(paper, value)})
    columns = [
        Column("what", "UNet on MAX78000 [ms]"),
        Column("printed", "printed", "g"),
        Column("ours", "ours", ".2f"),
        Column("verdict", "verdict"),
    ]
    note = (
        "Radio and copy times per byte are derived from this figure, so their rows show how well it agrees with "
        "itself: its extremes are ten times what its mean allows; 109.8 µs per byte are the extremes divided by ten, "
        "and agree with the mean if the last output is not sent. Inference has no free constant."
    )
    return Table("figure_7", "Fig. 7: layers of UNet", columns, rows, note)
