"""Exact methods of neuron masking against brute force, against the evaluator and against each other."""

import functools
import itertools
import random

import numpy as np
import pytest

from mapgap.contract.seeds import seeds
from mapgap.core import Budget, PlanError, SolveResult, Status, Stop
from mapgap.formulations.neuron_masking import cpsat, fleet, lagrangian, mip
from mapgap.formulations.neuron_masking import enumerate as brute_force
from mapgap.formulations.neuron_masking.lagrangian_kernels import run_enumeration
from mapgap.formulations.neuron_masking.params import Lagrangian as Params
from mapgap.formulations.neuron_masking.prices import box_of, corners, quick_mask, quick_plan
from mapgap.instances.neuron_masking import LIBRARY
from mapgap.problems.neuron_masking import PROBLEM, SHARE, Device, Instance, Layer, Mask, Plan, Rate, costs
from mapgap.problems.neuron_masking.lowered.chain import Chain
from mapgap.problems.neuron_masking.lowered.shares import uniform_mask
from mapgap.solvers.model import prove

METHODS = {"cpsat": cpsat.run, "mip": mip.run, "lagrangian": lagrangian.run}
FEASIBLE = [seed for seed in range(60) if not PROBLEM.diagnose(LIBRARY.generate("tiny", seed))]


def budget(seconds=300.0):
    return Budget(time_s=seconds).start()


def free_device(contributions, work):
    """A device without memory, overhead and transfers, whose limits are of work and as many ticks."""
    return Device(
        name="d",
        tick_ps=1,
        transfer=Rate(ticks=0, per=1),
        spill=Rate(ticks=0, per=1),
        overhead=0,
        time_limit=(work,),
        work_limit=(work,),
        memory_limit=0,
        contributions=contributions,
    )


def chains(instance):
    """Chains of all single problems that have a mask."""
    singles = [instance.single(d, k) for k in range(len(instance.cycle_ms)) for d in range(len(instance.devices))]
    return [(single, Chain.of(single)) for single in singles if not PROBLEM.diagnose(single)]


def masks(chain):
    return itertools.product(*(range(low, high + 1) for low, high in zip(chain.lower, chain.upper, strict=True)))


def test_no_choice_of_cycle_masks_and_neurons_is_better():
    # Brute force over the whole plan: every cycle, all devices jointly, every set of neurons. ``enumerate`` relies on
    # devices being independent and on the largest contributions being the best choice.
    tried = 0
    for seed in FEASIBLE:
        instance = LIBRARY.generate("tiny", seed)
        sets = [
            [c for n in range(layer.least, layer.neurons + 1) for c in itertools.combinations(range(layer.neurons), n)]
            for layer in instance.layers
        ]
        size = len(instance.cycle_ms) * np.prod([float(len(s)) for s in sets]) ** len(instance.devices)
        if size > 3000:
            continue
        tried += 1
        options = [Mask(kept=tuple(map(len, chosen)), chosen=chosen) for chosen in itertools.product(*sets)]
        found = [
            PROBLEM.evaluate(instance, Plan(cycle=cycle, masks=joint))
            for cycle in range(len(instance.cycle_ms))
            for joint in itertools.product(options, repeat=len(instance.devices))
        ]
        best = max(f.objective for f in found if f.feasible)
        assert brute_force.run(instance, budget()).claimed == best
    assert tried >= 10


@pytest.mark.parametrize("family", ["small", "fleet"])
@pytest.mark.parametrize("seed", range(6))
def test_engines_agree_beyond_brute_force(family, seed):
    instance = LIBRARY.generate(family, seed)
    exact = lagrangian.run(instance, budget())
    assert exact.status is Status.OPTIMAL
    result = cpsat.run(instance, budget(10.0))
    if family == "small" or result.status is Status.OPTIMAL:
        assert result.claimed == exact.claimed
    assert result.claimed <= exact.claimed <= result.bound


@pytest.mark.parametrize("seed", seeds(5, 60))
def test_a_chain_says_of_counts_what_the_evaluator_says(seed):
    rng = random.Random(seed)
    for single, chain in chains(LIBRARY.generate("tiny", seed)):
        kept = tuple(rng.randint(low, high) for low, high in zip(chain.lower, chain.upper, strict=True))
        checked = PROBLEM.evaluate(single, Plan(masks=(Mask(kept=kept),)))
        assert chain.fits(kept) == checked.feasible
        assert chain.worth(kept) == checked.objective


