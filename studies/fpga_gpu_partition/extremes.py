"""Sets of constants at which a gain is least or most: ``python -m mapgap.studies.fpga_gpu_partition.extremes [FILE]``.

Table I does not determine the cost model: all sets of constants whose root mean square residual is within the tolerance
of the best explain it alike. For every quantity of :data:`QUANTITIES` this program looks for the admissible sets at
which it is smallest and largest, so that a gain can be stated as a range and a sign that changes is seen.

Normalisation
-------------
Gains are ratios, so no scale of energy can follow from them: the base power is 1 W, and energies and powers are per
watt of it. The scale of time is tied to the paper's only by the published bandwidth, and hardly: launch and set-up may
grow together. What is free are ten constants within :data:`RANGES`, the share of the grouped expansion, and how Table
I's ShuffleNetV2 units were mapped (rule 4 of ``gains.py``): both readings explain it.

Method
------
Sequential quadratic programming (Kraft 1988, SciPy's SLSQP) on the logarithms of the constants, for either reading from
the best of the committed fits, of the committed extremes (at first of fits to the other reading), and of the sets found
for other quantities; so the command, run again, starts from what is known. For a quantity
of the *optimum* (a maximum over plans) the smallest value is sought over a growing pool of plans, to which the proven
optimum at every new set is added; the largest by turns of optimum and constants. A local method proves no global
extreme: every end of a range is attained by a set, and the true range may be wider.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from mapgap.catalogue import registry
from mapgap.core import Budget
from mapgap.instances.fpga_gpu_partition.cost_model import CostModel, fabric, load_fit
from mapgap.instances.fpga_gpu_partition.lowering import Graph, graph_of
from mapgap.instances.fpga_gpu_partition.options import Pricing, instance
from mapgap.problems.fpga_gpu_partition import Fabric, Instance, Plan
from mapgap.studies.fpga_gpu_partition.calibration import LINK_GBS, SEEDS, SHARES, TOLERANCE, evolve
from mapgap.studies.fpga_gpu_partition.calibration import decode as calibration_model
from mapgap.studies.fpga_gpu_partition.constants import extremes, load_reading, load_share
from mapgap.studies.fpga_gpu_partition.experiments import FOLDS, NETWORKS, PROBLEM, fits
from mapgap.studies.fpga_gpu_partition.gains import Reading, figure_1, gains, peak_power_w, published_gains
from mapgap.studies.fpga_gpu_partition.plan_cost import plan_cost

Array = npt.NDArray[np.float64]
Options = tuple[str, ...]

RANGES = {
    "launch_us": (20.0, 5000.0),
    "conv_gmacs": (10.0, 333.0),
    "pointwise_gmacs": (3.0, 333.0),
    "depthwise_gmacs": (1.0, 100.0),
    "gpu_power_w": (0.0125, 20.0),
    "gpu_pj": (0.125, 2000.0),
    "clock_mhz": (50.0, 200.0),
    "fpga_power_w": (0.0125, 10.0),
    "fpga_pj": (0.0625, 100.0),
    "link_us": (1.0, 3000.0),
}
"""The ranges of the fit; its caps on launch and set-up are ten times as high, and what is per watt of base power has
the ratios of the fit's ranges."""
MOST_POWER = 30.0
"""The TX2's 15 W over the least base power of the fit, 0.5 W."""
EXACT = "label_setting"
ROUNDS = 4
STEPS = (1.0, 0.99, 0.95, 0.8, 0.5, 0.2)


@dataclass(frozen=True)
class Quantity:
    """Energy (or latency) of one plan over that of another, on one network.

    Attributes
    ----------
    network, fold, variant
        As in ``runs.instance_of``.
    above, below : {"gpu", "rule", "optimum"}
        The plan in the numerator, and the one in the denominator.
    latency : bool
        Compare latencies; not for the optimum, which has the least energy.
    """

    network: str
    fold: int
    above: str = "gpu"
    below: str = "rule"
    variant: str = ""
    latency: bool = False

    @property
    def words(self) -> str:
        what = "latency" if self.latency else "energy"
        where = f"{self.network} fold {self.fold}" + (f" {self.variant}" if self.variant else "")
        return f"{what} of {self.above} over {self.below}, {where}"


