"""What the paper claims in sentences, and Tables 7 and 8: printed next to what the runs or the instances say."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from mapgap.instances.hybrid_pipeline.profiles import boards, nanoseconds
from mapgap.problems.hybrid_pipeline import Plan
from mapgap.problems.hybrid_pipeline.evaluate import evaluate
from mapgap.records.runs import Runs
from mapgap.reporting.tables import Rows, tabulated
from mapgap.studies.hybrid_pipeline.costs import REPEAT, nano_name
from mapgap.studies.hybrid_pipeline.experiments import (
    ASTEROID,
    EXACT,
    NETWORKS,
    instance,
    library_name,
    published,
    ratio,
)
from mapgap.studies.hybrid_pipeline.published import ENVIRONMENTS, PARAMETERS_MB, table_2, table_4

SYSTEMS = ("eddl", "pipedream", "pipedream_paper", "pipedream_released", "dapple", "hetpipe")
PIPEDREAM = SYSTEMS[1:4]
"""Its planner in three readings."""
BASELINES = ("eddl", "pipedream", "dapple", "hetpipe")
NANOS = tuple(nano_name(count, "efficientnet_b1") for count in range(2, 9))
SECTION_5_3 = tuple(library_name(environment, network) for environment in "bc" for network in NETWORKS)
CONVERGENCE = tuple(library_name(environment, network) for environment in "bc" for network in tuple(NETWORKS)[:2])
"""Where the paper trains to a target accuracy."""
ENERGY = library_name("d", "efficientnet_b1")
OVER_PP = library_name("b", "resnet50")
MEDIA = (("", "", ""), ("_medium", "+medium", "; shared medium"))
"""Links of the boards' own, or one medium that they share: endings of identifiers, of instances and of notes."""
POWER = "latencies, at the same power of the boards"
PLANNING = {"efficientnet_b1": "t7_effnet", "mobilenetv2": "t7_mobilenet", "resnet50": "t7_resnet"}
PLANNING |= {"bert_small": "t7_bert"}
PROFILED = {"efficientnet_b1_cifar": 256, "mobilenetv2_cifar": 256, "resnet50": 32, "bert_small": 256}
"""Largest profiled batch (Sec. 5.7), by the networks of the profiles."""


def hetpipe_s(runs: Runs, name: str) -> float | None:
    """Latency of HetPipe by its own execution: virtual workers and a parameter server."""
    found: float | None = runs.note(name, "hetpipe", "hdp_latency_s")
    return found


def over(runs: Runs, name: str, system: str, asteroid: str | None = None) -> float | None:
    """Throughput of Asteroid (on ``asteroid``, by default the same instance) over that of another system."""
    if system != "hetpipe":
        return ratio(runs, name, system, ASTEROID, asteroid)
    own, ours = hetpipe_s(runs, name), runs.term(asteroid or name, ASTEROID, "latency_s")
    return own / ours if own and ours else None


def _over(runs: Runs, names: Iterable[str], systems: Sequence[str], variant: str = "") -> list[float]:
    found = [over(runs, name + variant, system) for name in names for system in systems]
    return [each for each in found if each is not None]


@tabulated(
    "ranges",
    "Secs. 5.3 and 5.6: Asteroid over other systems",
    "system: over | where: section | low_printed: least, printed; g | low: least; .2f | low_medium: shared medium; .2f "
    "| high_printed: most, printed; g | high: most; .2f | high_medium: shared medium; .2f",
    "Throughput of Asteroid over that of another system: least and most over the instances on which the other one "
    "has a plan (environments B and C, 100 Mbit/s; EfficientNet-B1 in Sec. 5.6). PipeDream's planner in three "
    "readings; the paper runs it synchronously, as the first one has it. HetPipe by its own execution, memory not "
    "checked.",
)
def ranges(runs: Runs) -> Rows:
    """Sec. 5.3: how much faster than other systems Asteroid is on environments B and C, all networks; and Sec. 5.6."""
    printed = published()
    compared = [(system, "5.3", system.partition("_")[0], SECTION_5_3, system) for system in SYSTEMS]
    compared.append(("data_parallel (2 to 8 Nano)", "5.6", "scal_effb1", NANOS, "data_parallel"))
    for title, where, key, names, system in compared:
        row = {"system": title, "where": where} | _range("", _over(runs, names, [system]))
        row |= _range("_medium", _over(runs, names, [system], "+medium"))
        yield row | {"low_printed": printed[key][0], "high_printed": printed[key][1]}


