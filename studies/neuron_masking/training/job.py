"""A training as a run: identified, recorded and resumed like a run of a method."""

from __future__ import annotations

import json
import multiprocessing
import os
import threading
import time
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures import TimeoutError as NotYet
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from mapgap.catalogue import registry
from mapgap.core import InstanceBase, Status, Stop
from mapgap.execution import limits
from mapgap.execution.sweep import Job
from mapgap.records.environment import cpu_model, revision, versions
from mapgap.records.record import RunRecord
from mapgap.studies.neuron_masking.training.federated import Options, train

KIND = "training"
PREFIX = "train_"
"""A training's method is named after its scheme: ``train_elfish``."""
_lock = threading.Lock()
_shared: ProcessPoolExecutor | None = None


@dataclass(frozen=True)
class TrainingJob(Job):
    """One training of a fleet; ``options`` are those of
    :class:`mapgap.studies.neuron_masking.training.federated.Options`, but the scheme.

    No time limit holds (``time_s`` is 0): a training ends when its simulated time is over. Its record has no plan and
    no objective; ``notes`` hold ``curve`` (time in cycle times, accuracy), ``kept`` (mean
    share by device and layer), ``uploads`` and ``cpu_s``.
    """

    @classmethod
    def of(cls, instance: InstanceBase, options: Options, seed: int) -> TrainingJob:
        """The run of a training; all options are part of its identity."""
        named = asdict(options)
        scheme = named.pop("scheme")
        return cls(instance, PREFIX + scheme, time_s=0.0, seed=seed, options=named)

    def execute(self, plugins: tuple[Path, ...] = ()) -> dict[str, Any]:
        """Train in a process of the pool; an interrupt is recorded as such, and resumed by the next start."""
        started = datetime.now(UTC).isoformat(timespec="seconds")
        begin = time.perf_counter()
        scheme = self.method.removeprefix(PREFIX)
        future = _pool().submit(_train, self.instance.to_json(), {"scheme": scheme, **self.options}, self.seed)
        notes, error = _wait(future)
        interrupted = notes is None and error is None
        stop = Stop.INTERRUPTED if interrupted else Stop.DONE if error is None else Stop.ERROR
        record = RunRecord(
            instance=self.instance.name,
            instance_hash=self.instance.content_hash,
            problem=self.instance.problem,
            sense=registry.problems()[self.instance.problem].sense,
            method=self.method,
            kind=KIND,
            options=dict(self.options),
            seed=self.seed,
            workers=self.workers,
            time_limit_s=self.time_s,
            memory_limit_mb=self.memory_mb,
            unit="",
            status=Status.UNKNOWN,
            stop=stop,
            wall_s=time.perf_counter() - begin,
            reason="a training has no plan",
            error=error,
            notes=notes or {},
            versions=versions() | {"scikit-learn": version("scikit-learn")},
            revision=revision(),
            cpu=cpu_model(),
            started=started,
        )
        return record.to_json()


def _wait(future: Future[dict[str, Any]]) -> tuple[dict[str, Any] | None, str | None]:
    """Notes, or an error, or neither after an interrupt."""
    while True:
        try:
            return future.result(timeout=0.2), None
        except NotYet:
            if limits.INTERRUPT.is_set():
                future.cancel()
                return None, None
        except Exception as error:
            return None, f"{type(error).__name__}: {error}"


def _pool() -> ProcessPoolExecutor:
    """Processes that stay, because importing takes longer than a short training."""
    global _shared
    with _lock:
        if _shared is None:
            _shared = ProcessPoolExecutor(os.cpu_count(), mp_context=multiprocessing.get_context("spawn"))
        return _shared


def _train(instance: dict[str, Any], options: dict[str, Any], seed: int) -> dict[str, Any]:
    """In the pool: train on one thread; the pool uses the cores."""
    from threadpoolctl import threadpool_limits

    data = registry.problems()[instance["problem"]].instance_type.model_validate_json(json.dumps(instance))
    begin = time.process_time()
    with threadpool_limits(1):
        outcome = train(data, Options(**options), seed)
    return {
        "curve": [[round(moment, 6), round(accuracy, 6)] for moment, accuracy in outcome.curve],
        "kept": outcome.kept,
        "uploads": outcome.uploads,
        "cpu_s": time.process_time() - begin,
    }
