"""The study of neuron masking: its phases, its page from made-up records, Table 2, and what its trainings decide."""

import math
from pathlib import Path

import pytest
import yaml

from mapgap.catalogue import registry
from mapgap.core import Budget
from mapgap.execution.run import run_method
from mapgap.execution.sweep import MethodJob
from mapgap.instances.published_numbers import load_published
from mapgap.records.files import read_runs
from mapgap.records.record import RunRecord
from mapgap.records.runs import Runs
from mapgap.reporting.committed import Checkout
from mapgap.reporting.prose import value
from mapgap.studies import straggler_rivals
from mapgap.studies.neuron_masking import comparisons, curves, profile, study, trainings
from mapgap.studies.neuron_masking.curves import Trainings
from mapgap.studies.neuron_masking.design import (
    MIXINGS,
    PILOT_SEEDS,
    RIVAL_TUNING_SEEDS,
    SETTINGS,
    TEST_SEEDS,
    TUNED,
    TUNING_SEEDS,
    Setting,
    seeds_for_rivals,
    seeds_for_tests,
)

REPORT = Path(__file__).parents[2] / "reports" / "neuron_masking"
TWO, FOUR, UNEQUAL = Setting("2of4"), Setting("4of4"), Setting("1of4", iid=False)


@pytest.mark.parametrize("quick", [True, False])
def test_every_job_names_a_method_and_is_unique_in_its_phase(quick):
    known = registry.methods("neuron_masking")
    for phase in study.phases(quick):
        assert len({job.key for job in phase.jobs}) == len(phase.jobs)
        for job in phase.jobs:
            if isinstance(job, MethodJob):
                assert set(job.options) <= set(known[job.method].options)


@pytest.mark.skipif(not study.available() or not REPORT.is_dir(), reason="needs the extra training and a checkout")
def test_committed_runs_are_those_of_the_study():
    # What a study resumes: methods' and trainings' keys are those of their records, run by run.
    expected = {job.key for phase in study.phases(False) for job in phase.jobs}
    assert {record.key for record in read_runs(REPORT / "runs.jsonl")} == expected


def test_without_the_extra_there_is_no_training(monkeypatch):
    monkeypatch.setattr(study, "available", lambda: False)
    assert "Training" not in [phase.name for phase in study.phases(True)]
    assert "mapgap[training]" in trainings.section(Runs()).text[0]


def test_table_2_readings():
    # ELFISH, Table 2: the readings' mean errors against the printed estimates.
    rows = {row["reading"]: row["mean"] for row in profile.errors(profile.table_2()).rows}
    assert rows["VGG-13, O_T = 0"] == pytest.approx(49, abs=1)
    assert rows["VGG-11, O_T = 0"] == pytest.approx(3.4, abs=0.1)
    assert rows["VGG-11, O_T = 0, constant cost"] > 190
    # By hand: 2 N_b m_b MACs / C_cpu, and 203 MB per batch from main memory.
    by_hand = (2 * 391 * 128 * 228_267_008 / 2.8e9 + 391 * 203.2e6 / 25e9) / 60
    assert profile.minutes("vgg13_cifar", "profiled_nano", 0.0, 100) == pytest.approx(by_hand, rel=1e-4)
    assert profile.minutes("vgg13_cifar", "profiled_nano", 2.3, 100) == pytest.approx(by_hand + 2.3, rel=1e-4)


def test_measures_of_a_curve():
    curve = [[0.0, 0.1], [1.5, 0.5], [3.0, 0.9], [4.5, 0.7]]
    assert [curves.at(curve, t) for t in (0, 1, 2, 3, 4, 5)] == [0.1, 0.1, 0.5, 0.9, 0.9, 0.7]
    assert curves.time_to(curve, 0.9, 8) == 3.0
    assert curves.time_to(curve, 0.95, 8) == 8  # not reached
    # 0.1 until 1.5, 0.5 until 3, 0.9 until 4.5, then 0.7.
    assert curves.overall(curve, 4) == pytest.approx((0.1 * 1.5 + 0.5 * 1.5 + 0.9 * 1) / 4)
    assert curves.overall(curve, 6) == pytest.approx((0.1 * 1.5 + 0.5 * 1.5 + 0.9 * 1.5 + 0.7 * 1.5) / 6)
    assert curves.final(curve, 4) == pytest.approx(0.9)
    assert curves.final(curve, 6) == pytest.approx(0.7)
    assert curves.final(curve, 5) == pytest.approx((0.9 * 0.75 + 0.7 * 0.5) / 1.25)
    assert curves.at_cycles(curve, 4) == pytest.approx((0.1 + 0.5 + 0.9 + 0.9) / 4)