def _range(ending: str, found: Sequence[float]) -> dict[str, Any]:
    low, high = (min(found), max(found)) if found else (None, None)
    return {f"low{ending}": low, f"high{ending}": high}


@tabulated(
    "claims",
    "Claims in sentences",
    "id | claim | printed | low: least; .2f | high: most; .2f | note: how",
    "What the runs, or the paper's own tables, say.",
)
def claims(runs: Runs) -> Rows:
    """Sentences with a number, each with its least and largest value here (equal for a single one)."""
    yield from _speedups(runs)
    for ending, variant, shared in MEDIA:
        gain = [ratio(runs, ENERGY + variant, "data_parallel", ASTEROID)]
        yield from _claim("energy_ratio", "energy of DP over Asteroid's", gain, POWER + shared, ending[1:])
    speed = runs.term(ENERGY, ASTEROID, "samples_per_s")
    watts = speed and published()["energy"] * speed
    volumes = [row["ratio"] for row in table_2(runs).rows]
    yield from _claim("energy", "J per sample; here the watts of all boards that it means", [watts], "times samples/s")
    yield from _claim(
        "comm_exec", "transfer behind the first stage over its execution", [_pp_transfer(runs)], "ResNet50"
    )
    yield from _claim("hdp_hpp", "HDP over HPP volume", volumes, "Table 2 here")
    yield from _printed_twice()
    yield from _of_instances()


def _claim(key: str, text: str, found: Iterable[float | None], note: str = "", reading: str = "") -> Rows:
    """The row of a printed number, under a reading that follows its identifier; none where there is no value."""
    known, said = [each for each in found if each is not None], published()[key]
    if known:
        row = {"id": f"{key}_{reading}" if reading else key, "claim": text, "note": note}
        row["printed"] = " to ".join(map(str, said)) if isinstance(said, list) else str(said)
        yield row | {"low": min(known), "high": max(known)}


def _speedups(runs: Runs) -> Rows:
    """The largest speedups over conventional and hybrid parallelism, and all over baselines to a target accuracy."""
    for ending, _, shared in MEDIA:
        gains = [row[key + ending] for row in table_4(runs).rows for key in ("dp", "pp") if row[key + ending]]
        most, note = [max(gains, default=None)], f"PP without regard to memory{shared}"
        yield from _claim("max_conv", "most over DP and PP (Table 4)", most, note, ending[1:])
    for reading in PIPEDREAM:
        for ending, variant, shared in MEDIA:
            gains = _over(runs, SECTION_5_3, [reading, "dapple", "hetpipe"], variant)
            most, note = [max(gains, default=None)], f"{reading}, dapple, hetpipe{shared}"
            yield from _claim("max_hyb", "most over hybrid parallelism", most, note, reading + ending)
    for ending, variant, shared in MEDIA:
        note = f"throughput: synchronous systems need the same epochs, HetPipe not fewer{shared}"
        gains = _over(runs, CONVERGENCE, BASELINES, variant)
        yield from _claim("tta", "time to accuracy over baselines", gains, note, ending[1:])


def _printed_twice() -> Rows:
    """Sentences that repeat numbers of the paper's tables."""
    printed = published()
    for key, board in (("nano_slow", "nano"), ("tx2_slow", "tx2")):
        slowdown = 60 * printed[f"t1_mobilenetv2_{board}"] / printed["t1_mobilenetv2_a100"]
        yield from _claim(key, f"{board} over A100, MobileNetV2", [slowdown], "from Table 1")
    for key, said in (("dp", "2.1 to 6.8"), ("pp", "1.3 to 12.8")):
        found = [printed[f"t4_{n}_{e}_{mbps}_{key}"] for n in NETWORKS for e, mbps in ENVIRONMENTS]
        yield from _claim("dp_range_check", f"over {key.upper()}", found, f"from Table 4; the text says {said}", key)


