"""One measured run: any method on any instance, in a process of its own, every claim checked by the caller.

The harness believes nothing. It times the outer call, streams incumbents and bounds so that a killed run keeps them,
re-evaluates every plan with ``Problem.evaluate`` on its own side, and compares what a method claims (its objective,
its bound, its status) with what the plans show. A refuted claim makes a loud failed run; a method that raises, hangs,
forks, dies or leaks makes a recorded one. Neither is ever a crash of the harness.
"""

from __future__ import annotations

import signal
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mapgap.catalogue import registry
from mapgap.core import Budget, InputError, InstanceBase, Method, Problem, Stop, resolve, suggest
from mapgap.core.errors import Interrupted
from mapgap.core.machine import machine_load
from mapgap.execution import confirm, limits, messages, worker
from mapgap.execution.progress import Tell, silence
from mapgap.execution.warm import STARTUP_S
from mapgap.execution.watch import Observer, Watch, verify
from mapgap.records.environment import cpu_model, revision, versions
from mapgap.records.record import RunRecord, plain

#: A method gets this much more than its limit before it is killed: seconds, and a share of the limit.
GRACE_S, GRACE_SHARE = 2.0, 0.05

#: Signals with which a system that is out of memory, or somebody, ends a process.
OUTSIDE = (signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT)

__all__ = ["Observer", "check_options", "interrupt_all", "run_method", "run_uninterrupted", "verify"]


def run_method(
    instance: InstanceBase,
    method: Method | str,
    budget: Budget,
    *,
    options: Mapping[str, Any] | None = None,
    plugins: Sequence[Path | str] = (),
    isolate: bool = True,
    observer: Observer | None = None,
    tell: Tell = silence,
) -> RunRecord:
    """Run a method on an instance under a budget and check everything it says.

    Parameters
    ----------
    instance : InstanceBase
    method : Method or str
        With ``isolate`` the child finds the method by name, so it must be in the registry or in a plug-in file.
    budget : Budget
        ``time_s`` and ``memory_mb`` are hard with ``isolate``: after a short grace the process tree is killed.
    options : mapping, optional
        Overrides of the method's options.
    plugins : sequence of paths
        Files that the child loads with :func:`mapgap.catalogue.registry.load_plugin` (the caller has loaded them
        already).
    isolate : bool
        ``False`` runs inside this process: for tests and debuggers; no limit is enforced.
    observer : callable, optional
        Progress, a few times per second.
    tell : callable, optional
        Receives :class:`~mapgap.execution.progress.Compiling` when the run has to wait for kernels.

    Returns
    -------
    RunRecord
        Also when the run was interrupted (Ctrl-C or SIGTERM in the main thread, or :func:`interrupt_all`): then
        ``stop`` is ``interrupted`` and the incumbent is kept. A signal that comes when the run has ended, but not yet
        this function, goes to the handler of the caller.

    Raises
    ------
    InputError
        Unknown method or option, or an instance of another problem.
    """
    if isinstance(method, str):
        method = registry.find_method(instance.problem, method)
    if method.problem != instance.problem:
        raise InputError(f"method {method.name!r} solves {method.problem}, the instance is one of {instance.problem}")
    options = dict(options or {})
    check_options(method, options)
    problem = registry.problems()[instance.problem]
    enumerates, claims = "enumeration" in method.engines, confirm.due(method)
    watch = Watch(problem, instance, observer, tell, enumerates=enumerates, claims=claims)
    blank = _blank(problem, instance, method, budget, options)
    if isolate:
        return _isolated(blank, watch, method, budget, options, plugins)
    local = Budget(budget.time_s, budget.memory_mb, budget.workers, budget.seed)

    def send(data: dict[str, Any]) -> None:
        watch.receive(messages.of(data))

    with worker.telling_of_kernels(send):  # imports, and the compilation in them, are no part of a run
        resolve(method.run)
        confirm.prepare(method)
    try:
        worker.execute(method, instance, local, options, send)
    except messages.BadMessage as error:
        return watch.conclude(blank, Stop.ERROR, f"bad message: {error}")
    return watch.conclude(blank, Stop.INTERRUPTED if watch.end is not None and watch.end.interrupted else None)


def run_uninterrupted(instance: InstanceBase, method: Method | str, budget: Budget, **how: Any) -> RunRecord:
    """As :func:`run_method`, for callers that go on to a next run: who interrupts this one means them, too.

    Raises
    ------
    Interrupted
        With the exit code 130.
    """
    record = run_method(instance, method, budget, **how)
    if record.stop == Stop.INTERRUPTED:
        raise Interrupted(record.exit_code)
    return record


def interrupt_all() -> None:
    """Stop every run of this program, in whatever thread (sweeps run in threads); each returns as interrupted."""
    limits.INTERRUPT.set()


