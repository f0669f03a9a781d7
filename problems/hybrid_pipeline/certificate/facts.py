"""What the argument asks of an instance, and its classes of devices: part of the checker, standard library only.

**Classes.** Two devices of equal type, weights held and links to every third device are alike: what one lacks the
other one lacks and fetches from the same devices over equal links, so exchanging them in a plan changes nothing. A
group is a vector of counts by class; two disjoint ones may be taken as the first and the last members of each class.
"""

from __future__ import annotations

from typing import Any

FACTS = ("state_memory", "activation_memory", "weight_bytes", "output_bytes")


def fault(instance: dict[str, Any]) -> str | None:
    """What the argument asks of an instance and this one lacks."""
    if "graph" in instance:
        return "layers that are a graph or not supported everywhere: not covered by the argument"
    if "execution" in instance or instance.get("objective", "latency") != "latency":
        return "an execution other than Asteroid's, or another objective than the latency: not covered by the argument"
    layers, links, sizes = instance["layers"], instance["bandwidth"], instance["micro_batch_sizes"]
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
    if any(links[d][e] != links[e][d] or links[d][e] < 1 for d in range(len(links)) for e in range(d)):
        return "a link without a bandwidth"
    return None


def holdings(instance: dict[str, Any]) -> list[set[int]]:
    """Layers whose weights each device has (rule 11); none without a failure."""
    failure = instance["replanning"]
    rows = [[] for _ in instance["devices"]] if failure is None else failure["held"]
    return [{layer for start, stop in row for layer in range(start, stop)} for row in rows]


def alike(instance: dict[str, Any]) -> list[list[int]]:
    """The classes of devices."""
    devices, links, held = instance["devices"], instance["bandwidth"], holdings(instance)
    found: list[list[int]] = []
    for d in range(len(devices)):
        for members in found:
            e = members[0]
            same = devices[d]["type"] == devices[e]["type"] and held[d] == held[e]
            if same and all(links[d][x] == links[e][x] for x in range(len(devices)) if x not in (d, e)):
                members.append(d)
                break
        else:
            found.append([d])
    return found
