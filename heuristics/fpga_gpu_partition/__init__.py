"""Published rule and baselines of the FPGA-GPU partition."""
