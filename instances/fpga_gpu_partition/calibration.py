"""Fit of the cost model to Table I: ``python -m mapgap.instances.fpga_gpu_partition.calibration`` rewrites
``dhm_fits.yaml``.

Eleven constants (the bandwidth is published) against six numbers, so that the constants are *not* determined. The fit
therefore keeps several sets that explain Table I equally well and lie far apart; a conclusion counts only where it
holds for all of them.

What is fitted
--------------
The six gains of Table I: energy gain and speed-up of a Fire module, an inverted bottleneck and a ShuffleNetV2 unit,
heterogeneous over GPU only. Interpretation:

1.  A gain is the ratio of the means over all modules of the type in the network ("average metric", Fig. 4): 8 Fire
    modules of SqueezeNet 1.0, 17 bottlenecks of MobileNetV2 0.5, 16 units of ShuffleNetV2 0.5.
2.  Modules are measured one at a time and own the whole fabric. Input and output tensors of the module lie on the GPU.
3.  The heterogeneous partition is Fig. 2's pattern of the module type (:func:`pattern`): in a Fire module a grouped
    convolution, ``g_l`` of the input channels of the 3×3 expansion on the FPGA; in the other modules every 1×1 on the
    FPGA and every depthwise layer on the GPU. ``g_l / C_I`` is not published: 1/2 and 3/4 are both fitted. Mapping the
    whole expansion (share 1) fits markedly worse (root mean square residual 0.066 in place of 0.03): the GPU's launch
    of the expansion is then saved, which Table I's speed-up of 1.01 excludes.
4.  The fold is the smallest power of two at which the module's mapped parts fit the fabric together. Under the limit
    that Fig. 1 states, literal DHM (fold 1) holds the whole expansion of 0 of 8 Fire modules, and half of it in 2, so
    that Table I cannot have been measured with literal DHM of layers of these sizes.

What bounds the constants
-------------------------
Ranges of :data:`RANGES`, and penalties for what the paper or a data sheet states: the FPGA beats the GPU in latency and
energy on all layers of Fig. 1 (:func:`figure_1`), and no kind of layer drives the TX2 above its 15 W. Gains are ratios,
hence the latter is all that fixes the scale of energy.

Method: differential evolution (Storn and Price 1997, ``rand/1/bin``) on the logarithms of the constants, one run per
seed; every candidate that was ever within tolerance is remembered, and those kept are chosen to lie far apart.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path

import numpy as np
import numpy.typing as npt

from mapgap.instances._library import ROOT
from mapgap.instances.fpga_gpu_partition.cost_model import FITS, CostModel, Number, fabric, multipliers, weights
from mapgap.instances.fpga_gpu_partition.lowering import Block, Graph, Shape, Tensor, graph_of
from mapgap.instances.published_numbers import load_published

Array = npt.NDArray[np.float64]

NETWORKS = {"fire": "squeezenet1_0", "bottleneck": "mobilenetv2_x0_5", "unit": "shufflenetv2_x0_5"}
"""Module type to the network that it is taken from."""
PUBLISHED = {"fire": "t1_squeezenet_fire", "bottleneck": "t1_mobilenetv2_bottleneck", "unit": "t1_shufflenetv2_stage"}
RANGES = {
    "launch_us": (20.0, 500.0),
    "conv_gmacs": (10.0, 333.0),
    "pointwise_gmacs": (3.0, 333.0),
    "depthwise_gmacs": (1.0, 100.0),
    "gpu_power_w": (0.1, 10.0),
    "gpu_pj": (1.0, 1000.0),
    "clock_mhz": (50.0, 200.0),
    "fpga_power_w": (0.1, 5.0),
    "fpga_pj": (0.5, 50.0),
    "link_us": (1.0, 300.0),
    "base_power_w": (0.5, 8.0),
}
"""Assumed ranges: 333 is the fp32 peak of the TX2 (665.6 GFLOPS); 50 to 200 MHz is usual for DHM designs."""
LINK_GBS = 2.5
POWER_LIMIT_W = 15.0
SHARES = (0.5, 0.75)
"""Shares of the input channels of a 3×3 expansion that the split puts on the FPGA, g_l / C_I (rule 3)."""
TOLERANCE = 0.01
"""Fits whose root mean square residual is within this of the best count as equally good."""
KEPT = 6
SEEDS = range(4)
POPULATION, GENERATIONS = 160, 400
TARGETS = tuple(f"{key}_{what}" for key in PUBLISHED.values() for what in ("e", "l"))
"""Identifiers of the six gains among the published numbers: energy and latency of each module type."""


@dataclass(frozen=True)
class Candidate:
    """A fit: constants, share g_l / C_I, residuals ``log(model / published)`` (:data:`TARGETS`), root mean square."""

    model: CostModel
    share: float
    residuals: tuple[float, ...]
    rms: float


# --- the forward model ------------------------------------------------------------------------------------------------


def modules_of(kind: str) -> tuple[Graph, list[Block]]:
    """The network of a module type and all its modules of that type."""
    graph = graph_of(NETWORKS[kind])
    return graph, [block for block in graph.blocks if block.kind == kind]


def pattern(shapes: Sequence[Shape], kind: str, share: float) -> list[int]:
    """Input channels of every layer of a module that Fig. 2 puts on the FPGA; 0 for none."""
    if kind == "fire":
        return [math.floor(shape.channels_in * share) if shape.kind == "conv" else 0 for shape in shapes]
    return [shape.channels_in if shape.kind == "pointwise" else 0 for shape in shapes]


def fold_of(shapes: Sequence[Shape], channels: Sequence[int]) -> int:
    """Smallest power of two at which the mapped parts fit the multipliers of the fabric."""
    mapped = [weights(shape, g) for shape, g in zip(shapes, channels, strict=True) if g]
    fold = 1
    while sum(multipliers(count, fold) for count in mapped) > fabric().multipliers:
        fold *= 2
    return fold


@dataclass
class Queues:
    """The three queues of one module, in µs; whatever comes from outside the module lies on the GPU."""

    model: CostModel
    free: dict[str, Number] = field(default_factory=lambda: {"gpu": 0.0, "fpga": 0.0, "link": 0.0})
    side: dict[int, str] = field(default_factory=dict)
    ready: dict[int, Number] = field(default_factory=dict)
    moved: dict[tuple[int, int], Number] = field(default_factory=dict)

    def run(self, queue: str, after: Number, time: Number) -> Number:
        self.free[queue] = np.maximum(self.free[queue], after) + time
        return self.free[queue]

    def fetch(self, tensor: Tensor, where: str, share: float = 1.0) -> Number:
        """When (a share of) a tensor is on a side; a tensor moves once."""
        made = self.ready.get(tensor.layer, 0.0)
        if self.side.get(tensor.layer, "gpu") == where:
            return made
        key = (tensor.layer, tensor.part)
        if key not in self.moved:
            size = math.ceil(tensor.elements * share)
            self.moved[key] = self.run("link", made, self.model.link_transfer_us(size))
        return self.moved[key]


def module_cost(
    model: CostModel, graph: Graph, block: Block, channels: Sequence[int], fold: int
) -> tuple[Number, Number]:
    """Latency (µs) and energy (µJ) of a module alone; ``channels`` input channels of every layer on the FPGA.

    A layer with some channels on either side is Fig. 2b's split: both sides make partial sums of the whole output,
    which are joined on the GPU, as are concatenations and additions. The rules are the problem's (three queues in
    order), without rounding; a test compares them with the evaluator.
    """
    queues = Queues(model)
    energy: Number = 0.0
    for index, g in zip(range(block.first, block.last + 1), channels, strict=True):
        shape = graph.shapes[index]
        share = g / shape.channels_in
        ends: list[Number] = []
        after: Number = 0.0
        before: Number = 0.0
        for tensor in shape.reads:
            before = np.maximum(before, queues.fetch(tensor, "gpu")) if share < 1 else before
            after = np.maximum(after, queues.fetch(tensor, "fpga", share)) if share > 0 else after
        if share < 1:
            macs = shape.row.macs * (1 - share)
            time: Number = 0.0 if shape.kind == "join" else model.gpu_us(shape.kind, macs)
            energy = energy + (0.0 if shape.kind == "join" else model.gpu_uj(shape.kind, macs))
            ends.append(queues.run("gpu", before, time))
        if share > 0:
            energy = energy + model.fpga_uj(shape, fold, shape.row.macs * share)
            ends.append(queues.run("fpga", after, model.fpga_us(shape, fold)))
            if share < 1:
                ends.append(queues.run("link", ends[-1], model.link_transfer_us(sum(shape.parts))))
        queues.ready[index] = np.max(np.broadcast_arrays(*ends), axis=0)
        queues.side[index] = "fpga" if share == 1 else "gpu"
    queues.fetch(Tensor(block.last, 0, sum(graph.shapes[block.last].parts)), "gpu")
    latency = np.max(np.broadcast_arrays(*queues.free.values()), axis=0)
    return latency, energy + model.base_power_w * latency


def gains(model: CostModel, share: float) -> Number:
    """The six gains of Table I, shape (6,) or (6, candidates), in the order of :data:`TARGETS`."""
    found = []
    for kind in NETWORKS:
        graph, blocks = modules_of(kind)
        sums = []
        for heterogeneous in (False, True):
            latency: Number = 0.0
            energy: Number = 0.0
            for block in blocks:
                shapes = graph.shapes_of(block)
                mapped = pattern(shapes, kind, share) if heterogeneous else [0] * len(shapes)
                cost = module_cost(model, graph, block, mapped, fold_of(shapes, mapped))
                latency, energy = latency + cost[0], energy + cost[1]
            sums.append((latency, energy))
        (gpu_latency, gpu_energy), (latency, energy) = sums
        found += [gpu_energy / energy, gpu_latency / latency]
    return np.array(found)


def published_gains() -> Array:
    """Table I, shape (6,)."""
    printed = load_published("dhm")
    return np.array([float(printed[key]) for key in TARGETS])


def figure_1(model: CostModel) -> Number:
    """Smallest advantage of the FPGA over the GPU on the layers of Fig. 1: min over layers of time and energy ratio.

    Input 224×224×3, 2 to 64 filters of 3×3 and 5×5, compute alone. Above 1 the FPGA wins everywhere.
    """
    pixels = 224 * 224
    found = []
    for kernel in (3, 5):
        for filters in (2, 4, 8, 16, 32, 64):
            macs = pixels * 3 * filters * kernel**2
            gpu_us = model.gpu_us("conv", macs)
            fpga_us = pixels / model.clock_mhz
            gpu_uj = model.gpu_uj("conv", macs) + model.base_power_w * gpu_us
            fpga_uj = model.fpga_power_w * fpga_us + model.fpga_pj * macs * 1e-6 + model.base_power_w * fpga_us
            found += [gpu_us / fpga_us, gpu_uj / fpga_uj]
    return np.min(np.array(found), axis=0)


def peak_power_w(model: CostModel) -> Number:
    """Power of the GPU's side at full rate, the largest over the kinds of layers."""
    rates = np.array([model.conv_gmacs, model.pointwise_gmacs, model.depthwise_gmacs])
    return model.base_power_w + model.gpu_power_w + model.gpu_pj * 1e-3 * np.max(rates, axis=0)


