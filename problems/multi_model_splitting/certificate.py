"""The writer of multi-model splitting for certificates; rules as in the package's docstring. Standard library only.

Every plan better than the bound is a point: per pipeline, one variable per segment (layers ``i..j-1`` on device d), one
per source and first device, one per last device and target. Adjacent segments lie on different devices (rule 1), so a
segment that begins (ends) inside the model always pays reception (transmission).
"""

from __future__ import annotations

from itertools import accumulate
from typing import Any

SENSE = "min"
UNITS = ("sensor", "mcu", "accelerator", "radio")
RESOURCES = ("weights", "bias", "layers")


def program(instance: dict[str, Any], bound: int, new: Any) -> Any:
    """All plans of an objective below ``bound``."""
    if instance["sharing"]:
        raise ValueError("operation sharing is not written yet")
    found, count = new(), len(instance["devices"])
    throughput = instance["objective"] == "throughput"
    loads: dict[tuple[int, str], list[tuple[int, int]]] = {(d, unit): [] for d in range(count) for unit in UNITS}
    used: dict[tuple[int, str], list[tuple[int, int]]] = {(d, r): [] for d in range(count) for r in RESOURCES}
    for pipeline in instance["pipelines"]:
        add_pipeline(found, instance, pipeline, bound, loads, used)
    for d, device in enumerate(instance["devices"]):
        for resource in RESOURCES:
            found.at_most(used[d, resource], device[resource])
    if throughput:
        cycle = found.variable(0, bound - 1)
        for load in loads.values():
            found.at_most([*load, (cycle, -1)], 0)
        found.cutoff = found.at_most([(cycle, 1)], bound - 1)
    else:
        found.cutoff = found.at_most([term for load in loads.values() for term in load], bound - 1)
    return found


def add_pipeline(found: Any, instance: dict[str, Any], pipeline: dict[str, Any], bound: int, loads: Any, used: Any) -> None:
    """One path of segments from the source to the target."""
    count, last = len(instance["devices"]), len(pipeline["layers"])
    throughput, cuts = instance["objective"] == "throughput", pipeline["boundaries"]
    starts: dict[tuple[int, int], list[tuple[int, int]]] = {}
    stops: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for d, device in enumerate(instance["devices"]):
        ran = [0, *accumulate(layer["inference"][d] for layer in pipeline["layers"])]
        held = {
            "weights": [0, *accumulate(layer["weights"] for layer in pipeline["layers"])],
            "bias": [0, *accumulate(layer["bias"] for layer in pipeline["layers"])],
            "layers": list(range(last + 1)),
        }
        own = []
        for i in range(last):
            for j in range(i + 1, last + 1):
                ticks = {
                    "mcu": cuts[i]["load"][d] + cuts[j]["unload"][d],
                    "accelerator": ran[j] - ran[i],
                    "radio": (cuts[i]["receive"][d] if i else 0) + (cuts[j]["transmit"][d] if j < last else 0),
                }
                needs = {r: held[r][j] - held[r][i] for r in RESOURCES}
                if any(needs[r] > device[r] for r in RESOURCES):
                    continue
                if (max if throughput else sum)(ticks.values()) >= bound:
                    continue
                y = found.variable(0, 1)
                own.append((y, 1))
                starts.setdefault((i, d), []).append((y, 1))
                stops.setdefault((j, d), []).append((y, 1))
                for unit, size in ticks.items():
                    if size:
                        loads[d, unit].append((y, size))
                for r, need in needs.items():
                    if need:
                        used[d, r].append((y, need))
        found.at_most(own, 1)  # one segment per device (rule 1)
    for k in range(1, last):
        ending = [term for d in range(count) for term in stops.get((k, d), [])]
        beginning = [term for d in range(count) for term in starts.get((k, d), [])]
        found.equal([*ending, *((y, -a) for y, a in beginning)], 0)
    found.equal([term for d in range(count) for term in starts.get((0, d), [])], 1)
    sources, targets = allowed(instance, pipeline, "source"), allowed(instance, pipeline, "target")
    first = {(s, d): found.variable(0, 1) for s in sources for d in range(count)}
    final = {(d, t): found.variable(0, 1) for d in range(count) for t in targets}
    for d in range(count):
        found.equal([*((first[s, d], 1) for s in sources), *((y, -a) for y, a in starts.get((0, d), []))], 0)
        found.equal([*((final[d, t], 1) for t in targets), *((y, -a) for y, a in stops.get((last, d), []))], 0)
    for (s, d), x in first.items():
        loads[s, "sensor"].append((x, pipeline["sensing"][s]))
        if s != d:
            loads[s, "radio"].append((x, cuts[0]["transmit"][s]))
            loads[d, "radio"].append((x, cuts[0]["receive"][d]))
    for (d, t), x in final.items():
        if d != t:
            loads[d, "radio"].append((x, cuts[last]["transmit"][d]))
            loads[t, "radio"].append((x, cuts[last]["receive"][t]))


def allowed(instance: dict[str, Any], pipeline: dict[str, Any], role: str) -> list[int]:
    """Devices that satisfy a requirement (rule 8)."""
    need = pipeline[role]
    kinds = "sensors" if role == "source" else "interfaces"
    if need.get("device") is not None:
        return [d for d, device in enumerate(instance["devices"]) if device["name"] == need["device"]]
    if need.get("type") is not None:
        return [d for d, device in enumerate(instance["devices"]) if need["type"] in device[kinds]]
    return list(range(len(instance["devices"])))
