"""``mapgap explain``: what binds a plan, which decisions cost how much, what more hardware would bring."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mapgap.catalogue.files import load_instance, load_plan, retarget
from mapgap.cli.output import facts, percent, print_json, say, table, to_file
from mapgap.cli.progress import Spinner
from mapgap.cli.words import worded
from mapgap.core import Budget, PlanTable
from mapgap.evidence.explain import Explanation, Looking, Relaxed, Step
from mapgap.evidence.explain import explain as ask
from mapgap.execution.progress import Event
from mapgap.records.record import relative


class LookingSpinner(Spinner):
    """What is being solved."""

    def __call__(self, event: Event) -> None:
        super().__call__(event)
        if isinstance(event, Looking):
            self.spin(event.what)


def explain(
    name: str,
    plan: Path | None,
    method: str | None,
    objective: str | None,
    budget: Budget,
    *,
    relax: bool,
    picture: Path | None,
    as_json: bool,
) -> None:
    """Explain a plan in text, as JSON, and as a picture.

    Raises
    ------
    InputError
    """
    if picture is not None:
        from mapgap.reporting.gantt import check_suffix  # Matplotlib takes a second

        check_suffix(picture, "-o")
        to_file(picture, "-o")
    instance = load_instance(name)
    if objective is not None:
        instance = retarget(instance, objective)
    given = None if plan is None else load_plan(plan, instance.problem)
    with LookingSpinner() as display:
        source = "" if plan is None else str(plan)
        found = ask(instance, plan=given, source=source, method=method, budget=budget, relax=relax, tell=display)
    if picture is not None:
        from mapgap.reporting.explained import picture as drawn
        from mapgap.reporting.gantt import save

        save(drawn(found), picture)
    if as_json:
        print_json(_json(found))
        return
    _show(found)
    if picture is not None:
        say(f"picture written to {picture}")


def _show(found: Explanation) -> None:
    unit = found.problem.unit(found.instance)
    loss = relative(found.value, found.optimum, found.sign)
    best = worded(found.optimum, unit)
    proven = found.bound is not None and found.optimum == found.bound
    facts(
        {
            "instance": f"{found.instance.name} ({found.instance.content_hash})",
            "problem": found.problem.name,
            "plan of": found.method,
            "objective": worded(found.value, unit),
            "optimum" if proven else "best known": best if loss is None else f"{best}: the plan is {percent(loss)} off",
            "bound": None if proven else worded(found.bound, unit),
        }
    )
    say(f"\n{found.binding.sentence}\n")
    told: PlanTable = found.binding.table
    table("what the plan's value is made of", told.columns, told.rows, right=told.right)
    if (decisions := found.decisions) is not None:
        title = "from this plan to the best one, one decision after the other"
        table(title, decisions.columns, decisions.rows, right=decisions.right)
    else:
        say("No better plan is known, so no decision is known to cost anything.\n")
    if (relaxations := found.relaxations) is not None:
        table("what a relaxation would bring", relaxations.columns, relaxations.rows, right=relaxations.right)


def _json(found: Explanation) -> dict[str, Any]:
    told = found.binding.table
    return {
        "instance": found.instance.name,
        "instance_hash": found.instance.content_hash,
        "problem": found.problem.name,
        "method": found.method,
        "objective": found.value,
        "best": found.optimum,
        "bound": found.bound,
        "binding": {"sentence": found.binding.sentence, "columns": told.columns, "rows": told.rows},
        "steps": _listed(found.steps),
        "relaxations": _listed(found.relaxed),
        "plan": found.plan.to_json(),
        "best_plan": found.best.to_json(),
    }


def _listed(items: Sequence[Step | Relaxed]) -> list[dict[str, Any]]:
    return [dict(vars(item)) for item in items]
