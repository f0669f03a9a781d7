"""Which random instances a run of the tests takes: few by day, all of them by night, others with every commit.

A plugin of pytest (``-p mapgap.contract.seeds``; the contract loads it by itself) with two markers. Tests that bear
``nightly`` run with ``pytest -m nightly`` alone. Of the cases that bear ``in_turn`` a sixth runs by day, another one
with another commit, and the rest by night; all of them run where tests are named (``-k``, ``FILE::TEST``). Tests with
random instances ask :func:`seeds`, :func:`samples` or :func:`fresh` for them, tests of many long cases :func:`some`.
All depend on one number, the rotation, which is that of the commit unless ``MAPGAP_SEED`` gives it; it is printed, so
that a failure can be repeated. ``MAPGAP_SCALE`` multiplies how many random instances there are.
"""

from __future__ import annotations

import os
import subprocess
import zlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

PERIOD = 1 << 16
FIRST = 1000
"""Where fresh seeds begin, behind those that tests name."""
DAY = "not nightly"
TURNS = 6
"""Of so many cases that run in turn, one does by day."""
SCALE = float(os.environ.get("MAPGAP_SCALE", "1"))


@cache
def rotation() -> int:
    """From 0 to 65535: ``MAPGAP_SEED``, else by the commit; 0 where there is no repository."""
    given = os.environ.get("MAPGAP_SEED")
    if given is not None:
        return int(given) % PERIOD
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--verify", "HEAD"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return 0
    return int(done.stdout[:4], 16)


def night() -> bool:
    """Whether tests that bear the marker may run: without ``-m`` nobody has to collect them."""
    return os.environ.get("MAPGAP_NIGHT", "1") == "1"


def scaled(count: int) -> int:
    """A number of random cases, as many times larger or smaller as ``MAPGAP_SCALE`` says."""
    return max(1, round(count * SCALE))


def seeds(daily: int, nightly: int) -> list[Any]:
    """The seeds ``0, 1, …, nightly - 1`` as parameters of a test: by day a few that the rotation chooses.

    Every seed is tried by night; by day another slice with another commit.
    """
    daily, nightly = scaled(daily), scaled(nightly)
    begin = rotation() * daily % nightly
    today = sorted({(begin + k) % nightly for k in range(daily)})
    return [*today, *(pytest.param(k, marks=pytest.mark.nightly) for k in range(nightly * night()) if k not in today)]


def some(daily: int, cases: Sequence[Any]) -> list[Any]:
    """Cases as parameters of a test (those of several arguments are tuples): as many by day, all others by night."""
    begin = rotation() * daily
    today = {(begin + k) % max(1, len(cases)) for k in range(scaled(daily))}
    return [
        pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=[] if k in today else pytest.mark.nightly)
        for k, case in enumerate(cases)
        if k in today or night()
    ]


def samples(daily: int, nightly: int) -> list[Any]:
    """The same for a test that loops over seeds: the sample of this day, and by night all of them."""
    today = [each for each in seeds(daily, nightly) if isinstance(each, int)]
    everything = list(range(scaled(nightly)))
    return [pytest.param(today, id="day"), pytest.param(everything, id="night", marks=pytest.mark.nightly)]


def fresh(count: int) -> range:
    """So many seeds that no other rotation gives, for tests by night; by day none."""
    count = scaled(count)
    first = FIRST + rotation() * count
    return range(first, first + count * night())


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "nightly: too long for every day, run by `pytest -m nightly`")
    config.addinivalue_line("markers", f"in_turn: by day with one commit of {TURNS}, else by night")
    os.environ["MAPGAP_SEED"] = str(rotation())  # for the other processes of this run
    config.option.markexpr = config.option.markexpr or DAY
    os.environ["MAPGAP_NIGHT"] = str(int(config.option.markexpr != DAY))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave to the night what is not its turn today."""
    if config.option.keyword or any("::" in each for each in config.args):
        return
    for item in items:
        if item.get_closest_marker("in_turn") and (zlib.crc32(item.nodeid.encode()) + rotation()) % TURNS:
            item.add_marker(pytest.mark.nightly)


def pytest_report_header() -> str:
    return f"random instances: MAPGAP_SEED={rotation()}"


def pytest_terminal_summary(terminalreporter: Any) -> None:
    if terminalreporter.stats.get("failed"):
        terminalreporter.write_line(f"the random instances were those of MAPGAP_SEED={rotation()}")
