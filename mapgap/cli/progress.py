"""Progress on standard error: what long tasks tell (:mod:`mapgap.execution.progress`), drawn with Rich."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.status import Status
from rich.text import Text

from mapgap.cli.output import percent, say
from mapgap.cli.words import brief
from mapgap.core import printable
from mapgap.execution.progress import Compiling, Event
from mapgap.records.record import relative

SHOW_AFTER_S = 1.0
Words = Mapping[type[Event], Callable[[Any], str]]
"""What is said of events, by their class."""


class Display:
    """Shows events; subclasses may keep something in motion until they are left.

    Parameters
    ----------
    lines, results : Words
        Of events that belong on standard error, and of those that belong on standard output.
    """

    def __init__(self, lines: Words | None = None, results: Words | None = None) -> None:
        self.lines: Words = {Compiling: compiling, **(lines or {})}
        self.results = results or {}
        self.console = Console(stderr=True, soft_wrap=True, highlight=False)

    def __call__(self, event: Event) -> None:
        """Show an event, from whichever thread."""
        if type(event) in self.lines:
            self.line(self.lines[type(event)](event))
        elif type(event) in self.results:
            say(self.results[type(event)](event))

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
    """Text in motion; on a terminal only, and only after a second.

    Parameters
    ----------
    moving, results : Words
        Of events that are in motion until the next one, and of those that belong on standard output.
    """

    def __init__(self, moving: Words | None = None, results: Words | None = None) -> None:
        super().__init__(results=results)
        self.moving = moving or {}
        self.began = time.perf_counter()
        self.status: Status | None = None

    def __call__(self, event: Event) -> None:
        super().__call__(event)
        if type(event) in self.moving:
            self.spin(self.moving[type(event)](event))

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


def compiling(event: Compiling) -> str:
    """What takes a moment before the first run."""
    how = f"in every process: {event.obstacle}" if event.obstacle else "once per installation"
    return f"compiling kernels, {how} …"
