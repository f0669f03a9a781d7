"""``mapgap import``, ``mapgap profile``, and what ``mapgap show`` says of a foreign file.

Graphs bring NetworkX, so what reads files is imported where a file is read.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import yaml

import mapgap
from mapgap.catalogue import registry
from mapgap.catalogue.files import save_expanded
from mapgap.cli import completion, flags
from mapgap.cli.flags import argument, option
from mapgap.cli.output import facts, print_json, say, table, to_file
from mapgap.cli.progress import Spinner
from mapgap.cli.solve import solve as run
from mapgap.core import InputError, InstanceBase, quantity
from mapgap.core.workload import Settings, Workload, at
from mapgap.importing.cluster import Cluster, equal_boards, load, with_profiles
from mapgap.importing.source import Source, located

if TYPE_CHECKING:
    from mapgap.importing.assemble import Assembled
    from mapgap.importing.graph import LayerGraph


def import_(
    files: Annotated[list[Path], argument("Model, profile or planner files of one format")],
    problem: Annotated[str, option("Problem.", offers=completion.problems)] = "hybrid_pipeline",
    cluster: Annotated[Path | None, option("Cluster file: boards by name.")] = None,
    profile: Annotated[list[str] | None, option("BOARD=FILE: times of a board.")] = None,
    devices: Annotated[int | None, option("In place of a cluster: equal boards.", min=1)] = None,
    link: Annotated[float | None, option("Of these: 10^6 bits per second.", min=0.000001)] = None,
    memory: Annotated[float | None, option("Of these: 10^9 bytes.", min=0.000001)] = None,
    also: Annotated[list[Path] | None, option("Further models, for problems with several.")] = None,
    settings: Annotated[list[str] | None, option("What a file leaves open: name=value.", "--set")] = None,
    planner: Annotated[str | None, option("Count as another planner does.", "--as")] = None,
    name: Annotated[str | None, option("Name of the instance.")] = None,
    training: Annotated[bool, option("Plan training.", "--training")] = False,
    inference: Annotated[bool, option("Plan inference.", "--inference")] = False,
    objective: flags.Objective = None,
    solve: Annotated[bool, option("Then solve it.", "--solve")] = False,
    certify: Annotated[bool, option("Then solve it and prove the bound.", "--certify")] = False,
    time_limit: Annotated[float, flags.seconds("Seconds, with --solve.")] = 60.0,
    output: Annotated[Path | None, flags.output("Instance file to write.")] = None,
    as_json: flags.Json = False,
) -> int:
    """Make an instance of foreign files, write it, and solve it if asked.

    Raises
    ------
    InputError
        What is wrong with a file, or missing, by name.
    """
    from mapgap.importing.assemble import assemble
    from mapgap.importing.presets import preset
    from mapgap.importing.recognise import read

    owner = registry.find_problem(problem).name
    boards = _boards(cluster, devices, link, memory, profile or ())
    purpose = _purpose(training=training, inference=inference)
    given = Settings({**(boards.settings if boards else {}), **typed(settings or ()), **purpose})
    if planner is not None:
        given.preset = preset(planner)
    graph = read(files, given)
    assembled = assemble(graph, boards, given, name)
    others = tuple(assemble(read([path], given), boards, given).workload for path in also or ())
    made = registry.library(owner).imported(replace(assembled.workload, others=others), given)
    instance = mapgap.load(made, objective)
    path = output or Path(f"{_stem(instance.name)}_{owner}.yaml")
    to_file(path)
    save_expanded(instance, path)
    if as_json:
        print_json({"file": str(path), **_summary(instance, graph, assembled)})
    else:
        _tell(instance, graph, assembled, path)
    if not solve and not certify:
        return 0
    codes = [
        run(str(path), objective=each, time_limit=time_limit, certify=certify, as_json=as_json)
        for each in _objectives(owner, objective, given, certify=certify)
    ]
    return next((code for code in codes if code), 0)


def _purpose(*, training: bool, inference: bool) -> dict[str, bool]:
    """The setting ``training`` that two flags stand for."""
    if training and inference:
        raise InputError("--training, --inference: expected one of them, found both")
    return {"training": training} if training or inference else {}


def _objectives(problem: str, objective: str | None, given: Settings, *, certify: bool) -> Sequence[str | None]:
    """What to solve for: every objective where inference is to be certified and none was named, else the instance's."""
    every = certify and given.get("training") is False and not (objective or given.get("objective"))
    return registry.problems()[problem].objectives if every else [None]


