"""Findings that carry their place in their words: ``layers[3].inputs[0] (conv2): expected …``.

Validators and expansions that raise :class:`~mapgap.core.Finding` objects with a location need nothing of this; it
serves those that raise text.
"""

from __future__ import annotations

import re
from collections.abc import Container

from mapgap.core import Location

_FIELD = re.compile(r"^(?P<path>[A-Za-z_]\w*(?:\[\d+\]|\.\w+)*)(?: \([^)]*\))?: (?P<rest>.*)$", re.DOTALL)


def located(text: str, base: Location, known: Container[Location]) -> tuple[Location, str, str]:
    """The place below ``base`` that a text begins with, what it calls that place, and what it says of it."""
    location, rest = base, text
    matched = _FIELD.match(rest)
    while matched is not None:
        parts = [int(part) if part.isdigit() else part for part in re.findall(r"\w+", matched["path"])]
        if (*location, *parts) not in known:
            break
        location, rest = (*location, *parts), matched["rest"]
        matched = _FIELD.match(rest)
    label = "" if location == base else text[: len(text) - len(rest)].removesuffix(": ")
    return location, label, rest
