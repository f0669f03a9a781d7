"""What can be wrong with what a user hands in, and how it is said."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass


class MapgapError(Exception):
    """Base of all errors a user can cause; printed as one clear message, without a traceback."""

    exit_code = 2


class Interrupted(SystemExit):
    """Ctrl-C or SIGTERM: the program ends, and no guard against other people's code may stop it."""


Location = tuple[str | int, ...]
"""Where a value lies in a file: names of fields and positions in lists, from the outside in."""


#: Characters of a finding's text, of a name in it, and findings that one error lists: what a person reads.
TEXT_LIMIT, NAME_LIMIT, FINDING_LIMIT = 1000, 200, 100


def short(text: str, limit: int = NAME_LIMIT) -> str:
    """The text, or its beginning and end where it is too long to be read."""
    return (
        text
        if len(text) <= limit
        else f"{text[: limit - limit // 4]}… ({len(text):,} characters) …{text[-limit // 4 :]}"
    )


def printable(text: str) -> str:
    """The text with control characters shown as what they are: data must not move a cursor. Line ends stay."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text)


def dotted(location: Location) -> str:
    """``layers[3].fp[0]``."""
    text = ""
    for part in location:
        text += f"[{part}]" if isinstance(part, int) else f".{short(part)}" if text else short(part)
    return text


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong with a file, a flag or a profile.

    Attributes
    ----------
    text : str
        ``expected …, found …``.
    location : tuple
        The value that is wrong; empty for the whole.
    name : str
        What people call the thing at the location (``conv2`` for ``layers[3]``), if it has a name.
    place : str
        File, line and column, once they are known.
    """

    text: str
    location: Location = ()
    name: str = ""
    place: str = ""

    def __str__(self) -> str:
        where = dotted(self.location) + (f" ({short(self.name)})" if self.name else "")
        return ": ".join(part for part in (self.place, where, short(self.text, TEXT_LIMIT)) if part)

    def below(self, base: Location) -> Finding:
        """The same finding, in a larger whole."""
        return Finding(self.text, (*base, *self.location), self.name)


class InputError(MapgapError, ValueError):
    """A file, flag or profile is wrong.

    Validators of instances and plans raise it too: it is a ``ValueError``, which pydantic collects.

    Attributes
    ----------
    findings : list of Finding
        Everything that is wrong, each naming place, expected and found.
    """

    def __init__(self, findings: str | Finding | Iterable[str | Finding]) -> None:
        listed = [findings] if isinstance(findings, (str, Finding)) else list(findings)
        self.findings = [Finding(each) if isinstance(each, str) else each for each in listed]
        super().__init__("\n".join(self.problems))

    @property
    def problems(self) -> list[str]:
        """The findings as text; of very many the first, and how many more there are."""
        listed = [str(finding) for finding in self.findings[:FINDING_LIMIT]]
        left = len(self.findings) - len(listed)
        return [*listed, f"… and {left:,} more"] if left else listed


def suggest(word: str, known: Iterable[str]) -> str:
    """``; did you mean 'x'?`` where a known word is near; else nothing."""
    near = difflib.get_close_matches(word, list(known), n=1) if len(word) <= NAME_LIMIT else ()
    return f"; did you mean {near[0]!r}?" if near else ""


class MissingExtra(InputError):
    """What is asked for needs an optional part of the installation."""


class PlanError(MapgapError):
    """A plan failed verification, or an exact model claims another objective than the evaluator."""

    exit_code = 5
