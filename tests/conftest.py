"""What holds for all tests: a process keeps within a gigabyte."""

import ctypes
import functools
import gc

import psutil
import pytest

LARGE = 700 * 2**20
"""Bytes from which a process forgets what tests before have computed."""
ROOMS = ("mapgap.studies", "mapgap.instances", "mapgap.contract", "tests")


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
