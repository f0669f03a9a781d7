"""The compact form of an instance and its expansion.

A compact file names models of Table 1, accelerators, requirements and the free numbers of the latency model;
:func:`expand` tabulates the six tasks of Sec. 5.4.1 (``latency_model.py``) from the vendor's layer tables
(``models.py``).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Literal

from pydantic import Field

from mapgap.core import MOST_DEVICES, CompactBase, Finding, Frozen, InputError
from mapgap.instances.expanding import collect, finest
from mapgap.instances.facts import unknown
from mapgap.instances.multi_model_splitting.latency_model import (
    COPY_US_PER_BYTE,
    RADIO_US_PER_BYTE,
    make_device,
    make_pipeline,
)
from mapgap.instances.multi_model_splitting.models import SIGNALS, Model, load_model
from mapgap.problems.multi_model_splitting import Device, Instance, Pipeline, Requirement

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


class Compact(CompactBase):
    """Models of Table 1 on wearables with MAX78000 or MAX78002.

    Attributes
    ----------
    objective : {"throughput", "latency"}
    sharing : bool
        Operation sharing between pipelines.
    live : bool
        A cut moves every tensor that a later layer reads; the paper counts the last output only.
    devices : tuple
        Name, accelerator type, sensors and interfaces; their order is the numbering that some baselines depend on.
    pipelines : tuple
        Model, source and target requirement (a device, a type of sensor or interface, or nothing).
    radio_us_per_byte, copy_us_per_byte : float
        Microseconds to send or receive one byte, and to load or unload one.
    sensing_ms : dict
        Milliseconds per signal, ``image`` and ``audio``; 0 where absent.
    """

    problem: Literal["multi_model_splitting"] = "multi_model_splitting"
    objective: Literal["throughput", "latency"] = "throughput"
    sharing: bool = False
    live: bool = False
    devices: tuple[CompactDevice, ...] = Field(min_length=1, max_length=MOST_DEVICES)
    pipelines: tuple[CompactPipeline, ...] = Field(min_length=1, max_length=MOST_DEVICES)
    radio_us_per_byte: float = Field(default=RADIO_US_PER_BYTE, ge=0)
    copy_us_per_byte: float = Field(default=COPY_US_PER_BYTE, ge=0)
    sensing_ms: dict[str, float] = Field(default_factory=dict)


def expand(compact: Compact) -> Instance:
    """The expanded instance.

    Raises
    ------
    InputError
        Every name that the library does not have.
    """
    devices, models = _looked_up(compact)
    names = pipeline_names(compact.pipelines)
    accelerators = [device.type for device in compact.devices]

    def at(tick_ns: int) -> Instance:
        pipelines = []
        for name, given, model in zip(names, compact.pipelines, models, strict=True):
            rates = compact.radio_us_per_byte, compact.copy_us_per_byte, compact.sensing_ms.get(model.signal, 0.0)
            tasks = make_pipeline(model, accelerators, rates, compact.live, tick_ns)
            pipelines.append(Pipeline(name=name, source=given.source, target=given.target, **tasks))
        return Instance(
            name=compact.name,
            source=compact.source,
            tags=compact.tags,
            objective=compact.objective,
            tick_ns=tick_ns,
            sharing=compact.sharing,
            devices=devices,
            pipelines=tuple(pipelines),
        )

    too_long = Finding("expected tasks of less than 10^18 ns in all", ("pipelines",))
    return finest(at, TICKS_NS, too_long)


def _looked_up(compact: Compact) -> tuple[tuple[Device, ...], list[Model]]:
    """What the names of devices and models stand for."""
    findings: list[Finding] = []
    devices = [
        collect(findings, partial(make_device, each.name, each.type, each.sensors, each.interfaces), ("devices", index))
        for index, each in enumerate(compact.devices)
    ]
    models = [
        collect(findings, partial(load_model, pipeline.model), ("pipelines", index))
        for index, pipeline in enumerate(compact.pipelines)
    ]
    known = [device.name for device in compact.devices]
    for index, pipeline in enumerate(compact.pipelines):
        for role, need in (("source", pipeline.source), ("target", pipeline.target)):
            if need.device is not None and need.device not in known:
                findings += unknown(("pipelines", index, role, "device"), need.device, known).findings
    if extra := sorted(set(compact.sensing_ms) - set(SIGNALS)):
        findings.append(Finding(f"expected {' or '.join(SIGNALS)}, found {', '.join(extra)}", ("sensing_ms",)))
    if findings:
        raise InputError(findings)
    return tuple(filter(None, devices)), list(filter(None, models))


def pipeline_names(pipelines: Iterable[CompactPipeline]) -> list[str]:
    """Given names, or the models', numbered where one occurs again."""
    found: list[str] = []
    for pipeline in pipelines:
        stem = pipeline.name or load_model(pipeline.model).title
        count = sum(name == stem or name.startswith(f"{stem}_") for name in found)
        found.append(f"{stem}_{count + 1}" if count and pipeline.name is None else stem)
    return found
