"""Instances of hybrid pipeline: library files, their compact form and its expansion, random families."""

from mapgap.instances.house import house_library

FAMILIES = ("tiny", "realistic", "small", "executions", "steady", "scaling", "distinct")
LIBRARY = house_library("hybrid_pipeline", *FAMILIES, boards=True, preferring=True)
