"""Data as a page, a table and a file name show it: whatever it holds, it stays text and leads nowhere."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from mapgap.core import printable, short
from mapgap.records.runs import Runs

NAMED_LINES = 20
"""Of the lines of run files that are no runs, so many are named."""
NAMES = ("instance", "problem", "method", "kind", "unit", "cpu")
"""What of a run a report prints as a name."""
EDITED = " #"
"""Between the name of an instance and its content hash, where one name stands for several contents."""
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def markdown(text: str) -> str:
    """Text in a page of Markdown: no tag, no link and no new line comes from it."""
    for found, put in (("<", "&lt;"), ("](", "]\\("), ("\n", " "), ("\r", " ")):
        text = text.replace(found, put)
    return text


def inert(value: Any) -> Any:
    """A cell that no spreadsheet takes for a formula; numbers stay what they are, also as text."""
    if not isinstance(value, str) or not value.startswith(_FORMULA) or len(value) == 1:
        return value
    try:
        float(value.rstrip("%"))
    except ValueError:
        return f"'{value}"
    return value


def file_name(name: str) -> str:
    """A name as part of a file name: nothing leads out of the folder, and different names stay different."""
    plain = re.sub(r"[^\w.@+-]+", "_", name, flags=re.ASCII).lstrip(".")[:100]
    return (
        plain
        if plain == name and name
        else f"{plain}_{hashlib.sha256(name.encode('utf-8', 'replace')).hexdigest()[:8]}"
    )


def presentable(records: Runs) -> Runs:
    """The runs with names that can be shown: control characters as what they are, nothing of endless length.

    An instance that was edited between runs is several rows: its name is followed by the content hash.
    """
    digests: dict[str, set[str]] = {}
    for record in records:
        digests.setdefault(record.instance, set()).add(record.instance_hash)
    found = []
    for record in records:
        shown: dict[str, Any] = {name: _shown(getattr(record, name)) for name in NAMES}
        if len(digests[record.instance]) > 1:
            shown["instance"] += EDITED + _shown(record.instance_hash)
        if record.error is not None:
            shown["error"] = printable(short(record.error, 2000))
        changed = any(value != getattr(record, name) for name, value in shown.items())
        found.append(replace(record, **shown) if changed else record)
    return Runs(found)


def _shown(name: str) -> str:
    return short(printable(name).replace("\n", "\\n"))


def broken_lines(broken: Sequence[str]) -> list[str]:
    """How many lines were left out, and which."""
    if not broken:
        return []
    count = f"{len(broken)} line{'s' if len(broken) > 1 else ''}"
    more = f"; and {len(broken) - NAMED_LINES} more" if len(broken) > NAMED_LINES else ""
    return [f"{count} left out: " + printable("; ".join(broken[:NAMED_LINES])) + more + "."]
