"""Is a published number reproduced? One rule per kind of number, and every verdict can fail.

=========  ============================================================================================================
kind       judged on
=========  ============================================================================================================
``count``  equality: a count is right or it is not
``value``  the relative difference: 10 % is reproduced, 25 % is close
``gain``   what a ratio near 1 gains (ratio - 1, with its sign): another sign differs, however near the ratios are;
           within 25 % of the published gain, or 0.01, is reproduced, within 50 % close
``range``  how two intervals overlap: by half of the shorter one is reproduced, at all is close
``order``  the sign alone, where a source claims only a direction
=========  ============================================================================================================
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from mapgap.core import InputError, suggest

Word = Literal["reproduced", "close", "differs"]
WORDS: Sequence[Word] = get_args(Word)
"""From best to worst."""
Kind = Literal["count", "value", "gain", "range", "order"]
SAME, CLOSE = 0.10, 0.25
"""Relative differences of values."""
SAME_GAIN, CLOSE_GAIN, SAME_POINTS = 0.25, 0.50, 0.01
"""Differences of gains, relative to the published gain; and the absolute one that is always the same gain."""
_ROUNDING = 1e-9
"""Borders belong to the better verdict, whatever binary fractions make of 1.1 - 1."""


@dataclass(frozen=True)
class Verdict:
    """How a reproduced number stands to the published one.

    Attributes
    ----------
    word : str
        ``reproduced``, ``close`` or ``differs``.
    words : str
        By how much, or why.
    distance : float
        The smaller, the nearer to the published number; comparable among verdicts of one kind and number.
    """

    word: Word
    words: str
    distance: float

    def __str__(self) -> str:
        return f"{self.word} ({self.words})" if self.words else self.word

    @property
    def rank(self) -> tuple[int, float]:
        """Sorts the verdict that is kinder to the source first."""
        return WORDS.index(self.word), self.distance


def of_count(published: float, reproduced: float) -> Verdict:
    """Counts are equal or differ."""
    away = reproduced - published
    return Verdict("differs", f"{away:+g}", abs(away)) if away else Verdict("reproduced", "", 0.0)


def of_value(published: float, reproduced: float) -> Verdict:
    """Values by their relative difference; a published 0 is reproduced by 0 only."""
    if not published:
        return Verdict("differs", f"{reproduced:+g}", abs(reproduced)) if reproduced else Verdict("reproduced", "", 0.0)
    difference = reproduced / published - 1
    words = f"{difference:+.0%}" if -0.5 <= difference <= 1 else f"times {difference + 1:.2g}"
    return Verdict(_word(abs(difference), SAME, CLOSE), words, abs(difference))


def of_gain(published: float, reproduced: float) -> Verdict:
    """Ratios near 1 by what they gain."""
    return of_difference(published - 1, reproduced - 1)


def of_difference(published: float, reproduced: float) -> Verdict:
    """Gains, as shares with their sign: 0.07 for 1.07 times, -0.25 for a reduction by 25 %."""
    away = abs(reproduced - published)
    if published * reproduced < 0:
        return Verdict("differs", f"sign differs: {reproduced:+.1%} against {published:+.1%}", away)
    words = f"{reproduced:+.1%} against {published:+.1%}"
    if away <= SAME_POINTS + _ROUNDING:
        return Verdict("reproduced", words, away)
    return Verdict(_word(away, SAME_GAIN * abs(published), CLOSE_GAIN * abs(published)), words, away)


def of_range(published: Sequence[float], reproduced: Sequence[float]) -> Verdict:
    """Closed intervals, each as its two ends in any order, by how they overlap; a point within the other is inside."""
    (a, b), (c, d) = sorted(published), sorted(reproduced)
    overlap, shorter = min(b, d) - max(a, c), min(b - a, d - c)
    words = f"{c:.4g} to {d:.4g} against {a:.4g} to {b:.4g}"
    if overlap < 0:
        return Verdict("differs", f"apart: {words}", -overlap)
    return Verdict("reproduced" if overlap >= shorter / 2 - _ROUNDING else "close", words, shorter - overlap)


def of_order(expected: float, reproduced: float) -> Verdict:
    """The sign of a number against that of ``expected``."""
    same = expected * reproduced > 0
    return Verdict("reproduced" if same else "differs", f"{reproduced:+.4g}", 0.0 if same else abs(reproduced))


KINDS: Mapping[Kind, Callable[[Any, Any], Verdict]] = {
    "count": of_count,
    "value": of_value,
    "gain": of_gain,
    "range": of_range,
    "order": of_order,
}


def judge(kind: Kind, published: Any, reproduced: Any, unit: str = "") -> Verdict:
    """The verdict on a number, or on an interval where the kind is ``range``.

    Parameters
    ----------
    unit : str
        A gain whose unit begins with ``%`` is one already: 37 for 1.37 times.

    Raises
    ------
    InputError
        There is no such kind of number, or something is not a number (or not two).
    """
    if kind not in KINDS:
        raise InputError(f"kind: expected one of {', '.join(KINDS)}, found {kind!r}{suggest(kind, KINDS)}")
    for role, each in (("published", published), ("reproduced", reproduced)):
        ends = each if kind == "range" and isinstance(each, (list, tuple)) and len(each) == 2 else [each]
        if (kind == "range") != (len(ends) == 2) or not all(map(_is_number, ends)):
            raise InputError(f"{role}: expected {'two numbers' if kind == 'range' else 'a number'}, found {each!r}")
    if kind == "gain" and unit.startswith("%"):
        return of_difference(published / 100, reproduced / 100)
    return KINDS[kind](published, reproduced)


def verdict(published: float | None, reproduced: float | None, *, kind: Kind = "value", unit: str = "") -> str:
    """The verdict as a cell of a table; ``not comparable`` where a number is missing.

    Raises
    ------
    InputError
        As :func:`judge`.
    """
    if published is None or reproduced is None:
        return "not comparable"
    return str(judge(kind, published, reproduced, unit))


def _is_number(each: Any) -> bool:
    return isinstance(each, (int, float)) and not isinstance(each, bool) and math.isfinite(each)


def _word(away: float, same: float, close: float) -> Word:
    if away <= same + _ROUNDING:
        return "reproduced"
    return "close" if away <= close + _ROUNDING else "differs"
