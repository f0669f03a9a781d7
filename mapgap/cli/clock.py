"""``mapgap split``, ``run``, ``board`` and ``calibrate``: a plan on the clock, and what it measured."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import mapgap
from mapgap.catalogue import registry
from mapgap.catalogue.files import save_expanded
from mapgap.cli import flags
from mapgap.cli.flags import argument, option
from mapgap.cli.imports import confined, typed
from mapgap.cli.output import complain, facts, print_json, say, table, to_file, to_folder
from mapgap.core import Clock, GanttLane, InputError, InstanceBase, PlanBase, Script, quantity
from mapgap.core.workload import Settings
from mapgap.importing.cluster import Cluster, labels, load

Plan = Annotated[Path, argument("Plan file, or the JSON of a run")]
#: Tasks shorter than this are about as long as what it takes to hand them out.
SHORT_S = 0.005


def _clock(instance: InstanceBase) -> Clock:
    found = registry.problems()[instance.problem].clock
    if found is None:
        known = ", ".join(name for name, problem in registry.problems().items() if problem.clock is not None)
        raise InputError(f"{instance.problem}: expected a problem whose plans are run ({known}), found this one")
    return found


def _sound(instance: str, plan: Path) -> tuple[InstanceBase, PlanBase]:
    """An instance and a plan that breaks no rule."""
    loaded = mapgap.load(instance)
    found = mapgap.check(loaded, plan)
    if found.violations:
        first = found.violations[0]
        raise InputError(f"{plan}: expected a plan without violations, found {first.where}: {first.message}")
    return loaded, found.plan


def split(
    instance: flags.Instance,
    plan: Plan,
    model: Annotated[list[Path], option("ONNX model of which the instance was made; of several one per pipeline.")],
    output: Annotated[Path, flags.output("Folder for the parts and their manifest.")],
    settings: Annotated[list[str] | None, option("Open dimensions: name=value.", "--set")] = None,
    as_json: flags.Json = False,
) -> None:
    """Cut models into the stages of a plan.

    Raises
    ------
    InputError
    """
    to_folder(output)
    loaded, found = _sound(instance, plan)
    planned = _clock(loaded).models(loaded, found)
    if not planned:
        raise InputError(f"{loaded.problem}: expected plans that are pipelines of models, found others")
    if len(model) != len(planned):
        names = ", ".join(each.name for each in planned)
        raise InputError(f"--model: expected {len(planned)}, one per pipeline ({names}), found {len(model)}")
    folders = [output / each.name if len(planned) > 1 else output for each in planned]
    if any(folder.parent != output for folder in folders if len(planned) > 1):
        raise InputError(f"{instance}: expected names of pipelines that can be names of folders, found others")

    def work() -> Any:
        try:
            from mapgap.importing.onnx_files.cut import cut
        except ModuleNotFoundError as error:
            text = f"expected the package {error.name}; install it by: pip install 'mapgap[onnx]'"
            raise InputError(f"split: {text}") from error
        from mapgap.clock.manifest import write

        done: list[tuple[dict[str, Any], list[Any], list[bytes]]] = []  # all of them before anything is written
        for path, each in zip(model, planned, strict=True):
            parts, tensors = cut(path, each.micro_batch, each.stages, Settings(typed(settings or ())))
            told = [
                {
                    "boards": [{"name": name, "samples": samples} for name, samples in stage.boards],
                    "layers": part.layers,
                    **{kind: getattr(part, kind) for kind in ("receives", "reads", "makes", "sends", "outputs")},
                }
                for part, stage in zip(parts, each.stages, strict=True)
            ]
            ends = {"source": each.source, "target": each.target}
            head = {
                "model": path.name,
                "instance": loaded.name,
                "instance_hash": loaded.content_hash,
                "plan": found.to_json(),
                "micro_batch": each.micro_batch,
                **{end: name for end, name in ends.items() if name is not None},
                "tensors": {
                    name: {"kind": value.dtype.name, "shape": list(value.shape), "bytes": value.nbytes}
                    for name, value in tensors.items()
                },
            }
            done.append((head, told, [part.model.SerializeToString() for part in parts]))
        for folder, whole in zip(folders, done, strict=True):
            write(folder, *whole)
        return [
            {"folder": str(folder), **head, "stages": told}
            for folder, (head, told, _) in zip(folders, done, strict=True)
        ]

    made = confined(model, work)
    if as_json:
        print_json(made[0] if len(made) == 1 else {"folder": str(output), "pipelines": made})
        return
    rows = []
    for each in made:
        for k, stage in enumerate(each["stages"]):
            boards = ", ".join(f"{board['name']} ({board['samples']})" for board in stage["boards"])
            size = sum(each["tensors"][name]["bytes"] for name in stage["sends"])
            cells = [k, boards, len(stage["layers"]), ", ".join(stage["sends"]) or None, quantity(size, "B")]
            rows.append([each["model"], *cells])
    columns = ["model", "stage", "boards (samples)", "layers", "sends", "per micro-batch"]
    table("parts", columns, rows, right=["stage", "layers"])
    say(f"The parts make what the whole makes.\nwritten to {output}")
    if len(made) == 1:
        say(f"next: mapgap run {instance} {plan} --parts {output}")


def run(
    instance: flags.Instance,
    plan: Plan,
    parts: Annotated[Path | None, option("Folder of mapgap split: run the model.")] = None,
    emulate: Annotated[bool, option("Wait in place of computing, send zeros.", "--emulate")] = False,
    boards: Annotated[Path | None, option("Cluster file: address, slower, link_mbps.")] = None,
    rounds: Annotated[int | None, option("Rounds that count.", min=1, max=10_000)] = None,
    scale: Annotated[float, option("With --emulate: seconds per second of the model.", min=0.001, max=1000)] = 1.0,
    threads: Annotated[int, option("Threads of a board, with --parts.", min=1, max=256)] = 1,
    output: Annotated[Path | None, flags.output("Trace to write (JSON lines).")] = None,
    gantt: Annotated[Path | None, option("Draw plan and clock (.svg, .png, .pdf).")] = None,
    as_json: flags.Json = False,
) -> None:
    """Run a plan with a process per board, and compare the clock with the model.

    Raises
    ------
    InputError
    """
    from mapgap.clock.replay import full
    from mapgap.clock.run import execute, machine
    from mapgap.clock.trace import Trace, measured

    if emulate == (parts is not None):
        raise InputError(f"--emulate, --parts: expected one of them, found {'both' if emulate else 'none'}")
    if parts is not None and scale != 1:
        raise InputError("--scale: expected it with --emulate, found --parts")
    for flag, path in (("-o", output), ("--gantt", gantt)):
        if path is not None:
            to_file(path, flag)
    loaded, found = _sound(instance, plan)
    clock, cluster = _clock(loaded), None if boards is None else load(boards)
    script = clock.script(loaded, found, (rounds or 1) + (parts is not None))
    if script.in_flight:
        script = full(partial(clock.script, loaded, found), rounds)
    if parts is not None and script.in_flight:
        raise InputError(
            f"--parts: expected plans that are pipelines of one model, found {loaded.problem}; or --emulate"
        )
    work = None if parts is None else _parts(parts, loaded, found, cluster, threads)
    short = [task for task in script.tasks if 0 < task.seconds * scale < SHORT_S]
    if emulate and 2 * len(short) > len(script.tasks):
        text = (
            f"most tasks take less than {quantity(SHORT_S, 's')}, and handing one out takes some 0.3 ms; slow the clock"
        )
        complain([f"{text} down: --scale"], label="warning")
    records = execute(script, _hosts(script, cluster), token=os.environ.get("MAPGAP_TOKEN"), scale=scale, parts=work)
    if work is not None:  # the first round warms up
        script = Script(script.tasks, script.rounds[1:], script.seconds)
        since = max(each["end"] for each in records if each["round"] == 0)
        late = [each for each in records if each["round"]]
        records = [each | {"start": each["start"] - since, "end": each["end"] - since} for each in late]
    spent = measured(script, records)
    head = {
        "instance": loaded.name,
        "instance_hash": loaded.content_hash,
        "problem": loaded.problem,
        "plan": found.to_json(),
        "how": "emulated" if emulate else "computed",
        "scale": scale,
        "rounds": len(script.rounds),
        "in_flight": script.in_flight,
        "model_s": script.seconds,
        "clock_s": spent,
        "late_s": scale * max(each["late"] for each in records),
        "machine": machine(),
    }
    trace = Trace(head, records)
    if output is not None:
        trace.write(output)
    if gantt is not None:
        _draw(loaded, found, trace, gantt)
    if as_json:
        print_json(head | {"tasks": len(records)})
        return
    rows = [
        [lane, group, count, quantity(model, "s"), quantity(spent_s, "s"), _between(each)]
        for lane, group, count, model, spent_s, each in trace.rows()
    ]
    columns = ["lane", "group", "tasks", "model", "clock", "clock over model (quartiles)"]
    table("model against clock", columns, rows, right=columns[2:])
    what = "one cycle" if script.in_flight else "one round"
    facts(
        {
            what: f"clock {quantity(spent, 's')}",
            "model": _apart(spent, script.seconds),
            "planned chart": None if script.in_flight else _apart(spent, _planned_end(loaded, found)),
            "in flight": script.in_flight or None,
            "told late by": quantity(head["late_s"], "s"),
            "boards": len({task.board for task in script.tasks if task.board}),
            "bytes moved": sum(each.get("bytes", 0) for each in records),
            "trace": output,
            "chart": gantt,
        }
    )


def _between(found: Any) -> str | None:
    return None if found is None else f"{found.middle:.3f} ({found.low:.3f} to {found.high:.3f})"


def _apart(clock: float, model: float) -> str | None:
    return f"{quantity(model, 's')}: the clock is {100 * (clock - model) / model:+.1f}% apart" if model else None


def _planned(instance: InstanceBase, plan: PlanBase) -> list[GanttLane]:
    drawn = registry.problems()[instance.problem].gantt
    return drawn(instance, plan) if drawn is not None else []


def _planned_end(instance: InstanceBase, plan: PlanBase) -> float:
    """When the last bar of the planned chart ends: the schedule, where the objective is a formula."""
    return max((bar.end for lane in _planned(instance, plan) for bar in lane.bars), default=0.0)


def _draw(instance: InstanceBase, plan: PlanBase, trace: Any, path: Path) -> None:
    from mapgap.reporting.gantt import charts, save

    planned = _planned(instance, plan)
    order = {lane.name.removesuffix(" (bottleneck)"): k for k, lane in enumerate(planned)}
    lanes = sorted(trace.lanes(), key=lambda lane: order.get(lane.name, len(order)))
    save(charts([(f"{instance.name}: the model", planned), ("the clock", lanes)]), path)


def _boards(cluster: Cluster) -> dict[str, str]:
    """Names of single boards to their entries."""
    return {label: name for name, board in cluster.boards.items() for label in labels(name, board)}


def _hosts(script: Script, cluster: Cluster | None) -> Mapping[str, Any]:
    """Where every board of a script is."""
    from mapgap.clock.run import Host

    moves = [task.move for task in script.tasks if task.move]
    names = (
        {task.board for task in script.tasks if task.board} | {m.sender for m in moves} | {m.receiver for m in moves}
    )
    if cluster is None:
        return {name: Host() for name in sorted(names)}
    entries, found = _boards(cluster), {}
    for name in sorted(names):
        if name not in entries:
            raise InputError(f"--boards: expected the board {name!r} of the plan, found {', '.join(entries)}")
        board = cluster.boards[entries[name]]
        found[name] = Host(_address(name, board.address), board.slower)
    if len({host.address is None for host in found.values()}) > 1:
        raise InputError("--boards: expected an address for every board of the plan or for none, found it for some")
    return found


def _address(name: str, text: str | None) -> tuple[str, int] | None:
    if text is None:
        return None
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise InputError(f"{name}: expected an address HOST:PORT, found {text!r}")
    return host.strip("[]"), int(port)


def _parts(folder: Path, instance: InstanceBase, plan: PlanBase, cluster: Cluster | None, threads: int) -> Any:
    """The parts of a folder, if they are those of the plan; made-up inputs."""
    import numpy as np

    from mapgap.clock.manifest import read
    from mapgap.clock.run import Parts

    manifest, files = read(folder)
    if manifest.get("plan") != plan.to_json() or manifest.get("instance_hash") != instance.content_hash:
        raise InputError(f"--parts {folder}: expected the parts of this plan and instance, found those of others")
    if any(task.group != "FP" for task in _clock(instance).script(instance, plan, 1).tasks):
        text = "expected an instance of inference (mapgap import --inference), since nothing trains here; or --emulate"
        raise InputError(f"--parts: {text}")
    entries = {} if cluster is None else _boards(cluster)

    def rates(first: str, second: str) -> float | None:
        if cluster is None or any(cluster.boards[entries[name]].address for name in (first, second)):
            return None
        mbps = cluster.mbps(entries[first], entries[second])
        return None if mbps is None else mbps * 1e6 / 8

    def inputs(batch: int) -> dict[str, Any]:
        drawn, found = np.random.default_rng(batch), {}
        for name in manifest["stages"][0]["receives"]:
            told = manifest["tensors"][name]
            shape, real = told["shape"], told["kind"].startswith("float")
            found[name] = (drawn.random(shape) if real else np.ones(shape)).astype(told["kind"])
        return found

    return Parts(manifest["stages"], files, inputs, rates, threads)


def board(
    listen: Annotated[str, option("HOST:PORT; loopback unless told otherwise.")] = "127.0.0.1:7070",
) -> None:
    """Be a board until interrupted; the token is in MAPGAP_TOKEN.

    Raises
    ------
    InputError
    """
    from mapgap.clock.board import Listener

    address = _address("--listen", listen)
    assert address is not None
    listener = Listener(*address, os.environ.get("MAPGAP_TOKEN", ""))
    say(f"listening on {listener.address[0]}:{listener.address[1]}")
    listener.serve()


def calibrate(
    instance: flags.Instance,
    trace: Annotated[Path, argument("Trace of mapgap run")],
    output: Annotated[Path, flags.output("Instance file to write.")],
    as_json: flags.Json = False,
) -> None:
    """Write the instance with the times and bandwidths that a run measured.

    Raises
    ------
    InputError
    """
    from mapgap.clock.trace import Trace

    to_file(output)
    loaded, found = mapgap.load(instance), Trace.read(trace)
    if found.head.get("instance_hash") != loaded.content_hash:
        text = f"expected a run of {loaded.content_hash}, found one of {found.head.get('instance_hash')}"
        raise InputError(f"{trace}: {text}")
    try:
        done = _clock(loaded).calibrated(loaded, [found.head, *found.records])
    except (KeyError, TypeError, IndexError) as error:
        raise InputError(f"{trace}: expected a trace of mapgap run, found one without {error}") from error
    if done is None:
        raise InputError(f"{loaded.problem}: expected a problem that a run calibrates, found this one")
    made, changes = done
    save_expanded(made, output)
    if as_json:
        told = [{"what": what, **vars(each), "unit": unit} for what, each, unit in changes]
        print_json({"file": str(output), "instance_hash": made.content_hash, "changed": told})
        return
    rows = [
        [what, each.count, *(_value(v, unit) for v in (each.low, each.middle, each.high))]
        for what, each, unit in changes
    ]
    columns = ["what", "measured", "lower quartile", "median", "upper quartile"]
    table("times what the instance says, and bytes per second", columns, rows, right=columns[1:])
    say(f"written to {output}\nnext: mapgap solve {output}")


def _value(value: float, unit: str) -> str:
    return f"{value:.3f}" if unit == "times" else quantity(value, unit)
