"""The checker of bounds against brute force: it accepts the optimum and nothing above it.

Truth comes from the evaluator alone where all plans with all shares can be written down, from the enumeration of cuts
and groups on larger instances, from the label search and the ledger on real sizes.
"""

import random
import time
from itertools import product

import pytest
from pipelines import compositions, example, executed, optimum, realistic

from mapgap.catalogue.files import load_instance
from mapgap.catalogue.registry import library, methods
from mapgap.contract.seeds import seeds, some
from mapgap.core import Budget
from mapgap.evidence import check as checker
from mapgap.evidence.ledger import Ledger
from mapgap.formulations.hybrid_pipeline.certificate import prove
from mapgap.problems.hybrid_pipeline import Device, DeviceType, Execution, Layer
from mapgap.problems.hybrid_pipeline.certificate import check
from mapgap.problems.hybrid_pipeline.certificate.facts import alike
from mapgap.problems.hybrid_pipeline.certificate.labels import keep
from mapgap.problems.hybrid_pipeline.certificate.search import Search
from mapgap.problems.hybrid_pipeline.evaluate import evaluate

ABOVE_ALL = 2**40
ENTRIES = [entry for entry in Ledger.load().entries.values() if entry.problem == "hybrid_pipeline"]


def accepts_up_to(instance, value):
    """The checker accepts the optimum and bounds below it, and refuses the next one; without a plan it accepts all."""
    seen = instance.to_json()
    if value is None:
        assert check(seen, 1, {}) is check(seen, ABOVE_ALL, {}) is None
        return
    for bound in (0, value // 2, value):
        assert check(seen, bound, {}) is None, (bound, value)
    reason = check(seen, value + 1, {})
    assert reason is not None, value
    assert reason.endswith(f" {value}"), (reason, value)  # only the optimum is below the bound
    assert check(seen, 2 * value + 5, {}) is not None


@pytest.mark.parametrize("seed", seeds(12, 300))
def test_every_execution_with_all_shares(seed):
    for instance in (library("hybrid_pipeline").generate("executions", 4 * seed), executed(seed)):
        accepts_up_to(instance, optimum(instance))


@pytest.mark.parametrize("seed", seeds(12, 300))
def test_inference_with_all_shares(seed):
    instance = executed(seed, training=False)
    for objective in ("latency", "bottleneck"):
        changed = instance.changed(objective=objective)
        accepts_up_to(changed, optimum(changed))


def test_a_certificate_of_inference_cannot_be_turned_into_another():
    instance = next(made for made in map(inferred, range(99)) if optimum(made) and len(made.devices) > 1)
    value = optimum(instance)
    file = {"schema": 1, "instance": instance.to_json(), "bound": value, "proof": {}}
    assert "no plan" in checker.check(file, instance.to_json())
    with pytest.raises(checker.Refused, match=f"a plan of objective {value}$"):
        checker.check(file | {"bound": value + 1})
    other = instance.changed(execution=instance.execution.model_copy(update={"training": True})).to_json()
    with pytest.raises(checker.Refused, match="about instance"):
        checker.check(file, other)


def inferred(seed):
    return executed(seed, training=False)


def test_executions_come_in_every_combination_that_matters():
    made = [executed(seed) for seed in range(300)]
    kinds = {(i.execution.training, i.execution.replication, i.execution.communication, i.objective) for i in made}
    assert len(kinds) == 2 * 2 * 3 * 2
    assert {i.execution.transfers for i in made} == {"one_link", "parallel"}
    assert {i.execution.stored for i in made} == {"warm_up", "one", "all", "behind"}
    assert any(i.replanning is not None and not i.execution.training for i in made)


@pytest.mark.parametrize("seed", seeds(12, 240))
def test_tiny_instances_with_all_shares(seed):
    instance = library("hybrid_pipeline").generate("tiny", seed)
    accepts_up_to(instance, optimum(instance))


@pytest.mark.parametrize("seed", seeds(12, 240))
def test_realistic_numbers_with_all_shares(seed):
    instance = realistic(seed)
    accepts_up_to(instance, optimum(instance))


@pytest.mark.parametrize("family", ["small", "steady"])
@pytest.mark.parametrize("seed", seeds(8, 160))
def test_small_instances(family, seed):
    instance = library("hybrid_pipeline").generate(family, seed)
    result = methods("hybrid_pipeline")["enumerate"].solve(instance, Budget(time_s=300.0))
    assert result.enumerated
    accepts_up_to(instance, None if result.plan is None else evaluate(instance, result.plan).objective)


def test_the_instances_above_have_every_kind():
    made = [library("hybrid_pipeline").generate("tiny", seed) for seed in range(120)] + [*map(realistic, range(120))]
    assert {instance.all_devices for instance in made} == {True, False}
    assert {len(instance.micro_batch_sizes) for instance in made} == {1, 2}
    failures = [instance for instance in made if instance.replanning]
    assert any(len(alike(instance.to_json())) < len(instance.devices) for instance in failures)
    uneven = [i for i in made if len({b for d, row in enumerate(i.bandwidth) for b in row[:d]}) > 1]
    assert any(len(alike(instance.to_json())) < len(instance.devices) for instance in uneven)
    assert max(optimum(instance) or 0 for instance in map(realistic, range(20))) > 10**6


def test_every_plan_but_the_best_is_above_the_worked_example():
    accepts_up_to(example(), 74)  # docs/methods/hybrid_pipeline.md
    accepts_up_to(example(), optimum(example()))


def uneven_pair(seed):
    """One or two layers on up to three devices whose forward and backward times have nothing to do with each other."""
    rng = random.Random(f"pair-{seed}")
    count, n, batch, top = rng.randint(1, 2), rng.randint(1, 3), rng.randint(2, 9), rng.choice((4, 10**4))

    def table():
        return tuple(tuple(sorted(rng.randint(0, top) for _ in range(batch))) for _ in range(count))

    stored = [rng.randint(0, 3) for _ in range(count)]
    need = sum(stored) * batch + count
    kinds = (DeviceType(name=f"T{t}", memory=rng.randint(0, need), forward=table(), backward=table()) for t in range(n))
    if rng.random() < 0.5:
        kinds = (DeviceType(name=f"T{t}", memory=9 * need, forward=table(), backward=table()) for t in range(n))
    return example(
        types=tuple(kinds),
        devices=tuple(Device(name=f"D{d}", type=rng.randrange(n)) for d in range(n)),
        bandwidth=tuple(tuple(10**6 * (d != e) for e in range(n)) for d in range(n)),
        layers=tuple(
            Layer(name=f"l{i}", output_bytes=1, weight_bytes=1, state_memory=1, activation_memory=size)
            for i, size in enumerate(stored)
        ),
        mini_batch=batch,
        micro_batch_sizes=(batch,),
    )


@pytest.mark.parametrize("make", [uneven_pair, realistic])
@pytest.mark.parametrize("seed", seeds(15, 300))
def test_times_are_those_of_the_best_shares(make, seed):
    instance, rng = make(seed), random.Random(f"shares-{seed}")
    batch = max(instance.micro_batch_sizes)
    search = Search(instance.to_json(), batch, ABOVE_ALL)
    count = rng.choice([group for group in product(*(range(n + 1) for n in search.size)) if any(group)])
    group = [d for members, n in zip(search.classes, count, strict=True) for d in members[:n]]
    i = rng.randrange(len(instance.layers))
    j, kept = rng.randint(i + 1, len(instance.layers)), rng.choice((1, 1, 3))
    best = None
    for shares in compositions(batch, len(group)):
        forward, backward, fits = [], [], True
        for d, y in zip(group, shares, strict=True):
            kind, layers = instance.device_type(d), instance.layers[i:j]
            fits &= sum(x.state_memory + kept * y * x.activation_memory for x in layers) <= kind.memory
            forward.append(sum(kind.forward[k][y - 1] for k in range(i, j)) if y else 0)
            backward.append(sum(kind.backward[k][y - 1] for k in range(i, j)) if y else 0)
        ef, eb = max(forward), max(backward)
        value = max(map(sum, zip(forward, backward, strict=True))), ef + eb, ef, eb
        if fits and (best is None or value < best):
            best = value
    assert search.times(i, j, count, kept) == (None if best is None else best[2:])


def test_a_smaller_forward_time_may_be_the_worse_tie():
    # Two samples. The first device takes (Ef, Eb) = (4, 5) for one, (5, 5) for two, the second one (0, 10) and (1, 10).
    # Both on the first one and one on each have T = 10, with Ef + Eb = 10 and 4 + 10: the former it is.
    kinds = (((4, 5), (5, 5)), ((0, 1), (10, 10)))
    types = (DeviceType(name=f"T{t}", memory=9, forward=(f,), backward=(b,)) for t, (f, b) in enumerate(kinds))
    instance = example(types=tuple(types), layers=example().layers[3:])
    assert Search(instance.to_json(), 2, ABOVE_ALL).times(0, 1, (1, 1), 1) == (5, 5)


def test_labels_stay_that_are_better_in_one_of_four():
    labels = []
    rows = [(4, 4, 4, 4), (9, 9, 3, 9), (9, 3, 9, 9), (3, 9, 9, 9), (9, 9, 9, 3), (4, 4, 5, 4), (4, 5, 4, 4)]
    for new in (*rows, (5, 4, 4, 4), (4, 4, 4, 5), (4, 4, 4, 4)):
        keep(labels, new)
    assert sorted(labels) == [(3, 9, 9, 9), (4, 4, 4, 4), (9, 3, 9, 9), (9, 9, 3, 9), (9, 9, 9, 3)]
    keep(labels, (4, 3, 4, 4))
    assert sorted(labels) == [(3, 9, 9, 9), (4, 3, 4, 4), (9, 9, 3, 9), (9, 9, 9, 3)]


@pytest.mark.in_turn
@pytest.mark.parametrize("seed", some(2, [0, 1, 2, 5, 9]))
def test_deep_networks_against_the_label_search(seed):
    instance = library("hybrid_pipeline").generate("scaling", seed)
    for changed in (instance, instance.changed(all_devices=False)):
        value = methods("hybrid_pipeline")["label_dp"].solve(changed, Budget(time_s=300.0)).bound
        assert check(changed.to_json(), value, {}) is None
        assert check(changed.to_json(), value + 1, {}) is not None


@pytest.mark.in_turn
@pytest.mark.parametrize("number", seeds(6, 60))
def test_the_ledger(number):
    entry = ENTRIES[number % len(ENTRIES)]
    instance, bound = load_instance(entry.instance).to_json(), entry.bound.value
    proof = prove(instance, bound, Budget(300.0))
    assert entry.instance in checker.check({"schema": 1, "instance": instance, "bound": bound, "proof": proof})
    if entry.plan.value == bound:
        with pytest.raises(checker.Refused, match=str(bound)):
            checker.check({"schema": 1, "instance": instance, "bound": bound + 1, "proof": proof})


def test_a_proof_is_given_for_what_holds_only():
    assert prove(example().to_json(), 74, Budget(300.0)) == {}
    assert prove(example().to_json(), 75, Budget(300.0)) is None


def test_a_plan_of_no_ticks_is_a_plan():
    kinds = tuple(kind.model_copy(update={"forward": ((0, 0),) * 4}) for kind in example().types)
    instance = example(types=kinds, execution=Execution(training=False, communication="free")).to_json()
    assert prove(instance, 0, Budget(300.0)) == {}
    assert prove(instance, 1, Budget(300.0)) is None


def test_the_search_for_a_proof_ends_with_the_budget():
    """What there is time to prove above is not proven without any."""
    budget = Budget(1e-9).start()
    while not budget.exhausted:
        time.sleep(1e-6)
    assert prove(example().to_json(), 74, budget) is None
    assert prove(example().to_json(), 74, Budget(300.0).start()) == {}


@pytest.mark.parametrize("proof", [{"cutoff": 1}, [], [["q", 0]], None])
def test_nothing_may_come_with_a_bound(proof):
    assert check(example().to_json(), 74, proof) is not None


def test_an_instance_that_breaks_the_argument_is_refused():
    def refused(change):
        seen = example().to_json()
        change(seen)
        return check(seen, 1, {}) is not None

    assert not refused(lambda seen: None)
    assert refused(lambda seen: seen["types"][0]["forward"][1].reverse())
    assert refused(lambda seen: seen["types"][1]["backward"][2].insert(0, -1))
    assert refused(lambda seen: seen["types"][1]["backward"].pop())
    assert refused(lambda seen: seen["layers"][3].update(output_bytes=-1))
    assert refused(lambda seen: seen["bandwidth"][0].__setitem__(1, 5))
    assert refused(lambda seen: seen.update(micro_batch_sizes=[3]))
    assert refused(lambda seen: seen.update(tick_ns=0))
    assert refused(lambda seen: seen["layers"][3].update(weight_bytes=1.5))
    assert refused(lambda seen: seen["types"][0].update(memory=True))
    assert refused(lambda seen: seen["devices"][0].update(type=-1))
    assert refused(lambda seen: seen.update(micro_batch_sizes=[]))
    assert refused(lambda seen: seen["bandwidth"].pop())


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"precedence": []}, "the field precedence"),
        ({"execution": {"training": False, "order": "1F1B"}}, "the execution order: 1F1B"),
        ({"execution": {"communication": "none"}}, "the execution communication: none"),
        ({"devices": [{"name": "F", "type": 0, "stages": [0]}]}, "the field stages of devices"),
        ({"objective": "energy"}, "the objective energy"),
    ],
)
def test_what_the_argument_does_not_know_is_refused_by_name(change, named):
    assert check(example().to_json() | change, 1, {}) == f"not covered by the argument: {named}"
