"""The command line. Heavy imports (problems, methods, matplotlib) happen inside the commands, so ``--help`` is quick.

Exit codes: 0 a verified plan or an answered question, 2 bad input, 3 proven infeasible, 4 nothing found within the
budget, 5 a plan failed verification, 130 interrupted.
"""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from mapgap import __version__
from mapgap.core import InputError, MapgapError

app = typer.Typer(
    name="mapgap",
    help="How far from optimal are the published mappings of neural networks onto heterogeneous edge devices?",
    epilog="Exit codes: 0 ok, 2 bad input, 3 infeasible, 4 nothing found in time, 5 a plan failed verification, "
    "130 interrupted.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Json = Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")]
Plugins = Annotated[list[Path] | None, typer.Option("--plugin", help="Python file that exports METHODS.")]
Objective = Annotated[str | None, typer.Option(help="For problems that offer a choice.")]
Out = Annotated[Path | None, typer.Option("-o", "--output", help="Where to write.")]


def _version(value: bool) -> None:
    if value:
        print(f"mapgap {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    pass


@app.command("list")
def list_(
    what: Annotated[str, typer.Argument(help="problems, methods, instances, or all of them")] = "all",
    problem: Annotated[str | None, typer.Option(help="Only of this problem.")] = None,
    tag: Annotated[list[str] | None, typer.Option(help="Only instances that carry this tag (repeatable).")] = None,
    plugin: Plugins = None,
    json: Json = False,
) -> None:
    """List problems, methods and library instances."""
    from mapgap.cli import catalogue as _cli_catalogue

    _load_plugins(plugin)
    _cli_catalogue.list_things(what, problem, tag or [], as_json=json)


@app.command()
def show(
    name: Annotated[str, typer.Argument(help="Instance (path or name), method, problem, or PROBLEM/METHOD")],
    plugin: Plugins = None,
    json: Json = False,
) -> None:
    """Describe an instance, a method or a problem."""
    from mapgap.cli import catalogue as _cli_catalogue

    _load_plugins(plugin)
    _cli_catalogue.show(name, as_json=json)


@app.command()
def validate(
    files: Annotated[list[str], typer.Argument(help="Instance files or library names")],
    json: Json = False,
) -> None:
    """Check instance files; every error with file, line and column."""
    from mapgap.catalogue.files import check_file
    from mapgap.cli.output import complain, print_json

    report: list[dict[str, Any]] = []
    for name in files:
        try:
            instance = check_file(name)
        except InputError as error:
            report.append({"file": name, "ok": False, "problems": error.problems})
        else:
            report.append({"file": name, "ok": True, "problems": [], "instance_hash": instance.content_hash})
    if json:
        print_json({"files": report})
    else:
        for entry in report:
            if entry["ok"]:
                print(f"{entry['file']}: ok ({entry['instance_hash']})")
            complain(entry["problems"])
    if not all(entry["ok"] for entry in report):
        raise typer.Exit(2)


@app.command()
def expand(
    instance: Annotated[str, typer.Argument(help="Instance, path or name")],
    objective: Objective = None,
    output: Out = None,
    json: Json = False,
) -> None:
    """Write the expanded form: the integers that every method sees."""
    from mapgap.catalogue.files import dump, load_instance, retarget, save_expanded
    from mapgap.cli.output import to_file

    loaded = load_instance(instance)
    if objective is not None:
        loaded = retarget(loaded, objective)
    if output is not None:
        to_file(output)
        save_expanded(loaded, output)
    else:
        print(dump(loaded.to_json(), ".json" if json else ".yaml"), end="")


@app.command()
def solve(
    instance: Annotated[str, typer.Argument(help="Instance, path or name")],
    method: Annotated[list[str] | None, typer.Option("--method", "-m", help="Method by name (repeatable).")] = None,
    exact: Annotated[bool, typer.Option("--exact", help="The strongest exact method (the default).")] = False,
    all_: Annotated[bool, typer.Option("--all", help="Every method of the problem, one after the other.")] = False,
    objective: Objective = None,
    time_limit: Annotated[float, typer.Option(min=0.001, help="Seconds per method.")] = 60.0,
    memory_limit: Annotated[int | None, typer.Option(min=1, help="MB of resident memory, enforced.")] = None,
    workers: Annotated[int, typer.Option(min=1, help="Threads a solver may use.")] = 1,
    seed: Annotated[int, typer.Option(help="The only source of randomness.")] = 0,
    settings: Annotated[list[str] | None, typer.Option("--set", help="Method option as name=value.")] = None,
    plugin: Plugins = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Write the best plan as JSON.")] = None,
    gantt: Annotated[Path | None, typer.Option(help="Draw the best plan (.svg, .png, .pdf).")] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object per method on standard output.")] = False,
) -> None:
    """Solve an instance; every plan is verified by the evaluator. Ctrl-C keeps and prints the incumbent."""
    from mapgap.cli.solve import Request
    from mapgap.cli.solve import solve as run

    _load_plugins(plugin)
    request = Request(
        instance=instance,
        methods=method or (),
        exact=exact,
        all=all_,
        objective=objective,
        time_limit=time_limit,
        memory_limit=memory_limit,
        workers=workers,
        seed=seed,
        settings=settings or (),
        plugins=plugin or (),
        output=output,
        gantt=gantt,
        json=json,
    )
    raise typer.Exit(run(request))


@app.command()
def check(
    instance: Annotated[str, typer.Argument(help="Instance, path or name")],
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
    from mapgap.cli import catalogue as _cli_catalogue
    from mapgap.cli.export import source_of_plan
    from mapgap.cli.output import to_file

    _load_plugins(plugin)
    for flag, path in (("-o", output), ("--gantt", gantt)):
        if path is not None:
            to_file(path, flag)
    source = source_of_plan(plan, solution, model, part)
    raise typer.Exit(_cli_catalogue.check(instance, source, gantt, objective, output, as_json=json))


@app.command()
def export(
    instance: Annotated[str, typer.Argument(help="Instance, path or name")],
    output: Annotated[Path, typer.Option("-o", "--output", help="File: .lp, .mps, or .pbtxt for CP-SAT.")],
    model: Annotated[str | None, typer.Option(help="mip, cpsat, … (default: the one that writes the suffix).")] = None,
    part: Annotated[str | None, typer.Option(help="Label of one of several programs, or a pattern ('*').")] = None,
    objective: Objective = None,
    plugin: Plugins = None,
    json: Json = False,
) -> None:
    """Write the integer program of an instance for another solver; check --solution reads its answer."""
    from mapgap.cli.export import export as write

    _load_plugins(plugin)
    raise typer.Exit(write(instance, output, model, part, objective, as_json=json))


@app.command()
def generate(
    problem: Annotated[str, typer.Argument(help="Problem")],
    family: Annotated[str, typer.Argument(help="Family of random instances (mapgap show PROBLEM)")],
    seed: Annotated[int, typer.Option(help="First seed.")] = 0,
    count: Annotated[int, typer.Option(min=1, help="How many, with seeds one apart.")] = 1,
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder.")] = Path(),
    json: Json = False,
) -> None:
    """Write random instances of a family."""
    from mapgap.cli import catalogue as _cli_catalogue
    from mapgap.cli.output import to_folder

    to_folder(output)
    _cli_catalogue.generate(problem, family, range(seed, seed + count), output, as_json=json)


@app.command()
def schema(
    problem: Annotated[str, typer.Argument(help="Problem")],
    form: Annotated[str, typer.Option(help="compact, expanded or plan")] = "expanded",
) -> None:
    """Print the JSON Schema of instance or plan files, for editors."""
    from mapgap.catalogue.files import json_schema
    from mapgap.cli.output import print_json

    if form not in ("compact", "expanded", "plan"):
        raise InputError(f"--form: expected compact, expanded or plan; found {form!r}")
    print_json(json_schema(problem, form))  # type: ignore[arg-type]


@app.command()
def bench(
    spec: Annotated[Path, typer.Argument(help="Sweep file")],
    jobs: Annotated[int, typer.Option(min=1, help="Runs at a time.")] = 1,
    resume: Annotated[bool, typer.Option("--resume/--fresh", help="Keep finished runs, or start over.")] = True,
    dask: Annotated[str | None, typer.Option(help="Scheduler of the dask cluster that does the runs.")] = None,
    update_ledger: Annotated[bool, typer.Option("--update-ledger", help="Enter the runs into the ledger.")] = False,
    ledger: Annotated[Path | None, typer.Option(help="Ledger file (default: the library's).")] = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Run file (default: beside the spec).")] = None,
    plugin: Plugins = None,
    json: Json = False,
) -> None:
    """Run a sweep: any methods on any instances under one budget; one JSON line per run, resumable."""
    from mapgap.execution.sweep import main_bench

    _load_plugins(plugin)
    path = main_bench(spec, jobs=jobs, resume=resume, out=output, plugins=tuple(plugin or ()), dask=dask)
    changes = None
    if update_ledger:
        from mapgap.evidence.ledger import update_ledger as enter
        from mapgap.records.files import read_runs

        changes = enter(read_runs(path), ledger)
    _say(path, json, changes)


@app.command()
def certify(
    instance: Annotated[str, typer.Argument(help="Instance: path, name, or a glob of either")],
    objective: Objective = None,
    time_limit: Annotated[float, typer.Option(min=0.001, help="Seconds per run.")] = 60.0,
    workers: Annotated[int, typer.Option(min=1, help="Threads a solver may use.")] = 1,
    seed: Annotated[int, typer.Option(help="The only source of randomness.")] = 0,
    update_ledger: Annotated[bool, typer.Option("--update-ledger", help="Enter the result.")] = False,
    ledger: Annotated[Path | None, typer.Option(help="Ledger file (default: the library's).")] = None,
    json: Json = False,
) -> None:
    """Raise the certificate of an optimum: two engines that agree, and a case split."""
    from mapgap.cli.output import certified
    from mapgap.evidence.certify import main_certify

    name = instance if objective is None else f"{instance}@{objective}"
    found = main_certify(name, time_s=time_limit, workers=workers, seed=seed, ledger=ledger, update=update_ledger)
    certified([each.to_json() for each in found], json)
    if any(each.contradiction for each in found):
        raise typer.Exit(5)
    raise typer.Exit(0 if all(each.grade is not None for each in found) else 4)


@app.command()
def attack(
    problem: Annotated[str, typer.Argument(help="Problem")],
    method: Annotated[str, typer.Option("--method", "-m", help="Published method or baseline.")],
    budget: Annotated[float, typer.Option(min=1.0, help="Seconds of the whole search.")] = 300.0,
    family: Annotated[str, typer.Option(help="Random family the instances come from.")] = "small",
    objective: Objective = None,
    seed: Annotated[int, typer.Option(help="First seed of the family, and of the search.")] = 0,
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder of the instance.")] = Path(),
    json: Json = False,
) -> None:
    """Search for the instance on which a method is worst against the certified optimum, and shrink it."""
    from mapgap.cli.output import attacked, to_folder
    from mapgap.evidence.attack import main_attack

    to_folder(output)
    search, path = main_attack(
        problem, method, time_s=budget, family=family, seed=seed, objective=objective, folder=output
    )
    attacked(search, path, json)


@app.command()
def report(
    runs: Annotated[Path, typer.Argument(help="Run file, or a folder of them")],
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder.")] = Path("report"),
    ledger: Annotated[Path | None, typer.Option(help="Ledger file (default: the library's).")] = None,
    no_ledger: Annotated[bool, typer.Option("--no-ledger", help="Only what these runs show.")] = False,
    json: Json = False,
) -> None:
    """Make tables, figures and one HTML page from runs, against the best-known results."""
    from mapgap.cli.output import to_folder
    from mapgap.evidence.ledger import Ledger
    from mapgap.reporting.report import main_report

    to_folder(output)
    _say(main_report(runs, output, None if no_ledger else Ledger.load(ledger)), json)


@app.command()
def study(
    name: Annotated[str, typer.Argument(help="Name of a committed study, or all")],
    quick: Annotated[bool, typer.Option("--quick", help="The small version.")] = False,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Folder (default: reports/NAME).")] = None,
    resume: Annotated[bool, typer.Option("--resume/--fresh", help="Keep finished runs, or start over.")] = True,
    report_only: Annotated[bool, typer.Option("--report-only", help="Run nothing.")] = False,
) -> None:
    """Run or resume a committed study and write its page."""
    from mapgap.cli.output import to_folder
    from mapgap.reporting.study import main_study

    if output is not None:
        to_folder(output)
    main_study(name, quick=quick, out=output, resume=resume, report_only=report_only)


def _say(result: Any, as_json: bool, ledger: list[str] | None = None) -> None:
    """The path of what was written, and what has changed in the ledger."""
    from mapgap.cli.output import print_json

    if as_json:
        print_json({"output": str(result), **({} if ledger is None else {"ledger": ledger})})
    else:
        print(result)
        print("\n".join(ledger or ()))


def _load_plugins(plugins: list[Path] | None) -> None:
    from mapgap.catalogue import registry

    for path in plugins or ():
        loaded = registry.load_plugin(path)
        try:
            for problem in {method.problem for method in loaded}:
                registry.methods(problem)
        except RuntimeError as error:  # a name that is taken
            raise InputError(f"--plugin {path}: {error}") from error


def _interrupted(*_: Any) -> None:
    """Ctrl-C and SIGTERM between runs, and in sweeps, whose runs wait in threads."""
    from mapgap.execution.limits import INTERRUPT

    INTERRUPT.set()
    raise SystemExit(130)


def main() -> None:
    """Entry point: every error a user can cause becomes one clear message and an exit code."""
    signal.signal(signal.SIGINT, _interrupted)
    signal.signal(signal.SIGTERM, _interrupted)
    try:
        app()
    except MapgapError as error:
        from mapgap.cli.output import complain

        complain(error.problems if isinstance(error, InputError) else [str(error)])
        sys.exit(error.exit_code)
    except BrokenPipeError:  # the reader of our output has seen enough
        sys.stderr.close()
        sys.exit(0)


if __name__ == "__main__":
    main()