# --- the fit ----------------------------------------------------------------------------------------------------------


def decode(logs: Array) -> CostModel:
    """Constants of candidates (11, n) given by their logarithms."""
    return CostModel(**dict(zip(RANGES, np.exp(logs), strict=True)), link_gbs=LINK_GBS)


def loss(logs: Array, share: float) -> tuple[Array, Array]:
    """Root mean square residual and penalised loss of candidates (11, n); both (n,)."""
    model = decode(logs)
    residuals = np.log(gains(model, share)) - np.log(published_gains())[:, None]
    rms = np.sqrt(np.mean(residuals**2, axis=0))
    penalty = np.maximum(0.0, -np.log(figure_1(model))) + np.maximum(0.0, np.log(peak_power_w(model) / POWER_LIMIT_W))
    return rms, rms + penalty


def evolve(
    seed: int, share: float, generations: int = GENERATIONS, population: int = POPULATION
) -> tuple[Array, Array]:
    """One run of differential evolution; returns the candidates (11, m) worth remembering and their losses (m,)."""
    rng = np.random.default_rng(seed)
    low, high = np.log(np.array(list(RANGES.values()), float)).T
    people = low[:, None] + (high - low)[:, None] * rng.random((len(low), population))
    _, worth = loss(people, share)
    seen: list[tuple[Array, Array]] = []
    for _ in range(generations):
        a, b, c = (people[:, rng.permutation(population)] for _ in range(3))
        step = rng.uniform(0.4, 0.9, population)
        mutant = a + step * (b - c)
        mutant = np.clip(np.where(rng.random(people.shape) < 0.9, mutant, people), low[:, None], high[:, None])
        _, found = loss(mutant, share)
        good = found <= worth.min() + TOLERANCE
        seen.append((mutant[:, good], found[good]))
        better = found < worth
        people[:, better], worth[better] = mutant[:, better], found[better]
    logs, losses = (np.concatenate(parts, axis=-1) for parts in zip(*seen, (people, worth), strict=True))
    kept = losses <= worth.min() + TOLERANCE
    return logs[:, kept], losses[kept]


