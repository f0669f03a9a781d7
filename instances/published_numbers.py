"""Numbers that the papers print, for the studies that compare them with measured runs; never read by an expansion."""

from __future__ import annotations

from typing import Any

from mapgap.instances.facts import ROOT, read_table, unknown


def load_published(paper: str) -> dict[str, Any]:
    """Value of every printed (or, where the file says so, derived) number by its identifier.

    Parameters
    ----------
    paper : str
        Stem of a file of this folder, such as ``mtrain``; the file gives place, unit and status of every number.

    Raises
    ------
    InputError
        No such paper.
    """
    return {row["id"]: row["value"] for row in published_rows(paper)}


def published_rows(paper: str) -> list[dict[str, Any]]:
    """Every printed or derived number of a paper, with ``id``, ``where``, ``what``, ``value``, ``unit``, ``status``
    and ``note``.

    Raises
    ------
    InputError
        No such paper.
    """
    folder = ROOT / "published"
    path = folder / f"{paper}.yaml"
    if not path.is_file():
        raise unknown("paper", paper, papers())
    rows: list[dict[str, Any]] = read_table(path)["rows"]
    return rows


def papers() -> list[str]:
    """The papers whose numbers are known, alphabetically."""
    return sorted(path.stem for path in (ROOT / "published").glob("*.yaml"))
