"""Methods that attack the harness, one way each; loaded with ``--plugin`` by the tests of its robustness.

What they start they note in the file that ``HOSTILE_PIDS`` names, so that a test can see whether it is gone.
"""

import contextlib
import fcntl
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from mapgap.core import Method, SolveResult, Status, Stop
from mapgap.problems.suboperation_mapping import Plan, operation_name, operations

PIDS = os.environ.get("HOSTILE_PIDS", "")
SLEEPER = [sys.executable, "-S", "-c", "import time; time.sleep(600)"]


def alone(instance):
    """The whole batch on the first accelerator: FP, BP by falling layer, WU."""
    ratio = (instance.batch, *(0 for _ in instance.accelerators[1:]))
    found = operations(instance, ratio)
    order = [o for o in found if o[0] == "FP"] + [o for o in found if o[0] == "BP"][::-1]
    order += [o for o in found if o[0] == "WU"]
    return Plan(ratio=ratio, order=(tuple(operation_name(instance, o) for o in order), *(() for _ in ratio[1:])))


def done(instance, **more):
    return SolveResult(Status.FEASIBLE, Stop.DONE, alone(instance), **more)


def note(pid):
    if PIDS:
        with Path(PIDS).open("a") as stream:
            stream.write(f"{pid}\n")


def pipe():
    """The descriptor on which this run sends its messages: the last pipe that it can write to."""
    for fd in sorted(map(int, os.listdir("/proc/self/fd")), reverse=True):
        with contextlib.suppress(OSError):
            is_pipe = os.readlink(f"/proc/self/fd/{fd}").startswith("pipe:")
            if fd > 2 and is_pipe and fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE == os.O_WRONLY:
                return fd
    raise RuntimeError("no pipe")


def send(data):
    os.set_blocking(pipe(), True)
    view = memoryview(data if isinstance(data, bytes) else json.dumps(data).encode() + b"\n")
    while view:
        view = view[os.write(pipe(), view) :]


