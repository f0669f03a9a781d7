"""A training as a run: identified, recorded and resumed like a run of a method."""

from __future__ import annotations

import multiprocessing
import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures import TimeoutError as NotYet
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cached_property
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import Any

from mapgap.catalogue import registry
from mapgap.core import InputError, InstanceBase, Status, Stop, resolve
from mapgap.execution import limits
from mapgap.execution.progress import Tell, silence
from mapgap.execution.sweep import Job
from mapgap.problems.neuron_masking import PROBLEM
from mapgap.records.environment import cpu_model, revision, versions
from mapgap.records.record import RunRecord, run_key

TRAINER = "federated_training:measure"
EXAMPLE = registry.folder("studies").resolve().parent / "examples" / "federated_training" / "src"
"""What trains is no part of the library: a package of its own among the examples, and where it lies in a checkout."""
SCHEMES = ("sync", "async", "soft", "elfish", "optimal", "optimal_neurons")
RIVALS = ("uniform", "fedprox", "dropped")
"""What others than ELFISH do about stragglers."""
KIND = "training"
PREFIX = "train_"
"""What a record calls a training is its scheme with this in front: ``train_elfish``."""
LOOK_S = 0.2
"""Between two looks for an interrupt."""

Submit = Callable[..., "Future[dict[str, Any]]"]


@dataclass(frozen=True)
class Options:
    """How a fleet trains.

    Attributes
    ----------
    scheme : str
        One of ``SCHEMES`` or ``RIVALS``.
    cycles : int
        Simulated time, in cycle times of the instance.
    iid : bool
    batch : int
    rate : float
        Learning rate.
    mixing : float
        Weight of an upload in ``async``.
    proximal : float
        Weight of the pull towards the global model in ``fedprox``; part of the identity only there.
    network : str
        The library network that the instance was expanded from.
    """

    scheme: str
    cycles: int = 30
    iid: bool = True
    batch: int = 16
    rate: float = 0.05
    mixing: float = 0.5
    network: str = "digits_cnn"
    proximal: float = 0.0


@dataclass(frozen=True)
class TrainingJob(Job):
    """One training of a fleet.

    No time limit holds (0 in the record): a training ends when its simulated time is over. Its record has no plan and
    no objective; ``notes`` are those of :func:`measure`.
    """

    instance: InstanceBase
    training: Options
    seed: int = 0
    workers: int = 1

    @property
    def name(self) -> str:
        """The scheme as a record calls it."""
        return PREFIX + self.training.scheme

    @property
    def options(self) -> dict[str, Any]:
        """All of the training but the scheme; part of its identity."""
        left = ("scheme",) if self.training.scheme == "fedprox" else ("scheme", "proximal")
        return {name: value for name, value in asdict(self.training).items() if name not in left}

    def key_on(self, digest: str) -> str:
        return run_key(digest, self.name, self.options, 0.0, None, self.workers, self.seed)

    def execute(self, plugins: tuple[Path, ...] = (), tell: Tell = silence) -> RunRecord:
        """Train in a process of the pool; an interrupt is recorded as such, and resumed by the next start."""
        return self.execute_in(POOL.submit)

    def execute_in(self, submit: Submit) -> RunRecord:
        """Train where ``submit(function, *arguments)`` calls the function."""
        started = datetime.now(UTC).isoformat(timespec="seconds")
        begin = time.perf_counter()
        notes, error = _wait(submit(measure, self.instance.to_json(), asdict(self.training), self.seed))
        interrupted = notes is None and error is None
        return RunRecord(
            instance=self.instance.name,
            instance_hash=self.instance.content_hash,
            problem=self.instance.problem,
            sense=PROBLEM.sense,
            method=self.name,
            kind=KIND,
            options=self.options,
            seed=self.seed,
            workers=self.workers,
            status=Status.UNKNOWN,
            stop=Stop.INTERRUPTED if interrupted else Stop.DONE if error is None else Stop.ERROR,
            wall_s=time.perf_counter() - begin,
            reason="a training has no plan",
            error=error,
            notes=notes or {},
            versions=versions() | {"scikit-learn": version("scikit-learn")},
            revision=revision(),
            cpu=cpu_model(),
            started=started,
        )


def available() -> bool:
    """Whether trainings can be run: their package is there, installed or in this checkout, and scikit-learn."""
    if EXAMPLE.is_dir() and str(EXAMPLE) not in sys.path:
        sys.path.append(str(EXAMPLE))
    return all(map(find_spec, (TRAINER.partition(":")[0], "sklearn", "threadpoolctl")))


def measure(instance: dict[str, Any], options: dict[str, Any], seed: int) -> dict[str, Any]:
    """What the package notes of a training.

    Raises
    ------
    InputError
        The package is not there, or what it asks for.
    """
    if not available():
        raise InputError("training: expected federated_training and scikit-learn, found neither or one; see examples")
    found: dict[str, Any] = resolve(TRAINER)(instance, Options(**options), seed)
    return found


def _wait(future: Future[dict[str, Any]]) -> tuple[dict[str, Any] | None, str | None]:
    """Notes, or an error, or neither after an interrupt."""
    while True:
        try:
            return future.result(timeout=LOOK_S), None
        except NotYet:
            if limits.INTERRUPT.is_set():
                future.cancel()
                return None, None
        except Exception as error:
            return None, f"{type(error).__name__}: {error}"


class _Pool:
    """Processes that stay, because importing takes longer than a short training; started by the first training."""

    def __init__(self) -> None:
        self._lock = Lock()

    def submit(self, function: Callable[..., dict[str, Any]], *arguments: Any) -> Future[dict[str, Any]]:
        with self._lock:
            return self._processes.submit(function, *arguments)

    @cached_property
    def _processes(self) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(os.cpu_count(), mp_context=multiprocessing.get_context("spawn"))


POOL = _Pool()
