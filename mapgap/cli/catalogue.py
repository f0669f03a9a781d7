"""What runs nothing: ``mapgap list``, ``show``, ``validate``, ``expand``, ``generate`` and ``schema``."""

from __future__ import annotations

import importlib
import warnings
from pathlib import Path
from typing import Annotated, Any

import mapgap
from mapgap.catalogue import announced, registry
from mapgap.catalogue.files import (
    Form,
    Header,
    check_file,
    diagnosed,
    dump,
    headers,
    json_schema,
    library_files,
    save_expanded,
)
from mapgap.catalogue.sizes import known_sizes, size_of
from mapgap.cli import completion, flags
from mapgap.cli.flags import argument, option
from mapgap.cli.output import complain, facts, print_json, say, table, to_file, to_folder
from mapgap.cli.words import known_of, worded
from mapgap.core import InputError, InstanceBase, Method, plainly, suggest
from mapgap.evidence.ledger import Known, glance
from mapgap.records.record import plain

SHORT = 10
"""Characters of a unit that a list has room for; ``show`` gives it whole."""
FORMS: dict[str, Form] = {"compact": "compact", "expanded": "expanded", "plan": "plan"}
COLUMNS = {
    "problems": ["name", "title", "paper", "methods", "families"],
    "methods": ["problem", "name", "kind", "summary", "reference"],
    "instances": ["name", "size", "best known", "status", "tags"],
}


def problem_json(name: str) -> dict[str, Any]:
    problem = registry.problems()[name]
    row = problem_row(name)
    text = {key: row.pop(key) for key in ("name", "title", "paper")}
    return {**text, "sense": problem.sense, "objectives": list(problem.objectives), **row}


def problem_row(name: str) -> dict[str, Any]:
    """What a line of the list shows; nothing of the problem but its declaration is imported."""
    problem = registry.problems()[name]
    try:
        families = sorted(registry.library(name).families)
    except (RuntimeError, ModuleNotFoundError):
        families = []
    text = {"name": problem.name, "title": problem.title, "paper": problem.paper}
    return {**text, "methods": len(registry.methods(name)), "families": families}


def method_json(method: Method) -> dict[str, Any]:
    names = ("name", "problem", "kind", "reference", "summary")
    told = {name: getattr(method, name) for name in names} | {"options": plain(method.options)}
    told |= {"members": list(method.members)} if method.members else {}
    return told | ({"params": plain(method.defaults)} if method.params is not None else {})


def list_(
    what: Annotated[str, argument("problems, methods, instances, or all of them")] = "all",
    problem: Annotated[str | None, option("Only of this problem.", offers=completion.problems)] = None,
    tag: Annotated[list[str] | None, option("Only instances that carry this tag (repeatable).")] = None,
    plugin: flags.Plugins = None,
    as_json: flags.Json = False,
) -> None:
    """Print problems, methods and instances, filtered.

    Raises
    ------
    InputError
        Unknown kind or problem; for people, also tags that no instance carries (machines get an empty list).
    """
    flags.load_plugins(plugin)
    if what not in (*COLUMNS, "all"):
        raise InputError(f"list: expected {', '.join(COLUMNS)} or all; found {what!r}{suggest(what, COLUMNS)}")
    names = [registry.find_problem(problem).name] if problem else list(registry.problems())
    found: dict[str, list[dict[str, Any]]] = {}
    if what in ("problems", "all"):
        found["problems"] = [problem_json(name) if as_json else problem_row(name) for name in names]
    if what in ("methods", "all"):
        found["methods"] = [method_json(m) for name in names for m in registry.methods(name).values()]
    if what in ("instances", "all"):
        found["instances"] = _instances(names, tag or [], strict=not as_json)
    if as_json:
        print_json(found)
        return
    for kind, entries in found.items():
        parts = {kind: entries}
        if kind == "instances":  # a table for each problem, so that lines stay short
            parts = {f"instances of {name}": [e for e in entries if e["problem"] == name] for name in names}
        for title, part in parts.items():
            rows = [[entry[column.replace(" ", "_")] for column in COLUMNS[kind]] for entry in part]
            if rows or kind != "instances":
                table(title, COLUMNS[kind], rows, right=["best known"])


def _instances(problems: list[str], tags: list[str], *, strict: bool) -> list[dict[str, Any]]:
    """The library's instances that carry all tags, in the order of their names within each problem."""
    known = [header for problem in problems for header in headers(problem)]
    chosen = [header for header in known if set(tags) <= set(header.tags)]
    if tags and not chosen and strict:
        carried = {tag for header in known for tag in header.tags}
        hints = "".join(suggest(tag, carried) for tag in tags if tag not in carried)
        raise InputError(f"--tag: expected tags that some instance carries, found {', '.join(tags)}{hints}")
    sizes, ledger = known_sizes(), glance()
    return [_row(each, sizes.get(each.name), ledger.get(each.name)) for each in chosen]


def _row(header: Header, size: str | None, known: Known | None) -> dict[str, Any]:
    """One instance; what is best known of it is that of its own objective."""
    row = {"name": header.name, "problem": header.problem, "form": header.form, "tags": list(header.tags)}
    best = None if known is None or known.plan is None else plainly(known.plan, known.unit)
    if known is not None and known.plan is not None and best is None:
        best = f"{known.plan:,}" + (f" {known.unit}" if len(known.unit) <= SHORT else "")
    status = None if known is None else known.status.partition(" (")[0]
    return {**row, "path": str(header.path), "size": size, "best_known": best, "status": status}


