"""Plans of ``stage_mip``: a start, the only ratio, what comes first."""

import pytest

from mapgap.catalogue.files import load_instance
from mapgap.core import Budget, InputError
from mapgap.evidence.ledger import Ledger
from mapgap.formulations.suboperation_mapping import stage_search as search
from mapgap.formulations.suboperation_mapping.chain_plan import chain_plans
from mapgap.formulations.suboperation_mapping.params import Stage
from mapgap.formulations.suboperation_mapping.ratio_sweep import parts_of
from mapgap.formulations.suboperation_mapping.stage_mip import run
from mapgap.instances.suboperation_mapping import LIBRARY
from mapgap.problems.suboperation_mapping import PROBLEM, Plan
from mapgap.problems.suboperation_mapping.lowered.mapped import best_single
from mapgap.problems.suboperation_mapping.lowered.ratios import partitions


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


@pytest.mark.in_turn
@pytest.mark.parametrize("seed", range(4))
def test_plans_of_one_ratio_stay_with_it(seed):
    # Nothing is proven of other ratios when one is asked for, so a plan of another one would be no answer.
    instance = LIBRARY.generate("small", seed)
    only = next(ratio for ratio in partitions(instance.batch, len(instance.accelerators)) if min(ratio) > 0)
    result = run(instance, Budget(2.0, seed=seed).start(), ratio=",".join(map(str, only)))
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
    assert "bound" in events


@pytest.mark.in_turn
def test_a_ratio_has_plans_by_twice_as_many_labels_as_long_as_they_are_better(monkeypatch):
    """On cluster 1; none is better than the optimum, which the ledger certifies, and the last ones find."""
    instance, beams, better = load_instance("mtrain_c1_resnet56_7p5gbs"), [], []
    best = Ledger.load().entries[instance.name].certified
    search.prepare(instance, 1.0, Stage())

    def noted(diagram, root, goal, lowered, params, budget):
        beams.append(params.beam)
        found = chain_plans(diagram, root, goal, lowered, params, budget)
        makespans = [plan.makespan for plan in found]
        assert makespans
        assert len({*makespans}) == len(makespans)
        return found

    monkeypatch.setattr(search, "chain_plans", noted)
    goal = best + best // 500
    for _ in range(100):  # plans take turns with bounds
        if better and not better[-1]:
            break
        before, plan = len(beams), search.chain((64, 0), goal, 60.0, 1).result
        assert len(beams) == before or plan.plan is not None
        if plan.plan is not None:
            assert PROBLEM.evaluate(instance, plan.plan).objective == plan.claimed >= best
            better.append(plan.claimed < goal)
            goal = min(goal, plan.claimed)
    assert beams == [30 * 2**k for k in range(len(better))]
    assert better == [True] * (len(better) - 1) + [False]
    assert goal == best
