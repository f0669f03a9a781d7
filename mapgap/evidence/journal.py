"""The journal of a ledger: one line per verified fact, only ever appended, under a lock.

What a ledger says is a function of the set of its lines: in whatever order they come, from however many processes or
branches, the entries are the same. So two journals are merged by taking the lines of both. A line is a
:class:`~mapgap.evidence.entry.Fact`, or an entry of a ledger that was written before it had a journal. A torn last line
(its process was killed) counts for nothing and is cut off by the next writer.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from pydantic import ValidationError

from mapgap.core import InputError, MapgapError, short
from mapgap.core.storage import open_file, reason_of
from mapgap.evidence.entry import HISTORY, Entry, Fact, Strict
from mapgap.records.files import repair

SUFFIX = ".journal"


class Written(Strict):
    """An entry of a ledger that was written without this journal."""

    entry: Entry


Line = Fact | Written


def encoded(line: Line) -> bytes:
    """The bytes of a line, the same for the same fact."""
    data = line.model_dump(mode="json", exclude_defaults=True)
    return json.dumps(data, separators=(",", ":")).encode() + b"\n"


def read(path: Path) -> dict[bytes, Line]:
    """The lines of a journal by their bytes, each once; none if there is no file.

    Raises
    ------
    InputError
        A line, other than a torn last one, that is none.
    """
    found: dict[bytes, Line] = {}
    if not path.exists():
        return found
    with open_file(path) as stream:
        for number, raw in enumerate(stream, 1):
            if not raw.endswith(b"\n"):
                break
            if raw.strip() and raw not in found:
                try:
                    data = json.loads(raw)
                    kind: type[Line] = Written if isinstance(data, dict) and "entry" in data else Fact
                    line = kind.model_validate(data)
                except (ValueError, RecursionError) as error:
                    where = f"{short(str(path))}:{number}: expected a fact of the ledger, found"
                    raise InputError(f"{where}: {_words(error)}") from error
                found[encoded(line)] = line
    return found


def _words(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    return str(error)


def append(path: Path, stream: BinaryIO, lines: Iterable[bytes]) -> None:
    """Add lines to a journal that is held, and bring them to the disk.

    Raises
    ------
    MapgapError
        It cannot be written; it is then as it was.
    """
    repair(path)
    size = stream.seek(0, os.SEEK_END)
    try:
        stream.write(b"".join(lines))
        stream.flush()
        os.fsync(stream.fileno())
    except OSError as error:
        with contextlib.suppress(OSError):
            os.truncate(path, size)
        raise MapgapError(f"{path}: cannot write to the journal: {reason_of(error)}") from error


def entries_of(lines: Iterable[Line]) -> tuple[dict[str, Entry], dict[str, Any], dict[str, int]]:
    """What the lines say, whatever their order: entries by instance, the plans of those whose best plan came with a
    fact, and the generation of each instance."""
    by_name: dict[str, list[Line]] = {}
    for line in lines:
        by_name.setdefault(name_of(line), []).append(line)
    entries: dict[str, Entry] = {}
    plans: dict[str, Any] = {}
    generations: dict[str, int] = {}
    for name, about in sorted(by_name.items()):
        entry, plan, generations[name] = _entry(about)
        if entry.known:
            entries[name] = entry
            if plan is not None:
                plans[name] = plan
    return entries, plans, generations


def _entry(lines: Sequence[Line]) -> tuple[Entry, Any, int]:
    """What the lines about one instance say: the entry, its plan if that came with a fact, its generation."""
    generation, _, digest = max((_generation(line), _date(line), _digest(line)) for line in lines)
    lines = [line for line in lines if _digest(line) == digest]
    written = sorted((x for x in lines if isinstance(x, Written)), key=lambda x: (_date(x), encoded(x)))
    facts = sorted((x for x in lines if isinstance(x, Fact)), key=_order)
    if written:
        entry = written[0].entry.model_copy(deep=True)
    else:
        keys = ("instance", "instance_hash", "problem", "unit", "sense")
        entry = Entry(**{key: getattr(facts[0], key) for key in keys})
    plan: Any = None
    for other in written[1:]:
        entry.join(other.entry)
    for fact in facts:
        if "plan" in entry.take(fact):
            plan = fact.witness
    if entry.proven:  # the run that graded it may have begun before the one that proved it
        for fact in facts:
            if fact.grade is not None:
                entry.raise_certificate(fact.grade)
    entry.history = entry.history[-HISTORY:]
    return entry, plan, generation


def name_of(line: Line) -> str:
    """The instance that a line is about."""
    return line.entry.instance if isinstance(line, Written) else line.instance


def _digest(line: Line) -> str:
    return line.entry.instance_hash if isinstance(line, Written) else line.instance_hash


def _generation(line: Line) -> int:
    return 0 if isinstance(line, Written) else line.generation


def _date(line: Line) -> str:
    if isinstance(line, Fact):
        return line.started
    findings = (line.entry.plan, line.entry.bound)
    return max((each.started for each in findings if each is not None), default="")


def _order(fact: Fact) -> tuple[Any, ...]:
    """By date; of one date, the worse before the better, so that a history tells both."""
    sign = -1 if fact.sense == "max" else 1
    worst = float("-inf")
    plan = worst if fact.plan is None else -sign * fact.plan
    return fact.started, plan, worst if fact.bound is None else sign * fact.bound, encoded(fact)
