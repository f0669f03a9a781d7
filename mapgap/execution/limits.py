"""A process of its own for untrusted work: hard limits, streamed messages, nothing left behind.

Knows nothing of problems or methods. The child is a fresh interpreter, or the fork of a warm one that has only done its
imports (see :mod:`mapgap.execution.warm`). It leads a session of its own, receives one JSON job on standard input and
sends JSON lines through a pipe. Whatever it does (hang, fork, leak, print, die), :func:`supervise` returns, with every
message that arrived, and no descendant survives. POSIX only.

Memory is the resident set of the whole process tree, polled; address space is no measure, because compilers and
solvers reserve far more than they touch. A child can overshoot by what it allocates between two polls.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import selectors
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import psutil

from mapgap.execution.messages import LINE_LIMIT, TOTAL_LIMIT, BadMessage, End, Message, Start, decoded
from mapgap.execution.process import Ends, Forked, Fresh, launch
from mapgap.execution.warm import STARTUP_S

#: Set to stop every supervised process of this program, from any thread.
INTERRUPT = threading.Event()

POLL_S = 0.05
LINGER_S = 2.0  # from the last message to the end of the process
TAIL_BYTES = 4000

Ending = Literal["exit", "time", "memory", "interrupted", "startup", "message"]


@dataclass
class Outcome:
    """How a supervised process ended.

    Attributes
    ----------
    ending : str
        ``exit`` (by itself), or which limit made the supervisor kill it; ``startup``: it never sent ``start``;
        ``message``: it sent something that is no message.
    returncode : int or None
        As in :mod:`subprocess`: negative for a signal. ``None`` when the supervisor killed it.
    elapsed_s : float
        Seconds since the ``start`` message (since the launch, if there was none).
    peak_mb : float or None
        Largest polled resident set of the process tree, 2^20 bytes.
    output : str
        The last few kilobytes that the process tree printed.
    complaint : str
        What is wrong with its message.
    struck : int, optional
        The first of Ctrl-C and SIGTERM that came meanwhile.
    """

    ending: Ending
    returncode: int | None
    elapsed_s: float
    peak_mb: float | None
    output: str
    complaint: str = ""
    struck: int | None = None


@dataclass
class _Child:
    """One supervised process tree."""

    process: Fresh | Forked
    known: dict[int, psutil.Process] = field(default_factory=dict)
    peak: int = 0
    resident: int = 0
    polled: float = -math.inf
    killed: bool = False

    def resident_bytes(self) -> int:
        """Resident set of the tree, measured every ``POLL_S`` at most; remembers every descendant ever seen."""
        if time.perf_counter() - self.polled < POLL_S:
            return self.resident
        self.polled = time.perf_counter()
        with contextlib.suppress(psutil.Error):
            for process in self.process.tree():
                self.known.setdefault(process.pid, process)
        total = 0
        for process in list(self.known.values()):
            with contextlib.suppress(psutil.Error):
                if process.is_running():
                    total += int(process.memory_info().rss)
        self.resident, self.peak = total, max(self.peak, total)
        return total

    def kill(self) -> int | None:
        """Kill the group and every descendant; the exit code, ``None`` if the process did not end by itself."""
        if self.killed:
            return None
        self.killed = True
        self.polled = -math.inf
        self.resident_bytes()
        by_itself = self.process.ended()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        code = self.process.reap()
        for process in self.known.values():
            with contextlib.suppress(psutil.Error):
                if process.pid not in (os.getpid(), self.process.pid):
                    process.kill()
        return code if by_itself else None


def _send(fd: int, job: Mapping[str, Any]) -> None:
    """Write the job; the pipe stays open."""
    data = memoryview(json.dumps(job).encode() + b"\n")
    with contextlib.suppress(BrokenPipeError):
        while data:
            data = data[os.write(fd, data) :]


@contextlib.contextmanager
def _interrupts() -> Iterator[list[int]]:
    """Ctrl-C and SIGTERM are put into a list instead of raising, while the main thread supervises."""
    struck: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield struck
        return
    previous = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    for number in previous:
        signal.signal(number, lambda number, _: struck.append(number))
    try:
        yield struck
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)


@dataclass
class _Clock:
    """When the child was launched, started its work and sent its last message."""

    launched: float
    started: float | None = None
    finished: float | None = None

    def note(self, message: Message) -> None:
        if isinstance(message, Start):
            if self.started is not None:
                raise BadMessage("start: expected once, found again")
            self.started = time.perf_counter()
        elif isinstance(message, End):
            self.finished = time.perf_counter()

    def elapsed(self) -> float:
        return time.perf_counter() - (self.launched if self.started is None else self.started)

    def lingers(self) -> bool:
        """It has said its last word and does not end."""
        return self.finished is not None and time.perf_counter() - self.finished > LINGER_S

    def overrun(self, time_s: float) -> Ending | None:
        if self.finished is not None:
            return None
        if self.started is None:
            return "startup" if self.elapsed() > STARTUP_S else None
        return "time" if self.elapsed() > time_s else None


class _Stream:
    """Reads both pipes of a child: messages go to ``on_message`` until the last one, printed text into a short tail.

    Attributes
    ----------
    complaint : str
        What was wrong with a line; none is read after it.
    """

    def __init__(self, ends: Ends, on_message: Callable[[Message], None]) -> None:
        self.on_message = on_message
        self.complaint = ""
        self.ended = False
        self.rest = bytearray()
        self.total = 0
        self.tail = b""
        self.selector = selectors.DefaultSelector()
        for fd, name in ((ends.message_in, "message"), (ends.output_in, "output")):
            os.set_blocking(fd, False)
            self.selector.register(fd, selectors.EVENT_READ, name)

    def read(self, timeout: float) -> bool:
        """Wait up to ``timeout`` seconds for data; did any arrive?"""
        if not self.selector.get_map():
            time.sleep(timeout)
            return False
        arrived = False
        for key, _ in self.selector.select(timeout):
            try:
                data = os.read(key.fd, 1 << 16)
            except BlockingIOError:
                continue
            if not data:
                self.selector.unregister(key.fd)
                continue
            arrived = True
            if key.data == "output":
                self.tail = (self.tail + data)[-TAIL_BYTES:]
            elif not self.ended and not self.complaint:
                try:
                    self._take(data)
                except BadMessage as error:
                    self.complaint = str(error)
        return arrived

    def _take(self, data: bytes) -> None:
        """Hand on the lines that are whole."""
        self.total += len(data)
        self.rest += data
        if b"\n" in data:
            *lines, rest = bytes(self.rest).split(b"\n")
            self.rest = bytearray(rest)
            for line in lines:
                message = decoded(line)
                self.on_message(message)
                if isinstance(message, End):
                    self.ended = True
                    return
        if len(self.rest) > LINE_LIMIT:
            raise BadMessage(f"a line of more than {LINE_LIMIT:,} bytes")
        if self.total > TOTAL_LIMIT:
            raise BadMessage(f"more than {TOTAL_LIMIT:,} bytes in all")


def supervise(
    module: str,
    job: Mapping[str, Any],
    on_message: Callable[[Message], None],
    *,
    time_s: float,
    memory_mb: int | None = None,
    environment: Mapping[str, str] | None = None,
    warm: Sequence[str] | None = None,
    on_idle: Callable[[], None] | None = None,
) -> Outcome:
    """Do a job with a module in a process of its own, until it ends or breaks a limit; then kill whatever is left.

    Parameters
    ----------
    module : str
        As a program or through its function ``serve``: reads one JSON line from standard input and writes JSON lines
        (:mod:`mapgap.execution.messages`) to the file descriptor in its first argument: ``start`` when the clock
        starts, ``end`` as the last one.
    time_s : float
        Hard limit in seconds, from ``start``.
    memory_mb : int, optional
        Hard limit of the resident set of the process tree.
    environment : mapping, optional
        Variables of the process, set before it starts.
    warm : sequence of str, optional
        Fork the process from a warm one that has called the module's ``prepare`` with these arguments. What it tells
        meanwhile goes to ``on_message``.
    on_message, on_idle : callable
        Called for each message, and whenever none waits. ``on_message`` may raise ``BadMessage``.
    """
    with _interrupts() as struck:
        process, ends = launch(module, environment or {}, warm, on_message)
        child = _Child(process)
        clock = _Clock(launched=time.perf_counter())

        def note(message: Message) -> None:
            clock.note(message)
            on_message(message)

        stream = _Stream(ends, note)
        ending: Ending | None = None
        try:
            _send(ends.job_out, job)
            while ending is None and not child.process.ended() and not clock.lingers():
                idle = not stream.read(POLL_S)
                if struck or INTERRUPT.is_set():
                    ending = "interrupted"
                elif stream.complaint:
                    ending = "message"
                elif child.resident_bytes() > (memory_mb or math.inf) * 2**20 and clock.finished is None:
                    ending = "memory"
                else:
                    ending = clock.overrun(time_s)
                if idle and on_idle is not None:
                    on_idle()
            elapsed = clock.elapsed()
            code = child.kill()
            while stream.read(0.0):  # what was still in the pipes
                pass
            if stream.complaint and ending in (None, "exit"):
                ending = "message"
        finally:
            child.kill()
            stream.selector.close()
            ends.close_ours()
    peak = child.peak / 2**20 if child.peak else None
    output = stream.tail.decode(errors="replace").strip()
    return Outcome(ending or "exit", code, elapsed, peak, output, stream.complaint, next(iter(struck), None))
