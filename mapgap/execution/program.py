"""A foreign program that plans: one instance, one fresh process under hard limits, plain JSON both ways.

The program is the text of a Python module with a function ``solve(instance)``, which gets the expanded instance as a
dict of integers, names and lists, and returns a plan as such a dict. It runs in an interpreter that has imported
nothing of mapgap, in a folder of its own, with a handful of environment variables. What comes back is data; whoever
asks evaluates it. As with every process here this is no wall against an attacker: it has the rights of its user.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mapgap.execution import entrant, limits, messages, worker
from mapgap.execution.process import MARK

try:
    import resource
except ModuleNotFoundError:  # pragma: no cover  (not POSIX)
    resource = None  # type: ignore[assignment]

#: What a program sees of the environment. Kernels are compiled once, so their cache may be named.
KEPT = ("PATH", "HOME", "XDG_CACHE_HOME", "NUMBA_CACHE_DIR", "SYSTEMROOT", MARK)
#: Bytes that a program may write into one file.
FILE_LIMIT = 64 * 2**20


@dataclass(frozen=True)
class Answer:
    """What came of one run.

    Attributes
    ----------
    plan : dict or None
        JSON data; nobody has looked at it yet.
    reason : str
        Why there is none.
    elapsed_s : float
        From the start of its interpreter to its end; imports count.
    output : str
        The last of what it printed.
    """

    plan: dict[str, Any] | None
    reason: str
    elapsed_s: float
    output: str


def run_program(source: str, instance: Mapping[str, Any], *, time_s: float, memory_mb: int) -> Answer:
    """Run a program on one instance.

    Parameters
    ----------
    source : str
        The text of the program.
    instance : mapping
        The expanded instance as JSON data; the program gets a copy.
    time_s, memory_mb : limits
        Of the process and all that it starts; hard.

    Raises
    ------
    KeyboardInterrupt
        Ctrl-C while it ran.
    """
    ended: list[messages.End] = []

    def note(message: messages.Message) -> None:
        if isinstance(message, messages.End):
            ended.append(message)
        elif not isinstance(message, messages.Start):
            raise messages.BadMessage("expected a start and an end only")

    with tempfile.TemporaryDirectory(prefix="mapgap_program_", ignore_cleanup_errors=True) as folder:
        Path(folder, "program.py").write_text(source, encoding="utf-8", errors="surrogateescape")
        Path(folder, "instance.json").write_text(json.dumps(instance), encoding="utf-8")
        outcome = limits.supervise(
            __name__, {"folder": folder, "cpu_s": time_s}, note, time_s=time_s, memory_mb=memory_mb, warm=()
        )
    if outcome.ending == "interrupted":
        raise KeyboardInterrupt
    plan, reason = None, ""
    if outcome.ending in ("time", "memory"):  # what was sent before counts no more
        limit = f"{time_s:g} s" if outcome.ending == "time" else f"{memory_mb} MB"
        reason = f"killed: it took more than {limit}"
    elif outcome.ending == "message":
        reason = f"bad message: {outcome.complaint}"
    elif not ended:
        reason = f"its process ended without an answer (exit code {outcome.returncode})"
    elif ended[0].result is None or ended[0].result.plan is None:
        reason = ended[0].error or "no plan"
    else:
        plan = ended[0].result.plan
    return Answer(plan, reason, outcome.elapsed_s, outcome.output)


def prepare(note: object) -> None:
    """Nothing: the program gets an interpreter of its own."""


def serve(descriptor: int) -> None:
    """Read the job, then become an interpreter that knows nothing of this one."""
    job = json.loads(worker.read_line())
    folder = job["folder"]
    os.chdir(folder)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.set_inheritable(descriptor, True)
    seconds = max(1, int(job["cpu_s"]) + 2)  # the supervisor's clock is the limit; this one outlives the supervisor
    for name, most in (("RLIMIT_CPU", seconds), ("RLIMIT_FSIZE", FILE_LIMIT), ("RLIMIT_CORE", 0)):
        with contextlib.suppress(ValueError, OSError, AttributeError):
            resource.setrlimit(getattr(resource, name), (most, most))
    seen = {name: os.environ[name] for name in KEPT if name in os.environ}
    own = {"TMPDIR": folder, "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1", "LC_ALL": "C.UTF-8"}
    one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    command = [sys.executable, "-P", "-s", entrant.__file__, str(descriptor)]
    os.execve(sys.executable, command, {**seen, **own, **one})


if __name__ == "__main__":
    serve(int(sys.argv[1]))
