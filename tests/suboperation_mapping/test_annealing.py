"""Annealing of sub-operation mappings, the incremental timing under it, step-aligned ratios and the quick planner."""

import random
import time
from functools import cache
from itertools import pairwise

import numpy as np
import pytest

from mapgap.catalogue import registry
from mapgap.catalogue.files import load_instance
from mapgap.contract.seeds import seeds
from mapgap.core import Budget, InputError, Status, Stop
from mapgap.heuristics.suboperation_mapping import annealed_converting
from mapgap.heuristics.suboperation_mapping.anneal import more
from mapgap.heuristics.suboperation_mapping.mtrain import mtrain_converting
from mapgap.heuristics.suboperation_mapping.params import Annealing
from mapgap.heuristics.suboperation_mapping.search import incremental, shortening
from mapgap.heuristics.suboperation_mapping.search.pool import Graph, Search, ratio_moves, transferred
from mapgap.heuristics.suboperation_mapping.search.step_aligned import step_aligned_ratios, work_tables
from mapgap.instances.suboperation_mapping import LIBRARY
from mapgap.problems.suboperation_mapping import PROBLEM
from mapgap.problems.suboperation_mapping.lowered.arrays import lower
from mapgap.problems.suboperation_mapping.lowered.mapped import Mapped, alone
from mapgap.problems.suboperation_mapping.lowered.timing import operation_ticks

METHODS = registry.methods("suboperation_mapping")


@cache
def generated(family, seed):
    return LIBRARY.generate(family, seed)


def value(name, instance, budget=None, **options):
    """Makespan of the plan of a method, or None; the plan is checked by the evaluator."""
    result = METHODS[name].solve(instance, budget or Budget(300.0), **options)
    if result.plan is None:
        assert result.status in (Status.UNKNOWN, Status.INFEASIBLE)
        return None
    evaluation = PROBLEM.evaluate(instance, result.plan)
    assert evaluation.feasible, evaluation.violations
    return evaluation.objective


def random_ratio(instance, rng):
    cuts = sorted(rng.randint(0, instance.batch) for _ in range(len(instance.accelerators) - 1))
    return tuple(b - a for a, b in zip([0, *cuts], [*cuts, instance.batch], strict=True))


# --- incremental timing -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", ["tiny", "small", "branching", "realistic"])
def test_incremental_timing_is_timing_anew(family):
    # Several relocations at once, with and without a limit that cuts the trial, some of them made and some taken back.
    rng = random.Random(3)
    for seed in range(25):
        instance = generated(family, seed)
        lowered = lower(instance, random_ratio(instance, rng))
        n, count = lowered.n, lowered.accelerators
        timing = lowered.timing
        location = np.array([rng.randrange(count) for _ in range(n)])
        related = incremental.relate(timing, lowered.topological)
        state = incremental.stand(timing, related, location, lowered.topological)
        change = incremental.no_change(n, count)
        for step in range(20):
            before = (state.location.copy(), state.duration.copy())
            for _ in range(rng.choice((1, 1, 3))):
                incremental.relocate(timing, related, state, change, rng.randrange(n), rng.randrange(count), step)
            if change.counts[0] == 0:
                continue
            wanted = lowered.makespan(state.location, state.sequence)
            anew = [operation_ticks(timing, o, state.location[o], state.location) for o in range(n)]
            assert state.duration.tolist() == anew
            first = incremental.extent(state, change)
            limit = wanted + rng.choice((-1, 0, 10**6))
            found = incremental.trial_makespan(timing, related, state, change, first, change.counts[2], limit)
            assert found == (wanted if wanted <= limit else -1)
            if rng.random() < 0.5 and found >= 0:
                incremental.settle(timing, related, state, first)
                incremental.forget(change)
                assert state.end.tolist() == lowered.timetable(state.location, state.sequence)[1].tolist()
            else:
                incremental.undo(state, change)
                assert (state.location == before[0]).all()
                assert (state.duration == before[1]).all()
            assert not change.less.any()


