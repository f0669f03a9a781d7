"""Numbers that the papers print, for the studies that compare them with measured runs; never read by an expansion."""

from __future__ import annotations

from typing import Any

from mapgap.instances.facts import ROOT, read_yaml, unknown


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
    folder = ROOT / "published"
    path = folder / f"{paper}.yaml"
    if not path.is_file():
        raise unknown("paper", paper, sorted(p.stem for p in folder.glob("*.yaml")))
    data = read_yaml(path)
    key, value = data["columns"].index("id"), data["columns"].index("value")
    return {row[key]: row[value] for row in data["rows"]}
