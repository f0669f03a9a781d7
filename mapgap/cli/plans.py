"""``mapgap check``, ``explain`` and ``export``: what a plan is worth and why, and the way to other solvers and back."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import mapgap
from mapgap.catalogue import registry
from mapgap.catalogue.files import load_plan, save_plan
from mapgap.cli import completion, flags
from mapgap.cli.flags import argument, option
from mapgap.cli.output import complain, facts, percent, print_json, say, table, to_file
from mapgap.cli.progress import Spinner
from mapgap.cli.words import between, worded
from mapgap.core import Budget, InputError, InstanceBase, PlanBase, PlanTable
from mapgap.evidence import explain as explaining
from mapgap.interface.exchange import Written, write
from mapgap.records.record import relative


def check_outputs(output: Path | None, gantt: Path | None) -> None:
    """Before any work: can a plan and its chart be written there?

    Raises
    ------
    InputError
    """
    for flag, path in (("-o", output), ("--gantt", gantt)):
        if path is not None:
            to_file(path, flag)


def write_plan(
    instance: InstanceBase, plan: PlanBase, title: str | None, output: Path | None, gantt: Path | None
) -> None:
    """Write a plan as JSON and as a chart, if it has a title to stand over it.

    Raises
    ------
    InputError
        A file cannot be written, or there is no chart of such a plan.
    """
    if output is not None:
        save_plan(plan, output)
    if gantt is not None and title is not None:
        from mapgap.reporting.gantt import plan_chart, save  # Matplotlib takes a second

        save(plan_chart(registry.problems()[instance.problem], instance, plan, title), gantt)


def check(
    instance: flags.Instance,
    plan: Annotated[Path | None, argument("Plan file, or the JSON of a run")] = None,
    objective: flags.Objective = None,
    solution: Annotated[Path | None, option("What another solver found for an exported file.")] = None,
    model: Annotated[str | None, option("Of --solution: the model that was exported.")] = None,
    part: Annotated[str | None, option("Of --solution: label of the part that was exported.")] = None,
    plugin: flags.Plugins = None,
    output: Annotated[Path | None, flags.output("Write the plan as JSON.")] = None,
    gantt: Annotated[Path | None, option("Draw the plan (.svg, .png, .pdf).")] = None,
    as_json: flags.Json = False,
) -> int:
    """Evaluate the plan of a file or of a solution; 0 if it is feasible, 5 if not.

    Raises
    ------
    InputError
        Neither or both of PLAN and ``--solution``, or a flag that belongs to ``--solution`` without it.
    """
    flags.load_plugins(plugin)
    if (plan is None) == (solution is None):
        raise InputError(f"PLAN, --solution: expected one of them, found {'none' if plan is None else 'both'}")
    if solution is None and (model is not None or part is not None):
        raise InputError("--model, --part: expected --solution with them, found a plan file")
    check_outputs(output, gantt)
    loaded = mapgap.load(instance, objective)
    given = plan or mapgap.read_solution(loaded, str(solution), model, part)
    found = mapgap.check(loaded, given)
    write_plan(loaded, found.plan, None if found.objective is None else loaded.name, output, gantt)
    if as_json:
        print_json(found.to_json())
    else:
        terms = {key.replace("_", " "): value for key, value in found.terms.items()}
        value = None if found.objective is None else f"{found.objective:,} {found.unit}"
        facts({"instance": loaded.name, "feasible": found.feasible, "objective": value, **terms})
        complain((f"{v.rule}: {v.where}: {v.message} (by {v.amount})" for v in found.violations), label="violation")
    return 0 if found.feasible else 5


def explain(
    instance: flags.Instance,
    plan: Annotated[Path | None, option("Plan file, or the JSON of a run (default: that of --method).")] = None,
    method: Annotated[
        str | None, option("Default: a published method.", "--method", "-m", offers=completion.methods)
    ] = None,
    objective: flags.Objective = None,
    time_limit: Annotated[float, flags.seconds("Seconds for each instance that is solved.")] = 10.0,
    workers: flags.Workers = 1,
    seed: flags.Seed = 0,
    relax: Annotated[bool, option("Also solve the relaxations.", "--relax/--no-relax")] = True,
    plugin: flags.Plugins = None,
    output: Annotated[Path | None, flags.output("Draw it (.svg, .png, .pdf).")] = None,
    as_json: flags.Json = False,
) -> None:
    """Explain a plan in text, as JSON, and as a picture.

    Raises
    ------
    InputError
    """
    flags.load_plugins(plugin)
    if output is not None:
        from mapgap.reporting.gantt import check_suffix  # Matplotlib takes a second

        check_suffix(output, "-o")
        to_file(output, "-o")
    loaded = mapgap.load(instance, objective)
    with Spinner({explaining.Looking: lambda event: event.what}) as display:
        found = explaining.explain(
            loaded,
            plan=None if plan is None else load_plan(plan, loaded.problem),
            source="" if plan is None else str(plan),
            method=method,
            budget=Budget(time_limit, workers=workers, seed=seed),
            relax=relax,
            tell=display,
        )
    if output is not None:
        from mapgap.reporting.explained import picture
        from mapgap.reporting.gantt import save

        save(picture(found), output)
    if as_json:
        print_json(_json(found))
        return
    _show(found)
    if output is not None:
        say(f"picture written to {output}")


def _show(found: explaining.Explanation) -> None:
    unit = found.problem.unit(found.instance)
    loss = relative(found.value, found.optimum, found.sign)
    best = worded(found.optimum, unit)
    proven = found.bound is not None and found.optimum == found.bound
    facts(
        {
            "instance": f"{found.instance.name} ({found.instance.content_hash})",
            "problem": found.problem.name,
            "plan of": found.method,
            "assumed": "; ".join(found.instance.assumed) or None,
            "objective": worded(found.value, unit),
            "within quartiles": between(found.interval, unit),
            "optimum" if proven else "best known": best if loss is None else f"{best}: the plan is {percent(loss)} off",
            "bound": None if proven else worded(found.bound, unit),
        }
    )
    say(f"\n{found.binding.sentence}\n")
    _table("what the plan's value is made of", found.binding.table)
    if found.decisions is None:
        say("No better plan is known, so no decision is known to cost anything.\n")
    else:
        _table("from this plan to the best one, one decision after the other", found.decisions)
    if found.relaxations is not None:
        _table("what a relaxation would bring", found.relaxations)


def _table(title: str, told: PlanTable) -> None:
    table(title, told.columns, told.rows, right=told.right)


def _json(found: explaining.Explanation) -> dict[str, Any]:
    told = found.binding.table
    return {
        "instance": found.instance.name,
        "instance_hash": found.instance.content_hash,
        "problem": found.problem.name,
        "method": found.method,
        "objective": found.value,
        "interval": found.interval,
        "best": found.optimum,
        "bound": found.bound,
        "assumed": found.instance.assumed,
        "binding": {"sentence": found.binding.sentence, "columns": told.columns, "rows": told.rows},
        "steps": [dict(vars(step)) for step in found.steps],
        "relaxations": [dict(vars(relaxed)) for relaxed in found.relaxed],
        "plan": found.plan.to_json(),
        "best_plan": found.best.to_json(),
    }


def export(
    instance: flags.Instance,
    output: Annotated[Path, flags.output("File: .lp, .mps, or .pbtxt for CP-SAT.")],
    model: Annotated[str | None, option("mip, cpsat, … (default: the one that writes the suffix).")] = None,
    part: Annotated[str | None, option("Label of one of several programs, or a pattern ('*').")] = None,
    objective: flags.Objective = None,
    plugin: flags.Plugins = None,
    as_json: flags.Json = False,
) -> None:
    """Write the integer programs of an instance, a line for each file.

    Raises
    ------
    InputError
    """
    flags.load_plugins(plugin)
    to_file(output)
    loaded = mapgap.load(instance, objective)
    written = write(loaded, output, model, part)
    if as_json:
        files = [_file(each) for each in written]
        print_json({"instance": loaded.name, "instance_hash": loaded.content_hash, "files": files})
        return
    for each in written:
        label = f" ({each.part})" if each.part else ""
        size = f"{each.variables:,} variables, {each.rows:,} constraints"
        say(f"{each.path}{label}: {size}; objective = {_objective(each)}")


def _file(written: Written) -> dict[str, Any]:
    told = vars(written) | {"path": str(written.path)}
    return {"constraints" if name == "rows" else name: value for name, value in told.items()}


def _objective(written: Written) -> str:
    """The instance's objective in terms of the file's."""
    constant = f" {'+' if written.constant > 0 else '-'} {abs(written.constant):,}" if written.constant else ""
    return f"{'minus ' if written.sign < 0 else ''}the file's{constant}"
