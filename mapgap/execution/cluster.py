"""Clusters of ``dask.distributed``, whose workers do the runs of a sweep."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

from mapgap.core import InputError


def library(address: str) -> ModuleType:
    """The library behind the extra ``dask``.

    Raises
    ------
    InputError
    """
    try:
        import distributed
    except ModuleNotFoundError as error:
        raise InputError(f"--dask {address}: expected the extra mapgap[dask], found no {error.name}") from error
    found: ModuleType = distributed
    return found


def connect(address: str) -> Any:
    """A client of the cluster with this address or scheduler file; close it.

    Raises
    ------
    InputError
        No such cluster.
    """
    distributed = library(address)
    try:
        file = {"scheduler_file": address} if Path(address).is_file() else {"address": address}
        return distributed.Client(**file, timeout=10)
    except (OSError, ValueError) as error:
        raise InputError(f"--dask {address}: expected the address of a scheduler, found {error}") from error
