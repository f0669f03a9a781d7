"""Exact methods of multi-model splitting: limits that bind, what sharing and restriction keep, optima got wrong."""

import random
from collections import deque
from dataclasses import replace
from itertools import product
from math import prod

import pytest

from mapgap.catalogue import registry
from mapgap.catalogue.files import load_instance
from mapgap.contract.seeds import samples, seeds
from mapgap.core import DISTRUSTED, Budget, Status, Stop, resolve
from mapgap.formulations.multi_model_splitting import cpsat, joint, mip
from mapgap.formulations.multi_model_splitting.chains import NEVER, ceiling, chains, floor, profiles, whole
from mapgap.formulations.multi_model_splitting.enumerate import count, plans
from mapgap.formulations.multi_model_splitting.replan import LeastChurnModel
from mapgap.problems.multi_model_splitting import PROBLEM, PipelinePlan, Plan, Requirement, Segment, after, churn, part
from mapgap.problems.multi_model_splitting.diagnose import diagnose
from mapgap.problems.multi_model_splitting.evaluate import evaluate
from mapgap.solvers import mip as mip_engine
from mapgap.solvers.model import prove
from mapgap.solvers.outcome import Outcome
from mapgap.solvers.turns import EngineError

METHODS = registry.methods("multi_model_splitting")
LIBRARY = registry.library("multi_model_splitting")


def solve(name, instance, **options):
    return METHODS[name].solve(instance, Budget(time_s=300).start(), **options)


def optimum(instance, name="cpsat"):
    result = solve(name, instance)
    assert result.status in (Status.OPTIMAL, Status.INFEASIBLE)
    return None if result.plan is None else evaluate(instance, result.plan).objective


def fixed(instance, name, plan):
    """Objective of the complete model with every decision fixed to a plan; ``None`` if it has no solution."""
    (whole,) = resolve(METHODS[name].models)(instance)
    model = whole.build(complete=True)
    assert model.fix(plan)
    outcome = model.solve(Budget(time_s=300).start())
    return None if outcome.objective is None else model.objective(outcome.objective)


@pytest.mark.in_turn
@pytest.mark.parametrize("name", ["synergy_w1_overlapped", "synergy_fig12_3x78000_1x78002"])
def test_engines_agree_on_the_paper_s_instances(name):
    for objective in ("throughput", "latency"):
        instance = PROBLEM.retarget(load_instance(name), objective)
        assert optimum(instance, "cpsat") == optimum(instance, "mip")


@pytest.mark.parametrize("seed", seeds(3, 12))
def test_each_limit_binds_exactly(seed):
    """Without the limits of a device the optimum is no worse; with what the best plan uses it is unchanged."""
    instance = LIBRARY.generate("tiny", seed)
    best = solve("cpsat", instance)
    free = instance.model_copy(
        update={
            "devices": tuple(
                d.model_copy(update={"weights": 10**6, "bias": 10**6, "layers": 10**3}) for d in instance.devices
            )
        }
    )
    relaxed = optimum(free)
    if best.plan is None:
        return
    value = evaluate(instance, best.plan).objective
    assert relaxed <= value
    used = evaluate(instance, best.plan).terms["used"]
    tight = tuple(d.model_copy(update=used[d.name]) for d in instance.devices)
    assert optimum(instance.model_copy(update={"devices": tight})) == value
    for d, device in enumerate(tight):
        for resource in ("weights", "bias", "layers"):
            if size := getattr(device, resource):
                less = device.model_copy(update={resource: size - 1})
                changed = instance.model_copy(update={"devices": (*tight[:d], less, *tight[d + 1 :])})
                assert not evaluate(changed, best.plan).feasible
                assert fixed(changed, "cpsat", best.plan) is fixed(changed, "mip", best.plan) is None


