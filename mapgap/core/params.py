"""What an algorithm can be tuned by: frozen, documented, recorded with every run, settable by ``--set name=value``.

Parameters stand in ``params.py`` of the room of their algorithm, a dataclass per algorithm, and that file imports
nothing heavy: listing them must not compile kernels. They count work (nodes, steps, decodings), not seconds, so that a
run that ends by work is the same on every machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Self


@dataclass(frozen=True)
class Params:
    """Base of all parameters: numbers, truth values, texts, and tuples of them, each with a default."""

    def changed(self, settings: Mapping[str, Any]) -> Self:
        """The same with other values where ``settings`` names a parameter; other names are left out."""
        known = {each.name for each in fields(self)}
        given = {name: value for name, value in settings.items() if name in known}
        return replace(self, **{name: tuple(v) if isinstance(v, list) else v for name, v in given.items()})

    def to_json(self) -> dict[str, Any]:
        """Names and values."""
        return {each.name: getattr(self, each.name) for each in fields(self)}
