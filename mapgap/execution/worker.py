"""The child side of one run, with a job on standard input. Used by mapgap.execution.run only.

A fresh process is started as ``python -m mapgap.execution.worker FD``; a warm one has called :func:`prepare` and its
forks call :func:`serve`.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import logging
import operator
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from mapgap.catalogue import registry
from mapgap.core import (
    DISTRUSTED,
    Budget,
    Frozen,
    MapgapError,
    Method,
    PlanBase,
    SolveResult,
    Status,
    Stop,
    resolve,
)
from mapgap.execution import confirm
from mapgap.execution.keeper import continue_parent
from mapgap.execution.messages import TEXT_LIMIT, encoded
from mapgap.records.record import plain

Send = Callable[[dict[str, Any]], None]
OPEN = (Status.UNKNOWN, Status.FEASIBLE)


def integer(bound: Any) -> int | None:
    """A bound as the integer it must be; a float is refused with ``TypeError``."""
    return None if bound is None else operator.index(bound)


def plan_json(plan: Any) -> Any:
    if plan is None:
        return None
    if not isinstance(plan, PlanBase):
        raise TypeError(f"expected a plan of type PlanBase, found {type(plan).__name__}")
    return plan.to_json()


def result_json(result: Any) -> dict[str, Any]:
    if not isinstance(result, SolveResult):
        raise TypeError(f"expected the method to return a SolveResult, found {type(result).__name__}")
    return {
        "status": str(Status(result.status)),
        "stop": str(Stop(result.stop)),
        "plan": plan_json(result.plan),
        "bound": integer(result.bound),
        "claimed": integer(result.claimed),
        "enumerated": bool(result.enumerated),
        "reason": str(result.reason)[:TEXT_LIMIT],
        "notes": plain(result.notes),
    }


def execute(method: Method, instance: Any, budget: Budget, options: Mapping[str, Any], send: Send) -> None:
    """Run a method on a started clock and send its reports, then ``end`` with its result or its error.

    Its time is that of the method alone; what the confirmation of its claims takes is noted beside it.
    """
    send({"event": "start"})

    told_bound: int | None = None
    sign = -1 if registry.problems()[method.problem].sense == "max" else 1

    def listen(plan: PlanBase | None, bound: int | None) -> None:
        nonlocal told_bound
        if bound is not None and (told_bound is None or sign * bound > sign * told_bound):
            told_bound = bound
        found = {"plan": plan_json(plan), "bound": integer(bound), "by": budget.by}
        send({"event": "report", "time_s": budget.elapsed_s, **found})

    budget.listener = listen
    budget.start()
    before = time.perf_counter()
    end: dict[str, Any]
    try:
        result = method.solve(instance, budget, **options)
        wall_s = time.perf_counter() - before
        told = result_json(result)
        if result.bound is None and result.status in OPEN and DISTRUSTED not in result.notes:
            # That the last question went unanswered takes no announced bound back.
            result = replace(result, bound=told_bound)
            told = result_json(result)
        if told["status"] != Status.UNKNOWN or told["bound"] is not None:
            told = result_json(confirm.confirmed(method, instance, result, budget, told_bound))
        spent = {f"{use}_s": round(seconds, 6) for use, seconds in budget.used_s.items()}
        end = {"result": {**told, "notes": {**spent, **told["notes"]}}}
    except KeyboardInterrupt:
        wall_s = time.perf_counter() - before
        end = {"interrupted": True}
    except BaseException as error:  # SystemExit too: a method has no business ending the process
        wall_s = time.perf_counter() - before
        text = "".join(traceback.format_exception_only(error)).strip()
        frames = [] if isinstance(error, MapgapError) else traceback.format_tb(error.__traceback__)[1:]
        where = "".join(frames[-3:])  # without this module's own frame
        end = {"error": f"{where}{text}"[-4000:], "memory": isinstance(error, MemoryError)}
    send({"event": "end", "wall_s": wall_s, "peak_mb": peak_mb(), **end})


def peak_mb() -> float | None:
    """High-water mark of this process' resident set, 2^20 bytes (Linux only; elsewhere the supervisor polls)."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    return None


def _die_with_parent() -> None:
    """Standard input ends when the harness dies; then this process group must not outlive it."""
    os.read(0, 1)
    continue_parent()
    os.killpg(0, signal.SIGKILL)


def read_line() -> bytes:
    """The job: the one line that the harness writes to standard input (which then stays open)."""
    data = b""
    while not data.endswith(b"\n"):
        part = os.read(0, 1 << 20)
        if not part:
            os._exit(1)
        data += part
    return data


@contextlib.contextmanager
def telling_of_kernels(send: Send) -> Iterator[None]:
    """Send a message when kernels are compiled inside."""

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            send({"event": "compiling", "obstacle": getattr(record, "obstacle", "")})

    log, handler = logging.getLogger("mapgap.kernels"), Handler()
    before = log.level
    log.setLevel(logging.INFO)
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(before)


def prepare(send: Send, problem: str, module: str = "") -> None:
    """Import what every run of a problem needs, and what the methods of one module need, and who confirms them."""
    registry.methods(problem)
    if problem in registry.problems():
        registry.problems()[problem].evaluate  # noqa: B018  (to read the reference is to import)
    if module:
        with telling_of_kernels(send):
            importlib.import_module(module)
            for method in registry.methods(problem).values():
                if method.module == module:
                    confirm.prepare(method)
    build_models()


def build_models() -> None:
    """Build the validators of all types of instances and plans that are imported; each waits for its first use."""
    waiting = [Frozen]
    while waiting:
        model = waiting.pop()
        model.model_rebuild()
        waiting += model.__subclasses__()


def serve(fd: int) -> None:
    """Read the job, do it, write messages to ``fd``, end the process."""
    stream = os.fdopen(fd, "wb", buffering=0)
    lock = threading.Lock()

    def send(message: dict[str, Any]) -> None:
        data = encoded(message) + b"\n"
        with lock:  # solver callbacks report from threads of their own
            view = memoryview(data)
            while view:
                view = view[stream.write(view) or 0 :]

    job = json.loads(read_line())
    threading.Thread(target=_die_with_parent, daemon=True).start()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with telling_of_kernels(send):
            for path in job["plugins"]:
                registry.load_plugin(Path(path))
            method = registry.methods(job["problem"])[job["method"]]
            resolve(method.run)
            confirm.prepare(method)
        build_models()
        instance = registry.problems()[job["problem"]].instance_type.model_validate_json(json.dumps(job["instance"]))
    except BaseException as error:
        text = "".join(traceback.format_exception_only(error)).strip()
        send({"event": "end", "error": f"before the start: {text}"[-4000:]})
        os._exit(1)
    execute(method, instance, Budget(**job["budget"]), job["options"], send)
    with contextlib.suppress(Exception):
        sys.stdout.flush()
    os._exit(0)  # no waiting for threads or exit hooks of the method


if __name__ == "__main__":
    serve(int(sys.argv[1]))
