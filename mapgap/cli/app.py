"""The commands of the command line: their names, arguments and options. What they do stands in the modules beside.

Those modules are imported inside the commands, and nowhere else in the house are imports hidden in functions: Typer
declares all commands to run one of them, and neither ``--help`` nor ``list`` should wait for solvers and Matplotlib.

Exit codes: 0 a verified plan or an answered question, 2 bad input, 3 proven infeasible, 4 nothing found within the
budget, 5 a plan failed verification, 130 interrupted.
"""

# No postponed annotations: Typer would evaluate the text of each of them several times.
import io
import os
import signal
import sys
import warnings
from pathlib import Path
from typing import Annotated, Any

import typer

from mapgap import __version__
from mapgap.cli.app_ledger import ledger as ledger_commands
from mapgap.cli.app_ledger import submit

app = typer.Typer(
    name="mapgap",
    help="How far from optimal are the published mappings of neural networks onto heterogeneous edge devices?",
    epilog="Exit codes: 0 ok, 2 bad input, 3 infeasible, 4 nothing found in time, 5 a plan failed verification, "
    "130 interrupted.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _offer(what: str, *context: typer.Context, text: str) -> list[str]:
    """Words for the shell from :mod:`mapgap.cli.completion`, imported when the shell asks."""
    from mapgap.cli import completion

    found: list[str] = getattr(completion, what)(*context, text)
    return found


def _instances(incomplete: str) -> list[str]:
    return _offer("instances", text=incomplete)


def _problems(incomplete: str) -> list[str]:
    return _offer("problems", text=incomplete)


def _methods(ctx: typer.Context, incomplete: str) -> list[str]:
    return _offer("methods", ctx, text=incomplete)


def _families(ctx: typer.Context, incomplete: str) -> list[str]:
    return _offer("families", ctx, text=incomplete)


def _things(incomplete: str) -> list[str]:
    return _offer("things", text=incomplete)


def _studies(incomplete: str) -> list[str]:
    return _offer("studies", text=incomplete)


Instance = Annotated[str, typer.Argument(help="Instance, path or name", autocompletion=_instances)]
Problem = Annotated[str, typer.Argument(help="Problem", autocompletion=_problems)]
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
    problem: Annotated[str | None, typer.Option(help="Only of this problem.", autocompletion=_problems)] = None,
    tag: Annotated[list[str] | None, typer.Option(help="Only instances that carry this tag (repeatable).")] = None,
    plugin: Plugins = None,
    json: Json = False,
) -> None:
    """List problems, methods and library instances."""
    from mapgap.cli import catalogue

    _load_plugins(plugin)
    catalogue.list_things(what, problem, tag or [], as_json=json)


@app.command()
def show(
    name: Annotated[
        str,
        typer.Argument(help="Instance (path or name), method, problem, or PROBLEM/METHOD", autocompletion=_things),
    ],
    plugin: Plugins = None,
    json: Json = False,
) -> None:
    """Describe an instance, a method or a problem."""
    from mapgap.cli import catalogue

    _load_plugins(plugin)
    catalogue.show(name, as_json=json)


@app.command()
def validate(
    files: Annotated[list[str], typer.Argument(help="Instance files or library names", autocompletion=_instances)],
    json: Json = False,
) -> None:
    """Check instance files; every error with file, line and column."""
    from mapgap.cli import catalogue

    raise typer.Exit(catalogue.validate(files, as_json=json))


@app.command()
def expand(instance: Instance, objective: Objective = None, output: Out = None, json: Json = False) -> None:
    """Write the expanded form: the integers that every method sees."""
    from mapgap.cli import catalogue

    catalogue.expand(instance, objective, output, as_json=json)


