"""The portfolio of sub-operation mapping: never worse than a heuristic, with a bound, and it says who did what."""

from itertools import islice

import pytest

from mapgap.catalogue import registry
from mapgap.catalogue.files import load_instance
from mapgap.contract.seeds import seeds
from mapgap.core import Budget, Status
from mapgap.formulations.suboperation_mapping import enumerate as enumeration
from mapgap.formulations.suboperation_mapping import portfolio, stage_mip
from mapgap.formulations.suboperation_mapping.params import Portfolio, Stage
from mapgap.formulations.suboperation_mapping.stage_state import State
from mapgap.instances.suboperation_mapping import LIBRARY
from mapgap.problems.suboperation_mapping import PROBLEM
from mapgap.problems.suboperation_mapping.lowered.ratios import partitions
from mapgap.solvers.portfolio import Board

METHODS = registry.methods("suboperation_mapping")


def budget(seconds=60.0, seed=0, **options):
    return Budget(time_s=seconds, seed=seed, **options).start()


@pytest.mark.in_turn
@pytest.mark.parametrize(("family", "seed"), [("small", 5001), ("branching", 5003), ("tiny", 1)])
def test_the_annealing_is_the_method_of_that_name_round_by_round(family, seed):
    # Whatever the time, then: as long as it is alone, who runs the method for as long has no better plan.
    instance = LIBRARY.generate(family, seed)
    members = portfolio.Members(Board(instance, budget(seed=3), PROBLEM.evaluate), instance, Portfolio())
    for steps in (members.plan(members.board), islice(members.anneal(members.board), 40)):
        assert not any(steps)
    rounds = members.search.rounds
    assert rounds > 20
    alone = METHODS["anneal"].solve(instance, budget(seed=3), rounds=rounds)
    assert alone.plan == members.board.plan
    quick = METHODS["annealed_converting"].solve(instance, budget())
    assert quick.plan is None or members.board.value <= PROBLEM.evaluate(instance, quick.plan).objective


def test_the_annealing_is_alone_for_so_many_steps():
    instance = LIBRARY.generate("small", 5001)
    ends = []
    for alone in (1, 100_000):
        board = Board(instance, budget(), PROBLEM.evaluate)
        members = portfolio.Members(board, instance, Portfolio(alone=alone))
        assert not any(members.plan(board))
        assert not any(members.anneal(board))
        ends.append((members.rounds.steps, members.search.rounds))
    (one, first), (many, rounds) = ends
    assert first == 1
    assert many >= 100_000 > many - 4 * one  # rounds grow
    assert rounds > 2


@pytest.mark.in_turn
@pytest.mark.parametrize("name", ["mtrain_c1_alexnet_3gbs", "mtrain_c2_resnet18_7p5gbs"])
def test_without_time_there_is_a_plan_and_a_bound(name):
    instance = load_instance(name)
    none, some = (portfolio.run(instance, budget(seconds)) for seconds in (0.0, 2.0))
    assert None not in (none.plan, none.bound)
    assert some.claimed <= none.claimed
    assert some.bound >= none.bound > 0


def test_a_longer_run_of_the_stage_mip_goes_on_where_a_shorter_one_ends():
    """Steps are counted, not seconds: what is known after some of them does not depend on the limit."""
    instance = load_instance("mtrain_c1_alexnet_3gbs")

    def after(limit, pieces):
        whole = stage_mip.StageMip(instance, budget(limit))
        known = []
        for _, waits in zip(range(pieces), whole.steps(), strict=False):
            assert not waits
            known.append((whole.state.bound, whole.state.makespan))
        return known

    long = after(1000.0, 12)
    assert after(500.0, 8) == long[:8]
    assert [bound for bound, _ in long] == sorted(bound for bound, _ in long)


@pytest.mark.in_turn
def test_every_rung_of_the_ladder_is_higher_than_the_one_before():
    instance = load_instance("mtrain_c1_alexnet_3gbs")
    told = []
    found = stage_mip.run(instance, budget(6.0, listener=lambda plan, bound: told.append(bound)))
    ladder = found.notes["ladder"]
    bounds = [bound for _, bound in ladder]
    assert bounds == sorted(bounds)
    assert found.notes["rung"] == ladder[-1][0]
    assert [rung for rung, _ in ladder][:2] == ["path", "flow"]
    assert set(bounds) <= set(told)


@pytest.mark.parametrize("seed", range(4))
def test_processes_find_what_one_process_finds(seed):
    """Two workers: a process answers questions while the annealing works."""
    instance = LIBRARY.generate("tiny", 740 + seed)
    one, two = (portfolio.run(instance, budget(workers=workers)) for workers in (1, 2))
    assert (one.status, one.claimed, one.bound) == (two.status, two.claimed, two.bound)


@pytest.mark.parametrize("seed", seeds(2, 8))
def test_without_an_ingredient_bounds_stay_valid(seed):
    instance = LIBRARY.generate("tiny", seed)
    truth = enumeration.run(instance, budget())
    for off in ("boxes", "rounding", "destructive", "staged"):
        found = stage_mip.run(instance, budget(2.0), params=Stage(**{off: False}))
        if truth.status is Status.OPTIMAL:
            assert found.bound <= truth.claimed
            assert found.claimed is None or found.claimed >= truth.claimed


def test_a_plan_of_others_is_learned():
    instance = LIBRARY.generate("small", 3)
    ratios = partitions(instance.batch, len(instance.accelerators))
    state = State.begin(instance, budget(), ratios, partial=False)
    plan = METHODS["annealed_converting"].solve(instance, budget()).plan
    makespan = PROBLEM.evaluate(instance, plan).objective
    state.learn(plan, makespan)
    assert state.makespan == makespan
    assert state.news == [plan]
    state.learn(plan, makespan)  # nothing new
    assert state.news == [plan]


def test_parameters_reach_the_members():
    assert {"hot", "question_s", "window", "eager", "prices"} <= set(METHODS["portfolio"].defaults)
    instance = LIBRARY.generate("small", 5)
    found = portfolio.run(instance, budget(1.0), params=Portfolio(boxes=False, window=0))
    assert "windows" not in found.notes["used_s"]
    assert not {"boxes", "places"} & {rung for rung, _ in found.notes["ladder"]}
    assert found.notes["ladder"][-1][1] <= found.bound
