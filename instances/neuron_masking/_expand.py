"""Expansion of the compact form: names to integers.

Units (rule 12 of :mod:`mapgap.problems.neuron_masking`): a memory unit is 8 bytes, the weight and gradient of Eq.
(2); a work
unit is one multiply-accumulate per sample, ``2 N_b m_b`` of them per cycle by Eq. (1); a tick of a device is the time
of one work unit on it. Work and memory are then exact; rates and overhead are rounded up, limits down.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from mapgap.core import ACTIVITY_LIMIT, InputError
from mapgap.instances._library import Network, Row, load_devices, load_network, unknown
from mapgap.problems.neuron_masking import Device, Instance, Layer, Rate

MEMORY_UNIT_BYTES = 8
FEATURE_BYTES = 4
"""B_a = 32 bits; a memory unit holds B_f = 32 bits of weight and as much of gradient."""
MAIN_BYTES_PER_S, SECONDARY_BYTES_PER_S = 25_000_000_000, 870_000_000
"""V_mc and V_sm of Table 1, taken for every device."""
MEAN_CONTRIBUTION = 1000


@dataclass(frozen=True)
class Kind:
    """A device of the library: multiply-accumulates per second and bytes of memory."""

    name: str
    compute: Fraction
    memory: int


def expand_compact(
    *,
    name: str,
    source: str,
    tags: tuple[str, ...],
    network: str,
    devices: tuple[str, ...],
    cycle_min: tuple[float, ...] | None,
    reference: str | None,
    objective: Any,
    memory_mode: Any,
    floor_percent: float,
    top_percent: int,
    batch: int,
    batches: int,
    overhead_min: float,
    contribution_seed: int,
) -> Instance:
    """Build the instance; parameters as the fields of the compact form.

    Raises
    ------
    InputError
        All findings at once.
    """
    findings: list[str] = []
    layers = _collect(findings, lambda: layers_of(load_network(network), batch, floor_percent))
    kinds = _collect(findings, lambda: _kinds(devices))
    cycles = _collect(findings, lambda: _cycles_ms(network, layers, cycle_min, reference, batch, batches))
    if layers is None or kinds is None or cycles is None:
        raise InputError(findings)
    inputs = load_network(network).input_chw[0]
    work, memory = totals(inputs, layers)
    if max(work, memory) >= ACTIVITY_LIMIT:
        raise InputError(f"network: expected work and memory units below 2^30, found {work} and {memory} of {network}")
    contributions = draw_contributions(layers, f"{network}-{contribution_seed}")
    macs = 2 * batches * batch
    return Instance(
        name=name,
        source=source,
        tags=tags,
        objective=objective,
        memory_mode=memory_mode,
        top_percent=top_percent,
        memory_unit_bytes=MEMORY_UNIT_BYTES,
        work_unit_macs=macs,
        cycle_ms=cycles,
        inputs=inputs,
        layers=layers,
        devices=tuple(
            _device(label, kind, macs, batches, cycles, overhead_min, memory, contributions)
            for label, kind in zip(devices, kinds, strict=True)
        ),
    )


def _collect(findings: list[str], make: Any) -> Any:
    """The value, or ``None`` with its findings noted."""
    try:
        return make()
    except InputError as error:
        findings += error.problems
        return None


def layers_of(network: Network, batch: int, floor_percent: float) -> tuple[Layer, ...]:
    """Convolutions and fully connected layers of a chain network; the last one stays whole.

    Raises
    ------
    InputError
        The network is no chain, has grouped convolutions or operators that are neither layers nor pools.
    """
    found = [
        f"network: expected a chain of conv, fc and pool rows, found {row.name} ({row.type}) of {network.name}"
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


def totals(inputs: int, layers: tuple[Layer, ...]) -> tuple[int, int]:
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
        raise InputError("devices: expected at least one device, found none")
    return [_kind(f"devices[{i}]", name) for i, name in enumerate(names)]


def _kind(field: str, name: str) -> Kind:
    """``capable 2`` is a device of the kind ``capable``."""
    table = load_devices("elfish")
    base, _, number = name.partition(" ")
    if base not in table.names() or (number and not number.isdigit()):
        raise unknown(field, name, table.names())
    facts = table.of(base)
    compute = Fraction(str(facts["compute"].value)) * 10**9
    return Kind(name, compute, math.floor(Fraction(str(facts["memory"].value)) * 10**6))


def _cycles_ms(
    network: str,
    layers: tuple[Layer, ...] | None,
    cycle_min: tuple[float, ...] | None,
    reference: str | None,
    batch: int,
    batches: int,
) -> tuple[int, ...]:
    """Candidate cycle times: as stated, or the time of the whole model on the reference device (O_T = 0)."""
    macs = 2 * batches * batch
    if (cycle_min is None) == (reference is None):
        found = "neither" if reference is None else "both"
        raise InputError(f"cycle_min: expected either cycle_min or reference, found {found}")
    if cycle_min is not None:
        wrong = [value for value in cycle_min if not (math.isfinite(value) and round(value * 60_000) >= 1)]
        if wrong or not cycle_min:
            raise InputError(f"cycle_min: expected positive numbers of minutes, found {list(cycle_min)}")
        return tuple(round(value * 60_000) for value in cycle_min)
    assert reference is not None
    kind = _kind("reference", reference)
    if layers is None:
        return (1,)  # the network is the finding; this value is not used
    work, memory = totals(load_network(network).input_chw[0], layers)
    seconds = work * macs / kind.compute + Fraction(batches * MEMORY_UNIT_BYTES * memory, MAIN_BYTES_PER_S)  # Eq. (3)
    # Rates and limits are rounded against the plan by less than a tick each; a millisecond covers it.
    return (math.ceil(1000 * seconds) + 1,)


def _device(
    label: str,
    kind: Kind,
    macs: int,
    batches: int,
    cycles: tuple[int, ...],
    overhead_min: float,
    memory: int,
    contributions: tuple[tuple[int, ...], ...],
) -> Device:
    per_second = kind.compute / macs  # ticks per second
    limits = tuple(math.floor(per_second * ms / 1000) for ms in cycles)
    moved = batches * MEMORY_UNIT_BYTES * per_second  # N_b M of Eq. (3), in ticks times bytes per second
    return Device(
        name=label,
        tick_ps=max(1, round(10**12 / per_second)),
        transfer=rate_above(moved / MAIN_BYTES_PER_S, memory),
        spill=rate_above(moved / SECONDARY_BYTES_PER_S, memory),
        overhead=math.ceil(Fraction(str(overhead_min)) * 60 * per_second),
        time_limit=limits,
        work_limit=limits,  # b_W = C_cpu b_T; a work unit takes one tick
        memory_limit=kind.memory // MEMORY_UNIT_BYTES,
        contributions=contributions,
    )


def rate_above(exact: Fraction, memory: int) -> Rate:
    """The smallest fraction of at least ``exact`` ticks per unit whose numerator times ``memory`` stays below 2^30."""
    most = max(1, min(10_000, (ACTIVITY_LIMIT - 1) // max(1, memory)))
    options = [Fraction(ticks, math.floor(ticks / exact)) for ticks in range(1, most + 1) if ticks >= exact]
    if not options:
        raise InputError(f"devices: expected a rate of at most {most} ticks per memory unit, found {float(exact):.1f}")
    best = min(options)
    return Rate(ticks=best.numerator, per=best.denominator)


def draw_contributions(layers: tuple[Layer, ...], seed: str) -> tuple[tuple[int, ...], ...]:
    """U of every neuron: log-normal with sigma 1 and a mean of ``MEAN_CONTRIBUTION`` (assumed, Eq. (7) gives none)."""
    rng = random.Random(f"elfish-{seed}")
    return tuple(
        tuple(round(MEAN_CONTRIBUTION * rng.lognormvariate(-0.5, 1.0)) for _ in range(layer.neurons))
        for layer in layers
    )
