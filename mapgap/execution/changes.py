"""What has changed since the runs of a file: instances that were edited, versions, the revision, the processor."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from mapgap.core import short
from mapgap.execution.progress import Event
from mapgap.records.environment import cpu_model, revision, versions
from mapgap.records.record import RunRecord
from mapgap.records.runs import Runs


@dataclass(frozen=True)
class Changed(Event):
    """What a run file holds was found under other circumstances than this start's.

    Attributes
    ----------
    words : str
        What has changed since.
    """

    words: str


def changes_since(before: Runs, digests: Mapping[str, set[str]]) -> Iterator[str]:
    """In words: instances that were edited since the runs of a file, and what else is different now.

    Runs of an instance as it was keep their lines, beside those of the instance as it is.

    Parameters
    ----------
    digests : mapping
        Name to content hashes of the instances as they are.
    """
    if not before:
        return
    older: dict[str, list[str]] = {}
    for record in before:
        if record.instance_hash not in digests.get(record.instance, (record.instance_hash,)):
            older.setdefault(record.instance, []).append(record.instance_hash)
    for name, found in older.items():
        listed = f"{len(found)} run{'s' if len(found) > 1 else ''} of {', '.join(sorted(set(found)))}"
        yield f"{name} has changed: {listed} stay in the file, beside those of {', '.join(sorted(digests[name]))}"
    here = {**versions(), "revision": revision() or "none", "CPU": cpu_model()}
    for what, value in here.items():
        others = sorted({_circumstance(record, what) for record in before} - {value, ""})
        if others:
            yield f"{what} is {value} now, runs in the file have {short(', '.join(others))}"


def _circumstance(record: RunRecord, what: str) -> str:
    """A version, revision or processor that a record names; empty if it names none."""
    if what == "revision":
        return record.revision or ""
    return record.cpu if what == "CPU" else str(record.versions.get(what, ""))
