"""ELFISH's training against what others do about stragglers, on seeds of its own.

Uniform nested submodels as HeteroFL and FjORD cut them, FedProx with partial work, and stragglers that are dropped
(``examples/federated_training``). Design and analysis were written down before any of these runs
(:mod:`mapgap.studies.neuron_masking.design`, "Rivals").
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from statistics import mean

from mapgap.execution.sweep import Job
from mapgap.records.runs import Runs
from mapgap.reporting.report import Page, Section
from mapgap.reporting.study import Phase, Study
from mapgap.reporting.tables import Rows, Table, tabulated
from mapgap.studies.neuron_masking.comparisons import comparisons, of_setting
from mapgap.studies.neuron_masking.curves import RIVAL_TITLES, Curve, Trainings, curve_of, overall, setting_of
from mapgap.studies.neuron_masking.design import (
    ALL_STRAGGLERS,
    CYCLES,
    PULLED,
    PULLS,
    RIVAL_TUNING_SEEDS,
    SETTINGS,
    UNTUNED,
    Setting,
    seeds_for_rivals,
)
from mapgap.studies.neuron_masking.job import PREFIX, RIVALS, Options, TrainingJob, available
from mapgap.studies.neuron_masking.study import instance
from mapgap.studies.neuron_masking.trainings import decided

PULL = "fedprox"
"""The scheme with a pull."""
TUNING, TEST = "Pull of FedProx", "Rivals"
QUICK_SEEDS, QUICK_CYCLES = 3, 5


def _jobs(
    setting: Setting, scheme: str, seeds: Iterable[int], pulls: Iterable[float] = (0.0,), cycles: int = CYCLES
) -> list[Job]:
    """One scheme in one fleet."""
    fleet = instance(f"elfish_digits_{setting.fleet}")
    return [
        TrainingJob(fleet, Options(scheme, cycles, setting.iid, mixing=UNTUNED, proximal=pull), seed)
        for seed, pull in product(seeds, pulls)
    ]


def _tests(settings: Sequence[Setting], seeds: int | None = None, cycles: int = CYCLES) -> list[Job]:
    """ELFISH, synchronous learning and all rivals; where all are stragglers, none is dropped."""
    return [
        job
        for setting, scheme in product(settings, ("elfish", "sync", *RIVALS))
        if (scheme, setting) != ("dropped", ALL_STRAGGLERS)
        for pulls in [(PULLED[setting],) if scheme == PULL else (0.0,)]
        for job in _jobs(setting, scheme, seeds_for_rivals(setting)[:seeds], pulls, cycles)
    ]


def phases(quick: bool) -> list[Phase]:
    """The tuning of FedProx and the tests; of the small version without the package that trains, nothing."""
    if quick:
        jobs = _tests([Setting("2of4")], QUICK_SEEDS, QUICK_CYCLES) if available() else []
        return [Phase(TEST, jobs, 2)]
    tuning = [job for setting in SETTINGS for job in _jobs(setting, PULL, RIVAL_TUNING_SEEDS, PULLS)]
    return [Phase(TUNING, tuning, 2), Phase(TEST, _tests(SETTINGS), 2)]


def against_rivals(records: Runs) -> Table:
    """ELFISH minus what others do."""
    pairs = [("elfish", rival) for rival in ("sync", *RIVAL_TITLES)]
    return comparisons(Trainings.rivals(records), pairs, "pooled", "ELFISH against what others do")


@tabulated(
    "pull",
    "The pull of FedProx",
    "fleet | pull; g | accuracy: mean accuracy [%]; .2f | seeds | best | used: in the comparison",
    "Mean accuracy over the simulated time, on seeds that nothing else uses.",
)
def pulls(records: Runs) -> Rows:
    """FedProx tuned for itself: mean accuracy by pull, on its tuning seeds."""
    tried: dict[Setting, dict[float, list[Curve]]] = {}
    for record in records:
        curve = curve_of(record)
        if curve and record.method == f"{PREFIX}{PULL}" and record.seed in RIVAL_TUNING_SEEDS:
            tried.setdefault(setting_of(record), {}).setdefault(record.options["proximal"], []).append(curve)
    for setting, curves in tried.items():
        means = {pull: 100 * mean(overall(c, CYCLES) for c in found) for pull, found in curves.items()}
        best = max(means, key=means.__getitem__)
        for pull in sorted(means):
            row = of_setting(setting) | {"pull": pull, "accuracy": means[pull], "seeds": len(curves[pull])}
            marks = {"best": pull == best, "used": pull == PULLED[setting]}
            yield row | {mark: mark if holds else "" for mark, holds in marks.items()}


def page(records: Runs, quick: bool) -> Page:
    """The page of the study."""
    pooled = against_rivals(records)
    lead = [
        "ELFISH against what others do about stragglers, on seeds of their own, for which measure and analysis were "
        "written down before they were run: uniform nested submodels as of HeteroFL and FjORD, without their further "
        "devices; FedProx, whose stragglers do a part of the steps; stragglers dropped. Trained is as in the study "
        "neuron_masking: one data set of 1,797 images, one small network." + (" Small version." if quick else ""),
        *(decided(data, pooled) for data in dict.fromkeys(row["data"] for row in pooled.rows)),
    ]
    tables = [table for table in (pooled, pulls(records)) if table.rows]
    return Page("ELFISH and its rivals", lead, [Section("Which scheme trains better", tables=tables)])


STUDY = Study(
    name="straggler_rivals",
    title="ELFISH's training against uniform submodels, FedProx and dropped stragglers",
    problem="neuron_masking",
    phases=phases,
    page=page,
    headline=(),
    needs=("scipy",),
)
