"""Which problems a model on a cluster can be posed as: what ``mapgap import`` says where nobody chose one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mapgap.catalogue import registry
from mapgap.core import InputError
from mapgap.core.workload import Settings, Workload


def other_problems(chosen: str, workload: Workload, given: Mapping[str, Any]) -> dict[str, str]:
    """Every other problem, with what stands in its way; empty where it takes the workload as it is."""
    return {name: _reason(name, workload, given) for name in registry.problems() if name != chosen}


def _reason(name: str, workload: Workload, given: Mapping[str, Any]) -> str:
    try:
        registry.library(name).imported(workload, Settings(given))
    except InputError as error:
        # Settings of the chosen problem, which this one does not know, are no reason.
        found = [text for text in error.problems if not text.startswith("--set ")]
        return "; ".join(text.removeprefix("missing: ") for text in found[:2])
    return ""


def told(found: Mapping[str, str]) -> str:
    """The problems in words, those that fit first."""
    problems = registry.problems()
    fit = [f"{name}, which fits too: {problems[name].title}" for name, reason in found.items() if not reason]
    rest = [f"{name} would need: {reason}" for name, reason in found.items() if reason]
    return "\n".join([*fit, *rest])
