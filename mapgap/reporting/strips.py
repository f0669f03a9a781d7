"""Strip charts: a line per method, a dot per run, and what the run showed where the pointer rests on it.

They are written as SVG by hand, with widths in percent: they fill the page, wide or narrow, and their text keeps its
size.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from statistics import median

from mapgap.core import printable

ROW, TOP, BOTTOM, RIGHT = 20, 6, 34, 34
"""Pixels: height of a line, room above and below all of them, room at the right end of the axis."""
CHARACTER = 6.3
"""Pixels of a character of a name."""
LONGEST = 30
"""Characters of a name."""
MARKS = 7
"""Marks of an axis, at most."""


@dataclass(frozen=True)
class Dot:
    """A value, what is known of it in words, and whether it is only a lower limit (a ring)."""

    value: float
    words: str
    limit: bool = False


@dataclass(frozen=True)
class Strip:
    """The dots of one method."""

    name: str
    dots: Sequence[Dot]


def strip_chart(strips: Sequence[Strip], label: str, *, linear: float) -> str:
    """SVG text of a chart; values from 0 on, and the axis is logarithmic beyond ``linear``."""
    most = max((dot.value for strip in strips for dot in strip.dots), default=0.0) or linear

    def place(value: float) -> str:
        return f"{100 * math.log1p(value / linear) / math.log1p(most / linear):.1f}%"

    left = round(CHARACTER * min(LONGEST, max((len(strip.name) for strip in strips), default=0))) + 8
    height = TOP + ROW * len(strips) + BOTTOM
    foot = TOP + ROW * len(strips)
    parts = [
        f'<svg class="strip" role="img" width="100%" height="{height}" font-family="sans-serif" font-size="11">',
        *(
            f'<text x="{left - 8}" y="{TOP + ROW * k + 14}" text-anchor="end">{_name(strip.name)}</text>'
            for k, strip in enumerate(strips)
        ),
        f'<svg x="{left}" width="70%" style="width:calc(100% - {left + RIGHT}px)" overflow="visible">',
    ]
    for mark in _marks(most, linear):
        x = place(mark)
        parts.append(f'<line x1="{x}" x2="{x}" y1="{TOP}" y2="{foot}" stroke="currentColor" stroke-opacity=".18"/>')
        parts.append(f'<text x="{x}" y="{foot + 13}" text-anchor="middle" font-size="10">{mark:g}</text>')
    for k, strip in enumerate(strips):
        y = TOP + ROW * k + ROW // 2
        parts.append('<g fill="var(--c0,#0072B2)" fill-opacity=".5" stroke="var(--c0,#0072B2)" stroke-opacity=".8">')
        for dot in sorted(strip.dots, key=lambda each: each.value):
            ring = ' fill="none"' if dot.limit else ""
            text = escape(printable(dot.words))
            parts.append(f'<circle cx="{place(dot.value)}" cy="{y}" r="3"{ring}><title>{text}</title></circle>')
        parts.append("</g>")
        if strip.dots:
            x = place(median(dot.value for dot in strip.dots))
            parts.append(
                f'<line x1="{x}" x2="{x}" y1="{y - 7}" y2="{y + 7}" stroke="var(--c1,#D55E00)" stroke-width="3"/>'
            )
    parts.append(f'<text x="50%" y="{foot + 28}" text-anchor="middle">{escape(label)}</text></svg></svg>')
    return "".join(parts)


def _name(name: str) -> str:
    return escape(name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…")


def _marks(most: float, linear: float) -> list[float]:
    """0 and round values, evenly thinned out."""
    found = [0.0]
    power = math.floor(math.log10(linear))
    while 10.0**power <= most:
        found += [step * 10.0**power for step in (1, 3) if linear <= step * 10.0**power <= most]
        power += 1
    every = math.ceil(len(found) / MARKS)
    return [round(mark, 9) for mark in found[::every]]
