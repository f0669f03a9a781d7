"""Exact models of multi-model splitting: random plans fixed in them, limits that bind, relations between optima."""

import random
from dataclasses import replace

import pytest

from mapgap.catalogue.files import load_instance
from mapgap.core import Budget, MapgapError, Status
from mapgap.formulations.multi_model_splitting import cpsat, joint, mip, replan
from mapgap.formulations.multi_model_splitting import enumerate as brute_force
from mapgap.formulations.multi_model_splitting._chains import NEVER, ceiling, chains, floor, profiles
from mapgap.formulations.multi_model_splitting._cpsat_model import Model
from mapgap.instances.multi_model_splitting import LIBRARY
from mapgap.problems.multi_model_splitting import PROBLEM, PipelinePlan, Plan, Requirement, Segment, after, churn, part
from mapgap.problems.multi_model_splitting.evaluate import diagnose, evaluate
from mapgap.solvers import cpsat as cpsat_engine
from mapgap.solvers import mip as mip_engine


def budget():
    return Budget(time_s=60).start()


def optimum(instance, method=cpsat):
    result = method.run(instance, budget())
    assert result.status in (Status.OPTIMAL, Status.INFEASIBLE)
    return None if result.plan is None else evaluate(instance, result.plan).objective


def random_plan(instance, rng):
    """Any source, target and segments that obey everything but the limits."""
    found = []
    for p, pipeline in enumerate(instance.pipelines):
        if not instance.sources(p) or not instance.targets(p):
            return None
        count = rng.randint(1, min(len(pipeline.layers), len(instance.devices)))
        cuts = [0, *sorted(rng.sample(range(1, len(pipeline.layers)), count - 1)), len(pipeline.layers)]
        devices = rng.sample(range(len(instance.devices)), count)
        segments = tuple(Segment(device=d, first=cuts[i], last=cuts[i + 1]) for i, d in enumerate(devices))
        source, target = rng.choice(instance.sources(p)), rng.choice(instance.targets(p))
        found.append(PipelinePlan(source=source, target=target, segments=segments))
    return Plan(pipelines=tuple(found))


def random_plans(count):
    rng = random.Random(7)
    for seed in range(count):
        instance = LIBRARY.generate("tiny", seed)
        for plan in [random_plan(instance, rng) for _ in range(3)] + [brute_force.run(instance, budget()).plan]:
            if plan is not None:
                yield instance, plan


def fixed_in_cpsat(instance, plan):
    """Objective of the model with every decision fixed to a plan; ``None`` if it has no solution."""
    tables = profiles(instance)
    top = ceiling(instance, tables)
    reduced = chains(instance, tables, top)
    if reduced is None:
        return None
    model = Model(instance, reduced, top)
    for literal, value in model.hint(plan).items():
        model.model.add(literal == value)
    outcome = cpsat_engine.solve(model.model, budget())
    if not outcome.solved or model.decode(outcome.value) != plan:  # a boundary of the plan cannot be cut
        return None
    return outcome.objective


def fixed_in_mip(instance, plan):
    tables = profiles(instance)
    top = ceiling(instance, tables)
    reduced = chains(instance, tables, top)
    if reduced is None:
        return None
    model = mip.Model(instance, reduced, top, 0)
    for p, decisions in enumerate(plan.pipelines):
        cuts = {b: k for k, b in enumerate(reduced[p].cuts)}
        keys = [(cuts.get(s.first), cuts.get(s.last), s.device) for s in decisions.segments]
        ends = [(decisions.source, decisions.segments[0].device), (decisions.segments[-1].device, decisions.target)]
        if not set(keys) <= set(model.y[p]):
            return None
        for variable in [*(model.y[p][key] for key in keys), model.a[p][ends[0]], model.b[p][ends[1]]]:
            model.problem += variable == 1
    outcome = mip_engine.solve(model.problem, budget())
    return outcome.objective


