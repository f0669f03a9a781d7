"""What holds for all tests: kernels are compiled before the first one, and a process keeps within a gigabyte."""

import ctypes
import functools
import gc
import importlib
import os
import subprocess
import sys

import psutil
import pytest

from mapgap.catalogue import registry

LARGE = 700 * 2**20
"""Bytes from which a process forgets what tests before have computed."""
COMPILE = """
import gc, importlib, sys
gc.set_threshold(20_000, 50, 50)  # a compiler makes much that lives on
for name in sys.argv[1:]:
    importlib.import_module(name)
"""
ROOMS = ("mapgap.studies", "mapgap.instances", "mapgap.contract", "tests")


def pytest_sessionstart(session):
    """Compile what is not compiled yet, before the first worker begins: no test of a limit pays for it.

    Each process compiles another part, and takes with it what compiling leaves in memory; workers only load. Tables
    are as wide as they need to be, whatever the terminal of the tests.
    """
    os.environ.pop("COLUMNS", None)
    modules = sorted({m.module for name in registry.house() for m in registry.methods(name).values()})
    if "PYTEST_XDIST_WORKER" in os.environ:
        for name in modules:
            importlib.import_module(name)
        return
    count = 0 if session.config.option.collectonly else len(session.config.getoption("tx", None) or ())
    parts = [modules[k * len(modules) // count :] + modules[: k * len(modules) // count] for k in range(count)]
    started = [subprocess.Popen([sys.executable, "-c", COMPILE, *part]) for part in parts]
    assert not sum(each.wait() != 0 for each in started), "the modules of the methods cannot be imported"


@pytest.fixture(scope="module", autouse=True)
def forgotten():
    """Behind a file that has left much in memory, empty the caches of instances, studies and tests."""
    yield
    if psutil.Process().memory_info().rss < LARGE:
        return
    for each in gc.get_objects():
        # Not isinstance, which asks the object: some of those that tests leave behind are hostile.
        if type(each) is functools._lru_cache_wrapper and str(each.__module__).startswith(ROOMS):  # noqa: SLF001
            each.cache_clear()
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