def made_up(
    scheme: str,
    index: int,
    accuracy: float,
    setting: Setting = TWO,
    *,
    seed: int | None = None,
    mixing: float | None = None,
    curve: list[list[float]] | None = None,
) -> RunRecord:
    """A training of the ``index``-th test seed; it has its accuracy from the first cycle on, or a curve."""
    return RunRecord(
        instance=f"elfish_digits_{setting.fleet}",
        instance_hash=setting.fleet,
        problem="neuron_masking",
        sense="max",
        method=f"train_{scheme}",
        kind="training",
        options={"iid": setting.iid, "cycles": 4, "mixing": TUNED[setting] if mixing is None else mixing},
        seed=seeds_for_tests(setting)[index] if seed is None else seed,
        notes={"curve": curve or [[float(t), accuracy if t else 0.1] for t in range(5)]},
    )


def rows_of(table, *records):
    return table(Trainings(Runs(records))).rows


def test_no_two_roles_or_fleets_share_a_seed():
    roles = [PILOT_SEEDS, TUNING_SEEDS, *(seeds_for_tests(setting) for setting in SETTINGS)]
    roles += [RIVAL_TUNING_SEEDS, *(seeds_for_rivals(setting) for setting in SETTINGS)]
    seeds = [seed for role in roles for seed in role]
    assert len(set(seeds)) == len(seeds)
    assert all(len(seeds_for_tests(setting)) == TEST_SEEDS for setting in SETTINGS)


def test_rivals_are_compared_on_their_own_seeds_and_only_with_their_runs():
    """ELFISH at 0.9 from the first aggregation on against 0.8: 10 points over the last three quarters of four cycles
    and none over the first, 7.5. A run on a test seed of the other study does not count."""
    seeds = seeds_for_rivals(TWO)[:2]
    high, low = ([[float(t), value if t else 0.1] for t in range(5)] for value in (0.9, 0.8))
    records = [made_up("elfish", 0, 0, seed=seed, curve=high) for seed in seeds]
    records += [made_up("uniform", 0, 0, seed=seed, curve=low) for seed in seeds]
    records += [made_up("elfish", 0, 0.3), made_up("uniform", 0, 0.9)]
    rows = straggler_rivals.against_rivals(Runs(records)).rows
    assert {(row["first"], row["second"]) for row in rows} == {("elfish", "uniform")}
    (primary,) = [row for row in rows if row["measure"] == "mean accuracy"]
    assert (primary["difference"], primary["runs"]) == (pytest.approx(7.5), 2)


def test_a_rival_that_a_fleet_cannot_have_is_compared_in_the_others():
    """Where all are stragglers nobody is left to be trained without them; the other fleet's 10 points stand alone."""
    records = []
    for setting, schemes in ((TWO, {"elfish": 0.9, "dropped": 0.8}), (FOUR, {"elfish": 0.9})):
        for scheme, accuracy in schemes.items():
            records += [made_up(scheme, 0, accuracy, setting, seed=seed) for seed in seeds_for_rivals(setting)[:2]]
    (row,) = [r for r in straggler_rivals.against_rivals(Runs(records)).rows if r["measure"] == "final accuracy"]
    assert (row["second"], row["difference"], row["runs"]) == ("dropped", pytest.approx(10.0), 2)


def test_the_comparison_with_rivals_has_every_scheme_on_equal_seeds():
    """FedProx with the one pull of its fleet; nobody is left to train where all are stragglers and are dropped."""
    tests = straggler_rivals.phases(False)[1].jobs
    by = {}
    for job in tests:
        by.setdefault((job.instance.name, job.training.iid, job.training.scheme), []).append(job.seed)
    assert len(tests) == len({job.key for job in tests}) == TEST_SEEDS * (5 * len(SETTINGS) - 1)
    for setting in SETTINGS:
        for scheme in ("elfish", "sync", "uniform", "fedprox", "dropped"):
            found = by.get((f"elfish_digits_{setting.fleet}", setting.iid, scheme))
            assert found == (None if (setting, scheme) == (FOUR, "dropped") else list(seeds_for_rivals(setting)))


