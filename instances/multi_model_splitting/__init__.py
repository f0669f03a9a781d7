"""Instances of multi model splitting: library files, their compact form and its expansion, random families."""

from pathlib import Path

from mapgap.core import Library

_HERE = "mapgap.instances.multi_model_splitting"

LIBRARY = Library(
    "multi_model_splitting",
    folder=Path(__file__).parent / "library",
    compact=f"{_HERE}.compact:Compact",
    expansion=f"{_HERE}.compact:expand",
    families={
        "tiny": f"{_HERE}.families:tiny",
        "realistic": f"{_HERE}.families:realistic",
        "small": f"{_HERE}.families:small",
        "full": f"{_HERE}.families:full",
        "wearables_4x4": f"{_HERE}.families:wearables_4x4",
        "mixed_4x4": f"{_HERE}.families:mixed_4x4",
        "wearables_6x4": f"{_HERE}.families:wearables_6x4",
        "mixed_6x4": f"{_HERE}.families:mixed_6x4",
        "wearables_10x8": f"{_HERE}.families:wearables_10x8",
        "mixed_10x8": f"{_HERE}.families:mixed_10x8",
        "wearables_14x8": f"{_HERE}.families:wearables_14x8",
        "mixed_14x8": f"{_HERE}.families:mixed_14x8",
        "wearables_20x16": f"{_HERE}.families:wearables_20x16",
        "mixed_20x16": f"{_HERE}.families:mixed_20x16",
        "large_models_20x16": f"{_HERE}.families:large_models_20x16",
        "wearables_30x20": f"{_HERE}.families:wearables_30x20",
        "mixed_30x20": f"{_HERE}.families:mixed_30x20",
        "large_models_30x20": f"{_HERE}.families:large_models_30x20",
    },
    splitting=f"{_HERE}.parts:cases",
    shrinking=f"{_HERE}.parts:shrink",
    sampling=f"{_HERE}.sampling:random_plan",
    relating=f"{_HERE}.relations:relations",
    proving="mapgap.formulations.multi_model_splitting.certificate:prove",
    carrying=f"{_HERE}.implications:carried",
    implying=f"{_HERE}.implications:implied",
    importing=f"{_HERE}.importing:build",
    boards=f"{_HERE}.importing:library",
)
