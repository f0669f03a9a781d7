"""Classes of instances: what a loss is averaged over. Two objectives are never in one class."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from mapgap.catalogue import registry
from mapgap.catalogue.files import first_fields, library_files
from mapgap.core.storage import read_text
from mapgap.records.record import RunRecord

MOST = 8
"""Classes of one problem; where tags would make more, its objectives alone are the classes."""
_VARIANT = re.compile(r"[@+: ]")
"""Behind the name of a library instance: its objective, or what a study has changed."""
_OBJECTIVE = re.compile(r"^objective: *(\w+)", re.MULTILINE)


@dataclass(frozen=True, order=True)
class Class:
    """An objective (empty where a problem has one) and a tag of the library (empty where there is none)."""

    objective: str
    tag: str

    @property
    def title(self) -> str:
        return " ".join(filter(None, (self.objective, self.tag))).replace("_", " ") or "all"


def classify(records: Iterable[RunRecord]) -> dict[str, Class]:
    """The class of every instance, by content hash."""
    found: dict[str, dict[str, Class]] = {}
    for problem, digest, name in {(r.problem, r.instance_hash, r.instance): None for r in records}:
        found.setdefault(problem, {})[digest] = Class(_objective(problem, name), _tag(name))
    classes: dict[str, Class] = {}
    for known in found.values():
        classes |= _few(known)
    return classes


def _few(known: Mapping[str, Class]) -> dict[str, Class]:
    """Objectives and tags, or objectives alone, or neither: the first that makes few classes of several instances."""
    objectives = {each.objective for each in known.values()}
    if len(objectives) == 1:
        known = {digest: Class("", each.tag) for digest, each in known.items()}
    if 1 < len(set(known.values())) <= min(MOST, max(1, len(known) // 2)):
        return dict(known)
    return {digest: Class(each.objective if len(objectives) > 1 else "", "") for digest, each in known.items()}


def _objective(problem: str, name: str) -> str:
    spec = registry.problems().get(problem)
    objectives = [] if spec is None else list(map(str, spec.objectives))
    if len(objectives) < 2:
        return ""
    base, at, objective = name.partition("@")
    if at:
        return _VARIANT.split(objective)[0]
    path = library_files().get(_VARIANT.split(base)[0])
    said = _OBJECTIVE.search(read_text(path)) if path is not None else None
    return said[1] if said else objectives[0]


def _tag(name: str) -> str:
    """The second tag of a library instance: the first one names the paper."""
    path = library_files().get(_VARIANT.split(name)[0])
    tags = list(first_fields(path).get("tags") or []) if path is not None else []
    return str(tags[1]) if len(tags) > 1 else ""
