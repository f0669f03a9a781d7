"""Prepares the running of lessons, and holds each to a minute of processor time.

Time on the clock would depend on what else the machine does. What a lesson uses is the time of its kernel and of the
processes that this has started, once they have ended.
"""

from __future__ import annotations

import resource
import subprocess
import sys
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging

log = logging.getLogger(__name__)
FOLDER = "lessons/"
LIMIT = 60  #: seconds of a lesson
COMPILE = """
from importlib import import_module
from mapgap.catalogue import registry
for problem in registry.problems():
    for method in registry.methods(problem).values():
        import_module(method.module)
"""
"""Imports all methods, which compiles their kernels in a fresh checkout: no lesson should wait for that."""

_begun: dict[str, float] = {}


def used() -> float:
    """Seconds of processor time of all processes that were started here and have ended."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ended.ru_utime + ended.ru_stime


def too_slow(seconds: float) -> str:
    """What is said of a lesson that took so long; empty if nothing is."""
    return f"the lesson took {seconds:.0f} s of processor time, expected at most {LIMIT}" if seconds > LIMIT else ""


def _prepare(app: Sphinx, env: BuildEnvironment, pages: list[str]) -> None:
    if app.config.nb_execution_mode != "off" and any(page.startswith(FOLDER) for page in pages):
        subprocess.run([sys.executable, "-c", COMPILE], check=True)


def _begin(app: Sphinx, page: str, source: list[str]) -> None:
    if page.startswith(FOLDER):
        _begun[page] = used()


def _end(app: Sphinx, tree: nodes.document) -> None:
    page = app.env.docname
    if page in _begun:
        seconds = used() - _begun.pop(page)
        log.info("%s: %.1f s of processor time", page, seconds)
        if text := too_slow(seconds):
            log.warning(text, location=page)


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("env-before-read-docs", _prepare)
    app.connect("source-read", _begin)
    app.connect("doctree-read", _end)
    return {"parallel_read_safe": False, "parallel_write_safe": True}
