"""Instances of neuron masking: library files, their compact form and its expansion, random families."""

from pathlib import Path

from mapgap.core import Library

_HERE = "mapgap.instances.neuron_masking"

LIBRARY = Library(
    "neuron_masking",
    folder=Path(__file__).parent / "library",
    compact=f"{_HERE}.compact:Compact",
    expansion=f"{_HERE}.compact:expand",
    families={
        "tiny": f"{_HERE}.families:tiny",
        "realistic": f"{_HERE}.families:realistic",
        "small": f"{_HERE}.families:small",
        "fleet": f"{_HERE}.families:fleet",
        "scaling": f"{_HERE}.families:scaling",
        "ladder": f"{_HERE}.families:ladder",
    },
    splitting=f"{_HERE}.parts:cases",
    shrinking=f"{_HERE}.parts:shrink",
    sampling=f"{_HERE}.sampling:random_plan",
    relating=f"{_HERE}.relations:relations",
    proving="mapgap.formulations.neuron_masking.certificate:prove",
    carrying=f"{_HERE}.implications:carried",
    implying=f"{_HERE}.implications:implied",
    importing=f"{_HERE}.importing:build",
)