@pytest.mark.parametrize("family", ["tiny", "small", "branching", "realistic"])
def test_a_move_is_taken_if_and_only_if_timing_anew_says_that_it_shortens(family):
    # Bounds and the stop of the walk spare most of the timing; a move that helps must never be among what they refuse.
    rng = random.Random(4)
    for seed in range(15):
        instance = generated(family, seed)
        lowered = lower(instance, random_ratio(instance, rng))
        n, count = lowered.n, lowered.accelerators
        location = np.array([rng.randrange(count) for _ in range(n)])
        related = incremental.relate(lowered.timing, lowered.topological)
        state = incremental.stand(lowered.timing, related, location, lowered.topological)
        makespan = lowered.makespan(location, lowered.topological)
        visit = shortening.visits(lowered.timing, state)
        assert state.duration[visit.marked].sum() == makespan
        shortening.begin(state, visit)
        for o in lowered.topological:
            shortening.arrive(state, visit, o)
            for target in set(range(count)) - {int(location[o])}:
                anew = location.copy()
                anew[o] = target
                end = lowered.timetable(anew, lowered.topological)[1]
                found = shortening.shortens(lowered.timing, related, state, visit, o, target)
                assert found == (end.max() < makespan)
                assert visit.trial.tolist() == (end if found else state.end).tolist()
                assert not visit.more.any()
                visit.trial[:] = state.end
            shortening.leave(state, visit, o)


# --- ratios -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["mtrain_c1_resnet18_3gbs", "mtrain_c3_alexnet_3gbs", "mtrain_scale_6fpga_resnet18_3gbs"]
)
def test_step_aligned_ratios_reach_the_least_time(name):
    # Share b on accelerator b: no ratio over the same accelerators is done in less, and all but one share fill a step.
    instance = load_instance(name)
    work, batch = work_tables(instance), instance.batch
    found = step_aligned_ratios(instance)
    assert len(found) == len(set(found))
    least = min(max(work[b][k] for b, k in enumerate(ratio)) for ratio in found)
    for ratio in found:
        assert sum(ratio) == batch
        assert min(ratio) >= 0
    capacities = [max(k for k in range(batch + 1) if ticks[k] < least) for ticks in work]
    assert sum(capacities) < batch  # in less time all accelerators together do not get through the batch


def test_a_ratio_of_full_tiles_is_found():
    # Tiles of 16 and 64 samples: 48 + 16 fills whole tiles of both.
    assert (48, 16) in step_aligned_ratios(load_instance("mtrain_c1_resnet18_3gbs"))


@pytest.mark.parametrize("seed", range(10))
def test_neighbours_are_ratios(seed):
    instance, rng = generated("branching", seed), random.Random(seed)
    if len(instance.accelerators) < 2:
        return
    draw, ratio = ratio_moves(instance), random_ratio(instance, rng)
    for _ in range(50):
        other = draw(ratio, rng)
        assert sum(other) == instance.batch
        assert min(other) >= 0
        assert sum(a != b for a, b in zip(ratio, other, strict=True)) == 2
        ratio = other


@pytest.mark.parametrize("family", ["small", "branching"])
def test_a_mapping_moves_to_any_other_ratio(family):
    # New shares appear and others vanish; the order stays one that respects all precedences.
    rng = random.Random(6)
    for seed in range(20):
        instance = generated(family, seed)
        lowered = lower(instance, random_ratio(instance, rng))
        location = np.array([rng.randrange(lowered.accelerators) for _ in range(lowered.n)])
        start, end = lowered.timetable(location, lowered.topological)
        parent = Mapped(lowered, location, lowered.topological, start, end)
        graph = Graph.of(instance, random_ratio(instance, rng))
        places, sequence = transferred(parent, graph)
        plan = graph.lowered.plan(places, sequence)
        assert PROBLEM.evaluate(instance, plan).objective == graph.lowered.makespan(places, sequence)
        kept = dict(zip(lowered.operations, location.tolist(), strict=True))
        for operation, a in zip(graph.lowered.operations, places.tolist(), strict=True):
            assert kept.get(operation, a) == a


# --- methods ----------------------------------------------------------------------------------------------------


# DRAM leaves few plans of the first two: one needs more rounds than operations, the other a high price of DRAM.
@pytest.mark.parametrize("seed", [2, 437, *(seed for seed in seeds(5, 25) if seed != 2)])
def test_anneal_finds_the_optimum_of_tiny_instances(seed):
    instance = generated("tiny", seed)
    optimum = value("enumerate", instance)
    found = value("anneal", instance)
    assert (found is None) == (optimum is None)
    assert found is None or found == optimum


@pytest.mark.parametrize("family", ["tiny", "small", "branching", "realistic"])
def test_quick_planner_is_never_worse_than_what_it_starts_from(family):
    for seed in range(12):
        instance = generated(family, seed)
        ours = value("annealed_converting", instance)
        for name in ("mtrain_converting", "mtrain_converting_makespan", "single_accelerator"):
            other = value(name, instance)
            assert other is None or (ours is not None and ours <= other)


