"""Instances of multi-model splitting: the compact form, its expansion, and random families.

A compact file names models of Table 1, accelerators, requirements and the free numbers of the latency model;
:func:`expand` tabulates the six tasks of Sec. 5.4.1 (``_expand.py``) from the vendor's layer tables (``models.py``).
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

from pydantic import Field

from mapgap.core import CompactBase, PlanBase
from mapgap.instances.multi_model_splitting._expand import (
    COPY_US_PER_BYTE,
    RADIO_US_PER_BYTE,
    CompactDevice,
    CompactPipeline,
    Rates,
    expand_compact,
)
from mapgap.problems.multi_model_splitting import Instance, Plan, after, part


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
    devices: tuple[CompactDevice, ...] = Field(min_length=1)
    pipelines: tuple[CompactPipeline, ...] = Field(min_length=1)
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
    return expand_compact(
        name=compact.name,
        source=compact.source,
        tags=compact.tags,
        objective=compact.objective,
        sharing=compact.sharing,
        live=compact.live,
        devices=compact.devices,
        pipelines=compact.pipelines,
        rates=Rates(
            radio_us_per_byte=compact.radio_us_per_byte,
            copy_us_per_byte=compact.copy_us_per_byte,
            sensing_ms=compact.sensing_ms,
        ),
    )


def redeployed(
    whole: Instance, *, without: Collection[str] = (), before: Instance | None = None, plan: PlanBase | None = None
) -> Instance:
    """``whole`` without some devices and pipelines, with the segments of ``plan`` (for ``before``) as deployed.

    Raises
    ------
    ValueError
        Nothing is left.
    """
    devices = [device.name for device in whole.devices if device.name not in without]
    pipelines = [pipeline.name for pipeline in whole.pipelines if pipeline.name not in without]
    changed = part(whole, devices, pipelines)
    if before is None or not isinstance(plan, Plan):
        return changed
    return after(before, plan, changed)


__all__ = ["Compact", "CompactDevice", "CompactPipeline", "expand", "redeployed"]
