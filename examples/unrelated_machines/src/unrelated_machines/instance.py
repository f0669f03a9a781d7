"""Instance and plan: plain integers, validated as a whole."""

from typing import Literal, Self

from pydantic import Field, model_validator

from mapgap.core import ACTIVITY_LIMIT, Finding, InputError, InstanceBase, PlanBase


class Instance(InstanceBase):
    """Jobs and machines.

    Attributes
    ----------
    tick_ns : int
        Nanoseconds per tick.
    machines, jobs : tuple of str
        Names.
    times : tuple of tuple of int or None, shape (machines, jobs)
        Ticks of a job on a machine; ``None`` where the machine cannot do it.
    """

    problem: Literal["unrelated_machines"] = "unrelated_machines"
    tick_ns: int = Field(default=1_000_000, ge=1)
    machines: tuple[str, ...] = Field(min_length=1)
    jobs: tuple[str, ...] = Field(min_length=1)
    times: tuple[tuple[int | None, ...], ...]

    def able(self, job: int) -> list[int]:
        """Machines that can do a job."""
        return [i for i in range(len(self.machines)) if self.times[i][job] is not None]

    def time(self, machine: int, job: int) -> int:
        """Ticks of a job on a machine that can do it."""
        time = self.times[machine][job]
        assert time is not None
        return time

    @model_validator(mode="after")
    def _check(self) -> Self:
        found = []
        if len(self.times) != len(self.machines):
            text = f"expected {len(self.machines)} rows, one per machine, found {len(self.times)}"
            found.append(Finding(text, ("times",)))
        for i, (machine, row) in enumerate(zip(self.machines, self.times, strict=False)):
            if len(row) != len(self.jobs):
                text = f"expected {len(self.jobs)} times, one per job, found {len(row)}"
                found.append(Finding(text, ("times", i), machine))
            for j, time in enumerate(row):
                if time is not None and time < 1:
                    found.append(Finding(f"expected at least 1 tick, found {time}", ("times", i, j), machine))
        total = sum(time for row in self.times for time in row if time is not None)
        if total >= ACTIVITY_LIMIT:
            found.append(Finding(f"expected times of less than 2^30 ticks in total, found {total}", ("times",)))
        if found:
            raise InputError(found)
        return self


class Plan(PlanBase):
    """The machine of every job.

    Attributes
    ----------
    machines : tuple of int, shape (jobs,)
    """

    machines: tuple[int, ...]
