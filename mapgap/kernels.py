"""Compiled inner loops: Numba kernels that take named tables.

A kernel states its types, so that importing its module is what compiles it: once per installation, because the machine
code is cached; in every process where nothing can be written. Only modules of methods import kernels, so a command that
runs no method compiles nothing. The first compilation of a process is logged (:data:`LOG`), for it takes a while.

Numba compares cached machine code with the source file of its function alone. But machine code takes over much from
other files: a kernel that is called is linked or inlined, a constant is frozen, a field of a table becomes an offset.
After a change of one of those, Numba would go on running the old code. Therefore the names of a kernel's cache files
carry a digest of all that its machine code is made of: its byte code and constants; the kernels, constants and
``NamedTuple`` classes that it names, with those that they name in turn; its tables, signature and options; the
versions of Numba and NumPy. The digest is taken from the objects in memory, at the moment at which Numba freezes them,
so no file has to be read and an edit under a running process cannot mislead it. A change of a comment below recompiles
nothing above. Files under another digest are never opened (Numba unpickles an index before it looks whether it is
fresh, which fails when a class has gone), and they are deleted when the kernel is compiled anew. A kernel that names
what cannot be described in this way (a function that is not compiled, a member of an enumeration) is compiled in every
process.
"""

from __future__ import annotations

import hashlib
import logging
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Annotated, Any, TypeVar, get_type_hints
from weakref import WeakKeyDictionary

import numba
import numpy as np
from numba.core import event
from numba.core.caching import CompileResultCacheImpl, FunctionCache
from numba.core.dispatcher import Dispatcher
from numba.core.typeinfer import register_dispatcher
from numpy.typing import NDArray

LOG = logging.getLogger("mapgap.kernels")
"""Gets one record when the first kernel is compiled rather than read from the cache; its attribute ``kept`` says
whether the machine code will be there next time."""

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
        found: Any = numba.njit(**options)(function)
        if found is function:  # NUMBA_DISABLE_JIT
            return function
        try:
            # The names of the fields are no part of how Numba writes a type whose fields are all alike.
            _DIGESTS[function] = _digest(found, str(types), *(_described(table, set(), ()) for table in tables))
            found._cache = _KernelCache(function)
        except (_UndescribedError, RuntimeError) as error:
            if isinstance(error, RuntimeError) and "no locator" not in str(error):
                raise
            kept = False  # a read-only installation and no home, or a value whose changes would not be seen
        else:
            kept = True
        with _telling(kept=kept), register_dispatcher(found):  # so that a kernel may call itself
            found.compile(types)
        found.disable_compile()
        return found  # type: ignore[no-any-return]

    return compiled


_DIGESTS: WeakKeyDictionary[Callable[..., Any], str] = WeakKeyDictionary()
"""Of the Python function of each kernel: what its machine code is made of."""

_LIBRARIES = sys.stdlib_module_names | {"numba", "numpy"}
"""Whose functions and classes a name and a version describe."""

_FUNCTIONS = (type, FunctionType, BuiltinFunctionType, np.ufunc, type(np.sum))


class _UndescribedError(Exception):
    """A kernel names a value whose changes would not be seen."""


def _digest(dispatcher: Any, *more: str) -> str:
    """Name all that goes into the machine code of a function, in 20 hexadecimal digits."""
    parts = (
        *(numba.__version__, np.__version__, repr(sorted(dispatcher.targetoptions.items()))),
        *(_described_function(dispatcher.py_func, ()), *more),
    )
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:20]


def _described_function(function: FunctionType, within: tuple[object, ...]) -> str:
    """Describe byte code and the values that it finds outside, as they are now."""
    names = set(_names(function.__code__))
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    values = {name: function.__globals__[name] for name in sorted(names) if name in function.__globals__}
    described = [_described(value, names, (*within, function)) for value in values.values()]
    outside = _described((function.__defaults__, *cells), names, (*within, function))
    return repr((_described_code(function.__code__), list(values), described, outside))


