"""A run in parts on the workers of a ``dask.distributed`` cluster.

This process keeps the state of the run and hands out as many parts as the workers have threads; a variable of dask
tells the parts what is known meanwhile, and a queue brings what parts find before they end. A worker that dies costs
its part, which dask gives to another worker; a part whose workers die again and again is left out, and its bound stays
what it was.
"""

from __future__ import annotations

import importlib
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import Any
from uuid import uuid4

from mapgap.catalogue import registry
from mapgap.core import (
    Budget,
    InputError,
    InstanceBase,
    Method,
    Parts,
    PlanBase,
    SolveResult,
    Status,
    Stop,
    Task,
    resolve,
)

LEAST_S = 0.05  #: of a part's time
HEAR_S = 0.3  #: between two looks at what running parts tell
GRACE_S = 1.0  #: after the end of the time, for parts that are about to end


def library(address: str) -> ModuleType:
    """The library behind the extra ``dask``.

    Raises
    ------
    InputError
    """
    try:
        import distributed
    except ModuleNotFoundError as error:
        raise InputError(f"--dask {address}: expected the extra mapgap[dask], found no {error.name}") from error
    found: ModuleType = distributed
    return found


def connect(address: str) -> Any:
    """A client of the cluster with this address or scheduler file; close it.

    Raises
    ------
    InputError
        No such cluster.
    """
    distributed = library(address)
    try:
        file = {"scheduler_file": address} if Path(address).is_file() else {"address": address}
        return distributed.Client(**file, timeout=10)
    except (OSError, ValueError) as error:
        raise InputError(f"--dask {address}: expected the address of a scheduler, found {error}") from error


def prepare(client: Any, method: Method) -> None:
    """Have the workers import what the method needs, which is no part of a run."""
    client.run(load, method.module)


def load(module: str) -> None:
    """In a worker."""
    importlib.import_module(module)


def solve(
    method: Method, instance: InstanceBase, budget: Budget, options: Mapping[str, Any], client: Any
) -> SolveResult:
    """Run a method that declares ``parts`` on a cluster."""
    assert method.parts is not None
    whole: Parts = resolve(method.parts)(instance, budget, **method.given, **options)
    plan_type = registry.problems()[instance.problem].plan_type
    run = _Run(whole, budget, client, library(""), plan_type)
    stop = run.work(instance)
    found = whole.result(stop)
    notes = {**found.notes, "cluster_threads": run.threads, "parts": run.done}
    return replace(found, notes={**notes, "parts_lost": run.lost} if run.lost else notes)


@dataclass
class _Run:
    """Parts that wait, and those that run."""

    whole: Parts
    budget: Budget
    client: Any
    distributed: ModuleType
    plan_type: type[PlanBase]
    threads: int = 0
    done: int = 0
    lost: list[str] = field(default_factory=list)
    handed: dict[str, Task] = field(default_factory=dict)

    def work(self, instance: InstanceBase) -> Stop:
        """Do all parts that are wanted; ``TIME`` where some are left."""
        waiting, running = deque(self.whole.tasks()), dict[Any, Task]()
        shared = self.distributed.Variable(f"mapgap-{uuid4().hex}", client=self.client)
        shared.set(self.whole.known)
        told = self.distributed.Queue(shared.name, client=self.client)
        try:
            while True:
                self._fill(waiting, running, instance, shared)
                if not any(not task.tells or self.whole.wanted(task) for task in running.values()):
                    return Stop.TIME if waiting else Stop.PROVED
                ended = self._ended(running, told, shared)
                self._hear(told, shared)
                for future in ended:
                    self._take(running.pop(future), future, shared)
                if self.budget.exhausted and not self._ended(running, told, shared, GRACE_S):
                    return Stop.TIME
        finally:
            for future in running:
                future.cancel()
            shared.delete()
            told.close()

    def _fill(self, waiting: deque[Task], running: dict[Any, Task], instance: InstanceBase, shared: Any) -> None:
        """A part for every thread that has none; each gets its share of the time that is left.

        The instance goes with each of them: scattered data die with the workers that hold them, and parts that depend
        on such data are put where they lie.
        """
        self.threads = max(sum(self.client.nthreads().values()), 1)  # workers come and go
        while waiting and len(running) < self.threads and not self.budget.exhausted:
            if not self.whole.wanted(waiting[0]):
                waiting.popleft()
                continue
            task = waiting.popleft()
            shared_by = max(1, self.threads - sum(other.whole for other in running.values()))
            share = 1.0 if task.whole else min(1.0, shared_by / (1 + sum(not other.whole for other in waiting)))
            limits = {
                "time_s": max(self.budget.remaining_s * share, LEAST_S),
                "workers": self.budget.workers,
                "seed": self.budget.seed,
            }
            future = self.client.submit(
                perform,
                task,
                instance,
                limits,
                shared.name,
                self.whole.known,
                pure=False,
                key=f"{shared.name}-{task.name}",
            )
            running[future] = self.handed[task.name] = task

    def _ended(self, running: dict[Any, Task], told: Any, shared: Any, grace_s: float = 0.0) -> list[Any]:
        """Parts that have ended, of which the first is waited for as long as there is time, and none is if it tells
        what makes all of them needless."""
        if not running:
            return []
        limit = max(self.budget.remaining_s, LEAST_S) + grace_s
        listens = any(task.tells for task in running.values())
        end = time.monotonic() + limit
        while True:
            left = max(end - time.monotonic(), 0.001)
            wait_s = min(left, HEAR_S) if listens else left
            try:
                return list(self.distributed.wait(list(running), timeout=wait_s, return_when="FIRST_COMPLETED").done)
            except TimeoutError:
                if wait_s >= left:
                    return []
            if self._hear(told, shared) and not any(self.whole.wanted(task) for task in running.values()):
                return []

    def _hear(self, told: Any, shared: Any) -> bool:
        """Learn what parts have told; whether there was anything."""
        if not any(task.tells for task in self.handed.values()):
            return False
        before, batch = self.whole.known, told.get(batch=True)
        for name, plan, bound in batch:
            found = None if plan is None else self.plan_type.model_validate(plan, strict=False)
            self.whole.learn(self.handed[name], SolveResult(Status.UNKNOWN, Stop.TIME, found, bound))
        if self.whole.known != before:
            shared.set(self.whole.known)
        return bool(batch)

    def _take(self, task: Task, future: Any, shared: Any) -> None:
        before = self.whole.known
        try:
            found = future.result()
        except self.distributed.KilledWorker:
            self.lost.append(task.name)
            return
        self.whole.learn(task, found)
        self.done += 1
        if self.whole.known != before:
            shared.set(self.whole.known)


def perform(task: Task, instance: InstanceBase, limits: Mapping[str, Any], name: str, begun: Any) -> Any:
    """Do one part, in a worker; ``begun`` is what was known when it was handed out."""
    distributed = library("")
    variable = distributed.Variable(name, client=distributed.get_client())

    def known() -> Any:
        try:
            return variable.get(timeout=GRACE_S)
        except TimeoutError:  # the run has ended, or its process is busy
            return begun

    budget = Budget(**limits)
    if task.tells:
        told = distributed.Queue(name, client=distributed.get_client())

        def tell(plan: PlanBase | None, bound: int | None) -> None:
            told.put([task.name, None if plan is None else plan.to_json(), bound])

        budget.listener = tell
    return resolve(task.run)(instance, budget.start(), known, *task.arguments)