def daemon(clear=True):
    """A process in a session of its own whose parent has gone, and whose environment says nothing of the run."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            note(os.getpid())
            os.execve(SLEEPER[0], SLEEPER, {} if clear else dict(os.environ))
        os._exit(0)
    os.wait()


# Messages

RESULT = {"status": "FEASIBLE", "stop": "done", "plan": None, "bound": None, "claimed": None, "enumerated": False}
RESULT |= {"reason": "", "notes": {}}


def forged(**changes):
    """An ``end`` that is one in shape, with some fields of its result replaced."""
    return {"event": "end", "wall_s": 0.1, "peak_mb": 1.0, "result": {**RESULT, **changes}}


MESSAGES = {
    "foreign_result": {"event": "end", "wall_s": 0.1, "peak_mb": 1.0, "result": {"foo": 1}},
    "wrong_time": {"event": "report", "time_s": "abc", "plan": None, "bound": 3},
    "negative_time": {"event": "report", "time_s": -1.0, "plan": None, "bound": 3},
    "float_bound": {"event": "report", "time_s": 0.1, "plan": None, "bound": 3.5},
    "huge_bound": {"event": "report", "time_s": 0.1, "plan": None, "bound": 10**300},
    "plan_of_text": {"event": "report", "time_s": 0.1, "plan": "x", "bound": None},
    "unknown_status": forged(status="GREAT"),
    "forged_enumerated": forged(status="OPTIMAL", stop="proved", enumerated=True),
    "notes_of_text": forged(notes="x"),
    "second_start": {"event": "start"},
    "unknown_event": {"event": "fire"},
    "no_event": {"x": 1},
    "brackets": b"[" * 200_000 + b"\n",
    "endless_line": lambda: b"x" * (40 * 2**20),
    "no_text": b"\xff\xfe\x00\n",
    "not_a_number": b'{"event": "report", "time_s": NaN, "plan": null, "bound": 1}\n',
    "two_words": {"event": "end", "wall_s": 0.1, "error": "x", "interrupted": True},
}


def telling(name):
    def run(instance, budget):
        budget.report(plan=alone(instance))
        message = MESSAGES[name]
        send(message() if callable(message) else message)  # what is large is made where it is sent
        time.sleep(600)

    return run


# Processes


def stops_parent(instance, budget):
    """The warm process can do nothing for a while."""
    os.kill(os.getppid(), signal.SIGSTOP)
    return done(instance)


def stops_parent_for_ever(instance, budget):
    """A daemon stops the warm process again and again."""
    parent = os.getppid()
    if os.fork() == 0:
        os.setsid()
        note(os.getpid())
        while True:
            with contextlib.suppress(OSError):
                os.kill(parent, signal.SIGSTOP)
            time.sleep(0.01)
    return done(instance)


def kills_parent_and_hides(instance, budget):
    daemon()
    os.kill(os.getppid(), signal.SIGKILL)
    daemon()
    return done(instance)


def hides(instance, budget):
    daemon()
    return done(instance)


def hides_with_environment(instance, budget):
    daemon(clear=False)
    return done(instance)


def stops_itself(instance, budget):
    os.kill(os.getpid(), signal.SIGSTOP)


def ignores_everything(instance, budget):
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGALRM):
        signal.signal(number, signal.SIG_IGN)
    while True:
        time.sleep(0.1)


def spins_in_threads(instance, budget):
    for _ in range(4):
        threading.Thread(target=lambda: [sum(range(1000)) for _ in iter(int, 1)], daemon=True).start()
    time.sleep(600)


def breeds(instance, budget):
    """Fifty processes, each in a group of its own."""
    for _ in range(50):
        if os.fork() == 0:
            os.setpgid(0, 0)
            note(os.getpid())
            time.sleep(600)
    return done(instance)


def closes_everything(instance, budget):
    os.closerange(0, 1000)
    time.sleep(600)


def closes_and_goes_on(instance, budget):
    os.close(pipe())
    return done(instance)


def floods_output(instance, budget):
    for _ in range(300):
        os.write(1, b"\x1b[2J[/b]" * 8000)
    return done(instance)


def floods_reports(instance, budget):
    plan = alone(instance)
    while not budget.exhausted:
        budget.report(plan=plan, bound=1)
    return done(instance)


def fills_memory(instance, budget):
    kept = []
    while True:
        kept.append(bytearray(b"x" * 2**24))


def ends_by_terminate(instance, budget):
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(600)


def raises_markup(instance, budget):
    raise ValueError("[/x] \x1b[31m \ud800 [link=file:///etc/passwd]")


def recurses(instance, budget):
    return recurses(instance, budget)


def leaves_a_child(instance, budget):
    note(subprocess.Popen(SLEEPER, start_new_session=True).pid)
    return done(instance)


def notes_of_endless_depth(instance, budget):
    deep = []
    for _ in range(500):
        deep = [deep]
    return done(instance, notes={"deep": deep, "huge": 10**5000, "nan": float("nan"), "\ud800": "\x00"})


PROCESSES = (
    stops_parent,
    stops_parent_for_ever,
    kills_parent_and_hides,
    hides,
    hides_with_environment,
    stops_itself,
    ignores_everything,
    spins_in_threads,
    breeds,
    closes_everything,
    closes_and_goes_on,
    floods_output,
    floods_reports,
    fills_memory,
    ends_by_terminate,
    raises_markup,
    recurses,
    leaves_a_child,
    notes_of_endless_depth,
)


def good(instance, budget):
    """Harmless, after some hundredths of a second."""
    time.sleep(0.05)
    return done(instance)


def killed_once(instance, budget):
    """Killed, as by a system that is out of memory, unless it was killed before."""
    mark = Path(os.environ["HOSTILE_MARK"])
    if not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return done(instance)


def _method(name, run):
    return Method(f"h_{name}", "suboperation_mapping", "baseline", "test", run)


METHODS = [_method(run.__name__, run) for run in (*PROCESSES, good, killed_once)]
METHODS += [_method(name, telling(name)) for name in MESSAGES]
