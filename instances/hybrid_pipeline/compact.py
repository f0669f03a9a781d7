"""Instances of hybrid pipeline planning: the compact form, its expansion, and random families.

A compact file names a network, boards, bandwidth and batch sizes; :func:`expand` derives the layer sequence
(``network.py``) and, for want of measurements, time tables by a roofline scaled to Asteroid's Table 1
(``profiles.py``). The expanded form carries the tables themselves, so measured profiles replace them there.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from mapgap.core import CompactBase, Frozen
from mapgap.instances.hybrid_pipeline._expand import expand_compact
from mapgap.problems.hybrid_pipeline import Instance


class RunningStage(Frozen):
    """A stage of a running pipeline: its layers end before ``stop``; devices by name."""

    stop: int = Field(ge=1)
    devices: tuple[str, ...] = Field(min_length=1)


class Failure(Frozen):
    """A device that leaves a running pipeline (Sec. 3.4).

    Attributes
    ----------
    device : str
        Name of the device, such as ``TX2`` or ``Nano 2``.
    rounds : int
        HPP-rounds to be trained after the failure.
    pipeline : tuple of RunningStage
        What ran before.
    """

    device: str
    rounds: int = Field(ge=1)
    pipeline: tuple[RunningStage, ...] = Field(min_length=1)


class Compact(CompactBase):
    """A library network on boards of Asteroid's Table 5.

    Attributes
    ----------
    network : str
        A network of the library with a profile.
    cluster : str, optional
        Environment A to D of Table 6, or ``nano8``.
    devices : tuple of str, optional
        Boards by name (Nano, TX2, NX), in place of ``cluster``; equal ones are numbered.
    bandwidth_mbps : float or matrix of float
        Device-to-device bandwidth in 10^6 bits per second; symmetric, diagonal ignored.
    mini_batch : int
        Samples of an HPP-round.
    micro_batch : int or tuple of int
        Micro-batch size B; with several, plans choose one.
    all_devices : bool
        Forbid idle devices.
    failure : Failure, optional
        Turns the instance into re-planning.
    """

    problem: Literal["hybrid_pipeline"] = "hybrid_pipeline"
    network: str
    cluster: str | None = None
    devices: tuple[str, ...] | None = None
    bandwidth_mbps: float | tuple[tuple[float, ...], ...]
    mini_batch: int = Field(ge=1)
    micro_batch: int | tuple[int, ...]
    all_devices: bool = False
    failure: Failure | None = None


def expand(compact: Compact) -> Instance:
    """The expanded instance.

    Raises
    ------
    InputError
        Every field that cannot be expanded, each with what was expected and what was found.
    """
    return expand_compact(compact)
