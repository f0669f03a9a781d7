"""``mapgap certify --agree`` and ``attack``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from mapgap.cli import completion, flags
from mapgap.cli.flags import option
from mapgap.cli.output import facts, print_json, say, table, to_folder
from mapgap.cli.progress import Display, Spinner
from mapgap.core import Budget
from mapgap.evidence import attack as adversary
from mapgap.evidence.certify import Certification, Solving, certify_all


def agreed(names: Sequence[str], budget: Budget, *, ledger: Path | None, update: bool, as_json: bool) -> int:
    """Ask two engines about instances and show what was reached; the budget is that of every run."""
    with Display({Solving: lambda run: f"{run.method} on {run.instance}"}) as display:
        found = [
            each for name in names for each in certify_all(name, budget, ledger=ledger, update=update, tell=display)
        ]
    show_certifications(found, as_json=as_json)
    if any(each.contradiction for each in found):
        return 5
    return 0 if all(each.grade is not None for each in found) else 4


def show_certifications(found: list[Certification], *, as_json: bool) -> None:
    """All of one instance, one line each of several."""
    told = [each.to_json() for each in found]
    if as_json:
        print_json(told[0] if len(told) == 1 else {"instances": told})
        return
    if len(told) > 1:
        rows = [
            [each["instance"], each["grade"] or "none", each["objective"], "; ".join(each["missing"])] for each in told
        ]
        table("certificates", ["instance", "certificate", "objective", "missing for a higher grade"], rows)
        return
    only = told[0]
    value = None if only["objective"] is None else f"{only['objective']:,} {only['unit']}"
    facts({"instance": only["instance"], "certificate": only["grade"] or "none", "objective": value})
    runs = [[run["instance"], run["method"], run["status"], run["objective"], run["bound"]] for run in only["runs"]]
    table("runs", ["instance", "method", "status", "objective", "bound"], runs)
    for reason in only["missing"]:
        say(f"missing for a higher grade: {reason}")


def attack(
    problem: flags.Problem,
    method: Annotated[str, option("Published method or baseline.", "--method", "-m", offers=completion.methods)],
    budget: Annotated[float, option("Seconds of the whole search.", min=1.0)] = 300.0,
    family: Annotated[str, option("Random family the instances come from.")] = "small",
    objective: flags.Objective = None,
    seed: Annotated[int, option("First seed of the family, and of the search.")] = 0,
    output: Annotated[Path, flags.output("Folder of the instance.")] = Path(),
    as_json: flags.Json = False,
) -> None:
    """Attack a method and show the worst case."""
    to_folder(output)
    with Spinner({adversary.Tried: tried}) as display:
        search, path = adversary.attack(
            problem, method, time_s=budget, family=family, seed=seed, objective=objective, folder=output, tell=display
        )
    show_attack(search, path, as_json=as_json)


def tried(event: adversary.Tried) -> str:
    """Phase, number of instances, and the worst ratio so far."""
    ratio = "none yet" if event.worst is None else f"{event.worst.ratio:.4f}"
    return f"attacking {event.method}: {event.phase}, {event.tried} instances, worst ratio {ratio}"


def show_attack(search: adversary.Attack, path: Path | None, *, as_json: bool) -> None:
    """What a search has found."""
    hit = search.worst
    if as_json:
        found = {"worst": None if hit is None else hit.to_json(), "file": None if path is None else str(path)}
        counts = {"instances": search.tried, "nothing_found": search.failures, "worth_nothing": search.worthless}
        print_json({**counts, **found})
        return
    worthless = f", on {search.worthless} only a plan worth 0" if search.worthless else ""
    say(f"{search.tried} instances; on {search.failures} the method found no plan although there is one{worthless}")
    if hit is None:
        say("no instance on which the loss factor is defined")
    else:
        loss = f"{hit.ratio:.4f}" if hit.proven else f"between {hit.ratio:.4f} and {hit.limit:.4f}"
        say(f"loss factor {loss}: {hit.method} {hit.value:,}, {hit.exact} {hit.plan:,} (bound {hit.bound:,})")
        say(str(path))