@pytest.mark.parametrize("program", [cpsat, mip])
def test_a_program_holds_the_whole_fleet_of_a_cycle_time(program):
    # One program of all devices against the search, which solves them one by one; its label names the cycle time.
    for seed in range(4):
        instance = LIBRARY.generate("fleet", seed)
        parts = program.models(instance)
        assert [part.label for part in parts] == [f"cycle {ms} ms" for ms in instance.cycle_ms]
        for objective in ("neurons", "smallest_share"):
            target = PROBLEM.retarget(instance, objective)
            last = prove(program.models(target)[-1].build(), budget())
            assert last.claimed == lagrangian.run(target, budget()).claimed
            assert PROBLEM.evaluate(target, last.plan).objective == last.claimed


def test_plans_that_keep_other_neurons_than_the_largest_have_no_point():
    instance = LIBRARY.generate("small", 0)
    kept = tuple(layer.least for layer in instance.layers)
    best = tuple(tuple(sorted(instance.devices[0].ranking(i)[:n])) for i, n in enumerate(kept))
    worst = tuple(tuple(sorted(instance.devices[0].ranking(i)[-n:])) for i, n in enumerate(kept))
    for program in (cpsat.CpSatMasks(instance), mip.MipMasks(instance)):
        assert program.assignment(Plan(masks=(Mask(kept=kept, chosen=best),))) is not None
        assert program.assignment(Plan(masks=(Mask(kept=kept, chosen=worst),))) is None
        assert program.assignment(Plan(cycle=1, masks=(Mask(kept=kept),))) is None
        assert program.assignment(Plan(masks=(Mask(kept=kept[:-1]),))) is None


def test_contributions_of_mean_one_are_no_counts():
    # Two of two neurons are worth as much as two neurons, but the larger alone is worth 2, not 1: W = n <= 1.
    instance = Instance.model_validate(
        {
            "name": "mean one",
            "objective": "contribution",
            "memory_unit_bytes": 1,
            "work_unit_macs": 1,
            "cycle_ms": (1,),
            "inputs": 1,
            "layers": (Layer(name="a", neurons=2, least=1, work=1, weights=0, features=0),),
            "devices": (free_device(((0, 2),), work=1),),
        }
    )
    assert {method(instance, budget()).claimed for method in METHODS.values()} == {2}


@pytest.mark.parametrize("seed", FEASIBLE)
def test_polygon_holds_every_mask_within_the_limits(seed):
    # The bound uses C(A, B), the largest A W + B M over the polygon; prices at random.
    rng = random.Random(seed)
    for _, chain in chains(LIBRARY.generate("tiny", seed)):
        held = corners(chain)
        prices = [(rng.randint(0, 9), rng.randint(0, 9)) for _ in range(5)]
        for kept in masks(chain):
            if chain.fits(kept):
                work, memory = chain.totals(kept)
                assert all(a * work + b * memory <= max(a * w + b * m for w, m in held) for a, b in prices)


def priced(chain, a, b, kept):
    work, memory = chain.totals(kept)
    return chain.worth(kept) - a * work - b * memory


