"""Curves of trainings, what is measured of them, and whose they are."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from statistics import mean, stdev

from mapgap.records.record import RunRecord
from mapgap.records.runs import Runs
from mapgap.studies.neuron_masking.design import (
    PILOT_SEEDS,
    REPLACING,
    SETTINGS,
    TUNED,
    TUNING_SEEDS,
    Setting,
    seeds_for_rivals,
    seeds_for_tests,
)
from mapgap.studies.neuron_masking.job import PREFIX

Curve = Sequence[Sequence[float]]
"""Test accuracy after every aggregation, with its time in cycle times."""
Measure = Callable[[Curve, float], float]
"""Of a curve, up to a horizon."""

TITLES = {
    "sync": "Syn. FL",
    "async": "Asyn. FL",
    "soft": "S.T. only",
    "elfish": "ELFISH",
    "optimal": "optimal contribution",
    "optimal_neurons": "most neurons",
    "replacing": "Asyn. FL, replacing",
}
"""Schemes as the paper calls them; ``replacing`` is asynchronous learning in which an upload replaces the model."""
RIVAL_TITLES = {"uniform": "uniform submodels", "fedprox": "FedProx", "dropped": "stragglers dropped"}


def at(curve: Curve, moment: float) -> float:
    """Accuracy at a time: that of the last aggregation before it."""
    return [accuracy for time, accuracy in curve if time <= moment + 1e-9][-1]


def time_to(curve: Curve, accuracy: float, horizon: float) -> float:
    """First time of an accuracy; the horizon where it is not reached."""
    return next((time for time, value in curve if value >= accuracy), horizon)


def overall(curve: Curve, horizon: float) -> float:
    """Mean accuracy over the simulated time: fast and good counts."""
    return average(curve, 0.0, horizon)


def final(curve: Curve, horizon: float) -> float:
    """Mean accuracy over the last quarter of the simulated time."""
    return average(curve, 0.75 * horizon, horizon)


def average(curve: Curve, begin: float, end: float) -> float:
    """Mean over a stretch of time of the accuracy of the last aggregation: the exact integral of a step function."""
    times = [time for time, _ in curve[1:]] + [math.inf]
    parts = zip(curve, times, strict=True)
    return sum(value * max(0.0, min(until, end) - max(since, begin)) for (since, value), until in parts) / (end - begin)


def at_cycles(curve: Curve, horizon: float) -> float:
    """Mean accuracy at the whole cycle times: the measure that was registered before the test runs.

    Schemes that aggregate just before a whole cycle time, as ELFISH does every 0.9966 cycle times, are read at their
    best moment and others are not, so that no claim rests on it.
    """
    return mean(at(curve, step) for step in range(1, int(horizon) + 1))


def unrest(curve: Curve, horizon: float) -> float:
    """Standard deviation of the accuracy over the last half of the simulated time (Sec. 6.3)."""
    return stdev(at(curve, step) for step in range(math.ceil(0.5 * horizon), int(horizon) + 1))


def cycle(curve: Curve, horizon: float) -> float:
    """Mean time from an aggregation to the next."""
    del horizon
    return curve[-1][0] / (len(curve) - 1)


def setting_of(record: RunRecord) -> Setting:
    """The fleet and the data of a training."""
    return Setting(record.instance.removeprefix("elfish_digits_"), bool(record.options["iid"]))


def curve_of(record: RunRecord) -> Curve | None:
    """The curve of a training that ended well."""
    found: Curve | None = None if record.error else record.notes.get("curve")
    return found


class Trainings:
    """Curves by setting, scheme and seed.

    Parameters
    ----------
    records : Runs
    seeds : callable
        Seeds that count, by setting.
        Asynchronous learning counts as tuned; with uploads that replace the model it is a scheme of its own.

    Attributes
    ----------
    curves : dict
        ``curves[setting][scheme][seed]``.
    horizon : float
        Simulated time of the longest, in cycle times.
    """

    def __init__(self, records: Runs, seeds: Callable[[Setting], Sequence[int]] = seeds_for_tests) -> None:
        self.curves: dict[Setting, dict[str, dict[int, Curve]]] = defaultdict(lambda: defaultdict(dict))
        self.horizon = 0.0
        for record in records:
            setting, curve = setting_of(record), curve_of(record)
            if not curve or setting not in SETTINGS or record.seed not in seeds(setting):
                continue
            scheme = record.method.removeprefix(PREFIX)
            if scheme == "async" and record.options["mixing"] != TUNED[setting]:
                if record.options["mixing"] != REPLACING:
                    continue
                scheme = "replacing"
            self.curves[setting][scheme][record.seed] = curve
            self.horizon = max(self.horizon, record.options["cycles"])

    @classmethod
    def pilot(cls, records: Runs) -> Trainings:
        """Those that were looked at first."""
        return cls(records, lambda _: PILOT_SEEDS)

    @classmethod
    def rivals(cls, records: Runs) -> Trainings:
        """Those of ELFISH against what others do."""
        return cls(records, seeds_for_rivals)

    @property
    def settings(self) -> list[Setting]:
        """In the order of the design."""
        return [setting for setting in SETTINGS if setting in self.curves]

    @property
    def groups(self) -> dict[str, list[Setting]]:
        """Fleets that are pooled: equally and unequally distributed data."""
        found = {"IID": [s for s in self.settings if s.iid], "non-IID": [s for s in self.settings if not s.iid]}
        return {title: settings for title, settings in found.items() if settings}

    def values(self, setting: Setting, scheme: str, measure: Measure) -> dict[int, float]:
        """A measure by seed."""
        return {seed: measure(curve, self.horizon) for seed, curve in self.curves[setting].get(scheme, {}).items()}

    def differences(self, setting: Setting, first: str, second: str, measure: Measure) -> list[float]:
        """First minus second scheme on equal seeds."""
        a, b = (self.values(setting, scheme, measure) for scheme in (first, second))
        return [a[seed] - b[seed] for seed in sorted(a.keys() & b.keys())]


def tried_mixings(records: Runs) -> dict[Setting, dict[float, list[Curve]]]:
    """Curves of the tuning seeds by setting and mixing weight."""
    found: dict[Setting, dict[float, list[Curve]]] = defaultdict(lambda: defaultdict(list))
    for record in records:
        curve = curve_of(record)
        if curve and record.method == PREFIX + "async" and record.seed in TUNING_SEEDS:
            found[setting_of(record)][record.options["mixing"]].append(curve)
    return found
