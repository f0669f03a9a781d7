"""Parts of a run for tests of clusters; workers import them by name."""

import os
import signal
import time
from dataclasses import replace
from pathlib import Path

from mapgap.core import SolveResult, Status, Task

NOTHING = 10**6
"""What is known at the begin."""


class Numbers:
    """Parts that return numbers; the smallest is known. A part of at least that much is not wanted."""

    def __init__(self, instance, budget, tasks):
        self.given, self.best, self.found, self.stop = tasks, NOTHING, {}, None

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


class Telling(Numbers):
    """Parts that tell bounds; ``heard`` is what has come, and by whom. The first of them has the whole time."""

    def __init__(self, instance, budget, tasks):
        super().__init__(instance, budget, tasks)
        self.heard = []

    def tasks(self):
        return [replace(task, tells=True, whole=k == 0) for k, task in enumerate(super().tasks())]

    def learn(self, task, found):
        if isinstance(found, SolveResult):
            self.heard.append((task.name, found.bound))
            self.best = min(self.best, found.bound)
        else:
            self.found[task.name] = found

    def result(self, stop):
        return SolveResult(Status.UNKNOWN, stop, notes={"found": self.found, "heard": self.heard})


def telling(instance, budget, known, number, told, seconds):
    """Tells a number; after some seconds, or when less is known, returns what is known, and its own time."""
    budget.report(bound=told)
    until = time.monotonic() + seconds
    while known() >= told and time.monotonic() < until:
        time.sleep(0.05)
    return known(), budget.time_s


def telling_then_dying(instance, budget, known, number, told):
    budget.report(bound=told)
    time.sleep(0.5)
    os.kill(os.getpid(), signal.SIGKILL)


def after(instance, budget, known, number, seconds):
    """What was known at the begin, and after some seconds or when anything is, and the part's own time."""
    first, limit = known(), budget.time_s
    until = time.monotonic() + seconds
    while known() == NOTHING and time.monotonic() < until:
        time.sleep(0.05)
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