def typed(settings: Sequence[str]) -> dict[str, Any]:
    """``name=value`` flags; a value is what YAML reads.

    Raises
    ------
    InputError
    """
    found: dict[str, Any] = {}
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not equals or not name:
            raise InputError(f"--set {setting}: expected name=value")
        try:
            found[name] = yaml.safe_load(text)
        except yaml.YAMLError:
            found[name] = text
    return found


def _stem(name: str) -> str:
    return "".join(c if c.isalnum() or c in "._-" else "_" for c in name)


def _boards(
    file: Path | None, devices: int | None, link: float | None, memory: float | None, profiles: Sequence[str]
) -> Cluster | None:
    """The boards of a cluster file, or equal ones, with their profiles."""
    boards = None
    if file is not None:
        for flag, value in (("--devices", devices), ("--link", link), ("--memory", memory)):
            if value is not None:
                raise InputError(f"{flag}: expected either a cluster file or {flag}, found both")
        boards = load(file)
    elif devices is not None:
        boards = equal_boards(devices, link, memory)
    elif link is not None or memory is not None:
        raise InputError("--link, --memory: expected them beside --devices, found no --devices")
    named = dict(_profile(text) for text in profiles)
    if named and boards is None:
        raise InputError("--profile: expected boards to have profiles, by --cluster; found none")
    return None if boards is None else with_profiles(boards, named)


def _profile(text: str) -> tuple[str, str]:
    name, equals, file = text.partition("=")
    if not equals or not name or not file:
        raise InputError(
            f"--profile {text}: expected BOARD=FILE, or BOARD=FILE#KIND for one of several kinds of device"
        )
    return name, file


def _summary(instance: InstanceBase, graph: LayerGraph, assembled: Assembled) -> dict[str, Any]:
    return {
        "instance": instance.name,
        "instance_hash": instance.content_hash,
        "problem": instance.problem,
        "layers": len(graph.graph),
        "cuts": len(assembled.workload.cuts()),
        "boards": {
            name: {"seconds": time, "low": low, "high": high} for name, (time, low, high) in _times(assembled).items()
        },
        "assumed": instance.assumed,
        "origins": [vars(each) | {"assumed": list(each.assumed)} for each in graph.origins],
        "notes": assembled.notes,
    }


def _times(assembled: Assembled) -> dict[str, tuple[float, float | None, float | None]]:
    """Board to the forward seconds of the whole model at the smallest measured batch, with the bar of an estimate."""
    workload = assembled.workload
    samples = min(workload.batches, default=1)
    found: dict[str, tuple[float, float | None, float | None]] = {}
    for board in workload.boards:
        total = 1e-9 * sum(at(curve, samples) for curve in board.forward)
        bar = assembled.bars.get(board.name)
        found[board.name] = (total, total * bar[0], total * bar[1]) if bar else (total, None, None)
    return found


def _tell(instance: InstanceBase, graph: LayerGraph, assembled: Assembled, path: Path) -> None:
    workload = assembled.workload
    problem = registry.problems()[instance.problem]
    times = {
        name: seconds(time) + (f" ({seconds(low)} to {seconds(high)}, estimated)" if low and high else "")
        for name, (time, low, high) in _times(assembled).items()
    }
    facts(
        {
            "instance": f"{instance.name} ({instance.content_hash})",
            "problem": f"{problem.name} ({problem.title})",
            "model": f"{len(graph.graph)} layers, {len(workload.cuts())} parts between single tensors",
            "boards": ", ".join(board.name for board in workload.boards),
            f"forward pass, {min(workload.batches, default=1)} sample(s)": "; ".join(
                f"{k} {v}" for k, v in times.items()
            ),
            "objective in": problem.unit(instance),
            "assumed": "; ".join(instance.assumed) or None,
            "read": "\n".join(assembled.notes),
            "written to": str(path),
            "next": f"mapgap solve {path} --certify",
        }
    )


def seconds(value: float) -> str:
    """A time as people read it."""
    return quantity(value, "s")


def is_foreign(path: Path) -> bool:
    """Is it a file of a foreign format, and no instance?"""
    from mapgap.importing.recognise import recognise

    if not located(path).exists():
        return False
    source = Source.open(path)
    data = source.json if source.json is not None else source.yaml
    if isinstance(data, dict) and {"schema", "form", "problem"} & set(data) and "format" not in data:
        return False
    return recognise(source) is not None


