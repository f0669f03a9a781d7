"""Instances of hybrid pipeline: library files, their compact form and its expansion, random families."""

from pathlib import Path

from mapgap.core import Library

_HERE = "mapgap.instances.hybrid_pipeline"

LIBRARY = Library(
    "hybrid_pipeline",
    folder=Path(__file__).parent / "library",
    compact=f"{_HERE}.compact:Compact",
    expansion=f"{_HERE}.compact:expand",
    families={
        "tiny": f"{_HERE}.families:tiny",
        "realistic": f"{_HERE}.families:realistic",
        "small": f"{_HERE}.families:small",
        "executions": f"{_HERE}.families:executions",
        "steady": f"{_HERE}.families:steady",
        "scaling": f"{_HERE}.families:scaling",
        "distinct": f"{_HERE}.families:distinct",
    },
    splitting=f"{_HERE}.parts:cases",
    shrinking=f"{_HERE}.parts:shrink",
    sampling=f"{_HERE}.sampling:random_plan",
    relating=f"{_HERE}.relating:relations",
    proving="mapgap.formulations.hybrid_pipeline.certificate:prove",
    carrying=f"{_HERE}.implications:carried",
    implying=f"{_HERE}.implications:implied",
    importing=f"{_HERE}.importing:build",
    boards=f"{_HERE}.importing:library",
)
