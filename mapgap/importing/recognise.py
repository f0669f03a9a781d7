"""Which format a file has, by looking at it; and files of one format to one graph."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mapgap.core import Finding, InputError
from mapgap.core.workload import Settings
from mapgap.importing import FORMATS, Format
from mapgap.importing.conservation import check
from mapgap.importing.graph import LayerGraph
from mapgap.importing.source import Source


def recognise(source: Source) -> Format | None:
    """The format of a file; ``None`` if it has none of them."""
    for each in FORMATS:
        if each.suffix and source.text is not None and source.path.suffix != each.suffix:
            continue  # nothing of its kind: its packages need not be there
        if each.load().looks_like(source):
            return each
    return None


def none_of_them(source: Source, *others: str) -> Finding:
    """What is to be said of a file of an unknown format; ``others``: what else it might have been."""
    titles = "; ".join([*others, *(each.title for each in FORMATS)])
    data = source.json if source.json is not None else source.yaml
    found = "none of them"
    if isinstance(data, dict):
        found += f", but a mapping with the fields {', '.join(map(repr, list(data)[:6]))}" if data else ", but {}"
    text = f"none of the formats that are read: expected one of: {titles}; found {found}"
    return source.broken() or Finding(text, place=str(source.path))


def read(paths: Sequence[Path], settings: Settings | None = None) -> LayerGraph:
    """The graph that one or several files of one format make.

    Raises
    ------
    InputError
        Files of no or of several formats; what a reader finds, each with its place; what is not conserved.
    """
    settings = settings or Settings()
    sources = [Source.open(path) for path in paths]
    found = []
    for source in sources:
        known = recognise(source)
        if known is None:
            raise InputError(none_of_them(source))
        found.append(known)
    if len(set(found)) > 1:
        listed = ", ".join(f"{source.path.name} ({each.title})" for source, each in zip(sources, found, strict=True))
        raise InputError(f"expected files of one format, found {listed}; a profile of a board is given by --profile")
    graph: LayerGraph = found[0].load().read(sources, settings)
    settings.check()
    graph.order()
    check(graph)
    return graph
