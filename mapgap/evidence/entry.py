"""What the ledger holds of one instance: plan, bound, certificate, and the history of how they came about."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from pydantic import BaseModel, ConfigDict, Field

from mapgap.core import Certificate
from mapgap.records.record import RunRecord, relative

HISTORY = 20  #: steps that an entry remembers


@dataclass(frozen=True)
class Origin:
    """Where an improvement comes from: who, if not the method of the run; and the file."""

    by: str = ""
    source: str = ""


A_RUN = Origin()
"""What is entered comes from the method of its record."""


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Finding(Strict):
    """A plan's objective or a bound, and the run it comes from.

    Attributes
    ----------
    value : int
        In the entry's unit.
    method, started : str
        The run's method and start (UTC).
    time_limit_s, workers
        The run's budget.
    versions : mapping of str to str
        Software of the run.
    """

    value: int
    method: str
    started: str
    time_limit_s: float
    workers: int
    versions: dict[str, str]


class Improvement(Strict):
    """One step of an entry's history.

    Attributes
    ----------
    what : {"plan", "bound", "checked"}
        A better plan; a better bound; a bound that a certificate file proves from now on.
    value : int
        In the entry's unit.
    by : str
        The method of the run, ``close from INSTANCE``, ``submitted by NAME``, or ``certificate``.
    date : str
        When the run began, or when it was entered (UTC).
    source : str, optional
        The file of the run or of the submission, where it came from one.
    version : str
        Of mapgap.
    revision : str, optional
        Of the checkout; ``None`` where it had local changes or was none.
    """

    what: str = Field(pattern="^(plan|bound|checked)$")
    value: int
    by: str
    date: str
    source: str | None = None
    version: str = ""
    revision: str | None = None


class Entry(Strict):
    """What is known of one instance under one objective.

    Attributes
    ----------
    certificate : Certificate, optional
        Grade of the optimum, where it is proven.
    checked_bound : int, optional
        Of an instance whose optimum is not ``checked``: the bound that a certificate file proves.
    history : list of Improvement
        Who improved what, oldest first; the latest :data:`HISTORY`. Entries older than the history have none.
    """

    instance: str
    instance_hash: str
    problem: str
    unit: str
    sense: str = Field(pattern="^(min|max)$")
    plan: Finding | None = None
    bound: Finding | None = None
    certificate: Certificate | None = None
    checked_bound: int | None = None
    history: list[Improvement] = []

    @property
    def certified(self) -> int | None:
        """The bound that a certificate file has to prove; ``None`` where there need not be one."""
        if self.certificate is Certificate.CHECKED and self.bound is not None:
            return self.bound.value
        return self.checked_bound

    @property
    def sign(self) -> int:
        return -1 if self.sense == "max" else 1

    @property
    def proven(self) -> bool:
        """The plan meets the bound."""
        return self.plan is not None and self.bound is not None and self.plan.value == self.bound.value

    def remember(self, what: str, value: int, record: RunRecord, origin: Origin) -> None:
        """Add a step to the history, before what it replaces is forgotten; the oldest steps are dropped."""
        clean = record.revision is not None and not record.revision.endswith("-dirty")
        step = Improvement(
            what=what,
            value=value,
            by=origin.by or record.method,
            date=record.started,
            source=origin.source or None,
            version=record.versions.get("mapgap", ""),
            revision=record.revision if clean else None,
        )
        self.history = [*self.story(), step][-HISTORY:]

    def story(self) -> list[Improvement]:
        """The history, and before it what is held of a time that had none."""
        told = {(step.what, step.value) for step in self.history}
        older = [
            Improvement(
                what=what,
                value=found.value,
                by=found.method,
                date=found.started,
                version=found.versions.get("mapgap", ""),
            )
            for what, found in (("plan", self.plan), ("bound", self.bound))
            if found is not None and (what, found.value) not in told
        ]
        return [*older, *self.history]

    def raise_certificate(self, grade: Certificate) -> None:
        """Take the grade unless a better one is held."""
        if self.certificate is None or grade.rank > self.certificate.rank:
            self.certificate = grade

    def check_in(self, bound: int) -> bool:
        """Take a bound that a certificate file proves; whether anything changed."""
        before = (self.certificate, self.checked_bound)
        if self.certificate is not Certificate.CHECKED:
            if self.plan is not None and self.plan.value == bound:
                self.certificate, self.checked_bound = Certificate.CHECKED, None
            elif self.checked_bound is None or self.sign * bound > self.sign * self.checked_bound:
                self.checked_bound = bound
        return (self.certificate, self.checked_bound) != before

    @property
    def word(self) -> str:
        """``certified`` (a file that the checker accepts proves the optimum), ``solver-proven``, or ``open``."""
        if not self.proven:
            return "open"
        return "certified" if self.certificate is Certificate.CHECKED else "solver-proven"

    @property
    def gap(self) -> float | None:
        """Of the plan to the bound."""
        return relative(self.plan.value if self.plan else None, self.bound.value if self.bound else None, self.sign)

    @property
    def checked_gap(self) -> float | None:
        """Of the plan to the bound that a certificate file proves."""
        return relative(self.plan.value if self.plan else None, self.certified, self.sign)

    def references(self, name: str) -> list[RunRecord]:
        """What is known, as records of kind ``reference``: one with the objective of the plan, one with the bound."""
        known_of = partial(
            RunRecord,
            instance=name,
            instance_hash=self.instance_hash,
            problem=self.problem,
            sense=self.sense,
            kind="reference",
            unit=self.unit,
        )
        found = []
        if self.plan is not None:
            found.append(known_of(method=f"{self.plan.method}*", objective=self.plan.value))
        if self.bound is not None:
            found.append(known_of(method=f"{self.bound.method}*", bound=self.bound.value))
        return found
