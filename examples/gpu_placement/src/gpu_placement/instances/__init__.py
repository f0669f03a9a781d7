"""Instances: the YAML files of the folder library, their compact form, random families, and what follows from what."""

from pathlib import Path

from mapgap.core import Library

LIBRARY = Library(
    "gpu_placement",
    folder=Path(__file__).parent / "library",
    compact="gpu_placement.instances.compact:Compact",
    expansion="gpu_placement.instances.compact:expand",
    families={
        "tiny": "gpu_placement.instances.families:tiny",
        "small": "gpu_placement.instances.families:small",
        "adrs": "gpu_placement.instances.families:adrs",
    },
    splitting="gpu_placement.instances.parts:cases",
    shrinking="gpu_placement.instances.parts:shrink",
    sampling="gpu_placement.instances.families:random_plan",
    relating="gpu_placement.instances.parts:relations",
)
