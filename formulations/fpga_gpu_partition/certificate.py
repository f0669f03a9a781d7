"""Proofs for :mod:`mapgap.problems.fpga_gpu_partition.certificate`: a tree that refutes every better plan."""

from __future__ import annotations

from typing import Any

from mapgap.core import Budget
from mapgap.evidence.check import Box, Program
from mapgap.problems.fpga_gpu_partition.certificate import program
from mapgap.solvers.refute import refute


def prove(instance: dict[str, Any], bound: int, budget: Budget) -> list[Any] | None:
    """The proof that no plan has an objective below ``bound``; ``None`` if none is found within the budget."""
    written = program(instance, bound, Program)
    return refute(written, Box(written.lower[:], written.upper[:], []), budget).proof
