"""Instances: the YAML files of this folder, their compact form, random families, and what follows from what."""

from pathlib import Path

from mapgap.core import Library

LIBRARY = Library(
    "unrelated_machines",
    folder=Path(__file__).parent,
    compact="unrelated_machines.library.compact:Compact",
    expansion="unrelated_machines.library.compact:expand",
    families={
        "tiny": "unrelated_machines.library.families:tiny",
        "small": "unrelated_machines.library.families:small",
    },
    splitting="unrelated_machines.library.parts:cases",
    shrinking="unrelated_machines.library.parts:shrink",
    sampling="unrelated_machines.library.families:random_plan",
    relating="unrelated_machines.library.parts:relations",
)
