"""``mapgap solve``: run one or several methods on an instance, show what stands, exit by it."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from mapgap.catalogue import registry
from mapgap.catalogue.files import dump, load_instance, retarget, save_plan
from mapgap.cli import certificates
from mapgap.cli.output import cell, complain, facts, percent, print_json, put, say, styled, table, to_file
from mapgap.cli.progress import RunSpinner, Spinner
from mapgap.cli.words import known_of, standing, worded
from mapgap.core import Budget, InputError, InstanceBase, Method, Problem, Stop, suggest
from mapgap.evidence.contradictions import contradictions
from mapgap.evidence.ledger import CERTIFICATE
from mapgap.evidence.prove import prove
from mapgap.execution.run import run_method
from mapgap.records.record import RunRecord, relative
from mapgap.records.runs import facts as instance_facts

_YES, _NO = ("true", "yes", "on", "1"), ("false", "no", "off", "0")


@dataclass(frozen=True)
class Request:
    """The flags of ``mapgap solve``."""

    instance: str
    methods: Sequence[str] = ()
    exact: bool = False
    fast: bool = False
    all: bool = False
    objective: str | None = None
    time_limit: float = 60.0
    memory_limit: int | None = None
    workers: int = 1
    seed: int = 0
    settings: Sequence[str] = ()
    plugins: Sequence[Path] = ()
    certify: bool = False
    output: Path | None = None
    gantt: Path | None = None
    json: bool = False


def solve(request: Request) -> int:
    """Do what the request asks; returns the exit code.

    Raises
    ------
    InputError
    """
    instance = load_instance(request.instance)
    problem = registry.problems()[instance.problem]
    sign = 1 if problem.sense == "min" else -1
    methods = chosen(request, instance.problem)
    if request.certify and registry.library(instance.problem).proving is None:
        raise InputError(f"--certify: expected a problem with certificates, found {instance.problem}")
    if request.objective is not None:
        instance = retarget(instance, request.objective)
    options = {m.name: typed_options(m, request.settings, strict=len(methods) == 1) for m in methods}
    refuse_unused(methods, request.settings)
    _check_outputs(request)
    budget = Budget(request.time_limit, request.memory_limit, request.workers, request.seed)
    records: list[RunRecord] = []
    for method in methods:
        with RunSpinner(f"{method.name} on {instance.name}", sign, problem.unit(instance)) as display:
            record = run_method(
                instance,
                method,
                budget,
                options=options[method.name],
                plugins=request.plugins,
                observer=display.observe,
                tell=display,
            )
        records.append(record)
        if request.json:
            print_json(record.to_json())
        if record.stop == Stop.INTERRUPTED:
            break
    code = _finish(request, problem, instance, records)
    return _certify(request, problem, instance, records) if request.certify and code == 0 else code


def chosen(request: Request, problem: str) -> list[Method]:
    """The methods that the flags name; without any, the strongest exact one."""
    if sum((bool(request.methods), request.exact, request.fast, request.all)) > 1:
        raise InputError("--method, --exact, --fast, --all: expected one of them, found several")
    if request.all:
        return list(registry.methods(problem).values())
    if request.methods:
        return [registry.find_method(problem, name) for name in dict.fromkeys(request.methods)]
    return [registry.fast_planner(problem) if request.fast else registry.strongest_exact(problem)]


def typed_options(method: Method, settings: Sequence[str], *, strict: bool) -> dict[str, Any]:
    """``name=value`` settings with the type of each option's default; unknown names are refused if ``strict``."""
    found: dict[str, Any] = {}
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not equals:
            raise InputError(f"--set {setting}: expected name=value")
        if name in method.options:
            found[name] = typed(f"--set {setting}", method.options[name], text)
        elif strict:
            known = ", ".join(f"{key}={value}" for key, value in method.options.items()) or "no options"
            hint = suggest(name, method.options)
            raise InputError(f"--set {setting}: expected an option of {method.name} ({known}){hint}")
    return found


