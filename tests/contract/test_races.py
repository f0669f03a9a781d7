"""What a race finds: every debt of an exact method and of the fast planner, each made by hand."""

from dataclasses import replace

import pytest

from mapgap.catalogue import registry
from mapgap.contract import races
from mapgap.contract.races import Races, lost, race, weaker
from mapgap.core import Budget, TracePoint
from mapgap.evidence.races import entrants
from mapgap.execution.run import run_method

PROBLEM = "multi_model_splitting"


@pytest.fixture(scope="module")
def records():
    instance = registry.library(PROBLEM).generate("wearables_4x4", 1)
    names = ("joint", "synergy", "ruin_and_recreate", "min_dev")
    return {name: run_method(instance, name, Budget(20.0), isolate=False) for name in names}


def findings(records, name, **changes):
    changed = {**records, name: replace(records[name], **changes)}
    return lost(changed, 20.0, 60.0)


def test_what_is_kept_is_not_reported(records):
    assert lost(records, 20.0, 60.0) == []


def test_a_worse_plan_or_none_is_reported(records):
    best = records["synergy"].objective
    assert findings(records, "joint", objective=10 * best)[0].startswith(f"joint: {10 * best}, and ")
    assert findings(records, "joint", objective=None)[0].startswith("joint: None, and ")
    (text,) = findings(records, "ruin_and_recreate", objective=10 * best)
    assert text == f"ruin_and_recreate: {10 * best}, and synergy has {best}"


def test_an_unheld_time_is_reported(records):
    assert findings(records, "joint", wall_s=81.0) == ["joint: 81.00 s, of 20"]


def test_a_late_first_plan_is_reported(records):
    late = (TracePoint(75.0, objective=records["joint"].objective),)
    (text,) = findings(records, "joint", trace=late, wall_s=76.0)
    assert text.startswith("joint: first plan after 75.00 s")


def test_a_forgotten_bound_is_reported(records):
    bound = records["joint"].bound
    trace = (*records["joint"].trace, TracePoint(0.5, bound=bound))
    (text,) = findings(records, "joint", trace=trace, bound=None)
    assert text == f"joint: ends with bound None, has announced {bound}"


def test_an_error_is_reported_and_nothing_else_of_that_run(records):
    assert findings(records, "joint", error="it died", objective=None) == ["joint: it died"]


def test_what_more_time_loses_is_reported(records):
    short = replace(records["joint"], status="FEASIBLE", time_limit_s=1.0)
    plan, bound = short.objective, short.bound
    none = "no plan exists"
    for changes, told in (
        ({}, []),
        ({"objective": plan - 1, "bound": bound + 1}, []),
        ({"objective": None, "bound": None}, [f"bound None in 20 s, {bound}", f"plan None in 20 s, {plan}"]),
        ({"objective": plan + 1}, [f"plan {plan + 1} in 20 s, {plan}"]),
        ({"bound": bound - 1}, [f"bound {bound - 1} in 20 s, {bound}"]),
        ({"status": "INFEASIBLE", "objective": None, "bound": None, "reason": none}, [f"plan None in 20 s, {plan}"]),
    ):
        found = weaker([short, replace(short, time_limit_s=20.0, **changes)])
        assert found == [f"joint: {text} in 1 s" for text in told]
    assert weaker([replace(short, error="it died")]) == ["joint: it died"]
    most = replace(short, sense="max")
    assert weaker([most, replace(most, objective=plan + 1, bound=bound - 1)]) == []


def test_brute_force_takes_no_part():
    names = {method.name for method in entrants(PROBLEM)}
    assert "enumerate" not in names
    assert {"joint", "cpsat", "mip", "synergy"} <= names
    assert sum(method.kind == "exact" for method in entrants(PROBLEM, every=False)) == 1


@pytest.mark.in_turn
def test_a_race_runs_everybody():
    instance = registry.library(PROBLEM).generate("tiny", 1)
    found = race(instance, 5.0, every=False)
    assert set(found) == {method.name for method in entrants(PROBLEM, every=False)}


@pytest.mark.in_turn
def test_a_race_in_the_file_is_not_run_again_and_a_torn_line_is(tmp_path, monkeypatch):
    instance, path = registry.library(PROBLEM).generate("tiny", 1), tmp_path / "races.jsonl"
    assert Races(path).lost(instance, 5.0) == []
    text = path.read_text()
    assert text.count("\n") == len(entrants(PROBLEM)) + 1
    assert Races(path).lost(instance, 5.0) == []
    assert path.read_text() == text

    def refused(*given):
        raise AssertionError("the race is known")

    monkeypatch.setattr(races, "race", refused)
    assert Races(path).lost(instance, 5.0) == []
    path.write_text(text[:-10])  # killed within the last line, which says that the race is over
    with pytest.raises(AssertionError, match="the race is known"):
        Races(path).lost(instance, 5.0)
    assert path.read_text() == "".join(text.splitlines(keepends=True)[:-1])
    assert Races(path).known == {}