QUANTITIES = [
    *(Quantity(n, fold, latency=latency) for n in NETWORKS for fold in FOLDS for latency in (False, True)),
    *(Quantity(n, fold, "gpu", "optimum") for n in NETWORKS for fold in FOLDS),
    *(Quantity(n, fold, "rule", "optimum") for n in NETWORKS for fold in FOLDS),
    *(Quantity(n, 4, variant=v) for n in NETWORKS for v in ("setup_2", "bandwidth_0.25")),
    *(Quantity(n, 4, "gpu", "optimum", v) for n in NETWORKS for v in ("bandwidth_0.05", "fabric_0.125", "fabric_8")),
]


@dataclass(frozen=True)
class Point:
    """A set of constants: logarithms of :data:`RANGES`' constants, share of the grouped expansion, reading of units."""

    logs: tuple[float, ...]
    share: float
    reading: Reading = "sequential"

    @property
    def model(self) -> CostModel:
        return decode(np.array(self.logs))

    @property
    def residual(self) -> float:
        return float(residual(np.array(self.logs)[:, None], self.share, self.reading)[0])


def decode(logs: Array) -> CostModel:
    """Constants by their logarithms, shape (10,) or (10, n)."""
    return CostModel(**dict(zip(RANGES, np.exp(logs), strict=True)), link_gbs=LINK_GBS, base_power_w=1.0)


def normalised(name: str) -> Point:
    """A committed set of constants with the base power as the unit of power and energy."""
    reading: Reading = "parallel" if load_reading(name) == "parallel" else "sequential"
    return _per_watt(load_fit(name), load_share(name), reading)


def _per_watt(model: CostModel, share: float, reading: Reading) -> Point:
    scaled = {key: float(getattr(model, key)) for key in RANGES}
    for key in ("gpu_power_w", "gpu_pj", "fpga_power_w", "fpga_pj"):
        scaled[key] /= float(model.base_power_w)
    return Point(tuple(float(np.log(value)) for value in scaled.values()), share, reading)


def parallel_fits() -> list[Point]:
    """The best set for each share under the parallel reading of ShuffleNetV2's units."""
    found = []
    for share in SHARES:
        logs, worth = min((evolve(seed, share, reading="parallel") for seed in SEEDS), key=lambda run: run[1].min())
        found.append(rounded(_per_watt(calibration_model(logs[:, worth.argmin()]), share, "parallel")))
    return found


def residual(logs: Array, share: float, reading: Reading) -> Array:
    """Root mean square of log(model / published) over the six gains, shape (n,)."""
    away = np.log(gains(decode(logs), share, reading)) - np.log(published_gains())[:, None]
    found: Array = np.sqrt(np.mean(away**2, axis=0))
    return found


@cache
def limit() -> float:
    """The largest residual that counts as equally good: the best fit's and the tolerance."""
    return min(normalised(name).residual for name in fits()) + TOLERANCE


def slack(logs: Array, share: float, reading: Reading) -> Array:
    """How far candidates (10, n) are inside what Table I, Fig. 1 and the TX2's power allow, shape (3, n); 0 or more."""
    model = decode(logs)
    return np.array(
        [
            (limit() - 1e-5 - residual(logs, share, reading)) * 100,
            np.log(figure_1(model)),
            np.log(MOST_POWER / peak_power_w(model)),
        ]
    )


