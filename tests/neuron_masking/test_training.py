"""The federated training: gradients against finite differences, masks, aggregation, clock, and runs that resume."""

from concurrent.futures import Future

import numpy as np
import pytest

pytest.importorskip("sklearn")

from federated_training import rivals, schemes
from federated_training.averages import completeness_weights, partial_average, plain_average
from federated_training.data import split_digits
from federated_training.network import Network, stages
from federated_training.schemes import Fleet, Masks, train
from mapgap.catalogue.files import load_instance
from mapgap.contract.seeds import some
from mapgap.core import InputError
from mapgap.execution import limits
from mapgap.execution.sweep import sweep
from mapgap.problems.neuron_masking import Mask, Plan
from mapgap.problems.neuron_masking.evaluate import evaluate
from mapgap.studies.neuron_masking import job
from mapgap.studies.neuron_masking.job import Options

LAYERS = stages("digits_cnn")
FLEET = "elfish_digits_2of4"


def network(seed=0):
    return Network.initial(LAYERS, np.random.default_rng(seed))


def images(count=6, seed=1):
    rng = np.random.default_rng(seed)
    return rng.random((count, 8, 8, 1)), rng.integers(0, 10, count)


def some_neurons(seed=2):
    rng = np.random.default_rng(seed)
    sizes = [layer.shape[0] for layer in LAYERS]
    kept = [np.sort(rng.choice(n, size=n // 2, replace=False)) for n in sizes[:-1]]
    return [*kept, np.arange(sizes[-1])]


@pytest.mark.parametrize("masked", [False, True])
def test_gradient_equals_finite_differences(masked):
    model = network().part(some_neurons()) if masked else network()
    x, labels = images()
    _, gradient = model.loss_and_gradient(x, labels)
    rng, step = np.random.default_rng(3), 1e-6
    for parameters, slopes in zip(model.parameters, gradient, strict=True):
        for values, slope in zip(parameters, slopes, strict=True):
            assert slope.shape == values.shape
            for _ in range(6):
                where = tuple(rng.integers(0, n) for n in values.shape)
                before = values[where]
                values[where] = before + step
                above, _ = model.loss_and_gradient(x, labels)
                values[where] = before - step
                below, _ = model.loss_and_gradient(x, labels)
                values[where] = before
                assert slope[where] == pytest.approx((above - below) / (2 * step), rel=1e-4, abs=1e-7)


def test_a_part_computes_what_the_model_without_the_masked_neurons_computes():
    model, kept = network(), some_neurons()
    silenced = model.copy()
    for (w, b), rows in zip(silenced.parameters[:-1], kept[:-1], strict=True):
        masked = np.setdiff1d(np.arange(len(b)), rows)
        w[masked], b[masked] = 0.0, 0.0  # the activation of 0 is 0, which adds nothing to the next layer
    x, _ = images()
    assert model.part(kept).logits(x) == pytest.approx(silenced.logits(x))


def test_masked_neurons_get_no_gradient_and_trained_ones_do():
    fleet = Fleet(load_instance(FLEET), Options("elfish"), 0)
    before, kept = network(), some_neurons()
    after = fleet.train(before, 2, kept)
    for (w0, b0), (w1, b1), (w, b) in zip(before.parameters, after.parameters, before.trained(kept), strict=True):
        assert np.array_equal(w0[w == 0], w1[w == 0])
        assert np.array_equal(b0[b == 0], b1[b == 0])
        assert (w0[w == 1] != w1[w == 1]).any()


def test_recovery_undoes_a_part():
    model, kept = network(), some_neurons()
    again = model.recover(model.part(kept), kept)
    for (w0, b0), (w1, b1) in zip(model.parameters, again.parameters, strict=True):
        assert np.array_equal(w0, w1)
        assert np.array_equal(b0, b1)


def test_aggregation_weights_sum_to_one_and_follow_completeness():
    sizes = [layer.shape[0] for layer in LAYERS]
    whole, half = [np.arange(n) for n in sizes], some_neurons()
    weights = completeness_weights([whole, half], sizes)
    assert weights.sum() == pytest.approx(1.0)
    assert weights[0] / weights[1] == pytest.approx(sum(sizes) / sum(map(len, half)))


def test_partial_average_runs_over_those_who_trained():
    sizes = [layer.shape[0] for layer in LAYERS]
    whole, half = [np.arange(n) for n in sizes], some_neurons()
    old, models = network(0), [network(1), network(2)]
    mixed = partial_average(old, models, [whole, half])
    a, b = completeness_weights([whole, half], sizes)
    ones = old.trained(half)
    for i, (w, _) in enumerate(mixed.parameters):
        first, second = (model.parameters[i][0] for model in models)
        both = ones[i][0] == 1
        assert w[both] == pytest.approx((a * first + b * second)[both])
        assert w[~both] == pytest.approx(first[~both])  # only the whole model trained it
    # Nobody trained what both masked: it stays.
    untouched = partial_average(old, models, [half, half])
    for (w, _), (w0, _), (mask, _) in zip(untouched.parameters, old.parameters, ones, strict=True):
        assert np.array_equal(w[mask == 0], w0[mask == 0])


def test_averages_of_equal_whole_models_are_that_model():
    whole = [np.arange(layer.shape[0]) for layer in LAYERS]
    model = network(5)
    for mixed in (plain_average([model, model]), partial_average(network(6), [model, model], [whole, whole])):
        for (w0, _), (w1, _) in zip(model.parameters, mixed.parameters, strict=True):
            assert w1 == pytest.approx(w0)


def test_clock_is_the_cost_model():
    fleet = Fleet(load_instance(FLEET), Options("sync"), 0)
    times = fleet.times([fleet.neurons] * 4)
    # Compute sets the pace: 9 GMAC/s take one cycle, the stragglers of 7 and 6 GMAC/s 9/7 and 9/6 of it.
    assert times == pytest.approx([1.0, 1.0, 9 / 7, 9 / 6], rel=0.02)
    assert train(fleet.instance, Options("sync", cycles=3), 0).curve[-1][0] == pytest.approx(2 * times[3])


@pytest.mark.parametrize("scheme", sorted(schemes.COUNTS))
def test_masks_keep_the_limits_and_the_top_share(scheme):
    instance = load_instance(FLEET)
    fleet = Fleet(instance, Options(scheme), 0)
    masks = Masks(fleet, scheme)
    before = network()
    masks.learn(3, before, fleet.train(before, 3, fleet.whole))
    chosen = masks.choose()
    plan = Plan(
        masks=tuple(
            Mask(kept=tuple(len(row) for row in rows), chosen=tuple(tuple(map(int, row)) for row in rows))
            for rows in chosen
        )
    )
    devices = tuple(
        d.model_copy(update={"contributions": u}) for d, u in zip(instance.devices, masks.contributions, strict=True)
    )
    evaluation = evaluate(instance.model_copy(update={"devices": devices}), plan)
    assert evaluation.violations == ()
    assert sum(len(row) for row in chosen[3]) < sum(fleet.neurons)


def test_contribution_is_the_change_of_a_neuron():
    masks = Masks(Fleet(load_instance(FLEET), Options("elfish"), 0), "elfish")
    before, after = network(), network()
    after.parameters[0][0][3] += 0.5  # nine weights: norm 1.5
    after.parameters[1][1][7] += 0.75
    masks.learn(0, before, after)
    first, second, *_ = masks.contributions[0]
    assert first == (0, 0, 0, 10_000, 0, 0, 0, 0)
    assert second == tuple(5_000 if j == 7 else 0 for j in range(16))


@pytest.mark.parametrize("iid", [True, False])
def test_every_image_goes_to_one_place(iid):
    split = split_digits(4, 0, iid=iid)
    sizes = [len(labels) for _, labels in (*split.parts, split.test)]
    assert sum(sizes) == 1797
    digits = [len(set(labels.tolist())) for _, labels in split.parts]
    assert (min(digits) == 10) if iid else (max(digits) <= 5)


@pytest.mark.in_turn
@pytest.mark.parametrize("scheme", some(2, job.SCHEMES))
def test_training_learns_and_repeats(scheme):
    instance = load_instance(FLEET)
    outcome = train(instance, Options(scheme, cycles=3, rate=0.1), 1)
    assert outcome.curve[0][1] < 0.3 < outcome.curve[-1][1]
    assert outcome.curve[-1][0] <= 3
    assert outcome == train(instance, Options(scheme, cycles=3, rate=0.1), 1)


def test_every_aggregation_is_tested_when_it_happens():
    # Devices upload at multiples of 1, 1, 9/7 and 9/6 cycle times: 3 + 3 + 2 + 2 times within three of them. A curve
    # that left some out would show a model that is older than its moment.
    outcome = train(load_instance(FLEET), Options("async", cycles=3), 0)
    assert outcome.uploads == 10
    assert len(outcome.curve) == 1 + 10
    assert [time for time, _ in outcome.curve] == sorted(time for time, _ in outcome.curve)
    assert outcome.curve[-1][0] == pytest.approx(3.0, abs=0.05)


def test_wrong_options_are_refused():
    with pytest.raises(InputError, match="scheme: expected one of sync"):
        train(load_instance(FLEET), Options("best"), 0)
    with pytest.raises(InputError, match="expected the layers of digits_cnn"):
        train(load_instance("elfish_lenet_straggler1"), Options("sync"), 0)


class Here:
    """Runs at once, in this process: the start of another one would take longer than the training."""

    def submit(self, function, *arguments):
        future = Future()
        future.set_result(function(*arguments))
        return future


class Never:
    """Is interrupted before anything is done."""

    def submit(self, *_):
        limits.INTERRUPT.set()
        return Future()


def test_trainings_are_recorded_and_resumed(tmp_path, monkeypatch):
    monkeypatch.setattr(job, "POOL", Here())
    todo = job.TrainingJob(load_instance(FLEET), Options("elfish", cycles=2), 0)
    path = tmp_path / "runs.jsonl"
    (record,) = sweep([todo], path)
    assert record.key == todo.key
    assert record.error is None
    assert (record.kind, record.method, record.objective) == ("training", "train_elfish", None)
    assert len(record.notes["curve"]) == 3
    monkeypatch.setattr(job, "POOL", None)  # a second training would fail
    (again,) = sweep([todo], path)
    assert again.to_json() == record.to_json()


def test_what_fails_in_a_training_is_recorded():
    record = job.TrainingJob(load_instance("elfish_lenet_straggler1"), Options("sync"), 0).execute_in(Failing().submit)
    assert record.stop == "error"
    assert "expected the layers of digits_cnn" in record.error


class Failing:
    """Hands an exception on, as a process of a pool does."""

    def submit(self, function, *arguments):
        future = Future()
        try:
            function(*arguments)
        except InputError as error:
            future.set_exception(error)
        return future


def test_an_interrupted_training_is_not_a_finished_one():
    try:
        record = job.TrainingJob(load_instance(FLEET), Options("sync", cycles=2), 0).execute_in(Never().submit)
    finally:
        limits.INTERRUPT.clear()
    assert record.stop == "interrupted"


def test_without_the_package_that_trains_nothing_is_run(monkeypatch):
    monkeypatch.setattr(job, "TRAINER", "no_such_package:measure")
    assert not job.available()
    with pytest.raises(InputError, match="expected federated_training and scikit-learn"):
        job.measure(load_instance(FLEET).to_json(), {"scheme": "sync"}, 0)


def test_a_checkout_has_the_package_that_trains():
    assert (job.EXAMPLE / "federated_training" / "__init__.py").is_file()
    assert job.available()


def loop_of(name, fleet):
    return rivals.LOOPS[name](fleet, network())


def test_uniform_submodels_are_the_first_neurons_and_fit_the_cycle():
    """The same neurons in every cycle, those of a straggler among those of a capable device."""
    loop = loop_of("uniform", Fleet(load_instance(FLEET), Options("uniform"), 0))
    (now, _, first), (later, _, second) = next(loop), next(loop)
    assert now <= 1 + 1e-9
    assert later == pytest.approx(2 * now)
    for kept, again in zip(first, second, strict=True):
        assert all(list(row) == list(range(len(row))) for row in kept)
        assert [len(row) for row in kept] == [len(row) for row in again]
    assert len(first[2][0]) < len(first[0][0]) == LAYERS[0].shape[0]


def test_steps_of_fedprox_fit_the_cycle_and_use_it():
    """A straggler of 1.48 cycle times does 15 of its 23 steps: 15 of them take 0.967 of a cycle, 16 would take 1.03.
    One of 1.27 does 18 (0.998); the capable ones all, in 0.9966. The cycle lasts as long as the longest of them."""
    fleet = Fleet(load_instance(FLEET), Options("fedprox"), 0)
    done = {}
    train_alone = fleet.train
    fleet.train = lambda model, device, kept, most=None: (
        done.update({device: most}) or train_alone(model, device, kept, most)
    )
    now, _, _ = next(loop_of("fedprox", fleet))
    assert done == {0: 23, 1: 23, 2: 18, 3: 15}
    assert now == pytest.approx(1.274577722 * 18 / 23)


@pytest.mark.in_turn
def test_fedprox_without_pull_and_dropping_without_stragglers_are_synchronous_learning():
    """All three with capable devices alone: one pass each, plain average, same draws."""
    whole = load_instance(FLEET)
    capable = whole.model_copy(update={"devices": whole.devices[:2]})
    curves = [train(capable, Options(name, cycles=3), 5).curve for name in ("sync", "fedprox", "dropped")]
    assert curves[0] == curves[1] == curves[2]


def test_pull_draws_towards_the_model_that_a_pass_began_with():
    """The larger the pull, the less a pass moves."""
    model = network()
    moved = []
    for pull in (0.0, 0.1, 1.0):
        fleet = Fleet(load_instance(FLEET), Options("fedprox", proximal=pull), 0)
        trained = fleet.train(model, 0, fleet.whole)
        pairs = zip(trained.parameters, model.parameters, strict=True)
        moved.append(sum(float(((w - v) ** 2).sum()) for (w, _), (v, _) in pairs))
    assert moved[0] > moved[1] > moved[2] > 0


def test_where_all_are_stragglers_nobody_is_left_to_train():
    with pytest.raises(InputError, match="stragglers only"):
        train(load_instance("elfish_digits_4of4"), Options("dropped", cycles=1), 0)
