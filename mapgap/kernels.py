"""Compiled inner loops: Numba kernels that take named tables.

A kernel states its types, so that importing its module is what compiles it: once per installation, because Numba keeps
the machine code in a folder, and of two processes one waits; in every process where nothing can be kept. Only modules
of methods import kernels, so a command that runs no method compiles nothing. The first compilation of a process is
logged (:data:`LOG`), for it takes a while.

Numba compares kept machine code with the source file of its function alone. But machine code takes over much from
other files: a kernel that is called is linked or inlined, a constant is frozen, a field of a table becomes an offset.
Therefore the folder is named by a hash of all sources that a kernel may be made of, and after any change of them it is
another one. A plug-in's kernels may be made of its own package, too, or of the modules beside its file.

Machine code that another user could have put there is never run: a folder that is not ours alone is not used.
"""

from __future__ import annotations

import hashlib
import logging
import os
import platform
import shutil
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Annotated, Any, TypeVar, get_type_hints

import numba
import numpy as np
from numba.core import event
from numpy.typing import NDArray

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

LOG = logging.getLogger("mapgap.kernels")
"""Gets one record when the first kernel is compiled rather than read from the folder. Its attribute ``obstacle`` is
empty, or says why the machine code will not be there next time, which makes it a warning."""

HOUSE = Path(__file__).parent
ROOMS = ("core", "problems", "heuristics", "solvers", "formulations")
"""Of the house: where kernels are, and what their modules may import."""
KEPT = 8
"""Folders of other sources that stay, the last used ones: other checkouts, plug-ins."""

PATIENCE_S = 30.0
"""Seconds for which another process may compile a kernel before we do so, too: it may have been stopped."""

Kernel = TypeVar("Kernel", bound=Callable[..., Any])

Integer = Annotated[int, "i8"]
Flag = Annotated[bool, "b1"]
Integers = Annotated[NDArray[np.int64], "i8[::1]"]
Integers2 = Annotated[NDArray[np.int64], "i8[:,::1]"]
Integers3 = Annotated[NDArray[np.int64], "i8[:,:,::1]"]
Flags = Annotated[NDArray[np.bool_], "b1[::1]"]
Flags2 = Annotated[NDArray[np.bool_], "b1[:,::1]"]


def table_type(table: type) -> Any:
    """Numba's type of a ``NamedTuple`` whose fields are annotated with types of this module (or their like)."""
    hints = get_type_hints(table, include_extras=True)
    fields = [_evaluated(hints[name].__metadata__[0], {}) for name in table._fields]  # type: ignore[attr-defined]
    return numba.types.BaseTuple.from_types(fields, table)  # fields of one type make a type of its own


def _evaluated(signature: str, names: dict[str, Any]) -> Any:
    return eval(signature, {"__builtins__": {}}, {**vars(numba.types), **names})


def kernel(signature: str, *tables: type, makes_arrays: bool = True, **options: Any) -> Callable[[Kernel], Kernel]:
    """Compile a function for one signature.

    Reading a field of a table counts a reference, up and down again, each time under a lock. In a loop of a few sums
    that is most of the time; a kernel that makes no arrays can do without.

    Parameters
    ----------
    signature : str
        As Numba writes it (``"i8(Tables,i8[::1],i8)"``); names of ``tables`` stand for their types.
    tables : type
        Each a ``NamedTuple`` for :func:`table_type`.
    makes_arrays : bool
        Whether the function makes arrays, also by slicing; if not, references are not counted. Numba refuses to
        compile a function that makes some all the same.
    options
        Of ``numba.njit``.
    """
    if not makes_arrays:
        options["_nrt"] = False
    types = _evaluated(signature, {table.__name__: table_type(table) for table in tables})

    def compiled(function: Kernel) -> Kernel:
        home = _home(Path(function.__code__.co_filename))
        folder, obstacle = _folder(home) if home else (None, "it has no source file")
        listener = _Listener(obstacle)
        name = f"{function.__code__.co_filename} {function.__qualname__}"
        with event.install_listener("numba:compile", listener), _alone(folder, name), _kept_in(folder):
            try:
                found = numba.njit(types, cache=folder is not None, **options)(function)
            except OSError:  # no room is left, or another process has just deleted the folder
                found = numba.njit(types, **options)(function)
        if listener.heard and home and folder and folder.name != _digest(home):
            shutil.rmtree(folder, ignore_errors=True)  # an edit under this process: nobody knows what it holds
        return found  # type: ignore[no-any-return]

    return compiled