@dataclass
class Search:
    """The extremes of one quantity."""

    quantity: Quantity
    graph: Graph = field(init=False)
    frame: Instance = field(init=False)
    rule: Options = field(init=False)

    def __post_init__(self) -> None:
        self.graph = graph_of(NETWORKS[self.quantity.network][1])
        first = normalised(fits()[0])
        self.frame = self.instance_at(first)
        plain = replace(self, quantity=replace(self.quantity, variant="")) if self.quantity.variant else self
        self.rule = _plan(plain.frame, "paper_rule_folded")

    def model_of(self, logs: Array) -> CostModel:
        """The constants with the variant's link."""
        kind, _, amount = self.quantity.variant.partition("_")
        model = decode(logs)
        if kind == "setup":
            return replace(model, link_us=model.link_us * float(amount))
        return replace(model, link_gbs=float(amount)) if kind == "bandwidth" else model

    def instance_at(self, point: Point) -> Instance:
        kind, _, amount = self.quantity.variant.partition("_")
        size = fabric()
        if kind == "fabric":
            amounts = {"multipliers": int(size.multipliers * float(amount)), "m20k": int(size.m20k * float(amount))}
            size = Fabric(**amounts)
        folds = tuple(2**i for i in range(self.quantity.fold.bit_length()))
        pricing = Pricing(self.model_of(np.array(point.logs)), size, folds)
        return instance(self.graph, pricing, name="extreme", source="", tags=(), objective="energy")

    def ratios(self, logs: Array, plans: Sequence[Options]) -> Array:
        """The quantity with each plan as the denominator, shape (plans, n)."""
        model, position = self.model_of(logs), int(self.quantity.latency)
        on_gpu = tuple("gpu" for _ in self.frame.layers)
        top = plan_cost(self.frame, self.graph, model, self.rule if self.quantity.above == "rule" else on_gpu)
        return np.array([top[position] / plan_cost(self.frame, self.graph, model, p)[position] for p in plans])

    def denominators(self, point: Point) -> list[Options]:
        """The plan of the denominator at a set of constants."""
        return [self.rule if self.quantity.below == "rule" else _plan(self.instance_at(point), EXACT)]

    def value(self, point: Point) -> float:
        return float(self.ratios(np.array(point.logs)[:, None], self.denominators(point)).max())

    def extreme(self, sign: int, starts: Sequence[Point]) -> Point:
        """The set with the smallest (``sign`` 1) or largest (-1) quantity found from the starts."""
        tried = self._screened(sign, starts)
        found = min(tried, key=lambda point: sign * self.value(point))
        for start in tried:
            point, pool = start, self.denominators(start)
            for _ in range(ROUNDS if self.quantity.below == "optimum" else 1):
                point = self._moved(sign, point, pool)
                if sign * self.value(point) < sign * self.value(found):
                    found = point
                new = [plan for plan in self.denominators(point) if plan not in pool]
                if not new:
                    break
                pool = new + pool if sign > 0 else new  # the smallest maximum needs all plans, the largest any
        return found

    def _screened(self, sign: int, starts: Sequence[Point]) -> list[Point]:
        """The most promising start of either reading, by plans that are known already."""
        pool = [plan for point in starts[: len(fits())] for plan in self.denominators(point)]
        values = sign * self.ratios(np.array([point.logs for point in starts]).T, list(dict.fromkeys(pool))).max(axis=0)
        best: dict[Reading, Point] = {}
        for index in np.argsort(values, kind="stable"):
            best.setdefault(starts[index].reading, starts[index])
        return list(best.values())

    def _moved(self, sign: int, start: Point, pool: Sequence[Options]) -> Point:
        """From a start to a local extreme of the quantity over a pool of plans, within what is admissible."""
        from scipy.optimize import minimize

        share, reading = start.share, start.reading

        def ratios(x: Array) -> Array:
            return sign * self.ratios(x[:-1, None], pool)[:, 0]

        # The last variable is what the ratios stay below: the smallest maximum, or minus the largest ratio.
        first = np.append(np.array(start.logs), float(self.ratios(np.array(start.logs)[:, None], pool).max()) * sign)
        done = minimize(
            lambda x: x[-1],
            first,
            jac=lambda x: np.eye(len(x))[-1],
            method="SLSQP",
            bounds=[(np.log(low), np.log(high)) for low, high in RANGES.values()] + [(None, None)],
            constraints=[
                {"type": "ineq", "fun": lambda x: x[-1] - ratios(x), "jac": lambda x: self._slopes(sign, x, pool)},
                {
                    "type": "ineq",
                    "fun": lambda x: slack(x[:-1, None], share, reading)[:, 0],
                    "jac": lambda x: np.pad(_differences(lambda y: slack(y, share, reading), x[:-1]), ((0, 0), (0, 1))),
                },
            ],
            options={"maxiter": 40, "ftol": 1e-7},
        )
        for step in STEPS:  # an end a hair outside what is admissible is drawn back towards the start
            logs = np.array(start.logs) + step * (done.x[:-1] - np.array(start.logs))
            end = rounded(Point(tuple(float(value) for value in logs), share, reading))
            if admissible(end):
                return end
        return start

    def _slopes(self, sign: int, x: Array, pool: Sequence[Options]) -> Array:
        slopes = -sign * _differences(lambda y: self.ratios(y, pool), x[:-1])
        return np.pad(slopes, ((0, 0), (0, 1)), constant_values=1.0)


