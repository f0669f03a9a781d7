"""The answers of an overview as pictures of their own, for pages that show no HTML: one per problem, light and dark.

A code host chooses between two files by the reader's theme, so the colours of a file are fixed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from statistics import median

from mapgap.core import printable
from mapgap.reporting.report import Answer
from mapgap.reporting.strips import StripChart
from mapgap.reporting.theme import COLOURS, ON_DARK

WIDTH, HEIGHT, MARGIN = 270, 224, 12
"""Pixels; three cards fill the width of a page on a code host, one that of a phone."""
TOP, ROW, STRIPS = 118, 18, 4
"""Pixels above the strips, of each, and how many a card has room for."""
NAME = 84
"""Pixels for the name of a strip, where there are several."""
LOOKS = {
    "": {
        "ink": "#1f2328",
        "muted": "#59636e",
        "line": "#d1d9e0",
        "paper": "#ffffff",
        "dot": COLOURS[0],
        "bar": "#b84a00",
    },
    "_dark": {
        "ink": "#f0f6fc",
        "muted": "#9198a1",
        "line": "#3d444d",
        "paper": "#0d1117",
        "dot": ON_DARK[0],
        "bar": ON_DARK[1],
    },
}


@dataclass(frozen=True)
class Card:
    """One answer in one look."""

    answer: Answer
    look: str

    @property
    def name(self) -> str:
        """``card_PROBLEM``, and behind it the look."""
        return f"card_{self.answer.title}{self.look}"

    @property
    def alone(self) -> str:
        """SVG text."""
        colours, paper = LOOKS[self.look], self.answer.paper.partition(" (")
        texts = [_text(26, paper[0], 16, colours["ink"], bold=True)]
        if paper[2]:
            texts.append(_text(42, paper[2].rstrip(")"), 11, colours["muted"]))
        if self.answer.losses:
            what, mean, worst = self.answer.losses[0]
            texts.append(_text(68, f"{mean} worse than optimal", 15, colours["ink"], bold=True))
            kind = f"arithmetic mean{f' ({what})' if what else ''}; at worst {worst}"
            texts.append(_text(86, kind, 12, colours["ink"]))
        texts.append(_text(106, self.answer.words[-1].partition(";")[0], 12, colours["ink"]))
        chart = "" if self.answer.chart is None else _strips(self.answer.chart, colours)
        frame = (
            f'<rect x=".5" y=".5" width="{WIDTH - 1}" height="{HEIGHT - 1}" rx="6" fill="{colours["paper"]}" '
            f'stroke="{colours["line"]}"/>'
        )
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
            f'viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif">{frame}{"".join(texts)}{chart}</svg>\n'
        )


def cards(answers: Sequence[Answer]) -> Iterator[Card]:
    """Every answer in every look."""
    for answer in answers:
        for look in LOOKS:
            yield Card(answer, look)


def _text(y: int, text: str, size: int, colour: str, *, bold: bool = False, x: int = MARGIN) -> str:
    weight = ' font-weight="700"' if bold else ""
    return f'<text x="{x}" y="{y}" font-size="{size}" fill="{colour}"{weight}>{escape(printable(text))}</text>'


def _strips(chart: StripChart, colours: dict[str, str]) -> str:
    """A dot per plan, a bar at the median; the axis says where it is logarithmic."""
    strips = chart.strips[:STRIPS]
    left = MARGIN + (NAME if any(strip.name for strip in strips) else 4)
    most = max(dot.value for strip in strips for dot in strip.dots)
    foot = TOP + ROW * len(strips)

    def place(value: float) -> float:
        return left + (WIDTH - MARGIN - 8 - left) * math.log1p(value / chart.linear) / math.log1p(most / chart.linear)

    parts = []
    for mark in (0, *(10**power for power in range(5) if 10**power <= most)):
        x = place(mark)
        parts.append(
            f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{foot}" stroke="{colours["line"]}"/>'
            f'<text x="{x:.1f}" y="{foot + 12}" text-anchor="middle" font-size="10" '
            f'fill="{colours["muted"]}">{mark}</text>'
        )
    for row, strip in enumerate(strips):
        y = TOP + ROW * row + ROW // 2
        parts.append(_text(y + 4, strip.name, 11, colours["ink"]))
        for value, limit in sorted((dot.value, dot.limit) for dot in strip.dots):
            look = f'fill="none" stroke="{colours["dot"]}"' if limit else f'fill="{colours["dot"]}" fill-opacity=".45"'
            parts.append(f'<circle cx="{place(value):.1f}" cy="{y}" r="3" {look}/>')
        x = place(median(dot.value for dot in strip.dots))
        parts.append(f'<path d="M{x:.1f} {y - 7}v14" stroke="{colours["bar"]}" stroke-width="3"/>')
    label = "a dot per plan: loss in %, logarithmic from 1 %"
    return "".join([*parts, _text(foot + 26, label, 10, colours["muted"])])
