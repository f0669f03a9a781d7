"""``import --as PLANNER``: every file of two repositories is read, and what the planners print on them is recomputed.

Printed values: ``dp.exe`` and ``dp.exe -linearize`` of dnn-partitioning (commit b207b6a) on its throughput-inputs, in
ms; ``optimizer_graph_hierarchical.py --straight_pipeline`` of PipeDream (commit 7db6a1c) at 1e9 bytes per second, in s.
Where the first one did not end in 40 s, its linearised value is an upper bound.
"""

import json
import zipfile
from pathlib import Path

import pytest

from mapgap.catalogue import registry
from mapgap.contract.seeds import some
from mapgap.core import Budget, InputError, Status
from mapgap.core.workload import Settings
from mapgap.importing.assemble import assemble
from mapgap.importing.cluster import equal_boards
from mapgap.importing.presets import PRESETS, preset
from mapgap.importing.recognise import read
from mapgap.problems.hybrid_pipeline.certificate import check
from mapgap.problems.hybrid_pipeline.certificate.graph import found, needs
from mapgap.problems.hybrid_pipeline.evaluate import evaluate

FOREIGN = Path(__file__).parents[2] / "instances" / "foreign"
DATA = Path(__file__).parents[1] / "data"
LOADS = {
    "LayerGraphs/bert24_inference": "17.7899",
    "LayerGraphs/bert24_training": "41.7458",
    "LayerGraphs/gnmt_inference": "32.9107",
    "LayerGraphs/resnet50_inference": "33.7747",
    "LayerGraphs/resnet50_training": "78.6318",
    "OperatorGraphs/bert_l-3_inference": "27.9186",
    "OperatorGraphs/bert_l-3_training": "65.3031",
    "OperatorGraphs/bert_l-6_inference": "29.5795",
    "OperatorGraphs/bert_l-6_training": "72.865",
    "OperatorGraphs/bert_l-12_inference": "147.478",
    "OperatorGraphs/resnet50_inference": "124.349",
    "OperatorGraphs/resnet50_training": "255.194",
}
LINEARISED = {
    "LayerGraphs/gnmt_training": 107.004,
    "OperatorGraphs/bert_L-12_training": 437.998,
    "LayerGraphs/inceptionv3_inference": 51.5519,
    "LayerGraphs/inceptionv3_training": 123.93,
}
LATENCY_INPUTS = {
    "LayerGraphs/bert24_inference": "22.0351",
    "LayerGraphs/gnmt_inference": "44.8965",
    "LayerGraphs/resnet50_inference": "110.014",
    "OperatorGraphs/bert_l-3_inference": "189.142",
    "OperatorGraphs/bert_l-6_inference": "189.142",
    "OperatorGraphs/bert_l-12_inference": "97.2637",
    "OperatorGraphs/resnet50_inference": "107.778",
}
"""What dp.exe prints on files of latency-inputs."""
LONG = {
    "LayerGraphs/inceptionv3_inference",
    "LayerGraphs/inceptionv3_training",
    "OperatorGraphs/bert_l-12_inference",
    "OperatorGraphs/bert_L-12_training",
}
CERTIFIED = [name for name in LOADS if name.startswith(("LayerGraphs/bert", "LayerGraphs/resnet", "OperatorGraphs"))]
STRAIGHT = {
    "alexnet": (0.043075, 0.031069, 0.028721, 0.028721),
    "vgg16": (0.370931, 0.231234, 0.21645, 0.159531),
    "resnet50": (0.221933, 0.148136, 0.111497, 0.07516),
    "gnmt": (0.045936, 0.034572, 0.025868, 0.019032),
    "resnet18": (0.130199, 0.090723, 0.069523, 0.046101),
    "squeezenet1_0": (0.144143, 0.096261, 0.072954, 0.051094),
}
MACHINES = (2, 3, 4, 6)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """All inputs of dnn-partitioning and all profiles of PipeDream."""
    folder = tmp_path_factory.mktemp("published")
    for name in ("dnn_partitioning/inputs.zip", "pipedream/profiles.zip"):
        with zipfile.ZipFile(DATA / name) as archive:
            archive.extractall(folder)
    return folder