def _differences(function, x: Array) -> Array:  # type: ignore[no-untyped-def]
    """Central differences of a vectorised function at ``x``, shape (values, constants)."""
    step = 1e-5
    ahead = function(x[:, None] + step * np.eye(len(x)))
    behind = function(x[:, None] - step * np.eye(len(x)))
    found: Array = (ahead - behind) / (2 * step)
    return found


def _plan(of: Instance, method: str) -> Options:
    found = registry.methods(PROBLEM)[method].solve(of, Budget(time_s=60.0)).plan
    assert isinstance(found, Plan)
    return tuple(found.options)


def rounded(point: Point) -> Point:
    """Constants to the five significant digits that the file holds."""
    return Point(
        tuple(float(np.log(float(f"{np.exp(value):.5g}"))) for value in point.logs), point.share, point.reading
    )


def admissible(point: Point) -> bool:
    """Within the ranges, the tolerance, Fig. 1 and the power of the TX2."""
    logs = np.array(point.logs)[:, None]
    inside = all(
        low * 0.9999 <= np.exp(value) <= high * 1.0001
        for value, (low, high) in zip(point.logs, RANGES.values(), strict=True)
    )
    return inside and bool((slack(logs, point.share, point.reading) >= -1e-4).all())


def text(found: Sequence[tuple[Point, str]]) -> str:
    """Sets as ``dhm_extremes.yaml`` holds them; the second of a pair says what is extreme there."""
    lines = [
        "# Constants of the cost model at which a gain is least or most among the sets that explain Table I of the",
        "# FPGA-GPU paper as well as the fits of dhm_fits.yaml. Derived: mapgap.studies.fpga_gpu_partition.extremes.",
        "# Normalised to a base power of 1 W; link_gbs is published (V-B). rms as in dhm_fits.yaml.",
        f"columns: [fit, {', '.join(RANGES)}, link_gbs, base_power_w, share, reading, rms, extreme]",
        "rows:",
    ]
    for number, (point, words) in enumerate(found, 1):
        values = ", ".join(f"{np.exp(value):.5g}" for value in point.logs)
        tail = f"{LINK_GBS:g}, 1, {point.share:g}, {point.reading}, {point.residual:.4f}"
        lines.append(f'- [extreme{number}, {values}, {tail}, "{words}"]')
    return "\n".join(lines) + "\n"


def search(quantities: Sequence[Quantity]) -> list[tuple[Point, str]]:
    """The extremes of the quantities; a set that is extreme for several is listed once."""
    known = [normalised(name) for name in extremes()] or parallel_fits()
    starts = [*(normalised(name) for name in fits()), *known]
    found: dict[Point, list[str]] = {}
    for quantity in quantities:
        one = Search(quantity)
        for sign, word in ((1, "least"), (-1, "most")):
            point = one.extreme(sign, [*starts, *found])
            print(f"{word} {quantity.words}: {one.value(point):.4f}", file=sys.stderr, flush=True)
            if point not in starts[: len(fits())]:
                found.setdefault(point, []).append(f"{word} {quantity.words}")
    other = [point for point in [*known, *found] if point.reading == "parallel"]
    found.setdefault(min(other, key=lambda point: point.residual), []).append("least residual of the parallel reading")
    return [(point, "; ".join(words)) for point, words in found.items()]


def main(arguments: Sequence[str]) -> None:
    """Search, and write the sets to the file named, or to standard output."""
    made = text(search(QUANTITIES))
    if arguments:
        Path(arguments[0]).write_text(made, encoding="utf-8")
    else:
        sys.stdout.write(made)


if __name__ == "__main__":
    main(sys.argv[1:])