def candidate(model: CostModel, share: float) -> Candidate:
    """Residuals of a set of constants."""
    residuals = np.log(gains(model, share)) - np.log(published_gains())
    return Candidate(model, share, tuple(float(r) for r in residuals), float(np.sqrt(np.mean(residuals**2))))


def rounded(model: CostModel) -> CostModel:
    """Constants to four significant digits, as the file stores them."""
    return CostModel(**{f.name: float(f"{float(getattr(model, f.name)):.4g}") for f in fields(CostModel)})


def choose(logs: Array, shares: Array, worth: Array) -> list[Candidate]:
    """The best candidate and, one after the other, the equally good one farthest from all chosen.

    Distances are in logarithms of the constants over their ranges, a different share counts as one range.
    """
    good = np.flatnonzero(worth <= worth.min() + TOLERANCE)
    low, high = np.log(np.array(list(RANGES.values()), float)).T
    points = np.concatenate([(logs - low[:, None]) / (high - low)[:, None], np.searchsorted(SHARES, shares)[None]]).T
    chosen = [int(np.argmin(worth))]
    away = np.full(len(good), np.inf)
    while len(chosen) < min(KEPT, len(good)):
        away = np.minimum(away, np.linalg.norm(points[good] - points[chosen[-1]], axis=1))
        chosen.append(int(good[int(np.argmax(away))]))
    return [candidate(rounded(decode(logs[:, i])), float(shares[i])) for i in chosen]


