"""Instances of neuron masking: the compact form, its expansion, and random families.

A compact file names a network and devices of the library and states a cycle time; :func:`expand` turns them into the
integer tables of :mod:`mapgap.problems.neuron_masking` (see ``_expand.py``).
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from mapgap.core import CompactBase
from mapgap.instances.neuron_masking._expand import expand_compact
from mapgap.problems.neuron_masking import Instance


class Compact(CompactBase):
    """A library network on devices of ``devices/elfish.yaml``.

    Attributes
    ----------
    network : str
        A convolutional network of the library whose layers form a chain.
    devices : tuple of str
        By name; ``capable 2`` is the second device of the kind ``capable``.
    cycle_min : tuple of float, optional
        Candidate cycle times in minutes; one of them is b_T.
    reference : str, optional
        In place of ``cycle_min``: the device whose time for the whole model is the cycle time.
    objective : {"neurons", "contribution", "smallest_share", "rate"}
    memory_mode : {"hard", "spill"}
    floor_percent : float
        Every masked layer keeps at least this part of its neurons (and one).
    top_percent : int
        P_s in percent.
    batch, batches : int
        m_b and N_b of Table 1.
    overhead_min : float
        O_T in minutes.
    contribution_seed : int
        Seed of the contributions U, drawn log-normally: the paper prints none.
    """

    problem: Literal["neuron_masking"] = "neuron_masking"
    network: str
    devices: tuple[str, ...]
    cycle_min: tuple[float, ...] | None = None
    reference: str | None = None
    objective: Literal["neurons", "contribution", "smallest_share", "rate"] = "neurons"
    memory_mode: Literal["hard", "spill"] = "hard"
    floor_percent: float = Field(default=10.0, ge=0, le=100)
    top_percent: int = Field(default=80, ge=0, le=100)
    batch: int = Field(default=128, ge=1)
    batches: int = Field(default=391, ge=1)
    overhead_min: float = Field(default=0.0, ge=0)
    contribution_seed: int = 0


def expand(compact: Compact) -> Instance:
    """The expanded instance.

    Raises
    ------
    InputError
        Every field that cannot be expanded, each with what was expected and what was found.
    """
    fields = compact.model_dump(exclude={"schema_version", "form", "problem"})
    return expand_compact(**fields)
