"""The quick planner: never worse than ELFISH and far closer to the optimum; the start of the exact methods."""

import pytest

from mapgap.catalogue import registry
from mapgap.core import Budget
from mapgap.formulations.neuron_masking.prices import Lagrangian, quick_mask
from mapgap.instances.neuron_masking import LIBRARY
from mapgap.problems.neuron_masking import PROBLEM, Instance, Layer, Rate
from mapgap.problems.neuron_masking.evaluate import evaluate
from mapgap.problems.neuron_masking.instance import Device
from mapgap.problems.neuron_masking.lowered.chain import Chain

METHODS = registry.methods(PROBLEM.name)
FAST = METHODS["priced_layers"]
EXACT = METHODS["lagrangian"]


def test_an_exchange_finds_what_no_single_neuron_does():
    """Two layers of four neurons, W = 2 n1 + 2 n1 n2 <= 16, worth 9, 9, 1, 1 and 5 each.

    One and four neurons are worth 29 at W = 10; a second one of layer 1 does not fit (W = 20). Given for one of layer 2
    it does: two and three are worth 33 at W = 16, which no other mask reaches.
    """
    rate = Rate(ticks=0, per=1)
    rows = ((9, 9, 1, 1), (5, 5, 5, 5))
    device = Device(
        name="d",
        tick_ps=1,
        transfer=rate,
        spill=rate,
        overhead=0,
        time_limit=(100,),
        work_limit=(16,),
        memory_limit=100,
        contributions=rows,
    )
    layers = tuple(
        Layer(name=f"l{i}", neurons=4, least=1, work=work, weights=0, features=0) for i, work in enumerate((1, 2))
    )
    instance = Instance(
        name="exchange",
        objective="contribution",
        memory_unit_bytes=1,
        work_unit_macs=1,
        cycle_ms=(1,),
        inputs=2,
        layers=layers,
        devices=(device,),
    )
    chain = Chain.of(instance)
    search = Lagrangian(chain, Budget(300.0).start())
    search.best, search.best_worth = (1, 4), 29
    search.improve()
    assert (search.best, search.best_worth) == ((2, 3), 33)


def test_first_masks_keep_the_limits_and_the_exact_method_loses_to_none():
    for seed in range(12):
        instance = LIBRARY.generate("small", seed)
        chain = Chain.of(instance)
        mask = quick_mask(chain, Budget(300.0).start())
        assert chain.fits(mask)
        assert chain.worth(mask) <= EXACT.solve(instance, Budget(300.0)).bound


@pytest.mark.parametrize(("family", "seed"), [("fleet", 1), ("ladder", 5)])
def test_the_portfolio_announces_the_quick_plan_first(family, seed):
    # Before any engine runs, and for a fleet, too, whose parts say nothing of the whole.
    instance = LIBRARY.generate(family, seed)
    seen = []
    budget = Budget(time_s=1, listener=lambda plan, bound: seen.append(plan))
    METHODS["portfolio"].solve(instance, budget)
    first = next(plan for plan in seen if plan is not None)
    assert evaluate(instance, first).feasible


def test_the_ladder_varies_on_its_highest_rung():
    instance = LIBRARY.generate("ladder", 5)
    assert len(instance.layers) == 100
    assert len({layer.work for layer in instance.layers}) > 4
    assert len({layer.weights for layer in instance.layers}) > 4
