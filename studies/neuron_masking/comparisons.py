"""What the test runs decide: pooled differences, equivalence, speed, robustness; and what led to the design."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import product
from statistics import mean, stdev
from typing import Any

from mapgap.records.runs import Runs
from mapgap.reporting.tables import Rows, Table, header, tabulated
from mapgap.studies.neuron_masking.curves import (
    RIVAL_TITLES,
    TITLES,
    Measure,
    Trainings,
    at_cycles,
    cycle,
    final,
    overall,
    time_to,
    tried_mixings,
    unrest,
)
from mapgap.studies.neuron_masking.design import (
    CYCLES,
    MARGIN,
    OVERLAP,
    POWER,
    SETTINGS,
    TEST_SEEDS,
    TRUE_DIFFERENCE,
    TUNED,
    Setting,
)
from mapgap.studies.neuron_masking.statistics import LEVEL, across, equivalence_power, flipped_p, holm, interval, pooled

PRIMARY = "mean accuracy"
MEASURES: dict[str, Measure] = {PRIMARY: overall, "final accuracy": final}
"""Primary and secondary."""
BETTER_MASKS = (("optimal", "elfish"), ("optimal_neurons", "elfish"))
COMPARED = (("elfish", "sync"), ("elfish", "async"), ("elfish", "soft"), ("sync", "async"), *BETTER_MASKS)
RIVALS = ("sync", "async", "soft")
"""Of ELFISH in the paper."""
TARGETS = (0.8, 0.9)
"""Accuracies whose time is compared."""
MOST_SEEDS = 100


def pair_title(first: str, second: str) -> str:
    """``ELFISH minus Syn. FL``."""
    titles = TITLES | RIVAL_TITLES
    return f"{titles[first]} minus {titles[second]}"


def points(trainings: Trainings, setting: Setting, first: str, second: str, measure: Measure) -> list[float]:
    """Paired differences in percentage points."""
    return [100 * difference for difference in trainings.differences(setting, first, second, measure)]


def _pooled_rows(trainings: Trainings, pairs: Sequence[tuple[str, str]]) -> list[dict[str, Any]]:
    """A row per group of fleets, pair and measure, with its differences by fleet under ``groups``.

    Fleets in which a scheme is not run at all, as where nobody is left if stragglers are dropped, take no part.
    """
    rows: list[dict[str, Any]] = []
    for (title, settings), pair, measure in product(trainings.groups.items(), pairs, MEASURES):
        every = (points(trainings, setting, *pair, MEASURES[measure]) for setting in settings)
        groups = [differences for differences in every if differences]
        if (found := pooled(groups, OVERLAP)) is not None and (apart := pooled(groups)) is not None:
            row = {"data": title, **_of_pair(*pair), "measure": measure, "difference": found.mean, "pooled": found}
            row["apart"] = apart.half()
            rows.append(row | {"groups": groups, "runs": sum(map(len, groups))})
    return rows


def _of_pair(first: str, second: str) -> dict[str, str]:
    return {"first": first, "second": second, "pair": pair_title(first, second)}


def _shown(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{key: value for key, value in row.items() if key not in ("groups", "pooled")} for row in rows]


def comparisons(
    trainings: Trainings,
    pairs: Sequence[tuple[str, str]] = COMPARED,
    name: str = "training_pooled",
    title: str = "Which scheme trains better",
) -> Table:
    """Pooled paired differences of two schemes; a claim only where it survives Holm's correction."""
    rows = _pooled_rows(trainings, pairs)
    for row, adjusted in zip(rows, holm([row["pooled"].p for row in rows]), strict=True):
        found, groups = row["pooled"], row["groups"]
        half = found.half()
        row |= {"half": half, "low": found.mean - half, "high": found.mean + half, "across": across(groups)}
        row |= {"least": min(map(mean, groups)), "largest": max(map(mean, groups)), "fleets": len(groups)}
        row |= {"positive": sum(value > 0 for group in groups for value in group)}
        row |= {"p": found.p, "flipped": flipped_p(groups), "adjusted": adjusted}
        row["claim"] = _claim(found.mean, adjusted)
    columns = header(
        "data | pair | measure | difference: difference [points]; +.2f | half: ± (95 %); .2f "
        "| apart: ± (95 %), as if no images were shared; .2f | across: ± (95 %), fleets as sample; .2f "
        "| least: least fleet; +.2f | largest: largest fleet; +.2f "
        "| positive | runs: of pairs | p; .2g | flipped: p (random signs); .2g | adjusted: p (Holm); .2g | claim"
    )
    note = (
        "Differences on equal seeds (same data, same initial model), pooled over the fleets with equal weight; errors "
        "of seeds within fleets, corrected for the images that all runs share (Nadeau and Bengio 2003). A claim needs "
        f"p {LEVEL:g} after Holm's correction over the {len(rows)} rows. 'Fleets "
        "as sample': the interval if the fleets stand for others like them. Random signs: a test without normal "
        "distributions. Test seeds only; no fleet shares a seed with another."
    )
    return Table(name, title, columns, _shown(rows), note)


