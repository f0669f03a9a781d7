"""Where a run took place: versions, revision, processor. Constant while the program runs."""

from __future__ import annotations

import os
import platform
import subprocess
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = ("mapgap", "ortools", "highspy", "pulp", "numpy", "numba")


@cache
def versions() -> dict[str, str]:
    """Python and every installed package that can change a result."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


@cache
def revision(root: Path = Path(__file__).resolve().parents[2]) -> str | None:
    """Git revision of the project's checkout, ``-dirty`` with local changes; ``None`` for an installed wheel.

    Changes below ``reports`` do not count: a sweep that goes on unpacks its runs and writes there, and no run reads it.
    """
    if not (root / ".git").exists():
        return None
    found = [_git(root, "rev-parse", "--short=12", "HEAD"), _git(root, "status", "-s", "-uno", "--", ".", ":!reports")]
    return None if None in found else f"{found[0]}-dirty" if found[1] else found[0]


def _git(root: Path, *words: str) -> str | None:
    """What git prints; ``None`` where it fails."""
    try:
        done = subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def cores() -> int:
    """Number of cores that this program may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def cpu_model() -> str:
    """Name of the processor and number of usable cores."""
    name = platform.processor() or platform.machine()
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                name = line.split(":", 1)[1].strip()
                break
    except OSError:
        pass
    return f"{name}, {cores()} cores"
