"""What the ledger holds of one instance: plan, bound, certificate, and the history of how they came about."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from mapgap.core import Certificate, Status
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


class Fact(Strict):
    """A line of the journal: what one run, certificate or submission has shown of an instance, as it was verified.

    Attributes
    ----------
    generation : int
        How often the instance had changed: its content hash in the latest generation is the one that counts.
    plan, bound, checked : int, optional
        The objective of a plan; a bound; a bound that a certificate file proves.
    infeasible : bool
        A certificate file proves that there is no plan.
    grade : Certificate, optional
        Of the optimum, if plan and bound meet.
    witness
        The plan, as JSON.
    method, started, time_limit_s, workers, versions, revision
        Of the run.
    by, source : str
        Who, if not the method; and the file it came from.
    """

    instance: str
    instance_hash: str
    generation: int = 0
    problem: str
    unit: str
    sense: str = Field(pattern="^(min|max)$")
    plan: int | None = None
    bound: int | None = None
    checked: int | None = None
    infeasible: bool = False
    grade: Certificate | None = None
    method: str
    started: str
    time_limit_s: float
    workers: int
    versions: dict[str, str]
    revision: str | None = None
    by: str = ""
    source: str = ""
    witness: Any = None

    @classmethod
    def of(cls, instance: str, record: RunRecord, origin: Origin = A_RUN, **shown: Any) -> Fact:
        """What a record shows."""
        clean = record.revision is not None and not record.revision.endswith("-dirty")
        keys = ("instance_hash", "problem", "unit", "sense", "method", "started", "time_limit_s", "workers")
        return cls(
            instance=instance,
            versions=dict(record.versions),
            revision=record.revision if clean else None,
            by=origin.by,
            source=origin.source,
            **{key: getattr(record, key) for key in keys},
            **shown,
        )

    def finding(self, value: int) -> Finding:
        keys = ("method", "started", "time_limit_s", "workers", "versions")
        return Finding(value=value, **{key: getattr(self, key) for key in keys})


class Improvement(Strict):
    """One step of an entry's history.

    Attributes
    ----------
    what : {"plan", "bound", "checked", "infeasible"}
        A better plan; a better bound; a bound that a certificate file proves from now on; that there is no plan.
    value : int, optional
        In the entry's unit; ``None`` for ``infeasible``.
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

    what: str = Field(pattern="^(plan|bound|checked|infeasible)$")
    value: int | None = None
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
    infeasible : bool
        A certificate file proves that there is no plan. The word of a solver does not enter.
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
    infeasible: bool = False
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
    def known(self) -> bool:
        """Is anything known?"""
        return self.plan is not None or self.bound is not None or self.infeasible

    @property
    def proven(self) -> bool:
        """The plan meets the bound."""
        return self.plan is not None and self.bound is not None and self.plan.value == self.bound.value

    def take(self, fact: Fact) -> list[str]:
        """Take what a fact improves; which of ``plan``, ``bound``, ``checked`` and ``infeasible``."""
        taken = []
        if fact.infeasible and not self.infeasible:
            self._remember("infeasible", None, fact)
            self.infeasible = True
            taken.append("infeasible")
        if fact.plan is not None and (self.plan is None or self.sign * fact.plan < self.sign * self.plan.value):
            self._remember("plan", fact.plan, fact)
            self.plan = fact.finding(fact.plan)
            taken.append("plan")
        if fact.bound is not None and (self.bound is None or self.sign * fact.bound > self.sign * self.bound.value):
            self._remember("bound", fact.bound, fact)
            self.bound = fact.finding(fact.bound)
            taken.append("bound")
        if self.proven:
            # A plan of one run that meets the bound of another is as proven as either.
            self.raise_certificate(fact.grade or Certificate.CLAIMED)
            if self.checked_bound is not None:
                self.check_in(self.checked_bound)
        if fact.checked is not None and self.check_in(fact.checked):
            self._remember("checked", fact.checked, fact)
            taken.append("checked")
        return taken

    def join(self, other: Entry) -> bool:
        """Take what another entry of the same instance knows better, from a ledger that was written apart; whether its
        plan is better."""
        better = other.plan is not None and (
            self.plan is None or self.sign * other.plan.value < self.sign * self.plan.value
        )
        if better:
            self.plan = other.plan
        if other.bound is not None and (
            self.bound is None or self.sign * other.bound.value > self.sign * self.bound.value
        ):
            self.bound = other.bound
        self.infeasible = self.infeasible or other.infeasible
        steps = {step.model_dump_json(): step for step in (*self.history, *other.history)}
        self.history = sorted(steps.values(), key=lambda step: step.date)[-HISTORY:]
        if self.proven:
            self.raise_certificate(Certificate.CLAIMED)
            if other.proven and other.certificate is not None:
                self.raise_certificate(other.certificate)
        for checked in (self.checked_bound, other.certified):
            if checked is not None:
                self.check_in(checked)
        return better

    def knows(self, other: Entry) -> bool:
        """Is another entry of the same instance no better in anything? (What it remembers besides does not count.)"""
        joined = self.model_copy()
        joined.join(other)
        return joined.model_copy(update={"history": self.history}) == self

    def _remember(self, what: str, value: int | None, fact: Fact) -> None:
        """Add a step to the history, before what it replaces is forgotten; the oldest steps are dropped."""
        step = Improvement(
            what=what,
            value=value,
            by=fact.by or fact.method,
            date=fact.started,
            source=fact.source or None,
            version=fact.versions.get("mapgap", ""),
            revision=fact.revision,
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
        """``certified`` (a file that the checker accepts proves the optimum, or that there is no plan),
        ``solver-proven``, or ``open``."""
        if self.infeasible:
            return "certified"
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
        if self.infeasible:
            found.append(known_of(method="certificate*", status=Status.INFEASIBLE))
        return found