def equivalence(trainings: Trainings) -> Table:
    """Does a better mask train better? Two one-sided tests against a margin that was fixed in advance."""
    rows = _pooled_rows(trainings, BETTER_MASKS)
    for row, adjusted in zip(rows, holm([row["pooled"].equivalence_p(MARGIN) for row in rows]), strict=True):
        found = row["pooled"]
        half = found.half(1 - 2 * LEVEL)
        row |= {"low": found.mean - half, "high": found.mean + half, "p": found.equivalence_p(MARGIN)}
        row |= {"adjusted": adjusted, "claim": "equivalent" if adjusted <= LEVEL else "not shown"}
    columns = header(
        "data | pair | measure | difference: difference [points]; +.2f | low: 90 % from; +.2f | high: to; +.2f "
        f"| runs: pairs | p; .2g | adjusted: p (Holm); .2g | claim: within {MARGIN:g} point"
    )
    note = (
        f"Two one-sided tests (Schuirmann 1987) of the hypothesis that the difference is {MARGIN:g} percentage point "
        f"or more; equivalent where p is at most {LEVEL:g} after Holm's correction over the {len(rows)} rows. The "
        "margin was fixed before the test runs: a quarter of the 4 % that the paper claims, and below the error of one "
        "accuracy. Errors are corrected for the images that all runs share; without that correction, which was made "
        "after the runs, both masks' intervals are about a quarter as wide."
    )
    return Table("training_equivalence", "Better masks against ELFISH's: equivalence", columns, _shown(rows), note)


@tabulated(
    "training_sampling",
    "What the sampling of the primary measure does",
    "data | pair | integral: integral over the time [points]; +.2f | at_cycles: at whole cycle times [points]; +.2f",
    "The registered measure was the mean accuracy at the whole cycle times. ELFISH aggregates just before them, so "
    "that it was read at its best moment; all other tables have the integral.",
)
def sampling(trainings: Trainings) -> Rows:
    """Pooled differences of the primary measure, as an integral and as it was registered."""
    for (title, settings), pair in product(trainings.groups.items(), COMPARED):
        found = [pooled([points(trainings, s, *pair, m) for s in settings]) for m in (overall, at_cycles)]
        if found[0] is not None and found[1] is not None:
            yield {"data": title, **_of_pair(*pair), "integral": found[0].mean, "at_cycles": found[1].mean}


@tabulated(
    "training_pairs",
    "The differences fleet by fleet",
    "fleet | pair | measure | difference: difference [points]; +.2f | half: ± (95 %); .2f | seeds",
    "Every interval is of its row alone; claims are in the pooled table.",
)
def by_fleet(trainings: Trainings) -> Rows:
    """The same differences fleet by fleet, without tests."""
    for setting, pair, measure in product(trainings.settings, COMPARED, MEASURES):
        if values := points(trainings, setting, *pair, MEASURES[measure]):
            centre, half = interval(values)
            row = {**of_setting(setting), **_of_pair(*pair), "measure": measure, "difference": centre, "half": half}
            low, high = centre - (half or 0.0), centre + (half or 0.0)
            yield row | {"seeds": len(values), "low": low, "high": high}


@tabulated(
    "training_speed",
    "How many times faster",
    "fleet | title: against | cycles: ratio of cycles; .2f | target: accuracy [%] | ratio: ratio of times; .2f "
    "| low: 95 % from; .2f | high: to; .2f | reached_rival: rival gets there | reached: ELFISH gets there | seeds: of",
    "Time of the rival by time of ELFISH, geometric mean over seeds; above 1 ELFISH is faster. A target not "
    "reached counts as the end of the simulated time, so that a ratio is too small where only ELFISH gets there.",
)
def speed(trainings: Trainings) -> Rows:
    """How many times faster ELFISH is: by the length of its cycles, and by the time to an accuracy."""
    horizon = trainings.horizon
    for setting, rival in product(trainings.settings, RIVALS):
        a, b = (trainings.curves[setting].get(scheme, {}) for scheme in (rival, "elfish"))
        seeds = sorted(a.keys() & b.keys())
        for target in TARGETS if seeds else ():
            slow, fast = ([time_to(curves[seed], target, horizon) for seed in seeds] for curves in (a, b))
            row = {**of_setting(setting, rival), "target": round(100 * target), "seeds": len(seeds)}
            row |= _ratio([math.log(ours / theirs) for ours, theirs in zip(slow, fast, strict=True)])
            for name, curves in (("reached_rival", a), ("reached", b)):
                row[name] = sum(max(value for _, value in curves[seed]) >= target for seed in seeds)
            if rival == "sync":
                row["cycles"] = mean(cycle(a[seed], horizon) / cycle(b[seed], horizon) for seed in seeds)
            yield row


def of_setting(setting: Setting, rival: str = "") -> dict[str, Any]:
    """What tells a row: fleet and data, and rival if there is one."""
    row = {"fleet": setting.label, "stragglers": setting.fleet, "iid": setting.iid}
    return row | ({"rival": rival, "title": TITLES[rival]} if rival else {})


