"""What long tasks tell while they are at work: small frozen events, handed to one callable.

A sweep, a certification, an attack and a study take ``tell`` and call it with events of their own, declared beside
them. Who calls the task decides what becomes of the events: the command line shows them (:mod:`mapgap.cli.progress`),
a test collects them, the default drops them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Event:
    """Something that a long task tells."""


Tell = Callable[[Event], None]


def silence(event: Event) -> None:
    """Drop the event."""


@dataclass(frozen=True)
class Compiling(Event):
    """A run waits while the kernels of its method are compiled; none of it is charged to the run.

    Attributes
    ----------
    obstacle : str
        Why every process has to do it again; empty where a cache keeps the machine code, once per installation.
    """

    obstacle: str = ""
