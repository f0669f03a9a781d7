"""The machine that everything runs on."""

from __future__ import annotations

import os


def machine_load() -> float:
    """Processes that want to run, per core, in the last minute; 0 where the system does not tell."""
    return round(os.getloadavg()[0] / (os.cpu_count() or 1), 2) if hasattr(os, "getloadavg") else 0.0
