"""Instances of the FPGA-GPU partition: the compact form, its expansion, and random families.

A compact file names a network of the library (or one module of it), one of the equally good fits of the cost model
(docs/fpga_gpu_calibration.md) and limits; :func:`expand` lowers the network to modules (``lowering.py``) and prices
every option (``cost_model.py``, ``options.py``). Measured values of single options replace the model's.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from pydantic import Field

from mapgap.core import MOST_SAMPLES, CompactBase, Finding, Frozen, InputError
from mapgap.instances.editing import each, edited
from mapgap.instances.fpga_gpu_partition.cases import each_layer
from mapgap.instances.fpga_gpu_partition.cost_model import fabric, load_fit
from mapgap.instances.fpga_gpu_partition.lowering import alone, graph_of
from mapgap.instances.fpga_gpu_partition.options import Pricing, Splits, instance
from mapgap.problems.fpga_gpu_partition import Instance, Layer, Objective, Option


class Measured(Frozen):
    """Measured values of one option of one layer; what is left out stays as modelled.

    Attributes
    ----------
    layer, option : str
        As in the expanded form.
    gpu_us, gpu_uj, fpga_us, fpga_uj : int, optional
        Microseconds and microjoules.
    multipliers, m20k : int, optional
    """

    layer: str
    option: str
    gpu_us: int | None = Field(default=None, ge=0)
    gpu_uj: int | None = Field(default=None, ge=0)
    fpga_us: int | None = Field(default=None, ge=0)
    fpga_uj: int | None = Field(default=None, ge=0)
    multipliers: int | None = Field(default=None, ge=0)
    m20k: int | None = Field(default=None, ge=0)


class Compact(CompactBase):
    """A library network on a Jetson TX2 and a Cyclone 10 GX.

    Attributes
    ----------
    network : str
        A network of the library.
    module : str, optional
        One module alone, by name (``fire2``); input and output on the GPU.
    max_fold : int
        Largest fold; folds are 1, 2, 4, … up to it. 1 is direct hardware mapping as published.
    splits : {"conv", "depthwise", "all"}
        Layers that may be split: dense convolutions, depthwise layers as well, or pointwise ones, too.
    cost_model : str
        A fit of ``devices/dhm_fits.yaml`` or an extreme set of ``devices/dhm_extremes.yaml``.
    bandwidth_gbs : float, optional
        Link in 10^9 bytes per second, in place of the paper's 2.5.
    link_us : float, optional
        Microseconds of a transfer before the first byte, in place of the fit's.
    multipliers, m20k : int, optional
        Fabric, in place of the Cyclone 10 GX's.
    objective : {"energy", "latency", "edp", "weighted"}
    measured : tuple of Measured
        Values that replace the model's.
    """

    problem: Literal["fpga_gpu_partition"] = "fpga_gpu_partition"
    network: str
    module: str | None = None
    max_fold: int = Field(default=1, ge=1, le=MOST_SAMPLES)
    splits: Splits = "conv"
    cost_model: str = "fit1"
    bandwidth_gbs: float | None = Field(default=None, gt=0)
    link_us: float | None = Field(default=None, ge=0)
    multipliers: int | None = Field(default=None, ge=0)
    m20k: int | None = Field(default=None, ge=0)
    objective: Objective = "energy"
    measured: tuple[Measured, ...] = ()


def expand(compact: Compact) -> Instance:
    """The expanded instance.

    Raises
    ------
    InputError
        No such network, module or cost model, or measured values of an option that does not exist.
    """
    graph = graph_of(compact.network)
    if compact.module is not None:
        graph = alone(graph, compact.module)
    model = load_fit(compact.cost_model)
    if compact.bandwidth_gbs is not None:
        model = replace(model, link_gbs=compact.bandwidth_gbs)
    if compact.link_us is not None:
        model = replace(model, link_us=compact.link_us)
    given = {"multipliers": compact.multipliers, "m20k": compact.m20k}
    limits = edited(fabric(), **{name: value for name, value in given.items() if value is not None})
    folds = tuple(2**i for i in range(compact.max_fold.bit_length()))
    made = instance(
        graph,
        Pricing(model, limits, folds, compact.splits),
        name=compact.name,
        source=compact.source,
        tags=compact.tags,
        objective=compact.objective,
    )
    return with_measured(made, compact.measured)


MEASURED = {"gpu_us": "gpu_ticks", "gpu_uj": "gpu_energy", "fpga_us": "fpga_ticks", "fpga_uj": "fpga_energy"}
"""Fields of an option by those of a measured one; the others are called alike."""


def with_measured(made: Instance, measured: tuple[Measured, ...]) -> Instance:
    """The instance with measured values in place of modelled ones.

    Raises
    ------
    InputError
        Every measured value whose layer or option does not exist.
    """
    if not measured:
        return made
    wanted = {(m.layer, m.option): m for m in measured}
    known = {(layer.name, option.name) for layer in made.layers for option in layer.options}
    strange = [
        Finding(f"expected an option of the instance, found {m.option!r} of layer {m.layer!r}", ("measured", index))
        for index, m in enumerate(measured)
        if (m.layer, m.option) not in known
    ]
    if strange:
        raise InputError(strange)

    def values(layer: Layer) -> Layer:
        def of(option: Option) -> dict[str, int]:
            found = wanted.get((layer.name, option.name))
            told = found.model_dump(exclude={"layer", "option"}, exclude_none=True) if found else {}
            return {MEASURED.get(name, name): value for name, value in told.items()}

        return edited(layer, options=each(layer.options, of))

    return made.changed(modules=each_layer(made, values))


def build(network: str, max_fold: int = 1, name: str | None = None, **fields: object) -> Instance:
    """An instance by the fields of :class:`Compact`.

    Raises
    ------
    InputError
        As :func:`expand`.
    """
    text = {"name": name or f"dhm_{network}_fold{max_fold}", "network": network, "max_fold": max_fold, **fields}
    return expand(Compact.model_validate(text))
