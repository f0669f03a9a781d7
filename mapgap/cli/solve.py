"""``mapgap solve``: run one or several methods on an instance, show what stands, exit by it."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import yaml

import mapgap
from mapgap.catalogue import registry
from mapgap.catalogue.files import dump
from mapgap.cli import certificates, completion, flags
from mapgap.cli.flags import option
from mapgap.cli.output import cell, complain, facts, percent, print_json, put, say, styled, table
from mapgap.cli.plans import check_outputs, write_plan
from mapgap.cli.progress import RunSpinner, Spinner
from mapgap.cli.words import between, known_of, standing, worded
from mapgap.core import (
    CONFIRMED,
    RECOMPUTED,
    UNCONFIRMED,
    Budget,
    Certificate,
    InputError,
    InstanceBase,
    Method,
    PlanBase,
    Status,
    Stop,
    quantity,
    suggest,
)
from mapgap.evidence.contradictions import contradictions
from mapgap.evidence.ledger import CERTIFICATE
from mapgap.evidence.media import Media, media
from mapgap.evidence.prove import Outcome, prove, untried
from mapgap.evidence.within import within
from mapgap.execution import confirm
from mapgap.execution.run import run_method
from mapgap.interface.comparison import Comparison
from mapgap.interface.results import Result
from mapgap.records.record import RunRecord, plain, relative

WITHIN = "within_measurement"
"""Among the notes of a record: :class:`mapgap.evidence.within.Within`."""
_YES, _NO = ("true", "yes", "on", "1"), ("false", "no", "off", "0")


def solve(
    instance: flags.Instance,
    method: Annotated[
        list[str] | None, option("Method by name (repeatable).", "--method", "-m", offers=completion.methods)
    ] = None,
    exact: Annotated[bool, option("The strongest exact method (the default).", "--exact")] = False,
    fast: Annotated[bool, option("The quick planner: no solver, no proof.", "--fast")] = False,
    every: Annotated[bool, option("Every method of the problem, one after the other.", "--all")] = False,
    objective: flags.Objective = None,
    time_limit: Annotated[float, flags.seconds("Seconds per method.")] = 60.0,
    memory_limit: Annotated[int | None, option("MB of resident memory, enforced.", min=1)] = None,
    workers: flags.Workers = 1,
    seed: flags.Seed = 0,
    settings: Annotated[list[str] | None, option("Method option as name=value.", "--set")] = None,
    plugin: flags.Plugins = None,
    certify: Annotated[
        bool | None,
        option("A certificate file of the bound; or none at all (default: of what is proven, where it is cheap)."),
    ] = None,
    output: Annotated[Path | None, flags.output("Write the best plan as JSON.")] = None,
    gantt: Annotated[Path | None, option("Draw the best plan (.svg, .png, .pdf).")] = None,
    as_json: Annotated[bool, option("One JSON object per method on standard output.", "--json")] = False,
) -> int:
    """Run methods one after the other; Ctrl-C keeps and prints the incumbent.

    Raises
    ------
    InputError
    """
    flags.load_plugins(plugin)
    loaded = mapgap.load(instance)
    problem = registry.problems()[loaded.problem]
    if sum((bool(method), exact, fast, every)) > 1:
        raise InputError("--method, --exact, --fast, --all: expected one of them, found several")
    methods = chosen(loaded, method or (), fast=fast, every=every)
    if certify and registry.library(problem.name).proving is None:
        raise InputError(f"--certify: expected a problem with certificates, found {problem.name}")
    loaded = mapgap.load(loaded, objective)
    options = {m.name: typed_options(m, settings or (), strict=len(methods) == 1) for m in methods}
    refuse_unused(methods, settings or ())
    if gantt is not None:
        from mapgap.reporting.gantt import check_suffix  # Matplotlib takes a second

        check_suffix(gantt)
    check_outputs(output, gantt)
    budget = Budget(time_limit, memory_limit, workers, seed)
    records: list[RunRecord] = []
    for each in methods:
        sign = -1 if problem.sense == "max" else 1
        with RunSpinner(f"{each.name} on {loaded.name}", sign, problem.unit(loaded)) as display:
            record = run_method(
                loaded,
                each,
                budget,
                options=options[each.name],
                plugins=plugin or (),
                observer=display.observe,
                tell=display,
            )
        if certify is None:
            record = certified(record, loaded, each)
        if not any(WITHIN in other.notes for other in records):
            record = _with_spread(record, loaded, budget)
        records.append(record)
        if as_json:
            print_json({**record.to_json(), "word": record.word, **told_media(record, loaded)})
        if record.stop == Stop.INTERRUPTED:
            break
    found = Comparison([(record, loaded) for record in records])
    code = exit_code(records)
    proof = prove_bound(found, time_limit, output) if certify and code in (0, 3) else None
    if proof is not None and proof.file is not None:
        found = Comparison([(_checked(record, proof), loaded) for record in records])
    if (best := found.best) is not None and best.plan is not None:
        title = f"{loaded.name} · {best.method} · {cell(best.objective)} {best.unit}"
        write_plan(loaded, best.plan, title, output, gantt)
    if not as_json:
        show(found, output, gantt)
        show_media(found)
        show_within(found, output)
    if proof is not None:
        return show_proof(proof, found, as_json=as_json) or code
    if certify is None and output is not None and code == 0 and (best := found.best) is not None:
        write_certificate(best, output, as_json=as_json)
    return code


def certified(record: RunRecord, instance: InstanceBase, method: Method) -> RunRecord:
    """The record with a certificate, where one is cheap: in the time that is left, unless the run has tried in vain."""
    cheap = not confirm.due(method) or record.notes.get(CONFIRMED) in (confirm.CERTIFICATE, confirm.DIAGNOSIS)
    if record.word != "solver-proven" or not cheap or registry.library(instance.problem).proving is None:
        return record
    left = record.time_limit_s - (record.wall_s or 0.0) - record.notes.get("confirm_s", 0.0)
    if left <= 0.0:
        return record
    with Spinner() as display:
        display.spin(f"{instance.name}: looking for a certificate")
        proof = prove(instance, record.bound if record.status == Status.OPTIMAL else None, Budget(left), None)
    return replace(record, certificate=Certificate.CHECKED) if proof.size else record


def write_certificate(best: Result, output: Path, *, as_json: bool) -> None:
    """The certificate of the best plan, beside it, where there is one."""
    if best.record.certificate == Certificate.CHECKED and best.bound is not None:
        file = output.with_suffix("").with_name(f"{output.with_suffix('').name}{CERTIFICATE}")
        made = prove(best.instance, best.bound, Budget(best.record.time_limit_s), file)
        if made.file is not None and not as_json:
            say(f"certificate written to {file}")


def _with_spread(record: RunRecord, instance: InstanceBase, budget: Budget) -> RunRecord:
    """The record of an optimum with what the spread of the measurement leaves open, among its notes."""
    proven = record.status == Status.OPTIMAL and record.plan is not None and not record.error
    spread = within(instance, record.plan or {}, budget) if proven else None
    return record if spread is None else replace(record, notes={**record.notes, WITHIN: plain(spread)})


def chosen(instance: InstanceBase, names: Sequence[str], *, fast: bool, every: bool) -> list[Method]:
    """The methods that the flags name; without any, the strongest exact one."""
    problem = instance.problem
    if every:
        return list(registry.methods(problem).values())
    if names:
        return [registry.find_method(problem, name) for name in dict.fromkeys(names)]
    return [registry.fast_planner(problem, instance) if fast else registry.strongest_exact(problem)]


def typed_options(method: Method, settings: Sequence[str], *, strict: bool) -> dict[str, Any]:
    """``name=value`` settings with the type of each option's default; unknown names are refused if ``strict``."""
    found: dict[str, Any] = {}
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not equals:
            raise InputError(f"--set {setting}: expected name=value")
        if name in method.settings:
            found[name] = typed(f"--set {setting}", method.settings[name], text)
        elif strict:
            known = ", ".join(f"{key}={value}" for key, value in method.settings.items()) or "no options"
            hint = suggest(name, method.settings)
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
        if not any(name in method.settings for method in methods):
            raise InputError(f"--set {setting}: expected an option of one of the chosen methods; none has {name!r}")


