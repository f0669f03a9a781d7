"""The compact form of hybrid pipeline instances, and its expansion.

A compact file names a network, boards, bandwidth and batch sizes; :func:`expand` derives the layer sequence
(``network.py``) and, for want of measurements, time tables by a roofline scaled to Asteroid's Table 1
(``profiles.py``). The expanded form carries the tables themselves, so measured profiles replace them there.
"""

from __future__ import annotations

from itertools import count
from typing import Annotated, Literal

from pydantic import Field

from mapgap.core import MOST_DEVICES, MOST_SAMPLES, CompactBase, Finding, InputError
from mapgap.instances.expanding import Matrix, all_known, bandwidths, collect, either, finest, numbered
from mapgap.instances.facts import load_devices, unknown
from mapgap.instances.hybrid_pipeline.failure import Failure, survivors
from mapgap.instances.hybrid_pipeline.network import WORD, crossing, operators
from mapgap.instances.hybrid_pipeline.profiles import DEVICES, boards, memory_bytes, nanoseconds, over_roofline, table
from mapgap.problems.hybrid_pipeline import Device, DeviceType, Instance, Layer

MEMORY_UNIT_BYTES = 1024
STATE_COPIES = 3
"""MOD + OPT of Eq. (3): weights, gradients, momentum."""


Samples = Annotated[int, Field(ge=1, le=MOST_SAMPLES)]


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
    devices: tuple[str, ...] | None = Field(default=None, max_length=MOST_DEVICES)
    bandwidth_mbps: float | Matrix
    mini_batch: int = Field(ge=1, le=MOST_SAMPLES**2)
    micro_batch: Samples | tuple[Samples, ...]
    all_devices: bool = False
    failure: Failure | None = None


def expand(compact: Compact) -> Instance:
    """The expanded instance; with ``failure``, that of the survivors.

    Raises
    ------
    InputError
        Every field that cannot be expanded, each with what was expected and what was found.
    """
    sizes = (compact.micro_batch,) if isinstance(compact.micro_batch, int) else compact.micro_batch
    names = _boards(compact)
    findings: list[Finding] = []
    collect(findings, lambda: _check_names(compact, names))
    if any(b < 1 or compact.mini_batch % b for b in sizes):
        text = f"expected divisors of the mini-batch {compact.mini_batch}, found {list(sizes)}"
        findings.append(Finding(text, ("micro_batch",)))
    mbps = compact.bandwidth_mbps
    rates = collect(findings, lambda: bandwidths("bandwidth_mbps", mbps, len(names), "Mbit/s"))
    if findings or rates is None:
        raise InputError(findings)
    kinds = list(dict.fromkeys(names))
    times = {kind: nanoseconds(compact.network, kind, max(sizes)) for kind in kinds}

    def at(tick_ns: int) -> Instance:
        instance = Instance(
            name=compact.name,
            source=compact.source,
            tags=compact.tags,
            mini_batch=compact.mini_batch,
            micro_batch_sizes=sizes,
            tick_ns=tick_ns,
            memory_unit_bytes=MEMORY_UNIT_BYTES,
            types=tuple(
                DeviceType(
                    name=kind,
                    memory=memory_bytes(kind) // MEMORY_UNIT_BYTES,
                    forward=table(times[kind][0], tick_ns),
                    backward=table(times[kind][1], tick_ns),
                )
                for kind in kinds
            ),
            devices=tuple(
                Device(name=label, type=kinds.index(name)) for label, name in zip(numbered(names), names, strict=True)
            ),
            bandwidth=rates,
            layers=layers_of(compact.network),
            all_devices=compact.all_devices,
        )
        return instance if compact.failure is None else survivors(instance, compact.failure)

    return finest(at, (1000 * 10**k for k in count()))


def _boards(compact: Compact) -> tuple[str, ...]:
    either("cluster", "devices", compact.cluster, compact.devices)
    if compact.cluster is None:
        return compact.devices or ()
    clusters = load_devices(DEVICES).clusters
    if compact.cluster not in clusters:
        raise unknown("cluster", compact.cluster, list(clusters))
    return clusters[compact.cluster]


def _check_names(compact: Compact, names: tuple[str, ...]) -> None:
    all_known(names, boards(), "board")
    for name in dict.fromkeys(names):
        over_roofline(compact.network, name)
    operators(compact.network)


def layers_of(network: str) -> tuple[Layer, ...]:
    """Layers with bytes that cross, weights and memory demands (rounded up)."""
    return tuple(
        Layer(
            name=operator.name,
            output_bytes=size,
            weight_bytes=WORD * operator.params,
            state_memory=-(-STATE_COPIES * WORD * operator.params // MEMORY_UNIT_BYTES),
            activation_memory=-(-WORD * operator.out // MEMORY_UNIT_BYTES),
            flops=2 * operator.macs,
        )
        for operator, size in zip(operators(network), crossing(network), strict=True)
    )