def typed(flag: str, default: Any, text: str) -> Any:
    """The text of a setting as a value of the type of the default."""
    if isinstance(default, str):
        return text
    if isinstance(default, bool):
        if text.lower() not in (*_YES, *_NO):
            raise InputError(f"{flag}: expected true or false, found {text!r}")
        return text.lower() in _YES
    if isinstance(default, (list, tuple)):
        items = [part.strip() for part in text.split(",") if part.strip()]
        return [typed(flag, default[0], item) if default else yaml.safe_load(item) for item in items]
    if isinstance(default, (int, float)):
        kind = type(default)
        try:
            return kind(text)
        except ValueError:
            expected = "an integer" if kind is int else "a number"
            raise InputError(f"{flag}: expected {expected}, found {text!r}") from None
    return yaml.safe_load(text)  # the default is None: whatever the text looks like


def refuse_unused(methods: Sequence[Method], settings: Sequence[str]) -> None:
    """A setting that no chosen method knows is a mistake."""
    for setting in settings:
        name = setting.partition("=")[0]
        if not any(name in method.options for method in methods):
            raise InputError(f"--set {setting}: expected an option of one of the chosen methods; none has {name!r}")


def _check_outputs(request: Request) -> None:
    """Before hours of search: can the results be written?"""
    if request.gantt is not None:
        from mapgap.reporting.gantt import check_suffix  # Matplotlib takes a second

        check_suffix(request.gantt)
    for flag, path in (("-o", request.output), ("--gantt", request.gantt)):
        if path is not None:
            to_file(path, flag)


def _finish(request: Request, problem: Problem, instance: InstanceBase, records: Sequence[RunRecord]) -> int:
    sign = 1 if problem.sense == "min" else -1
    with_plan = [r for r in records if r.objective is not None]
    best = min(with_plan, key=lambda r: sign * (r.objective or 0), default=None)
    if best is not None and best.plan is not None:
        _write(request, problem, instance, best)
    if not request.json:
        if len(records) == 1:
            show_record(records[0])
        else:
            show_records(records, best, sign)
        _tell_plan(request, problem, instance, records, best)
    for record in records:
        if record.error:
            complain([f"{record.method}: {record.error}"])
            for violation in record.violations if record.refuted else ():
                complain([f"{violation['rule']}: {violation['where']}: {violation['message']}"], label="violation")
    contrary = contradictions(records)
    complain(each.words for each in contrary)
    codes = [5] if contrary else [record.exit_code for record in records]
    return next(code for code in (5, 130, 0, 3, 4) if code in codes)


def _certify(request: Request, problem: Problem, instance: InstanceBase, records: Sequence[RunRecord]) -> int:
    """Prove the best bound of the runs; the exit code."""
    sign = 1 if problem.sense == "min" else -1
    bound = max((r.bound for r in records if r.bound is not None), key=lambda value: sign * value, default=None)
    if bound is None:
        complain([f"--certify: expected a bound to prove, found none by {', '.join(r.method for r in records)}"])
        return 4
    beside = Path(instance.name.replace("@", "__")) if request.output is None else request.output.with_suffix("")
    file = beside.with_name(f"{beside.name}{CERTIFICATE}")
    with Spinner() as display:
        display.spin(f"{instance.name}: looking for a proof of {cell(bound)}")
        found = prove(instance, bound, Budget(request.time_limit), file)
    if request.json:
        print_json(found.to_json())
    elif found.file is None:
        complain([f"--certify: {found.reason}"])
    else:
        met = any(r.objective == bound for r in records)
        say(f"\n{certificates.proved(found)}\nwritten to {file}" + (": the plan is optimal" if met else ""))
    return certificates.exit_code([found])


