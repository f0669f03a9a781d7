"""Expansion of the compact form: models, devices and the latency model of Sec. 5.4.1 to integer ticks.

=====================  =========================================================================  ==========
task                   duration                                                                   status
=====================  =========================================================================  ==========
sensing                a parameter per signal, 0 unless set                                       assumed
loading, unloading     copy time per byte x bytes                                                 derived
inference              (In_col + Out_col Out_ch) In_row ceil(In_ch / 64) cycles / clock, per layer published
reception, sending     radio time per byte x bytes, on either side                                derived
=====================  =========================================================================  ==========
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from pydantic import Field, ValidationError

from mapgap.core import Frozen, InputError
from mapgap.instances._library import load_devices, unknown
from mapgap.instances.multi_model_splitting.models import Model, load_model
from mapgap.problems.multi_model_splitting import Boundary, Device, Instance, Layer, Pipeline, Requirement

RADIO_US_PER_BYTE = 109.8
"""From the extremes of Fig. 7: (161864.5 - 4426.2) ms / (147456 - 4032) bytes = 1.0977 ms/byte, taken as a slipped
decimal, because the mean of the same figure gives 6869.1 ms / 70424 bytes = 0.0975 and UART at 115200 baud 0.0868."""
COPY_US_PER_BYTE = 0.0746
"""Between the memories of MCU and accelerator; fits the mean memory latency of Fig. 7 (10.6 ms per layer of UNet)."""
WEIGHT_BYTES = {"MAX78000": 442_368, "MAX78002": 2_097_152}
"""The paper's 442 KB and 2 MB; the vendor gives 2,396,160 for the MAX78002."""
TICKS_NS = tuple(1000 * 10**k for k in range(10))
"""A microsecond if it is coarse enough, or the next power of ten."""


class CompactDevice(Frozen):
    """A device of the compact form: an accelerator type and what the wearable has."""

    name: str
    type: str
    sensors: tuple[str, ...] = ()
    interfaces: tuple[str, ...] = ()


class CompactPipeline(Frozen):
    """A pipeline of the compact form; ``name`` defaults to the model's."""

    name: str | None = None
    model: str
    source: Requirement = Requirement()
    target: Requirement = Requirement()


class Rates(Frozen):
    """The free numbers of the latency model.

    Attributes
    ----------
    radio_us_per_byte : float
        Sending or receiving one byte.
    copy_us_per_byte : float
        Loading or unloading one byte.
    sensing_ms : dict
        Per signal (``image``, ``audio``); the paper measures but does not print them.
    """

    radio_us_per_byte: float = Field(default=RADIO_US_PER_BYTE, ge=0)
    copy_us_per_byte: float = Field(default=COPY_US_PER_BYTE, ge=0)
    sensing_ms: dict[str, float] = Field(default_factory=dict)


def accelerator_types() -> list[str]:
    """Accelerators that a device can have."""
    return list(WEIGHT_BYTES)


def make_device(compact: CompactDevice) -> Device:
    """Limits of the accelerator from ``devices/synergy.yaml``.

    Raises
    ------
    InputError
        No such accelerator.
    """
    if compact.type not in WEIGHT_BYTES:
        raise unknown("type", compact.type, accelerator_types())
    facts = load_devices("synergy").of(compact.type)
    return Device(
        name=compact.name,
        weights=WEIGHT_BYTES[compact.type],
        bias=int(facts["bias_mem"].value),
        layers=int(facts["max_layers"].value),
        sensors=compact.sensors,
        interfaces=compact.interfaces,
    )


def clock_hz(accelerator: str) -> int:
    """Clock of an accelerator (vendor default)."""
    return int(load_devices("synergy").of(accelerator)["cnn_clock"].value)


def _ticks(microseconds: Fraction, tick_ns: int) -> int:
    """Nearest whole tick."""
    return round(microseconds * 1000 / tick_ns)