def test_only_test_seeds_and_the_tuned_weight_count():
    records = [
        made_up("async", 0, 0.5),
        made_up("async", 0, 0.6, mixing=1.0),
        made_up("async", 0, 0.7, mixing=0.125),
        made_up("async", 0, 0.8, seed=PILOT_SEEDS[0]),
        made_up("async", 0, 0.9, seed=TUNING_SEEDS[0]),
    ]
    found = Trainings(Runs(records))
    accuracies = {scheme: [curve[-1][1] for curve in runs.values()] for scheme, runs in found.curves[TWO].items()}
    assert accuracies == {"async": [0.5], "replacing": [0.6]}
    pilot = Trainings.pilot(Runs(records))
    assert [curve[-1][1] for curve in pilot.curves[TWO]["async"].values()] == [0.8]


def test_claims_survive_the_correction_for_many():
    records = [made_up("elfish", s, 0.9 + 0.001 * s) for s in range(3)]
    records += [made_up("sync", s, 0.8 + 0.001 * s + 0.0001 * s**2) for s in range(3)]
    records += [made_up("soft", s, 0.9 + 0.05 * (-1) ** s) for s in range(3)]
    records += [made_up("async", 0, 0.2)]
    rows = {(row["pair"], row["measure"]): row for row in rows_of(comparisons.comparisons, *records)}
    better = rows["ELFISH minus Syn. FL", "final accuracy"]
    assert better["claim"] == "better"
    assert better["difference"] == pytest.approx(10.0, abs=0.02)
    assert (better["positive"], better["runs"], better["fleets"], better["across"]) == (3, 3, 1, None)
    assert rows["ELFISH minus S.T. only", "final accuracy"]["claim"] == "undecided"
    assert ("ELFISH minus Asyn. FL", "final accuracy") not in rows  # one seed has no error
    # One interval that excludes 0 is no claim among four tests: t = 5.2 with 2 degrees of freedom, p = 0.035.
    mixed = [made_up("elfish", s, 0.9 + 0.005 * s) for s in range(3)]
    mixed += [made_up("sync", s, 0.885) for s in range(3)] + [made_up("soft", s, 0.9 + 0.01 * s) for s in range(3)]
    row = rows_of(comparisons.comparisons, *mixed)[0]
    assert abs(row["difference"]) > row["half"]
    assert row["p"] < 0.05 < row["adjusted"]
    assert row["claim"] == "undecided"


def test_fleets_are_pooled_by_their_data():
    wanted = {TWO: 0.02, FOUR: 0.04, UNEQUAL: 0.2}
    records = []
    for setting, lead in wanted.items():
        for s in range(4):
            records.append(made_up("elfish", s, 0.6 + lead + 0.001 * s, setting))
            records.append(made_up("sync", s, 0.6, setting))
    rows = rows_of(comparisons.comparisons, *records)
    found = {row["data"]: row for row in rows if row["measure"] == "final accuracy"}
    assert found["IID"]["difference"] == pytest.approx(3.15)  # of 2.15 and 4.15 points
    assert found["non-IID"]["difference"] == pytest.approx(20.15)
    assert (found["IID"]["least"], found["IID"]["largest"]) == (pytest.approx(2.15), pytest.approx(4.15))
    # Two means, 2 apart: half-width 12.706 * sqrt(2) / sqrt(2).
    assert found["IID"]["across"] == pytest.approx(12.706, abs=1e-3)
    assert len(rows_of(comparisons.by_fleet, *records)) == 3 * 2


def test_equivalence_and_difference_are_two_questions():
    def lead(points):
        records = [made_up("elfish", s, 0.8) for s in range(6)]
        records += [made_up("optimal", s, 0.8 + (points + 0.1 * (-1) ** s) / 100) for s in range(6)]
        trainings_ = Trainings(Runs(records))
        made = (comparisons.equivalence(trainings_).rows, comparisons.comparisons(trainings_).rows)
        return tuple(next(row for row in rows if row["measure"] == "final accuracy") for rows in made)

    small, apart = lead(0.5)
    assert (small["claim"], apart["claim"]) == ("equivalent", "better")  # a small difference is one, and small
    large, _ = lead(1.0)
    assert large["claim"] == "not shown"
    # Six values 0.5 +- 0.1, deviation 0.1095, Student's 5 % point with 5 degrees of freedom 2.015; shared images add
    # 359 / 1438 to 1 / 6.
    assert small["high"] - small["difference"] == pytest.approx(2.015 * 0.10954 * (1 / 6 + 359 / 1438) ** 0.5, abs=1e-4)
    assert apart["apart"] == pytest.approx(2.571 * 0.10954 / 6**0.5, abs=1e-4)


