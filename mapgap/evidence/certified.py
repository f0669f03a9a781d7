"""Runs of a sweep whose bound is certified at once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from mapgap.core import Budget, Certificate, Status
from mapgap.evidence.prove import prove
from mapgap.execution.progress import Tell, silence
from mapgap.execution.sweep import MethodJob
from mapgap.records.record import RunRecord


@dataclass(frozen=True)
class CertifiedJob(MethodJob):
    """A run, then, in no run's time, a certificate of its bound, or of that there is no plan.

    The record says ``checked`` if there is one that the checker accepts. No file is kept.
    """

    def execute(self, plugins: tuple[Path, ...] = (), tell: Tell = silence) -> RunRecord:
        record = super().execute(plugins, tell)
        if record.bound is None and record.status != Status.INFEASIBLE:
            return record
        proof = prove(self.instance, record.bound, Budget(self.time_s), None)
        return replace(record, certificate=Certificate.CHECKED) if proof.size else record
