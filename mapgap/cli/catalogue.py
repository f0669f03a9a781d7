"""``mapgap list``, ``show``, ``check`` and ``generate``."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from mapgap.catalogue import registry
from mapgap.catalogue.document import read
from mapgap.catalogue.files import (
    diagnosed,
    library_files,
    load_instance,
    load_plan,
    retarget,
    save_expanded,
)
from mapgap.cli.export import SolutionFile, write_plan
from mapgap.cli.output import complain, facts, print_json, table
from mapgap.core import InputError, InstanceBase, Method, suggest
from mapgap.execution.run import verify
from mapgap.records.record import plain

KINDS = ("problems", "methods", "instances")


def problem_json(name: str) -> dict[str, Any]:
    problem = registry.problems()[name]
    try:
        families = sorted(registry.library(name).families)
    except (RuntimeError, ModuleNotFoundError):
        families = []
    text = {"name": problem.name, "title": problem.title, "paper": problem.paper, "sense": problem.sense}
    objectives = list(problem.objectives)
    return {**text, "objectives": objectives, "methods": len(registry.methods(name)), "families": families}


def method_json(method: Method) -> dict[str, Any]:
    return {
        "name": method.name,
        "problem": method.problem,
        "kind": method.kind,
        "reference": method.reference,
        "summary": method.summary,
        "options": plain(method.options),
    }


def instance_rows() -> Iterable[dict[str, Any]]:
    """Header of every library instance, without expanding it."""
    for name, path in library_files().items():
        data = read(path).data
        header = data if isinstance(data, dict) else {}
        tags = header.get("tags") or []
        yield {
            "name": name,
            "problem": path.parent.parent.name,
            "form": header.get("form"),
            "tags": tags,
            "path": str(path),
        }


def list_things(what: str, problem: str | None, tags: list[str], *, as_json: bool) -> None:
    """Print problems, methods and instances, filtered.

    Raises
    ------
    InputError
        Unknown kind or problem.
    """
    if what not in (*KINDS, "all"):
        raise InputError(f"list: expected {', '.join(KINDS)} or all; found {what!r}{suggest(what, KINDS)}")
    names = [registry.find_problem(problem).name] if problem else list(registry.problems())
    found: dict[str, list[dict[str, Any]]] = {}
    if what in ("problems", "all"):
        found["problems"] = [problem_json(name) for name in names]
    if what in ("methods", "all"):
        found["methods"] = [method_json(m) for name in names for m in registry.methods(name).values()]
    if what in ("instances", "all"):
        rows = (row for row in instance_rows() if row["problem"] in names)
        found["instances"] = [row for row in rows if set(tags) <= set(row["tags"])]
    if as_json:
        print_json(found)
        return
    columns = {
        "problems": ["name", "title", "paper", "methods", "families"],
        "methods": ["problem", "name", "kind", "summary", "reference"],
        "instances": ["name", "problem", "tags"],
    }
    for kind, entries in found.items():
        table(kind, columns[kind], [[entry[column] for column in columns[kind]] for entry in entries])


def show(name: str, *, as_json: bool) -> None:
    """Describe whatever carries the name.

    Raises
    ------
    InputError
        Nothing does.
    """
    if name in registry.problems():
        _show_problem(name, as_json)
        return
    problem, slash, short = name.partition("/")
    owners = [problem] if slash and problem in registry.problems() else list(registry.problems())
    wanted = short if slash else name
    methods = [registry.methods(owner)[wanted] for owner in owners if wanted in registry.methods(owner)]
    if methods and not Path(name).is_file():
        if as_json:
            print_json(method_json(methods[0]) if len(methods) == 1 else {"methods": [method_json(m) for m in methods]})
        else:
            for method in methods:
                facts(method_json(method))
        return
    known = [*registry.problems(), *(m for p in registry.problems() for m in registry.methods(p)), *library_files()]
    try:
        instance = load_instance(name)
    except InputError as error:
        if Path(name).exists() or name in library_files():
            raise
        text = f"show {name}: expected an instance, a method or a problem{suggest(name, known)}"
        raise InputError(text) from error
    _show_instance(instance, as_json)


def _show_problem(name: str, as_json: bool) -> None:
    module = importlib.import_module(f"mapgap.problems.{name}")
    if as_json:
        print_json({**problem_json(name), "description": module.__doc__})
        return
    facts(problem_json(name))
    print(f"\n{(module.__doc__ or '').strip()}\n")
    methods = registry.methods(name).values()
    table("methods", ["name", "kind", "summary"], [[m.name, m.kind, m.summary] for m in methods])


def _show_instance(instance: InstanceBase, as_json: bool) -> None:
    problem = registry.problems()[instance.problem]
    if as_json:
        print_json({**instance.to_json(), "instance_hash": instance.content_hash, "unit": problem.unit(instance)})
        return
    rows: dict[str, Any] = {
        "instance": f"{instance.name} ({instance.content_hash})",
        "objective in": problem.unit(instance),
    }
    for field, value in instance:
        if field in ("schema_version", "form", "name"):
            continue
        if isinstance(value, tuple) and field != "tags":
            names = [str(item.name) for item in value if hasattr(item, "name")]
            rows[field] = f"{len(value)}: {', '.join(names)}" if names else f"{len(value)} entries"
        else:
            rows[field] = value
    facts(rows)
    complain(diagnosed(instance), label="infeasible")


def check(
    name: str,
    source: Path | SolutionFile,
    gantt: Path | None,
    objective: str | None,
    output: Path | None,
    *,
    as_json: bool,
) -> int:
    """Evaluate the plan of a file or of a solution; 0 if it is feasible, 5 if not."""
    instance = load_instance(name)
    if objective is not None:
        instance = retarget(instance, objective)
    problem = registry.problems()[instance.problem]
    plan = source.plan(instance) if isinstance(source, SolutionFile) else load_plan(source, instance.problem)
    if output is not None:
        write_plan(plan, output)
    found = verify(problem, instance, plan)
    result = {
        "instance": instance.name,
        "instance_hash": instance.content_hash,
        "problem": problem.name,
        "feasible": found.feasible,
        "objective": found.objective,
        "unit": problem.unit(instance),
        "terms": plain(found.terms),
        "violations": [violation.to_json() for violation in found.violations],
    }
    if gantt is not None and found.objective is not None:
        from mapgap.reporting.gantt import plan_chart, save

        save(plan_chart(problem, instance, plan, instance.name), gantt)
    if as_json:
        print_json(result)
    else:
        terms = {key.replace("_", " "): value for key, value in found.terms.items()}
        value = None if found.objective is None else f"{found.objective:,} {result['unit']}"
        facts({"instance": instance.name, "feasible": found.feasible, "objective": value, **terms})
        complain((f"{v.rule}: {v.where}: {v.message} (by {v.amount})" for v in found.violations), label="violation")
    return 0 if found.feasible else 5


def generate(problem: str, family: str, seeds: Iterable[int], folder: Path, *, as_json: bool) -> None:
    """Write one expanded instance per seed.

    Raises
    ------
    InputError
        Unknown problem or family.
    """
    library = registry.library(registry.find_problem(problem).name)
    made = [(seed, library.generate(family, seed)) for seed in seeds]
    folder.mkdir(parents=True, exist_ok=True)
    paths = [save_expanded(each, folder / f"{problem}_{family}_{seed}.yaml") for seed, each in made]
    if as_json:
        print_json({"files": [str(path) for path in paths]})
    else:
        print("\n".join(map(str, paths)))
