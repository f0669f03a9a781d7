"""Instances solved by hand. What every problem owes besides is in ``pytest --pyargs mapgap.contract``."""

import pytest

from mapgap.catalogue import registry
from mapgap.catalogue.files import load_instance
from mapgap.core import Budget, InputError
from unrelated_machines import PROBLEM, Instance, Plan
from unrelated_machines.library.compact import Compact, expand


def makespan(instance, method):
    result = registry.methods("unrelated_machines")[method].solve(instance, Budget(10.0))
    return PROBLEM.evaluate(instance, result.plan).objective


def test_evaluator_adds_up_the_jobs_of_every_machine():
    found = PROBLEM.evaluate(load_instance("machines_by_hand"), Plan(machines=(0, 1, 0)))
    assert (found.objective, found.terms["load"]) == (5 + 3, {"mill": 8, "lathe": 2})
    assert found.feasible


def test_evaluator_lists_every_broken_rule():
    instance = load_instance("machines_two_speeds")
    found = PROBLEM.evaluate(instance, Plan(machines=(0, 1, 2, 0, -1, 1)))
    assert [(v.rule, v.where) for v in found.violations] == [
        ("able", "render"),
        ("machine", "index"),
        ("machine", "backup"),
    ]
    (short,) = PROBLEM.evaluate(instance, Plan(machines=(1,))).violations
    assert (short.rule, short.amount) == ("jobs", 5)


@pytest.mark.parametrize("method", ["cpsat", "mip", "enumerate"])
@pytest.mark.parametrize(
    ("name", "optimum"),
    [
        ("machines_by_hand", 5),
        ("machines_min_min_trap", 2),
        # Backup on old: 40 there, any other job would end after 48; the rest on new: 18 + 12 + 9 + 4 + 3 = 46.
        # Backup on new: with render 34 there; in 11 ticks more it does at most index, and old needs 30 + 10 + 8 = 48
        # for the others, or thumbnails and checksum, and old needs 30 + 23 = 53.
        ("machines_two_speeds", 46),
    ],
)
def test_optimum_by_hand(name, optimum, method):
    assert makespan(load_instance(name), method) == optimum


def test_heuristics_fall_into_their_traps():
    assert makespan(load_instance("machines_min_min_trap"), "min_min") == 3
    assert (
        makespan(load_instance("machines_min_min_trap"), "fastest_machine") == 4
    )  # everything on the first of equal machines


def test_compact_form_rounds_times_up_and_names_what_is_wrong():
    fields = {"name": "x", "sizes": {"a": 7, "b": 4}, "speeds": {"m": 2}}
    assert expand(Compact(**fields)).times == ((4, 2),)
    with pytest.raises(InputError) as error:
        expand(Compact(**{**fields, "speeds": {"m": 0}}, unable={"n": ("a",), "m": ("bb",)}))
    assert error.value.problems == [
        "speeds.m: expected at least 1, found 0",
        "unable.n: expected a machine, found 'n'",
        "unable.m[0]: expected a job, found 'bb'; did you mean 'b'?",
    ]


def test_tables_of_another_shape_are_refused_by_place():
    with pytest.raises(ValueError, match=r"times\[1\] \(n\): expected 2 times, one per job, found 1"):
        Instance(name="x", machines=("m", "n"), jobs=("a", "b"), times=((1, 2), (3,)))


def test_an_instance_without_a_plan_says_why():
    lost = Instance(name="x", machines=("m",), jobs=("a", "b"), times=((1, None),))
    assert PROBLEM.diagnose(lost) == ["b: no machine can do it"]
    for method in registry.methods("unrelated_machines").values():
        assert method.solve(lost, Budget(10.0)).status == "INFEASIBLE"
