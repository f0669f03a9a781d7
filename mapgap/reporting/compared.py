"""Do two pages, or two pictures, say the same?"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path

from mapgap.core import short
from mapgap.evidence.audit import Fault

_UNSEEN = re.compile(r"<(svg|style|script)\b.*?</\1>", re.DOTALL)
_NAMES = re.compile(r'url\(#\w+\)|\b(id|href|xlink:href)="[^"]*"|<style\b.*?</style>', re.DOTALL)
_DRAWN = re.compile(r"(-?\d+\.?\d*(?:e-?\d+)?)|([^\s\d<>=\"]+)")
"""Numbers and words of a picture."""
HALF = 0.5  #: units of a picture by which two drawings of the same data differ at most
_SEEN = re.compile(r"<svg\b.*?</svg>|<t[dh]\b[^>]*>", re.DOTALL)
"""Of a page: its pictures, and the cells of its tables, whose colours say something."""
_TAGS = re.compile(r"<[^>]*>")


def shown(folder: Path) -> list[Path]:
    """The tables and texts of a folder; one with neither shows nothing, so there is nothing to hold against it."""
    return [file for pattern in ("*.csv", "report.md", "report.html") for file in folder.glob(pattern)]


def of_files(files: Iterable[Path], made: Mapping[str, str]) -> Iterator[Fault]:
    """Committed tables, texts and pictures that are not those that were made, by the names of their files."""
    for file in files:
        if file.name not in made:
            yield Fault("table", str(file), "expected nothing, since its runs make no such table, found a file")
        elif not file.is_file():
            yield Fault("table", str(file), "expected what its runs make, found no file")
        else:
            texts = made[file.name], file.read_text("utf-8")
            if texts[0] == texts[1]:
                continue
            yield from _first_difference(file, *(words_of(text, file.name) for text in texts))
            if file.name.endswith(".html") and not same_drawing(*("\n".join(_SEEN.findall(text)) for text in texts)):
                yield Fault("picture", str(file), "a picture or the look of a cell is not what its runs draw")


def same_drawing(one: str, other: str) -> bool:
    """Do two SVG texts show the same? Their words and colours are equal, their coordinates to half a unit.

    Names inside and the style sheet are not looked at.
    """
    if one == other:
        return True
    pairs = zip_longest(*(_DRAWN.findall(_NAMES.sub("", text)) for text in (one, other)))
    return all(a == b or (a and b and a[0] and b[0] and abs(float(a[0]) - float(b[0])) <= HALF) for a, b in pairs)


def words_of(text: str, name: str) -> list[str]:
    """What a file says: its lines; of HTML the words, without pictures and looks."""
    if not name.endswith(".html"):
        return text.splitlines()
    return _TAGS.sub(" ", _UNSEEN.sub(" ", text)).split()


def _first_difference(file: Path, made: Sequence[str], there: Sequence[str]) -> Iterator[Fault]:
    pairs = enumerate(zip_longest(made, there), 1)
    for place, (ours, theirs) in pairs:
        if ours != theirs:
            kind = "word" if file.suffix == ".html" else "line"
            found = "its end" if theirs is None else repr(short(theirs))
            expected = "its end" if ours is None else repr(short(ours))
            yield Fault("table", f"{file}: {kind} {place}", f"its runs make {expected}, found {found}")
            return
