"""The search for plans inside ``stage_mip``, and the rounds that it shares with ``anneal``."""

import pytest

from mapgap.catalogue.files import load_instance
from mapgap.core import Budget, InputError
from mapgap.evidence.ledger import Ledger
from mapgap.formulations.suboperation_mapping.stage_mip import run
from mapgap.formulations.suboperation_mapping.stage_plans import Plans, parts_of
from mapgap.formulations.suboperation_mapping.stage_search import Reply, known
from mapgap.formulations.suboperation_mapping.stage_state import State
from mapgap.heuristics.suboperation_mapping.search.pool import Rounds, Search
from mapgap.heuristics.suboperation_mapping.search.starts import simple_starts
from mapgap.instances.suboperation_mapping import LIBRARY
from mapgap.problems.suboperation_mapping import PROBLEM, Plan
from mapgap.problems.suboperation_mapping.lowered.mapped import best_single
from mapgap.problems.suboperation_mapping.lowered.ratios import partitions


def state_of(instance, seconds=300.0):
    ratios = list(partitions(instance.batch, len(instance.accelerators)))
    return State.begin(instance, Budget(seconds).start(), ratios, False)


def test_a_start_is_the_first_plan_and_no_plan_is_worse():
    # A proven optimum, which steps find only after seconds: what is announced first can only be the start.
    instance = load_instance("mtrain_c1_alexnet_0p125gbs")
    path = Ledger.load().plan_path(instance.name)
    optimum = PROBLEM.evaluate(instance, Plan.model_validate_json(path.read_text())).objective
    for start in (path, path.parent):
        told = []
        budget = Budget(0.5, listener=lambda plan, bound, told=told: told.append(plan) if plan else None).start()
        assert run(instance, budget, start=str(start)).claimed == optimum
        assert PROBLEM.evaluate(instance, told[0]).objective == optimum


def test_a_start_of_another_ratio_than_the_one_asked_for_is_refused(tmp_path):
    instance = LIBRARY.generate("small", 2)
    path = tmp_path / "plan.json"
    path.write_text(best_single(instance).plan.model_dump_json())
    only = next(ratio for ratio in partitions(instance.batch, len(instance.accelerators)) if min(ratio) > 0)
    with pytest.raises(InputError, match=r"start: expected a plan of the ratio .* found \["):
        run(instance, Budget(1.0).start(), ratio=",".join(map(str, only)), start=str(path))


@pytest.mark.parametrize("seed", range(4))
def test_rounds_of_one_ratio_stay_with_it(seed):
    # Nothing is proven of other ratios when one is asked for, so a plan of another one would be no answer.
    instance = LIBRARY.generate("small", seed)
    only = next(ratio for ratio in partitions(instance.batch, len(instance.accelerators)) if min(ratio) > 0)
    search = Search(instance, Budget(300.0, seed=seed).start().quiet())
    for start in simple_starts(instance, only):
        search.offer(start)
    rounds = Rounds(search, only)
    assert all(rounds.next() for _ in range(8))
    assert set(search.pool) == {only}
    result = run(instance, Budget(1.0, seed=seed).start(), ratio=",".join(map(str, only)))
    assert parts_of(result.plan.ratio) == only
    assert result.bound is None


def test_the_first_plan_comes_before_any_bound():
    # What is killed early must have told a plan: nothing is solved before the first one is announced.
    class Enough(Exception):
        """A bound has come."""

    events = []

    def listener(plan, bound):
        events.append("plan" if plan is not None else "bound")
        if events[-1] == "bound":
            raise Enough

    with pytest.raises(Enough):
        run(LIBRARY.generate("small", 1), Budget(300.0, listener=listener).start())
    assert events[0] == "plan"


def test_what_a_question_finds_is_annealed_further():
    # A plan that comes from an LP is a start like any other: the search must not fall behind it.
    instance = LIBRARY.generate("small", 2)
    state = state_of(instance)
    weak = best_single(instance)
    strong = Plans(state_of(instance), None)
    for _ in range(30):
        strong.round()
    plans = Plans(state, None)
    best = strong.search.best
    assert best.makespan < weak.makespan
    state.take(Reply(parts_of(best.lowered.ratio), known(0, best)))
    plans.learn()
    assert plans.search.best.makespan <= best.makespan
    assert not state.news
    plans.round()
    assert PROBLEM.evaluate(instance, state.ratios[state.best].plan).objective == state.makespan <= best.makespan


def test_annealing_has_no_more_than_its_share():
    # With all the time spent on annealing no bound would ever rise.
    plans = Plans(state_of(LIBRARY.generate("small", 3), seconds=1.0), None)
    plans.spent = plans.budget.elapsed_s + 1.0
    assert not plans.due()
    plans.spent = 0.0
    assert plans.due()
