"""Instances of hybrid pipelines from files that other planners were published with, read independently of imports."""

import json
import re
from itertools import pairwise
from pathlib import Path

import networkx as nx
import yaml

from mapgap.problems.hybrid_pipeline import Device, DeviceType, Execution, Instance, Layer

FOLDER = Path(__file__).parents[2] / "instances" / "foreign"
PAGE = Path(__file__).parents[1] / "data" / "pipeedge" / "README_Scheduler.md"


def chained(graph):
    """The nodes in topological order, and per node what crosses the cut behind it: outputs still wanted, each once."""
    order = list(nx.topological_sort(graph))
    place = {node: k for k, node in enumerate(order)}
    last = {node: max((place[w] for w in graph.successors(node)), default=-1) for node in order}
    return order, [sum(graph.nodes[v]["output"] for v in order[: k + 1] if last[v] > k) for k in range(len(order))]


def pipedream_graph(name):
    """A profile of PipeDream without its inputs; times in ms, ``parameters`` and ``output`` in bytes."""
    graph = nx.DiGraph()
    for line in (FOLDER / "pipedream" / f"{name}.graph.txt").read_text().splitlines():
        if line.startswith("\t"):
            graph.add_edge(*line.strip().split(" -- "))
        elif line:
            node, kind, numbers = line.split(" -- ")
            facts = dict(pair.split("=") for pair in numbers.split(", "))
            outputs = [float(size) for size in facts["activation_size"].strip("[]").split("; ")]
            graph.add_node(
                node,
                kind=kind,
                forward=float(facts["forward_compute_time"]),
                backward=float(facts["backward_compute_time"]),
                output=sum(outputs),
                parameters=float(facts["parameter_size"]),
            )
    graph.remove_nodes_from([v for v, kind in graph.nodes(data="kind") if kind.startswith("Input")])
    unused = [v for v, kind in graph.nodes(data="kind") if kind.startswith("__getitem__") and not graph.out_degree(v)]
    graph.remove_nodes_from(unused)
    return graph


def pipedream(name, machines, **execution):
    """Equal machines, 1e9 bytes a second, the slowest stage; a micro-batch is of 12 equal parts, for 2, 3 or 4."""
    graph, tick_ns, parts = pipedream_graph(name), 10, 12
    order, crossing = chained(graph)

    def table(phase):
        ticks = [graph.nodes[v][phase] * 10**6 / tick_ns for v in order]
        return tuple(tuple(round(t * y / parts) for y in range(1, parts + 1)) for t in ticks)

    return Instance(
        name=f"pipedream_{name}_{machines}",
        mini_batch=parts,
        micro_batch_sizes=(parts,),
        tick_ns=tick_ns,
        memory_unit_bytes=1,
        types=(DeviceType(name="GPU", memory=1, forward=table("forward"), backward=table("backward")),),
        devices=tuple(Device(name=f"GPU {k}", type=0) for k in range(machines)),
        bandwidth=((10**9,) * machines,) * machines,
        layers=tuple(
            Layer(
                name=v,
                output_bytes=round(size / parts),
                weight_bytes=round(graph.nodes[v]["parameters"]),
                state_memory=0,
                activation_memory=0,
            )
            for v, size in zip(order, crossing, strict=True)
        ),
        all_devices=False,
        execution=Execution(**execution),
        objective="bottleneck",
    )


