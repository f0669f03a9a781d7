"""ELFISH's greedy and the baselines: by hand, against brute force, and by their own invariants."""

import pytest

from mapgap.catalogue import registry
from mapgap.catalogue.files import load_instance
from mapgap.core import Budget, InputError, Status
from mapgap.heuristics.neuron_masking import elfish_greedy, one_by_one, uniform
from mapgap.heuristics.neuron_masking.straggler import Straggler
from mapgap.instances.neuron_masking import LIBRARY
from mapgap.problems.neuron_masking import Device, Instance, Layer, Rate, costs
from mapgap.problems.neuron_masking.evaluate import diagnose, evaluate
from mapgap.problems.neuron_masking.lowered.shares import largest_fitting

METHODS = [
    (elfish_greedy.run, {"alpha": alpha, "selection": selection})
    for alpha in elfish_greedy.ALPHAS
    for selection in elfish_greedy.SELECTIONS
] + [(uniform.run, {}), (one_by_one.largest_cost_first, {}), (one_by_one.contribution_per_cost, {})]


def chain(work_limit, objective="neurons", contributions=((5, 3, 2, 1), (9, 1)), top_percent=100):
    """Two layers of 4 and 2 neurons behind one input channel; W = 1 * n_1 + 3 * n_1 n_2, nothing else costs."""
    layers = (
        Layer(name="a", neurons=4, least=1, work=1, weights=0, features=0),
        Layer(name="b", neurons=2, least=1, work=3, weights=0, features=0),
    )
    device = Device(
        name="d",
        tick_ps=1,
        transfer=Rate(ticks=0, per=1),
        spill=Rate(ticks=0, per=1),
        overhead=0,
        time_limit=(10**6,),
        work_limit=(work_limit,),
        memory_limit=0,
        contributions=contributions,
    )
    return Instance(
        name="chain",
        objective=objective,
        top_percent=top_percent,
        memory_unit_bytes=1,
        work_unit_macs=1,
        cycle_ms=(1,),
        inputs=1,
        layers=layers,
        devices=(device,),
    )


@pytest.mark.parametrize(("run", "options"), METHODS)
def test_never_above_brute_force_and_always_feasible(run, options):
    enumerate_all = registry.methods("neuron_masking")["enumerate"].solve
    for seed in range(60):
        instance = LIBRARY.generate("tiny", seed)
        best = enumerate_all(instance, Budget(time_s=300.0))
        found = run(instance, Budget(time_s=300.0, seed=seed), **options)
        assert (found.plan is None) == (best.plan is None) == bool(diagnose(instance)), seed
        if found.plan is None:
            assert found.status is Status.UNKNOWN
            assert found.reason
            continue
        result = evaluate(instance, found.plan)
        assert result.feasible, (seed, result.violations)
        assert result.objective <= evaluate(instance, best.plan).objective, seed


def test_uniform_is_optimal_for_the_smallest_share():
    enumerate_all = registry.methods("neuron_masking")["enumerate"].solve
    spec = registry.problems()["neuron_masking"]
    compared = 0
    for seed in range(60):
        instance = spec.retarget(LIBRARY.generate("tiny", seed), "smallest_share")
        best = enumerate_all(instance, Budget(time_s=300.0))
        if best.plan is not None:
            found = uniform.run(instance, Budget(time_s=300.0))
            assert evaluate(instance, found.plan).objective == evaluate(instance, best.plan).objective, seed
            compared += 1
    assert compared > 40


@pytest.mark.parametrize(
    ("alpha", "kept"),
    [
        # W = n_1 + 3 n_1 n_2 <= 14. Uniform: (3, 1) of equal shares 1/2..3/4 costs 12; more is (4, 2) at 28.
        ("uniform", (3, 1)),
        # T^1 = 1, T^2 = 12 per neuron: b masks first; P = 1/2 gives (floor(4 - 4/24), 1) = (3, 1).
        ("neuron_time", (3, 1)),
        # Layer times 4 and 24: alpha = 1/6 and 1; P = 1/2 gives (floor(4 - 4/12), 1) = (3, 1).
        ("layer_time", (3, 1)),
    ],
)
def test_counts_by_hand(alpha, kept):
    found = elfish_greedy.counts(Straggler(chain(14), chain(14).devices[0], 0), alpha)
    assert tuple(found) == kept


