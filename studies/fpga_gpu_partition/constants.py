"""What is said of the sets of constants of the cost model: which are fits, what is extreme in the others."""

from __future__ import annotations

from mapgap.instances.fpga_gpu_partition.cost_model import constant_sets


def fit_names() -> list[str]:
    """Names of the fits kept, best first."""
    return [name for name, values in constant_sets().items() if "extreme" not in values]


def extremes() -> dict[str, str]:
    """Names of the sets at which some gain is least or most, and what is extreme there."""
    return {name: values["extreme"] for name, values in constant_sets().items() if "extreme" in values}


def load_share(name: str) -> float:
    """Share g_l / C_I of the grouped 3×3 expansion that belongs to a set of constants."""
    return float(constant_sets()[name]["share"])


def load_reading(name: str) -> str:
    """How ShuffleNetV2's units are read where a set of constants explains Table I: ``sequential`` or ``parallel``."""
    return str(constant_sets()[name].get("reading", "sequential"))