def _of_instances() -> Rows:
    """What the library's instances are."""
    for network, place in PARAMETERS_MB.items():
        weights = sum(layer.weight_bytes for layer in instance(library_name("a", network)).layers) / 1e6
        row = {"id": f"params_{network}", "claim": f"MB of weights, {NETWORKS[network]}"}
        yield row | {"printed": str(published()["params_mb"][place]), "low": weights, "high": weights}
    for key, network in (("layers_effb1", "efficientnet_b1"), ("layers_bert", "bert_small")):
        layers = instance(library_name("c", network)).layers
        yield from _claim(key, f"layers of {NETWORKS[network]}", [len(layers)])


def _pp_transfer(runs: Runs) -> float | None:
    """Of PP on ResNet50, environment B: the communication step behind the first stage over the first stage."""
    record = runs.get(f"{OVER_PP}+memory", "gpipe")
    if record is None or record.plan is None:
        return None
    plan = Plan.model_validate_json(json.dumps(record.plan))
    steps = evaluate(instance(f"{OVER_PP}+memory"), plan).terms["steps"]
    both = [f + b for f, b in zip(steps["forward"], steps["backward"], strict=True)]
    return float(both[1] / both[0]) if len(both) > 1 and both[0] else None


@tabulated(
    "table_7",
    "Table 7: planning time, environment C",
    "network | layers: L | printed: printed, on an NX [s]; g | asteroid: Algorithm 2, compiled [ms]; .1f "
    "| exact: label_dp [ms]; .1f | evaluated: stages evaluated; ,d | scaled: 480 s by stages evaluated [s]; .0f",
    "Median process CPU time of tables, search and plan of both. The machines differ, so only the growth over the "
    "networks can be compared: the last column scales the first printed time by the work of Algorithm 2.",
)
def table_7(runs: Runs) -> Rows:
    """Planning time on environment C; how Algorithm 2's work grows with the network."""
    printed = published()
    most = runs.note(library_name("c", "efficientnet_b1"), ASTEROID, "stages_evaluated")
    for network, key in PLANNING.items():
        name = library_name("c", network)
        work = runs.note(name, ASTEROID, "stages_evaluated")
        if work is not None and most is not None:
            row = {"network": NETWORKS[network], "layers": len(instance(name).layers), "printed": printed[key]}
            for title, method in (("asteroid", ASTEROID), ("exact", EXACT)):
                seconds = runs.note(name, method, "planner_median_s", **REPEAT)
                row[title] = seconds and 1000 * seconds
            yield row | {"evaluated": work, "scaled": printed["t7_effnet"] * work / most}


@tabulated(
    "table_8",
    "Table 8: profiling time of four networks",
    "board | printed: printed [min]; g | once: every batch size once [min]; .1f "
    "| scaled: as often as the Nano's time says [min]; .1f",
    "Batches of 1 to 256 samples (ResNet50 to 32) forward and backward, whatever the memory. How often each is run "
    "is not printed: the Nano's time fixes that. NX's derived times are TX2's by this very table.",
)
def table_8() -> Rows:
    """Profiling times: one pass forward and backward of every batch size, all networks, by the derived tables."""
    printed = {"Nano": "t8_nano", "TX2": "t8_tx2", "NX": "t8_nx"}
    once = {board: sum(_profiled_ns(*each, board) for each in PROFILED.items()) / 60e9 for board in boards()}
    passes = published()["t8_nano"] / once["Nano"]
    yield from (
        {"board": board, "printed": published()[key], "once": once[board], "scaled": passes * once[board]}
        for board, key in printed.items()
    )


def _profiled_ns(network: str, batch: int, board: str) -> float:
    return sum(float(times.sum()) for times in nanoseconds(network, board, batch))
