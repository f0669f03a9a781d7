"""Sweeps: any methods on any instances under one budget, one JSON line per finished run.

A run is identified by (instance hash, method, options, budget, seed). Lines are appended and flushed one by one, so a
sweep that is killed at any moment keeps every finished run; the next start skips them, after repairing a torn last
line. Every run has a process of its own (:mod:`mapgap.execution.run`), and the harness measures around it.
"""

from __future__ import annotations

import contextlib
import functools
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any, get_args

from pydantic import BaseModel, ConfigDict, Field, field_validator

from mapgap.catalogue import registry
from mapgap.catalogue.files import find_instances, load_instance, load_model
from mapgap.core import Budget, InputError, InstanceBase, Kind, suggest
from mapgap.core.storage import make_folder
from mapgap.execution import cluster
from mapgap.execution.changes import Changed, changes_since
from mapgap.execution.progress import Event, Tell, silence
from mapgap.execution.run import check_options, interrupt_all, run_method
from mapgap.records.environment import cores
from mapgap.records.files import append, locked, read_runs, repair
from mapgap.records.record import RunRecord, run_key
from mapgap.records.runs import Runs

#: Seconds of a run that anybody waits for; threads of one run.
LONGEST_S, MOST_WORKERS = 1e8, 4096
#: Seeds that every engine takes.
LARGEST_SEED = 2**31 - 1


class BudgetSpec(BaseModel):
    """Limits of every run of a sweep."""

    model_config = ConfigDict(extra="forbid")

    time_s: float = Field(default=60.0, gt=0, le=LONGEST_S)
    memory_mb: int | None = Field(default=None, gt=0)
    workers: int = Field(default=1, ge=1, le=MOST_WORKERS)


class BenchSpec(BaseModel):
    """A sweep file: ``instances`` by name, path or glob, ``tags`` that all must carry, ``methods`` by glob.

    ``kinds``, if any, restricts the methods; ``method_options`` maps a method name to option values.
    """

    model_config = ConfigDict(extra="forbid")

    schema_version: int = Field(default=1, alias="schema", ge=1, le=1)
    name: str = Field(min_length=1, max_length=100)
    instances: list[str] = Field(min_length=1)
    tags: list[str] = []
    methods: list[str] = Field(min_length=1)
    kinds: list[Kind] = []
    method_options: dict[str, dict[str, Any]] = {}
    budget: BudgetSpec = BudgetSpec()
    seeds: list[Annotated[int, Field(ge=0, le=LARGEST_SEED)]] = Field(default=[0], min_length=1)

    @field_validator("name")
    @classmethod
    def _is_part_of_a_file_name(cls, name: str) -> str:
        if "/" in name or not name.isprintable() or name.startswith("."):
            raise ValueError(f"expected a word that can name a file, found {name!r}")
        return name


class Job(ABC):
    """One run to do: who it is, and how it is done."""

    instance: InstanceBase
    workers: int
    """Threads that the run uses."""

    @property
    def key(self) -> str:
        """Identity of the run; two jobs with one key are the same run."""
        return self.key_on(self.instance.content_hash)

    @abstractmethod
    def key_on(self, digest: str) -> str:
        """The key, given the content hash of the instance, which is slow to compute for large ones.

        It is that of the record (:attr:`mapgap.records.record.RunRecord.key`).
        """

    @abstractmethod
    def execute(self, plugins: tuple[Path, ...] = (), tell: Tell = silence) -> RunRecord:
        """Do the run; returns its record."""


@dataclass(frozen=True)
class MethodJob(Job):
    """A method of the registry (or of a plug-in) on an instance under a budget; the record may do without its plan."""

    instance: InstanceBase
    method: str
    time_s: float
    memory_mb: int | None = None
    workers: int = 1
    seed: int = 0
    options: Mapping[str, Any] = field(default_factory=dict)
    keeps_plan: bool = True

    def key_on(self, digest: str) -> str:
        return run_key(digest, self.method, self.options, self.time_s, self.memory_mb, self.workers, self.seed)

    def execute(self, plugins: tuple[Path, ...] = (), tell: Tell = silence) -> RunRecord:
        """Do the run in a process of its own."""
        for plugin in plugins:  # a process of a cluster has not seen them yet
            if self.method not in registry.methods(self.instance.problem):
                registry.load_plugin(plugin)
        method = registry.methods(self.instance.problem)[self.method]
        budget = Budget(time_s=self.time_s, memory_mb=self.memory_mb, workers=self.workers, seed=self.seed)
        record = run_method(self.instance, method, budget, options=dict(self.options), plugins=plugins, tell=tell)
        return record if self.keeps_plan else replace(record, plan=None)


