"""Certificates of the FPGA-GPU partition against brute force: what is proven is true, and every optimum is proven."""

import itertools
import json
import math
import random

import pytest
from certificates import accepted, damaged

from mapgap.core import Budget
from mapgap.formulations.fpga_gpu_partition import certificate as producer
from mapgap.formulations.fpga_gpu_partition import enumerate as brute_force
from mapgap.formulations.fpga_gpu_partition import label_setting
from mapgap.instances.fpga_gpu_partition import LIBRARY
from mapgap.problems.fpga_gpu_partition import PROBLEM, Instance


def budget(seconds=20.0):
    return Budget(time_s=seconds).start()


def realistic(seed):
    """A tiny instance with times and energies of the size of the library's, zeros and ties among them."""
    facts = LIBRARY.generate("tiny", seed).to_json()
    rng = random.Random(f"partition-certificate-{seed}")
    for module in facts["modules"]:
        for layer in module["layers"]:
            for option in layer["options"]:
                for side in ("gpu", "fpga"):
                    if option[f"{side}_ticks"]:
                        option[f"{side}_ticks"] = rng.choice([1, 1000, 1000, rng.randint(1, 60_000)])
                        option[f"{side}_energy"] = rng.choice([0, 1000, 1000, rng.randint(1, 60_000)])
    facts["link"]["setup_energy"] = rng.choice([0, 500])
    facts["latency_limit"] = rng.choice([None, None, rng.randint(10_000, 200_000)])
    facts["energy_limit"] = rng.choice([None, None, rng.randint(10_000, 200_000)])
    return Instance.model_validate_json(json.dumps(facts))


def tiny(seed):
    return LIBRARY.generate("tiny", seed)


def brief(make, count):
    """Instances of few plans."""
    made = (make(seed) for seed in itertools.count())
    few = (x for x in made if math.prod(len(layer.options) for layer in x.layers) <= 150)
    return itertools.islice(few, count)


def optimum(instance):
    """By brute force; ``None`` if there is no plan."""
    truth = brute_force.run(instance, budget())
    assert truth.enumerated
    return truth.claimed


def proven(instance, best):
    """The optimum is proven, and one more is neither proven nor accepted."""
    facts = instance.to_json()
    proof = producer.prove(facts, best, budget())
    assert proof is not None
    assert accepted(facts, best, proof)
    assert producer.prove(facts, best + 1, budget()) is None
    assert not accepted(facts, best + 1, proof)
    return facts, proof


@pytest.mark.parametrize("objective", PROBLEM.objectives)
@pytest.mark.parametrize("make", [tiny, realistic])
def test_optima_are_proven_and_no_more(make, objective):
    for drawn in brief(make, 60):
        instance = PROBLEM.retarget(drawn, objective)
        if (best := optimum(instance)) is not None:
            proven(instance, best)
        else:  # there is no plan at all
            proof = producer.prove(instance.to_json(), 10**10, budget())
            assert proof is not None
            assert accepted(instance.to_json(), 10**10, proof)


@pytest.mark.parametrize("objective", PROBLEM.objectives)
def test_larger_optima_are_proven(objective):
    for seed in (0, 15):  # where the writer takes no seconds
        instance = PROBLEM.retarget(LIBRARY.generate("small", seed), objective)
        found = label_setting.run(instance, budget())
        assert found.claimed == found.bound
        proven(instance, found.claimed)


def test_no_damaged_proof_proves_more_than_is_true():
    rng = random.Random(1)
    believed = tried = 0
    for drawn in brief(realistic, 60):
        instance = PROBLEM.retarget(drawn, rng.choice(["edp", *PROBLEM.objectives]))
        if (best := optimum(instance)) is None:
            continue
        facts, proof = proven(instance, best)
        for _ in range(8):
            bad = damaged(rng, proof)
            tried += 1
            believed += accepted(facts, best, bad)
            assert not any(accepted(facts, best + more, bad) for more in (1, rng.randint(2, 10**6), 10**11))
    assert tried >= 300
    assert believed  # some damage is harmless


def test_no_proof_of_another_instance_proves_more_than_is_true():
    rng = random.Random(2)
    looked = 0
    for drawn in brief(realistic, 25):
        instance = PROBLEM.retarget(drawn, rng.choice(PROBLEM.objectives))
        if (best := optimum(instance)) is None:
            continue
        facts, proof = proven(instance, best)
        for _ in range(5):
            other = damaged(rng, {key: facts[key] for key in ("modules", "fabric", "link", "standby_mw")})
            try:
                changed = Instance.model_validate_json(json.dumps({**facts, **other}))
            except ValueError:
                continue
            looked += 1
            truth = optimum(changed)
            assert truth is None or truth >= best or not accepted(changed.to_json(), best, proof)
    assert looked >= 30
