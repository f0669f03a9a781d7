"""Files of runs: one JSON line per finished run, appended and flushed, never rewritten.

A file that is finished can be packed: ``runs.jsonl`` becomes ``runs.jsonl.gz``, and whoever reads ``runs.jsonl`` reads
that. Whoever holds it for writing has it unpacked first. Where both lie there (a program was stopped in between, or a
checkout brought one), the file is the lines of the plain one and then those that only the packed one has.
"""

from __future__ import annotations

import contextlib
import functools
import gzip
import hashlib
import json
import math
import os
import random
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from pydantic import TypeAdapter, ValidationError

from mapgap.core import Certificate, InputError, MapgapError, Status, Stop, short
from mapgap.core.storage import is_file, kind_of, open_file, reason_of, replace_file, sync_folder
from mapgap.records.record import RunRecord
from mapgap.records.runs import Runs

try:
    import fcntl
except ModuleNotFoundError:  # pragma: no cover  (not POSIX)
    fcntl = None  # type: ignore[assignment]

__all__ = [
    "InUse",
    "append",
    "has_runs",
    "held",
    "locked",
    "pack",
    "packed",
    "read_runs",
    "repair",
    "replace_file",
    "run_files",
]

RUNS, PACKED = ".jsonl", ".jsonl.gz"
"""How the names of run files end: as they are written, and packed."""
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


class InUse(InputError):
    """Another process writes to the file."""


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

    One that is packed is unpacked.

    Parameters
    ----------
    fresh : bool
        Empty the file once it is held.

    Raises
    ------
    InputError
        Another sweep holds the file, or it is no regular file or cannot be written.
    """
    if path.suffix == ".gz":
        raise InputError(f"{short(str(path))}: expected the name that a packed run file was made of ({RUNS}), found it")
    with held(path) as stream:
        if fresh:
            stream.truncate(0)
            packed(path).unlink(missing_ok=True)
        elif is_file(packed(path)):
            _unpack(path, stream)
        with contextlib.suppress(OSError):
            sync_folder(path.parent)
        yield


def _unpack(path: Path, stream: BinaryIO) -> None:
    """Append what only the packed file has, and bring it to the disk before that one goes."""
    repair(path)
    try:
        for line in _lines_only_in(packed(path), path):
            stream.write(line)
        stream.flush()
        os.fsync(stream.fileno())
        packed(path).unlink()
    except OSError as error:
        raise MapgapError(f"{path}: cannot unpack {packed(path).name}: {reason_of(error)}") from error


@contextlib.contextmanager
def held(path: Path, *, wait_s: float = 0.0, what: str = "run file") -> Iterator[BinaryIO]:
    """A file that is only appended to, opened for that and locked; the lock ends with this process, however that ends.

    Raises
    ------
    InputError
        It is no regular file or cannot be written, or somebody else holds it (:class:`InUse`) and has not let go of it
        within ``wait_s`` seconds.
    """
    if kind_of(path) not in ("a file", "nothing there"):
        raise InputError(f"{short(str(path))}: expected a {what}, found {kind_of(path)}")
    deadline = time.monotonic() + wait_s
    while True:
        try:
            stream = path.open("ab")
        except (OSError, ValueError) as error:
            text = f"{short(str(path))}: expected a {what} that can be written, found: {reason_of(error)}"
            raise InputError(text) from error
        with stream:
            _hold(path, stream.fileno(), deadline, what)
            # Whoever packed a run file meanwhile has taken it away: look again.
            if path.exists() and os.path.samestat(os.fstat(stream.fileno()), path.stat()):
                yield stream
                return


def _hold(path: Path, descriptor: int, deadline: float, what: str) -> None:
    if fcntl is None:  # pragma: no cover
        return
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            if time.monotonic() < deadline:
                time.sleep(random.uniform(0.005, 0.05))  # so that nobody is always the last
                continue
            who = "sweep" if what == "run file" else "process"
            raise InUse(f"{path}: expected a {what} that no other {who} writes to, found one in use") from error
        except OSError:  # a file system without locks
            return
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
    files = run_files(path) if kind_of(path) == "a folder" else [path]
    if not files or not all(has_runs(file) for file in files):
        raise InputError(f"{short(str(path))}: expected a run file ({RUNS}) or a folder with run files, found none")
    return Runs(record for file in files for record in _last_attempts(list(_records(file, broken))))


def packed(path: Path) -> Path:
    """Where the packed form of a run file lies."""
    return path if path.suffix == ".gz" else path.with_name(f"{path.name}.gz")


def has_runs(path: Path) -> bool:
    """Is there such a run file, plain or packed?"""
    return is_file(path) or is_file(packed(path))


def run_files(folder: Path) -> list[Path]:
    """The run files below a folder by the names of their plain forms, whether packed or not."""
    plain = set(folder.rglob(f"*{RUNS}"))
    return sorted(plain | {path.with_suffix("") for path in folder.rglob(f"*{PACKED}")})


def pack(path: Path) -> Path:
    """Pack a run file that is finished; equal runs make equal bytes. One that is packed already stays as it is.

    Raises
    ------
    InputError
        There is no such file, a sweep writes to it (:class:`InUse`), or the packed file cannot be written.
    """
    if not has_runs(path):
        raise InputError(f"{short(str(path))}: expected a run file ({RUNS}), found none")
    target = packed(path)
    if path == target or not is_file(path):
        return target
    with held(path):
        repair(path)
        replace_file(target, gzip.compress(b"".join(_lines(path)), 9, mtime=0))
        path.unlink()
    return target


def _lines(path: Path) -> Iterator[bytes]:
    """The lines of a run file, plain or packed, with their ends; a line that is too long comes in parts."""
    other = packed(path)
    if path == other or not is_file(other):
        yield from _lines_of(path)
    elif not is_file(path):
        yield from _lines_of(other)
    else:  # a torn last line would run into the next one
        yield from (line for line in _lines_of(path) if line.endswith(b"\n"))
        yield from _lines_only_in(other, path)


def _lines_of(file: Path) -> Iterator[bytes]:
    """The lines of one file."""
    with open_file(file) as stream:
        if file.suffix != ".gz":
            yield from iter(lambda: stream.readline(LINE_LIMIT + 1), b"")
            return
        try:
            with gzip.open(stream) as unpacked:
                yield from iter(lambda: unpacked.readline(LINE_LIMIT + 1), b"")
        except (OSError, EOFError, zlib.error) as error:
            raise InputError(f"{short(str(file))}: expected a packed run file, found: {reason_of(error)}") from error


def _lines_only_in(file: Path, other: Path) -> Iterator[bytes]:
    """The lines of a file that another one does not have."""
    known = {hashlib.sha256(line).digest() for line in _lines_of(other)}
    return (line for line in _lines_of(file) if hashlib.sha256(line).digest() not in known)


def _last_attempts(records: list[RunRecord]) -> list[RunRecord]:
    if not any(record.to_repeat for record in records):
        return records
    last = {record.key: k for k, record in enumerate(records)}
    return [record for k, record in enumerate(records) if not record.to_repeat or last[record.key] == k]


def _records(file: Path, broken: list[str] | None) -> Iterator[RunRecord]:
    """The records of one file; a torn last line is left out."""
    number, whole = 0, True
    for line in _lines(file):
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