@pytest.mark.parametrize("fixed", [fixed_in_cpsat, fixed_in_mip])
def test_a_fixed_plan_has_the_value_of_the_evaluator_or_no_solution(fixed):
    seen = set()
    for instance, plan in random_plans(40):
        checked = evaluate(instance, plan)
        assert fixed(instance, plan) == (checked.objective if checked.feasible else None), instance.name
        seen.add((checked.feasible, instance.objective, instance.sharing))
    assert len(seen) == 8  # feasible or not, both objectives, with and without sharing


@pytest.mark.parametrize("name", ["synergy_w1_overlapped", "synergy_fig12_3x78000_1x78002"])
def test_engines_agree_on_the_paper_s_instances(name):
    for objective in ("throughput", "latency"):
        instance = PROBLEM.retarget(load_instance(name), objective)
        assert optimum(instance, cpsat) == optimum(instance, mip)


@pytest.mark.parametrize("seed", range(12))
def test_each_limit_binds_exactly(seed):
    """Without the limits of a device the optimum is no worse; with what the best plan uses it is unchanged."""
    instance = LIBRARY.generate("tiny", seed)
    best = cpsat.run(instance, budget())
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
                assert fixed_in_cpsat(changed, best.plan) is None
                assert fixed_in_mip(changed, best.plan) is None


def test_sharing_never_hurts_and_sometimes_helps():
    gained = 0
    for seed in range(80):
        instance = LIBRARY.generate("tiny", seed)
        if instance.sharing:
            apart = optimum(instance.model_copy(update={"sharing": False}), brute_force)
            merged = optimum(instance, brute_force)
            assert apart is None or (merged is not None and merged <= apart)
            gained += merged != apart
    assert gained >= 3


def test_restriction_keeps_every_plan_within_the_limit():
    """At the optimum as the limit, and only just below it, the best plan is a plan of the chains."""
    for seed in range(40):
        instance = LIBRARY.generate("tiny", seed)
        best = brute_force.run(instance, budget())
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
    for method in (cpsat, mip, brute_force):
        result = method.run(full, budget())
        assert result.status is Status.INFEASIBLE
        assert "out of resource" in result.reason


def test_replanning_keeps_what_it_can():
    whole = LIBRARY.generate("wearables_4x4", 1)
    first = joint.run(whole, budget())
    names = [d.name for d in whole.devices]
    less = after(whole, first.plan, part(whole, names, [p.name for p in whole.pipelines[:3]]))
    best, calm = joint.run(less, budget()), replan.run(less, budget())
    assert calm.status is Status.OPTIMAL
    assert evaluate(less, calm.plan).objective == evaluate(less, best.plan).objective
    assert churn(less, calm.plan).moved_weights <= churn(less, best.plan).moved_weights
    loose = replan.run(less, budget(), slack=1000)
    assert churn(less, loose.plan).moved_weights <= churn(less, calm.plan).moved_weights
    assert evaluate(less, loose.plan).objective <= 11 * evaluate(less, calm.plan).objective
    again = after(whole, first.plan, whole)
    assert churn(again, replan.run(again, budget()).plan).moved_layers == 0


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
    assert optimum(instance, mip) == optimum(instance, cpsat) == 348_286


def test_an_optimum_that_tight_rows_get_wrong():
    """With a tolerance of 1e-9 for rows CBC "proves" 67,604,670; joint and cpsat know a plan of 46,002,446 ticks."""
    instance = PROBLEM.retarget(load_instance("synergy_w4_distributed"), "latency")
    for run in (mip.run_cbc, mip.run, joint.run):
        result = run(instance, budget())
        assert evaluate(instance, result.plan).objective == result.bound == 46_002_446


def test_a_bound_beyond_its_own_plan_is_an_error(monkeypatch):
    solve = mip_engine.solve

    def overclaiming(problem, *rest):
        outcome = solve(problem, *rest)
        return outcome if outcome.bound is None else replace(outcome, bound=outcome.bound + 1)

    monkeypatch.setattr(mip_engine, "solve", overclaiming)
    with pytest.raises(MapgapError, match="its own plan evaluates to"):
        mip.run(load_instance("synergy_w1_distributed"), budget())
