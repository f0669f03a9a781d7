"""Links that all differ: nothing said on the way to the optimum is wrong, and the links are not forgotten."""

import random

import pytest

from mapgap.core import Budget, Status
from mapgap.formulations.hybrid_pipeline import enumerate as brute_force
from mapgap.formulations.hybrid_pipeline import label_dp, relaxation
from mapgap.formulations.hybrid_pipeline.label.first_plan import OPEN
from mapgap.formulations.hybrid_pipeline.label_python import Interpreted
from mapgap.formulations.hybrid_pipeline.params import LabelSearch
from mapgap.instances.hybrid_pipeline import LIBRARY
from mapgap.problems.hybrid_pipeline.lowered.arrays import lower

EVERY = LabelSearch(growth=1)
"""Every relaxation, each with the sums of the one before."""


@pytest.fixture(autouse=True)
def on_instances_of_any_size(monkeypatch):
    monkeypatch.setattr(label_dp, "cheap", lambda _: False)


def unlike(family, seed):
    """An instance with a bandwidth of its own for every pair of devices, 1 to 1,000; None if it allows none."""
    instance = LIBRARY.generate(family, seed)
    if instance.execution.communication == "load":  # has one bandwidth, by its rules
        return None
    rng, n = random.Random(f"links-{family}-{seed}"), len(instance.devices)
    links = [[1] * n for _ in range(n)]
    for a in range(n):
        for b in range(a):
            links[a][b] = links[b][a] = int(10 ** rng.uniform(4.5, 7.5))
    return instance.changed(
        bandwidth=tuple(map(tuple, links)), micro_batch_sizes=instance.micro_batch_sizes[-1:], replanning=None
    )


def told_by(instance):
    """The result of the method with every relaxation, and all bounds it told."""
    bounds = []
    budget = Budget(time_s=300.0, listener=lambda plan, bound: bounds.append(bound)).start()
    result = label_dp.run(instance, budget, params=EVERY)
    return result, [bound for bound in bounds if bound is not None]


@pytest.mark.in_turn
@pytest.mark.parametrize("family", ["tiny", "executions"])
def test_every_bound_on_the_way_holds_and_the_end_is_what_brute_force_finds(family):
    proven = 0
    for seed in range(3000, 3400):
        instance = unlike(family, seed)
        if instance is None or len(instance.devices) * len(instance.layers) > 12:
            continue
        truth = brute_force.run(instance, Budget(time_s=300.0).start())
        if truth.status not in (Status.OPTIMAL, Status.INFEASIBLE):
            continue
        found, bounds = told_by(instance)
        assert (found.status, found.bound) == (truth.status, truth.bound), seed
        if truth.status is Status.OPTIMAL:
            proven += 1
            assert all(bound <= truth.bound for bound in bounds), seed
    assert proven > (100 if family == "tiny" else 10)


@pytest.mark.in_turn
def test_a_relaxation_knows_which_links_are_slow():
    """No bound is above the optimum; with the fastest link everywhere many are below those with the links there are."""
    better, checked = 0, 0
    for seed in range(3200, 3240):
        instance = unlike("small", seed)
        low = lower(instance)
        best, path, _ = Interpreted(low, instance.all_devices)(list(range(low.layers + 1)), OPEN)
        if not path:
            continue
        n = len(instance.devices)
        fastest = max(rate for d, row in enumerate(instance.bandwidth) for e, rate in enumerate(row) if d != e)
        bounds = []
        for each in (instance, instance.changed(bandwidth=((fastest,) * n,) * n)):
            found = relaxation.Refinement(each, Budget(time_s=300.0), EVERY.moves, EVERY)
            while found.left:
                found.step(best + 1 + best // 10)
                assert found.bound <= best, seed
            bounds.append(found.bound)
        assert bounds[1] <= bounds[0], seed
        better += bounds[1] < bounds[0]
        checked += 1
    assert checked > 20
    assert better > checked // 2
