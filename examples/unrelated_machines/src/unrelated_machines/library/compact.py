"""The compact form: sizes of jobs and speeds of machines. It expands to the table of times that every method sees."""

from typing import Literal

from pydantic import Field

from mapgap.core import CompactBase, Finding, InputError, suggest
from unrelated_machines.instance import Instance


class Compact(CompactBase):
    """Related machines, some of which cannot do some jobs.

    Attributes
    ----------
    tick_ns : int
        Nanoseconds per tick.
    sizes : mapping
        Units of work of every job.
    speeds : mapping
        Units of work per tick of every machine.
    unable : mapping
        Jobs that a machine cannot do.
    """

    problem: Literal["unrelated_machines"] = "unrelated_machines"
    tick_ns: int = Field(default=1_000_000, ge=1)
    sizes: dict[str, int] = Field(min_length=1)
    speeds: dict[str, int] = Field(min_length=1)
    unable: dict[str, tuple[str, ...]] = Field(default_factory=dict)


def expand(compact: Compact) -> Instance:
    """The table of times; a part of a tick counts as a whole one.

    Raises
    ------
    InputError
        Every field that cannot be expanded.
    """
    found = [
        Finding(f"expected at least 1, found {value}", (field, name))
        for field, values in (("sizes", compact.sizes), ("speeds", compact.speeds))
        for name, value in values.items()
        if value < 1
    ]
    for machine, jobs in compact.unable.items():
        if machine not in compact.speeds:
            text = f"expected a machine, found {machine!r}{suggest(machine, compact.speeds)}"
            found.append(Finding(text, ("unable", machine)))
        for k, job in enumerate(jobs):
            if job not in compact.sizes:
                text = f"expected a job, found {job!r}{suggest(job, compact.sizes)}"
                found.append(Finding(text, ("unable", machine, k)))
    if found:
        raise InputError(found)
    times = tuple(
        tuple(
            None if job in compact.unable.get(machine, ()) else -(-size // speed) for job, size in compact.sizes.items()
        )
        for machine, speed in compact.speeds.items()
    )
    return Instance(
        name=compact.name,
        source=compact.source,
        tags=compact.tags,
        tick_ns=compact.tick_ns,
        machines=tuple(compact.speeds),
        jobs=tuple(compact.sizes),
        times=times,
    )
