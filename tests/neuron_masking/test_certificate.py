"""Certificates of neuron masking against brute force: what is proven is true, and every optimum is proven."""

import random

import pytest
from certificates import accepted

from mapgap.core import Budget
from mapgap.formulations.neuron_masking import certificate as producer
from mapgap.formulations.neuron_masking import enumerate as brute_force
from mapgap.formulations.neuron_masking import lagrangian
from mapgap.instances.neuron_masking import LIBRARY
from mapgap.problems.neuron_masking.certificate.lagrangian import upper_envelope


def budget(seconds=200.0):
    return Budget(time_s=seconds).start()


def optimum(instance):
    """By brute force; ``None`` if there is no plan."""
    truth = brute_force.run(instance, budget())
    assert truth.enumerated
    return truth.claimed


def proven(instance, best):
    """The optimum is proven, and one less is neither proven nor accepted."""
    facts = instance.to_json()
    proof = producer.prove(facts, best, budget())
    assert proof is not None
    assert accepted(facts, best, proof)
    assert producer.prove(facts, best - 1, budget()) is None
    assert not accepted(facts, best - 1, proof)
    return facts, proof


@pytest.mark.in_turn
@pytest.mark.parametrize("family", ["small", "fleet"])
def test_larger_optima_are_proven(family):
    for seed in range(6):
        instance = LIBRARY.generate(family, seed)
        proven(instance, lagrangian.run(instance, budget()).claimed)


@pytest.mark.in_turn
def test_proofs_that_must_branch(monkeypatch):
    monkeypatch.setattr(producer, "LISTED", 40)
    split = 0
    for seed in range(1, 60, 3):
        instance = LIBRARY.generate("small", seed)
        _, proof = proven(instance, lagrangian.run(instance, budget()).claimed)
        split += any(step[0] == "s" for part in proof[0] for step in part[1])
    assert split >= 5


def test_the_envelope_is_the_largest_line():
    rng = random.Random(3)
    for _ in range(300):
        slopes = sorted(rng.choice([0, -1, -2, -3, -rng.randint(0, 10**6)]) for _ in range(rng.randint(1, 9)))[::-1]
        lines = [(slope, rng.choice([0, 5, rng.randint(-(10**7), 10**7)])) for slope in slopes]
        asked = sorted(rng.sample(range(30), 5))
        assert upper_envelope(lines, asked) == [max(s * x + h for s, h in lines) for x in asked]
