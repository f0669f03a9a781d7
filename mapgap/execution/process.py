"""How a supervised process comes into the world: as a fresh interpreter, or as the fork of a warm one.

Both lead a session of their own, read their job from standard input and write messages to a pipe. Used by
mapgap.execution.limits only.
"""

from __future__ import annotations

import contextlib
import functools
import os
import subprocess
import sys
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import psutil

from mapgap.execution import warm

MARK = "MAPGAP_RUN_MARK"


class Ends:
    """The pipes of a run: job (also a sign of life: it ends with this program), output, messages."""

    def __init__(self) -> None:
        self.job_in, self.job_out = os.pipe()
        self.output_in, self.output_out = os.pipe()
        self.message_in, self.message_out = os.pipe()

    def close_theirs(self) -> None:
        for fd in (self.job_in, self.output_out, self.message_out):
            os.close(fd)

    def close_ours(self) -> None:
        for fd in (self.job_out, self.output_in, self.message_in):
            os.close(fd)


class Fresh:
    """A new interpreter."""

    def __init__(self, module: str, environment: Mapping[str, str], mark: str, ends: Ends) -> None:
        self.mark = mark
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", module, str(ends.message_out)],
            stdin=ends.job_in,
            stdout=ends.output_out,
            stderr=subprocess.STDOUT,
            pass_fds=(ends.message_out,),
            start_new_session=True,
            env=_surroundings(environment, mark),
        )
        self.pid = self.process.pid

    def ended(self) -> bool:
        """Has the process ended? It stays unreaped, so that its id still names its group."""
        if not hasattr(os, "waitid"):  # pragma: no cover  (macOS before Python 3.13)
            return self.process.poll() is not None
        if self.process.returncode is not None:
            return True
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def tree(self) -> list[psutil.Process]:
        """The process and its descendants."""
        leader = psutil.Process(self.pid)
        return [leader, *leader.children(recursive=True)]

    def reap(self) -> int | None:
        """Exit code of the killed process, and the end of those that left its group but carry its environment."""
        code = self.process.wait()
        _kill_marked(self.mark)
        return code


class Forked:
    """A fork of a warm interpreter, which adopts the orphans of the run."""

    def __init__(
        self,
        module: str,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        note: warm.Note,
        mark: str,
        ends: Ends,
    ) -> None:
        key = warm.Key(module, tuple(arguments), tuple(sorted(environment.items())), tuple(_search_path()))
        self.warm = warm.POOL.take(key, note)
        try:
            fds = (ends.job_in, ends.output_out, ends.message_out)
            self.pid = self.warm.fork(fds, _surroundings(environment, mark))
        except BaseException:
            self.warm.close()
            raise
        self.mark = mark
        self.pidfd = os.pidfd_open(self.pid)

    def ended(self) -> bool:
        """Has the process ended? The warm one leaves it unreaped until :meth:`reap`."""
        return warm.has_ended(self.pidfd)

    def tree(self) -> list[psutil.Process]:
        """The process and its descendants, adopted ones among them."""
        return self.warm.tree()

    def reap(self) -> int | None:
        """Exit code of the killed process, and the end of everything that came from it."""
        os.close(self.pidfd)
        try:
            code = self.warm.reap()
        except warm.Gone:  # the run has killed it, or it was killed from outside
            self.warm.close()
            _kill_marked(self.mark)
            return None
        warm.POOL.give_back(self.warm)
        return code


def _search_path() -> list[str]:
    return [str(Path(entry or ".").resolve()) for entry in sys.path]


def _surroundings(environment: Mapping[str, str], mark: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(_search_path()), **environment, MARK: mark}


def _kill_marked(mark: str) -> None:
    """Kill processes that escaped the group but inherited the environment of a run."""
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.environ().get(MARK) == mark:
                process.kill()


def launch(
    module: str, environment: Mapping[str, str], prepared: Sequence[str] | None, note: warm.Note
) -> tuple[Fresh | Forked, Ends]:
    """Start a process: forked from a warm one prepared with some arguments, or fresh without them.

    What a warm process tells while it is prepared goes to ``note``.
    """
    settings = {**environment, "PYTHONHASHSEED": "0"}  # same seed, same plan
    if prepared is not None and warm.available():
        with contextlib.suppress(warm.Gone):
            return _start(functools.partial(Forked, module, prepared, settings, note))
    return _start(functools.partial(Fresh, module, settings))


def _start(kind: Callable[[str, Ends], Fresh | Forked]) -> tuple[Fresh | Forked, Ends]:
    ends = Ends()
    try:
        return kind(uuid.uuid4().hex, ends), ends
    except BaseException:
        ends.close_ours()
        raise
    finally:
        ends.close_theirs()
