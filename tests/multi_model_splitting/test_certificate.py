"""Certificates of multi-model splitting against brute force: what is proven is true, and every optimum is proven."""

import json
import random

import pytest
from certificates import accepted

from mapgap.contract.seeds import samples, some
from mapgap.core import Budget
from mapgap.evidence.check import Box, Program
from mapgap.formulations.multi_model_splitting import certificate as producer
from mapgap.formulations.multi_model_splitting import enumerate as brute_force
from mapgap.formulations.multi_model_splitting import joint
from mapgap.instances.multi_model_splitting import LIBRARY
from mapgap.problems.multi_model_splitting import Instance
from mapgap.problems.multi_model_splitting.certificate import program
from mapgap.problems.multi_model_splitting.certificate.paths import Path
from mapgap.problems.multi_model_splitting.evaluate import evaluate
from mapgap.solvers.refute import refute


def budget(seconds=200.0):
    return Budget(time_s=seconds).start()


def twins(seed):
    """Pipelines of one signal, most of one model, that share operations; sources and targets partly free."""
    rng = random.Random(f"splitting-twins-{seed}")
    count, devices, layers = rng.choice([(2, 2, 3), (2, 3, 2), (3, 2, 2), (3, 3, 1), (2, 3, 3)])

    def ticks():
        return [rng.choice([0, 1000, 1000, rng.randint(1, 900_000)]) for _ in range(devices)]

    def model(name):
        return {
            "model": name,
            "layers": [
                {
                    "name": f"l{k}",
                    "weights": rng.choice([0, 9_000, 60_000]),
                    "bias": rng.choice([0, 64]),
                    "output_bytes": 9,
                }
                | {"inference": ticks()}
                for k in range(layers)
            ],
            "boundaries": [
                {"bytes": 9, "transmit": ticks(), "receive": ticks()}
                | {"load": ticks() if k < layers else [], "unload": ticks() if k else []}
                for k in range(layers + 1)
            ],
        }

    models = [model("a"), model("b")]
    models[1]["boundaries"][0] |= {key: models[0]["boundaries"][0][key] for key in ("transmit", "receive")}
    sensing = ticks()
    names = [f"d{d}" for d in range(devices)]

    def anywhere():
        return rng.choice([{}, {}, {"device": rng.choice(names)}])

    pipelines = [
        {"name": f"p{p}", "source": anywhere(), "target": anywhere(), "signal": rng.choice(["s", "s", "s", ""])}
        | {"sensing": sensing, **rng.choice([models[0], models[0], models[1]])}
        for p in range(count)
    ]
    room = rng.choice([60_000, 130_000, 400_000])
    facts = {
        "name": f"twins_{seed}",
        "source": "generated",
        "problem": "multi_model_splitting",
        "objective": rng.choice(["throughput", "throughput", "latency"]),
        "tick_ns": 1000,
        "sharing": True,
        "devices": [{"name": name, "weights": room, "bias": 512, "layers": rng.choice([2, 4, 9])} for name in names],
        "pipelines": pipelines,
    }
    return Instance.model_validate_json(json.dumps(facts))


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


@pytest.mark.parametrize("sample", samples(20, 200))
def test_optima_with_twins_are_proven_and_no_more(sample):
    for seed in sample:
        instance = twins(seed)
        if (best := optimum(instance)) is not None:
            proven(instance, best)
        else:  # there is no plan at all
            proof = producer.prove(instance.to_json(), 2**31, budget())
            assert proof is not None
            assert accepted(instance.to_json(), 2**31, proof)


LARGER = [("small", 2), ("small", 3), ("small", 8), ("small", 11), ("full", 1), ("wearables_4x4", 0)]


@pytest.mark.in_turn
@pytest.mark.parametrize(("family", "seed"), some(1, LARGER))
def test_larger_optima_are_proven(family, seed):
    instance = LIBRARY.generate(family, seed)
    proven(instance, joint.run(instance, budget()).claimed)


def refuted(instance, plan, bound):
    """Does the program of all plans better than the bound have no point for this plan?"""
    facts = instance.to_json()
    counted = Program()  # the program begins with the paths
    paths = [Path(counted, facts, pipeline, bound) for pipeline in facts["pipelines"]]
    written = program(facts, bound, Program)
    box = Box(written.lower[:], written.upper[:], [])
    for path, decisions in zip(paths, plan.pipelines, strict=True):
        segments = decisions.segments
        chosen = {(s.first, s.last, s.device) for s in segments}
        if not chosen <= set(path.segments):
            return True
        begins, ends = {(decisions.source, segments[0].device)}, {(segments[-1].device, decisions.target)}
        for variables, taken in ((path.segments, chosen), (path.first, begins), (path.final, ends)):
            for key, variable in variables.items():
                box.lower[variable] = box.upper[variable] = int(key in taken)
    found = refute(written, box, budget())
    assert (found.proof is None) != (found.point is None)
    return found.point is None


@pytest.mark.in_turn
@pytest.mark.parametrize("make", [lambda seed: LIBRARY.generate("tiny", seed), twins])
def test_the_program_has_a_point_for_every_plan_at_its_objective(make):
    rng = random.Random(4)
    feasible = 0
    for seed in range(40):
        instance = make(seed)
        for _ in range(6):
            plan = LIBRARY.random_plan(instance, rng)
            found = evaluate(instance, plan)
            if found.feasible:
                feasible += 1
                assert not refuted(instance, plan, found.objective + 1)
                assert refuted(instance, plan, found.objective)
            elif found.objective is not None:
                assert refuted(instance, plan, found.objective + 1)
    assert feasible >= 50


@pytest.mark.in_turn
def test_a_search_whose_relaxation_cycles_ends_in_time():
    """One tick above the optimum of 10,000,000 the simplex method cycles; nothing must be proven, and soon."""
    instance = LIBRARY.generate("realistic", 572).to_json()
    assert producer.prove(instance, 10_000_001, Budget(time_s=1.0).start()) is None
    assert producer.prove(instance, 10_000_000, Budget(time_s=300.0).start()) is not None