def check_options(method: Method, options: Mapping[str, Any]) -> None:
    """Refuse options and parameters that the method does not declare, and parameters of another kind than theirs.

    Every number among the parameters is larger than 0.

    Raises
    ------
    InputError
    """
    settings = method.settings if options else {}
    known = ", ".join(settings) or "none"
    found = [
        f"option of {method.name}: expected one of: {known}; found {name!r}{suggest(name, settings)}"
        for name in options
        if name not in settings
    ]
    found += [
        f"option of {method.name}: {name}: expected {kind}, found {options[name]!r}"
        for name, default in (method.defaults if options else {}).items()
        if name in options and (kind := _unlike(options[name], default))
    ]
    if found:
        raise InputError(found)


def _unlike(value: Any, default: Any) -> str:
    """What is expected of a parameter, if a value is not of that kind."""
    if isinstance(default, (tuple, list)):
        wrong = not isinstance(value, (tuple, list)) or not value or any(_unlike(each, default[0]) for each in value)
        return f"a list of what is in {list(default)}" if wrong else ""
    if isinstance(default, bool):
        return "" if isinstance(value, bool) else "true or false"
    if isinstance(default, (int, float)):
        kinds = (int,) if isinstance(default, int) else (int, float)
        number = isinstance(value, kinds) and not isinstance(value, bool) and value > 0
        return "" if number else f"{'a whole' if isinstance(default, int) else 'a'} number above 0"
    return "" if isinstance(value, type(default)) else f"one like {default!r}"


def _isolated(
    blank: RunRecord,
    watch: Watch,
    method: Method,
    budget: Budget,
    options: Mapping[str, Any],
    plugins: Sequence[Path | str],
) -> RunRecord:
    limit = {"time_s": budget.time_s, "memory_mb": budget.memory_mb, "workers": budget.workers, "seed": budget.seed}
    job = {
        "problem": method.problem,
        "method": method.name,
        "instance": watch.instance.to_json(),
        "budget": limit,
        "options": plain(options),
        "plugins": [str(Path(path).resolve()) for path in plugins],
    }
    threads = str(budget.workers)
    hard_s = budget.time_s * (1 + GRACE_SHARE) + GRACE_S
    outcome = limits.supervise(
        "mapgap.execution.worker",
        job,
        watch.receive,
        time_s=hard_s,
        memory_mb=budget.memory_mb,
        environment={"OMP_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": threads, "MKL_NUM_THREADS": threads},
        warm=(method.problem, method.module),
        on_idle=watch.idle,
    )
    stop: Stop | None = None
    reason = ""
    if watch.end is None:
        stop, reason = _died(outcome, budget)
    told = None if watch.end is None else watch.end.peak_mb
    peaks = [peak for peak in (outcome.peak_mb, told) if peak is not None]
    blank = replace(
        blank,
        wall_s=round(outcome.elapsed_s, 6),
        peak_mb=round(max(peaks), 1) if peaks else None,
        output=outcome.output,
        killed=watch.end is None and _killed(outcome),
    )
    record = watch.conclude(blank, stop, reason)
    if outcome.struck is not None and record.stop != Stop.INTERRUPTED:
        signal.raise_signal(outcome.struck)  # the run had ended: whoever called it is meant
    return record


def _died(outcome: limits.Outcome, budget: Budget) -> tuple[Stop, str]:
    """Why a process ended that never handed in its result."""
    if outcome.ending == "time":
        return Stop.TIME, f"killed after {outcome.elapsed_s:.1f} s: it did not end within {budget.time_s:g} s"
    if outcome.ending == "memory":
        return Stop.MEMORY, f"killed: its processes held more than {budget.memory_mb} MB"
    if outcome.ending == "interrupted":
        return Stop.INTERRUPTED, "interrupted"
    if outcome.ending == "startup":
        return Stop.ERROR, f"the process did not start within {STARTUP_S:g} s"
    if outcome.ending == "message":
        return Stop.ERROR, f"bad message: {outcome.complaint}"
    code = outcome.returncode
    if code is None:
        return Stop.ERROR, "the process was killed from outside, and the one that started it as well; no result"
    if _killed(outcome):
        return Stop.ERROR, f"the process was killed from outside (signal {-code}) without a result; out of memory?"
    how = f"signal {-code}" if code < 0 else f"exit code {code}"
    return Stop.ERROR, f"the process ended with {how} and without a result"


def _killed(outcome: limits.Outcome) -> bool:
    """Did the process end by a signal that neither this program nor a mistake of its own code sends?"""
    return outcome.ending == "exit" and outcome.returncode in (None, *(-number for number in OUTSIDE))


def _blank(
    problem: Problem, instance: InstanceBase, method: Method, budget: Budget, options: Mapping[str, Any]
) -> RunRecord:
    return RunRecord(
        instance=instance.name,
        instance_hash=instance.content_hash,
        problem=problem.name,
        sense=problem.sense,
        method=method.name,
        kind=method.kind,
        options=plain(options),
        params=plain(method.tuned(options).to_json()),
        seed=budget.seed,
        workers=budget.workers,
        time_limit_s=budget.time_s,
        memory_limit_mb=budget.memory_mb,
        unit=problem.unit(instance),
        versions=versions(),
        revision=revision(),
        cpu=cpu_model(),
        load=machine_load(),
        started=datetime.now(UTC).isoformat(timespec="seconds"),
    )
