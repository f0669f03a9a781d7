"""Training part of the page: what the test runs decide, how they were designed, and curves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from matplotlib.figure import Figure

from mapgap.records.runs import Runs
from mapgap.reporting import figures
from mapgap.reporting.report import Picture, Section, picture
from mapgap.reporting.tables import Rows, Table, tabulated
from mapgap.studies.neuron_masking.comparisons import (
    BETTER_MASKS,
    PRIMARY,
    by_fleet,
    comparisons,
    equivalence,
    points,
    power,
    robustness,
    sampling,
    speed,
    tuning,
)
from mapgap.studies.neuron_masking.curves import TITLES, Measure, Trainings, at, final, overall, time_to, unrest
from mapgap.studies.neuron_masking.design import (
    FIRST_TEST_SEED,
    MARGIN,
    PILOT_SEEDS,
    SETTINGS,
    TEST_SEEDS,
    TUNING_SEEDS,
    Setting,
)
from mapgap.studies.neuron_masking.statistics import interval

TARGET = 0.9
"""Accuracy whose time is reported of every scheme."""


@tabulated(
    "training",
    "Training on the digits",
    "fleet | scheme | seeds | overall: mean accuracy [%] | final: final accuracy [%] | unrest: fluctuation [points] "
    f"| time: time to {TARGET:.0%} [b_T]",
    "Mean and half-width of the 95 % interval over seeds. Mean accuracy: over the simulated time; final: its last "
    "quarter; fluctuation: standard deviation over its last half; a target not reached counts as the end.",
)
def summary(trainings: Trainings) -> Rows:
    """Every scheme in every fleet, with 95 % intervals over the seeds."""
    measures: dict[str, Measure] = {"overall": overall, "final": final, "unrest": unrest, "time": _to_target}
    for key in trainings.settings:
        for scheme in (s for s in TITLES if s in trainings.curves[key]):
            row: dict[str, Any] = {"fleet": key.label, "scheme": TITLES[scheme]}
            for name, measure in measures.items():
                values = list(trainings.values(key, scheme, measure).values())
                row |= {"seeds": len(values), name: _text(interval(values), 1.0 if name == "time" else 100.0)}
            yield row


def _text(found: tuple[float, float | None], scale: float) -> str:
    centre, half = found
    return f"{scale * centre:.1f}" + ("" if half is None else f" ± {scale * half:.1f}")


def _to_target(curve: Sequence[Sequence[float]], horizon: float) -> float:
    return time_to(curve, TARGET, horizon)


def curves(trainings: Trainings, key: Setting, schemes: Sequence[str]) -> Figure:
    """Mean accuracy over simulated time with 95 % bands."""
    figure, ax = figures.axes(6.4, 3.4)
    grid = range(int(trainings.horizon) + 1)
    for index, scheme in enumerate(schemes):
        runs = trainings.curves[key].get(scheme)
        if not runs:
            continue
        found = [interval([100 * at(curve, moment) for curve in runs.values()]) for moment in grid]
        look = figures.style(index)
        width = figures.NARROWEST + 0.4 * (len(schemes) - 1 - index)  # lines that coincide are all seen
        ax.plot(grid, [centre for centre, _ in found], label=TITLES[scheme], linewidth=width, **look)
        low = [max(0.0, centre - (half or 0.0)) for centre, half in found]
        high = [min(100.0, centre + (half or 0.0)) for centre, half in found]
        ax.fill_between(grid, low, high, color=look["color"], alpha=0.15, linewidth=0)
    ax.set(xlabel="simulated time [b_T]", ylabel="test accuracy [%]", title=key.label, ylim=(0, 100))
    figures.legend(ax)
    return figure


def by_stragglers(trainings: Trainings, schemes: Sequence[str], measure: Measure, ylabel: str) -> Figure | None:
    """A measure over the number of stragglers among four devices, with 95 % intervals."""
    figure, ax = figures.axes(6.0, 3.2)
    for index, scheme in enumerate(schemes):
        found = []
        for count in (1, 2, 3, 4):
            if runs := trainings.curves.get(Setting(f"{count}of4"), {}).get(scheme):
                values = [100 * measure(curve, trainings.horizon) for curve in runs.values()]
                found.append((count + 0.05 * (index - 1), *interval(values)))
        if len(found) > 1:
            xs, ys, halves = zip(*found, strict=True)
            look = {"marker": "o", "markersize": 3.5, "capsize": 3, **figures.style(index)}
            ax.errorbar(xs, ys, [half or 0.0 for half in halves], label=TITLES[scheme], **look)
    if not ax.containers:
        return None
    ax.set_xticks([1, 2, 3, 4])
    ax.set(xlabel="stragglers among four devices", ylabel=ylabel)
    figures.legend(ax)
    return figure


def forest(trainings: Trainings, pooled: Table) -> Figure:
    """Better masks minus ELFISH, fleet by fleet and pooled, with the margin of equivalence; mean accuracy."""
    figure, ax = figures.axes(6.4, 3.4)
    places: list[str] = []
    for index, pair in enumerate(BETTER_MASKS):
        by_setting = {s.label: points(trainings, s, *pair, overall) for s in trainings.settings}
        rows = [(title, *interval(values)) for title, values in by_setting.items() if values]
        rows += [
            (f"pooled, {row['data']}", row["difference"], row["half"])
            for row in pooled.rows
            if (row["first"], row["second"], row["measure"]) == (*pair, PRIMARY) and row["fleets"] > 1
        ]
        if not rows:
            continue
        places = [title for title, _, _ in rows]
        heights = [len(rows) - place - 0.2 * index for place in range(len(rows))]
        look = {**figures.style(index), "linestyle": "none", "marker": figures.MARKERS[index]}
        ax.errorbar(
            [centre for _, centre, _ in rows],
            heights,
            xerr=[half or 0.0 for _, _, half in rows],
            label=f"{TITLES[pair[0]]} minus {TITLES[pair[1]]}",
            markersize=4,
            capsize=2,
            **look,
        )
    ax.axvspan(-MARGIN, MARGIN, color="#888888", alpha=0.15, linewidth=0)
    ax.axvline(0, color="#888888", linewidth=0.8)
    ax.set_yticks([len(places) - place - 0.1 for place in range(len(places))], places)
    ax.set(xlabel="mean accuracy, difference [points]")
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), frameon=False, fontsize=8, ncols=2)
    return figure


def section(records: Runs) -> Section:
    """Everything about training."""
    trainings = Trainings(records)
    if not trainings.curves:
        missing = "No training was run; it needs the extra: pip install 'mapgap[training]'."
        return Section("Does a better mask train better?", text=[missing])
    pairs = comparisons(trainings)
    masks = equivalence(trainings)
    shown = [sampling(trainings), speed(trainings), robustness(trainings), by_fleet(trainings), summary(trainings)]
    tables = [table for table in (pairs, masks, *shown, power(records), tuning(records)) if table.rows]
    text = _text_of(pairs, masks)
    return Section("Does a better mask train better?", text, tables, list(_pictures(trainings, pairs)))


def _pictures(trainings: Trainings, pairs: Table) -> Iterator[Picture]:
    if any(row["first"] == BETTER_MASKS[0][0] for row in pairs.rows):
        caption = "Better masks minus ELFISH with 95 % intervals; the band is the margin of equivalence."
        yield picture("masks_forest", forest(trainings, pairs), caption)
    for key in trainings.settings:
        yield picture(
            f"fig3_{key.fleet}{'' if key.iid else '_non_iid'}",
            curves(trainings, key, tuple(TITLES)),
            "Test accuracy over simulated time, mean and 95 % interval over seeds; Fig. 3 in form.",
        )
    most, reached, unsteady = ("async", "elfish", "sync"), "final accuracy [%]", "fluctuation [points of accuracy]"
    for name, schemes, measure, ylabel, caption in (
        ("fig4_final", most, final, reached, "Final accuracy by number of stragglers; Fig. 4 in form."),
        ("fig4_fluctuation", most, unrest, unsteady, "Fluctuation of accuracy; Fig. 4 in form."),
        ("fig5", ("soft", "elfish", "optimal"), final, reached, "Soft-training only and ELFISH; Fig. 5 in form."),
    ):
        figure = by_stragglers(trainings, schemes, measure, ylabel)
        if figure is not None:
            yield picture(name, figure, caption)


def _text_of(pairs: Table, masks: Table) -> list[str]:
    last = FIRST_TEST_SEED + 100 * (len(SETTINGS) - 1) + TEST_SEEDS - 1
    return [
        "A small convolutional network in NumPy learns scikit-learn's digits on simulated devices. A mask is really "
        "cut out and trained as a smaller model; time is the cost model's, in cycle times b_T of a capable device.",
        "The paper's runs use MNIST and CIFAR-10 and print curves only; the comparison is in form, not in numbers.",
        f"Fixed in advance: {TEST_SEEDS} test seeds per fleet ({FIRST_TEST_SEED} to {last}, no two fleets share one), "
        f"from the spread of a pilot with seeds {PILOT_SEEDS[0]} to {PILOT_SEEDS[-1]}; a margin of {MARGIN:g} point "
        "for equivalence; mean accuracy over the simulated time as the primary measure. Changed after the runs: the "
        "measure is an integral and no longer read at whole cycle times, just before which ELFISH aggregates (a table "
        "has both), and errors are corrected for the images that all runs share. The mixing weight of "
        f"asynchronous learning is chosen per fleet on seeds {TUNING_SEEDS[0]} to {TUNING_SEEDS[-1]}; where all "
        "devices are stragglers, uploads that replace the model are run, too.",
        *(decided(data, pairs, masks) for data in dict.fromkeys(row["data"] for row in pairs.rows)),
    ]


def decided(data: str, pairs: Table, masks: Table | None = None) -> str:
    """The primary measure in one paragraph."""
    same = {
        (row["first"], row["second"])
        for row in (masks.rows if masks is not None else ())
        if (row["data"], row["measure"], row["claim"]) == (data, PRIMARY, "equivalent")
    }
    found = []
    for row in pairs.rows:
        if (row["data"], row["measure"]) == (data, PRIMARY):
            words = row["claim"] + (", equivalent" if (row["first"], row["second"]) in same else "")
            found.append(f"{row['pair']} {row['difference']:+.2f} ± {row['half']:.2f} ({words})")
    return f"{data} data, {PRIMARY} in percentage points with 95 % intervals: " + "; ".join(found) + "."
