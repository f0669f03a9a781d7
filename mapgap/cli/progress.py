"""Progress on standard error: what long tasks tell (:mod:`mapgap.execution.progress`), drawn with Rich."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.status import Status
from rich.text import Text

from mapgap.cli.output import percent
from mapgap.cli.words import brief
from mapgap.core import printable, short
from mapgap.execution.changes import Changed
from mapgap.execution.progress import Compiling, Event
from mapgap.execution.sweep import RunEnded, SweepBegan, SweepEnded
from mapgap.records.record import relative

SHOW_AFTER_S = 1.0


class Display:
    """Shows events; subclasses know more of them, and may keep something in motion until they are left."""

    def __init__(self) -> None:
        self.console = Console(stderr=True, soft_wrap=True, highlight=False)

    def __call__(self, event: Event) -> None:
        """Show an event, from whichever thread."""
        if isinstance(event, Compiling):
            how = f"in every process: {event.obstacle}" if event.obstacle else "once per installation"
            self.line(f"compiling kernels, {how} …")

    def line(self, text: str, style: str = "") -> None:
        """A line that stays."""
        self.console.print(Text(printable(text), style))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def end(self) -> None:
        """Stop what is in motion."""


class Spinner(Display):
    """Text in motion; on a terminal only, and only after a second."""

    def __init__(self) -> None:
        super().__init__()
        self.began = time.perf_counter()
        self.status: Status | None = None

    def spin(self, text: str) -> None:
        if not self.console.is_terminal or time.perf_counter() - self.began < SHOW_AFTER_S:
            return
        if self.status is None:
            self.status = self.console.status(Text(printable(text)))
            self.status.start()
        self.status.update(Text(printable(text)))

    def end(self) -> None:
        if self.status is not None:
            self.status.stop()


class RunSpinner(Spinner):
    """Elapsed time, incumbent, bound and gap of one run."""

    def __init__(self, label: str, sign: int, unit: str = "") -> None:
        super().__init__()
        self.label, self.sign, self.unit = label, sign, unit

    def observe(self, elapsed: float, objective: int | None, bound: int | None) -> None:
        """An observer of :func:`mapgap.execution.run.run_method`."""
        gap = percent(relative(objective, bound, self.sign)) or "-"
        known = f"incumbent {brief(objective, self.unit)}  bound {brief(bound, self.unit)}  gap {gap}"
        self.spin(f"{elapsed:.0f} s  {known}  {self.label}")  # a short line loses its end, which is no number


class SweepBar(Display):
    """A bar per sweep, a warning where the cores are oversubscribed, errors as they come, the account at the end."""

    def __init__(self) -> None:
        super().__init__()
        self.bar: Progress | None = None
        self.task = TaskID(0)

    def __call__(self, event: Event) -> None:
        super().__call__(event)
        if isinstance(event, Changed):
            self.line(f"warning: {event.words}", "yellow")
        elif isinstance(event, SweepBegan):
            self.begin(event)
        elif isinstance(event, RunEnded) and self.bar is not None:
            label = printable(f"{event.record.instance} · {event.record.method}")
            self.bar.update(self.task, completed=event.done, total=event.total, description=label)
            if event.record.error:
                self.line(f"{label}: {last_line(event.record.error)}", "red")
        elif isinstance(event, SweepEnded):
            self.end()
            self.line(
                f"{event.runs} run{'s' if event.runs > 1 else ''} in {event.elapsed_s:.1f} s, {event.parallel} at a "
                f"time: {event.measured_s / event.runs:.3f} s measured per run, {event.around_s:.3f} s around it"
            )

    def begin(self, event: SweepBegan) -> None:
        """A new bar."""
        self.end()
        if event.oversubscribed:
            jobs = f"{event.parallel} jobs x {event.workers} workers on {event.cores} cores"
            self.line(f"warning: {jobs}; times will suffer", "yellow")
        columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn())
        self.bar = Progress(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=self.console)
        self.task = self.bar.add_task("runs", total=event.total, completed=event.done)
        self.bar.start()

    def end(self) -> None:
        """Leave the bar as it stands."""
        if self.bar is not None:
            self.bar.stop()
            self.bar = None


def last_line(error: str) -> str:
    """The end of an error, which says most."""
    return short((error.splitlines() or [""])[-1], 300)
