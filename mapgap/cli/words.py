"""Values as people read them: ticks as seconds, energy units as joules, and where a plan stands among what is known."""

from __future__ import annotations

from mapgap.cli.output import cell
from mapgap.core import InstanceBase, plainly
from mapgap.evidence.ledger import Known, glance
from mapgap.records.record import relative


def worded(value: int | None, unit: str) -> str | None:
    """A value with its unit, and what that is in seconds or joules."""
    if value is None:
        return None
    plain = plainly(value, unit)
    return f"{cell(value)} {unit}" if plain is None else f"{cell(value)} {unit} ({plain})"


def between(interval: tuple[int, int] | None, unit: str) -> str | None:
    """The ends of an interval."""
    return None if interval is None else f"{worded(interval[0], unit)} to {worded(interval[1], unit)}"


def brief(value: int | None, unit: str) -> str:
    """A value on a line of progress: the number as methods have it, then seconds or joules."""
    plain = plainly(value, unit)
    return cell(value) if plain is None else f"{cell(value)} ({plain})"


def known_of(instance: InstanceBase) -> Known | None:
    """What the ledger says of an instance, by its content; ``None`` if nothing."""
    digest = instance.content_hash
    return next((known for known in glance().values() if known.instance_hash == digest), None)


def standing(objective: int | None, bound: int | None, known: Known, sign: int) -> dict[str, str | None]:
    """Where a plan and a bound stand among what is known: rows for a table of facts.

    The best bound is the better one of the ledger's and that of the run.
    """
    bounds = [each for each in (bound, known.bound) if each is not None]
    best = max(bounds, key=lambda each: sign * each, default=None)
    rows: dict[str, str | None] = {}
    for label, value in (("best known", known.plan), ("best bound", best)):
        if value is not None:
            rows[label] = ", ".join(filter(None, (worded(value, known.unit), _distance(objective, value, sign))))
    return rows


def _distance(objective: int | None, value: int, sign: int) -> str:
    if objective is None:
        return ""
    if objective == value:
        return "met by this plan"
    if sign * objective < sign * value:
        return "this plan is better"
    share = relative(objective, value, sign)
    return "" if share is None else f"this plan is {100 * share:.2g}% off"