def imported(path, planner, cluster=None, **given):
    settings = Settings(given, preset(planner))
    workload = assemble(read([path], settings), cluster, settings).workload
    return registry.library("hybrid_pipeline").imported(workload, settings)


def solve(instance, method="ideal_dp"):
    return registry.methods("hybrid_pipeline")[method].solve(instance, Budget(300.0))


def load(data, instance, plan):
    """The largest load of a plan in ms, as ``computeLoadForResultOrg`` of dp.cpp has it, from the file."""
    colour = {node["id"]: node.get("colorClass", f"own {node['id']}") for node in data["nodes"]}
    places = {
        layer.name: p for p, stage in enumerate(plan.stages) for layer in (instance.layers[i] for i in stage.rows)
    }
    seen, place, classes = set(), {}, {}
    for node in sorted(data["nodes"], key=lambda node: bool(node["isBackwardNode"])):
        if not node["isBackwardNode"] or colour[node["id"]] not in classes:
            name = node.get("name", f"node {node['id']}")
            name = name if name not in seen else f"{name}.{node['id']}"
            seen.add(name)
            assert classes.setdefault(colour[node["id"]], places[name]) == places[name]
        place[node["id"]] = classes[colour[node["id"]]]
    sums = [0.0] * len(plan.stages)
    accelerator = ["fpga" in instance.devices[stage.devices[0]].name for stage in plan.stages]
    for node in data["nodes"]:
        p = place[node["id"]]
        sums[p] += node["fpgaLatency" if accelerator[p] else "cpuLatency"]
    known, cost = {}, {}
    for edge in data["edges"]:
        known.setdefault(edge["sourceId"], {place[edge["sourceId"]]}).add(place[edge["destId"]])
        cost[edge["sourceId"]] = edge["cost"]
    for source, stages in known.items():
        for p in stages if len(stages) > 1 else ():
            sums[p] += cost[source] if accelerator[p] else 0.0
    return max(sums)


@pytest.mark.in_turn
def test_every_file_is_read(files):
    """24 of dnn-partitioning, 14 of PipeDream."""
    inputs = sorted(files.glob("*-inputs/*/*.json"))
    profiles = sorted(files.glob("*.graph.txt"))
    assert (len(inputs), len(profiles)) == (24, 14)
    for path in inputs:
        data = json.loads(path.read_text())
        forward = [node for node in data["nodes"] if not node["isBackwardNode"]]
        instance = imported(path, "dnn_partitioning")
        assert len(instance.layers) >= len(forward)
        times = sum(node["fpgaLatency"] for node in data["nodes"])
        own = sum(f[0] + b[0] for f, b in zip(instance.types[0].forward, instance.types[0].backward, strict=True))
        assert own * instance.seconds_per_tick * 1e3 == pytest.approx(times, rel=1e-4)
    for path in profiles:
        instance = imported(path, "pipedream", equal_boards(4, 8000, None))
        layers = [line for line in path.read_text().splitlines() if "forward_compute_time" in line]
        solid = [line for line in layers if " -- Input" not in line and "__getitem__" not in line]
        assert len(solid) <= len(instance.layers) <= len(layers)


def daily(names, long=LONG):
    return [pytest.param(name, marks=pytest.mark.nightly) if name in long else name for name in names]


@pytest.mark.nightly
def test_every_file_is_read_without_a_planner(files):
    for path in sorted(files.glob("*-inputs/*/*.json")):
        settings = Settings({})
        workload = assemble(read([path], settings), None, settings).workload
        assert registry.library("hybrid_pipeline").imported(workload, settings).layers