def test_sharing_never_hurts_and_sometimes_helps():
    gained = 0
    for seed in range(80):
        instance = LIBRARY.generate("tiny", seed)
        if instance.sharing:
            apart = optimum(instance.model_copy(update={"sharing": False}), "enumerate")
            merged = optimum(instance, "enumerate")
            assert apart is None or (merged is not None and merged <= apart)
            gained += merged != apart
    assert gained >= 3


def test_restriction_keeps_every_plan_within_the_limit():
    """At the optimum as the limit, and only just below it, the best plan is a plan of the chains."""
    for seed in range(40):
        instance = LIBRARY.generate("tiny", seed)
        best = solve("enumerate", instance)
        tables = profiles(instance)
        top = ceiling(instance, tables)
        if best.plan is None:
            continue
        value = evaluate(instance, best.plan).objective
        assert floor(instance, tables, top) <= value <= top
        reduced = chains(instance, tables, value)
        for chain, decisions in zip(reduced, best.plan.pipelines, strict=True):
            for s in decisions.segments:
                assert chain.segments[chain.cuts.index(s.first), chain.cuts.index(s.last), s.device]
        assert all(chain.shortest < NEVER for chain in reduced)


def test_whole_chains_hold_every_plan_of_the_right_shape():
    # Not the limits nor the visits to a device decide whether a plan has a point, but source, target and contiguity.
    rng = random.Random(3)
    for seed in range(40):
        instance = LIBRARY.generate("tiny", seed)
        every = whole(profiles(instance))
        plan = LIBRARY.random_plan(instance, rng)
        for p, (chain, decisions) in enumerate(zip(every, plan.pipelines, strict=True)):
            ends = decisions.source in instance.sources(p) and decisions.target in instance.targets(p)
            assert chain.holds(decisions) == ends
            assert not chain.holds(decisions.model_copy(update={"segments": decisions.segments[1:]}))


def test_what_only_packing_refutes():
    # n + 1 layers of 6 bytes into n devices of 11 bytes: the sum fits (6 n + 6 <= 11 n), yet no device takes two.
    instance = LIBRARY.generate("tiny", 0)
    device = instance.devices[0]
    layer = instance.pipelines[0].layers[0].model_copy(update={"weights": 6, "bias": 0})
    n = len(instance.devices)
    room = tuple(
        device.model_copy(update={"name": f"d{d + 1}", "weights": 11, "bias": 9, "layers": 9}) for d in range(n)
    )
    pipeline = instance.pipelines[0]
    count = n + 1
    cuts = [pipeline.boundaries[0], *[pipeline.boundaries[0].model_copy(update={"unload": (1,) * n})] * (count - 1)]
    last = pipeline.boundaries[-1]
    anywhere = {"source": Requirement(), "target": Requirement()}
    big = pipeline.model_copy(update=anywhere | {"layers": (layer,) * count, "boundaries": (*cuts, last)})
    full = instance.model_copy(update={"devices": room, "pipelines": (big,), "sharing": False})
    assert diagnose(full) == []
    for name in ("cpsat", "mip", "enumerate"):
        result = solve(name, full)
        assert result.status is Status.INFEASIBLE
        assert "out of resource" in result.reason


@pytest.mark.in_turn
@pytest.mark.parametrize("sample", samples(10, 60))
def test_replanning_writes_least_among_all_optimal_plans(sample):
    # Against listing every joint plan of tiny instances after a plan that is not optimal has been deployed.
    seen = 0
    for seed in sample:
        instance = LIBRARY.generate("tiny", seed)
        if prod(count(instance, p) for p in range(len(instance.pipelines))) > 1500:
            continue
        old = LIBRARY.random_plan(instance, random.Random(seed))
        deployed = after(instance, old, instance)
        every = [Plan(pipelines=ways) for ways in product(*(plans(deployed, p) for p in range(len(old.pipelines))))]
        found = [(evaluation.objective, plan) for plan in every if (evaluation := evaluate(deployed, plan)).feasible]
        if not found:
            continue
        best = min(value for value, _ in found)
        least = min(churn(deployed, plan).moved_weights for value, plan in found if value == best)
        mine = solve("replan", deployed)
        assert (mine.status, mine.bound) == (Status.OPTIMAL, best)
        assert churn(deployed, mine.plan).moved_weights == least
        seen += least > 0
    assert seen


