"""Lies planted in a copy of a checkout, one at a time: how many does the audit find?

A lie is drawn by kind: what a careless or bad hand could change in pages, tables, pictures, ledger and runs. The audit
is asked about everything that the changed file has a part in; the honest file comes back before the next lie. Of runs
the page of their report is made anew from the lie, as a liar would do it, so that only the rest can tell.
"""

from __future__ import annotations

import gzip
import json
import random
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from mapgap.core import InputError
from mapgap.execution.progress import Event, Tell, silence
from mapgap.reporting.committed import CLAIMING, Checkout

COPIED = (*CLAIMING, "reports", "instances", "CITATION.cff", "codemeta.json")
WORDS = (
    ("longer", "shorter"), ("faster", "slower"), ("more", "less"), ("better", "worse"), ("at most", "at least"),
    ("above", "below"), ("never", "always"), ("all", "some"), ("largest", "smallest"), ("best", "worst"),
)  # fmt: skip
"""Words that change what a sentence says."""
_SWAP = {a: b for pair in WORDS for a, b in (pair, pair[::-1])}
_NUMBER = re.compile(r"(?<![\w.#/-])\d+(?:\.\d+)?(?![\w/-])")
_SKIPPED = re.compile(r"```.*?```|`[^`\n]*`|\]\([^)]*\)|<!--.*?-->|\A---.*?\n---", re.DOTALL)
_CODE = re.compile(r"```.*?```", re.DOTALL)
Change = Callable[[random.Random, str], str | None]
"""A text with a lie in it; ``None`` where it has no place for one."""


@dataclass(frozen=True)
class Planted(Event):
    """A lie of a kind in a file, by its path in the checkout; whether the audit found it, and whether by the data.

    What is found, and not by the data, differs from what was accepted.
    """

    kind: str
    file: str
    found: bool
    by_data: bool


def _other(number: str) -> str:
    """Another number of the same look."""
    first = next((place for place, sign in enumerate(number) if sign in "123456789"), len(number) - 1)
    return f"{number[:first]}{int(number[first]) % 9 + 1}{number[first + 1 :]}"


def _at(rng: random.Random, text: str, spans: list[tuple[int, int]], new: Callable[[str], str]) -> str | None:
    """The text with one of these places changed."""
    if not spans:
        return None
    start, end = rng.choice(spans)
    return text[:start] + new(text[start:end]) + text[end:]


def _outside(text: str) -> str:
    """A page with everything blank that is no prose."""
    return _SKIPPED.sub(lambda hidden: " " * len(hidden[0]), text)


def figure(rng: random.Random, text: str) -> str | None:
    """A figure between the marks of a placeholder."""
    shown = _CODE.sub(lambda hidden: " " * len(hidden[0]), text)
    spans = [m.span(1) for m in re.finditer(r"<!-- fig: .*? -->([^<]*\d[^<]*)<!-- /fig -->", shown)]
    return _at(rng, text, spans, _other)


def number(rng: random.Random, text: str) -> str | None:
    """A number that somebody typed."""
    filled = {m.start(1) for m in re.finditer(r"<!-- fig: .*? -->([^<]*)<!-- /fig -->", text)}
    return _at(rng, text, [m.span() for m in _NUMBER.finditer(_outside(text)) if m.start() not in filled], _other)


def word(rng: random.Random, text: str) -> str | None:
    """A word that compares, in a block that has a figure."""
    said = r"\b(" + "|".join(_SWAP) + r")\b"
    blocks = [m for m in re.finditer(r"(?:[^\n]+\n)+", text) if "<!-- fig:" in m[0]]
    spans = [
        (block.start() + m.start(), block.start() + m.end())
        for block in blocks
        for m in re.finditer(said, _outside(block[0]))
    ]
    return _at(rng, text, spans, _SWAP.__getitem__)


def cell(rng: random.Random, text: str) -> str | None:
    """A number in a committed table."""
    return _at(rng, text, [m.span() for m in _NUMBER.finditer(text) if m.start() > text.find("\n")], _other)


def label(rng: random.Random, text: str) -> str | None:
    """The names of two rows that follow one another."""
    lines = text.split("\n")
    rows = [
        k
        for k in range(1, len(lines) - 1)
        if all(line.partition(",")[1] for line in lines[k : k + 2])
        and lines[k].partition(",")[0] != lines[k + 1].partition(",")[0]
    ]
    if not rows:
        return None
    k = rng.choice(rows)
    (a, _, rest), (b, _, other) = (lines[i].partition(",") for i in (k, k + 1))
    return "\n".join([*lines[:k], f"{b},{rest}", f"{a},{other}", *lines[k + 2 :]])


def bar(rng: random.Random, text: str) -> str | None:
    """A coordinate of a picture, by a fifth and at least five units."""
    spans = [m.span(1) for m in re.finditer(r'\bd="M [^"]*? L [\d.]+ ([\d.]+)', text)]
    return _at(rng, text, spans, lambda place: f"{float(place) * 1.2 + 5:g}")


