"""Files of runs: one JSON line per finished run, appended and flushed, never rewritten."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from dataclasses import MISSING, fields
from pathlib import Path

from mapgap.core import InputError, MapgapError
from mapgap.records.record import RunRecord
from mapgap.records.runs import Runs

REQUIRED = tuple(f.name for f in fields(RunRecord) if f.default is MISSING and f.default_factory is MISSING)
"""The fields that say what was run on what: every record has them, as text."""


def repair(path: Path) -> int:
    """Cut a torn last line (a sweep killed while writing) off a run file; returns the bytes removed."""
    if not path.exists():
        return 0
    data = path.read_bytes()
    end = data.rfind(b"\n") + 1
    if end == len(data):
        return 0
    with path.open("r+b") as stream:
        stream.truncate(end)
    return len(data) - end


def read_runs(path: Path) -> Runs:
    """All finished runs of a ``.jsonl`` file, or of every such file below a folder.

    Raises
    ------
    InputError
        Nothing there, or a line (other than a torn last one) that is no run record.
    """
    files = sorted(path.rglob("*.jsonl")) if path.is_dir() else [path]
    if not files or not all(file.is_file() for file in files):
        raise InputError(f"{path}: expected a run file (.jsonl) or a folder with run files, found none")
    return Runs(record for file in files for record in _records(file))


def _records(file: Path) -> Iterator[RunRecord]:
    """The records of one file; a torn last line is left out."""
    try:
        lines = file.read_text(encoding="utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise InputError(f"{file}: expected UTF-8 text, found byte {error.object[error.start]:#04x}") from error
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except json.JSONDecodeError as error:
            if number == len(lines):
                continue
            raise InputError(f"{file}:{number}: expected one JSON object per line, found {error.msg}") from error
        except RecursionError as error:
            raise InputError(f"{file}:{number}: expected a run record, found too deep a nesting") from error
        if not isinstance(record, dict):
            raise InputError(f"{file}:{number}: expected a run record, found another JSON value")
        missing = [name for name in REQUIRED if not isinstance(record.get(name), str)]
        if missing:
            raise InputError(f"{file}:{number}: expected a run record, found none of: {', '.join(missing)}")
        try:
            yield RunRecord.from_json(record)
        except (TypeError, AttributeError) as error:
            raise InputError(f"{file}:{number}: expected a run record, found: {error}") from error


def replace_file(path: Path, data: bytes) -> None:
    """Write a whole file so that whoever opens it, at any moment and after any crash, finds the old or the new one.

    Raises
    ------
    MapgapError
        The disk is full or the folder cannot be written; the old file stays.
    """
    beside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with beside.open("wb") as stream:
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())
            beside.replace(path)
        except BaseException:
            beside.unlink(missing_ok=True)
            raise
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)  # the name as well
        finally:
            os.close(folder)
    except OSError as error:
        raise MapgapError(f"{path}: cannot be written: {error}") from error


def append(path: Path, record: RunRecord) -> None:
    """Add a finished run to a file, and bring it to the disk before anything else happens.

    Raises
    ------
    MapgapError
        The disk is full or the file cannot be written; the half line is cut off again.
    """
    size = path.stat().st_size if path.exists() else 0
    try:
        with path.open("a") as stream:
            stream.write(json.dumps(record.to_json()) + "\n")
            stream.flush()
            os.fsync(stream.fileno())
    except OSError as error:
        with contextlib.suppress(OSError):
            os.truncate(path, size)
        raise MapgapError(f"{path}: cannot write the run {record.instance} · {record.method}: {error}") from error
