"""A study does its runs phase by phase, resumes them, and tells which tables are its headline."""

import os
from pathlib import Path

import pytest
from cli_support import PLUGIN, tiny

from mapgap.catalogue import registry
from mapgap.contract.seeds import some
from mapgap.core import InputError
from mapgap.core.machine import machine_load
from mapgap.evidence.ledger import Ledger
from mapgap.execution.sweep import MethodJob, RunEnded, SweepBegan
from mapgap.records.files import read_runs
from mapgap.records.record import RunRecord
from mapgap.records.runs import Runs
from mapgap.reporting import study
from mapgap.reporting.report import Page, Section
from mapgap.reporting.tables import Column, Table

REPORTS = Path(__file__).parents[2] / "reports"


def page(records, quick):
    rows = [{"seed": record.seed, "objective": record.objective} for record in records]
    table = Table("values", "Values", [Column("seed", "seed"), Column("objective", "objective")], rows)
    return Page("a study", ["lead"], [Section("s", tables=[table, Table("other", "Other", [], [])])])


@pytest.fixture
def toy(monkeypatch):
    """A study of two phases whose runs are done by a plug-in in this process."""

    class Job(MethodJob):
        def execute(self, plugins=(), tell=None):
            return super().execute((PLUGIN,))

    def phases(quick):
        instance = tiny()
        jobs = [Job(instance, "t_good", 5.0, seed=seed) for seed in range(3)]
        return [study.Phase("first", jobs[:1]), study.Phase("second", jobs[: 2 if quick else 3], parallel=10**6)]

    made = study.Study("toy", "Toy", "suboperation_mapping", phases, page, ["values"])
    monkeypatch.setattr(study, "find_study", lambda name: made)
    with registry.plugins_of_this_run():
        registry.load_plugin(PLUGIN)
        yield made


def test_phases_runs_and_headline_are_told(toy, tmp_path):
    told = []
    written = study.run_study("toy", out=tmp_path, tell=told.append)
    assert written == tmp_path / "report.html"
    assert written.exists()
    assert [(e.name, e.runs) for e in told if isinstance(e, study.PhaseBegan)] == [("first", 1), ("second", 3)]
    sweeps = [event for event in told if isinstance(event, SweepBegan)]
    assert [(event.total, event.done) for event in sweeps] == [(1, 0), (3, 1)]  # one run is in both phases
    assert all(event.parallel <= event.cores for event in sweeps)
    assert len([event for event in told if isinstance(event, RunEnded)]) == 3
    assert isinstance(told[-1], study.PageWritten)
    assert (told[-1].page, [table.name for table in told[-1].headline]) == (written, ["values"])
    assert [row["seed"] for row in told[-1].headline[0].rows] == [0, 1, 2]


def test_a_study_packs_its_runs_and_goes_on_with_packed_ones(toy, tmp_path):
    study.run_study("toy", out=tmp_path, quick=True)
    assert {path.name for path in tmp_path.glob("runs*")} == {"runs.jsonl.gz"}
    told = []
    study.run_study("toy", out=tmp_path, tell=told.append)
    assert [(event.total, event.done) for event in told if isinstance(event, SweepBegan)] == [(1, 1), (3, 2)]
    assert {path.name for path in tmp_path.glob("runs*")} == {"runs.jsonl.gz"}
    assert [row["seed"] for row in told[-1].headline[0].rows] == [0, 1, 2]


def test_a_page_can_be_made_of_the_runs_that_are_there(toy, tmp_path):
    study.run_study("toy", out=tmp_path, quick=True)
    told = []
    study.run_study("toy", out=tmp_path, report_only=True, tell=told.append)
    assert [type(event) for event in told] == [study.PageWritten]
    assert [row["seed"] for row in told[0].headline[0].rows] == [0, 1]


def test_an_unknown_study_is_an_input_error():
    with pytest.raises(InputError, match=r"study: 'neuron_maskng': expected one of .* or all; did you mean"):
        study.run_study("neuron_maskng")


@pytest.mark.in_turn
@pytest.mark.parametrize("name", some(6, sorted(registry.modules("studies"))))
def test_every_small_version_has_a_page(name):
    """Of the committed runs of what the small version runs; only its times are shorter."""
    if study.is_gathering(name):
        pytest.skip("has no runs of its own")
    found = study.find_study(name)
    small = {job.instance.content_hash for phase in found.phases(True) for job in phase.jobs}
    runs = Runs(r for r in read_runs(REPORTS / name / study.RUNS) if r.instance_hash in small)
    known = Ledger.load().references(runs) if found.knows else Runs()
    assert found.page(runs + known, True).html()


@pytest.mark.parametrize(
    ("loads", "told"),
    [
        # of 0.1, 0.5 and 1.5 the middle one is the median and the last one the most
        (
            [0.5, 1.5, 0.1],
            "run 0.5 processes wanted each core at the median, 1.5 at most, other runs of this study among them.",
        ),
        ([0.5, None, None], "among them; of 2 runs this is not recorded."),
        ([None], "How busy the machine was is not recorded."),
    ],
)
def test_a_page_tells_how_busy_the_machine_was(loads, told):
    runs = [RunRecord("x", "x", "p", "min", "m", "exact", load=load) for load in loads]
    known = RunRecord("x", "x", "p", "min", "m", "reference", load=9.0)
    assert study.load_told(Runs([*runs, known])).endswith(told)


def test_a_system_that_does_not_tell_its_load_is_no_quiet_one(monkeypatch):
    monkeypatch.delattr(os, "getloadavg")
    assert machine_load() is None
