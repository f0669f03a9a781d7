"""Instances of the FPGA-GPU partition: library files, their compact form and its expansion, random families."""

from mapgap.instances.house import house_library

LIBRARY = house_library("fpga_gpu_partition", "tiny", "realistic", "small", "scaling", "networks")
