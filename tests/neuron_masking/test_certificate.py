"""Certificates of neuron masking against brute force: what is proven is true, and every optimum is proven."""

import json
import random

import pytest
from certificates import accepted, damaged

from mapgap.contract.seeds import seeds
from mapgap.core import Budget
from mapgap.formulations.neuron_masking import certificate as producer
from mapgap.formulations.neuron_masking import enumerate as brute_force
from mapgap.formulations.neuron_masking import lagrangian
from mapgap.instances.neuron_masking import LIBRARY
from mapgap.problems.neuron_masking import Instance
from mapgap.problems.neuron_masking.certificate.lagrangian import upper_envelope


def budget(seconds=20.0):
    return Budget(time_s=seconds).start()


def realistic(seed):
    """Coefficients, limits and contributions of the size of the library's; zeros and ties among them."""
    rng = random.Random(f"neuron-certificate-{seed}")
    sizes = [rng.randint(2, 6) for _ in range(rng.randint(2, 4))]
    layers = [
        {
            "name": f"l{i}",
            "neurons": n,
            "least": rng.randint(1, max(1, n // 3)),
            "work": rng.choice([576, 2304, 19600, 100_000]),
            "weights": rng.choice([1, 9, 25, 1024]),
            "features": rng.choice([0, 64, 16384, 65536]),
        }
        for i, n in enumerate(sizes)
    ]
    whole = sum(x["work"] * a * b for x, a, b in zip(layers, [3, *sizes], sizes, strict=False))
    memory = sum((x["weights"] * a + x["features"]) * b for x, a, b in zip(layers, [3, *sizes], sizes, strict=False))
    devices, cycles = rng.choice([(1, 1), (1, 1), (2, 3), (3, 2)])
    objective = rng.choice(["neurons", "contribution", "smallest_share", "rate"])
    made = []
    for d in range(devices):
        times = sorted(int(whole * rng.uniform(0.05, 1.1)) for _ in range(cycles))
        share = rng.choice([0.8, 1.0])
        each = [rng.choice([0, 7, 1000, 1000, rng.randint(0, 300_000)]) for _ in range(20)]
        made.append(
            {
                "name": f"d{d}",
                "tick_ps": 18_199_273,
                "transfer": {"ticks": rng.choice([0, 7, 11]), "per": rng.choice([800, 1600])},
                "spill": {"ticks": rng.choice([8, 33, 175]), "per": rng.choice([25, 167, 696])},
                "overhead": rng.choice([0, 12_345]),
                "time_limit": times,
                "work_limit": [int(t * share) for t in times],
                "memory_limit": int(memory * rng.uniform(0.1, 1.1)),
                "contributions": [[rng.choice(each) for _ in range(n)] for n in sizes],
            }
        )
    facts = {
        "name": f"realistic_{seed}",
        "source": "generated",
        "problem": "neuron_masking",
        "schema": 1,
        "objective": objective,
        "memory_mode": rng.choice(["hard", "spill"]),
        "memory_unit_bytes": 8,
        "work_unit_macs": 1,
        "cycle_ms": sorted(rng.sample(range(304, 2_541_914), cycles)),
        "inputs": 3,
        "layers": layers,
        "devices": made,
    }
    return Instance.model_validate_json(json.dumps(facts))


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


@pytest.mark.parametrize("block", seeds(2, 10))
def test_optima_are_proven_and_no_more(block):
    for seed in range(20 * block, 20 * block + 20):
        instance = LIBRARY.generate("tiny", seed)
        best = optimum(instance)
        if best is None:
            assert accepted(instance.to_json(), -1, [None] * len(instance.cycle_ms))
        else:
            proven(instance, best)


@pytest.mark.parametrize("block", seeds(2, 10))
def test_optima_of_realistic_numbers_are_proven_and_no_more(block):
    for seed in range(10 * block, 10 * block + 10):
        instance = realistic(seed)
        if (best := optimum(instance)) is not None:
            proven(instance, best)


@pytest.mark.parametrize("family", ["small", "fleet"])
def test_larger_optima_are_proven(family):
    for seed in range(6):
        instance = LIBRARY.generate(family, seed)
        proven(instance, lagrangian.run(instance, budget()).claimed)


def test_proofs_that_must_branch(monkeypatch):
    monkeypatch.setattr(producer, "LISTED", 40)
    split = 0
    for seed in range(1, 60, 3):
        instance = LIBRARY.generate("small", seed)
        _, proof = proven(instance, lagrangian.run(instance, budget()).claimed)
        split += any(step[0] == "s" for part in proof[0] for step in part[1])
    assert split >= 5


def test_no_damaged_proof_proves_more_than_is_true(monkeypatch):
    monkeypatch.setattr(producer, "LISTED", 40)
    rng = random.Random(1)
    believed = tried = 0
    for seed in range(40):
        instance = realistic(seed)
        if (best := optimum(instance)) is None:
            continue
        facts, proof = proven(instance, best)
        wrong = [bound for bound in (best - 1, best - rng.randint(2, 1000), 0, -1) if bound < best]
        for _ in range(10):
            tried += 1
            bad = damaged(rng, proof)
            believed += accepted(facts, best, bad)
            assert not any(accepted(facts, bound, bad) for bound in wrong)
    assert tried >= 300
    assert believed  # some damage is harmless


def test_no_proof_of_another_instance_proves_more_than_is_true():
    rng = random.Random(2)
    looked = 0
    while looked < 150:
        instance = realistic(rng.randrange(60))
        if (best := optimum(instance)) is None:
            continue
        facts, proof = proven(instance, best)
        for _ in range(5):
            other = damaged(rng, {key: facts[key] for key in ("layers", "devices", "cycle_ms")})
            try:
                changed = Instance.model_validate_json(json.dumps({**facts, **other}))
            except ValueError:
                continue
            looked += 1
            truth = optimum(changed)
            assert truth is None or truth <= best or not accepted(changed.to_json(), best, proof)


def test_the_envelope_is_the_largest_line():
    rng = random.Random(3)
    for _ in range(300):
        slopes = sorted(rng.choice([0, -1, -2, -3, -rng.randint(0, 10**6)]) for _ in range(rng.randint(1, 9)))[::-1]
        lines = [(slope, rng.choice([0, 5, rng.randint(-(10**7), 10**7)])) for slope in slopes]
        asked = sorted(rng.sample(range(30), 5))
        assert upper_envelope(lines, asked) == [max(s * x + h for s, h in lines) for x in asked]
