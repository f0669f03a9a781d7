"""What the argument asks of an instance, and its classes of devices: part of the checker, standard library only.

**Classes.** Two devices of equal type, weights held and links to every third device are alike: what one lacks the
other one lacks and fetches from the same devices over equal links, so exchanging them in a plan changes nothing. A
group is a vector of counts by class; two disjoint ones may be taken as the first and the last members of each class.
"""

from __future__ import annotations

from typing import Any

from . import graph, links

FACTS = ("state_memory", "activation_memory", "weight_bytes", "output_bytes")
RULES: dict[str, tuple[Any, ...]] = {
    "training": (True, False),
    "replication": (True, False),
    "allreduce": ("round", "micro_batch", "rotating"),
    "allreduce_factor": (2, *range(65)),
    "medium": ("links", "shared"),
    "communication": ("step", "load", "free", "tensors"),
    "transfers": ("one_link", "parallel"),
    "stored": ("warm_up", "one", "all", "behind"),
    "latency": ("round", "flow_shop"),
}
"""Fields of ``execution`` (rule 12) with the values that the argument covers, the default first."""
FIELDS = {
    *("schema", "form", "problem", "name", "source", "tags", "mini_batch", "micro_batch_sizes", "tick_ns"),
    *("memory_unit_bytes", "types", "devices", "bandwidth", "layers", "all_devices", "replanning", "execution"),
    *("objective", "graph", "medium", "latency_ns"),
}
"""Fields of an instance that the argument knows; any other one might be a rule that it does not keep."""
PARTS = {
    "layers": {"name", "flops", *FACTS},
    "types": {"name", "memory", "forward", "backward", "quartiles"},
    "devices": {"name", "type"},
}
"""The same for its parts. What was measured beside the times (``quartiles``) is no rule."""


def rules(instance: dict[str, Any]) -> dict[str, Any]:
    """The execution, with the defaults of fields that are left out."""
    given: dict[str, Any] = instance.get("execution", {})
    return {name: values[0] for name, values in RULES.items()} | given


def fault(instance: dict[str, Any]) -> str | None:
    """What the argument asks of an instance and this one lacks."""
    objective = instance.get("objective", "latency")
    unknown = [f"the field {name}" for name in sorted(instance.keys() - FIELDS)]
    for where, known in PARTS.items():
        names = {name for part in instance[where] for name in part}
        unknown += [f"the field {name} of {where}" for name in sorted(names - known)]
    given = instance.get("execution", {}).items()
    unknown += [f"the execution {name}: {value}" for name, value in given if value not in RULES.get(name, ())]
    unknown += [f"the objective {objective}"] if objective not in ("latency", "bottleneck") else []
    if unknown:
        return f"not covered by the argument: {', '.join(unknown)}"
    layers, sizes, execution = instance["layers"], instance["micro_batch_sizes"], rules(instance)
    if not sizes:
        return "no micro-batch size"
    if (reason := links.fault(instance, execution)) is not None:
        return reason
    if any(device["type"] not in range(len(instance["types"])) for device in instance["devices"]):
        return "a device without a type"
    numbers = [kind["memory"] for kind in instance["types"]] + [layer[fact] for layer in layers for fact in FACTS]
    rows = [row for kind in instance["types"] for phase in ("forward", "backward") for row in kind[phase]]
    if any(type(number) is not int for row in (numbers, sizes, *rows) for number in row):
        return "a number that is not an integer"
    if execution["communication"] == "tensors" and execution["replication"]:
        return "tensors that stages of several members pay for"
    ends = execution["replication"] and execution["allreduce"] == "round" and execution["allreduce_factor"]
    if ends and execution["training"] and execution["latency"] == "flow_shop":
        return "an AllReduce at the end of a round that is a flow shop"
    rounds = 1 if instance["replanning"] is None else instance["replanning"]["rounds"]
    if min(*sizes, rounds, instance["mini_batch"], instance["tick_ns"]) < 1:
        return "a number below 1"
    if any(instance["mini_batch"] % batch for batch in sizes):
        return "a micro-batch size that does not divide the mini-batch"
    for rows in (kind[phase] for kind in instance["types"] for phase in ("forward", "backward")):
        if len(rows) != len(layers) or any(len(r) < max(sizes) or r[0] < 0 or r != sorted(r) for r in rows):
            return "times that are missing, below 0 or fall with more samples"
    if any(layer[fact] < 0 for layer in layers for fact in FACTS):
        return "a size below 0"
    return None if instance.get("graph") is None else graph.fault(instance)


def branches(instance: dict[str, Any]) -> bool:
    """Whether it is planned on the cuts of a graph."""
    return instance.get("graph") is not None or rules(instance)["communication"] == "tensors"


def holdings(instance: dict[str, Any]) -> list[set[int]]:
    """Layers whose weights each device has (rule 11); none without a failure."""
    failure = instance["replanning"]
    rows = [[] for _ in instance["devices"]] if failure is None else failure["held"]
    return [{layer for start, stop in row for layer in range(start, stop)} for row in rows]


def alike(instance: dict[str, Any]) -> list[list[int]]:
    """The classes of devices."""
    devices, held, count = instance["devices"], holdings(instance), len(instance["devices"])

    def linked(d: int, e: int) -> list[links.Link]:
        return [links.link(instance, d, x) for x in range(count) if x not in (d, e)]

    found: list[list[int]] = []
    for d in range(len(devices)):
        for members in found:
            e = members[0]
            same = devices[d]["type"] == devices[e]["type"] and held[d] == held[e]
            if same and linked(d, e) == linked(e, d):
                members.append(d)
                break
        else:
            found.append([d])
    return found
