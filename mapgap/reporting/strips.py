"""Strip charts: a line per method, a dot per run, and what the run showed where the pointer rests on it.

They are written by hand, with places in percent: they fill the page, wide or narrow, and their text keeps its size.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from statistics import median

from mapgap.core import printable

ROW, TOP, BOTTOM, RIGHT = 20, 6, 34, 24
"""Pixels: height of a line, room above and below all of them, room at the right end of the axis."""
ALONE = 760
"""Pixels of the width of a picture that stands on no page."""
CHARACTER = 6.3
"""Pixels of a character of a name."""
_FONT = 'font-family="sans-serif" font-size="11"'
BOLD = ' font-weight="700"'
LONGEST = 34
"""Characters of a name."""
APART, LONGER = 8.0, 1.0
"""Percent of the width of an axis: between two marks, at least, and more for every character."""


@dataclass(frozen=True)
class Dot:
    """A value, what is known of it in words, and whether it is only a lower limit (a ring)."""

    value: float
    words: str
    limit: bool = False


@dataclass(frozen=True)
class Strip:
    """The dots of one method; ``bold``: it is set apart."""

    name: str
    dots: Sequence[Dot]
    bold: bool = False


@dataclass(frozen=True)
class StripChart:
    """A chart of strips; values from 0 on, and the axis is logarithmic beyond ``linear``."""

    strips: Sequence[Strip]
    label: str
    linear: float

    @property
    def page(self) -> str:
        """HTML that is as wide as there is room: names, and beside them the dots."""
        names, dots = (
            f'<svg width="{width}" height="{self._height}" {_FONT}>{text}</svg>'
            for width, text in ((self._left, self._names()), ("100%", self._dots()))
        )
        return f'<div class="strip">{names}{dots}</div>'

    @property
    def alone(self) -> str:
        """SVG text of a fixed width."""
        inner = f'<svg x="{self._left}" width="{ALONE - self._left - RIGHT}" overflow="visible">{self._dots()}</svg>'
        return f'<svg width="{ALONE}" height="{self._height}" {_FONT}>{self._names()}{inner}</svg>'

    @property
    def _left(self) -> int:
        return round(CHARACTER * min(LONGEST, max((len(strip.name) for strip in self.strips), default=0))) + 12

    @property
    def _foot(self) -> int:
        return TOP + ROW * len(self.strips)

    @property
    def _height(self) -> int:
        return self._foot + BOTTOM

    def _names(self) -> str:
        return "".join(
            f'<text x="{self._left - 10}" y="{TOP + ROW * k + 14}" text-anchor="end"'
            f"{BOLD if strip.bold else ''}>{_name(strip.name)}</text>"
            for k, strip in enumerate(self.strips)
        )

    def _dots(self) -> str:
        """Axis, dots and medians."""
        most = max((dot.value for strip in self.strips for dot in strip.dots), default=0.0) or self.linear

        def share(value: float) -> float:
            return 100 * math.log1p(value / self.linear) / math.log1p(most / self.linear)

        def place(value: float) -> str:
            return f"{share(value):.1f}%"

        parts, free = [], 0.0
        for mark in _marks(most, self.linear):
            if share(mark) < free:
                continue
            x, free = place(mark), share(mark) + APART + LONGER * len(f"{mark:g}")
            parts.append(
                f'<line x1="{x}" x2="{x}" y1="{TOP}" y2="{self._foot}" stroke="currentColor" stroke-opacity=".18"/>'
                f'<text x="{x}" y="{self._foot + 13}" text-anchor="middle" font-size="10">{mark:g}</text>'
            )
        for k, strip in enumerate(self.strips):
            parts.append(_strip(strip, TOP + ROW * k + ROW // 2, place))
        end = f'<text x="50%" y="{self._foot + 28}" text-anchor="middle">{escape(self.label)}</text>'
        return "".join([*parts, end])


def _strip(strip: Strip, y: int, place: Callable[[float], str]) -> str:
    """The dots of a strip and a bar at their median."""
    parts = ['<g fill="var(--c0,#0072B2)" fill-opacity=".5" stroke="var(--c0,#0072B2)" stroke-opacity=".8">']
    for dot in sorted(strip.dots, key=lambda each: each.value):
        ring = ' fill="none"' if dot.limit else ""
        words = escape(printable(dot.words))
        parts.append(f'<circle cx="{place(dot.value)}" cy="{y}" r="3"{ring}><title>{words}</title></circle>')
    parts.append("</g>")
    if strip.dots:
        x = place(median(dot.value for dot in strip.dots))
        look = 'stroke="var(--c1,#D55E00)" stroke-width="3"'
        parts.append(f'<line x1="{x}" x2="{x}" y1="{y - 7}" y2="{y + 7}" {look}/>')
    return "".join(parts)


def _name(name: str) -> str:
    return escape(name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…")


def _marks(most: float, linear: float) -> list[float]:
    """0 and round values."""
    found = [0.0]
    power = math.floor(math.log10(linear))
    while 10.0**power <= most:
        found += [step * 10.0**power for step in (1, 3) if linear <= step * 10.0**power <= most]
        power += 1
    return [round(mark, 9) for mark in found]
