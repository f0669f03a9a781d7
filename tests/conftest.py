"""What holds for all tests: kernels are compiled before the first one, and a process keeps within a gigabyte."""

import ctypes
import functools
import gc
import importlib
import os

import psutil
import pytest

from mapgap.catalogue import registry

LARGE = 700 * 2**20
"""Bytes from which a process forgets what tests before have computed."""
ROOMS = ("mapgap.studies", "mapgap.instances", "mapgap.contract", "tests")


def pytest_sessionstart(session):
    """Compile what is not compiled yet, each process another part of it: no test of a limit pays for it.

    Tables are as wide as they need to be, whatever the terminal of the tests.
    """
    os.environ.pop("COLUMNS", None)
    count, worker = (os.environ.get(f"PYTEST_XDIST_WORKER{name}", "") for name in ("_COUNT", ""))
    if not worker:
        return
    modules = sorted({m.module for name in registry.house() for m in registry.methods(name).values()})
    first = int(worker.removeprefix("gw")) * len(modules) // int(count)
    for name in modules[first:] + modules[:first]:
        importlib.import_module(name)


@pytest.fixture(scope="module", autouse=True)
def forgotten():
    """Behind a file that has left much in memory, empty the caches of instances, studies and tests."""
    yield
    if psutil.Process().memory_info().rss < LARGE:
        return
    for each in gc.get_objects():
        if isinstance(each, functools._lru_cache_wrapper) and str(each.__module__).startswith(ROOMS):  # noqa: SLF001
            each.cache_clear()
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
