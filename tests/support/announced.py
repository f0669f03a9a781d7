"""Packages that announce themselves by entry points: a folder on the path, as pip leaves it, and no installation."""

import importlib
import tomllib
from pathlib import Path

#: A problem ``{problem}`` with one method ``{method}``; its plans are worth 0.
SOURCE = """
from pathlib import Path
from typing import Literal
from mapgap.core import (
    CompactBase, Evaluation, InstanceBase, Library, Method, PlanBase, Problem, SolveResult, Status, Stop
)

class Instance(InstanceBase):
    problem: Literal["{problem}"] = "{problem}"

class Plan(PlanBase):
    pass

LIBRARY = Library(
    "{problem}", Path(__file__).parent / "{package}_files", CompactBase, lambda compact: None,
    {{"tiny": lambda seed: Instance(name=f"tiny_{{seed}}")}},
)
PROBLEM = Problem(
    "{problem}", "title of {package}", "paper", "min", lambda instance: "ticks", Instance, Plan,
    lambda instance, plan: Evaluation(0), library=LIBRARY,
)

def run(instance, budget):
    return SolveResult(Status.OPTIMAL, Stop.PROVED, Plan(), bound=0)

METHODS = [Method("{method}", "{problem}", "exact", "test", run, "a test", engines=("own",))]
"""


def announce(folder: Path, package: str, entries: dict[str, dict[str, str]], source: str | None = None) -> None:
    """Write a package's metadata, and its one module if there is a source.

    Parameters
    ----------
    entries : mapping
        Group of entry points to names and values.
    """
    metadata = folder / f"{package}-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    lines = [
        line
        for group, named in entries.items()
        for line in (f"[{group}]", *(f"{name} = {value}" for name, value in named.items()))
    ]
    (metadata / "entry_points.txt").write_text("\n".join(lines) + "\n")
    if source is not None:
        (folder / f"{package}.py").write_text(source)
    importlib.invalidate_caches()


def announce_problem(folder: Path, package: str, problem: str, method: str = "only") -> None:
    """A package that works: a problem and a method of it."""
    entries = {
        "mapgap.problems": {package: f"{package}:PROBLEM"},
        "mapgap.methods": {package: f"{package}:METHODS"},
    }
    announce(folder, package, entries, SOURCE.format(package=package, problem=problem, method=method))


def announce_project(folder: Path, project: Path) -> None:
    """The metadata of a project in source form, from its ``pyproject.toml``."""
    declared = tomllib.loads((project / "pyproject.toml").read_text())["project"]
    announce(folder, declared["name"].replace("-", "_"), declared["entry-points"])
