"""Pictures that follow the page they stand on: light or dark, without a script.

Matplotlib writes fixed colours. Here black becomes the colour of the text around, white the background, and the colours
of series become CSS variables with the printed colour to fall back on. A file of its own brings the same rules along.
"""

from __future__ import annotations

import re

#: Colours that stay apart in print and for the colour-blind (Okabe and Ito), without the pale yellow; and the lighter
#: ones that stand for them on a dark page.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#555555", "#8B5A2B", "#6A3D9A", "#B22222")
ON_DARK = ("#4AA3DF", "#F0803C", "#2FC79A", "#DD9CC0", "#F0B53F", "#7CC7F2", "#A9B1BA", "#C99A6B", "#B08FE0", "#E87777")
INK, PAPER = "#010101", "#fefefe"
"""Black and white that stay so on any page: for labels on coloured bars."""

_NUMBER = re.compile(r"-?\d+\.\d{3,}")
_PARTS = re.compile(r' id="(?:figure|axes|patch|line2d|text|xtick|ytick|legend|PathCollection|matplotlib\.axis)_?\d+"')


def rules() -> str:
    """CSS: the variables of both kinds of pages, and the colour of text in pictures."""
    light, dark = (" ".join(f"--c{k}:{colour};" for k, colour in enumerate(colours)) for colours in (COLOURS, ON_DARK))
    return (
        f":root {{ {light} --fg:#1b1f24; --bg:#ffffff; }}\n"
        f"@media (prefers-color-scheme: dark) {{ :root {{ {dark} --fg:#e4e8ec; --bg:#14181d; }} }}\n"
        f"@media print {{ :root {{ {light} --fg:#000000; --bg:#ffffff; }} }}\n"
        "svg { color: var(--fg); } svg text { fill: currentColor; }\n"
    )


def themed(svg: str) -> str:
    """The text of a picture by Matplotlib as part of a page, without what only takes room."""
    svg = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    svg = _PARTS.sub("", svg)
    svg = _NUMBER.sub(lambda found: f"{float(found[0]):.2f}".rstrip("0").rstrip("."), svg)
    svg = re.sub(r"(fill|stroke): ?#000000", r"\1:currentColor", svg)
    svg = re.sub(r"(fill|stroke): ?#ffffff", r"\1:var(--bg,#ffffff)", svg)
    for k, colour in enumerate(COLOURS):
        svg = re.sub(rf"(fill|stroke): ?{colour.lower()}", rf"\1:var(--c{k},{colour})", svg)
    return re.sub(r">\s+<", "><", re.sub(r"\s*\n\s*", " ", svg)).strip()


def standalone(svg: str) -> str:
    """A picture of a page as a file of its own."""
    start = svg.index(">") + 1
    head = svg[:start] if "xmlns=" in svg[:start] else svg[: start - 1] + ' xmlns="http://www.w3.org/2000/svg">'
    return f"{head}<style>{rules()}:root {{ background: var(--bg); }}</style>{svg[start:]}\n"
