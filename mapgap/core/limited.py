"""Work on foreign matter in a fork of this process, under limits of time and memory.

A file or a package of somebody else may hang, fill the memory or end the process. In a fork it can, and this program
says so. The fork hands back JSON data, never objects; it writes no files unless it may. Without forks (Windows) the
work is done here. This is no wall against an attacker who runs code: the fork has the rights of its user.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mapgap.core.errors import Finding, InputError, MapgapError

try:
    import resource
except ModuleNotFoundError:  # pragma: no cover  (not POSIX)
    resource = None  # type: ignore[assignment]

_BLOCK = 1 << 20


@dataclass(frozen=True)
class Limits:
    """What a fork may take.

    Attributes
    ----------
    cpu_s, wall_s : float
        Seconds of a processor, and of the clock: a busy machine must not make a good file a bad one.
    memory_mb : int
        What it allocates beyond this process, 2^20 bytes.
    writes : bool
        May it write files?
    """

    cpu_s: float
    wall_s: float
    memory_mb: int
    writes: bool = False


class Exceeded(Exception):
    """The work did not end as it should: it took too much, or its process ended. The text says which."""


def limited(work: Callable[[], Any], limits: Limits) -> Any:
    """What the work returns, as JSON data.

    Raises
    ------
    Exceeded
        It breaks a limit, or ends its process.
    MapgapError
        The work raises one; an InputError has its findings.
    RuntimeError
        The work raises anything else: a mistake of this program.
    """
    if not hasattr(os, "fork"):  # pragma: no cover
        return json.loads(json.dumps(work()))
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    receiving, sending = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(receiving)
            _confine(limits)
            data = _done(work)
            with open(sending, "wb") as stream:
                stream.write(data)
        finally:
            os._exit(0)
    os.close(sending)
    try:
        return _outcome(*_received(pid, receiving, limits), limits)
    finally:
        os.close(receiving)


def _confine(limits: Limits) -> None:
    """A session of its own, nothing to read, nowhere to print, and the limits."""
    os.setsid()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    seconds, data = max(1, int(limits.cpu_s)), _data_bytes() + limits.memory_mb * 2**20
    for name, soft, hard in (
        ("RLIMIT_CPU", seconds, seconds + 1),  # a signal that says so, then the end
        ("RLIMIT_DATA", data, data),  # address space is reserved in plenty, this is used
        ("RLIMIT_CORE", 0, 0),
        *(() if limits.writes else (("RLIMIT_FSIZE", 0, 0),)),
    ):
        with contextlib.suppress(ValueError, OSError, AttributeError):  # one that is tighter already, or is not known
            resource.setrlimit(getattr(resource, name), (soft, hard))


def _data_bytes() -> int:
    """What this process has allocated."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
            if line.startswith("VmData:"):
                return int(line.split()[1]) * 1024
    return 0


def _done(work: Callable[[], Any]) -> bytes:
    """What becomes of the work, as JSON."""
    try:
        found: dict[str, Any] = {"result": work()}
    except InputError as error:
        found = {"findings": [vars(each) for each in error.findings]}
    except MapgapError as error:
        found = {"error": str(error)}
    except MemoryError:
        found = {"exceeded": "memory"}
    except RecursionError:
        found = {"findings": [vars(Finding("expected fewer levels, found data nested too deeply"))]}
    except BaseException as error:
        found = {"bug": _words(error)}
    try:
        return json.dumps(found).encode()
    except MemoryError:
        return b'{"exceeded": "memory"}'


def _words(error: BaseException) -> str:
    try:
        return f"{type(error).__name__}: {error}"
    except BaseException:  # somebody else's
        return type(error).__name__


def _received(pid: int, descriptor: int, limits: Limits) -> tuple[bytes, int | None]:
    """What a fork sent until it ended, and its status; ``None`` if it had to be killed. Nothing of it is left."""
    deadline, data, open_ = time.monotonic() + limits.wall_s, bytearray(), True
    reaped = False
    try:
        while time.monotonic() < deadline:
            if open_ and select.select([descriptor], [], [], min(0.5, max(0.0, deadline - time.monotonic())))[0]:
                part = os.read(descriptor, _BLOCK)
                data += part
                open_ = bool(part)
                continue
            ended, status = os.waitpid(pid, os.WNOHANG)  # a process that it left behind may keep the pipe open
            if ended:
                reaped = True
                return bytes(data), status
            if not open_:
                time.sleep(0.001)
        return bytes(data), None
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)
        if not reaped:
            with contextlib.suppress(ChildProcessError, ProcessLookupError):
                os.kill(pid, signal.SIGKILL)  # before it leads its session
                os.waitpid(pid, 0)


def _outcome(data: bytes, status: int | None, limits: Limits) -> Any:
    if status is None:
        raise Exceeded(f"more than {limits.wall_s:g} s")
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        if number == signal.SIGXCPU:
            raise Exceeded(f"more than {max(1, int(limits.cpu_s))} s of a processor")
        # Programs in C++ abort where they cannot allocate; a system that is out of memory kills.
        raise Exceeded(f"an end by {signal.Signals(number).name}, as where {limits.memory_mb} MB are not enough")
    try:
        found = json.loads(data)
    except ValueError:
        raise Exceeded("the end of its process") from None
    if "findings" in found:
        listed = [Finding(**{**each, "location": tuple(each["location"])}) for each in found["findings"]]
        raise InputError(listed)
    if "error" in found:
        raise MapgapError(found["error"])
    if "exceeded" in found:
        raise Exceeded(f"more than {limits.memory_mb} MB")
    if "bug" in found:
        raise RuntimeError(found["bug"])
    return found["result"]
