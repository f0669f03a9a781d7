"""Warm processes, which have done their imports and fork a child for every run. Used by mapgap.execution.limits only.

A fresh interpreter needs about a second for NumPy, Numba and a solver; a fork needs milliseconds. There is one warm
process per settings of the threads and per preparation, so that what a run finds imported, and the memory it begins
with, depend on its method alone and never on the runs before. The warm process itself has a single thread,
runs no method, and adopts what its child leaves behind, so that nothing outlives a run. A run may stop it (then it is
continued) or kill it: its own parent is a keeper, which adopts what a warm process leaves behind, and ends it all when
this program lets go of a pipe or dies. Linux only (``pidfd``, child subreaper); elsewhere, or if a warm process cannot
be had, runs start from a fresh interpreter.

The standard library's forkserver (``multiprocessing``) was measured in its place: it takes longer per run, because it
pickles and imports in the child. It adopts no orphans, so that a daemon of a run must be looked for among all processes
of the machine, there is one per program and not one per preparation, and what its preload says or raises is lost.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import importlib
import json
import os
import random
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NoReturn

import psutil

from mapgap.execution.keeper import adopt_orphans, continue_parent, descendants, end_all
from mapgap.execution.messages import BadMessage, Message, decoded

#: Warm processes that wait for the next run of their kind; the one that has waited longest ends first.
KEPT = 16
#: Seconds for imports; a first start may compile.
STARTUP_S = 180.0
#: Seconds for a fork, and for the end of a run that has been killed: it may hold gigabytes.
ANSWER_S = 30.0
#: Seconds after which a warm process that does not answer may have been stopped by its run.
STOPPED_S = 0.1

_LIMIT = 1 << 20  # bytes of one message
READY = b"ready "


@dataclass(frozen=True)
class Key:
    """What makes warm processes exchangeable.

    Attributes
    ----------
    module : str
        Has ``prepare(note, *arguments)``, called once, and ``serve(fd)``, called in every child. What goes to ``note``
        while it prepares (plain data) reaches whoever waits for the process.
    environment : tuple of (name, value)
        Variables that libraries read when they are imported.
    path : tuple of str
        ``sys.path``.
    """

    module: str
    arguments: tuple[str, ...]
    environment: tuple[tuple[str, str], ...]
    path: tuple[str, ...]


Note = Callable[[Message], None]
"""Takes a message."""


class Gone(Exception):
    """The warm process ended."""


@dataclass
class Warm:
    """This program's side of a warm process, which serves one run at a time.

    Attributes
    ----------
    process : subprocess.Popen
        The keeper, in a session of its own: Ctrl-C does not reach it; all ends with its pipe.
    lifeline : int
        Our end of that pipe.
    pid : int
        Of the warm process, the keeper's child.
    """

    key: Key
    process: subprocess.Popen[bytes]
    socket: socket.socket
    lifeline: int
    pid: int = 0

    @classmethod
    def start(cls, key: Key, note: Note) -> Warm:
        """Start a warm process and wait until it is prepared; its messages until then go to ``note``.

        Raises
        ------
        Gone
            It did not get that far.
        """
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ending, lifeline = os.pipe()
        try:
            with theirs:
                fds = (ending, theirs.fileno())
                command = [sys.executable, "-P", "-m", "mapgap.execution.keeper", str(ending), __name__, str(fds[1])]
                process = subprocess.Popen(
                    [*command, key.module, *key.arguments],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    pass_fds=fds,
                    start_new_session=True,
                    env={**os.environ, **dict(key.environment), "PYTHONPATH": os.pathsep.join(key.path)},
                )
        except BaseException:
            ours.close()
            os.close(lifeline)
            raise
        finally:
            os.close(ending)
        warm = cls(key, process, ours, lifeline)
        try:
            while not (message := warm._answer(STARTUP_S)).startswith(READY):
                if not message:
                    raise Gone
                note(decoded(message))
            warm.pid = int(message.removeprefix(READY))
        except BadMessage as error:
            warm.close()
            raise Gone from error
        except BaseException:
            warm.close()
            raise
        return warm

    def fork(self, fds: tuple[int, int, int], environment: Mapping[str, str]) -> int:
        """Process id of a new child with these standard input, output and message descriptors.

        Raises
        ------
        Gone
        """
        request = json.dumps({"cwd": os.getcwd(), "environ": dict(environment)}).encode()
        try:
            socket.send_fds(self.socket, [request], fds)
            return int(self._answer(ANSWER_S))
        except (OSError, ValueError) as error:
            raise Gone from error

    def reap(self) -> int:
        """Kill the child and everything that came from it; its exit code, as in :mod:`subprocess`.

        Raises
        ------
        Gone
        """
        try:
            self.socket.send(b"reap")
            return int(self._answer(ANSWER_S))
        except (OSError, ValueError) as error:
            raise Gone from error

    def _answer(self, within_s: float) -> bytes:
        """The next message, empty if none comes. A warm process that its run has stopped is continued."""
        until = time.monotonic() + within_s
        while (left := until - time.monotonic()) > 0:
            self.socket.settimeout(min(STOPPED_S, left) if self.pid else left)
            try:
                return self.socket.recv(_LIMIT)
            except TimeoutError:
                self._continue()
            except OSError:
                break
        return b""

    def _continue(self) -> None:
        for pid in (self.process.pid, self.pid):
            if pid:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGCONT)

    def let_go(self) -> None:
        """Tell the keeper to end everything; it does so by itself."""
        self._continue()
        self.socket.close()
        if self.lifeline >= 0:
            os.close(self.lifeline)
            self.lifeline = -1

    def close(self) -> None:
        """End the warm process, the child that still runs, and all that came from it."""
        self.let_go()
        try:
            self.process.wait(ANSWER_S)
        except subprocess.TimeoutExpired:  # the keeper itself was stopped, again and again
            for pid in (*descendants(self.process.pid), self.process.pid):
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            self.process.wait()

    def tree(self) -> list[psutil.Process]:
        """What has come from the warm process, without itself."""
        found = psutil.Process(self.process.pid).children(recursive=True)
        return [process for process in found if process.pid != self.pid]


@dataclass
class Pool:
    """Warm processes without a run, the longest waiting one first."""

    idle: list[Warm] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, key: Key, note: Note) -> Warm:
        """One that waits, or a new one."""
        with self.lock:
            for k in reversed(range(len(self.idle))):
                if self.idle[k].key == key:
                    return self.idle.pop(k)
        return Warm.start(key, note)

    def give_back(self, warm: Warm) -> None:
        """Its run is over."""
        with self.lock:
            self.idle.append(warm)
            old = self.idle.pop(0) if len(self.idle) > KEPT else None
        if old is not None:
            old.close()

    def close(self) -> None:
        """End all that wait."""
        with self.lock:
            for warm in self.idle:
                warm.let_go()
            while self.idle:
                self.idle.pop().close()


POOL = Pool()
atexit.register(POOL.close)


@functools.cache
def available() -> bool:
    """Does this system have what warm processes need?"""
    if sys.platform != "linux" or not hasattr(os, "pidfd_open"):
        return False
    try:
        os.close(os.pidfd_open(os.getpid()))
    except OSError:  # a kernel before 5.3
        return False
    return True


def has_ended(pidfd: int) -> bool:
    """Has the process ended, reaped or not?"""
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    return bool(poll.poll(0))


# The other side


def _become(request: bytes, fds: list[int], serve: Callable[[int], None]) -> NoReturn:
    """In the child: a session, descriptors, surroundings and random numbers of its own, then the work."""
    code = 1
    try:
        os.setsid()
        os.dup2(fds[0], 0)
        os.dup2(fds[1], 1)
        os.dup2(fds[1], 2)
        surroundings = json.loads(request)
        os.environ.clear()
        os.environ.update(surroundings["environ"])
        os.chdir(surroundings["cwd"])
        random.seed()
        if "numpy.random" in sys.modules:
            sys.modules["numpy.random"].seed()
        serve(fds[2])
        code = 0
    finally:
        os._exit(code)


def main(descriptor: str, module: str, *arguments: str) -> NoReturn:
    """Prepare; then one child after the other, until the socket ends. Called by mapgap.execution.keeper."""
    line = socket.socket(fileno=int(descriptor))
    adopt_orphans()
    worker = importlib.import_module(module)
    with contextlib.suppress(Exception):  # the child meets the error again and reports it
        worker.prepare(lambda message: line.send(json.dumps(message).encode()), *arguments)
    gc.freeze()  # no child copies pages because its collector visits them
    line.send(READY + str(os.getpid()).encode())
    while True:
        request, fds, _, _ = socket.recv_fds(line, _LIMIT, 3)
        if not request:
            continue_parent()
            os._exit(0)  # nothing to clean up, and tearing libraries down takes long
        child = os.fork()
        if child == 0:
            line.close()
            _become(request, fds, worker.serve)
        for fd in fds:
            os.close(fd)
        with contextlib.suppress(OSError):  # this program's other side is gone: end the child all the same
            line.send(str(child).encode())
            line.recv(_LIMIT)
        code = end_all(child)
        with contextlib.suppress(OSError):
            line.send(str(code).encode())