@pytest.mark.in_turn
@pytest.mark.parametrize("name", daily(LOADS))
def test_dnn_partitionings_loads_are_proven_on_the_graph(files, name):
    path = files / "throughput-inputs" / f"{name}.json"
    instance = imported(path, "dnn_partitioning")
    result = solve(instance)
    assert result.status is Status.OPTIMAL
    value = evaluate(instance, result.plan)
    assert value.objective == result.bound
    planned = load(json.loads(path.read_text()), instance, result.plan)
    assert f"{planned:.6g}" == LOADS[name]
    assert 1e3 * value.objective * instance.seconds_per_tick == pytest.approx(planned, rel=1e-5)


@pytest.mark.parametrize("name", daily(LOADS, [name for name in LOADS if "bert_l" in name or "gnmt" in name]))
def test_their_programme_as_a_method_prints_the_same(files, name):
    path = files / "throughput-inputs" / f"{name}.json"
    instance = imported(path, "dnn_partitioning")
    plan = solve(instance, "dnn_partitioning").plan
    assert f"{load(json.loads(path.read_text()), instance, plan):.6g}" == LOADS[name]


@pytest.mark.parametrize(
    "name", daily(CERTIFIED, [name for name in CERTIFIED if "bert_l" in name or name.startswith("OperatorGraphs")])
)
def test_loads_are_certified(files, name):
    instance = imported(files / "throughput-inputs" / f"{name}.json", "dnn_partitioning")
    seen, bound = instance.to_json(), solve(instance).bound
    assert check(seen, bound, {}) is None
    assert check(seen, bound + 1, {}).endswith(f" {bound}")


def test_of_too_many_sets_no_load_is_certified(files):
    instance = imported(files / "throughput-inputs" / "LayerGraphs/gnmt_inference.json", "dnn_partitioning")
    assert "more than 20,000 sets of layers" in check(instance.to_json(), 1, {})


@pytest.mark.parametrize("name", daily(LINEARISED))
def test_no_linearised_load_is_below_the_optimum(files, name):
    path = files / "throughput-inputs" / f"{name}.json"
    instance = imported(path, "dnn_partitioning")
    result = solve(instance)
    assert result.status is Status.OPTIMAL
    assert float(f"{load(json.loads(path.read_text()), instance, result.plan):.6g}") <= LINEARISED[name]


@pytest.mark.parametrize("name", daily(LATENCY_INPUTS, [name for name in LATENCY_INPUTS if "bert_l" in name]))
def test_maximum_loads_of_latency_inputs(files, name):
    path = files / "latency-inputs" / f"{name}.json"
    instance = imported(path, "dnn_partitioning")
    result = solve(instance)
    planned = load(json.loads(path.read_text()), instance, result.plan)
    assert f"{planned:.6g}" == LATENCY_INPUTS[name]
    assert result.status is Status.OPTIMAL or "gnmt" in name


def straight(files, name, **options):
    """A graph of PipeDream as a straight pipeline of four machines, with the result of the search over ideals."""
    cluster = equal_boards(4, 8000, None)
    instance = imported(files / f"{name}.graph.txt", "pipedream", cluster, replication=False)
    return instance, registry.methods("hybrid_pipeline")["ideal_dp"].solve(instance, Budget(300.0), **options)


@pytest.mark.parametrize(
    ("name", "ideals"),
    [
        ("densenet121", 431),
        pytest.param("resnet101", 411, marks=pytest.mark.nightly),
        pytest.param("gnmt_large", 16886, marks=pytest.mark.nightly),
    ],
)
def test_large_graphs_of_pipedream_are_certified(files, name, ideals):
    instance, result = straight(files, name)
    assert (result.status, result.notes["ideals"]) == (Status.OPTIMAL, ideals)
    seen = instance.to_json()
    assert len(found(needs(seen))) == ideals
    assert check(seen, result.bound, {}) is None
    assert check(seen, result.bound + 1, {}).endswith(f" {result.bound}")