def _home(file: Path) -> Path | None:
    """What belongs together with a source file: its outermost package, else its folder; none if there is no file."""
    home = file.parent
    if not file.is_file():
        return None
    while (home.parent / "__init__.py").is_file():
        home = home.parent
    return home


def sources(home: Path) -> list[Path]:
    """All files that the kernels of a home may be made of."""
    files = [HOUSE / "kernels.py", *(path for room in ROOMS for path in (HOUSE / room).rglob("*.py"))]
    if home != HOUSE:
        files += home.rglob("*.py") if (home / "__init__.py").is_file() else home.glob("*.py")
    return sorted(files)


def _digest(home: Path) -> str:
    """Name all that the kernels of a home are made of and by; for which processor, Numba looks itself."""
    made_by = (numba.__version__, np.__version__, platform.python_version(), sys.flags.optimize)
    found = hashlib.sha256(repr(made_by).encode())
    for path in sources(home):
        data = path.read_bytes()
        found.update(f"{path.name} {len(data)} ".encode() + data)
    return found.hexdigest()[:20]


@cache
def _folder(home: Path) -> tuple[Path | None, str]:
    """Where the machine code of a home's kernels is kept; or none, and why."""
    try:
        root = _root() / "mapgap"
        root.parent.mkdir(parents=True, exist_ok=True)
        folder = root / _digest(home)
        for path in (root, folder):
            path.mkdir(mode=0o700, exist_ok=True)
            if not _is_ours_alone(path):
                return None, f"{path} belongs to another user, or others can write to it"
        TemporaryFile(dir=folder).close()
        os.utime(folder)
    except (OSError, RuntimeError):  # a full disk, no home
        return None, "no cache can be written"
    with suppress(OSError):  # other processes delete, too
        for other in sorted(root.iterdir(), key=lambda path: -path.stat().st_mtime)[1 + KEPT :]:
            shutil.rmtree(other, ignore_errors=True)
    return folder, ""


def _root() -> Path:
    """The user's folder for caches, or the one that ``NUMBA_CACHE_DIR`` names."""
    if numba.config.CACHE_DIR:
        return Path(numba.config.CACHE_DIR)
    places = {"win32": ("LOCALAPPDATA", "AppData/Local"), "darwin": ("", "Library/Caches")}
    variable, usual = places.get(sys.platform, ("XDG_CACHE_HOME", ".cache"))
    return Path(os.environ.get(variable) or Path.home() / usual)


def _is_ours_alone(folder: Path) -> bool:
    if sys.platform == "win32":  # what lies below a user's own folder is the user's
        return True
    found = folder.lstat()
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o022


@contextmanager
def _alone(folder: Path | None, name: str) -> Iterator[None]:
    """Let no two processes compile the same kernel: whoever comes second waits, and reads what the first has kept."""
    if folder is None or fcntl is None:
        yield
        return
    with ExitStack() as stack:
        with suppress(OSError):  # a file system without locks, no room: both compile
            lock = stack.enter_context((folder / f"{hashlib.sha256(name.encode()).hexdigest()[:20]}.lock").open("a"))
            end = time.monotonic() + PATIENCE_S
            while not _locked(lock) and time.monotonic() < end:
                time.sleep(0.02)
        yield


def _locked(file: IO[str]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextmanager
def _kept_in(folder: Path | None) -> Iterator[None]:
    """Tell Numba where to look, and let others' functions be kept where they were."""
    before, numba.config.CACHE_DIR = numba.config.CACHE_DIR, str(folder or "")
    try:
        yield
    finally:
        numba.config.CACHE_DIR = before


class _Listener(event.Listener):  # type: ignore[misc]
    """Notices that something is compiled, and logs it the first time."""

    told = False

    def __init__(self, obstacle: str) -> None:
        self.obstacle, self.heard = obstacle, False

    def on_start(self, found: Any) -> None:
        self.heard = True
        if not _Listener.told:
            _Listener.told = True
            how = f"in every process: {self.obstacle}" if self.obstacle else "once per installation"
            level = logging.WARNING if self.obstacle else logging.INFO
            LOG.log(level, "compiling kernels, %s", how, extra={"obstacle": self.obstacle})

    def on_end(self, found: Any) -> None:
        pass
