"""Instances of the FPGA-GPU partition: library files, their compact form and its expansion, random families."""

from pathlib import Path

from mapgap.core import Library

_HERE = "mapgap.instances.fpga_gpu_partition"

LIBRARY = Library(
    "fpga_gpu_partition",
    folder=Path(__file__).parent / "library",
    compact=f"{_HERE}.compact:Compact",
    expansion=f"{_HERE}.compact:expand",
    families={
        "tiny": f"{_HERE}.families:tiny",
        "realistic": f"{_HERE}.families:realistic",
        "small": f"{_HERE}.families:small",
        "scaling": f"{_HERE}.families:scaling",
        "networks": f"{_HERE}.families:networks",
    },
    splitting=f"{_HERE}.parts:cases",
    shrinking=f"{_HERE}.parts:shrink",
    sampling=f"{_HERE}.sampling:random_plan",
    relating=f"{_HERE}.relations:relations",
    proving="mapgap.formulations.fpga_gpu_partition.certificate:prove",
    carrying=f"{_HERE}.implications:carried",
    implying=f"{_HERE}.implications:implied",
    importing=f"{_HERE}.importing:build",
)
