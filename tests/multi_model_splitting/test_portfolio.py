"""The portfolio: optimal against brute force, never worse than a heuristic, and its record says who did what."""

import itertools
from types import SimpleNamespace

import pytest

from mapgap.catalogue import registry
from mapgap.contract.seeds import samples, seeds, some
from mapgap.core import Budget, SolveResult, Status, Stop
from mapgap.execution.run import run_method
from mapgap.formulations.multi_model_splitting import cpsat, joint, portfolio
from mapgap.formulations.multi_model_splitting.params import Joint as Params
from mapgap.problems.multi_model_splitting.evaluate import evaluate
from mapgap.solvers.portfolio import Board, Member, Portfolio

METHODS = registry.methods("multi_model_splitting")
LIBRARY = registry.library("multi_model_splitting")
HEURISTICS = [name for name, method in METHODS.items() if method.kind in ("published", "baseline")]


def solve(name, instance, time_s=60.0, **options):
    return METHODS[name].solve(instance, Budget(time_s).start(), **options)


def value(instance, result):
    return None if result.plan is None else evaluate(instance, result.plan).objective


@pytest.mark.parametrize("family", ["tiny", "realistic"])
def test_fresh_seeds_end_with_the_optimum_of_brute_force(family):
    for seed in range(700, 720):
        instance = LIBRARY.generate(family, seed)
        exact, found = solve("enumerate", instance), solve("portfolio", instance)
        assert (found.status, value(instance, found)) == (exact.status, value(instance, exact)), seed
        assert found.status is Status.INFEASIBLE or found.bound == value(instance, exact)


@pytest.mark.in_turn
@pytest.mark.parametrize("family", some(2, ["small", "full", "wearables_6x4", "mixed_10x8", "large_models_20x16"]))
@pytest.mark.parametrize("seed", seeds(1, 4))
def test_never_worse_than_any_heuristic(family, seed):
    """The portfolio has as long as all of them together and a little more, whatever else the machine does."""
    instance, begun = LIBRARY.generate(family, 720 + seed), Budget(300.0).start()
    others = {name: value(instance, solve(name, instance, 3.0)) for name in HEURISTICS}
    found = value(instance, solve("portfolio", instance, 3.0 + begun.elapsed_s))
    for name, other in others.items():
        assert other is None or found <= other, name


def test_with_no_time_there_is_no_plan_and_no_false_word():
    found = solve("portfolio", LIBRARY.generate("small", 720), 0.0)
    assert found.status in (Status.UNKNOWN, Status.FEASIBLE)


def test_the_record_names_members():
    instance = LIBRARY.generate("small", 3)
    record = run_method(instance, "portfolio", Budget(30.0), isolate=False)
    members = METHODS["portfolio"].members
    assert record.status is Status.OPTIMAL
    assert record.found_by in members
    assert record.proved_by in members
    assert set(record.notes["used_s"]) == set(members)


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
