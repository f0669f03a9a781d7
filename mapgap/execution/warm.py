"""Warm processes, which have done their imports and fork a child for every run. Used by mapgap.execution.limits only.

A fresh interpreter needs about a second for NumPy, Numba and a solver; a fork needs milliseconds. There is one warm
process per settings of the threads and per preparation, so that what a run finds imported, and the memory it begins
with, depend on its method alone and never on the runs before. The warm process itself has a single thread,
runs no method, and adopts what its child leaves behind, so that nothing outlives a run. Linux only (``pidfd``, child
subreaper); elsewhere, or if a warm process dies, runs start from a fresh interpreter.

The standard library's forkserver (``multiprocessing``) was measured in its place: it takes longer per run, because it
pickles and imports in the child. It adopts no orphans, so that a daemon of a run must be looked for among all processes
of the machine, there is one per program and not one per preparation, and what its preload says or raises is lost.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
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
from typing import Any, NoReturn

import psutil

#: Warm processes that wait for the next run of their kind; the one that has waited longest ends first.
KEPT = 16
#: Seconds for imports; a first start may compile.
STARTUP_S = 180.0

_PR_SET_CHILD_SUBREAPER = 36
_LIMIT = 1 << 20  # bytes of one message
READY = b"ready"


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


Note = Callable[[dict[str, Any]], None]
"""Takes a message."""


class Gone(Exception):
    """The warm process ended."""


@dataclass
class Warm:
    """This program's side of a warm process, which serves one run at a time.

    Attributes
    ----------
    process : subprocess.Popen
        Leader of a session of its own: Ctrl-C does not reach it; it ends with its socket.
    """

    key: Key
    process: subprocess.Popen[bytes]
    socket: socket.socket

    @classmethod
    def start(cls, key: Key, note: Note) -> Warm:
        """Start a warm process and wait until it is prepared; its messages until then go to ``note``.

        Raises
        ------
        Gone
            It did not get that far.
        """
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "mapgap.execution.warm", str(theirs.fileno()), key.module, *key.arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
                env={**os.environ, **dict(key.environment), "PYTHONPATH": os.pathsep.join(key.path)},
            )
        ours.settimeout(STARTUP_S)
        warm = cls(key, process, ours)
        while (message := warm._receive()) != READY:
            if not message:
                warm.close()
                raise Gone
            note(json.loads(message))
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
            return int(self._receive())
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
            return int(self._receive())
        except (OSError, ValueError) as error:
            raise Gone from error

    def _receive(self) -> bytes:
        try:
            return self.socket.recv(_LIMIT)
        except OSError:
            return b""

    def close(self) -> None:
        """End the warm process; a child that still runs is killed."""
        self.socket.close()
        try:
            self.process.wait(5.0)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


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


def _adopt_orphans() -> None:
    """Descendants whose parent dies become children of this process."""
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


def _end_all(child: int) -> int:
    """Kill and wait for the child and for every orphan; the exit code of the child."""
    os.kill(child, signal.SIGKILL)  # without effect on its code, if it has ended by itself
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    with contextlib.suppress(ChildProcessError):  # no child is left
        while True:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                _kill_orphans()
                time.sleep(0.001)
    return code


def _kill_orphans() -> None:
    for orphan in psutil.Process().children():
        with contextlib.suppress(psutil.Error):
            orphan.kill()


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


def main() -> NoReturn:
    """Prepare; then one child after the other, until the socket ends."""
    descriptor, module, *arguments = sys.argv[1:]
    line = socket.socket(fileno=int(descriptor))
    _adopt_orphans()
    worker = importlib.import_module(module)
    with contextlib.suppress(Exception):  # the child meets the error again and reports it
        worker.prepare(lambda message: line.send(json.dumps(message).encode()), *arguments)
    gc.freeze()  # no child copies pages because its collector visits them
    line.send(READY)
    while True:
        request, fds, _, _ = socket.recv_fds(line, _LIMIT, 3)
        if not request:
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
        code = _end_all(child)
        with contextlib.suppress(OSError):
            line.send(str(code).encode())


if __name__ == "__main__":
    main()
