"""Holds every lesson to its time: a minute on two cores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging

log = logging.getLogger(__name__)


def slow(runs: Mapping[str, Mapping[str, Any]], limit: float) -> dict[str, float]:
    """Pages whose cells took longer than the limit together, with their seconds."""
    seconds = {page: (each.get("exec_data") or {}).get("runtime") or 0.0 for page, each in runs.items()}
    return {page: taken for page, taken in seconds.items() if taken > limit}


def _check(app: Sphinx, env: BuildEnvironment) -> None:
    limit = app.config.nb_execution_timeout
    for page, taken in slow(getattr(env, "nb_metadata", {}), limit).items():
        log.warning("the lesson took %.0f s, expected at most %.0f", taken, limit, location=page)


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("env-check-consistency", _check)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