def test_anneal_announces_at_once_and_keeps_the_budget():
    # The first plan comes before any search; every later one is better; the last one is returned.
    instance = load_instance("mtrain_scale_4fpga_resnet18_3gbs")
    told = []
    budget = Budget(1.0, listener=lambda plan, bound: told.append(PROBLEM.evaluate(instance, plan).objective))
    begun = time.process_time()
    result = METHODS["anneal"].solve(instance, budget.start())
    assert time.process_time() - begun < budget.time_s + 1
    assert result.stop is Stop.TIME
    assert told[0] == value("single_accelerator", instance)
    *better, last = told  # the result is announced once more
    assert all(b < a for a, b in pairwise(better))
    assert last == PROBLEM.evaluate(instance, result.plan).objective == better[-1]


def test_anneal_repeats_for_a_seed_where_it_ends_by_rounds():
    instance = load_instance("mtrain_c1_alexnet_3gbs")
    plans = [METHODS["anneal"].solve(instance, Budget(300, seed=s), rounds=2) for s in (1, 1, 2)]
    assert plans[0].plan == plans[1].plan
    assert {result.notes["rounds"] for result in plans} == {2}


def test_a_parameter_changes_the_search_and_is_a_setting_of_the_method():
    instance = load_instance("mtrain_c1_alexnet_3gbs")
    method = METHODS["anneal"]
    assert {"hot", "patience", "rounds", "start"} <= set(method.settings)
    plain, warm = (method.solve(instance, Budget(60, seed=1), rounds=4, **given) for given in ({}, {"hot": [0.03]}))
    assert plain.plan != warm.plan


def test_annealing_respects_a_dram_that_binds():
    # The least capacity that single accelerators need: most relocations break it, and the plan must not.
    instance = generated("small", 4)
    lowered = lower(instance, (instance.batch, *[0] * (len(instance.accelerators) - 1)))
    terms = PROBLEM.evaluate(instance, alone(lowered, 0).plan).terms
    peak = max(terms["peak_memory"].values())
    tight = instance.model_copy(
        update={"accelerators": tuple(a.model_copy(update={"memory": peak}) for a in instance.accelerators)}
    )
    search = Search(tight, Budget(300.0))
    assert search.offer(alone(lower(tight, lowered.ratio), 0))
    start = search.best
    for turn in range(4):
        search.anneal(start.lowered.ratio, start, 0.05, 5000, turn)
    evaluation = PROBLEM.evaluate(tight, search.best.plan)
    assert evaluation.feasible
    assert evaluation.objective <= start.makespan


def test_anneal_starts_from_a_plan_file(tmp_path):
    # A plan stays feasible, and is no slower, where the bandwidth is larger.
    slow, fast = load_instance("mtrain_c1_alexnet_1gbs"), load_instance("mtrain_c1_alexnet_3gbs")
    path = tmp_path / "plan.json"
    plan = METHODS["anneal"].solve(slow, Budget(300), rounds=3).plan
    path.write_text(plan.model_dump_json())
    passed = PROBLEM.evaluate(fast, plan).objective
    assert passed <= PROBLEM.evaluate(slow, plan).objective
    assert value("anneal", fast, Budget(300), rounds=1, start=str(path)) <= passed


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (None, "No such file"),
        ("{", "Invalid JSON"),
        ('{"ratio": [64], "order": [[]]}', "ratio"),
        ('{"ratio": [64, 0], "order": [["FP/none/0"], []]}', "FP/none/0"),
        ('{"ratio": [64, 0], "order": [[], []]}', "order"),
    ],
)
def test_a_start_that_is_no_plan_is_refused(tmp_path, text, found):
    path = tmp_path / "plan.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(InputError, match=f"(?s)start: expected a plan file .*{found}"):
        METHODS["anneal"].solve(load_instance("mtrain_c1_alexnet_3gbs"), Budget(1), start=str(path))


def test_no_search_begins_with_less_than_the_published_heuristic():
    for seed in range(6):
        instance = LIBRARY.generate("small", seed)
        for size in (Annealing.large, 1):  # with 1 the instance is large, and MTrain-Converting comes afterwards
            search = Search(instance, Budget(300.0).start(), Annealing(large=size))
            annealed_converting.begin(search)
            assert all(True for _ in more(search, search.params))
            for delta in ("sum", "makespan"):
                published = mtrain_converting(instance, Budget(300.0).start(), delta=delta)[0]
                assert published is None or search.best.makespan <= published.makespan
