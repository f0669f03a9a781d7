"""Fit of the cost model to Table I: ``python -m mapgap.studies.fpga_gpu_partition.calibration [FILE]``.

Eleven constants (the bandwidth is published) against six numbers (:mod:`mapgap.studies.fpga_gpu_partition.gains`), so
that the constants are *not* determined. The fit therefore keeps several sets that explain Table I equally well and lie
far apart; a conclusion counts only where it holds for all of them.

What bounds the constants
-------------------------
Ranges of :data:`RANGES`, and penalties for what the paper or a data sheet states: the FPGA beats the GPU in latency and
energy on all layers of Fig. 1 (``gains.figure_1``), and no kind of layer drives the TX2 above its 15 W. Gains are
ratios, hence the latter is all that fixes the scale of energy.

Method
------
Differential evolution (Storn and Price 1997, ``rand/1/bin``) on the logarithms of the constants, as SciPy has it, one
run per share and seed; every candidate that was ever within tolerance is remembered, and those kept are chosen to lie
far apart.

``instances/devices/dhm_fits.yaml`` is not written by this program any more: the instances of the library, and with them
every committed result, rest on its six rows, which were found by an implementation of the same method with another
stream of random numbers. A run of this program finds fits of the same quality, not the same ones.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
import numpy.typing as npt

from mapgap.instances.fpga_gpu_partition.cost_model import CostModel
from mapgap.studies.fpga_gpu_partition.gains import Reading, figure_1, gains, peak_power_w, published_gains

Array = npt.NDArray[np.float64]

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
"""Shares of the input channels of a 3×3 expansion that the split puts on the FPGA, g_l / C_I (rule 3 of the gains)."""
TOLERANCE = 0.01
"""Fits whose root mean square residual is within this of the best count as equally good."""
KEPT = 6
SEEDS = range(4)
PEOPLE_PER_CONSTANT, GENERATIONS = 15, 400


@dataclass(frozen=True)
class Candidate:
    """A fit.

    Attributes
    ----------
    model : CostModel
    share : float
        g_l / C_I.
    residuals : tuple of float
        ``log(model / published)`` of the six gains.
    rms : float
        Their root mean square.
    """

    model: CostModel
    share: float
    residuals: tuple[float, ...]
    rms: float


def decode(logs: Array) -> CostModel:
    """Constants of candidates (11, n) given by their logarithms."""
    return CostModel(**dict(zip(RANGES, np.exp(logs), strict=True)), link_gbs=LINK_GBS)


def loss(logs: Array, share: float, reading: Reading = "sequential") -> tuple[Array, Array]:
    """Root mean square residual and penalised loss of candidates (11, n); both (n,)."""
    model = decode(logs)
    residuals = np.log(gains(model, share, reading)) - np.log(published_gains())[:, None]
    rms = np.sqrt(np.mean(residuals**2, axis=0))
    penalty = np.maximum(0.0, -np.log(figure_1(model))) + np.maximum(0.0, np.log(peak_power_w(model) / POWER_LIMIT_W))
    return rms, rms + penalty


def evolve(
    seed: int,
    share: float,
    generations: int = GENERATIONS,
    people_per_constant: int = PEOPLE_PER_CONSTANT,
    reading: Reading = "sequential",
) -> tuple[Array, Array]:
    """One run of differential evolution; returns the candidates (11, m) worth remembering and their losses (m,)."""
    from scipy.optimize import differential_evolution

    seen: list[tuple[Array, Array]] = []
    least = np.inf

    def remembered_loss(logs: Array) -> Array:
        nonlocal least
        _, found = loss(logs, share, reading)
        least = min(least, float(found.min()))
        good = found <= least + TOLERANCE
        seen.append((logs[:, good].copy(), found[good]))
        return found

    differential_evolution(
        remembered_loss,
        bounds=[(np.log(low), np.log(high)) for low, high in RANGES.values()],
        strategy="rand1bin",
        maxiter=generations,
        popsize=people_per_constant,
        mutation=(0.4, 0.9),
        recombination=0.9,
        init="random",
        tol=0.0,  # all generations: the candidates of the last ones are what is kept
        polish=False,
        vectorized=True,
        updating="deferred",
        seed=seed,
    )
    logs, losses = (np.concatenate(parts, axis=-1) for parts in zip(*seen, strict=True))
    kept = losses <= losses.min() + TOLERANCE
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


def text(found: Iterable[Candidate]) -> str:
    """Fits as ``dhm_fits.yaml`` holds them."""
    names = [f.name for f in fields(CostModel)]
    lines = [
        "# Constants of the cost model of docs/fpga_gpu_calibration.md, each row an equally good fit to Table I of the",
        "# FPGA-GPU paper. Derived by differential evolution; mapgap.studies.fpga_gpu_partition.calibration finds",
        "# fits of the same quality, not the same ones. link_gbs is published (V-B).",
        "# share: g_l / C_I of the grouped 3x3 expansion; rms: root mean square of log(model / published).",
        f"columns: [fit, {', '.join(names)}, share, rms]",
        "rows:",
    ]
    for number, item in enumerate(found, 1):
        values = ", ".join(f"{getattr(item.model, name):g}" for name in names)
        lines.append(f"- [fit{number}, {values}, {item.share:g}, {item.rms:.4f}]")
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str]) -> None:
    """Fit, and write the fits to the file named, or to standard output."""
    found = text(fit())
    if arguments:
        Path(arguments[0]).write_text(found, encoding="utf-8")
    else:
        sys.stdout.write(found)


if __name__ == "__main__":
    main(sys.argv[1:])