def colour(rng: random.Random, text: str) -> str | None:
    """The colour of a line or bar."""
    return _at(rng, text, [m.span(1) for m in re.finditer(r"var\(--c(\d)\b", text)], lambda k: str((int(k) + 1) % 10))


def _entry(field: str) -> Change:
    """The value of every entry's plan or bound."""

    def change(rng: random.Random, text: str) -> str | None:
        return _at(rng, text, [m.span(1) for m in re.finditer(rf"\n  {field}:\n    value: (\d+)", text)], _other)

    return change


def grade(rng: random.Random, text: str) -> str | None:
    """An optimum whose certificate does not exist."""
    spans = [m.span(1) for m in re.finditer(r"\n  certificate: (claimed|agreed)\n", text)]
    return _at(rng, text, spans, lambda _: "checked")


def certified(rng: random.Random, text: str) -> str | None:
    """The instance that a certificate is about."""
    end = text.find('"bound":')
    return _at(rng, text, [m.span(1) for m in re.finditer(r"(?<=[\[,:])(\d{2,})(?=[\],}])", text[:end])], _other)


def removed(rng: random.Random, text: str) -> str | None:
    """A run that is gone."""
    lines = text.splitlines(keepends=True)
    lines.pop(rng.randrange(len(lines)))
    return "".join(lines)


def _run(field: str) -> Change:
    """A number of one run: its objective, its bound or its seconds."""

    def change(rng: random.Random, text: str) -> str | None:
        lines = text.splitlines(keepends=True)
        runs = [k for k, line in enumerate(lines) if json.loads(line).get(field)]
        if not runs:
            return None
        k = rng.choice(runs)
        record = json.loads(lines[k])
        number = _other(json.dumps(record[field]))
        lines[k] = json.dumps({**record, field: json.loads(number)}) + "\n"
        return "".join(lines)

    return change


KINDS: Mapping[str, tuple[str, Change]] = {
    "figure of a page": ("*.md", figure),
    "number of a page": ("*.md", number),
    "word of a page": ("*.md", word),
    "cell of a table": ("reports/*/*.csv", cell),
    "names of two rows": ("reports/*/*.csv", label),
    "picture of a page": ("docs/images/*.svg", bar),
    "colour of a page": ("docs/images/*.svg", colour),
    "picture of a report": ("reports/*/report.html", bar),
    "colour of a report": ("reports/*/report.html", colour),
    "plan of the ledger": ("instances/best_known.yaml", _entry("plan")),
    "bound of the ledger": ("instances/best_known.yaml", _entry("bound")),
    "grade of the ledger": ("instances/best_known.yaml", grade),
    "instance of a certificate": ("instances/best_known/*.cert.json.gz", certified),
    "number of a paper": ("instances/published/*.yaml", number),
    "fact of a report by hand": ("reports/*/[!r]*.md", number),
    "run that is gone": ("reports/*/runs.jsonl.gz", removed),
    "objective of a run": ("reports/*/runs.jsonl.gz", _run("objective")),
    "bound of a run": ("reports/*/runs.jsonl.gz", _run("bound")),
    "seconds of a run": ("reports/*/runs.jsonl.gz", _run("wall_s")),
}
"""Files, by pattern, and what is changed in one of them."""


def plant(root: Path, copy: Path, count: int, seed: int = 0, tell: Tell = silence) -> Iterator[Planted]:
    """Plant lies in a copy of a checkout, kinds in turn; its folder is there and empty.

    Raises
    ------
    InputError
        The folder is no checkout, or one in which something does not hold already.
    """
    for name in COPIED:
        (shutil.copytree if (root / name).is_dir() else shutil.copy2)(root / name, copy / name)
    honest, rng = Checkout(copy), random.Random(seed)
    if wrong := honest.audit():
        raise InputError(f"{root}: expected a checkout in which everything holds, found {wrong[0]}")
    for index in range(count):
        kind = list(KINDS)[index % len(KINDS)]
        pattern, change = KINDS[kind]
        files = honest.pages() if pattern == "*.md" else sorted(copy.glob(pattern))
        for file in rng.sample(files, len(files)):
            before = file.read_bytes()
            text = (gzip.decompress(before) if file.suffix == ".gz" else before).decode()
            after = change(rng, text)
            if after is not None and after != text:
                break
        else:
            continue
        file.write_bytes(gzip.compress(after.encode(), mtime=0) if file.suffix == ".gz" else after.encode())
        first = next(honest.faults_of(file), None)
        planted = Planted(
            kind, str(file.relative_to(copy)), first is not None, first is not None and first.kind != "changed"
        )
        file.write_bytes(before)
        tell(planted)
        yield planted


def table(planted: list[Planted]) -> list[dict[str, object]]:
    """Lies and found lies by kind."""
    rows = []
    for kind in KINDS:
        found = [each.found for each in planted if each.kind == kind]
        if found:
            by_data = sum(each.by_data for each in planted if each.kind == kind)
            rows.append({"kind": kind, "planted": len(found), "found": sum(found), "by_data": by_data})
    return rows
