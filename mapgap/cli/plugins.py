"""``--plugin FILE``: methods of a file, known while the command runs."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from mapgap.catalogue import registry
from mapgap.core import InputError


def load(paths: Iterable[Path]) -> None:
    """Register the methods of files.

    Raises
    ------
    InputError
        A file that cannot be used, or a name that is taken.
    """
    for path in paths:
        loaded = registry.load_plugin(path)
        try:
            for problem in {method.problem for method in loaded}:
                registry.methods(problem)
        except RuntimeError as error:
            raise InputError(f"--plugin {path}: {error}") from error