def exit_code(records: Sequence[RunRecord]) -> int:
    """Say what went wrong in the runs; the exit code of them all."""
    for record in records:
        if record.error:
            complain([f"{record.method}: {record.error}"])
            for violation in record.violations if record.refuted else ():
                complain([f"{violation['rule']}: {violation['where']}: {violation['message']}"], label="violation")
    contrary = contradictions(records)
    complain(each.words for each in contrary)
    codes = [5] if contrary else [record.exit_code for record in records]
    return next(code for code in (5, 130, 0, 3, 4) if code in codes)


def prove_bound(found: Comparison, time_limit: float, output: Path | None) -> Outcome:
    """Write a certificate of the best bound of the runs, beside their plan."""
    instance, bound = found[0].instance, best_bound(found)
    infeasible = all(each.record.status == Status.INFEASIBLE for each in found)
    if bound is None and not infeasible:
        asked = ", ".join(each.method for each in found)
        return replace(untried(instance, None), reason=f"expected a bound to prove, found none by {asked}")
    beside = Path(instance.name.replace("@", "__")) if output is None else output.with_suffix("")
    file = beside.with_name(f"{beside.name}{CERTIFICATE}")
    with Spinner() as display:
        display.spin(f"{instance.name}: looking for a certificate")
        return prove(instance, None if infeasible else bound, Budget(time_limit), file)


