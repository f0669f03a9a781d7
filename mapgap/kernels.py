"""Compiled inner loops: Numba kernels that take named tables.

A kernel states its types, so that importing its module is what compiles it: once per installation, because the machine
code is cached; in every process where nothing can be written. Only modules of methods import kernels, so a command that
runs no method compiles nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, TypeVar, get_type_hints

import numba
import numpy as np
from numba.core import event
from numpy.typing import NDArray

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


def kernel(signature: str, *tables: type, **options: Any) -> Callable[[Kernel], Kernel]:
    """Compile a function for one signature.

    Parameters
    ----------
    signature : str
        As Numba writes it (``"i8(Tables,i8[::1],i8)"``); names of ``tables`` stand for their types.
    tables : type
        Each a ``NamedTuple`` for :func:`table_type`.
    options
        Of ``numba.njit``.
    """
    types = _evaluated(signature, {table.__name__: table_type(table) for table in tables})

    def compiled(function: Kernel) -> Kernel:
        try:
            found: Kernel = numba.njit(types, cache=True, **options)(function)
        except RuntimeError as error:
            if "no locator" not in str(error):
                raise
            found = numba.njit(types, **options)(function)  # read-only installation and no home
        return found

    return compiled


class _Once(event.Listener):  # type: ignore[misc]
    """Tells that something is compiled, once."""

    def __init__(self, tell: Callable[[], None]) -> None:
        self.tell: Callable[[], None] | None = tell

    def on_start(self, found: Any) -> None:
        if self.tell is not None:
            self.tell()
            self.tell = None

    def on_end(self, found: Any) -> None:
        pass


def when_compiling(tell: Callable[[], None]) -> None:
    """Call ``tell`` when the first kernel of this process is compiled rather than read from the cache."""
    event.register("numba:compile", _Once(tell))