@dataclass(frozen=True)
class SweepBegan(Event):
    """A sweep begins.

    Attributes
    ----------
    total, done : int
        Runs in all; of them those that an earlier start has finished.
    parallel, workers : int
        Processes at a time; threads of a run.
    cores : int or None
        Of this machine; ``None`` where a cluster does the runs.
    """

    total: int
    done: int
    parallel: int
    workers: int
    cores: int | None

    @property
    def oversubscribed(self) -> bool:
        """More threads than cores: times will suffer."""
        return self.cores is not None and self.parallel * self.workers > self.cores


@dataclass(frozen=True)
class RunEnded(Event):
    """A run of a sweep ended: runs finished by now, runs in all, what it showed."""

    done: int
    total: int
    record: RunRecord


@dataclass(frozen=True)
class SweepEnded(Event):
    """What a sweep's time went into.

    Attributes
    ----------
    runs : int
        Runs of this start.
    parallel : int
        Slots that were filled.
    elapsed_s, measured_s : float
        Of the sweep; of all methods together.
    """

    runs: int
    parallel: int
    elapsed_s: float
    measured_s: float

    @property
    def around_s(self) -> float:
        """Seconds per run beside what was measured.

        They include the start of warm processes and slots that wait for the last run; of a few runs they say little.
        """
        return max(0.0, self.elapsed_s * self.parallel - self.measured_s) / self.runs


def keys_of(jobs: Iterable[Job]) -> list[str]:
    """The key of every job."""
    listed = list(jobs)
    return [job.key_on(digest) for job, digest in zip(listed, digests_of(listed), strict=True)]


def digests_of(jobs: Iterable[Job]) -> list[str]:
    """The content hash of every job's instance; one that several jobs share is hashed once."""
    found: dict[int, str] = {}
    return [
        found[id(job.instance)]
        if id(job.instance) in found
        else found.setdefault(id(job.instance), job.instance.content_hash)
        for job in jobs
    ]


def load_spec(path: Path) -> BenchSpec:
    """Read a sweep file; every error names file, line and field."""
    return load_model(path, BenchSpec)


def jobs_of(spec: BenchSpec) -> list[Job]:
    """All runs of a sweep, in order of instance, method, seed.

    Raises
    ------
    InputError
        A pattern that matches nothing.
    """
    found: list[Job] = []
    limits = spec.budget
    problems: dict[str, list[str]] = {}
    for pattern in spec.instances:
        names = find_instances(pattern)
        if not names:
            raise InputError(f"instances: {pattern!r}: expected the name, path or glob of an instance, found no match")
        for name in names:
            instance = load_instance(name)
            if not set(spec.tags) <= set(instance.tags):
                continue
            for method in problems.setdefault(instance.problem, _match(spec, instance.problem)):
                options = spec.method_options.get(method, {})
                found += [
                    MethodJob(instance, method, limits.time_s, limits.memory_mb, limits.workers, seed, options)
                    for seed in spec.seeds
                ]
    if not problems:
        raise InputError(f"tags: {spec.tags}: expected tags that some of the instances carry, found none")
    for pattern in spec.methods:
        if not any(fnmatchcase(name, pattern) for names in problems.values() for name in names):
            known = "; ".join(f"{problem}: {', '.join(registry.methods(problem))}" for problem in problems)
            kinds = f" of kind {' or '.join(spec.kinds)}" if spec.kinds else ""
            raise InputError(f"methods: {pattern!r}: expected a method{kinds} ({known}), found no match")
    _check_method_options(spec, problems)
    return list(dict(zip(keys_of(found), found, strict=True)).values())


def _check_method_options(spec: BenchSpec, problems: Mapping[str, Sequence[str]]) -> None:
    """Refuse options of methods that the sweep does not have, and options that a method does not have."""
    chosen = {name for names in problems.values() for name in names}
    for name, options in spec.method_options.items():
        if name not in chosen:
            expected = f"expected a method of this sweep ({', '.join(sorted(chosen))})"
            raise InputError(f"method_options: {expected}, found {name!r}{suggest(name, chosen)}")
        for problem, names in problems.items():
            if name in names:
                check_options(registry.methods(problem)[name], options)


def _match(spec: BenchSpec, problem: str) -> list[str]:
    """Methods of a problem in the order of the patterns; a sweep over several problems may name some of one only."""
    kinds = spec.kinds or get_args(Kind)
    names = [method.name for method in registry.methods(problem).values() if method.kind in kinds]
    return list(dict.fromkeys(name for pattern in spec.methods for name in names if fnmatchcase(name, pattern)))


