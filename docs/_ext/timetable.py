"""A plan's timetable as SVG: it follows the width of the page, its text does not shrink, and it reads in the dark.

The lanes are those of the problem's own chart (``Problem.gantt``), which ``mapgap solve --gantt`` draws as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from mapgap.core import GanttBar, GanttLane, quantity
from mapgap.reporting.figures import COLOURS

LANE, NAME, AXIS = 26, 16, 22  #: heights of bars, of the name above them, of the axis, in pixels
CHARACTER, NARROW = 6.5, 340  #: pixels per character; width of a chart on a phone, for which labels are chosen


def drawn(lanes: Sequence[GanttLane], title: str) -> str:
    """The chart as an ``svg`` element.

    Parameters
    ----------
    lanes : sequence of GanttLane
        Times in seconds.
    title : str
        For those who do not see the picture.
    """
    end = max((bar.end for lane in lanes for bar in lane.bars), default=0.0) or 1.0
    groups = colours(lanes)
    height = len(lanes) * (LANE + NAME + 4) + AXIS
    parts = [
        f'<svg class="timetable" role="img" width="100%" height="{height}" aria-label="{escape(title)}">',
        f"<title>{escape(title)}</title>",
    ]
    for place in range(5):
        parts.append(_mark(place, end, height))
    for row, lane in enumerate(lanes):
        top = row * (LANE + NAME + 4)
        parts.append(f'<text class="lane" x="0" y="{top + NAME - 4}">{escape(lane.name)}</text>')
        parts.append(f'<rect class="track" x="0" y="{top + NAME}" width="100%" height="{LANE}"/>')
        parts += [_bar(bar, groups[bar.group], top + NAME, end) for bar in lane.bars]
    return "".join([*parts, "</svg>", _legend(groups)])


def colours(lanes: Sequence[GanttLane]) -> dict[str, str]:
    """Group to its colour, the same as in the chart of ``--gantt``."""
    by_time = sorted((bar for lane in lanes for bar in lane.bars), key=lambda bar: (bar.start, bar.end))
    groups = list(dict.fromkeys(bar.group for bar in by_time))
    if len(groups) <= len(COLOURS):
        groups.sort()
    return {group: COLOURS[place % len(COLOURS)] for place, group in enumerate(groups)}


def _mark(place: int, end: float, height: int) -> str:
    """A line of the grid and its time: five of them, at quarters of the whole."""
    share = 25 * place
    anchor = ("start", "middle", "middle", "middle", "end")[place]
    text = quantity(end * place / 4, "s") if place else "0"
    return (
        f'<line class="grid" x1="{share}%" x2="{share}%" y1="0" y2="{height - AXIS + 4}"/>'
        f'<text class="time" x="{share}%" y="{height - 5}" text-anchor="{anchor}">{escape(text)}</text>'
    )


def _bar(bar: GanttBar, colour: str, top: int, end: float) -> str:
    """One bar, its transfer part first, with a label where one fits; hovering shows what it is."""
    start, width = 100 * bar.start / end, 100 * (bar.end - bar.start) / end
    moved = 100 * bar.transfer / (bar.end - bar.start) if bar.end > bar.start else 0
    label = bar.label.removeprefix(f"{bar.group}/")
    room = width / 100 * NARROW * (1 - moved / 100)
    told = f"{bar.label}: {quantity(bar.start, 's')} to {quantity(bar.end, 's')}"
    text = ""
    if len(label) * CHARACTER < room:
        ink, middle = "light" if _dark(colour) else "dark", 50 + moved / 2
        text = f'<text class="{ink}" x="{middle:.4g}%" y="{LANE / 2 + 4:g}">{escape(label)}</text>'
    transfer = f'<rect class="moved" width="{moved:.4g}%" height="{LANE}"/>' if moved else ""
    return (
        f'<svg x="{start:.5g}%" y="{top}" width="{width:.5g}%" height="{LANE}" fill="{colour}">'
        f'<title>{escape(told)}</title><rect width="100%" height="{LANE}"/>{transfer}{text}</svg>'
    )


def _legend(groups: dict[str, str]) -> str:
    """Colours of groups, where they are few enough to be told apart."""
    if not 1 < len(groups) <= len(COLOURS):
        return ""
    items = "".join(f'<span style="--colour: {colour}">{escape(group)}</span>' for group, colour in groups.items())
    return f'<p class="legend">{items}</p>'


def _dark(colour: str) -> bool:
    red, green, blue = (int(colour[place : place + 2], 16) for place in (1, 3, 5))
    return 0.299 * red + 0.587 * green + 0.114 * blue < 128
