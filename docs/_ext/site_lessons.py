"""Prepares the running of lessons, and holds each to a minute of processor time.

Time on the clock would depend on what else the machine does. What a lesson uses is the time of its kernel and of the
processes that this has started, once they have ended.
"""

from __future__ import annotations

import re
import resource
import subprocess
import sys
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.errors import ExtensionError
from sphinx.util import logging

from mapgap.catalogue import registry

log = logging.getLogger(__name__)
FOLDER = "lessons/"
LIMIT = 60  #: seconds of a lesson
SOLVED = ("hybrid_pipeline",)
"""Problems that a lesson solves by whatever is best."""

_begun: dict[str, float] = {}
_compiling: list[subprocess.Popen[bytes]] = []


def used() -> float:
    """Seconds of processor time of all processes that were started here and have ended."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ended.ru_utime + ended.ru_stime


def too_slow(seconds: float) -> str:
    """What is said of a lesson that took so long; empty if nothing is."""
    return f"the lesson took {seconds:.0f} s of processor time, expected at most {LIMIT}" if seconds > LIMIT else ""


def modules(text: str) -> list[str]:
    """The modules of the methods that lessons use, by their names in quotes.

    To import one compiles its kernels in a fresh checkout, and no lesson should wait for that.
    """
    found = []
    for problem in registry.problems():
        methods = registry.methods(problem)
        best = registry.strongest_exact(problem) if problem in SOLVED else None
        wanted = {*re.findall(r'"(\w+)"', text), *((best.name, *best.members) if best else ())}
        found += [each.module for name, each in methods.items() if name in wanted]
    return sorted(set(found))


def _prepare(app: Sphinx, env: BuildEnvironment, pages: list[str]) -> None:
    lessons = [env.doc2path(page).read_text(encoding="utf-8") for page in pages if page.startswith(FOLDER)]
    if lessons and app.config.nb_execution_mode != "off":
        log.info("kernels of what lessons use are compiled beside other pages, where this has not been done")
        command = [sys.executable, "-c", f"import {', '.join(modules(chr(10).join(lessons)))}"]
        _compiling.append(subprocess.Popen(command))


def _begin(app: Sphinx, page: str, source: list[str]) -> None:
    if page.startswith(FOLDER):
        while _compiling:
            if _compiling.pop().wait():
                raise ExtensionError("kernels of methods that lessons use could not be compiled")
            log.info("kernels: %.1f s of processor time", used())
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
