"""Training part of the study: curves with confidence bands, and claims with intervals over seeds."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from statistics import mean, stdev
from typing import Any

from matplotlib.figure import Figure

from mapgap.records.runs import Runs
from mapgap.reporting import figures
from mapgap.reporting.report import Section, picture
from mapgap.reporting.tables import Column, Table
from mapgap.studies.neuron_masking.statistics import LEVEL, holm, interval, p_value
from mapgap.studies.neuron_masking.training.job import PREFIX

Curve = Sequence[Sequence[float]]
"""Test accuracy after every aggregation, with its time in cycle times."""
Measure = Callable[[Curve, float], float]
"""Of a curve, up to a horizon."""
Setting = tuple[str, bool]
"""A fleet (``2of4``) and whether its data are independent and identically distributed."""

TITLES = {
    "sync": "Syn. FL",
    "async": "Asyn. FL",
    "soft": "S.T. only",
    "elfish": "ELFISH",
    "optimal": "optimal contribution",
    "optimal_neurons": "most neurons",
}
TARGET = 0.9
"""Accuracy whose time is reported."""
COMPARED = (
    ("elfish", "sync"),
    ("elfish", "async"),
    ("elfish", "soft"),
    ("optimal", "elfish"),
    ("optimal_neurons", "elfish"),
)


def at(curve: Curve, moment: float) -> float:
    """Accuracy at a time: that of the last aggregation before it."""
    return [accuracy for time, accuracy in curve if time <= moment + 1e-9][-1]


def time_to(curve: Curve, accuracy: float, horizon: float) -> float:
    """First time of an accuracy; the horizon where it is not reached."""
    return next((time for time, value in curve if value >= accuracy), horizon)


def overall(curve: Curve, horizon: float) -> float:
    """Mean accuracy over the simulated time: fast and good counts."""
    steps = range(1, int(horizon) + 1)
    return mean(at(curve, step) for step in steps)


def final(curve: Curve, horizon: float) -> float:
    """Mean accuracy over the last quarter of the simulated time."""
    return mean(at(curve, step) for step in range(math.ceil(0.75 * horizon), int(horizon) + 1))


def unrest(curve: Curve, horizon: float) -> float:
    """Standard deviation of the accuracy over the last half of the simulated time (Sec. 6.3)."""
    return stdev(at(curve, step) for step in range(math.ceil(0.5 * horizon), int(horizon) + 1))


class Trainings:
    """Curves of training records by fleet and distribution, scheme and seed.

    Attributes
    ----------
    curves : dict
        ``curves[setting][scheme][seed]``.
    horizon : float
        Simulated time of the longest, in cycle times.
    """

    def __init__(self, records: Runs) -> None:
        self.curves: dict[Setting, dict[str, dict[int, Curve]]] = defaultdict(lambda: defaultdict(dict))
        self.horizon = 0.0
        for record in records:
            if not record.error and record.notes.get("curve"):
                setting = (record.instance.removeprefix("elfish_digits_"), bool(record.options["iid"]))
                scheme = record.method.removeprefix(PREFIX)
                self.curves[setting][scheme][record.seed] = record.notes["curve"]
                self.horizon = max(self.horizon, record.options["cycles"])

    def values(self, setting: Setting, scheme: str, measure: Measure) -> dict[int, float]:
        """A measure by seed."""
        return {seed: measure(curve, self.horizon) for seed, curve in self.curves[setting].get(scheme, {}).items()}


def label(key: Setting) -> str:
    """``2 stragglers of 4 devices``."""
    stragglers, devices = key[0].split("of")
    return f"{stragglers} of {devices} devices are stragglers" + ("" if key[1] else ", non-IID")


def summary(trainings: Trainings) -> Table:
    """Every scheme in every fleet, with 95 % intervals over the seeds."""
    rows = []
    for key in sorted(trainings.curves):
        for scheme in (s for s in TITLES if s in trainings.curves[key]):
            row: dict[str, Any] = {"fleet": label(key), "scheme": TITLES[scheme]}
            measures: dict[str, Measure] = {"overall": overall, "final": final, "unrest": unrest, "time": _to_target}
            for name, measure in measures.items():
                values = list(trainings.values(key, scheme, measure).values())
                row["seeds"] = len(values)
                row[name] = _text(interval(values), 1.0 if name == "time" else 100.0)
            rows.append(row)
    columns = [
        Column("fleet", "fleet"),
        Column("scheme", "scheme"),
        Column("seeds", "seeds"),
        Column("overall", "mean accuracy [%]"),
        Column("final", "final accuracy [%]"),
        Column("unrest", "fluctuation [points]"),
        Column("time", f"time to {TARGET:.0%} [b_T]"),
    ]
    note = (
        "Mean and half-width of the 95 % interval over seeds. Mean accuracy: over the simulated time; final: its last "
        "quarter; fluctuation: standard deviation over its last half; a target not reached counts as the end."
    )
    return Table("training", "Training on the digits", columns, rows, note)


def comparisons(trainings: Trainings) -> Table:
    """Paired differences of two schemes on equal seeds; a claim only where it survives Holm's correction."""
    rows: list[dict[str, Any]] = []
    for key in sorted(trainings.curves):
        for first, second in COMPARED:
            for name, measure in (("mean accuracy", overall), ("final accuracy", final)):
                a, b = (trainings.values(key, scheme, measure) for scheme in (first, second))
                both = sorted(a.keys() & b.keys())
                if not both:
                    continue
                differences = [100 * (a[seed] - b[seed]) for seed in both]
                centre, half = interval(differences)
                rows.append(
                    {
                        "fleet": label(key),
                        "pair": f"{TITLES[first]} minus {TITLES[second]}",
                        "measure": name,
                        "difference": centre,
                        "half": half,
                        "seeds": len(both),
                        "p": p_value(differences),
                    }
                )
    for row, adjusted in zip(rows, holm([row["p"] for row in rows]), strict=True):
        row |= {"adjusted": adjusted, "claim": _claim(row["difference"], adjusted)}
    columns = [
        Column("fleet", "fleet"),
        Column("pair", "pair"),
        Column("measure", "measure"),
        Column("difference", "difference [points]", "+.2f"),
        Column("half", "± (95 %)", ".2f"),
        Column("seeds", "seeds"),
        Column("p", "p", ".2g"),
        Column("adjusted", "p (Holm)", ".2g"),
        Column("claim", "claim"),
    ]
    note = (
        "Differences on equal seeds (same data, same initial model). p: paired t-test, two-sided. A claim needs p "
        f"{LEVEL:g} after Holm's correction over the {len(rows)} rows; the intervals are of each row alone."
    )
    return Table("training_pairs", "Which scheme trains better", columns, rows, note)


