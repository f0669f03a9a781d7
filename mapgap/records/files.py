"""Files of runs: one JSON line per finished run, appended and flushed, never rewritten."""

from __future__ import annotations

import contextlib
import functools
import json
import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from mapgap.core import Certificate, InputError, MapgapError, Status, Stop, short
from mapgap.core.storage import is_file, kind_of, open_file, reason_of, replace_file, sync_folder
from mapgap.records.record import RunRecord
from mapgap.records.runs import Runs

try:
    import fcntl
except ModuleNotFoundError:  # pragma: no cover  (not POSIX)
    fcntl = None  # type: ignore[assignment]

__all__ = ["append", "locked", "read_runs", "repair", "replace_file"]

#: Bytes of the longest line.
LINE_LIMIT = 64 * 2**20
_BLOCK = 1 << 16
_WORDS: dict[str, tuple[Any, ...]] = {
    "sense": ("min", "max"),
    "status": tuple(Status),
    "stop": tuple(Stop),
    "certificate": (None, *Certificate),
}
_TIMES = ("time_limit_s", "wall_s", "build_s", "peak_mb")


def repair(path: Path) -> int:
    """Cut a torn last line (a sweep killed while writing) off a run file; returns the bytes removed.

    Raises
    ------
    MapgapError
        The file cannot be read or written.
    """
    if kind_of(path) == "nothing there":
        return 0
    with open_file(path) as stream:
        size = end = stream.seek(0, os.SEEK_END)
        while end:
            start = max(0, end - _BLOCK)
            stream.seek(start)
            found = stream.read(end - start).rfind(b"\n")
            end = start if found < 0 else start + found + 1
            if found >= 0:
                break
    if end < size:
        try:
            os.truncate(path, end)
        except OSError as error:
            raise MapgapError(f"{path}: cannot cut off a torn last line: {reason_of(error)}") from error
    return size - end


@contextlib.contextmanager
def locked(path: Path, *, fresh: bool = False) -> Iterator[None]:
    """Hold a run file, so that no other sweep writes to it. The lock ends with this process, however that ends.

    Parameters
    ----------
    fresh : bool
        Empty the file once it is held.

    Raises
    ------
    InputError
        Another sweep holds the file, or it is no regular file or cannot be written.
    """
    if kind_of(path) not in ("a file", "nothing there"):
        raise InputError(f"{short(str(path))}: expected a run file, found {kind_of(path)}")
    try:
        stream = path.open("ab")
    except (OSError, ValueError) as error:
        text = f"{short(str(path))}: expected a run file that can be written, found: {reason_of(error)}"
        raise InputError(text) from error
    with stream:
        _hold(path, stream.fileno())
        if fresh:
            stream.truncate(0)
        with contextlib.suppress(OSError):
            sync_folder(path.parent)
        yield


def _hold(path: Path, descriptor: int) -> None:
    if fcntl is None:  # pragma: no cover
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        text = f"{path}: expected a run file that no other sweep writes to, found one in use"
        raise InputError(text) from error
    except OSError:  # a file system without locks
        return


def read_runs(path: Path, broken: list[str] | None = None) -> Runs:
    """All finished runs of a ``.jsonl`` file, or of every such file below a folder.

    A run that was interrupted or killed from outside gives way to its later repetition.

    Parameters
    ----------
    broken : list of str, optional
        Receives what is wrong with lines that are no run records; without it the first of them raises.

    Raises
    ------
    InputError
        Nothing there, or a line (other than a torn last one) that is no run record.
    """
    files = sorted(path.rglob("*.jsonl")) if kind_of(path) == "a folder" else [path]
    if not files or not all(is_file(file) for file in files):
        raise InputError(f"{short(str(path))}: expected a run file (.jsonl) or a folder with run files, found none")
    return Runs(record for file in files for record in _last_attempts(list(_records(file, broken))))


def _last_attempts(records: list[RunRecord]) -> list[RunRecord]:
    if not any(record.to_repeat for record in records):
        return records
    last = {record.key: k for k, record in enumerate(records)}
    return [record for k, record in enumerate(records) if not record.to_repeat or last[record.key] == k]


def _records(file: Path, broken: list[str] | None) -> Iterator[RunRecord]:
    """The records of one file; a torn last line is left out."""
    number, whole = 0, True
    with open_file(file) as stream:
        while line := stream.readline(LINE_LIMIT + 1):
            number, began = number + whole, whole  # the rest of a line that is too long belongs to it
            whole = line.endswith(b"\n")
            if not began or not line.strip():
                continue
            try:
                yield _record(line)
            except _Broken as error:
                if not whole and len(line) <= LINE_LIMIT:
                    return
                text = f"{short(str(file))}:{number}: expected a run record, found {error}"
                if broken is None:
                    raise InputError(text) from error
                broken.append(text)


class _Broken(Exception):
    """Why a line is no run record, in words."""


@functools.cache
def _adapter() -> TypeAdapter[RunRecord]:
    return TypeAdapter(RunRecord)


def _record(line: bytes) -> RunRecord:
    """The record of a line.

    Raises
    ------
    _Broken
    """
    if len(line) > LINE_LIMIT:
        raise _Broken(f"a line of more than {LINE_LIMIT:,} bytes")
    try:
        record = _adapter().validate_json(line, strict=True)
    except ValidationError as error:
        raise _Broken(_words(error)) from error
    for name, known in _WORDS.items():
        value = getattr(record, name)
        if value not in known:
            expected = ", ".join(str(each) for each in known if each is not None)
            raise _Broken(f"{name}: {short(repr(value), 80)}, none of {expected}")
    times = [getattr(record, name) for name in _TIMES] + [point.time_s for point in record.trace]
    if not all(value is None or 0.0 <= value < math.inf for value in times):
        raise _Broken(f"a number of {', '.join(_TIMES)} or trace that is negative or not finite")
    values = [record.objective, record.bound, record.seed, record.workers, record.attempt]
    values += [value for point in record.trace for value in (point.objective, point.bound)]
    if not all(value is None or value.bit_length() < 64 for value in values):
        raise _Broken("an integer beyond 2^63")
    return record


def _words(error: ValidationError) -> str:
    """What the first errors of a validation say."""
    found = error.errors(include_url=False, include_context=False, include_input=False)
    words = [
        f"{'.'.join(map(str, each['loc']))}: {each['msg']}" if each["loc"] else str(each["msg"]) for each in found[:3]
    ]
    more = f" and {len(found) - 3} more" if len(found) > 3 else ""
    return short("; ".join(words), 400) + more


def append(path: Path, record: RunRecord) -> None:
    """Add a finished run to a file, and bring it to the disk before anything else happens.

    Raises
    ------
    MapgapError
        The disk is full or the file cannot be written; the half line is cut off again.
    """
    line = json.dumps(record.to_json(), ensure_ascii=False).encode("utf-8", "replace") + b"\n"
    size = path.stat().st_size if path.exists() else 0
    try:
        with path.open("ab") as stream:
            stream.write(line)
            stream.flush()
            os.fsync(stream.fileno())
    except OSError as error:
        with contextlib.suppress(OSError):
            os.truncate(path, size)
        text = f"{path}: cannot write the run {record.instance} · {record.method}: {reason_of(error)}"
        raise MapgapError(text) from error