@pytest.fixture(scope="module")
def deployed():
    whole = LIBRARY.generate("wearables_4x4", 1)
    return whole, solve("joint", whole)


@pytest.mark.in_turn
def test_replanning_without_a_trusted_engine_returns_the_best_plan_and_says_so(monkeypatch, deployed):
    # An engine that denies the plan it was given is not believed, and the run does not fail.
    denied = Outcome(Status.INFEASIBLE, Stop.PROVED, None, None, int)
    monkeypatch.setattr(LeastChurnModel, "solve", lambda model, budget, **more: denied)
    whole, first = deployed
    again = after(whole, first.plan, whole)
    best, found = solve("portfolio", again), solve("replan", again)
    assert (found.status, found.plan, found.bound) == (best.status, best.plan, best.bound)
    assert found.notes["least_churn_proven"] is False
    assert "claims INFEASIBLE, but there is a plan of" in found.notes[DISTRUSTED][0]


@pytest.mark.in_turn
def test_replanning_keeps_what_it_can(deployed):
    whole, first = deployed
    names = [d.name for d in whole.devices]
    less = after(whole, first.plan, part(whole, names, [p.name for p in whole.pipelines[:3]]))
    best, calm = solve("joint", less), solve("replan", less)
    assert calm.status is Status.OPTIMAL
    assert evaluate(less, calm.plan).objective == evaluate(less, best.plan).objective
    assert churn(less, calm.plan).moved_weights <= churn(less, best.plan).moved_weights
    loose = solve("replan", less, slack=1000)
    assert churn(less, loose.plan).moved_weights <= churn(less, calm.plan).moved_weights
    assert evaluate(less, loose.plan).objective <= 11 * evaluate(less, calm.plan).objective
    again = after(whole, first.plan, whole)
    assert churn(again, solve("replan", again).plan).moved_layers == 0


def test_an_optimum_that_tight_integrality_gets_wrong():
    """With a tolerance of 1e-9 for binaries HiGHS 1.13 "proves" 479,936; three models whole on one device take less."""
    instance = load_instance("synergy_fig11a_4devices_overlapped")
    devices = (0, 0, 0, 3)
    plan = Plan(
        pipelines=tuple(
            PipelinePlan(source=0, target=0, segments=(Segment(device=d, first=0, last=len(pipeline.layers)),))
            for d, pipeline in zip(devices, instance.pipelines, strict=True)
        )
    )
    assert evaluate(instance, plan).objective == 348_286
    assert optimum(instance, "mip") == optimum(instance, "cpsat") == 348_286


@pytest.mark.in_turn
def test_an_optimum_that_tight_rows_get_wrong():
    """With a tolerance of 1e-9 for rows CBC "proves" 67,604,670; joint and cpsat know a plan of 46,002,446 ticks."""
    instance = PROBLEM.retarget(load_instance("synergy_w4_distributed"), "latency")
    for name in ("mip_cbc", "mip", "joint"):
        result = solve(name, instance)
        assert evaluate(instance, result.plan).objective == result.bound == 46_002_446


@pytest.mark.parametrize("name", ["mip", "mip_cbc"])
@pytest.mark.parametrize("seed", [0, 1, 1097])
def test_plans_that_differ_by_less_than_the_tolerance(name, seed):
    """Ticks of 1 and 10^7: HiGHS said that nothing is below 10,000,002, where a plan of 10,000,001 is."""
    instance = LIBRARY.generate("realistic", 1097)
    result = METHODS[name].solve(instance, Budget(time_s=300, seed=seed).start())
    assert result.bound <= 10_000_001 <= evaluate(instance, result.plan).objective
    assert (result.status is Status.OPTIMAL) == (result.bound == result.claimed)


