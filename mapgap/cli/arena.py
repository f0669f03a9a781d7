"""``mapgap arena``: heuristics of anybody, machines included, against certified ceilings."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from mapgap.cli import flags
from mapgap.cli.flags import argument, option
from mapgap.cli.output import facts, print_json, say, table, to_file, to_folder
from mapgap.cli.progress import Spinner
from mapgap.core import InputError
from mapgap.evidence import arena
from mapgap.interface import arena as folder
from mapgap.interface.display import percent

Family = Annotated[str, option("Random family the instances come from.")]
Seeds = Annotated[str | None, option("Such as 0-29 or 3,5,8 (default: drawn now, so that no program can know them).")]
Count = Annotated[int, option("How many seeds to draw.", min=1, max=10_000)]
Limit = Annotated[float, flags.seconds("Seconds of the program per instance.")]
Memory = Annotated[int, option("MB of the program and all that it starts.", min=16)]
Published = Annotated[str | None, option("The heuristic that 1.0 stands for (default: the problem's published one).")]
Ceiling = Annotated[float, option("Seconds per instance for its ceiling, and as many for the certificate.", min=0.1)]


def seeds_of(text: str | None) -> list[int] | None:
    """``0-29``, ``3,5,8`` or both mixed.

    Raises
    ------
    InputError
    """
    if text is None:
        return None
    found: list[int] = []
    try:
        for part in text.split(","):
            first, _, last = part.partition("-")
            found += range(int(first), int(last or first) + 1)
    except ValueError:
        raise InputError(f"--seeds: expected such as 0-29 or 3,5,8; found {text!r}") from None
    if not found or len(found) > 10_000:
        raise InputError(f"--seeds: expected 1 to 10,000 of them, found {len(found)}")
    return found


def export(
    problem: flags.Problem,
    output: Annotated[Path, flags.output("Folder to write.")],
    family: Family = "small",
    seeds: Seeds = "0-19",
    held_out: Annotated[int, option("Instances drawn at every evaluation.", min=1, max=10_000)] = 10,
    time_limit: Limit = 10.0,
    memory_limit: Memory = 2048,
    ceiling_time: Ceiling = 10.0,
    published: Published = None,
    as_json: flags.Json = False,
) -> None:
    """Write a folder that OpenEvolve and SkyDiscover run as it is."""
    to_folder(output)
    with Spinner({arena.Reference: referred}) as display:
        made = folder.export_arena(
            problem,
            output,
            family,
            seeds=seeds_of(seeds) or [],
            held_out=held_out,
            time_limit=time_limit,
            memory_limit=memory_limit,
            ceiling_time=ceiling_time,
            published=published,
            tell=display,
        )
    if as_json:
        print_json({"folder": str(output), **made})
        return
    for name, value in made.items():
        say(f"{name}: {value}")
    say(f"openevolve-run {output}/initial_program.py {output}/evaluator.py --config {output}/config.yaml")
    say(f"skydiscover-run {output}/initial_program.py {output}/evaluator.py -c {output}/config.yaml -s evox")


def referred(event: arena.Reference) -> str:
    """Progress on one instance whose ceiling is known."""
    return f"{event.instance}: ceiling {event.ceiling} ({event.grade})"


def scored(event: arena.Scored) -> str:
    """Progress on one instance that the program has had."""
    return f"{event.reference.instance}: {'no plan' if event.value is None else event.value}"


def score(
    program: Annotated[Path, argument("Python file with solve(instance) -> plan")],
    problem: Annotated[str, option("Problem.")],
    family: Family = "small",
    seeds: Seeds = None,
    count: Count = 30,
    time_limit: Limit = 10.0,
    memory_limit: Memory = 2048,
    ceiling_time: Ceiling = 10.0,
    published: Published = None,
    output: Annotated[Path | None, flags.output("Write SCORE.json, with every plan and every certificate.")] = None,
    as_json: flags.Json = False,
) -> None:
    """Score a program; every plan is evaluated here."""
    if output is not None:
        to_file(output, "-o")
    with Spinner({arena.Reference: referred, arena.Scored: scored}) as display:
        found = folder.score(
            program,
            problem,
            family,
            seeds=seeds_of(seeds),
            count=count,
            time_limit=time_limit,
            memory_limit=memory_limit,
            ceiling_time=ceiling_time,
            published=published,
            output=output,
            tell=display,
        )
    if as_json:
        print_json(found.to_json())
    else:
        show(found)


def show(found: arena.Score) -> None:
    """A score as people read it."""
    told = found.to_json()
    reasons: dict[str, int] = {}
    for each in found.results:
        if each.value is None:
            reasons[each.reason] = reasons.get(each.reason, 0) + 1
    grades = [each.reference.grade for each in found.results]
    proven = ", ".join(f"{grades.count(grade)} {grade}" for grade in ("certified", "solver-proven") if grade in grades)
    seeds = "drawn now" if found.drawn else "given; a program may have known them"
    rows: dict[str, Any] = {
        "instances": f"{len(found.results)} of {found.problem}, family {found.family}; seeds {seeds}",
        "without a plan": f"{found.failed}, worth 0 each" if found.failed else "none",
        "ceilings": f"{proven or 'none'}, of {len(grades)}",
        "left out": f"{len(found.left_out)}: {found.published} has no plan there" if found.left_out else None,
    }
    facts(rows)
    columns = ["", f"score (1 = {found.published})", "gap to the ceiling"]
    gaps = found.gaps
    lines = [
        ["program", _decimal(told["score"]), percent(gaps["program"])],
        [f"published: {found.published}", _decimal(1.0), percent(gaps["published"])],
        ["quick planner", _decimal(told["quick"]), percent(gaps["quick"])],
        ["ceiling", _decimal(told["ceiling"]), percent(0.0) if found.ceiling is not None else None],
    ]
    table("score", columns, lines)
    for reason, times in sorted(reasons.items(), key=lambda item: -item[1])[:5]:
        say(f"{times} x no plan: {reason}")


def _decimal(value: float | None) -> str | None:
    return None if value is None else f"{value:.4f}"


def verify(
    score: Annotated[Path, argument("SCORE.json of mapgap arena score")],
    as_json: flags.Json = False,
) -> int:
    """Recompute a score from its plans; 5 if it does not hold, or is above its ceiling."""
    found = arena.recheck(score)
    if as_json:
        print_json(found.to_json())
    else:
        for reason in found.refused:
            say(f"REFUSED  {reason}")
        top = "no certified ceiling" if found.ceiling is None else f"ceiling {found.ceiling:.4f}"
        value = "no score" if found.score is None else f"score {found.score:.4f}"
        say(f"{'ok' if found.holds else 'refused'}: {value}, {top}; {found.certified} of {found.instances} certified")
    return 0 if found.holds else 5