def _checked(record: RunRecord, proof: Outcome) -> RunRecord:
    """The record, certified if it claims what the file proves."""
    met = record.status == Status.OPTIMAL and record.objective == proof.bound
    proven = met or (record.status == Status.INFEASIBLE and proof.infeasible)
    return replace(record, certificate=Certificate.CHECKED) if proven else record


def show_proof(proof: Outcome, found: Comparison, *, as_json: bool) -> int:
    """What became of the certificate; the exit code."""
    if as_json:
        print_json(proof.to_json())
    elif proof.file is None:
        complain([f"--certify: {proof.reason}"])
    else:
        met = any(each.objective == proof.bound for each in found)
        say(f"\n{certificates.proved(proof)}\nwritten to {proof.file}" + (": the plan is optimal" if met else ""))
    return certificates.exit_code([proof])


def best_bound(found: Sequence[Result]) -> int | None:
    """The best of the bounds that runs on one instance claim."""
    sign = found[0].record.sign
    return max((r.bound for r in found if r.bound is not None), key=lambda value: sign * value, default=None)


def show(found: Comparison, output: Path | None, gantt: Path | None) -> None:
    """The runs, where the best plan stands among what is known, the plan itself, and which files were written."""
    instance, sign, best = found[0].instance, found[0].record.sign, found.best
    if len(found) == 1:
        facts(run_facts(found[0].record))
    else:
        show_records(found)
        facts({f"{r.method} found nothing": r.record.reason for r in found if r.objective is None and r.record.reason})
    known = known_of(instance)
    if known is not None:
        bound = best_bound(sound) if (sound := [each for each in found if not each.error]) else None
        say()
        facts(standing(best.objective if best else None, bound, known, sign))
    if best is None or best.plan is None or best.record.refuted:
        return
    head = "plan" if len(found) == 1 else "best plan"
    problem = registry.problems()[instance.problem]
    if problem.describe is not None:
        told = problem.describe(instance, best.plan)
        say()
        table(f"{head}: {worded(best.objective, best.unit)}", told.columns, told.rows, right=told.right)
        facts(dict(told.notes))
    elif output is None:
        put(f"\n{styled(head, sys.stdout, bold=True)}")
        say(dump(dict(best.record.plan or {})), end="")
    for what, path in (("plan", output), ("chart", gantt)):
        if path is not None:
            say(f"{what} written to {path}")


def told_media(record: RunRecord, instance: InstanceBase) -> dict[str, Any]:
    """The plan of a run on links that are shared."""
    found = _on_media(Comparison([(record, instance)])[0])
    return {} if found is None else {"media": vars(found)}


def _on_media(result: Result | None) -> Media | None:
    if result is None or result.plan is None or result.record.refuted or result.record.violations:
        return None
    return media(result.instance, result.plan)


def show_media(found: Comparison) -> None:
    """The best plan where links are shared, and whether a single board would then be faster."""
    if (seen := _on_media(found.best)) is None:
        return
    told = {
        title: f"{quantity(seconds, 's')} ({seconds / seen.links - 1:+.1%})"
        for title, seconds in (("one port per board", seen.ports), ("one medium for all", seen.shared))
    }
    if seen.single is not None:
        told["single board"] = f"{quantity(seen.single, 's')} ({seen.alone})"
    say()
    facts({"replayed": f"{quantity(seen.links, 's')} a round, every pair of boards with a link of its own"} | told)
    if seen.turned:
        names = {"ports": "one port per board", "shared": "one medium for all"}
        text = f"{seen.alone} is faster with {' and with '.join(names[medium] for medium in seen.turned)}"
        complain([text], label="warning")


