"""The events of a YAML file with its aliases replaced by what they stand for, as long as that stays small.

Nine lines of YAML can stand for 10^9 values (each a list of ten aliases to the line before), so values are counted as
they come and never built first. Used by mapgap.catalogue.document only.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import yaml

from mapgap.core import InputError, short

#: Values of a file: as they are written, and as aliases repeat them.
VALUE_LIMIT, ALIAS_LIMIT = 1_000_000, 100_000
#: Lists and mappings in each other, also where they are left out; no file of the house comes near it. A parser takes
#: time that grows with the square of the depth.
DEPTH_LIMIT = 64

_STARTS = (yaml.SequenceStartEvent, yaml.MappingStartEvent)
_ENDS = (yaml.SequenceEndEvent, yaml.MappingEndEvent)
_Events = list[tuple[Any, "_Events | None"]]
"""An event, and for an alias the events that it stands for."""


class Expansion(Iterator[Any]):
    """Scalars, starts and ends of the one document of a file, in order.

    An alias that is left stands for one of its own parents.

    Parameters
    ----------
    loader : a loader of PyYAML
    name : str
        Of the file, for messages.
    """

    def __init__(self, loader: Any, name: str) -> None:
        self.loader = loader
        self._name = name
        self._anchors: dict[str, _Events] = {}
        self._recording: list[tuple[_Events, int]] = []  # events of an anchor so far, lists and mappings to be closed
        self._replaying: list[Iterator[tuple[Any, _Events | None]]] = []
        self._written = self._repeated = self._depth = 0
        self._begin()

    def _begin(self) -> None:
        self.loader.get_event()  # of the stream
        if self.loader.check_event(yaml.StreamEndEvent):
            raise InputError(f"{self._name}:1:1: expected a mapping, found an empty file")
        self.loader.get_event()  # of the document

    def __next__(self) -> Any:
        while self._replaying:
            event, stands_for = next(self._replaying[-1], (None, None))
            if event is None:
                self._replaying.pop()
            elif stands_for is not None:
                self._replaying.append(iter(stands_for))
            else:
                return self._counted(event)
        event = self.loader.get_event()
        if isinstance(event, yaml.DocumentEndEvent):
            if not self.loader.check_event(yaml.StreamEndEvent):
                raise self._error(self.loader.peek_event(), "expected a single document, found another one")
            raise StopIteration
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event)
        if event_anchor(event) is not None:
            if event.anchor in self._anchors:
                raise self._error(event, f"expected each anchor once, found {short(event.anchor)} again")
            self._anchors[event.anchor] = []
            self._recording.append((self._anchors[event.anchor], 0))
        self._record(event)
        return self._counted(event)

    def _alias(self, event: Any) -> Any:
        if event.anchor not in self._anchors:
            raise self._error(event, f"expected the alias of an anchor, found {short(event.anchor)}, which is none")
        stands_for = self._anchors[event.anchor]
        if any(stands_for is events for events, _ in self._recording):
            self._record(event)
            return self._counted(event)
        self._record(event, stands_for)
        self._replaying.append(iter(stands_for))
        return next(self)

    def _record(self, event: Any, stands_for: _Events | None = None) -> None:
        """Add an event to all anchors that are still open; those that it completes are closed."""
        change = isinstance(event, _STARTS) - isinstance(event, _ENDS)
        for k, (events, depth) in enumerate(self._recording):
            events.append((event, stands_for))
            self._recording[k] = (events, depth + change)
        while self._recording and self._recording[-1][1] == 0:
            self._recording.pop()

    def _counted(self, event: Any) -> Any:
        self._depth += isinstance(event, _STARTS) - isinstance(event, _ENDS)
        if self._depth > DEPTH_LIMIT:
            raise self._error(event, f"expected at most {DEPTH_LIMIT} lists and mappings in each other, found more")
        if self._replaying:
            self._repeated += 1
            if self._repeated > ALIAS_LIMIT:
                raise self._error(event, f"expected aliases of at most {ALIAS_LIMIT:,} values in all, found more")
        else:
            self._written += 1
            if self._written > 2 * VALUE_LIMIT:  # a list or mapping has a start and an end
                raise self._error(event, f"expected at most {VALUE_LIMIT:,} values, found more")
        return event

    def skip(self, event: Any) -> None:
        """Leave out what begins with an event that was just taken."""
        depth = int(isinstance(event, _STARTS))
        while depth:
            event = next(self)
            depth += isinstance(event, _STARTS) - isinstance(event, _ENDS)

    def _error(self, event: Any, text: str) -> InputError:
        mark = event.start_mark
        return InputError(f"{self._name}:{mark.line + 1}:{mark.column + 1}: {text}")


def event_anchor(event: Any) -> str | None:
    """The anchor of a scalar, list or mapping."""
    return getattr(event, "anchor", None)
