"""Instances: the YAML files of the folder library, their compact form, random families, and what follows from what."""

from pathlib import Path

from mapgap.core import Library

LIBRARY = Library(
    "unrelated_machines",
    folder=Path(__file__).parent / "library",
    compact="unrelated_machines.instances.compact:Compact",
    expansion="unrelated_machines.instances.compact:expand",
    families={
        "tiny": "unrelated_machines.instances.families:tiny",
        "small": "unrelated_machines.instances.families:small",
    },
    splitting="unrelated_machines.instances.parts:cases",
    shrinking="unrelated_machines.instances.parts:shrink",
    sampling="unrelated_machines.instances.families:random_plan",
    relating="unrelated_machines.instances.parts:relations",
)