@pytest.mark.parametrize("seed", FEASIBLE[:20])
def test_program_hull_and_enumeration_against_brute_force(seed):
    rng = random.Random(seed)
    for single, chain in chains(PROBLEM.retarget(LIBRARY.generate("tiny", seed), "contribution")):
        search = lagrangian.Search(chain, budget())
        # One unit of worth is one unit of the Lagrangian.
        search.worth = search.worth._replace(value=search.worth.value >> search.worth.shift, shift=0)
        a, b = rng.randint(0, 40), rng.randint(0, 40)
        prices = search.priced(a, b)
        box = box_of(chain.lower, chain.upper)
        everything = {k: priced(chain, a, b, k) for k in masks(chain)}
        search.fill_tables(box, prices)
        bound, kept = search.run_forwards(box, prices)
        assert bound - prices.support == everything[kept] == max(everything.values())
        for target in sorted(everything.values())[:: max(1, len(everything) // 7)]:
            hull = search.hull(box, prices, target + prices.support)
            columns = list(zip(*(k for k, worth in everything.items() if worth >= target), strict=True))
            assert [tuple(side) for side in hull] == [tuple(map(min, columns)), tuple(map(max, columns))]
        assert search.hull(box, prices, max(everything.values()) + prices.support + 1) is None
        top = max(chain.worth(k) for k in everything if chain.fits(k))
        for target, expected in ((0, top), (top, top), (top + 1, None)):
            found = np.zeros(len(chain), np.int64)
            arguments = (search.worth, box, prices, search.tables.prefix, search.limits, target)
            assert run_enumeration(*arguments, 10**7, found) >= 0
            assert (chain.worth(tuple(found)) if found[0] else None) == expected
            assert run_enumeration(*arguments, 0, found) == -1
        assert PROBLEM.evaluate(single, Plan(masks=(Mask(kept=search.best),))).feasible


@pytest.mark.parametrize("steps", [1, 50])
def test_branching_does_not_change_the_answer(steps):
    # With next to no enumeration the answers come from halving boxes.
    cases = [
        PROBLEM.retarget(LIBRARY.generate(family, seed), objective)
        for family, seeds in (("tiny", FEASIBLE[:15]), ("small", range(4)))
        for seed in seeds
        for objective in ("neurons", "contribution")
    ]
    expected = [lagrangian.run(case, budget()) for case in cases]
    hardly_enumerated = functools.partial(lagrangian.solve_single, params=Params(steps=steps))
    found = [fleet.solve(case, budget(), hardly_enumerated) for case in cases]
    assert [r.claimed for r in found] == [r.claimed for r in expected] == [r.bound for r in found]
    assert sum(r.notes["boxes"] for r in found) > sum(r.notes["boxes"] for r in expected)


@pytest.mark.parametrize("seed", seeds(6, 30))
def test_uniform_mask_rounded_up_is_optimal_for_the_smallest_share(seed):
    # The proposition of docs/methods/neuron_masking.md: a mask of smallest share s exists if and only if the uniform
    # one of s is within the limits. All shares, not only the optimal one.
    for family in ("tiny", "small"):
        instance = PROBLEM.retarget(LIBRARY.generate(family, seed), "smallest_share")
        for single, chain in chains(instance):
            uniform = functools.partial(uniform_mask, chain.lower, chain.upper)
            fitting = [s for s in range(0, SHARE + 1, 25) if chain.fits(uniform(s))]
            assert fitting == list(range(0, 25 * len(fitting), 25))  # no gaps: a threshold
            best = lagrangian.run(single, budget()).claimed
            assert chain.fits(uniform(best))
            assert best == SHARE or not chain.fits(uniform(best + 1))
            if family == "tiny":
                assert best == max(chain.worth(k) for k in masks(chain) if chain.fits(k))


def test_uniform_mask_rounded_otherwise_is_not_optimal():
    # Two layers of 3 and 5 neurons, one input, work n1 + n1 n2 at most 6. (2, 2) costs 6, its smallest share is 2/5.
    # It is ceil(p N) for p = 2/5, but no floor(p N) (3 p >= 2 and 5 p < 3) and no p N to the nearest (3 p >= 1.5 and
    # 5 p < 2.5); of those within the limit (1, 2) and (1, 3) are best, with 1/3.
    layers = tuple(Layer(name=n, neurons=m, least=1, work=1, weights=0, features=0) for n, m in (("a", 3), ("b", 5)))
    straggler = free_device(((0,) * 3, (0,) * 5), work=6)
    instance = Instance(
        name="rounding",
        objective="smallest_share",
        memory_unit_bytes=1,
        work_unit_macs=1,
        cycle_ms=(1,),
        inputs=1,
        layers=layers,
        devices=(straggler,),
    )
    assert {method(instance, budget()).claimed for method in METHODS.values()} == {4000}
    chain = Chain.of(instance)
    for rounded in (lambda x: x // 1000, lambda x: (x + 500) // 1000):
        reached = {tuple(max(1, rounded(p * m)) for m in (3, 5)) for p in range(1001)}
        assert max(chain.worth(kept) for kept in reached if chain.fits(kept)) == 3333


@pytest.mark.parametrize("seed", seeds(3, 60))
@pytest.mark.parametrize("objective", PROBLEM.objectives)
def test_relations_hold(seed, objective):
    instance = PROBLEM.retarget(LIBRARY.generate("tiny", seed), objective)
    value = lagrangian.run(instance, budget()).claimed
    relations = LIBRARY.relations(instance, random.Random(seed))
    assert len(relations) >= 15
    for relation in relations:
        found = lagrangian.run(relation.instance, budget()).claimed
        if value is None:
            assert found is None or not relation.equal, relation.label
        elif relation.equal:
            assert found == relation.factor * value, relation.label
        else:
            assert found >= relation.factor * value, relation.label


def test_an_unlimited_straggler_keeps_everything():
    instance = LIBRARY.generate("small", 0)
    free = instance.devices[0].model_copy(
        update={"time_limit": (2**31,), "work_limit": (2**31,), "memory_limit": 2**31}
    )
    for objective in PROBLEM.objectives:
        for method in METHODS.values():
            result = method(PROBLEM.retarget(instance.model_copy(update={"devices": (free,)}), objective), budget())
            assert result.status is Status.OPTIMAL
            assert result.plan.masks[0].kept == tuple(layer.neurons for layer in instance.layers)


def test_the_longest_cycle_is_not_always_the_best_rate():
    # What the variant is about: some fleets earn more per hour under a shorter cycle.
    chosen = {
        lagrangian.run(instance, budget()).plan.cycle == len(instance.cycle_ms) - 1
        for instance in (LIBRARY.generate("fleet", seed) for seed in range(8))
    }
    assert chosen == {True, False}


def test_limits_end_searches_with_valid_bounds():
    instance = PROBLEM.retarget(LIBRARY.generate("scaling", 3), "contribution")
    seen = []
    watched = Budget(time_s=1.0, listener=lambda plan, bound: seen.append((plan, bound))).start()
    result = lagrangian.run(instance, watched)
    value = PROBLEM.evaluate(instance, result.plan)
    assert value.feasible
    assert value.objective == result.claimed <= result.bound
    assert any(plan is not None for plan, _ in seen)
    assert all(bound >= result.claimed for _, bound in seen if bound is not None)
    assert result.stop in (Stop.TIME, Stop.PROVED)
    late = lagrangian.run(instance, Budget(time_s=0.0).start(), start=result.plan)
    assert (late.status, late.plan) == (Status.FEASIBLE, result.plan)
    assert late.bound >= result.claimed


def test_too_many_masks_are_not_enumerated():
    result = brute_force.run(LIBRARY.generate("scaling", 0), budget())
    assert result.status is Status.UNKNOWN
    assert "tried" in result.reason


@pytest.mark.parametrize(
    ("kept", "told", "message"),
    [
        ("least", {"bound": 3}, "above the proven bound"),
        ("least", {"claimed": 10**6}, "which is worth"),
        ("neurons", {}, "breaks a limit"),
        ("least", {"status": Status.INFEASIBLE}, "finds no mask"),
    ],
)
def test_what_a_model_says_wrongly_is_refused(kept, told, message):
    # A model that lies must fail the run, not shorten it.
    def liar(single, limits, start):
        plan = Plan(masks=(Mask(kept=tuple(getattr(layer, kept) for layer in single.layers)),))
        return SolveResult(**{"status": Status.FEASIBLE, "stop": Stop.TIME, "plan": plan, **told})

    with pytest.raises(PlanError, match=message):
        fleet.solve(PROBLEM.retarget(LIBRARY.generate("small", 1), "neurons"), budget(), liar)


def test_generated_families():
    kinds = {"time limit": 0, "work limit": 0, "memory limit": 0}
    for seed in range(60):
        instance = LIBRARY.generate("tiny", seed)
        whole = Plan(
            cycle=len(instance.cycle_ms) - 1,
            masks=(Mask(kept=tuple(y.neurons for y in instance.layers)),) * len(instance.devices),
        )
        for violation in PROBLEM.evaluate(instance, whole).violations:
            kinds[violation.rule] += 1
    assert min(kinds.values()) >= 10  # every limit binds somewhere
    for seed in range(5):
        scaled = LIBRARY.generate("scaling", seed)
        assert not PROBLEM.diagnose(scaled)
        assert costs(scaled, scaled.devices[0], [y.neurons for y in scaled.layers]).work < 2**30


def test_a_thorough_search_is_never_worse_and_sometimes_better_than_the_quick_one():
    better = 0
    for seed in (6, 7, 400, 402, 403):
        chain = Chain.of(LIBRARY.generate("scaling", seed))
        quick, thorough = (quick_mask(chain, budget(), thorough=each) for each in (False, True))
        assert chain.fits(thorough)
        assert chain.worth(thorough) >= chain.worth(quick)
        better += chain.worth(thorough) > chain.worth(quick)
    assert better


@pytest.mark.in_turn
def test_a_fleet_keeps_the_better_mask_of_every_device():
    # The single problems find the least masks only; the plan to start from has better ones.
    instance = LIBRARY.generate("fleet", 2)
    first = quick_plan(instance, budget(), thorough=True)

    def least(single, budget, start):
        return SolveResult(Status.FEASIBLE, Stop.TIME, Plan(masks=(Mask(kept=Chain.of(single).lower),)))

    found = fleet.solve(instance, budget(2.0), least, first)
    assert PROBLEM.evaluate(instance, found.plan).objective == PROBLEM.evaluate(instance, first).objective


def test_a_bound_below_a_mask_that_is_known_is_refused():
    instance = LIBRARY.generate("small", 1)
    assert instance.objective == "contribution"

    def low(single, budget, start):
        return SolveResult(Status.UNKNOWN, Stop.TIME, bound=1)

    with pytest.raises(PlanError, match="above the proven bound 1"):
        fleet.solve(instance, budget(), low, quick_plan(instance, budget()))
