"""Processes that end everything that came from them. Linux only; used by mapgap.execution.warm only.

Run as a program it is the parent of a warm process: small, because it imports nothing else, and out of the way of the
runs, which are its grandchildren. It adopts what the warm process leaves behind, and when the pipe in its arguments
ends, because the harness let go of it or died, it ends all that and itself.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import os
import signal
import sys
import time
from typing import NoReturn

_PR_SET_CHILD_SUBREAPER = 36


def adopt_orphans() -> None:
    """Descendants whose parent dies become children of this process."""
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


def descendants(root: int) -> list[int]:
    """Processes that came from a process, as far as their parents live."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError), open(f"/proc/{name}/stat", "rb") as stream:
                parent = int(stream.read().rpartition(b")")[2].split()[1])  # the name before may hold anything
                children.setdefault(parent, []).append(int(name))
    found = list(children.get(root, ()))
    for pid in found:  # grows meanwhile
        found += children.get(pid, ())
    return found


def end_all(child: int) -> int:
    """Kill and wait for a child and for all that came from this process; the exit code of the child."""
    os.kill(child, signal.SIGKILL)  # without effect on its code, if it has ended by itself
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    with contextlib.suppress(ChildProcessError):  # no child is left
        while True:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                for pid in descendants(os.getpid()):
                    with contextlib.suppress(OSError):
                        os.kill(pid, signal.SIGKILL)
                time.sleep(0.001)
    return code


def continue_parent() -> None:
    """The harness is gone: if this process' parent was stopped, it must go on to see that, too."""
    with contextlib.suppress(OSError):
        os.kill(os.getppid(), signal.SIGCONT)


def main() -> NoReturn:
    """Start the warm process, whose module is in the arguments, in a child; keep it until the pipe ends."""
    lifeline, warm, *arguments = sys.argv[1:]
    adopt_orphans()
    child = os.fork()
    if child == 0:
        os.close(int(lifeline))
        os.setsid()
        importlib.import_module(warm).main(*arguments)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    try:
        for descriptor in arguments[:1]:  # the warm process' end of its socket
            os.close(int(descriptor))
        os.read(int(lifeline), 1)
        end_all(child)
    finally:
        os._exit(0)


if __name__ == "__main__":
    main()