def test_alpha_is_the_time_of_a_neuron_or_a_layer():
    straggler = Straggler(chain(14), chain(14).devices[0], 0)
    assert elfish_greedy.weights(straggler, "uniform") == [1, 1]
    assert [float(a) for a in elfish_greedy.weights(straggler, "neuron_time")] == pytest.approx([1 / 12, 1])
    assert [float(a) for a in elfish_greedy.weights(straggler, "layer_time")] == pytest.approx([1 / 6, 1])


def test_draw_keeps_the_top_share_and_the_counts():
    instance = load_instance("elfish_lenet_straggler4")
    plan = elfish_greedy.run(instance, Budget(seed=3)).plan
    assert evaluate(instance, plan).feasible  # the evaluator checks the top share
    mask = plan.masks[0]
    assert [len(row) for row in mask.chosen] == list(mask.kept)
    assert plan == elfish_greedy.run(instance, Budget(seed=3)).plan
    assert plan != elfish_greedy.run(instance, Budget(seed=4)).plan


def test_largest_contributions_are_worth_no_less_than_a_draw():
    instance = load_instance("elfish_vgg13_straggler3").model_copy(update={"objective": "contribution"})
    drawn, top = (elfish_greedy.run(instance, Budget(300.0), selection=s).plan for s in ("paper", "top"))
    assert [m.kept for m in drawn.masks] == [m.kept for m in top.masks]
    assert evaluate(instance, drawn).objective < evaluate(instance, top).objective


def test_largest_cost_first_by_hand():
    # From (4, 2) at W = 28: a neuron of b frees 12, one of a frees 7. b goes to its floor: (4, 1) costs 16 > 14;
    # then one of a: (3, 1) at 12, and nothing fits back (4 more for a, 9 for b).
    plan = one_by_one.largest_cost_first(chain(14), Budget(300.0)).plan
    assert plan.masks[0].kept == (3, 1)


def test_contribution_per_cost_by_hand():
    # First per cost: a's least neuron 1/7, b's least 1/12: b's goes, (4, 1) at 16; then a's 1/4 against none of b.
    plan = one_by_one.contribution_per_cost(chain(14, "contribution"), Budget(300.0)).plan
    assert plan.masks[0].kept == (3, 1)
    # With a dear second neuron of b (8/12 > 1/7) a is masked instead, down to (2, 2) at W = 14.
    plan = one_by_one.contribution_per_cost(chain(14, "contribution", ((5, 3, 2, 1), (9, 8))), Budget(300.0)).plan
    assert plan.masks[0].kept == (2, 2)


@pytest.mark.parametrize("name", ["elfish_lenet_straggler2", "elfish_alexnet_cifar_straggler3"])
def test_one_by_one_masks_are_maximal_and_their_costs_kept_up_to_date(name):
    instance = load_instance(name)
    straggler = Straggler(instance, instance.devices[0], 0)
    kept = list(one_by_one.solve_one(straggler, Budget(time_s=600.0), lambda _, price: -price).kept)
    for i, layer in enumerate(instance.layers):
        if kept[i] < layer.neurons:
            assert not straggler.fits([n + (j == i) for j, n in enumerate(kept)])
    state = one_by_one.State(straggler, kept)
    state.change(1, -1)
    cost = costs(instance, instance.devices[0], state.kept)
    assert (state.work, state.memory) == (cost.work, cost.memory)


def test_bisection_finds_the_largest_step():
    straggler = Straggler(chain(10), chain(10).devices[0], 0)
    # n_1 = step with n_2 = 1 costs 4 step: at most 2 of work 10.
    assert largest_fitting(lambda step: [max(1, step), 1], straggler.fits, 4) == [2, 1]
    assert largest_fitting(lambda _: [1, 1], Straggler(chain(3), chain(3).devices[0], 0).fits, 4) is None


def test_unknown_options_are_refused_together():
    with pytest.raises(InputError) as error:
        elfish_greedy.run(chain(14), Budget(300.0), alpha="b", selection="c")
    assert [finding.location for finding in error.value.findings] == [("alpha",), ("selection",)]
