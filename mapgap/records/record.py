"""The record of one run: what a sweep stores, a report reads and ``solve --json`` prints."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from mapgap.core import RECOMPUTED, UNCONFIRMED, Certificate, Status, Stop, TracePoint

LONGEST_BITS = 4096
"""Of an integer in a record: Python reads no number of more than 4,300 digits."""


@dataclass(frozen=True)
class RunRecord:
    """Everything one run showed; one JSON line of a sweep.

    Attributes
    ----------
    kind : str
        That of the method; ``training`` for a training of a federated fleet, which has no plan; ``reference`` for what
        was known before the runs (see :meth:`mapgap.evidence.ledger.Ledger.references`), which is no run.
    params : mapping
        All parameters of the algorithm with which it ran, those of ``options`` among them.
    time_limit_s : float
        0 where no limit held.
    status, stop : str
        What is proven and why the run ended, after all checks. A run stopped by a limit is never OPTIMAL.
    objective : int or None
        ``evaluate`` of ``plan``; ``None`` without a verified plan.
    bound : int or None
        Best bound the method proved; ``None`` where none is known or where the plans refute it.
    found_by, proved_by : str or None
        Who found ``plan`` and who proved ``bound``: the method, or the member of a portfolio.
    gap : float or None
        See :func:`relative`.
    certificate : str or None
        ``enumerated`` or ``claimed`` for OPTIMAL; ``checked`` where a certificate was made after the run.
    wall_s, build_s : float or None
        Seconds of the outer call of ``Method.run``, imports excluded; of them model building (the method's note).
    peak_mb : float or None
        Peak resident set of the process tree; ``None`` for a run inside this process.
    trace : list of TracePoint
        Improvements with verified objectives.
    error : str or None
        What went wrong: the exception of the method, how its process died, or which claim was refuted.
    killed : bool
        The run was ended from outside (the system was out of memory, somebody sent a signal) and handed in no result.
    attempt : int
        2 for the repetition of a run that was killed from outside.
    refuted : bool
        A plan, objective, bound or status that the method claimed does not hold; ``violations`` says more.
    load : float or None
        Processes that wanted to run, per core of the machine, in the minute before, other runs of its sweep
        among them; ``None`` where it is not recorded, or the system does not tell.
    plan : dict or None
        The best verified plan; in a refuted run the plan that failed.
    """

    instance: str
    instance_hash: str
    problem: str
    sense: str
    method: str
    kind: str
    options: Mapping[str, Any] = field(default_factory=dict)
    params: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    workers: int = 1
    time_limit_s: float = 0.0
    memory_limit_mb: int | None = None
    unit: str = ""
    status: str = Status.UNKNOWN
    stop: str = Stop.ERROR
    objective: int | None = None
    bound: int | None = None
    found_by: str | None = None
    proved_by: str | None = None
    gap: float | None = None
    certificate: str | None = None
    wall_s: float | None = None
    build_s: float | None = None
    peak_mb: float | None = None
    reason: str = ""
    error: str | None = None
    killed: bool = False
    attempt: int = 1
    refuted: bool = False
    violations: Sequence[Mapping[str, Any]] = ()
    terms: Mapping[str, Any] = field(default_factory=dict)
    notes: Mapping[str, Any] = field(default_factory=dict)
    trace: Sequence[TracePoint] = ()
    output: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    revision: str | None = None
    cpu: str = ""
    load: float | None = None
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
    def sign(self) -> int:
        """1 for a minimisation, -1 for a maximisation: times it, smaller is better."""
        return -1 if self.sense == "max" else 1

    @property
    def word(self) -> str:
        """``certified`` (a file that the checker accepts proves it), ``solver-proven``, or ``open``."""
        if self.certificate == Certificate.CHECKED:
            return "certified"
        return "solver-proven" if self.status in (Status.OPTIMAL, Status.INFEASIBLE) else "open"

    @property
    def sure_bound(self) -> int | None:
        """The bound, unless it is the word of engines that nobody has confirmed; then what rests on none of them."""
        known: int | None = self.notes.get(RECOMPUTED) if self.notes.get(UNCONFIRMED) else self.bound
        return known

    @property
    def to_repeat(self) -> bool:
        """The run says nothing about its method: it was interrupted, or killed from outside for the first time."""
        return self.stop == Stop.INTERRUPTED or (self.killed and self.attempt == 1)

    @property
    def key(self) -> str:
        """Identity of the run: instance, method, options, budget and seed."""
        return run_key(
            self.instance_hash,
            self.method,
            self.options,
            self.time_limit_s,
            self.memory_limit_mb,
            self.workers,
            self.seed,
        )

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


def relative(value: int | None, reference: int | None, sign: int) -> float | None:
    """``sign (value - reference) / |reference|``: the share by which a value misses a bound or the best value known.

    ``None`` where either is missing, where the reference is 0 and missed, and where the value is *better* than the
    reference: then one of them is wrong (see :mod:`mapgap.evidence.contradictions`), and no gap is.

    Parameters
    ----------
    sign : int
        1 for a minimisation, -1 for a maximisation.
    """
    if value is None or reference is None or sign * value < sign * reference:
        return None
    if reference == 0:
        return 0.0 if value == 0 else None
    return abs(value - reference) / abs(reference)


def plain(value: Any) -> Any:
    """JSON data for any note: tuples as lists, NumPy numbers as numbers, non-finite floats as ``None``."""
    if value is None or isinstance(value, (bool, int)):
        return value if value is None or value.bit_length() <= LONGEST_BITS else hex(value)
    if isinstance(value, str):
        return str(value)  # an enumeration's member becomes its text
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item) for item in value]
    for convert in ("tolist", "to_json"):
        if hasattr(value, convert):
            return plain(getattr(value, convert)())
    return str(value)


def run_key(
    instance_hash: str,
    method: str,
    options: Mapping[str, Any],
    time_s: float,
    memory_mb: int | None,
    workers: int,
    seed: int,
) -> str:
    return json.dumps([instance_hash, method, dict(sorted(options.items())), time_s, memory_mb, workers, seed])
