"""Latency, energy and fabric resources of layers on the Jetson TX2, the Cyclone 10 GX and the link between them.

The paper prints no latency and no energy of a layer: its figures have axes without numbers that could be read. Each
device therefore has the smallest model that the paper's statements ask for, whose constants are fitted to the six gains
of Table I (:mod:`mapgap.studies.fpga_gpu_partition.calibration`).

===========  ==========================================================  ======================================
 where        latency                                                     energy
===========  ==========================================================  ======================================
 GPU          ``launch + macs / rate[kind]``                              ``gpu_power · latency + gpu_pj · macs``
 FPGA         ``max(pixels_in, pixels_out · fold) / clock``               ``fpga_power · latency + fpga_pj · macs``
 link         ``link_latency + bytes / bandwidth``                        none of its own
 board                                                                    ``base_power · latency`` of the network
===========  ==========================================================  ======================================

- GPU: a fixed launch per layer, because the paper runs PyTorch layer by layer on one image; a rate per kind of layer.
- FPGA: direct hardware mapping streams one input pixel per cycle and owns one multiplier per weight; with fold φ a
  multiplier serves φ weights in turn and an output pixel takes φ cycles. φ = 1 is DHM as published [1 in the paper].
- Numbers cross the link and live on the fabric as 8-bit words (Sec. I).

Resources of a mapped part with ``w`` weights: ``ceil(w / fold)`` multipliers and the line buffers of its filter,
``(k - 1)`` rows for all channels read in parallel: per row ``max(ceil(width · channels · 8 / 20,480),
ceil(channels · 8 / 40))`` blocks M20K (20 Kbit, at most 40 bits wide). Weights are constants in logic and take none.

All constants may also be numpy arrays of one shape; the calibration prices thousands of candidates at once.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cache
from typing import Any

from mapgap.instances.facts import ROOT, load_devices, read_table, unknown
from mapgap.instances.fpga_gpu_partition.lowering import Kind, Shape
from mapgap.problems.fpga_gpu_partition import Fabric

WORD_BITS = 8
M20K_BITS, M20K_WIDTH = 20 * 1024, 40
FITS, EXTREMES = "dhm_fits", "dhm_extremes"

Number = Any
"""A float or a numpy array of floats; formulas hold for both."""


@dataclass(frozen=True)
class CostModel:
    """The fitted constants.

    Attributes
    ----------
    launch_us : Number
        Fixed time of a layer on the GPU.
    conv_gmacs, pointwise_gmacs, depthwise_gmacs : Number
        10^9 multiply-accumulates per second of the GPU, by kind of layer.
    gpu_power_w, gpu_pj : Number
        Power while the GPU is busy above ``base_power_w``, and picojoules per multiply-accumulate.
    clock_mhz : Number
        Pixel clock of the FPGA.
    fpga_power_w, fpga_pj : Number
        As for the GPU.
    link_us, link_gbs : Number
        Fixed time of a transfer and 10^9 bytes per second.
    base_power_w : Number
        Power of both boards for the whole latency, whatever runs.
    """

    launch_us: Number
    conv_gmacs: Number
    pointwise_gmacs: Number
    depthwise_gmacs: Number
    gpu_power_w: Number
    gpu_pj: Number
    clock_mhz: Number
    fpga_power_w: Number
    fpga_pj: Number
    link_us: Number
    link_gbs: Number
    base_power_w: Number

    def gmacs(self, kind: Kind) -> Number:
        return {"conv": self.conv_gmacs, "pointwise": self.pointwise_gmacs, "depthwise": self.depthwise_gmacs}[kind]

    def gpu_us(self, kind: Kind, macs: float) -> Number:
        """Microseconds of a layer (or a part with so many multiply-accumulates) on the GPU."""
        return self.launch_us + macs / (self.gmacs(kind) * 1e3)

    def gpu_uj(self, kind: Kind, macs: float) -> Number:
        """Microjoules of it, above the base power."""
        return self.gpu_power_w * self.gpu_us(kind, macs) + self.gpu_pj * macs * 1e-6

    def fpga_us(self, shape: Shape, fold: int) -> Number:
        """Microseconds of a layer (or any part of its channels) on the FPGA."""
        row = shape.row
        flat = row.type == "fc"
        pixels_in = 1 if flat else row.height_in * row.width_in
        pixels_out = 1 if flat else row.height * row.width
        return max(pixels_in, pixels_out * fold) / self.clock_mhz

    def fpga_uj(self, shape: Shape, fold: int, macs: float) -> Number:
        """Microjoules of it, above the base power."""
        return self.fpga_power_w * self.fpga_us(shape, fold) + self.fpga_pj * macs * 1e-6

    def link_transfer_us(self, size: float) -> Number:
        """Microseconds that ``size`` bytes take over the link."""
        return self.link_us + size / (self.link_gbs * 1e3)


def weights(shape: Shape, channels_in: int | None = None, channels_out: int | None = None) -> int:
    """Weights of a part: of so many input and output channels (all by default).

    A part of a grouped layer has whole groups; a depthwise layer has one group per channel and its part is counted in
    output channels.
    """
    row = shape.row
    groups = max(1, row.groups)
    inputs = shape.channels_in // groups if channels_in is None else channels_in
    outputs = row.cout if channels_out is None else channels_out
    return inputs * outputs * shape.window


def multipliers(weight_count: int, fold: int) -> int:
    """Multipliers of a part under direct hardware mapping."""
    return -(-weight_count // fold)


def m20k_blocks(shape: Shape, channels: int) -> int:
    """Blocks of line buffer for ``channels`` input channels read in parallel."""
    row = shape.row
    if row.type == "fc" or row.kernel <= 1:
        return 0
    bits = row.width_in * channels * WORD_BITS
    per_row = max(-(-bits // M20K_BITS), -(-channels * WORD_BITS // M20K_WIDTH))
    return (row.kernel - 1) * per_row


@cache
def fabric() -> Fabric:
    """Cyclone 10 GX: 64 · 5 · 5 · 3 = 4,800 multipliers in logic (Fig. 1's limit), two per DSP block, all M20K."""
    facts = load_devices("dhm").of("Cyclone 10 GX 10CX220")
    return Fabric(multipliers=64 * 5 * 5 * 3 + int(facts["mult18x19"].value), m20k=int(facts["m20k_blocks"].value))


@cache
def constant_sets() -> dict[str, dict[str, Any]]:
    """All sets of constants by name, with what their files say of them: the fits, and the extremes of studies."""
    tables = [read_table(ROOT / "devices" / f"{file}.yaml") for file in (FITS, EXTREMES)]
    return {str(row["fit"]): row for table in tables for row in table["rows"]}


@cache
def load_fit(name: str) -> CostModel:
    """A fitted cost model by name, one of the fits or of the extremes.

    Raises
    ------
    InputError
        No such set of constants.
    """
    if name not in constant_sets():
        raise unknown("cost_model", name, list(constant_sets()))
    values = constant_sets()[name]
    return CostModel(**{field.name: float(values[field.name]) for field in fields(CostModel)})