@app.command()
def solve(
    instance: Instance,
    method: Annotated[
        list[str] | None,
        typer.Option("--method", "-m", help="Method by name (repeatable).", autocompletion=_methods),
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
    dask: Annotated[
        str | None, typer.Option(help="Scheduler of the dask cluster that does the parts of the run.")
    ] = None,
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
        dask=dask,
        output=output,
        gantt=gantt,
        json=json,
    )
    raise typer.Exit(run(request))


@app.command()
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

    _load_plugins(plugin)
    source = source_of_plan(plan, solution, model, part)
    raise typer.Exit(catalogue.check(instance, source, gantt, objective, output, as_json=json))


@app.command()
def explain(
    instance: Instance,
    plan: Annotated[
        Path | None, typer.Option(help="Plan file, or the JSON of a run (default: that of --method).")
    ] = None,
    method: Annotated[
        str | None,
        typer.Option("--method", "-m", help="Default: a published method.", autocompletion=_methods),
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

    _load_plugins(plugin)
    budget = Budget(time_limit, workers=workers, seed=seed)
    room.explain(instance, plan, method, objective, budget, relax=relax, picture=output, as_json=json)


@app.command()
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

    _load_plugins(plugin)
    raise typer.Exit(write(instance, output, model, part, objective, as_json=json))


@app.command()
def generate(
    problem: Problem,
    family: Annotated[
        str, typer.Argument(help="Family of random instances (mapgap show PROBLEM)", autocompletion=_families)
    ],
    seed: Annotated[int, typer.Option(help="First seed.")] = 0,
    count: Annotated[int, typer.Option(min=1, help="How many, with seeds one apart.")] = 1,
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder.")] = Path(),
    json: Json = False,
) -> None:
    """Write random instances of a family."""
    from mapgap.cli import catalogue

    catalogue.generate(problem, family, range(seed, seed + count), output, as_json=json)


@app.command()
def schema(
    problem: Problem,
    form: Annotated[str, typer.Option(help="compact, expanded or plan")] = "expanded",
) -> None:
    """Print the JSON Schema of instance or plan files, for editors."""
    from mapgap.cli import catalogue

    catalogue.schema(problem, form)


@app.command("import")
def import_(
    files: Annotated[list[Path], typer.Argument(help="Model, profile or planner files of one format")],
    problem: Annotated[str, typer.Option(help="Problem.", autocompletion=_problems)] = "hybrid_pipeline",
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


@app.command("profile")
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
    from mapgap.cli import sweeps

    _load_plugins(plugin)
    code = sweeps.bench(
        spec,
        jobs=jobs,
        resume=resume,
        out=output,
        plugins=tuple(plugin or ()),
        dask=dask,
        update=update_ledger,
        ledger=ledger,
        as_json=json,
    )
    raise typer.Exit(code)


@app.command()
def certify(
    instance: Annotated[
        str, typer.Argument(help="Instance: path, name, or a glob of either", autocompletion=_instances)
    ],
    objective: Objective = None,
    time_limit: Annotated[float, typer.Option(min=0.001, help="Seconds per run.")] = 60.0,
    workers: Annotated[int, typer.Option(min=1, max=4096, help="Threads a solver may use.")] = 1,
    seed: Annotated[int, typer.Option(min=0, max=2**31 - 1, help="The only source of randomness.")] = 0,
    update_ledger: Annotated[bool, typer.Option("--update-ledger", help="Enter the result.")] = False,
    ledger: Annotated[Path | None, typer.Option(help="Ledger file (default: the library's).")] = None,
    json: Json = False,
) -> None:
    """Raise the certificate of an optimum: two engines that agree, and a case split."""
    from mapgap.cli import evidence
    from mapgap.core import Budget

    name = instance if objective is None else f"{instance}@{objective}"
    budget = Budget(time_limit, workers=workers, seed=seed)
    raise typer.Exit(evidence.certify(name, budget, ledger=ledger, update=update_ledger, as_json=json))


@app.command()
def prove(
    instances: Annotated[
        list[str], typer.Argument(help="Instances: paths, names, or globs of either", autocompletion=_instances)
    ],
    objective: Objective = None,
    bound: Annotated[int | None, typer.Option(help="What to prove (default: what the ledger says).")] = None,
    share: Annotated[float, typer.Option(min=0.01, max=1.0, help="Of the bound of an entry that is open.")] = 1.0,
    time_limit: Annotated[float, typer.Option(min=0.001, help="Seconds per instance.")] = 60.0,
    update_ledger: Annotated[bool, typer.Option("--update-ledger", help="Enter what was proven.")] = False,
    ledger: Annotated[Path | None, typer.Option(help="Ledger file (default: the library's).")] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="File or folder (default: beside the ledger's plans).")
    ] = None,
    json: Json = False,
) -> None:
    """Write certificates: files from which a small checker sees, without a solver, that no plan beats a bound."""
    from mapgap.cli import certificates
    from mapgap.core import Budget

    names = instances if objective is None else [f"{name}@{objective}" for name in instances]
    request = {"bound": bound, "share": share, "output": output, "ledger": ledger, "update": update_ledger}
    raise typer.Exit(certificates.prove(names, Budget(time_limit), as_json=json, **request))


@app.command()
def verify(
    certificates: Annotated[
        list[str] | None,
        typer.Argument(help="Files, names of instances, or globs of either (default: all of the library)"),
    ] = None,
    ledger: Annotated[Path | None, typer.Option(help="Ledger file (default: the library's).")] = None,
    expand: Annotated[
        bool, typer.Option("--expand", help="Compare with the library's instances, expanded anew.")
    ] = False,
    json: Json = False,
) -> None:
    """Check certificates, without a solver: proof, instance, bound, and that the ledger's plan attains it."""
    from mapgap.cli import certificates as room

    raise typer.Exit(room.verify(certificates or [], ledger=ledger, expand=expand, as_json=json))


@app.command()
def attack(
    problem: Problem,
    method: Annotated[
        str, typer.Option("--method", "-m", help="Published method or baseline.", autocompletion=_methods)
    ],
    budget: Annotated[float, typer.Option(min=1.0, help="Seconds of the whole search.")] = 300.0,
    family: Annotated[str, typer.Option(help="Random family the instances come from.")] = "small",
    objective: Objective = None,
    seed: Annotated[int, typer.Option(help="First seed of the family, and of the search.")] = 0,
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder of the instance.")] = Path(),
    json: Json = False,
) -> None:
    """Search for the instance on which a method is worst against the certified optimum, and shrink it."""
    from mapgap.cli import evidence
    from mapgap.cli.output import to_folder

    to_folder(output)
    request = {"time_s": budget, "family": family, "seed": seed, "objective": objective, "folder": output}
    evidence.attack(problem, method, as_json=json, **request)


@app.command()
def report(
    runs: Annotated[Path, typer.Argument(help="Run file, or a folder of them")],
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder.")] = Path("report"),
    ledger: Annotated[Path | None, typer.Option(help="Ledger file (default: the library's).")] = None,
    no_ledger: Annotated[bool, typer.Option("--no-ledger", help="Only what these runs show.")] = False,
    figures: Annotated[Path | None, typer.Option(help="Folder for every figure and table as a file.")] = None,
    json: Json = False,
) -> None:
    """Make tables, figures and one HTML page from runs, against the best-known results."""
    from mapgap.cli import reports
    from mapgap.cli.output import to_folder
    from mapgap.evidence.ledger import Ledger

    to_folder(output)
    if figures is not None:
        to_folder(figures, "--figures")
    book = None if no_ledger else Ledger.load(ledger)
    raise typer.Exit(reports.report(runs, output, book, figures, as_json=json))


@app.command()
def study(
    name: Annotated[str, typer.Argument(help="Name of a committed study, or all", autocompletion=_studies)],
    quick: Annotated[bool, typer.Option("--quick", help="The small version.")] = False,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Folder (default: reports/NAME).")] = None,
    resume: Annotated[bool, typer.Option("--resume/--fresh", help="Keep finished runs, or start over.")] = True,
    report_only: Annotated[bool, typer.Option("--report-only", help="Run nothing.")] = False,
    figures: Annotated[Path | None, typer.Option(help="Folder for every figure and table as a file.")] = None,
) -> None:
    """Run or resume a committed study, write its page and pack its runs."""
    from mapgap.cli import reports
    from mapgap.cli.output import to_folder

    if output is not None:
        to_folder(output)
    if figures is not None:
        to_folder(figures, "--figures")
    reports.study(name, quick=quick, out=output, resume=resume, report_only=report_only, figures=figures)


@app.command()
def pack(
    folder: Annotated[Path, typer.Argument(help="A report, or a folder of reports.")] = Path("reports"),
    ledger: Annotated[Path | None, typer.Option(help="Ledger file (default: the library's).")] = None,
    json: Json = False,
) -> None:
    """Make the pages of reports anew from their runs, pack these, and keep nothing else that can be made anew."""
    from mapgap.cli import reports
    from mapgap.evidence.ledger import Ledger

    reports.pack(folder, Ledger.load(ledger), as_json=json)


@app.command()
def audit(
    checkout: Annotated[Path, typer.Argument(help="Folder with reports/, docs/, README.md.")] = Path(),
    fill: Annotated[bool, typer.Option("--fill", help="First write the figures of README and docs anew.")] = False,
    json: Json = False,
) -> None:
    """Look at everything again that a checkout claims: ledger, committed runs, figures in README and docs."""
    from mapgap.cli import audit as room

    raise typer.Exit(room.audit(checkout, fill=fill, as_json=json))


app.add_typer(ledger_commands, name="ledger")
app.command()(submit)


def _load_plugins(plugins: list[Path] | None) -> None:
    if plugins:
        from mapgap.cli.plugins import load

        load(plugins)


def _interrupted(*_: Any) -> None:
    """Ctrl-C and SIGTERM between runs, and in sweeps, whose runs wait in threads."""
    from mapgap.execution.run import interrupt_all

    interrupt_all()
    raise SystemExit(130)


def _warned(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
    """A warning on one line of standard error; the line of source that gave it says nothing to a user."""
    from mapgap.cli.output import complain

    complain([" ".join(str(message).split())], label="warning")


def main() -> None:
    """Entry point: every error a user can cause becomes one clear message and an exit code."""
    signal.signal(signal.SIGINT, _interrupted)
    signal.signal(signal.SIGTERM, _interrupted)
    _prepare_streams()
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _warned
            app()
    except BrokenPipeError:  # the reader of our output has seen enough
        sys.stderr.close()
        sys.exit(0)
    except Exception as error:
        sys.exit(_failed(error))


def _prepare_streams() -> None:
    """Let no file that is opened later take the place of a standard stream that is closed."""
    missing = sys.stdout is None
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # what a locale cannot show is written as an escape
            stream.reconfigure(errors="backslashreplace")
    if missing:
        if sys.stderr is not None:
            sys.stderr.write("error: standard output: expected to be open, found closed\n")
        sys.exit(2)


def _failed(error: Exception) -> int:
    """Say what went wrong; the exit code.

    Raises
    ------
    Exception
        The error itself, if it is a mistake of this program.
    """
    from mapgap.cli.output import complain
    from mapgap.core import InputError, MapgapError, short

    if isinstance(error, MapgapError):
        complain(error.problems if isinstance(error, InputError) else [str(error)])
        return error.exit_code
    if isinstance(error, MemoryError):
        complain(["out of memory"])
    elif isinstance(error, OSError) and error.errno is not None:  # a full disk, a limit of the system, …
        place = "" if error.filename is None else f"{short(str(error.filename))}: "
        complain([f"{place}{error.strerror or error}"])
    else:
        raise error
    return 2


if __name__ == "__main__":
    main()
