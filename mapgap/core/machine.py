"""The machine that everything runs on."""

from __future__ import annotations

import os


def machine_load() -> float | None:
    """Processes that want to run, per core, in the last minute, our own among them; ``None`` if nothing tells."""
    return round(os.getloadavg()[0] / (os.cpu_count() or 1), 2) if hasattr(os, "getloadavg") else None