def _names(code: CodeType) -> Iterator[str]:
    """Names of globals and attributes, also in comprehensions and inner functions."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _described_code(code: CodeType) -> str:
    constants = [_described(constant, set(), ()) for constant in code.co_consts]
    variables = code.co_varnames, code.co_freevars, code.co_cellvars, code.co_argcount, code.co_flags
    return repr((code.co_code, code.co_exceptiontable, code.co_names, variables, constants))


def _described(value: Any, names: set[str], within: tuple[object, ...]) -> str:
    """Describe a value so that two values of one description make the same machine code.

    Parameters
    ----------
    value
        A global, a constant, or a cell of a closure.
    names : set of str
        Attributes that the code may ask of a module.
    within : tuple
        Functions and modules that are being described: a circle ends there.

    Raises
    ------
    _UndescribedError
        For all that has no such description.
    """
    if value is None or value is Ellipsis or isinstance(value, bool | int | float | complex | str | bytes | np.generic):
        text = repr(value)
    elif any(value is other for other in within):
        text = "itself"
    elif isinstance(value, Dispatcher):
        text = _described_dispatcher(value, within)
    elif isinstance(value, CodeType):
        text = _described_code(value)
    elif isinstance(value, tuple | frozenset):
        items = [_described(item, names, within) for item in value]
        text = repr((getattr(value, "_fields", None), items if isinstance(value, tuple) else sorted(items)))
    elif isinstance(value, np.ndarray) and not value.dtype.hasobject:
        text = repr((value.dtype, value.shape, value.strides, hashlib.sha256(value.tobytes()).hexdigest()))
    elif isinstance(value, type) and issubclass(value, tuple) and hasattr(value, "_fields"):
        defaults = tuple(getattr(value, "_field_defaults", {}).items())
        text = repr((value.__module__, value.__qualname__, value._fields, _described(defaults, names, within)))
    elif isinstance(value, ModuleType) and value.__name__.partition(".")[0] not in _LIBRARIES:
        found = {name: vars(value)[name] for name in sorted(names & vars(value).keys())}
        text = repr({name: _described(item, names, (*within, value)) for name, item in found.items()})
    else:
        text = _described_of_library(value)
    return f"{type(value).__qualname__} {text}"


def _described_dispatcher(dispatcher: Any, within: tuple[object, ...]) -> str:
    if dispatcher.py_func in _DIGESTS:
        return _DIGESTS[dispatcher.py_func]
    if any(dispatcher.py_func is other for other in within):
        return "itself"
    described = _described_function(dispatcher.py_func, within)  # compiled by numba.njit, not by kernel
    return repr((described, sorted(dispatcher.targetoptions.items()), str(dispatcher.signatures)))


def _described_of_library(value: Any) -> str:
    """Name a module, function, class or type of Numba, NumPy or Python; their versions are part of each digest."""
    if isinstance(value, numba.types.Type | np.dtype):
        return str(value)
    if isinstance(value, ModuleType):
        return value.__name__
    home, name = getattr(value, "__module__", None), getattr(value, "__name__", None)
    if not isinstance(value, _FUNCTIONS) or str(home).partition(".")[0] not in _LIBRARIES:
        raise _UndescribedError
    return f"{home}.{name}"


class _NamedByDigest(CompileResultCacheImpl):  # type: ignore[misc]
    """Names the files of a kernel by its digest, where Numba takes the line of the function."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.digest = _DIGESTS[function]
        super().__init__(function)

    def get_filename_base(self, fullname: str, abiflags: str) -> str:
        version = f"py{sys.version_info[0]}{sys.version_info[1]}{abiflags}"
        self.start, self.end = fullname.replace("<", "").replace(">", "") + "-", f".{version}"
        return f"{self.start}{self.digest}{self.end}"


class _KernelCache(FunctionCache):  # type: ignore[misc]
    """Numba's cache, with files named by :class:`_NamedByDigest`."""

    _impl_class = _NamedByDigest
    _in_use: set[Path] = set()  # noqa: RUF012 - of all kernels: two made by one factory share the start of their names

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._in_use.add(Path(self.cache_path, self._impl.filename_base))

    def save_overload(self, sig: Any, data: Any) -> None:
        super().save_overload(sig, data)
        named = re.compile(rf"({re.escape(self._impl.start)}[0-9a-f]+{re.escape(self._impl.end)})\.(nbi|\d+\.nbc)")
        with suppress(OSError):  # another process may have deleted it, or have it open
            for path in Path(self.cache_path).iterdir():
                match = named.fullmatch(path.name)
                if match and path.with_name(match[1]) not in self._in_use:
                    path.unlink()


class _Listener(event.Listener):  # type: ignore[misc]
    """Logs that something is compiled."""

    told = False

    def __init__(self, kept: bool) -> None:
        self.kept = kept

    def on_start(self, found: Any) -> None:
        if not _Listener.told:
            _Listener.told = True
            LOG.info("compiling kernels", extra={"kept": self.kept})

    def on_end(self, found: Any) -> None:
        pass


def _telling(*, kept: bool) -> AbstractContextManager[Any]:
    """Log the first compilation inside."""
    listening: AbstractContextManager[Any] = event.install_listener("numba:compile", _Listener(kept))
    return listening
