"""``mapgap import``, ``mapgap profile``, and what ``mapgap show`` says of a foreign file.

Graphs bring NetworkX, so what reads files is imported where a file is read.
"""

from __future__ import annotations

import contextlib
import io
import json
import math
import os
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import yaml

import mapgap
from mapgap.catalogue import registry
from mapgap.catalogue.files import save_expanded
from mapgap.cli import completion, fitting, flags, fronts
from mapgap.cli.flags import argument, option
from mapgap.cli.output import complain, facts, print_json, put, say, table, to_file
from mapgap.cli.progress import Spinner
from mapgap.cli.solve import solve as run
from mapgap.core import InputError, InstanceBase, quantity, short
from mapgap.core.limited import Exceeded, Limits, limited
from mapgap.core.storage import is_file
from mapgap.core.workload import Settings, Workload, at
from mapgap.importing.cluster import Cluster, equal_boards, load, with_profiles
from mapgap.importing.conservation import line, shares
from mapgap.importing.source import Source, located

if TYPE_CHECKING:
    from mapgap.importing.assemble import Assembled
    from mapgap.importing.graph import LayerGraph

#: What reading files may take: seconds of a processor and 2^20 bytes, at first, per 2^20 bytes of the files, at most.
CPU_S, CPU_PER_MB, CPU_MOST = 4.0, 5.0, 300.0
MEMORY_MB, MEMORY_PER_MB, MEMORY_MOST = 450.0, 64.0, 8192.0


def import_(
    files: Annotated[list[Path], argument("Model, profile or planner files of one format")],
    problem: Annotated[str | None, option("Problem; else hybrid_pipeline.", offers=completion.problems)] = None,
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
    front: Annotated[bool, option("Of a language model: the best plans by length of the answer.", "--front")] = False,
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
    named = [Path(_profile(text)[1].partition("#")[0]) for text in profile or ()]
    purpose = _purpose(training=training, inference=inference)

    def work() -> dict[str, Any]:
        boards = _boards(cluster, devices, link, memory, profile or ())
        return _import(
            files, problem, boards, also, settings, planner, purpose, name, objective, output, as_json, certify
        )

    read = [*files, *(also or ()), *named, *([cluster] if cluster else [])]
    if front:
        others = {"--solve": solve, "--certify": certify, "--output": output, "--objective": objective}
        refused = [flag for flag, value in others.items() if value]
        if refused:
            raise InputError(f"{refused[0]}: expected nothing of the kind beside --front, which solves what it needs")
        boards = _boards(cluster, devices, link, memory, profile or ())
        fronts.show(read, files, boards, typed(settings or ()), time_limit, confined, as_json=as_json)
        return 0
    made = confined(read, work)
    if not solve and not certify:
        return 0
    codes = [
        run(made["file"], objective=each, time_limit=time_limit, certify=certify or None, as_json=as_json)
        for each in made["objectives"]
    ]
    return next((code for code in codes if code), 0)


def confined(files: Sequence[Path], work: Callable[[], Any]) -> Any:
    """Work on foreign files in a process with limits; what it returns, as JSON data. What it prints is printed here.

    Raises
    ------
    InputError
        It takes too long or too much memory for files of that size, or what is wrong with one.
    """
    terminal = sys.stdout is not None and sys.stdout.isatty()
    columns = shutil.get_terminal_size().columns

    def captured() -> dict[str, Any]:
        if terminal:
            os.environ["COLUMNS"] = str(columns)
        out, err = _Paper(terminal), _Paper(terminal)
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            return {"result": work(), "out": out.getvalue(), "err": err.getvalue()}

    size = sum(located(path).stat().st_size for path in files if is_file(located(path))) / 2**20
    cpu_s = min(CPU_S + CPU_PER_MB * size, CPU_MOST)
    memory_mb = math.ceil(min(MEMORY_MB + MEMORY_PER_MB * size, MEMORY_MOST))
    limits = Limits(cpu_s, 10 * cpu_s, memory_mb, writes=True)
    try:
        found = limited(captured, limits)
    except Exceeded as error:
        about = short(", ".join(map(str, files)))
        text = f"expected what can be read within {cpu_s:.0f} s and {limits.memory_mb} MB, found what takes {error}"
        raise InputError(f"{about}: {text}") from None
    if found["err"] and sys.stderr is not None:
        sys.stderr.write(found["err"])
    if found["out"]:
        put(found["out"], end="")
    return found["result"]


class _Paper(io.StringIO):
    """Text that is printed later, and whether on a terminal."""

    def __init__(self, terminal: bool) -> None:
        super().__init__()
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal


def _import(
    files: list[Path],
    problem: str | None,
    boards: Cluster | None,
    also: list[Path] | None,
    settings: list[str] | None,
    planner: str | None,
    purpose: dict[str, bool],
    name: str | None,
    objective: str | None,
    output: Path | None,
    as_json: bool,
    certify: bool,
) -> dict[str, Any]:
    """Make an instance of foreign files and write it: where, and what to solve it for."""
    from mapgap.importing.assemble import assemble
    from mapgap.importing.presets import preset
    from mapgap.importing.recognise import read

    owner = registry.find_problem(problem or "hybrid_pipeline").name
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
    others_told = {} if problem else fitting.other_problems(owner, assembled.workload, given.given)
    if as_json:
        told = {"other_problems": others_told} if others_told else {}
        print_json({"file": str(path), **_summary(instance, graph, assembled), **told})
    else:
        _tell(instance, graph, assembled, path, others_told)
        _warn(graph)
    return {"file": str(path), "objectives": _objectives(owner, objective, given, certify=certify)}


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


def _warn(graph: LayerGraph) -> None:
    """Say where the whole run is far from the sum of its operators."""
    complain([each.warning() for each in shares(graph) if each.apart], label="warning")


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
        boards = load(located(file))
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
        "conserved": [each.data() for each in shares(graph)],
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


def _tell(
    instance: InstanceBase, graph: LayerGraph, assembled: Assembled, path: Path, others: Mapping[str, str]
) -> None:
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
            "conserved": line(shares(graph)),
            "assumed": "; ".join(instance.assumed) or None,
            "read": "\n".join(assembled.notes),
            "--problem": fitting.told(others) or None,
            "written to": str(path),
            "next": f"mapgap solve {path} --certify",
        }
    )


