"""The compact form of an instance and its expansion: names to integers.

A compact file names a network and devices of the library and states a cycle time; :func:`expand` turns them into the
integer tables of :mod:`mapgap.problems.neuron_masking`.

Units (rule 12 there): a memory unit is 8 bytes, the weight and gradient of Eq. (2); a work unit is one
multiply-accumulate per sample, ``2 N_b m_b`` of them per cycle by Eq. (1); a tick of a device is the time of one work
unit on it. Work and memory are then exact; rates and overhead are rounded up, limits down.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, lru_cache, partial
from typing import Literal

from pydantic import Field

from mapgap.core import ACTIVITY_LIMIT, LARGEST, MOST_DEVICES, CompactBase, Finding, InputError, Location
from mapgap.instances.expanding import collect, either
from mapgap.instances.facts import Network, Row, load_devices, load_network, unknown
from mapgap.problems.neuron_masking import Device, Instance, Layer, Rate

MEMORY_UNIT_BYTES = 8
FEATURE_BYTES = 4
"""B_a = 32 bits; a memory unit holds B_f = 32 bits of weight and as much of gradient."""
MAIN_BYTES_PER_S, SECONDARY_BYTES_PER_S = 25_000_000_000, 870_000_000
"""V_mc and V_sm of Table 1, taken for every device."""
MEAN_CONTRIBUTION = 1000


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
    devices: tuple[str, ...] = Field(max_length=MOST_DEVICES)
    cycle_min: tuple[float, ...] | None = None
    reference: str | None = None
    objective: Literal["neurons", "contribution", "smallest_share", "rate"] = "neurons"
    memory_mode: Literal["hard", "spill"] = "hard"
    floor_percent: float = Field(default=10.0, ge=0, le=100)
    top_percent: int = Field(default=80, ge=0, le=100)
    batch: int = Field(default=128, ge=1, le=LARGEST)
    batches: int = Field(default=391, ge=1, le=LARGEST)
    overhead_min: float = Field(default=0.0, ge=0)
    contribution_seed: int = 0


@dataclass(frozen=True)
class Kind:
    """A device of the library: multiply-accumulates per second and bytes of memory."""

    name: str
    compute: Fraction
    memory: int


def expand(compact: Compact) -> Instance:
    """The expanded instance.

    Raises
    ------
    InputError
        Every field that cannot be expanded, each with what was expected and what was found.
    """
    findings: list[Finding] = []
    layers = collect(findings, lambda: layers_of(load_network(compact.network), compact.batch, compact.floor_percent))
    kinds = collect(findings, lambda: _kinds(compact.devices))
    cycles = collect(findings, lambda: _cycles_ms(compact, layers))
    if layers is None or kinds is None or cycles is None:
        raise InputError(findings)
    inputs = load_network(compact.network).input_chw[0]
    work, memory = totals(inputs, layers)
    if max(work, memory) >= ACTIVITY_LIMIT:
        text = f"expected work and memory units below 2^30, found {work} and {memory} of {compact.network}"
        raise InputError(Finding(text, ("network",)))
    contributions = draw_contributions(layers, f"{compact.network}-{compact.contribution_seed}")
    return Instance(
        name=compact.name,
        source=compact.source,
        tags=compact.tags,
        objective=compact.objective,
        memory_mode=compact.memory_mode,
        top_percent=compact.top_percent,
        memory_unit_bytes=MEMORY_UNIT_BYTES,
        work_unit_macs=_macs(compact),
        cycle_ms=cycles,
        inputs=inputs,
        layers=layers,
        devices=tuple(_device(compact, kind, cycles, memory, contributions) for kind in kinds),
    )


def _macs(compact: Compact) -> int:
    """Multiply-accumulates of a work unit in a cycle: Eq. (1)."""
    return 2 * compact.batches * compact.batch


def layers_of(network: Network, batch: int, floor_percent: float) -> tuple[Layer, ...]:
    """Convolutions and fully connected layers of a chain network; the last one stays whole.

    Raises
    ------
    InputError
        The network is no chain, has grouped convolutions or operators that are neither layers nor pools.
    """
    found = [
        Finding(
            f"expected a chain of conv, fc and pool rows, found {row.name} ({row.type}) of {network.name}", ("network",)
        )
        for row in network.rows
        if row.inputs != (row.index - 1,) or row.groups > 1 or row.type not in ("conv", "fc", "maxpool", "avgpool")
    ]
    if found:
        raise InputError(found)
    rows = [row for row in network.rows if row.type in ("conv", "fc")]
    return tuple(_layer(row, batch, 100.0 if row is rows[-1] else floor_percent) for row in rows)


def _layer(row: Row, batch: int, floor_percent: float) -> Layer:
    """One filter reads k x k weights per input channel; a fully connected unit one weight per element of the map."""
    taps = row.kernel**2 if row.type == "conv" else row.height_in * row.width_in
    pixels = row.height * row.width
    bytes_of_map = FEATURE_BYTES * batch * pixels
    least = max(1, math.ceil(Fraction(str(floor_percent)) * row.cout / 100))
    return Layer(
        name=row.name,
        neurons=row.cout,
        least=least,
        work=taps * pixels,  # r s h w of Eq. (1)
        weights=taps,  # r s of Eq. (2)
        features=-(-bytes_of_map // MEMORY_UNIT_BYTES),
    )


def totals(inputs: int, layers: Sequence[Layer]) -> tuple[int, int]:
    """Work and memory units of the whole model."""
    work = memory = 0
    before = inputs
    for layer in layers:
        work += layer.work * before * layer.neurons
        memory += layer.weights * before * layer.neurons + layer.features * layer.neurons
        before = layer.neurons
    return work, memory


def _kinds(names: tuple[str, ...]) -> list[Kind]:
    if not names:
        raise InputError(Finding("expected at least one device, found none", ("devices",)))
    findings: list[Finding] = []
    found = [collect(findings, partial(_kind, ("devices", i), name)) for i, name in enumerate(names)]
    if findings:
        raise InputError(findings)
    return [kind for kind in found if kind is not None]


def _kind(location: Location, name: str) -> Kind:
    """``capable 2`` is a device of the kind ``capable``."""
    table = load_devices("elfish")
    base, _, number = name.partition(" ")
    if base not in table.names() or (number and not number.isdigit()):
        raise unknown(location, name, table.names())
    facts = table.of(base)
    compute = Fraction(str(facts["compute"].value)) * 10**9
    return Kind(name, compute, math.floor(Fraction(str(facts["memory"].value)) * 10**6))


def _cycles_ms(compact: Compact, layers: tuple[Layer, ...] | None) -> tuple[int, ...]:
    """Candidate cycle times: as stated, or the time of the whole model on the reference device (O_T = 0)."""
    minutes, reference = compact.cycle_min, compact.reference
    either("cycle_min", "reference", minutes, reference)
    if minutes is not None:
        wrong = [value for value in minutes if not (math.isfinite(value) and round(value * 60_000) >= 1)]
        if wrong or not minutes:
            text = f"expected positive numbers of minutes, found {list(minutes)}"
            raise InputError(Finding(text, ("cycle_min",)))
        return tuple(round(value * 60_000) for value in minutes)
    assert reference is not None
    kind = _kind(("reference",), reference)
    if layers is None:
        return (1,)  # the network is the finding; this value is not used
    work, memory = totals(load_network(compact.network).input_chw[0], layers)
    moved = Fraction(compact.batches * MEMORY_UNIT_BYTES * memory, MAIN_BYTES_PER_S)
    seconds = work * _macs(compact) / kind.compute + moved  # Eq. (3)
    # Rates and limits are rounded against the plan by less than a tick each; a millisecond covers it.
    return (math.ceil(1000 * seconds) + 1,)


def _device(
    compact: Compact, kind: Kind, cycles: tuple[int, ...], memory: int, contributions: tuple[tuple[int, ...], ...]
) -> Device:
    per_second = kind.compute / _macs(compact)  # ticks per second
    limits = tuple(math.floor(per_second * ms / 1000) for ms in cycles)
    moved = compact.batches * MEMORY_UNIT_BYTES * per_second  # N_b M of Eq. (3), in ticks times bytes per second
    return Device(
        name=kind.name,
        tick_ps=max(1, round(10**12 / per_second)),
        transfer=rate_above(moved / MAIN_BYTES_PER_S, memory),
        spill=rate_above(moved / SECONDARY_BYTES_PER_S, memory),
        overhead=math.ceil(Fraction(str(compact.overhead_min)) * 60 * per_second),
        time_limit=limits,
        work_limit=limits,  # b_W = C_cpu b_T; a work unit takes one tick
        memory_limit=kind.memory // MEMORY_UNIT_BYTES,
        contributions=contributions,
    )


@cache
def rate_above(exact: Fraction, memory: int) -> Rate:
    """The smallest fraction of at least ``exact`` ticks per unit whose numerator times ``memory`` stays below 2^30."""
    most = max(1, min(10_000, (ACTIVITY_LIMIT - 1) // max(1, memory)))
    if exact > most:
        text = f"expected a rate of at most {most} ticks per memory unit, found {float(exact):.1f}"
        raise InputError(Finding(text, ("devices",)))
    top, bottom = exact.numerator, exact.denominator
    best, per = math.ceil(exact), math.ceil(exact) * bottom // top
    for ticks in range(best + 1, most + 1):  # in whole numbers: a fraction for each would take twenty times as long
        if ticks * per < best * (units := ticks * bottom // top):
            best, per = ticks, units
    found = Fraction(best, per)
    return Rate(ticks=found.numerator, per=found.denominator)


def draw_contributions(layers: tuple[Layer, ...], seed: str) -> tuple[tuple[int, ...], ...]:
    """U of every neuron: log-normal with sigma 1 and a mean of ``MEAN_CONTRIBUTION`` (assumed, Eq. (7) gives none)."""
    return _drawn(tuple(layer.neurons for layer in layers), seed)


@lru_cache(maxsize=64)
def _drawn(neurons: tuple[int, ...], seed: str) -> tuple[tuple[int, ...], ...]:
    rng = random.Random(f"elfish-{seed}")
    return tuple(tuple(round(MEAN_CONTRIBUTION * rng.lognormvariate(-0.5, 1.0)) for _ in range(n)) for n in neurons)
