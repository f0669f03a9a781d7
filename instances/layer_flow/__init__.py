"""Instances of layer flow: library files, their compact form and its expansion, random families."""

from pathlib import Path

from mapgap.core import Library

_HERE = "mapgap.instances.layer_flow"

LIBRARY = Library(
    "layer_flow",
    folder=Path(__file__).parent / "library",
    compact=f"{_HERE}.compact:Compact",
    expansion=f"{_HERE}.compact:expand",
    families={family: f"{_HERE}.families:{family}" for family in ("tiny", "realistic", "small", "cluster")},
    splitting=f"{_HERE}.cases:cases",
    shrinking=f"{_HERE}.cases:shrink",
    sampling=f"{_HERE}.families:random_plan",
    relating=f"{_HERE}.relations:relations",
    proving="mapgap.formulations.layer_flow.certificate:prove",
    carrying=f"{_HERE}.relations:carried",
    implying=f"{_HERE}.relations:implied",
)
