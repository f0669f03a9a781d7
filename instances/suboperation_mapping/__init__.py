"""Instances of suboperation mapping: library files, their compact form and its expansion, random families."""

from mapgap.instances.house import house_library

LIBRARY = house_library(
    "suboperation_mapping", "tiny", "realistic", "small", "branching", climbing=True, compiled="chain_check"
)