def fit(seeds: Sequence[int] = SEEDS) -> list[Candidate]:
    """All fits worth keeping, the best first."""
    runs = [(share, *evolve(seed, share)) for share in SHARES for seed in seeds]
    logs = np.concatenate([found for _, found, _ in runs], axis=1)
    shares = np.concatenate([np.full(len(worth), share) for share, _, worth in runs])
    return choose(logs, shares, np.concatenate([worth for _, _, worth in runs]))


def text(found: Sequence[Candidate]) -> str:
    """The file of fits."""
    names = [f.name for f in fields(CostModel)]
    lines = [
        "# Constants of the cost model of docs/fpga_gpu_calibration.md, each row an equally good fit to Table I of the",
        "# FPGA-GPU paper. Derived: python -m mapgap.instances.fpga_gpu_partition.calibration;",
        "# link_gbs is published (V-B).",
        "# share: g_l / C_I of the grouped 3x3 expansion; rms: root mean square of log(model / published).",
        f"columns: [fit, {', '.join(names)}, share, rms]",
        "rows:",
    ]
    for number, item in enumerate(found, 1):
        values = ", ".join(f"{getattr(item.model, name):g}" for name in names)
        lines.append(f"- [fit{number}, {values}, {item.share:g}, {item.rms:.4f}]")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write ``devices/dhm_fits.yaml``."""
    Path(ROOT / "devices" / f"{FITS}.yaml").write_text(text(fit()), encoding="utf-8")


if __name__ == "__main__":
    main()
