"""Sweeps: any methods on any instances under one budget, one JSON line per finished run.

A run is identified by (instance hash, method, options, budget, seed). Lines are appended and flushed one by one, so a
sweep that is killed at any moment keeps every finished run; the next start skips them, after repairing a torn last
line. Every run has a process of its own (:mod:`mapgap.run`), and the harness measures around it.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from mapgap import registry
from mapgap.core import Budget, InputError, InstanceBase


class BudgetSpec(BaseModel):
    """Limits of every run of a sweep."""

    model_config = ConfigDict(extra="forbid")

    time_s: float = Field(default=60.0, gt=0)
    memory_mb: int | None = Field(default=None, gt=0)
    workers: int = Field(default=1, ge=1)


class BenchSpec(BaseModel):
    """A sweep file: ``instances`` by name, path or glob, ``tags`` that all must carry, ``methods`` by glob.

    ``method_options`` maps a method name to option values.
    """

    model_config = ConfigDict(extra="forbid")

    schema_version: int = Field(default=1, alias="schema", ge=1, le=1)
    name: str
    instances: list[str] = Field(min_length=1)
    tags: list[str] = []
    methods: list[str] = Field(min_length=1)
    method_options: dict[str, dict[str, Any]] = {}
    budget: BudgetSpec = BudgetSpec()
    seeds: list[int] = Field(default=[0], min_length=1)


@dataclass(frozen=True)
class Job:
    """One run to do."""

    instance: InstanceBase
    method: str
    time_s: float
    memory_mb: int | None = None
    workers: int = 1
    seed: int = 0
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """Identity of the run; two jobs with one key are the same run."""
        return run_key(
            self.instance.content_hash, self.method, self.options, self.time_s, self.memory_mb, self.workers, self.seed
        )

    def execute(self, plugins: tuple[Path, ...] = ()) -> dict[str, Any]:
        """Do the run; returns its record. A subclass may run something else than a method of the registry."""
        from mapgap.run import run_method

        method = registry.methods(self.instance.problem)[self.method]
        budget = Budget(time_s=self.time_s, memory_mb=self.memory_mb, workers=self.workers, seed=self.seed)
        return run_method(self.instance, method, budget, options=dict(self.options), plugins=plugins).to_json()


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


def record_key(record: Mapping[str, Any]) -> str:
    """The key of a finished run, from its line."""
    return run_key(
        record["instance_hash"],
        record["method"],
        record.get("options") or {},
        record["time_limit_s"],
        record.get("memory_limit_mb"),
        record["workers"],
        record["seed"],
    )


def repair(path: Path) -> int:
    """Cut a torn last line (a sweep killed while writing) off a run file; returns the bytes removed."""
    if not path.exists():
        return 0
    data = path.read_bytes()
    end = data.rfind(b"\n") + 1
    if end == len(data):
        return 0
    with path.open("r+b") as stream:
        stream.truncate(end)
    return len(data) - end


def read_runs(path: Path) -> list[dict[str, Any]]:
    """All finished runs of a ``.jsonl`` file, or of every such file below a folder.

    Raises
    ------
    InputError
        Nothing there, or a line (other than a torn last one) that is no JSON object.
    """
    files = sorted(path.rglob("*.jsonl")) if path.is_dir() else [path]
    if not files or not all(file.is_file() for file in files):
        raise InputError(f"{path}: expected a run file (.jsonl) or a folder with run files, found none")
    records: list[dict[str, Any]] = []
    for file in files:
        lines = file.read_text().split("\n")
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                record = json.loads(line)
            except json.JSONDecodeError as error:
                if number == len(lines):
                    continue
                raise InputError(f"{file}:{number}: expected one JSON object per line, found {error.msg}") from error
            if not isinstance(record, dict) or "instance_hash" not in record:
                raise InputError(f"{file}:{number}: expected a run record, found another JSON value")
            records.append(record)
    return records


def load_spec(path: Path) -> BenchSpec:
    """Read a sweep file; every error names file, line and field."""
    from mapgap.loading import load_model

    return load_model(path, BenchSpec)


def jobs_of(spec: BenchSpec) -> list[Job]:
    """All runs of a sweep, in order of instance, method, seed.

    Raises
    ------
    InputError
        A pattern that matches nothing.
    """
    from mapgap.loading import find_instances, load_instance

    found: list[Job] = []
    for pattern in spec.instances:
        names = find_instances(pattern)
        if not names:
            raise InputError(f"instances: {pattern!r}: expected the name, path or glob of an instance, found no match")
        for name in names:
            instance = load_instance(name)
            if not set(spec.tags) <= set(instance.tags):
                continue
            known = registry.methods(instance.problem)
            for method in _match(spec.methods, known, instance.problem):
                options = spec.method_options.get(method, {})
                found += [
                    Job(instance, method, spec.budget.time_s, spec.budget.memory_mb, spec.budget.workers, seed, options)
                    for seed in spec.seeds
                ]
    if not found:
        raise InputError(f"tags: {spec.tags}: expected tags that some of the instances carry, found none")
    return list({job.key: job for job in found}.values())


def _match(patterns: Iterable[str], known: Iterable[str], problem: str) -> list[str]:
    names = sorted(known)
    chosen: list[str] = []
    for pattern in patterns:
        matches = [name for name in names if fnmatchcase(name, pattern)]
        if not matches:
            raise InputError(
                f"methods: {pattern!r}: expected a method of {problem} ({', '.join(names)}), found no match"
            )
        chosen += [name for name in matches if name not in chosen]
    return chosen


def sweep(
    jobs: list[Job],
    path: Path,
    *,
    parallel: int = 1,
    resume: bool = True,
    plugins: tuple[Path, ...] = (),
    progress: Callable[[int, int, dict[str, Any] | None], None] | None = None,
) -> list[dict[str, Any]]:
    """Do every job that ``path`` does not hold yet and append its record; returns the records of all ``jobs``.

    ``progress(done, total, record)`` is called after every run (once before the first with ``record=None``). An
    interrupt stops the running processes and re-raises; finished runs stay in the file.
    """
    from mapgap.run import interrupt_all

    path.parent.mkdir(parents=True, exist_ok=True)
    if not resume and path.exists():
        path.unlink()
    repair(path)
    done = {record_key(r): r for r in (read_runs(path) if path.exists() else []) if r.get("stop") != "interrupted"}
    todo = [job for job in jobs if job.key not in done]
    total = len(jobs)
    if progress:
        progress(total - len(todo), total, None)
    lock = threading.Lock()

    def one(job: Job) -> dict[str, Any]:
        record = job.execute(plugins)
        with lock, path.open("a") as stream:
            stream.write(json.dumps(record) + "\n")
            stream.flush()
            os.fsync(stream.fileno())
        return record

    with ThreadPoolExecutor(max_workers=parallel) as pool:
        futures = {pool.submit(one, job): job for job in todo}
        try:
            for future in as_completed(futures):
                record = future.result()
                done[futures[future].key] = record
                if progress:
                    progress(sum(job.key in done for job in jobs), total, record)
        except BaseException as error:
            for future in futures:
                future.cancel()
            if isinstance(error, (KeyboardInterrupt, SystemExit)):
                interrupt_all()
            raise
    return [done[job.key] for job in jobs]


def sweep_with_progress(
    jobs: list[Job], path: Path, *, parallel: int, resume: bool, **more: Any
) -> list[dict[str, Any]]:
    """:func:`sweep` with a progress bar on standard error, and a warning when the cores are oversubscribed."""
    console = Console(stderr=True)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    threads = parallel * max((job.workers for job in jobs), default=1)
    if threads > cores:
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

        def show(done: int, total: int, record: dict[str, Any] | None) -> None:
            label = f"{record['instance']} · {record['method']}" if record else "runs"
            bar.update(task, completed=done, total=total, description=label)
            if record and record.get("error"):
                bar.console.print(f"[red]{label}: {record['error'].splitlines()[-1]}")

        return sweep(jobs, path, parallel=parallel, resume=resume, progress=show, **more)


def main_bench(
    spec_path: Path, *, jobs: int = 1, resume: bool = True, out: Path | None = None, plugins: tuple[Path, ...] = ()
) -> Path:
    """Run a sweep file; returns the run file (default: ``<spec name>.jsonl`` beside the spec)."""
    spec = load_spec(spec_path)
    path = out or spec_path.with_name(f"{spec.name}.jsonl")
    sweep_with_progress(jobs_of(spec), path, parallel=jobs, resume=resume, plugins=plugins)
    return path
