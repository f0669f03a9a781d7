"""The study of neuron masking: its phases, its page from made-up records, Table 2, and its statistics."""

import math
from pathlib import Path

import pytest

from mapgap.catalogue import registry
from mapgap.core import Budget
from mapgap.execution.run import run_method
from mapgap.execution.sweep import MethodJob
from mapgap.records.files import read_runs
from mapgap.records.record import RunRecord
from mapgap.records.runs import Runs
from mapgap.studies.neuron_masking import profile, study, trainings
from mapgap.studies.neuron_masking.statistics import holm, interval, p_value

REPORT = Path(__file__).parents[2] / "reports" / "neuron_masking"
#: Upper 2.5 % points of Student's t with 1, 2, ... degrees of freedom, as textbooks print them.
STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131)


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


def test_intervals_are_students():
    # n = 4, mean 2.5, s = 1.29099: 3.182 * 1.29099 / 2 = 2.054.
    centre, half = interval([1.0, 2.0, 3.0, 4.0])
    assert (centre, half) == (2.5, pytest.approx(2.054, abs=1e-3))
    assert interval([1.0]) == (1.0, None)
    for freedom, quantile in enumerate(STUDENT, 1):
        # One value 0 among ones: mean n / (n + 1), standard deviation 1 / sqrt(n + 1), its error 1 / (n + 1).
        centre, half = interval([0.0] + [1.0] * freedom)
        assert half * (freedom + 1) == pytest.approx(quantile, abs=5e-4)


def test_p_values_are_students():
    for freedom, quantile in enumerate(STUDENT, 1):
        # As above; a mean that is the quantile times its error away from 0 has p = 0.05.
        error = 1 / (freedom + 1)
        shift = quantile * error - freedom / (freedom + 1)
        values = [value + shift for value in [0.0] + [1.0] * freedom]
        assert p_value(values) == pytest.approx(0.05, abs=5e-5)
        assert p_value([-value for value in values]) == pytest.approx(p_value(values))
    # By hand, one degree of freedom (Cauchy): P(|t| >= 2) = 2 / pi * atan(1 / 2).
    assert p_value([1.0, 3.0]) == pytest.approx(2 / math.pi * math.atan(0.5))
    assert p_value([-1.0, 1.0]) == pytest.approx(1.0)
    assert p_value([1.0]) is None
    assert (p_value([2.0, 2.0]), p_value([0.0, 0.0])) == (0.0, 1.0)


def test_holm_by_hand():
    # Sorted 0.005, 0.01, 0.03, 0.04 times 4, 3, 2, 1: 0.02, 0.03, 0.06, and 0.04, which may not fall below 0.06.
    assert holm([0.01, 0.04, None, 0.03, 0.005]) == pytest.approx([0.03, 0.06, None, 0.06, 0.02])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []


def test_measures_of_a_curve():
    curve = [[0.0, 0.1], [1.5, 0.5], [3.0, 0.9], [4.5, 0.7]]
    assert [trainings.at(curve, t) for t in (0, 1, 2, 3, 4, 5)] == [0.1, 0.1, 0.5, 0.9, 0.9, 0.7]
    assert trainings.time_to(curve, 0.9, 8) == 3.0
    assert trainings.time_to(curve, 0.95, 8) == 8  # not reached
    assert trainings.overall(curve, 4) == pytest.approx((0.1 + 0.5 + 0.9 + 0.9) / 4)
    assert trainings.final(curve, 4) == pytest.approx(0.9)


def made_up(scheme: str, seed: int, accuracy: float, fleet: str = "2of4") -> RunRecord:
    return RunRecord(
        instance=f"elfish_digits_{fleet}",
        instance_hash=fleet,
        problem="neuron_masking",
        sense="max",
        method=f"train_{scheme}",
        kind="training",
        options={"iid": True, "cycles": 4},
        seed=seed,
        notes={"curve": [[float(t), accuracy if t else 0.1] for t in range(5)]},
    )


def test_claims_survive_the_correction_for_many():
    records = [made_up("elfish", s, 0.9 + 0.001 * s) for s in range(3)]
    records += [made_up("sync", s, 0.8 + 0.001 * s) for s in range(3)]
    records += [made_up("soft", s, 0.9 + 0.05 * (-1) ** s) for s in range(3)]
    records += [made_up("async", 0, 0.2)]
    rows = trainings.comparisons(trainings.Trainings(Runs(records))).rows
    claims = {(row["pair"], row["measure"]): row["claim"] for row in rows}
    assert claims["ELFISH minus Syn. FL", "final accuracy"] == "better"
    assert claims["ELFISH minus S.T. only", "final accuracy"] == "undecided"
    assert claims["ELFISH minus Asyn. FL", "final accuracy"] == "undecided"  # one seed has no interval
    difference = next(row for row in rows if row["pair"] == "ELFISH minus Syn. FL")
    assert difference["difference"] == pytest.approx(10.0)
    # One interval that excludes 0 is no claim among four tests: t = 5.2 with 2 degrees of freedom, p = 0.035.
    mixed = [made_up("elfish", s, 0.9 + 0.005 * s) for s in range(3)]
    mixed += [made_up("sync", s, 0.885) for s in range(3)] + [made_up("soft", s, 0.9 + 0.01 * s) for s in range(3)]
    row = trainings.comparisons(trainings.Trainings(Runs(mixed))).rows[0]
    assert abs(row["difference"]) > row["half"]
    assert row["p"] < 0.05 < row["adjusted"]
    assert row["claim"] == "undecided"


def test_pictures_by_number_of_stragglers_need_two_numbers():
    names = {p.name for p in trainings.section(Runs(made_up("elfish", s, 0.9) for s in range(2))).figures}
    assert names == {"fig3_2of4"}
    more = [made_up(m, s, 0.9, f"{k}of4") for m in ("elfish", "soft") for s in range(2) for k in (1, 4)]
    assert {"fig4_final", "fig4_fluctuation", "fig5"} <= {p.name for p in trainings.section(Runs(more)).figures}


def test_page_of_a_few_real_runs(tmp_path):
    instance = study.instance("elfish_lenet_straggler4", "neurons")
    methods = ("lagrangian", "elfish_greedy")
    records = [run_method(instance, name, Budget(time_s=60.0), isolate=False) for name in methods]
    page = study.page(Runs([*records, *(made_up("elfish", s, 0.9) for s in range(2))]), True)
    tables = {table.name: table for section in page.sections for table in section.tables}
    assert set(study.STUDY.headline) <= tables.keys()
    (row,) = tables["gaps"].rows
    assert row["proven"] == "optimal"
    assert 0 < row["elfish_greedy"] < 10
    assert row["kept_greedy"] < row["kept"] <= 1
    assert page.write(tmp_path / "page", tmp_path / "parts").is_file()
    assert (tmp_path / "parts" / "layers_lenet_neurons.svg").is_file()
