"""The study fpga_gpu_partition."""

from mapgap.studies.fpga_gpu_partition.study import STUDY

__all__ = ["STUDY"]
