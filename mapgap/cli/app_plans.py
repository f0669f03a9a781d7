"""The commands around plans: names, arguments and options, for :mod:`mapgap.cli.app`."""

# No postponed annotations: Typer would evaluate the text of each of them several times.
from pathlib import Path
from typing import Annotated

import typer

from mapgap.cli.app_options import (
    Instance,
    Json,
    Objective,
    Plugins,
    complete_methods,
    load_plugins,
)


def solve(
    instance: Instance,
    method: Annotated[
        list[str] | None,
        typer.Option("--method", "-m", help="Method by name (repeatable).", autocompletion=complete_methods),
    ] = None,
    exact: Annotated[bool, typer.Option("--exact", help="The strongest exact method (the default).")] = False,
    fast: Annotated[bool, typer.Option("--fast", help="The quick planner: no solver, no proof.")] = False,
    all_: Annotated[bool, typer.Option("--all", help="Every method of the problem, one after the other.")] = False,
    objective: Objective = None,
    time_limit: Annotated[float, typer.Option(min=0.001, help="Seconds per method.")] = 60.0,
    memory_limit: Annotated[int | None, typer.Option(min=1, help="MB of resident memory, enforced.")] = None,
    workers: Annotated[int, typer.Option(min=1, max=4096, help="Threads a solver may use.")] = 1,
    seed: Annotated[int, typer.Option(min=0, max=2**31 - 1, help="The only source of randomness.")] = 0,
    settings: Annotated[list[str] | None, typer.Option("--set", help="Method option as name=value.")] = None,
    plugin: Plugins = None,
    certify: Annotated[bool, typer.Option("--certify", help="Then prove the bound by a certificate file.")] = False,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Write the best plan as JSON.")] = None,
    gantt: Annotated[Path | None, typer.Option(help="Draw the best plan (.svg, .png, .pdf).")] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object per method on standard output.")] = False,
) -> None:
    """Solve an instance; every plan is verified by the evaluator. Ctrl-C keeps and prints the incumbent."""
    from mapgap.cli.solve import Request
    from mapgap.cli.solve import solve as run

    load_plugins(plugin)
    request = Request(
        instance=instance,
        methods=method or (),
        exact=exact,
        fast=fast,
        all=all_,
        objective=objective,
        time_limit=time_limit,
        memory_limit=memory_limit,
        workers=workers,
        seed=seed,
        settings=settings or (),
        plugins=plugin or (),
        certify=certify,
        output=output,
        gantt=gantt,
        json=json,
    )
    raise typer.Exit(run(request))


def check(
    instance: Instance,
    plan: Annotated[Path | None, typer.Argument(help="Plan file, or the JSON of a run")] = None,
    objective: Objective = None,
    solution: Annotated[Path | None, typer.Option(help="What another solver found for an exported file.")] = None,
    model: Annotated[str | None, typer.Option(help="Of --solution: the model that was exported.")] = None,
    part: Annotated[str | None, typer.Option(help="Of --solution: label of the part that was exported.")] = None,
    plugin: Plugins = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Write the plan as JSON.")] = None,
    gantt: Annotated[Path | None, typer.Option(help="Draw the plan (.svg, .png, .pdf).")] = None,
    json: Json = False,
) -> None:
    """Evaluate a plan: its objective and every rule it breaks."""
    from mapgap.cli import catalogue
    from mapgap.cli.export import source_of_plan

    load_plugins(plugin)
    source = source_of_plan(plan, solution, model, part)
    raise typer.Exit(catalogue.check(instance, source, gantt, objective, output, as_json=json))


def explain(
    instance: Instance,
    plan: Annotated[
        Path | None, typer.Option(help="Plan file, or the JSON of a run (default: that of --method).")
    ] = None,
    method: Annotated[
        str | None,
        typer.Option("--method", "-m", help="Default: a published method.", autocompletion=complete_methods),
    ] = None,
    objective: Objective = None,
    time_limit: Annotated[float, typer.Option(min=0.001, help="Seconds for each instance that is solved.")] = 10.0,
    workers: Annotated[int, typer.Option(min=1, max=4096, help="Threads a solver may use.")] = 1,
    seed: Annotated[int, typer.Option(min=0, max=2**31 - 1, help="The only source of randomness.")] = 0,
    relax: Annotated[bool, typer.Option("--relax/--no-relax", help="Also solve the relaxations.")] = True,
    plugin: Plugins = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Draw it (.svg, .png, .pdf).")] = None,
    json: Json = False,
) -> None:
    """Say why a plan is not better: what binds, what more hardware would bring, which decisions cost how much."""
    from mapgap.cli import explain as room
    from mapgap.core import Budget

    load_plugins(plugin)
    budget = Budget(time_limit, workers=workers, seed=seed)
    room.explain(instance, plan, method, objective, budget, relax=relax, picture=output, as_json=json)