@pytest.mark.nightly
@pytest.mark.parametrize(("name", "gap"), [("nasnetamobile", 0.002), ("nasnetalarge", 0.001)])
def test_graphs_with_too_many_ideals_are_bounded(files, name, gap):
    instance, result = straight(files, name)
    assert result.status is Status.FEASIBLE
    assert result.bound <= evaluate(instance, result.plan).objective <= (1 + gap) * result.bound
    assert "more than 200000 ideals" in result.reason


@pytest.mark.nightly
def test_inception_needs_more_ideals(files):
    instance, result = straight(files, "inception_v3", ideals=300_000)
    assert result.status is Status.OPTIMAL
    assert evaluate(instance, result.plan).objective == result.bound


@pytest.mark.parametrize("name", STRAIGHT)
def test_straight_pipelines_are_at_least_as_good_as_pipedreams(files, name):
    for machines, printed in zip(MACHINES, STRAIGHT[name], strict=True):
        instance = imported(
            files / f"{name}.graph.txt", "pipedream", equal_boards(machines, 8000, None), replication=False
        )
        result = solve(instance)
        assert result.status is Status.OPTIMAL
        seconds = evaluate(instance, result.plan).objective * instance.seconds_per_tick
        assert seconds <= printed + len(instance.layers) * instance.seconds_per_tick / 2
        chain = solve(instance, "label_dp")
        if chain.plan is not None:
            assert evaluate(instance, chain.plan).objective >= result.bound


@pytest.mark.parametrize(("name", "machines", "printed"), [("vgg16", 4, "0.17573"), ("gnmt", 4, "0.025868")])
def test_replicas_as_pipedream_counts_them(files, name, machines, printed):
    instance = imported(files / f"{name}.graph.txt", "pipedream", equal_boards(machines, 8000, None))
    seconds = evaluate(instance, solve(instance).plan).objective * instance.seconds_per_tick
    assert seconds <= float(printed) + 10.0 ** -(len(printed) - 2)


def test_flags_and_classes(tmp_path):
    """2 runs on processors only, 1 and 3 lie on one device, so 2 does, too; a flag is a word or a number."""
    nodes = [
        {"id": k, "supportedOnFpga": k != 2, "cpuLatency": 10.0, "fpgaLatency": 1.0, "size": 1.0, "isBackwardNode": 0}
        for k in (1, 2, 3, 4)
    ]
    nodes[0]["colorClass"] = nodes[2]["colorClass"] = 7
    edges = [{"sourceId": a, "destId": a + 1, "cost": 0.5} for a in (1, 2, 3)]
    path = tmp_path / "flags.json"
    path.write_text(json.dumps({"maxSizePerFPGA": 1e6, "maxFPGAs": 1, "maxCPUs": 1, "nodes": nodes, "edges": edges}))
    instance = imported(path, "dnn_partitioning")
    assert instance.graph.together == ((0, 2),)
    assert instance.graph.unsupported[instance.devices[0].type] == (1,)
    result = solve(instance)
    # 1, 2 and 3 on the processor, which pays nothing: 30 ms; 4 on the accelerator reads a tensor: 1.5 ms.
    assert result.bound * instance.seconds_per_tick == pytest.approx(0.030)
    assert [stage.layers for stage in result.plan.stages] == [(0, 1, 2), (3,)]
    settings = Settings({"training": False})
    chain = registry.library("hybrid_pipeline").imported(
        assemble(read([path], settings), None, settings).workload, settings
    )
    assert chain.graph.unsupported[chain.devices[0].type] == (1,)
    found = solve(chain, "portfolio")
    used = {chain.devices[d].name: stage.rows for stage in found.plan.stages for d in stage.devices}
    assert 1 not in used.get("fpga1", ())