def test_times_to_an_accuracy():
    fast, slow = [[0.0, 0.1], [1.0, 0.85], [2.0, 0.85]], [[0.0, 0.1], [2.0, 0.5], [4.0, 0.85]]
    records = [made_up("elfish", s, 0.0, curve=fast) for s in range(2)]
    records += [made_up("sync", s, 0.0, curve=slow) for s in range(2)]
    first, second = rows_of(comparisons.speed, *records)
    assert (first["target"], first["ratio"], first["reached"], first["reached_rival"]) == (80, pytest.approx(4.0), 2, 2)
    assert first["cycles"] == pytest.approx(2.0)
    assert (second["target"], second["ratio"], second["reached"]) == (90, pytest.approx(1.0), 0)


def test_robustness_is_a_ratio_of_variances():
    calm, wild = ([[float(t), 0.5 + swing * (-1) ** t] for t in range(5)] for swing in (0.01, 0.03))
    records = [made_up("elfish", s, 0.0, curve=calm) for s in range(2)]
    records += [made_up("async", s, 0.0, curve=wild) for s in range(2)]
    rows = {row["kind"]: row for row in rows_of(comparisons.robustness, *records)}
    assert rows["variance"]["ratio"] == pytest.approx(9.0)  # three times the swing
    assert rows["accuracy"]["ratio"] == pytest.approx(1.0)


@pytest.mark.skipif(not REPORT.is_dir(), reason="needs a checkout")
def test_the_design_follows_from_committed_runs():
    records = Runs([record for record in read_runs(REPORT / "runs.jsonl") if record.kind == "training"])
    rows = comparisons.tuning(records).rows
    assert len(rows) == len(SETTINGS) * len(MIXINGS)
    assert all(row["best"] == "" or row["used"] for row in rows)
    assert all(row["seeds"] == len(TUNING_SEEDS) for row in rows)
    primary = [row["seeds"] for row in comparisons.power(records).rows if row["measure"] == "mean accuracy"]
    assert max(primary) == TEST_SEEDS
    trainings_ = Trainings(records)
    assert all(len(runs) == TEST_SEEDS for schemes in trainings_.curves.values() for runs in schemes.values())


@pytest.mark.in_turn
@pytest.mark.skipif(not REPORT.is_dir(), reason="needs a checkout")
def test_every_published_number_has_a_figure_or_a_reason():
    root = REPORT.parents[1]
    chosen = yaml.safe_load((root / "studies" / "published_numbers" / "elfish.yaml").read_text())["verdicts"]
    assert list(chosen) == list(load_published("elfish"))
    tables = Checkout(root).rows
    for name, entry in chosen.items():
        if "none" in entry:
            assert entry["none"] in {"input", "boards", "related", "unreadable", "definition", "fitted"}, name
            continue
        assert entry["kind"] in {"count", "value", "gain", "range", "order"}, name
        for figures_ in (entry["from"], *entry.get("readings", {}).values()):
            specs = figures_ if isinstance(figures_, list) else [figures_]
            assert len(specs) == (2 if entry["kind"] == "range" else 1), name
            assert all(math.isfinite(float(value(spec, tables))) for spec in specs), name


def test_pictures_by_number_of_stragglers_need_two_numbers():
    names = {p.name for p in trainings.section(Runs(made_up("elfish", s, 0.9) for s in range(2))).figures}
    assert names == {"fig3_2of4"}
    settings = (Setting("1of4"), FOUR)
    more = [made_up(m, s, 0.9, k) for m in ("elfish", "soft", "optimal") for s in range(2) for k in settings]
    found = {p.name for p in trainings.section(Runs(more)).figures}
    assert {"fig4_final", "fig4_fluctuation", "fig5", "masks_forest"} <= found


@pytest.mark.in_turn
def test_page_of_a_few_real_runs(tmp_path):
    instance = study.instance("elfish_lenet_straggler4", "neurons")
    methods = ("lagrangian", "elfish_greedy")
    records = [run_method(instance, name, Budget(time_s=300.0), isolate=False) for name in methods]
    page = study.page(Runs([*records, *(made_up("elfish", s, 0.9) for s in range(2))]), True)
    tables = {table.name: table for section in page.sections for table in section.tables}
    assert set(study.STUDY.headline) <= tables.keys()
    (row,) = tables["gaps"].rows
    assert row["proven"] == "optimal"
    assert 0 < row["elfish_greedy"] < 10
    assert row["kept_greedy"] < row["kept"] <= 1
    assert page.write(tmp_path / "page", tmp_path / "parts").is_file()
    assert (tmp_path / "parts" / "layers_lenet_neurons.svg").is_file()