def sweep(
    jobs: Sequence[Job],
    path: Path,
    *,
    parallel: int = 1,
    resume: bool = True,
    plugins: tuple[Path, ...] = (),
    tell: Tell = silence,
    dask: str | None = None,
) -> Runs:
    """Do every job that ``path`` does not hold yet and append its record; returns the records of all ``jobs``.

    It tells :class:`Changed` for whatever is different from the runs of the file, :class:`SweepBegan`, after every run
    :class:`RunEnded`, and :class:`SweepEnded` if there was a run to do.
    An interrupt stops the running processes and re-raises; finished runs stay in the file, which no other sweep can
    write to meanwhile. A run that was killed from outside is done once more at the next start, as its second attempt.
    With ``dask``, the address (or the scheduler file) of a ``dask.distributed`` cluster, its workers do the runs,
    ``parallel`` is theirs to decide, and this process writes.
    """
    make_folder(path.parent)
    with locked(path, fresh=not resume):
        return _sweep(jobs, path, parallel, plugins, tell, dask)


def _sweep(
    jobs: Sequence[Job], path: Path, parallel: int, plugins: tuple[Path, ...], tell: Tell, dask: str | None
) -> Runs:
    """:func:`sweep` while the run file is held."""
    repair(path)
    before = read_runs(path)
    done = {record.key: record for record in before if not record.to_repeat}
    killed = {record.key for record in before if record.killed}
    digests = digests_of(jobs)
    keys = [job.key_on(digest) for job, digest in zip(jobs, digests, strict=True)]
    todo = {key: job for key, job in zip(keys, jobs, strict=True) if key not in done}
    names: dict[str, set[str]] = {}
    for job, digest in zip(jobs, digests, strict=True):
        names.setdefault(job.instance.name, set()).add(digest)
    for words in changes_since(before, names):
        tell(Changed(words))
    total, left, begun, measured_s = len(jobs), len(todo), time.perf_counter(), 0.0
    workers = max((job.workers for job in jobs), default=1)
    tell(SweepBegan(total, total - left, parallel, workers, cores() if dask is None else None))
    with _executor(parallel, dask, tell) as (submit, completed):
        futures = {submit(job, plugins): key for key, job in todo.items()}
        try:
            for future in completed(futures):
                key = futures[future]
                if dask is None:
                    record = future.result()
                else:
                    record = cluster.checked(cluster.result(future, dask), key, todo[key].instance)
                if key in killed:
                    record = replace(record, attempt=2)
                append(path, record)
                done[key] = record
                left -= 1
                measured_s += record.wall_s or 0.0
                tell(RunEnded(total - left, total, record))
        except BaseException as error:
            for future in futures:
                future.cancel()
            if isinstance(error, (KeyboardInterrupt, SystemExit)):
                interrupt_all()
            raise
    if todo and dask is None:
        tell(SweepEnded(len(todo), min(parallel, len(todo)), time.perf_counter() - begun, measured_s))
    return Runs(done[key] for key in keys)


def perform(job: Job, plugins: tuple[Path, ...] = (), tell: Tell = silence) -> RunRecord:
    """Do one run, here or in a process of a cluster."""
    return job.execute(plugins, tell)


@contextlib.contextmanager
def _executor(parallel: int, dask: str | None, tell: Tell) -> Iterator[tuple[Callable[..., Any], Callable[..., Any]]]:
    """``submit(job, plugins)`` and ``as_completed``, of threads (each run has a process) or of a dask cluster."""
    if dask is None:
        with ThreadPoolExecutor(max_workers=parallel) as pool:
            yield functools.partial(pool.submit, functools.partial(perform, tell=tell)), as_completed
        return
    with cluster.connect(dask) as client:
        # A worker that dies gives its run to another one; pure=False: every job is a run of its own.
        yield functools.partial(client.submit, perform, pure=False, retries=3), cluster.library(dask).as_completed


def bench(
    spec_path: Path,
    *,
    jobs: int = 1,
    resume: bool = True,
    out: Path | None = None,
    plugins: tuple[Path, ...] = (),
    tell: Tell = silence,
    dask: str | None = None,
) -> Path:
    """Run a sweep file; returns the run file (default: ``<spec name>.jsonl`` beside the spec)."""
    spec = load_spec(spec_path)
    path = out or spec_path.with_name(f"{spec.name}.jsonl")
    sweep(jobs_of(spec), path, parallel=jobs, resume=resume, plugins=plugins, tell=tell, dask=dask)
    return path