@pytest.mark.in_turn
def test_an_engine_that_runs_out_of_time_proves_nothing():
    """Stopped among its cuts CBC says "infeasible or unbounded", here of plans below 3,961,761."""
    instance = LIBRARY.generate("realistic", 12)
    for k in range(30):
        result = METHODS["mip_cbc"].solve(instance, Budget(time_s=0.002 * 1.15**k).start())
        assert result.status is not Status.INFEASIBLE
        assert result.bound is None or result.bound <= 1_833_305


def test_a_bound_beyond_its_own_plan_is_never_a_result(monkeypatch):
    engine = mip_engine.solve

    def overclaiming(*given, **named):
        outcome = engine(*given, **named)
        return outcome if outcome.bound is None else replace(outcome, bound=outcome.bound + 1)

    monkeypatch.setattr(mip_engine, "solve", overclaiming)
    instance = load_instance("synergy_w1_distributed")
    tables = profiles(instance)
    own = floor(instance, tables, ceiling(instance, tables))  # no engine has a part in it
    result = solve("mip", instance)
    assert (result.status, result.plan, result.bound) == (Status.UNKNOWN, None, own)
    assert "highs: claims" in result.reason
    assert "cbc: claims" in result.reason
    # A plan to start from stays, and so does a bound that no engine has claimed.
    plan = solve("max_dev", instance).plan
    kept = solve("mip", instance, start=plan)
    assert (kept.status, kept.plan, kept.bound) == (Status.FEASIBLE, plan, own)
    assert "highs: claims" in kept.reason


def test_where_an_engine_contradicts_itself_the_other_one_begins_anew(monkeypatch):
    engine = mip_engine.solve

    def overclaiming(program, budget, name="highs", **named):
        outcome = engine(program, budget, name, **named)
        return outcome if outcome.bound is None or name == "cbc" else replace(outcome, bound=outcome.bound + 1)

    monkeypatch.setattr(mip_engine, "solve", overclaiming)
    instance = load_instance("synergy_w1_distributed")
    result = solve("mip", instance)
    assert (result.status, result.bound) == (Status.OPTIMAL, evaluate(instance, result.plan).objective)
    (reason,) = result.notes["distrusted"]
    assert reason.startswith("highs: claims")


def lying(*given, **named):
    raise EngineError("claims nonsense")


def test_joint_keeps_its_own_plan_and_bound_where_the_engine_contradicts_itself(monkeypatch):
    instance = LIBRARY.generate("small", 3)  # open after the bounds, so that CP-SAT is asked
    best, quick = optimum(instance), solve("ruin_and_recreate", instance).plan
    assert solve("joint", instance, start=quick).notes["probes"] > 0
    monkeypatch.setattr(cpsat, "prove", lying)
    result = solve("joint", instance, start=quick)
    assert (result.status, result.plan) == (Status.FEASIBLE, quick)
    assert result.claimed == evaluate(instance, quick).objective
    assert 0 < result.bound <= best
    assert result.notes["distrusted"] == ["CP-SAT: claims nonsense"]


