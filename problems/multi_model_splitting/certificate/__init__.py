"""The writer of multi-model splitting for certificates; rules as in the package's docstring. Standard library only.

Every plan better than the bound is a point: per pipeline, one variable per segment (layers ``i..j-1`` on device d), one
per source and first device, one per last device and target (:mod:`~.paths`). Adjacent segments lie on different devices
(rule 1), so a segment that begins (ends) inside the model always pays reception (transmission). What all of them load
is summed up, all transmissions on one medium as well (rule 13), whose row comes last; with operation sharing
:mod:`~.sharing` takes off again what is counted twice.

Variables come pipeline by pipeline: segments by device, begin and end, then ``(source, first device)``, then ``(last
device, target)``, each by number, and ``late`` by boundary, sender and receiver; then those of the sharing, pipeline by
pipeline, too; then the cycle time.

A transmission takes the least latency of its sender (rule 14). Where it takes longer to some receiver, ``late`` is 1 if
one segment ends on the sender and the next begins on the receiver, and is paid for what is beyond; to and from the ends
of a pipeline, both devices are known.
"""

from __future__ import annotations

from typing import Any

from .paths import Path
from .sharing import Totals, refund

SENSE = "min"
NEED = {"device": None, "type": None}
LAYER = dict.fromkeys(("name", "weights", "bias", "output_bytes", "inference"))
BOUNDARY = dict.fromkeys(("bytes", "load", "unload", "transmit", "receive"))
SHAPE = {
    **dict.fromkeys(("name", "source", "tags", "tick_ns", "deployed")),  # what is deployed decides between optima only
    "schema": (1,),
    "form": ("expanded",),
    "problem": ("multi_model_splitting",),
    "objective": ("throughput", "latency"),
    "sharing": (True, False),
    "medium": ("links", "ports", "shared"),
    "latency_ns": None,
    "devices": [dict.fromkeys(("name", "weights", "bias", "layers", "sensors", "interfaces"))],
    "pipelines": [
        {
            **dict.fromkeys(("name", "signal", "model", "sensing")),
            "source": NEED,
            "target": NEED,
            "layers": [LAYER],
            "boundaries": [BOUNDARY],
        }
    ],
}


def program(instance: dict[str, Any], bound: int, new: Any) -> Any:
    """All plans of an objective below ``bound``."""
    found, totals = new(), Totals(len(instance["devices"]))
    paths = [Path(found, instance, pipeline, bound) for pipeline in instance["pipelines"]]
    for path in paths:
        for (i, j, d), y in path.segments.items():
            totals.segment(path, i, j, d, y)
            totals.loads[d, "radio"].append((y, path.cuts[i]["receive"][d] if i else 0))
            totals.loads[d, "radio"].append((y, path.sent(j, d) if j < path.last else 0))
            totals.sent.append(totals.loads[d, "radio"][-1])
        for (s, d), x in path.first.items():
            totals.sensing(path, s, x)
            totals.transfer(path, 0, s, d, x)
        for (d, t), x in path.final.items():
            totals.transfer(path, path.last, d, t, x)
        for (k, d, e), x in path.late.items():
            totals.loads[d, "radio"].append((x, path.beyond(k, d, e)))
            totals.sent.append(totals.loads[d, "radio"][-1])
    latency = [term for load in totals.loads.values() for term in load]
    if instance["sharing"]:
        for p, path in enumerate(paths):
            refund(found, totals, path, [q for q in paths[:p] if q.facts["signal"] == path.facts["signal"] != ""])
    for (d, resource), terms in totals.used.items():
        found.at_most(terms, instance["devices"][d][resource])
    if instance["objective"] == "latency":
        found.cutoff = found.at_most(latency, min(bound - 1, total(latency)))
        return found
    loads = [*totals.loads.values(), *([totals.sent] if instance.get("medium") == "shared" else [])]
    most = min(bound - 1, max(map(total, loads)))
    cycle = found.variable(0, most)
    for load in loads:
        found.at_most([*load, (cycle, -1)], 0)
    found.cutoff = found.at_most([(cycle, 1)], most)
    return found


def total(terms: list[tuple[int, int]]) -> int:
    """What terms of 0-1 variables add up to at most."""
    return sum(a for _, a in terms if a > 0)