def show_within(found: Sequence[Result], output: Path | None) -> None:
    """The second step after an optimum: what the quartiles of the profiles leave open, and the simplest plan."""
    best = next((each for each in found if WITHIN in each.record.notes), None)
    if best is None:
        return
    spread = best.record.notes[WITHIN]
    unit, problem = best.record.unit, registry.problems()[best.record.problem]
    say()
    told = {"within the measurement": between((spread["low"], spread["high"]), unit)}
    if spread["plan"] is None:
        facts({**told, "simpler plan": spread["words"]})
        return
    ends = between((spread["plan_low"], spread["plan_high"]), unit)
    facts(
        {
            **told,
            "simpler plan": spread["words"] + ("" if spread["complete"] else " (not all plans were searched)"),
            "by the medians": f"{worded(spread['value'], unit)}: {percent(spread['worse'])} worse than the optimum",
            "its interval": f"{ends}: not to be told apart from the optimum",
        }
    )
    plan: PlanBase = problem.plan_type.model_validate_json(json.dumps(spread["plan"]))
    if problem.describe is not None:
        shown = problem.describe(best.instance, plan)
        say()
        table("plan within the measurement", shown.columns, shown.rows, right=shown.right)
    if output is not None:
        beside = output.with_name(f"{output.stem}.within{output.suffix}")
        write_plan(best.instance, plan, None, beside, None)
        say(f"plan written to {beside}")


def run_facts(record: RunRecord) -> dict[str, Any]:
    """What a reader is told of one run, in this order; what is ``None`` is left out."""
    return {
        "instance": f"{record.instance} ({record.instance_hash})",
        "problem": record.problem,
        "method": f"{record.method} ({record.kind})",
        "status": f"{record.status} ({worded_proof(record)})",
        "stopped by": record.stop,
        "objective": worded(record.objective, record.unit),
        "bound": worded(record.bound, record.unit),
        "unconfirmed": record.notes.get(UNCONFIRMED),
        "without engines": worded(record.notes.get(RECOMPUTED), record.unit),
        "gap": percent(record.gap),
        **_members(record),
        "time": None if record.wall_s is None else f"{record.wall_s:.3f} s",
        "process memory": None if record.peak_mb is None else f"{record.peak_mb:.0f} MB",
        "reason": record.reason,
        "assumed": "; ".join(record.notes.get("assumed", ())) or None,
        **({} if record.refuted else _short(record.terms)),
    }


def worded_proof(record: RunRecord) -> str:
    """``certified``, ``solver-proven by cpsat, confirmed by mip (HiGHS)``, or ``open``."""
    if record.word != "solver-proven":
        return record.word
    other = record.notes.get(CONFIRMED)
    return f"solver-proven by {record.proved_by or record.method}" + (f", confirmed by {other}" if other else "")


def _members(record: RunRecord) -> dict[str, Any]:
    """Who found the plan and who proved the bound, where that was a member of a portfolio."""
    both = {"found by": record.found_by, "proved by": record.proved_by}
    return both if {record.found_by, record.proved_by} - {None, record.method} else {}


def _short(terms: Mapping[str, Any]) -> dict[str, Any]:
    """The terms of an evaluation that people read: numbers, words, or a few of them by name. ``--json`` has all."""
    flat = {name: value for name, value in terms.items() if not _nested(value)}
    return {name.replace("_", " "): value for name, value in flat.items() if len(cell(value)) < 300}


def _nested(value: Any) -> bool:
    return isinstance(value, Mapping) and any(isinstance(item, (Mapping, list, tuple)) for item in value.values())


def show_records(found: Comparison) -> None:
    """All runs of one instance: gap to the best bound of all methods, distance to the best plan known."""
    first, sign = found[0], found[0].record.sign
    bound, known = first.known.bound, found.best.objective if found.best else None
    columns = ["method", "kind", "status", "stop", "objective", "bound", "gap", "to best plan", "time (s)", "MB"]
    columns += ["proof"]
    columns += ["found by", "proved by"] if any(_members(each.record) for each in found) else []
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
            record.word,
            *([record.found_by, record.proved_by] if len(columns) > 11 else []),
        ]
        for record in sorted(
            (each.record for each in found), key=lambda r: (r.objective is None, sign * (r.objective or 0), r.method)
        )
    ]
    table(f"{first.instance.name}, objective in {first.unit}", columns, rows, right=columns[4:10])
