"""What other packages announce through entry points.

Somebody else's package must not break this program: it may hang, fill the memory, end the process or print as it is
imported. So the entry points of a package are loaded in a fork under limits first, and here only if that went well. The
verdict is remembered per version of the package and date of its modules; one about an exception is not, for that is met
again here and said with its entry point.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import importlib.machinery
import io
import json
import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

from mapgap.core.errors import Interrupted, printable, short
from mapgap.core.limited import Exceeded, Limits, limited
from mapgap.core.storage import read_bytes, replace_file

GROUPS = ("mapgap.problems", "mapgap.methods")
#: Of loading the entry points of one package.
LIMITS = Limits(cpu_s=60, wall_s=20, memory_mb=4096, writes=True)


class BrokenEntryPoint(UserWarning):
    """A third party's entry point that cannot be used."""


@dataclass(frozen=True)
class Announced:
    """An entry point, loaded.

    Attributes
    ----------
    group, name, value, package, version : str
        As declared, and by whom.
    loaded : Any
    error : str
        Why it could not be loaded; empty if it could.
    """

    group: str
    name: str
    value: str
    package: str
    version: str
    loaded: Any = None
    error: str = ""

    @property
    def text(self) -> str:
        return printable(short(f"{self.group}: {self.name} = {self.value}"))

    def warn(self, reason: str) -> None:
        text = f"entry point {self.text} of package {self.package} is left out: {reason}"
        warnings.warn(printable(text), BrokenEntryPoint, stacklevel=3)


def words_of(error: BaseException) -> str:
    """An error of somebody else's in words, even where it has none."""
    try:
        return short(f"{type(error).__name__}: {error}", 1000)
    except Exception:
        return type(error).__name__
    except BaseException:  # its text ends the process
        return "an error without words"


@cache
def announced() -> tuple[Announced, ...]:
    """What all entry points name, in the order of their texts and packages."""
    found = []
    for package, entries in sorted(_by_package().items()):
        reason = _verdict(package, entries)
        for entry in entries:
            version = entry.dist.version if entry.dist else ""
            loaded, error = (None, reason) if reason else _load(entry)
            found.append(Announced(entry.group, entry.name, entry.value, package, str(version), loaded, error))
    return tuple(sorted(found, key=lambda each: (each.text, each.package)))


def forget(*, verdicts: bool = False) -> None:
    """Load everything anew when it is asked for; with ``verdicts``, in a fork, too."""
    announced.cache_clear()
    if verdicts:
        with contextlib.suppress(OSError):
            _file().unlink(missing_ok=True)


def _by_package() -> dict[str, list[EntryPoint]]:
    found: dict[str, list[EntryPoint]] = {}
    for group in GROUPS:
        for entry in entry_points(group=group):
            found.setdefault(entry.dist.name if entry.dist else "?", []).append(entry)
    return found


def _load(entry: EntryPoint) -> tuple[Any, str]:
    """What an entry point names, and why it cannot be loaded."""
    try:
        with _silent():
            return entry.load(), ""
    except Interrupted:  # Ctrl-C
        raise
    except BaseException as error:  # a KeyboardInterrupt of the user's, and no package's, is met while it is tried
        if type(error) is KeyboardInterrupt and threading.current_thread() is threading.main_thread():
            raise
        return None, words_of(error)


@contextlib.contextmanager
def _silent() -> Iterator[None]:
    """What is printed inside goes nowhere: it would stand among the output of a command. Nothing is there to read."""
    before, sys.stdin = sys.stdin, io.StringIO()
    kept = null = None
    try:
        with contextlib.suppress(OSError):  # closed
            kept, null = os.dup(1), os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, 1)
        with contextlib.redirect_stdout(io.StringIO()):
            yield
    finally:
        sys.stdin = before
        if kept is not None and null is not None:
            os.dup2(kept, 1)
            os.close(kept)
            os.close(null)


def _verdict(package: str, entries: list[EntryPoint]) -> str:
    """Why nothing of a package should be loaded in this process; empty if it may."""
    known, key = _known(), _key(package, entries)
    if key in known:
        return str(known[key])
    try:
        reason = str(limited(lambda: _tried(entries), LIMITS))
    except Exceeded as error:
        reason = f"loading it takes {error}" if str(error).startswith("more") else f"loading it leads to {error}"
    with contextlib.suppress(Exception):  # no home, a full disk: next time again
        replace_file(_file(), json.dumps({**dict(list(known.items())[-200:]), key: reason}).encode())
    return reason


def _tried(entries: list[EntryPoint]) -> str:
    """Load entry points, in a fork: what they do to the process besides."""
    atexit._clear()  # noqa: SLF001  (what this program does at its end is not theirs)
    before, threads = _state(), set(threading.enumerate())
    for entry in entries:
        try:
            loaded = entry.load()
            repr(list(loaded) if isinstance(loaded, (list, tuple)) else loaded)
        except BaseException as error:
            if type(error) is KeyboardInterrupt:  # in this process it would count as the user's
                return "loading it raises KeyboardInterrupt"
    after = _state()
    changed = [what for what in before if before[what] != after[what]]
    if changed:
        return f"loading it changes {' and '.join(changed)}"
    if any(not each.daemon for each in set(threading.enumerate()) - threads):
        return "loading it starts a thread that keeps the program from ending"
    atexit._run_exitfuncs()  # noqa: SLF001
    return ""


def _state() -> dict[str, Any]:
    return {
        "the working folder": os.getcwd(),
        "standard output": (sys.stdout, sys.stderr),
        "what a signal does": [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)],
    }


def _file() -> Path:
    """Where verdicts are remembered."""
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root) / "mapgap" / "packages.json"


def _known() -> dict[str, str]:
    """The verdicts that this user has kept."""
    try:
        file = _file()
        found = file.lstat()
        if os.name != "nt" and (found.st_uid != os.geteuid() or found.st_mode & 0o022):
            return {}
        known = json.loads(read_bytes(file))
    except (OSError, ValueError, RuntimeError):
        return {}
    return known if isinstance(known, dict) else {}


def _key(package: str, entries: list[EntryPoint]) -> str:
    """Of a package, its version, its entry points and the dates of their modules."""
    told = [package, sys.version]
    for entry in entries:
        told += [str(entry.dist.version if entry.dist else ""), entry.group, entry.name, entry.value]
        told += _dates(entry.value.partition(":")[0].strip())
    return hashlib.sha256("\0".join(told).encode("utf-8", "replace")).hexdigest()[:32]


def _dates(module: str) -> Iterator[str]:
    """Place and date of the files of a module and of the packages around it; nothing is imported."""
    places, path = None, ""
    for part in module.split("."):
        path = f"{path}.{part}" if path else part
        try:
            spec = importlib.machinery.PathFinder.find_spec(path, places)
            if spec is None:
                return
            yield f"{spec.origin} {Path(spec.origin).stat().st_mtime_ns if spec.origin else ''}"
        except (OSError, ValueError, ImportError):
            return
        places = spec.submodule_search_locations