@pytest.mark.in_turn
def test_a_limit_that_the_hardest_half_cannot_keep_is_refuted():
    refuted = 0
    for seed in range(12):
        instance = LIBRARY.generate("small", seed)
        if instance.objective != "throughput" or diagnose(instance):
            continue
        best = optimum(instance)
        if best is None:
            continue
        search = joint.Joint(instance, Budget(60).start(), solve("ruin_and_recreate", instance).plan)
        for limit in {best - 1, best * 3 // 4, best // 2, best}:
            status = search.ask_part(limit, 20.0)
            assert status is Status.UNKNOWN or limit < best
            refuted += status is Status.INFEASIBLE
        assert search.bound <= best
    assert refuted


def test_cpsat_keeps_its_start_and_its_own_bound_where_the_engine_contradicts_itself(monkeypatch):
    instance = LIBRARY.generate("small", 3)
    best, quick = optimum(instance), solve("ruin_and_recreate", instance).plan
    monkeypatch.setattr(cpsat, "prove", lying)
    result = solve("cpsat", instance, start=quick)
    assert (result.status, result.plan) == (Status.FEASIBLE, quick)
    assert result.claimed == evaluate(instance, quick).objective
    assert 0 < result.bound <= best
    assert result.notes["distrusted"] == ["CP-SAT: claims nonsense"]


@pytest.mark.in_turn
@pytest.mark.parametrize("name", ["cpsat", "mip", "joint"])  # CBC takes minutes for some of these
def test_a_plan_to_start_from_is_kept_and_changes_no_optimum(name, tmp_path):
    for seed in range(3):
        instance = LIBRARY.generate("small", seed)
        quick = solve("ruin_and_recreate", instance).plan
        if quick is None:
            continue
        file = tmp_path / f"{instance.name}.json"
        file.write_text(quick.model_dump_json())
        best, result = optimum(instance), solve(name, instance, start=str(file))
        assert result.bound <= best <= evaluate(instance, result.plan).objective <= evaluate(instance, quick).objective
        assert result.status is Status.OPTIMAL
        told = []
        started = Budget(0.0, listener=lambda plan, bound, told=told: told.append(plan))
        assert METHODS[name].solve(instance, started.start(), start=quick).plan == quick
        assert next(filter(None, told)) == quick  # a bound may be told before


def test_a_start_that_breaks_a_rule_is_no_plan():
    instance, rng = LIBRARY.generate("tiny", 0), random.Random(1)
    broken = LIBRARY.random_plan(instance, rng)
    while evaluate(instance, broken).feasible:
        broken = LIBRARY.random_plan(instance, rng)
    for name in ("cpsat", "mip", "joint"):
        assert optimum(instance, name) == evaluate(instance, solve(name, instance, start=broken).plan).objective


@pytest.mark.in_turn
@pytest.mark.parametrize("module", [cpsat, mip])
def test_every_plan_is_the_engine_s(module, monkeypatch):
    """Nothing searches beside the engine: a plan is announced while it is at work, or is one that it returned."""
    asked, answered, beside = [], [], []

    def spy(*arguments, **options):
        asked.append(arguments)
        found = prove(*arguments, **options)
        answered.append(found.plan)
        return found

    def listen(plan, bound):
        if plan is not None and len(asked) == len(answered) and plan not in answered:
            beside.append(plan)

    monkeypatch.setattr(module, "prove", spy)
    result = module.run(LIBRARY.generate("small", 2), Budget(60.0, listener=listen).start())
    assert asked
    assert result.plan is not None
    assert not beside


class EngineFirst(joint.Joint):
    """Bounds of our own come only after an engine has closed plan and bound."""

    def _bounds(self):
        return iter(())


@pytest.mark.parametrize("medium", ["links", "shared"])
def test_what_an_engine_has_closed_is_asked_of_the_own_bounds(medium):
    """They say as much as they can, never more than brute force: most of these optima they prove, too."""
    met = []
    for seed in range(9300, 9312):
        instance = LIBRARY.generate("realistic", seed).changed(medium=medium)
        best = METHODS["enumerate"].solve(instance, Budget(60.0).start())
        if best.status is not Status.OPTIMAL or instance.objective != "throughput":
            continue
        search, least = EngineFirst(instance, Budget(60.0).start(), best.plan), evaluate(instance, best.plan).objective
        deque(search.steps(), maxlen=0)
        assert search.bound == least
        assert search.own <= least
        met.append(search.own == least)
    assert len(met) >= 3
    assert sum(met) > len(met) / 2
