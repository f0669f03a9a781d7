"""Sweeps: any methods on any instances under one budget, one JSON line per finished run.

A run is identified by (instance hash, method, options, budget, seed). Lines are appended and flushed one by one, so a
sweep that is killed at any moment keeps every finished run; the next start skips them, after repairing a torn last
line. Every run has a process of its own (:mod:`mapgap.execution.run`), and the harness measures around it.
"""

from __future__ import annotations

import contextlib
import functools
import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, ConfigDict, Field
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from mapgap.catalogue import registry
from mapgap.core import Budget, InputError, InstanceBase, Kind, Stop
from mapgap.records.files import append, read_runs, repair
from mapgap.records.record import RunRecord, run_key
from mapgap.records.runs import Runs


class BudgetSpec(BaseModel):
    """Limits of every run of a sweep."""

    model_config = ConfigDict(extra="forbid")

    time_s: float = Field(default=60.0, gt=0)
    memory_mb: int | None = Field(default=None, gt=0)
    workers: int = Field(default=1, ge=1)


class BenchSpec(BaseModel):
    """A sweep file: ``instances`` by name, path or glob, ``tags`` that all must carry, ``methods`` by glob.

    ``kinds``, if any, restricts the methods; ``method_options`` maps a method name to option values.
    """

    model_config = ConfigDict(extra="forbid")

    schema_version: int = Field(default=1, alias="schema", ge=1, le=1)
    name: str
    instances: list[str] = Field(min_length=1)
    tags: list[str] = []
    methods: list[str] = Field(min_length=1)
    kinds: list[Kind] = []
    method_options: dict[str, dict[str, Any]] = {}
    budget: BudgetSpec = BudgetSpec()
    seeds: list[int] = Field(default=[0], min_length=1)


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
    def execute(self, plugins: tuple[Path, ...] = ()) -> RunRecord:
        """Do the run; returns its record."""


@dataclass(frozen=True)
class MethodJob(Job):
    """A method of the registry (or of a plug-in) on an instance under a budget."""

    instance: InstanceBase
    method: str
    time_s: float
    memory_mb: int | None = None
    workers: int = 1
    seed: int = 0
    options: Mapping[str, Any] = field(default_factory=dict)

    def key_on(self, digest: str) -> str:
        return run_key(digest, self.method, self.options, self.time_s, self.memory_mb, self.workers, self.seed)

    def execute(self, plugins: tuple[Path, ...] = ()) -> RunRecord:
        """Do the run in a process of its own."""
        from mapgap.execution.run import run_method

        for plugin in plugins:  # a process of a cluster has not seen them yet
            if self.method not in registry.methods(self.instance.problem):
                registry.load_plugin(plugin)
        method = registry.methods(self.instance.problem)[self.method]
        budget = Budget(time_s=self.time_s, memory_mb=self.memory_mb, workers=self.workers, seed=self.seed)
        return run_method(self.instance, method, budget, options=dict(self.options), plugins=plugins)


def keys_of(jobs: Iterable[Job]) -> list[str]:
    """The key of every job; the content of an instance that several jobs share is hashed once."""
    digests: dict[int, str] = {}
    found = []
    for job in jobs:
        if id(job.instance) not in digests:
            digests[id(job.instance)] = job.instance.content_hash
        found.append(job.key_on(digests[id(job.instance)]))
    return found


def load_spec(path: Path) -> BenchSpec:
    """Read a sweep file; every error names file, line and field."""
    from mapgap.catalogue.files import load_model

    return load_model(path, BenchSpec)


def jobs_of(spec: BenchSpec) -> list[Job]:
    """All runs of a sweep, in order of instance, method, seed.

    Raises
    ------
    InputError
        A pattern that matches nothing.
    """
    from mapgap.catalogue.files import find_instances, load_instance

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
    return list(dict(zip(keys_of(found), found, strict=True)).values())


def _match(spec: BenchSpec, problem: str) -> list[str]:
    """Methods of a problem in the order of the patterns; a sweep over several problems may name some of one only."""
    kinds = spec.kinds or get_args(Kind)
    names = [method.name for method in registry.methods(problem).values() if method.kind in kinds]
    return list(dict.fromkeys(name for pattern in spec.methods for name in names if fnmatchcase(name, pattern)))