def _claim(centre: float, adjusted: float | None) -> str:
    if adjusted is None or adjusted > LEVEL:
        return "undecided"
    return "better" if centre > 0 else "worse"


def _text(found: tuple[float, float | None], scale: float) -> str:
    centre, half = found
    return f"{scale * centre:.1f}" + ("" if half is None else f" ± {scale * half:.1f}")


def _to_target(curve: Curve, horizon: float) -> float:
    return time_to(curve, TARGET, horizon)


def curves(trainings: Trainings, key: Setting, schemes: Sequence[str]) -> Figure:
    """Mean accuracy over simulated time with 95 % bands."""
    figure, ax = figures.axes(6.4, 3.4)
    grid = range(int(trainings.horizon) + 1)
    for index, scheme in enumerate(schemes):
        runs = trainings.curves[key].get(scheme)
        if not runs:
            continue
        points = [interval([100 * at(curve, moment) for curve in runs.values()]) for moment in grid]
        look = figures.style(index)
        ax.plot(grid, [centre for centre, _ in points], label=TITLES[scheme], linewidth=1.5, **look)
        low = [max(0.0, centre - (half or 0.0)) for centre, half in points]
        high = [min(100.0, centre + (half or 0.0)) for centre, half in points]
        ax.fill_between(grid, low, high, color=look["color"], alpha=0.15, linewidth=0)
    ax.set(xlabel="simulated time [b_T]", ylabel="test accuracy [%]", title=label(key), ylim=(0, 100))
    figures.legend(ax)
    return figure


def by_stragglers(trainings: Trainings, schemes: Sequence[str], measure: Measure, ylabel: str) -> Figure | None:
    """A measure over the number of stragglers among four devices, with 95 % intervals."""
    figure, ax = figures.axes(6.0, 3.2)
    drawn = False
    for index, scheme in enumerate(schemes):
        points = []
        for count in (1, 2, 3, 4):
            runs = trainings.curves.get((f"{count}of4", True), {}).get(scheme)
            if runs:
                values = [100 * measure(curve, trainings.horizon) for curve in runs.values()]
                points.append((count + 0.05 * (index - 1), *interval(values)))
        if len(points) > 1:
            drawn = True
            xs, ys, halves = zip(*points, strict=True)
            bars = [half or 0.0 for half in halves]
            look = {"marker": "o", "markersize": 3.5, "capsize": 3, **figures.style(index)}
            ax.errorbar(xs, ys, bars, label=TITLES[scheme], **look)
    if not drawn:
        return None
    ax.set_xticks([1, 2, 3, 4])
    ax.set(xlabel="stragglers among four devices", ylabel=ylabel)
    figures.legend(ax)
    return figure


def section(records: Runs) -> Section:
    """Everything about training."""
    trainings = Trainings(records)
    if not trainings.curves:
        missing = "No training was run; it needs the extra: pip install 'mapgap[training]'."
        return Section("Does a better mask train better?", text=[missing])
    pictures = [
        picture(
            f"fig3_{key[0]}{'' if key[1] else '_non_iid'}",
            curves(trainings, key, tuple(TITLES)),
            "Test accuracy over simulated time, mean and 95 % interval over seeds; Fig. 3 in form.",
        )
        for key in sorted(trainings.curves)
    ]
    most, reached, unsteady = ("async", "elfish", "sync"), "final accuracy [%]", "fluctuation [points of accuracy]"
    for name, schemes, measure, ylabel, caption in (
        ("fig4_final", most, final, reached, "Final accuracy by number of stragglers; Fig. 4 in form."),
        ("fig4_fluctuation", most, unrest, unsteady, "Fluctuation of accuracy; Fig. 4 in form."),
        ("fig5", ("soft", "elfish", "optimal"), final, reached, "Soft-training only and ELFISH; Fig. 5 in form."),
    ):
        figure = by_stragglers(trainings, schemes, measure, ylabel)
        if figure is not None:
            pictures.append(picture(name, figure, caption))
    text = [
        "A small convolutional network in NumPy learns scikit-learn's digits on simulated devices. A mask is really "
        "cut out and trained as a smaller model; time is the cost model's, in cycle times b_T of a capable device.",
        "The paper's runs use MNIST and CIFAR-10 and print curves only; the comparison is in form, not in numbers.",
    ]
    return Section("Does a better mask train better?", text, [comparisons(trainings), summary(trainings)], pictures)
