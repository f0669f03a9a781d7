"""Two runs that cannot both be right are named; runs that can be are left alone."""

import pytest
from records import record

from mapgap.evidence.contradictions import contradictions
from mapgap.records.runs import Runs
from mapgap.reporting.analysis import per_run


@pytest.mark.parametrize(
    ("claim", "words"),
    [
        (record(method="a", bound=11), "a claims bound 11, but b has a plan of objective 10"),
        (record(method="a", status="INFEASIBLE"), "a claims INFEASIBLE, but b has a plan of objective 10"),
        (
            record(method="a", objective=12, status="OPTIMAL"),
            "a claims OPTIMAL at 12, but b has a plan of objective 10",
        ),
        (record(method="a", objective=12, bound=12), "a claims bound 12, but b has a plan of objective 10"),
    ],
)
def test_a_claim_that_a_plan_refutes_is_found(claim, words):
    plan = record(method="b", objective=10)
    for runs in ([claim, plan], [plan, claim]):
        (found,) = contradictions(runs)
        assert (found.words, found.claim, found.fact) == (words, claim, plan)
        assert str(found) == f"i: {words}"


def test_for_a_maximisation_a_bound_lies_above():
    plan = record(method="b", objective=10, sense="max")
    assert contradictions([record(method="a", bound=11, sense="max"), plan]) == []
    (found,) = contradictions([record(method="a", bound=9, sense="max"), plan])
    assert "claims bound 9" in found.words


def test_one_contradiction_per_claim_and_against_the_best_plan():
    plans = [record(method="good", objective=10), record(method="better", objective=8)]
    claims = [record(method="a", bound=11), record(method="b", bound=9), record(method="c", bound=8)]
    assert [found.words.split(",")[0] for found in contradictions([*plans, *claims])] == [
        "a claims bound 11",
        "b claims bound 9",
    ]


def test_what_agrees_or_is_about_different_instances_is_no_contradiction():
    sound = [
        record("i", "exact", 10, 10),
        record("i", "greedy", 12, 9),
        record("i", "bound", bound=10),
        record("j", "exact", status="INFEASIBLE"),
        record("j", "greedy"),
    ]
    assert contradictions(sound) == []


def test_a_run_that_failed_claims_nothing():
    failed = record(method="a", bound=11, error="boom", stop="error")
    assert contradictions([failed, record(method="b", objective=10)]) == []
    assert contradictions([]) == []


@pytest.mark.parametrize("claim", [{"bound": 11}, {"status": "INFEASIBLE"}])
def test_where_a_plan_refutes_a_claim_no_gap_is_stated(claim):
    """Neither of the plan that is better than the bound, nor of one that seems to fit it."""
    runs = Runs([record(method="wrong", **claim), record(method="b", objective=10), record(method="c", objective=12)])
    (found,) = contradictions(runs)
    assert found.claim.method == "wrong"
    assert (runs.facts["i"].best, runs.facts["i"].bound, runs.facts["i"].gap) == (10, None, None)
    assert [row["gap"] for row in per_run(runs)] == [None, None, None]
    assert [row["gap_to_best"] for row in per_run(runs)] == [None, 0.0, pytest.approx(0.2)]


def test_bounds_on_either_side_of_the_best_plan_name_the_wrong_one():
    """9 <= 10 may hold; 11 does not, for there is a plan of 10."""
    bounds = [record(method="sound", bound=9), record(method="wrong", bound=11)]
    assert contradictions(bounds) == []
    (found,) = contradictions([*bounds, record(method="plan", objective=10)])
    assert (found.claim.method, found.fact.method) == ("wrong", "plan")