def _ratio(logarithms: Sequence[float]) -> dict[str, float]:
    """Geometric mean, its 95 % interval, and what the lower end of the interval gains."""
    centre, half = interval(logarithms)
    low, high = (math.exp(centre + way * (half or 0.0)) for way in (-1, 1))
    return {"ratio": math.exp(centre), "low": low, "high": high, "gain_low": low - 1}


@tabulated(
    "training_robustness",
    "Robustness",
    "fleet | title: against | kind: of | ratio: times better; .2f | low: 95 % from; .2f | high: to; .2f | seeds",
    "Accuracy: mean over the simulated time, ELFISH by rival. Variance: of the accuracy over the last half, rival "
    "by ELFISH. Geometric means over seeds. 'Replacing': an upload replaces the global model (mixing weight 1).",
)
def robustness(trainings: Trainings) -> Rows:
    """Secs. 6.3 and 6.4: accuracy and its variance over time, ELFISH against other schemes."""
    kinds: dict[str, tuple[Measure, int]] = {"accuracy": (overall, 1), "variance": (unrest, -2)}
    for setting, rival, kind in product(trainings.settings, ("async", "replacing", "soft"), kinds):
        measure, exponent = kinds[kind]
        a, b = (trainings.values(setting, scheme, measure) for scheme in ("elfish", rival))
        ratios = [math.log(a[s] / b[s]) for s in sorted(a.keys() & b.keys()) if a[s] > 0 and b[s] > 0]
        if ratios:
            row = {**of_setting(setting, rival), "kind": kind, "seeds": len(ratios)}
            yield row | _ratio([exponent * value for value in ratios])


@tabulated(
    "training_tuning",
    "The mixing weight of asynchronous learning",
    "fleet | mixing: mixing weight; g | accuracy: mean accuracy [%]; .2f | seeds | best | used: in the tests",
    "Mean accuracy over the simulated time, on seeds that no test uses.",
)
def tuning(records: Runs) -> Rows:
    """Asynchronous learning tuned for itself: mean accuracy by mixing weight, on the tuning seeds."""
    for setting, curves in tried_mixings(records).items():
        means = {mixing: 100 * mean(overall(c, CYCLES) for c in found) for mixing, found in curves.items()}
        best = max(means, key=means.__getitem__)
        for mixing in sorted(means):
            row = of_setting(setting) | {"mixing": mixing, "accuracy": means[mixing], "seeds": len(curves[mixing])}
            marks = {"best": mixing == best, "used": mixing == TUNED[setting]}
            yield row | {mark: mark if holds else "" for mark, holds in marks.items()}


def spread_in_pilot(records: Runs, first: str, second: str, measure: Measure) -> float | None:
    """Standard deviation of a paired difference within a fleet with equal data, in points; pooled over the fleets."""
    trainings = Trainings.pilot(records)
    groups = [points(trainings, setting, first, second, measure) for setting in SETTINGS if setting.iid]
    if any(len(group) < 2 for group in groups):
        return None
    return math.sqrt(mean(stdev(group) ** 2 for group in groups))


def seeds_needed(power: Callable[[int], float]) -> int:
    """The least number of seeds per fleet that has the power; at most ``MOST_SEEDS``."""
    return next((size for size in range(2, MOST_SEEDS) if power(size) >= POWER), MOST_SEEDS)


TESTS = len(BETTER_MASKS) * len(MEASURES) * 2
IID_FLEETS = sum(setting.iid for setting in SETTINGS)


@tabulated(
    "training_power",
    "How many seeds",
    f"pair | measure | spread: spread in the pilot [points]; .2f | seeds: seeds for power {POWER:g} "
    f"| power: power with {TEST_SEEDS}; .3f",
    f"Power to show equivalence within {MARGIN:g} point over {IID_FLEETS} fleets if the true difference is "
    f"{TRUE_DIFFERENCE:g}, at level {LEVEL:g} / {TESTS} (the first step of Holm's correction). Spread: standard "
    "deviation of a paired difference within a fleet. The number of test seeds was the largest of the primary "
    "measure as registered; the correction for shared images, made later, is not in the power.",
)
def power(records: Runs) -> Rows:
    """From the pilot to the number of test seeds."""
    for pair, (name, measure) in product(BETTER_MASKS, {**MEASURES, PRIMARY: at_cycles}.items()):
        spread = spread_in_pilot(records, *pair, measure)
        if spread is not None:

            def chance(size: int, spread: float = spread) -> float:
                return equivalence_power(spread, IID_FLEETS, size, TRUE_DIFFERENCE, MARGIN, LEVEL / TESTS)

            row = {"pair": pair_title(*pair), "measure": name, "spread": spread}
            yield row | {"seeds": seeds_needed(chance), "power": chance(TEST_SEEDS)}


def _claim(centre: float, adjusted: float) -> str:
    if adjusted > LEVEL:
        return "undecided"
    return "better" if centre > 0 else "worse"