def sweep(
    jobs: list[Job],
    path: Path,
    *,
    parallel: int = 1,
    resume: bool = True,
    plugins: tuple[Path, ...] = (),
    progress: Callable[[int, int, RunRecord | None], None] | None = None,
    dask: str | None = None,
) -> Runs:
    """Do every job that ``path`` does not hold yet and append its record; returns the records of all ``jobs``.

    ``progress(done, total, record)`` is called after every run (once before the first with ``record=None``). An
    interrupt stops the running processes and re-raises; finished runs stay in the file. With ``dask``, the address (or
    the scheduler file) of a ``dask.distributed`` cluster, its workers do the runs, ``parallel`` is theirs to decide,
    and this process writes.
    """
    from mapgap.execution.run import interrupt_all

    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir():
        raise InputError(f"{path}: expected a run file, found a folder")
    if not resume and path.exists():
        path.unlink()
    repair(path)
    done = {r.key: r for r in (read_runs(path) if path.exists() else ()) if r.stop != Stop.INTERRUPTED}
    keys = keys_of(jobs)
    todo = {key: job for key, job in zip(keys, jobs, strict=True) if key not in done}
    total, left = len(jobs), len(todo)
    if progress:
        progress(total - left, total, None)
    with _executor(parallel, dask) as (submit, completed):
        futures = {submit(perform, job, plugins): key for key, job in todo.items()}
        try:
            for future in completed(futures):
                record = future.result()
                append(path, record)
                done[futures[future]] = record
                left -= 1
                if progress:
                    progress(total - left, total, record)
        except BaseException as error:
            for future in futures:
                future.cancel()
            if isinstance(error, (KeyboardInterrupt, SystemExit)):
                interrupt_all()
            raise
    return Runs(done[key] for key in keys)


def perform(job: Job, plugins: tuple[Path, ...] = ()) -> RunRecord:
    """Do one run, here or in a process of a cluster."""
    return job.execute(plugins)


@contextlib.contextmanager
def _executor(parallel: int, dask: str | None) -> Iterator[tuple[Callable[..., Any], Callable[..., Any]]]:
    """``submit`` and ``as_completed`` of local threads (each run has a process of its own) or of a dask cluster."""
    if dask is None:
        with ThreadPoolExecutor(max_workers=parallel) as pool:
            yield pool.submit, as_completed
        return
    try:
        import distributed
    except ModuleNotFoundError as error:
        raise InputError(f"--dask {dask}: expected the extra mapgap[dask], found no {error.name}") from error
    try:
        file = {"scheduler_file": dask} if Path(dask).is_file() else {"address": dask}
        client = distributed.Client(**file, timeout=10)
    except (OSError, ValueError) as error:
        raise InputError(f"--dask {dask}: expected the address of a scheduler, found {error}") from error
    with client:
        # A worker that dies gives its run to another one; pure=False: every job is a run of its own.
        yield functools.partial(client.submit, pure=False, retries=3), distributed.as_completed


def sweep_with_progress(jobs: list[Job], path: Path, *, parallel: int, resume: bool, **more: Any) -> Runs:
    """:func:`sweep` with a progress bar on standard error, and a warning when the cores are oversubscribed."""
    console = Console(stderr=True)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    threads = parallel * max((job.workers for job in jobs), default=1)
    if threads > cores and not more.get("dask"):
        console.print(
            f"[yellow]warning: {parallel} jobs x {threads // parallel} workers on {cores} cores; times will suffer"
        )
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as bar:
        task = bar.add_task("runs", total=len(jobs))

        finished: list[float] = []
        begun = time.perf_counter()

        def show(done: int, total: int, record: RunRecord | None) -> None:
            if record:
                finished.append(record.wall_s or 0.0)
            label = f"{record.instance} · {record.method}" if record else "runs"
            bar.update(task, completed=done, total=total, description=label)
            if record and record.error:
                bar.console.print(f"[red]{label}: {record.error.splitlines()[-1]}")

        records = sweep(jobs, path, parallel=parallel, resume=resume, progress=show, **more)
    if finished and not more.get("dask"):
        console.print(_account(time.perf_counter() - begun, min(parallel, len(finished)), finished))
    return records


def _account(elapsed_s: float, parallel: int, wall_s: Sequence[float]) -> str:
    """What a sweep's time went into: the methods' measured time, and the rest.

    The rest includes the start of warm processes and slots that wait for the last run; it says little of a few runs.
    """
    count, work = len(wall_s), sum(wall_s)
    return (
        f"{count} run{'s' if count > 1 else ''} in {elapsed_s:.1f} s, {parallel} at a time: "
        f"{work / count:.3f} s measured per run, {max(0.0, elapsed_s * parallel - work) / count:.3f} s around it"
    )


def main_bench(
    spec_path: Path,
    *,
    jobs: int = 1,
    resume: bool = True,
    out: Path | None = None,
    plugins: tuple[Path, ...] = (),
    dask: str | None = None,
) -> Path:
    """Run a sweep file; returns the run file (default: ``<spec name>.jsonl`` beside the spec)."""
    spec = load_spec(spec_path)
    path = out or spec_path.with_name(f"{spec.name}.jsonl")
    sweep_with_progress(jobs_of(spec), path, parallel=jobs, resume=resume, plugins=plugins, dask=dask)
    return path