def plugins(as_json: flags.Json = False) -> None:
    """List what other packages announce; their modules are tried anew."""
    announced.forget(verdicts=True)
    registry.forget()
    with warnings.catch_warnings(action="ignore", category=announced.BrokenEntryPoint):  # the table says it
        found = registry.packages()
    rows = []
    for entry, reason in found:
        loaded = entry.loaded if isinstance(entry.loaded, (list, tuple)) else [entry.loaded]
        names = [] if reason else [str(each.name) for each in loaded]
        told = {"package": entry.package, "version": entry.version, "entry_point": entry.text, "names": names}
        rows.append({**told, "loaded": not reason, "reason": reason})
    if as_json:
        print_json({"plugins": rows})
        return
    if not rows:
        say("no installed package announces problems, methods or studies")
        return
    columns = ["package", "version", "entry_point", "names", "state"]
    states = [{**row, "state": f"left out: {row['reason']}" if row["reason"] else "loaded"} for row in rows]
    table("plug-ins", columns, [[row[column] for column in columns] for row in states])


def show(
    name: Annotated[str, argument("Instance (path or name), method, problem, or PROBLEM/METHOD", completion.things)],
    plugin: flags.Plugins = None,
    as_json: flags.Json = False,
) -> None:
    """Describe whatever carries the name.

    Raises
    ------
    InputError
        Nothing does.
    """
    flags.load_plugins(plugin)
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
    if Path(name).exists() or "/" in name:
        from mapgap.cli import imports  # start-up: graphs need NetworkX

        if imports.show_if_foreign(Path(name), as_json=as_json):
            return
    known = [*registry.problems(), *(m for p in registry.problems() for m in registry.methods(p)), *library_files()]
    try:
        instance = mapgap.load(name)
    except InputError as error:
        if Path(name).exists() or name in library_files():
            raise
        text = f"show {name}: expected an instance, a method or a problem{suggest(name, known)}"
        raise InputError(text) from error
    _show_instance(instance, as_json)


def _show_problem(name: str, as_json: bool) -> None:
    module = importlib.import_module(f"mapgap.problems.{name}")
    told = problem_json(name)
    if as_json:
        print_json({**told, "description": module.__doc__})
        return
    facts(told)
    say(f"\n{(module.__doc__ or '').strip()}\n")
    methods = registry.methods(name).values()
    table("methods", ["name", "kind", "summary"], [[m.name, m.kind, m.summary] for m in methods])


def _show_instance(instance: InstanceBase, as_json: bool) -> None:
    problem = registry.problems()[instance.problem]
    if as_json:
        print_json({**instance.to_json(), "instance_hash": instance.content_hash, "unit": problem.unit(instance)})
        return
    rows: dict[str, Any] = {
        "instance": f"{instance.name} ({instance.content_hash})",
        "size": size_of(instance),
        "objective in": problem.unit(instance),
    }
    known = known_of(instance)
    if known is not None:
        rows |= {"best known": worded(known.plan, known.unit), "best bound": worded(known.bound, known.unit)}
        rows["status"] = known.status
    rows["assumed"] = "; ".join(instance.assumed) or None
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


def validate(
    files: Annotated[list[str], argument("Instance files or library names", completion.instances)],
    as_json: flags.Json = False,
) -> int:
    """Check instance files; 2 if one of them is wrong."""
    report: list[dict[str, Any]] = []
    for name in files:
        try:
            instance = check_file(name)
        except InputError as error:
            report.append({"file": name, "ok": False, "problems": error.problems})
        else:
            report.append({"file": name, "ok": True, "problems": [], "instance_hash": instance.content_hash})
    if as_json:
        print_json({"files": report})
    else:
        for entry in report:
            if entry["ok"]:
                say(f"{entry['file']}: ok ({entry['instance_hash']})")
            complain(entry["problems"])
    return 0 if all(entry["ok"] for entry in report) else 2


def expand(
    instance: flags.Instance,
    objective: flags.Objective = None,
    output: Annotated[Path | None, flags.output("Where to write.")] = None,
    as_json: flags.Json = False,
) -> None:
    """Write the expanded form, to a file or to standard output."""
    loaded = mapgap.load(instance, objective)
    if output is not None:
        to_file(output)
        save_expanded(loaded, output)
    else:
        say(dump(loaded.to_json(), ".json" if as_json else ".yaml"), end="")


def generate(
    problem: flags.Problem,
    family: Annotated[str, argument("Family of random instances (mapgap show PROBLEM)", completion.families)],
    seed: Annotated[int, option("First seed.")] = 0,
    count: Annotated[int, option("How many, with seeds one apart.", min=1)] = 1,
    output: Annotated[Path, flags.output("Folder.")] = Path(),
    as_json: flags.Json = False,
) -> None:
    """Write one expanded instance per seed.

    Raises
    ------
    InputError
        Unknown problem or family.
    """
    to_folder(output)
    library = registry.library(registry.find_problem(problem).name)
    made = [(each, library.generate(family, each)) for each in range(seed, seed + count)]
    output.mkdir(parents=True, exist_ok=True)
    paths = [save_expanded(each, output / f"{problem}_{family}_{number}.yaml") for number, each in made]
    if as_json:
        print_json({"files": [str(path) for path in paths]})
    else:
        say("\n".join(map(str, paths)))


def schema(problem: flags.Problem, form: Annotated[str, option("compact, expanded or plan")] = "expanded") -> None:
    """Print the JSON Schema of a form of files.

    Raises
    ------
    InputError
        Unknown problem or form.
    """
    if form not in FORMS:
        raise InputError(f"--form: expected compact, expanded or plan; found {form!r}")
    print_json(json_schema(problem, FORMS[form]))