def _write(request: Request, problem: Problem, instance: InstanceBase, best: RunRecord) -> None:
    plan = problem.plan_type.model_validate_json(json.dumps(best.plan))
    if request.output is not None:
        save_plan(plan, request.output)
    if request.gantt is not None:
        from mapgap.reporting.gantt import plan_chart, save  # Matplotlib takes a second

        title = f"{instance.name} · {best.method} · {cell(best.objective)} {best.unit}"
        save(plan_chart(problem, instance, plan, title), request.gantt)


def show_record(record: RunRecord) -> None:
    """One run for a reader."""
    facts(
        {
            "instance": f"{record.instance} ({record.instance_hash})",
            "problem": record.problem,
            "method": f"{record.method} ({record.kind})",
            "status": f"{record.status} ({record.certificate})" if record.certificate else record.status,
            "stopped by": record.stop,
            "objective": worded(record.objective, record.unit),
            "bound": worded(record.bound, record.unit),
            "gap": percent(record.gap),
            "time": None if record.wall_s is None else f"{record.wall_s:.3f} s",
            "process memory": None if record.peak_mb is None else f"{record.peak_mb:.0f} MB",
            "reason": record.reason,
            **({} if record.refuted else _short(record.terms)),
        }
    )


def _tell_plan(
    request: Request, problem: Problem, instance: InstanceBase, records: Sequence[RunRecord], best: RunRecord | None
) -> None:
    """Where the best plan stands, the plan itself, and which files were written."""
    sign = 1 if problem.sense == "min" else -1
    if len(records) > 1:
        facts({f"{r.method} found nothing": r.reason for r in records if r.objective is None and r.reason})
    known = known_of(instance)
    if known is not None:
        bounds = [r.bound for r in records if r.bound is not None and not r.error]
        bound = max(bounds, key=lambda value: sign * value, default=None)
        rows = standing(best.objective if best else None, bound, known, sign)
        say()
        facts(rows)
    if best is not None and best.plan is not None and not best.refuted:
        head = "plan" if len(records) == 1 else "best plan"
        plan = problem.plan_type.model_validate_json(json.dumps(best.plan))
        if problem.describe is not None:
            told = problem.describe(instance, plan)
            say()
            table(f"{head}: {worded(best.objective, best.unit)}", told.columns, told.rows, right=told.right)
        elif request.output is None:
            put(f"\n{styled(head, sys.stdout, bold=True)}")
            say(dump(dict(best.plan)), end="")
        for what, path in (("plan", request.output), ("chart", request.gantt)):
            if path is not None:
                say(f"{what} written to {path}")


def _short(terms: Mapping[str, Any]) -> dict[str, Any]:
    """The terms of an evaluation that people read: numbers, words, or a few of them by name. ``--json`` has all."""
    flat = {name: value for name, value in terms.items() if not _nested(value)}
    return {name.replace("_", " "): value for name, value in flat.items() if len(cell(value)) < 300}


def _nested(value: Any) -> bool:
    return isinstance(value, Mapping) and any(isinstance(item, (Mapping, list, tuple)) for item in value.values())


def show_records(records: Sequence[RunRecord], best: RunRecord | None, sign: int) -> None:
    """All runs of one instance: gap to the best bound of all methods, distance to the best plan known."""
    fact = instance_facts(records)[records[0].instance_hash]
    bound, known = fact.bound, best.objective if best else None
    columns = ["method", "kind", "status", "stop", "objective", "bound", "gap", "to best plan", "time (s)", "MB"]
    rows = [
        [
            record.method,
            record.kind,
            record.status,
            record.stop,
            record.objective,
            record.bound,
            percent(relative(record.objective, bound, sign)),
            percent(relative(record.objective, known, sign)),
            None if record.wall_s is None else f"{record.wall_s:.3f}",
            None if record.peak_mb is None else round(record.peak_mb),
        ]
        for record in sorted(records, key=lambda r: (r.objective is None, sign * (r.objective or 0), r.method))
    ]
    first = records[0]
    table(f"{first.instance}, objective in {first.unit}", columns, rows, right=columns[4:])