def seconds(value: float) -> str:
    """A time as people read it."""
    return quantity(value, "s")


def show_if_foreign(path: Path, *, as_json: bool) -> bool:
    """Show a file of a foreign format; whether it is one.

    Raises
    ------
    InputError
        It is neither such a file nor an instance; the formats are named.
    """
    from mapgap.importing.recognise import none_of_them

    def work() -> bool:
        foreign = is_foreign(path)
        if foreign:
            show_foreign(path, as_json=as_json)
        elif not _looks_like_an_instance(Source.open(path)):
            raise InputError(none_of_them(Source.open(path), "an instance (schema, form, problem, name, …)"))
        return foreign

    return located(path).exists() and bool(confined([path], work))


def is_foreign(path: Path) -> bool:
    """Is it a file of a foreign format, and no instance?"""
    from mapgap.importing.recognise import recognise

    if not located(path).exists():
        return False
    source = Source.open(path)
    return not _looks_like_an_instance(source) and recognise(source) is not None


def _looks_like_an_instance(source: Source) -> bool:
    """Data with a field that heads an instance, and without the mark of a layer graph."""
    data = source.json if source.json is not None else source.yaml
    return isinstance(data, dict) and bool({"schema", "form", "problem"} & set(data)) and "format" not in data


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
            "conserved": line(shares(graph)),
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
    batch: Annotated[str | None, option("Batch sizes, by commas; else 1, 2, 4, 8 or the fixed one.")] = None,
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
    sizes, counts = None if batch is None else _numbers("--batch", batch), _numbers("--threads", threads)
    if optimise not in ("none", "basic"):
        raise InputError(f"--optimise: expected none or basic, found {optimise!r}")
    try:
        from mapgap.importing.formats import layer_graph, onnx_model
        from mapgap.importing.measure import measure
    except ModuleNotFoundError as error:
        text = f"expected the package {error.name}; install it by: pip install 'mapgap[onnx]'"
        raise InputError(f"profile: {text}") from error

    def described() -> None:
        onnx_model.describe(Source.open(model), Settings(typed(settings or ())))

    confined([model], described)  # what hangs or fills the memory does so there; to be measured, it is read once more
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
        kinds = {kind: graph.batches(kind) for kind in graph.times}
        print_json(
            {
                "file": str(output),
                "machine": machine,
                "kinds": kinds,
                "conserved": [each.data() for each in shares(graph)],
            }
        )
        return
    rows = []
    runs = {(each.total.kind, each.total.batch): each for each in shares(graph) if each.total.quantity == "run"}
    for kind, times in graph.times.items():
        for size in graph.batches(kind):
            points = [points[size] for points in times.values()]
            total = 1e-9 * sum(time.forward for time in points)
            low = 1e-9 * sum(time.low if time.low is not None else time.forward for time in points)
            high = 1e-9 * sum(time.high if time.high is not None else time.forward for time in points)
            whole = runs[kind, size].total
            load = "" if whole.load is None else f"{whole.load:.2f}"
            rows.append(
                [kind, size, seconds(total), f"{seconds(low)} to {seconds(high)}", seconds(1e-9 * whole.amount), load]
            )
    headings = ["kind", "batch", "all operators", "quartiles", "whole run", "load per core"]
    table(note, headings, rows, right=headings[1:])
    say(f"conserved: {line(shares(graph))}")
    _warn(graph)
    first = next(iter(graph.times))
    say(f"written to {output}\nnext: mapgap import {output} --cluster boards.yaml, boards with 'kind: {first}'")


def _numbers(flag: str, text: str) -> list[int]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() and 0 < int(part) <= 4096 for part in parts):
        raise InputError(f"{flag} {text}: expected whole numbers from 1 to 4096, separated by commas")
    return sorted({int(part) for part in parts})
