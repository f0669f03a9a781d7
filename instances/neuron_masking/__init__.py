"""Instances of neuron masking: library files, their compact form and its expansion, random families."""

from mapgap.instances.house import house_library

LIBRARY = house_library("neuron_masking", "tiny", "realistic", "small", "fleet", "scaling", "ladder")
