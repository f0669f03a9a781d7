"""The record of one run: what a sweep stores, a report reads and ``solve --json`` prints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from mapgap.core import Status, Stop, TracePoint
from mapgap.execution.worker import plain


@dataclass(frozen=True)
class RunRecord:
    """Everything one run showed; one JSON line of a sweep.

    Attributes
    ----------
    status, stop : str
        What is proven and why the run ended, after all checks. A run stopped by a limit is never OPTIMAL.
    objective : int or None
        ``evaluate`` of ``plan``; ``None`` without a verified plan.
    bound : int or None
        Best bound the method proved; ``None`` where none is known or where the plans refute it.
    gap : float or None
        ``|objective - bound| / |bound|``; ``None`` where either is missing.
    certificate : str or None
        ``enumerated`` or ``claimed`` for OPTIMAL.
    wall_s, build_s : float or None
        Seconds of the outer call of ``Method.run``, imports excluded; of them model building (the method's note).
    peak_mb : float or None
        Peak resident set of the process tree; ``None`` for a run inside this process.
    trace : list of TracePoint
        Improvements with verified objectives.
    error : str or None
        What went wrong: the exception of the method, how its process died, or which claim was refuted.
    refuted : bool
        A plan, objective, bound or status that the method claimed does not hold; ``violations`` says more.
    plan : dict or None
        The best verified plan; in a refuted run the plan that failed.
    """

    instance: str
    instance_hash: str
    problem: str
    sense: str
    method: str
    kind: str
    options: Mapping[str, Any]
    seed: int
    workers: int
    time_limit_s: float
    memory_limit_mb: int | None
    unit: str
    status: str = Status.UNKNOWN
    stop: str = Stop.ERROR
    objective: int | None = None
    bound: int | None = None
    gap: float | None = None
    certificate: str | None = None
    wall_s: float | None = None
    build_s: float | None = None
    peak_mb: float | None = None
    reason: str = ""
    error: str | None = None
    refuted: bool = False
    violations: Sequence[Mapping[str, Any]] = ()
    terms: Mapping[str, Any] = field(default_factory=dict)
    notes: Mapping[str, Any] = field(default_factory=dict)
    trace: Sequence[TracePoint] = ()
    output: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    revision: str | None = None
    cpu: str = ""
    started: str = ""
    plan: Mapping[str, Any] | None = None

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data; :meth:`from_json` is the inverse."""
        data = {f.name: getattr(self, f.name) for f in fields(self)}
        data["trace"] = [point.to_json() for point in self.trace]
        converted: dict[str, Any] = plain(data)
        return converted

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> RunRecord:
        known = {f.name for f in fields(cls)}
        values = {key: value for key, value in data.items() if key in known}
        values["trace"] = [TracePoint(**point) for point in data.get("trace", ())]
        return cls(**values)

    @property
    def exit_code(self) -> int:
        """0 a verified plan or an answered question, 3 infeasible, 4 nothing found, 5 refuted, 130 interrupted."""
        if self.refuted:
            return 5
        if self.stop == Stop.INTERRUPTED:
            return 130
        if self.status == Status.INFEASIBLE:
            return 3
        answered = self.objective is not None or (self.kind == "bound" and self.bound is not None)
        return 0 if answered else 4


def gap(objective: int | None, bound: int | None) -> float | None:
    """``|objective - bound| / |bound|``; ``None`` where either is missing or the bound is 0 and not attained."""
    if objective is None or bound is None:
        return None
    if bound == 0:
        return 0.0 if objective == 0 else None
    return abs(objective - bound) / abs(bound)
