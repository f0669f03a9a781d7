"""Files as the house reads and writes them: regular ones of a bounded size, replaced as a whole.

A fifo or a device would hang or never end, a size without a limit fills the memory, a write that is interrupted leaves
half a file. Whatever goes wrong is one :class:`~mapgap.core.InputError` that names the file.
"""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path
from typing import BinaryIO

from mapgap.core.errors import InputError, short

#: Bytes of the largest file that is read as a whole: instances, plans, sweeps, ledgers, plug-ins, solutions.
SIZE_LIMIT = 32 * 2**20

_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a fifo",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def is_file(path: Path | str) -> bool:
    """Is it a regular file? Also where the name is too long, holds a NUL, or leads round in links: then it is none."""
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except (OSError, ValueError):
        return False


def kind_of(path: Path | str) -> str:
    """What lies there, in words: ``a folder``, ``a fifo``, ``nothing there``, ``too many levels of symbolic links``."""
    try:
        return _KINDS.get(stat.S_IFMT(os.stat(path).st_mode), "a file")
    except FileNotFoundError:
        return "nothing there"
    except OSError as error:
        return (error.strerror or str(error)).lower()
    except ValueError:
        return "a name with a NUL"


def open_file(path: Path | str) -> BinaryIO:
    """A regular file, opened for reading.

    Raises
    ------
    InputError
        It is no regular file, or cannot be read.
    """
    name = short(str(path))
    try:
        # A fifo would wait here for a writer.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0))
    except OSError as error:
        kind = kind_of(path)
        found = reason_of(error) if kind == "a file" else kind
        raise InputError(f"{name}: expected a readable file, found: {found}") from error
    except ValueError as error:
        raise InputError(f"{name}: expected the name of a file, found one with a NUL") from error
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        kind = _KINDS.get(stat.S_IFMT(mode), "something else")
        raise InputError(f"{name}: expected a readable file, found {kind}")
    return open(descriptor, "rb")


def read_bytes(path: Path | str, *, limit: int = SIZE_LIMIT) -> bytes:
    """A whole file.

    Raises
    ------
    InputError
        It is no regular file, larger than ``limit`` bytes, or cannot be read.
    """
    try:
        with open_file(path) as stream:
            # Python takes the memory for all that it may read: as much as there is, then whatever else comes.
            size = min(limit, os.fstat(stream.fileno()).st_size)
            data = stream.read(size + 1)
            while len(data) <= limit and (more := stream.read(min(limit + 1 - len(data), 2**20))):
                data += more
    except OSError as error:
        raise InputError(f"{short(str(path))}: expected a readable file, found: {reason_of(error)}") from error
    if len(data) > limit:
        raise InputError(f"{short(str(path))}: expected a file of at most {limit:,} bytes, found a larger one")
    return data


def read_text(path: Path | str, *, limit: int = SIZE_LIMIT) -> str:
    """A whole file of text.

    Raises
    ------
    InputError
        As :func:`read_bytes`, or it is no UTF-8.
    """
    data = read_bytes(path, limit=limit)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        byte = data[error.start]
        raise InputError(f"{short(str(path))}: expected UTF-8 text, found byte {byte:#04x}") from error
    return text.replace("\r\n", "\n").replace("\r", "\n")


def replace_file(path: Path, data: bytes, *, parents: bool = True) -> None:
    """Write a whole file so that whoever opens it, at any moment and after any crash, finds the old or the new one.

    What is no regular file (``/dev/stdout``, a fifo) cannot be replaced and is written to. Folders that are missing
    are made, unless ``parents`` is false.

    Raises
    ------
    InputError
        The disk is full or the folder cannot be written; the old file stays.
    """
    try:
        target = Path(os.path.realpath(path))  # a link stays a link
        if parents:
            target.parent.mkdir(parents=True, exist_ok=True)
        if target.exists() and not target.is_file():
            with target.open("wb") as stream:
                stream.write(data)
            return
        beside = target.with_name(f".{target.name[:200]}.{os.getpid()}.tmp")
        try:
            with beside.open("wb") as stream:
                if target.exists():
                    os.fchmod(stream.fileno(), stat.S_IMODE(target.stat().st_mode))
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())
            beside.replace(target)
        except BaseException:
            with contextlib.suppress(OSError):
                beside.unlink(missing_ok=True)
            raise
        sync_folder(target.parent)
    except (OSError, ValueError) as error:
        text = f"{short(str(path))}: expected a file that can be written, found: {reason_of(error)}"
        raise InputError(text) from error


def sync_folder(folder: Path) -> None:
    """Bring the names in a folder to the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_folder(path: Path) -> None:
    """Make a folder and those around it.

    Raises
    ------
    InputError
        It cannot be made.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        text = f"{short(str(path))}: expected a folder or a place for one, found: {reason_of(error)}"
        raise InputError(text) from error


def reason_of(error: Exception) -> str:
    """The words of an error of the system: ``No space left on device``."""
    return error.strerror if isinstance(error, OSError) and error.strerror else str(error)