def make_pipeline(
    name: str, compact: CompactPipeline, model: Model, types: Iterable[str], rates: Rates, live: bool, tick_ns: int
) -> Pipeline:
    """One pipeline with a duration per task and device.

    Parameters
    ----------
    types : iterable of str
        Accelerator type per device.
    live : bool
        Bytes at a cut: all live tensors, not only the last output.
    """
    clocks = [clock_hz(kind) for kind in types]
    n, last = len(clocks), len(model.rows)
    radio, copy = Fraction(str(rates.radio_us_per_byte)), Fraction(str(rates.copy_us_per_byte))
    boundaries = []
    for b, size in enumerate(model.boundary_bytes(live)):
        moved, copied = (_ticks(rate * size, tick_ns) for rate in (radio, copy))
        boundaries.append(
            Boundary(
                bytes=size,
                load=(copied,) * n if b < last else (),
                unload=(copied,) * n if b > 0 else (),
                transmit=(moved,) * n,
                receive=(moved,) * n,
            )
        )
    layers = [
        Layer(
            name=f"{row.index}_{row.op}",
            weights=row.weights,
            bias=row.bias,
            output_bytes=row.out,
            inference=tuple(_ticks(Fraction(row.cycles * 10**6, clock), tick_ns) for clock in clocks),
        )
        for row in model.rows
    ]
    sensing = _ticks(Fraction(str(rates.sensing_ms.get(model.signal, 0.0))) * 1000, tick_ns)
    return Pipeline(
        name=name,
        source=compact.source,
        target=compact.target,
        signal=f"{model.signal}_{model.input_bytes}",
        model=model.title,
        sensing=(sensing,) * n,
        layers=tuple(layers),
        boundaries=tuple(boundaries),
    )


def pipeline_names(pipelines: Iterable[CompactPipeline]) -> list[str]:
    """Given names, or the models', numbered where one occurs again."""
    found: list[str] = []
    for pipeline in pipelines:
        stem = pipeline.name or load_model(pipeline.model).title
        count = sum(name == stem or name.startswith(f"{stem}_") for name in found)
        found.append(f"{stem}_{count + 1}" if count and pipeline.name is None else stem)
    return found


def expand_compact(
    *,
    name: str,
    source: str,
    tags: tuple[str, ...],
    objective: str,
    sharing: bool,
    live: bool,
    devices: tuple[CompactDevice, ...],
    pipelines: tuple[CompactPipeline, ...],
    rates: Rates,
) -> Instance:
    """Build the instance; parameters as the fields of the compact form.

    Raises
    ------
    InputError
        Every name that the library does not have.
    """
    findings: list[str] = []
    made, models = [], []
    for index, device in enumerate(devices):
        try:
            made.append(make_device(device))
        except InputError as error:
            findings += [f"devices[{index}].{problem}" for problem in error.problems]
    known = [device.name for device in devices]
    for index, pipeline in enumerate(pipelines):
        try:
            models.append(load_model(pipeline.model))
        except InputError as error:
            findings += [f"pipelines[{index}].{problem}" for problem in error.problems]
        for role, need in (("source", pipeline.source), ("target", pipeline.target)):
            if need.device is not None and need.device not in known:
                findings += unknown(f"pipelines[{index}].{role}.device", need.device, known).problems
    if extra := sorted(set(rates.sensing_ms) - {"image", "audio"}):
        findings.append(f"sensing_ms: expected image or audio, found {', '.join(extra)}")
    if findings:
        raise InputError(findings)
    names, types = pipeline_names(pipelines), [device.type for device in devices]

    def at(tick_ns: int) -> Instance:
        parts = [
            make_pipeline(n, p, m, types, rates, live, tick_ns)
            for n, p, m in zip(names, pipelines, models, strict=True)
        ]
        return Instance.model_validate(
            {"name": name, "source": source, "tags": tags, "objective": objective, "tick_ns": tick_ns}
            | {"sharing": sharing, "devices": tuple(made), "pipelines": tuple(parts)}
        )

    for tick_ns in TICKS_NS:
        try:
            return at(tick_ns)
        except ValidationError as error:
            if "tick_ns" not in str(error):
                raise
    raise InputError("pipelines: expected tasks of less than 10^18 ns in all")