def nnscalers_time(spans, devices, rounds):
    """``calc_optimal_pp_plan`` of nnScaler for tensor parallel degree 1, every operator a pivot."""
    count, table = len(spans), {}
    for s in range(1, devices + 1):
        for pp in range(s, devices + 1):
            for i in range(count - 1, -1, -1):
                table[s, pp, i] = float("inf")
                if s == pp == 1:
                    table[s, pp, i] = sum(spans[i:])
                    continue
                for j in range(count - 1, i, -1):
                    if (s - 1, pp - 1, j) in table:
                        table[s, pp, i] = min(table[s, pp, i], max(table[s - 1, pp - 1, j], sum(spans[i:j])))
    return min(table[s, devices, 0] * (rounds - 1 + s) for s in range(1, devices + 1))


@pytest.mark.parametrize("devices", [1, 2, 3, 4, 6])
def test_nnscalers_pipelines(devices):
    folder = FOREIGN / "nnscaler"
    cluster = equal_boards(devices, 8000, None)
    settings = Settings({}, preset("nnscaler"))
    workload = assemble(read([folder / "comp", folder / "attention.txt"], settings), cluster, settings).workload
    instance = registry.library("hybrid_pipeline").imported(workload, settings)
    spans = [
        (f + b) * instance.tick_ns
        for f, b in zip(
            (row[-1] for row in instance.types[0].forward),
            (row[-1] for row in instance.types[0].backward),
            strict=True,
        )
    ]
    rounds = instance.mini_batch // instance.micro_batch_sizes[0]
    result = solve(instance, "label_dp")
    assert len(result.plan.stages) == devices
    assert (rounds - 1 + devices) * result.bound * instance.tick_ns == nnscalers_time(spans, devices, rounds)
    assert check(instance.to_json(), result.bound, {}) is None
    # fw_span and bw_span of the nine entries add up to 0.167494 and 0.924598 ms.
    assert sum(spans) == pytest.approx((0.167494 + 0.924598) * 1e6, rel=1e-3)


def test_no_such_planner():
    with pytest.raises(
        InputError, match="--as pipedraem: expected one of pipedream, dnn_partitioning, pipeedge, nnscaler"
    ):
        preset("pipedraem")
    assert all(preset(name) for name in PRESETS)


def test_planners_whose_objective_no_instance_states():
    with pytest.raises(InputError, match=r"--as galvatron: expected a planner whose .* the first and the last stage"):
        preset("galvatron")


def alpas_time(times, devices, rounds):
    """``sum t + (B - 1) max t`` over all pipelines of equal devices, by recursion over the last stage; t(k, i, m)."""
    count = len(times(1))

    def least(longest, i, d):
        """The least sum of the stages before layer i on d devices, none above ``longest``."""
        if i == 0:
            return 0 if d == 0 else float("inf")
        if (i, d) not in known:
            stages = ((k, m, sum(times(m)[k:i])) for k in range(i) for m in range(1, d + 1))
            known[i, d] = min(
                (least(longest, k, d - m) + t for k, m, t in stages if t <= longest), default=float("inf")
            )
        return known[i, d]

    best = float("inf")
    for longest in {sum(times(m)[k:i]) for m in range(1, devices + 1) for i in range(count + 1) for k in range(i)}:
        known = {}
        best = min(best, least(longest, count, devices) + (rounds - 1) * longest)
    return best


@pytest.mark.in_turn
@pytest.mark.parametrize("devices", [1, 2, pytest.param(3, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("name", some(1, ["alexnet", "vgg16"]))
def test_alpas_pipelines(files, name, devices):
    instance = imported(
        files / f"{name}.graph.txt", "alpa", equal_boards(devices, 8000, 10**3), batch=12, micro_batch=12, mini_batch=48
    )
    kind = instance.types[0]

    def times(members):
        return [f[12 // members - 1] + b[12 // members - 1] for f, b in zip(kind.forward, kind.backward, strict=True)]

    result = solve(instance, "label_dp")
    assert result.bound == evaluate(instance, result.plan).objective == alpas_time(times, devices, 4)
    assert check(instance.to_json(), result.bound, {}) is None
    assert evaluate(instance, solve(instance, "alpa").plan).objective == result.bound
