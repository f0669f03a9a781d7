"""The commands around instances: names, arguments and options, for :mod:`mapgap.cli.app`."""

# No postponed annotations: Typer would evaluate the text of each of them several times.
from pathlib import Path
from typing import Annotated

import typer

from mapgap.cli.app_options import (
    Instance,
    Json,
    Objective,
    Out,
    Plugins,
    Problem,
    complete_families,
    complete_instances,
    complete_problems,
    complete_things,
    load_plugins,
)


def list_(
    what: Annotated[str, typer.Argument(help="problems, methods, instances, or all of them")] = "all",
    problem: Annotated[str | None, typer.Option(help="Only of this problem.", autocompletion=complete_problems)] = None,
    tag: Annotated[list[str] | None, typer.Option(help="Only instances that carry this tag (repeatable).")] = None,
    plugin: Plugins = None,
    json: Json = False,
) -> None:
    """List problems, methods and library instances."""
    from mapgap.cli import catalogue

    load_plugins(plugin)
    catalogue.list_things(what, problem, tag or [], as_json=json)


def show(
    name: Annotated[
        str,
        typer.Argument(
            help="Instance (path or name), method, problem, or PROBLEM/METHOD", autocompletion=complete_things
        ),
    ],
    plugin: Plugins = None,
    json: Json = False,
) -> None:
    """Describe an instance, a method or a problem."""
    from mapgap.cli import catalogue

    load_plugins(plugin)
    catalogue.show(name, as_json=json)


def validate(
    files: Annotated[
        list[str], typer.Argument(help="Instance files or library names", autocompletion=complete_instances)
    ],
    json: Json = False,
) -> None:
    """Check instance files; every error with file, line and column."""
    from mapgap.cli import catalogue

    raise typer.Exit(catalogue.validate(files, as_json=json))


def expand(instance: Instance, objective: Objective = None, output: Out = None, json: Json = False) -> None:
    """Write the expanded form: the integers that every method sees."""
    from mapgap.cli import catalogue

    catalogue.expand(instance, objective, output, as_json=json)


def export(
    instance: Instance,
    output: Annotated[Path, typer.Option("-o", "--output", help="File: .lp, .mps, or .pbtxt for CP-SAT.")],
    model: Annotated[str | None, typer.Option(help="mip, cpsat, … (default: the one that writes the suffix).")] = None,
    part: Annotated[str | None, typer.Option(help="Label of one of several programs, or a pattern ('*').")] = None,
    objective: Objective = None,
    plugin: Plugins = None,
    json: Json = False,
) -> None:
    """Write the integer program of an instance for another solver; check --solution reads its answer."""
    from mapgap.cli.export import export as write

    load_plugins(plugin)
    raise typer.Exit(write(instance, output, model, part, objective, as_json=json))


def generate(
    problem: Problem,
    family: Annotated[
        str, typer.Argument(help="Family of random instances (mapgap show PROBLEM)", autocompletion=complete_families)
    ],
    seed: Annotated[int, typer.Option(help="First seed.")] = 0,
    count: Annotated[int, typer.Option(min=1, help="How many, with seeds one apart.")] = 1,
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder.")] = Path(),
    json: Json = False,
) -> None:
    """Write random instances of a family."""
    from mapgap.cli import catalogue

    catalogue.generate(problem, family, range(seed, seed + count), output, as_json=json)


def schema(
    problem: Problem,
    form: Annotated[str, typer.Option(help="compact, expanded or plan")] = "expanded",
) -> None:
    """Print the JSON Schema of instance or plan files, for editors."""
    from mapgap.cli import catalogue

    catalogue.schema(problem, form)


def import_(
    files: Annotated[list[Path], typer.Argument(help="Model, profile or planner files of one format")],
    problem: Annotated[str, typer.Option(help="Problem.", autocompletion=complete_problems)] = "hybrid_pipeline",
    cluster: Annotated[Path | None, typer.Option(help="Cluster file: boards by name.")] = None,
    profile: Annotated[list[str] | None, typer.Option(help="BOARD=FILE: times of a board.")] = None,
    devices: Annotated[int | None, typer.Option(min=1, help="In place of a cluster: equal boards.")] = None,
    link: Annotated[float | None, typer.Option(min=0.000001, help="Of these: 10^6 bits per second.")] = None,
    memory: Annotated[float | None, typer.Option(min=0.000001, help="Of these: 10^9 bytes.")] = None,
    also: Annotated[list[Path] | None, typer.Option(help="Further models, for problems with several.")] = None,
    settings: Annotated[list[str] | None, typer.Option("--set", help="What a file leaves open: name=value.")] = None,
    name: Annotated[str | None, typer.Option(help="Name of the instance.")] = None,
    objective: Objective = None,
    solve: Annotated[bool, typer.Option("--solve", help="Then solve it.")] = False,
    certify: Annotated[bool, typer.Option("--certify", help="Then solve it and prove the bound.")] = False,
    time_limit: Annotated[float, typer.Option(min=0.001, help="Seconds, with --solve.")] = 60.0,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Instance file to write.")] = None,
    json: Json = False,
) -> None:
    """Make an instance of your own model and profile: ONNX, ONNX Runtime, TensorRT, and files of published planners."""
    from mapgap.cli import imports

    order = imports.Order(
        files=files,
        problem=problem,
        cluster=cluster,
        profiles=profile or (),
        devices=devices,
        link=link,
        memory=memory,
        also=also or (),
        settings=settings or (),
        name=name,
        objective=objective,
        output=output,
        json=json,
    )
    written = imports.import_(order)
    if solve or certify:
        from mapgap.cli.solve import Request
        from mapgap.cli.solve import solve as run

        raise typer.Exit(run(Request(instance=str(written), time_limit=time_limit, certify=certify, json=json)))


def profile_(
    model: Annotated[Path, typer.Argument(help="ONNX model")],
    output: Annotated[Path, typer.Option("-o", "--output", help="Where to write the layer graph (JSON).")],
    batch: Annotated[str, typer.Option(help="Batch sizes, separated by commas.")] = "1,2,4,8",
    threads: Annotated[str, typer.Option(help="Threads; every number is a kind of device.")] = "1",
    repetitions: Annotated[int, typer.Option(min=1, help="Runs that count.")] = 20,
    warm_up: Annotated[int, typer.Option(min=0, help="Runs before them.")] = 5,
    provider: Annotated[str, typer.Option(help="Execution provider of ONNX Runtime.")] = "CPUExecutionProvider",
    optimise: Annotated[str, typer.Option(help="Graph optimisation: none or basic.")] = "basic",
    settings: Annotated[list[str] | None, typer.Option("--set", help="Open dimensions: name=value.")] = None,
    json: Json = False,
) -> None:
    """Measure the layers of an ONNX model on this machine with ONNX Runtime."""
    from mapgap.cli import imports

    imports.profile(
        model,
        batch,
        threads,
        output,
        repetitions=repetitions,
        warm_up=warm_up,
        provider=provider,
        level=optimise,
        settings=settings or (),
        as_json=json,
    )
