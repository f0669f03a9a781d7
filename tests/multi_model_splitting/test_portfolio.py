"""The portfolio: optimal against brute force, never worse than a heuristic, and its record says who did what."""

import itertools
from types import SimpleNamespace

import pytest

from mapgap.catalogue import registry
from mapgap.contract.seeds import samples
from mapgap.core import Budget, SolveResult, Status, Stop
from mapgap.formulations.multi_model_splitting import cpsat, joint, portfolio
from mapgap.formulations.multi_model_splitting.params import Joint as Params
from mapgap.problems.multi_model_splitting.evaluate import evaluate
from mapgap.solvers.portfolio import Board, Member, Portfolio

METHODS = registry.methods("multi_model_splitting")
LIBRARY = registry.library("multi_model_splitting")


def solve(name, instance, time_s=60.0, **options):
    return METHODS[name].solve(instance, Budget(time_s).start(), **options)


def value(instance, result):
    return None if result.plan is None else evaluate(instance, result.plan).objective


@pytest.mark.in_turn
def test_fresh_seeds_end_with_the_optimum_of_brute_force():
    for seed in range(700, 720):
        instance = LIBRARY.generate("realistic", seed)
        exact, found = solve("enumerate", instance), solve("portfolio", instance)
        assert (found.status, value(instance, found)) == (exact.status, value(instance, exact)), seed
        assert found.status is Status.INFEASIBLE or found.bound == value(instance, exact)


@pytest.mark.parametrize("sample", samples(1, 4))
def test_more_work_never_ends_with_less(sample):
    """Pieces of the dedicated algorithm one by one: values fall, bounds grow, and they never cross."""
    for family, seed in itertools.product(("small", "mixed_6x4"), sample):
        instance = LIBRARY.generate(family, 720 + seed)
        start = solve("ruin_and_recreate", instance).plan
        algorithm = joint.Joint(instance, Budget(20.0).start(), start, Params(slice_s=0.2))
        seen = [(algorithm.value or 2**62, algorithm.bound)]
        for _ in algorithm.steps():
            seen.append((algorithm.value or 2**62, algorithm.bound))
        for (worse, weaker), (better, stronger) in itertools.pairwise(seen):
            assert better <= worse
            assert weaker <= stronger <= max(better, algorithm.top + 1)


def test_where_the_engine_never_answers_the_search_goes_on(monkeypatch):
    def silent(model, budget, **named):
        return SolveResult(Status.UNKNOWN, Stop.TIME)

    monkeypatch.setattr(cpsat, "prove", silent)
    monkeypatch.setattr(joint, "prove", silent)
    instance = LIBRARY.generate("mixed_14x8", 404)
    quick = value(instance, solve("ruin_and_recreate", instance))

    class Better(Exception):
        """A plan that the quick planner did not find."""

    def listen(plan, bound):
        if plan is not None and value(instance, SolveResult(Status.FEASIBLE, Stop.TIME, plan)) < quick:
            raise Better

    with pytest.raises(Better):
        METHODS["portfolio"].solve(instance, Budget(300.0, listener=listen).start())


def test_who_rests_waits_for_a_piece_of_the_others():
    order = []

    def restless(board):
        while True:
            order.append("search")
            yield True

    def working(board):
        for _ in range(5):
            order.append("engine")
            yield
        board.infeasible = "enough"
        yield

    members = [Member("engine", working), Member("search", restless)]
    board = Board(SimpleNamespace(), Budget(30.0).start(), lambda *_: None)
    Portfolio(first=[], turns=members).run(board)
    assert order.count("search") <= order.count("engine") + 1


def test_an_instance_that_diagnosis_refuses_is_infeasible():
    instance = LIBRARY.generate("tiny", 0)
    devices = tuple(device.model_copy(update={"layers": 0}) for device in instance.devices)
    found = portfolio.run(instance.changed(devices=devices), Budget(5.0).start())
    assert (found.status, found.stop) == (Status.INFEASIBLE, Stop.PROVED)