def dnn_partitioning(name):
    """Inference on accelerators and a processor, one device a part; both sides of a cut pay for what crosses it."""
    data = json.loads((FOLDER / "dnn_partitioning" / f"{name}.json").read_text())
    graph, tick_ns, unit = nx.DiGraph(), 10, 1024
    for node in data["nodes"]:
        graph.add_node(node["id"], output=0.0, **{key: node[key] for key in ("fpgaLatency", "cpuLatency", "size")})
    for edge in data["edges"]:
        graph.add_edge(edge["sourceId"], edge["destId"])
        graph.nodes[edge["sourceId"]]["output"] = edge["cost"]
    order, crossing = chained(graph)

    def ticks(milliseconds):
        return round(milliseconds * 10**6 / tick_ns)

    def kind(label, memory, times):
        forward = tuple((ticks(graph.nodes[v][times]),) for v in order)
        return DeviceType(name=label, memory=memory, forward=forward, backward=((0,),) * len(order))

    sizes = [-(-int(graph.nodes[v]["size"]) // unit) for v in order]
    labels = [f"accelerator {k}" for k in range(data["maxFPGAs"])] + [f"processor {k}" for k in range(data["maxCPUs"])]
    rate = 10**9 // tick_ns  # one byte a tick
    return Instance(
        name=f"dnn_partitioning_{name}",
        mini_batch=1,
        micro_batch_sizes=(1,),
        tick_ns=tick_ns,
        memory_unit_bytes=unit,
        types=(
            kind("accelerator", int(data["maxSizePerFPGA"]) // unit, "fpgaLatency"),
            kind("processor", sum(sizes), "cpuLatency"),
        ),
        devices=tuple(Device(name=label, type=label.startswith("processor") + 0) for label in labels),
        bandwidth=((rate,) * len(labels),) * len(labels),
        layers=tuple(
            Layer(name=str(v), output_bytes=ticks(cost), weight_bytes=0, state_memory=size, activation_memory=0)
            for v, cost, size in zip(order, crossing, sizes, strict=True)
        ),
        all_devices=False,
        execution=Execution(training=False, replication=False, communication="load"),
        objective="bottleneck",
    )


def pipeedge_files():
    """The examples of PipeEdge's documentation: the schedule, the models, the device types, the hosts by type."""
    text = PAGE.read_text()
    return [yaml.safe_load(block) for block in re.findall(r"```YAML\n(.*?)```", text, re.DOTALL)]


def pipeedge(model, hosts):
    """Inference on hosts (name and type), one a stage; a micro-batch is the 8 images of the profile."""
    _, models, kinds, _ = pipeedge_files()
    facts, tick_ns, unit, batch = models[model], 1000, 1024, 8
    used = sorted(set(hosts.values()))
    types = []
    for name in used:
        (profile,) = kinds[name]["model_profiles"][model]
        assert (profile["batch_size"], profile["dtype"]) == (batch, "torch.float32")
        forward = tuple(
            tuple(round(s * 10**9 / tick_ns * y / batch) for y in range(1, batch + 1)) for s in profile["time_s"]
        )
        memory = kinds[name]["mem_MB"] * 10**6 // unit
        types.append(DeviceType(name=name, memory=memory, forward=forward, backward=((0,) * batch,) * len(forward)))
    rate = {name: kinds[name]["bw_Mbps"] * 10**6 // 8 for name in used}
    names = list(hosts)
    return Instance(
        name=f"pipeedge_{model}",
        mini_batch=batch,
        micro_batch_sizes=(batch,),
        tick_ns=tick_ns,
        memory_unit_bytes=unit,
        types=tuple(types),
        devices=tuple(Device(name=host, type=used.index(kind)) for host, kind in hosts.items()),
        bandwidth=tuple(tuple(min(rate[hosts[a]], rate[hosts[b]]) for b in names) for a in names),
        layers=tuple(
            Layer(
                name=f"layer {k}",
                output_bytes=4 * size,
                weight_bytes=0,
                state_memory=-(-round(megabytes * 10**6) // unit),
                activation_memory=0,
            )
            for k, (size, megabytes) in enumerate(zip(facts["parameters_out"], facts["mem_MB"], strict=True), 1)
        ),
        all_devices=False,
        execution=Execution(training=False, replication=False),
        objective="bottleneck",
    )


def adjoining(pieces):
    """Whether pieces [first, last] follow one another."""
    return all(a[1] + 1 == b[0] for a, b in pairwise(pieces))
