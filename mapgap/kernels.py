"""Compiled inner loops: Numba kernels that take named tables.

A kernel states its types, so that importing its module is what compiles it: once per installation, because the machine
code is cached; in every process where nothing can be written. Only modules of methods import kernels, so a command that
runs no method compiles nothing. The first compilation of a process is logged (:data:`LOG`), for it takes a while.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Annotated, Any, TypeVar, get_type_hints

import numba
import numpy as np
from numba.core import event
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
        found: Kernel
        try:
            with _telling(kept=True):
                found = numba.njit(types, cache=True, **options)(function)
        except RuntimeError as error:
            if "no locator" not in str(error):
                raise
            with _telling(kept=False):  # read-only installation and no home
                found = numba.njit(types, **options)(function)
        return found

    return compiled


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