def show_foreign(path: Path, *, as_json: bool) -> None:
    """What a foreign file holds: its layers with times and sizes, and where the chain can be cut.

    Raises
    ------
    InputError
    """
    from mapgap.importing.assemble import work_layers
    from mapgap.importing.formats import layer_graph
    from mapgap.importing.recognise import read

    graph = read([path])
    kinds = list(graph.times)
    if as_json:
        print_json(layer_graph.write(graph, {}, "; ".join(map(str, graph.origins))))
        return
    facts(
        {
            "model": graph.name,
            "layers": len(graph.graph),
            "weights": f"{sum(graph.layer(name).weight_bytes for name in graph.graph):,} bytes",
            "devices": {kind: list(facts.names) for kind, facts in graph.kinds.items() if facts.names},
            "batch sizes": {kind: graph.batches(kind) for kind in kinds},
            "read": "\n".join(map(str, graph.origins)),
        }
    )
    say()
    order = graph.order()
    single = Workload("", "", graph.input_bytes, work_layers(graph, list(order)), (), (), ()).cuts()
    headings = [f"{kind} at {sizes[0]}" if (sizes := graph.batches(kind)) else kind for kind in kinds]
    columns = ["layer", "operation", "reads", "output bytes", "weight bytes", "MACs", *headings]
    rows = []
    for k, name in enumerate(order):
        layer = graph.layer(name)
        times = [_shown(graph, kind, name) for kind in kinds]
        reads = ", ".join(graph.inputs(name)) or "(input)"
        rows.append([name, layer.operation, reads, layer.output_bytes, layer.weight_bytes, layer.macs, *times])
        if k in single and k < len(order) - 1:
            rows[-1][0] = f"{name} |"
    table("layers (| a place where a single tensor crosses)", columns, rows, right=columns[3:])


def _shown(graph: LayerGraph, kind: str, name: str) -> str | None:
    points = graph.times[kind].get(name)
    if not points:
        return None
    time = points[min(points)]
    backward = "" if time.backward is None else f" + {seconds(time.backward * 1e-9)}"
    return f"{seconds(time.forward * 1e-9)}{backward}"


def profile(
    model: Annotated[Path, argument("ONNX model")],
    output: Annotated[Path, flags.output("Where to write the layer graph (JSON).")],
    batch: Annotated[str, option("Batch sizes, separated by commas.")] = "1,2,4,8",
    threads: Annotated[str, option("Threads; every number is a kind of device.")] = "1",
    repetitions: Annotated[int, option("Runs that count.", min=1)] = 20,
    warm_up: Annotated[int, option("Runs before them.", min=0)] = 5,
    provider: Annotated[str, option("Execution provider of ONNX Runtime.")] = "CPUExecutionProvider",
    optimise: Annotated[str, option("Graph optimisation: none or basic.")] = "basic",
    settings: Annotated[list[str] | None, option("Open dimensions: name=value.", "--set")] = None,
    as_json: flags.Json = False,
) -> None:
    """Measure a model and write the layer graph.

    Raises
    ------
    InputError
    """
    to_file(output)
    sizes, counts = _numbers("--batch", batch), _numbers("--threads", threads)
    if optimise not in ("none", "basic"):
        raise InputError(f"--optimise: expected none or basic, found {optimise!r}")
    try:
        from mapgap.importing.formats import layer_graph
        from mapgap.importing.measure import measure
    except ModuleNotFoundError as error:
        text = f"expected the package {error.name}; install it by: pip install 'mapgap[onnx]'"
        raise InputError(f"profile: {text}") from error
    with Spinner() as display:
        graph, machine, note = measure(
            model,
            sizes,
            counts,
            repetitions=repetitions,
            warm_up=warm_up,
            provider=provider,
            level=optimise,
            settings=Settings(typed(settings or ())),
            tell=display.spin,
        )
    output.write_text(json.dumps(layer_graph.write(graph, machine, note), indent=1) + "\n", encoding="utf-8")
    if as_json:
        print_json(
            {"file": str(output), "machine": machine, "kinds": {kind: graph.batches(kind) for kind in graph.times}}
        )
        return
    rows = []
    for kind, times in graph.times.items():
        for size in graph.batches(kind):
            points = [points[size] for points in times.values()]
            total = 1e-9 * sum(time.forward for time in points)
            low = 1e-9 * sum(time.low if time.low is not None else time.forward for time in points)
            high = 1e-9 * sum(time.high if time.high is not None else time.forward for time in points)
            rows.append([kind, size, seconds(total), f"{seconds(low)} to {seconds(high)}"])
    table(note, ["kind", "batch", "all operators", "quartiles"], rows, right=["batch", "all operators", "quartiles"])
    first = next(iter(graph.times))
    say(f"written to {output}\nnext: mapgap import {output} --cluster boards.yaml, boards with 'kind: {first}'")


def _numbers(flag: str, text: str) -> list[int]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() and 0 < int(part) <= 4096 for part in parts):
        raise InputError(f"{flag} {text}: expected whole numbers from 1 to 4096, separated by commas")
    return sorted({int(part) for part in parts})
