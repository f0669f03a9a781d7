"""Parts of a run for tests of clusters; workers import them by name."""

import os
import signal
import time
from pathlib import Path

from mapgap.core import SolveResult, Status, Task


class Numbers:
    """Parts that return numbers; the smallest is known. A part of at least that much is not wanted."""

    def __init__(self, instance, budget, tasks):
        self.given, self.best, self.found, self.stop = tasks, 10**6, {}, None

    def tasks(self):
        return [Task(name, f"parts:{run}", arguments) for name, (run, *arguments) in self.given.items()]

    def wanted(self, task):
        return task.arguments[0] < self.best

    @property
    def known(self):
        return self.best

    def learn(self, task, found):
        self.found[task.name] = found
        self.best = min(self.best, task.arguments[0])

    def result(self, stop):
        return SolveResult(Status.UNKNOWN, stop, notes={"found": self.found})


def after(instance, budget, known, number, seconds):
    """What was known at the begin and after some seconds, and the part's own time."""
    first, limit = known(), budget.time_s
    time.sleep(seconds)
    return first, known(), limit


def dying_once(instance, budget, known, number, folder):
    """The first worker that does it dies."""
    marker = Path(folder) / str(number)
    if not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return "done"


def deadly(instance, budget, known, number):
    os.kill(os.getpid(), signal.SIGKILL)


def failing(instance, budget, known, number):
    raise ValueError("this part fails")
