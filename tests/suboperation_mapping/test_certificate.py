"""Certificates of sub-operation mapping against brute force, and the writer's programs against plans."""

import json
import random
from itertools import permutations, product

import highspy
import numpy as np
import pytest
from certificates import accepted, damaged, drawn, with_equal_accelerators
from chains import network

from mapgap.catalogue import registry
from mapgap.catalogue.files import load_instance
from mapgap.contract.seeds import seeds, some
from mapgap.core import Budget, Status
from mapgap.evidence.check import Box, Program, Refused, check, refuted
from mapgap.formulations.suboperation_mapping import enumerate as brute_force
from mapgap.formulations.suboperation_mapping.certificate import Climb, climb, prove
from mapgap.formulations.suboperation_mapping.params import Certificate
from mapgap.formulations.suboperation_mapping.programs import shaving, written
from mapgap.instances.suboperation_mapping.families import random_sequence
from mapgap.problems.suboperation_mapping import Instance
from mapgap.problems.suboperation_mapping.certificate import cases
from mapgap.problems.suboperation_mapping.certificate.alike import classes
from mapgap.problems.suboperation_mapping.certificate.gathering import with_gathering
from mapgap.problems.suboperation_mapping.certificate.lengths import GRAIN, contains
from mapgap.problems.suboperation_mapping.certificate.located import Located
from mapgap.problems.suboperation_mapping.certificate.shortest import by_holders, least_length
from mapgap.problems.suboperation_mapping.certificate.times import Writer
from mapgap.problems.suboperation_mapping.evaluate import evaluate, timetable
from mapgap.problems.suboperation_mapping.lowered.arrays import lower
from mapgap.problems.suboperation_mapping.lowered.ratios import partitions


def proven(instance, bound):
    """Whether there is a certificate of a bound, and the certificate; the checker has the last word."""
    data = instance.to_json()
    proof = prove(data, bound, Budget(time_s=200).start())
    if proof is None:
        return None
    certificate = {"schema": 1, "instance": data, "bound": bound, "proof": proof}
    check(certificate)
    return certificate


def is_point(writer, places, start):
    """Whether places and starts of all operations are those of a point of the program, by a MIP with them fixed."""
    program = writer.program
    lower_bounds, upper_bounds = np.array(program.lower, float), np.array(program.upper, float)
    for operation, a in places.items():
        lower_bounds[writer.x[operation][a]] = 1.0
        j = writer.start[operation]
        lower_bounds[j] = upper_bounds[j] = float(start[operation])
    engine = highspy.Highs()
    engine.setOptionValue("output_flag", False)
    for j, (low, high) in enumerate(zip(lower_bounds, upper_bounds, strict=True)):
        engine.addVar(low, high)
        engine.changeColIntegrality(j, highspy.HighsVarType.kInteger)
    for row, bound in program.rows:
        index, value = np.array(list(row), np.int32), np.array(list(row.values()), float)
        engine.addRow(-highspy.kHighsInf, bound, len(row), index, value)
    engine.run()
    return engine.getModelStatus() == highspy.HighsModelStatus.kOptimal


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("seed", seeds(8, 80))
def test_every_plan_is_a_point(seed, ordered):
    """A random plan satisfies every row of the program whose bound its makespan just meets."""
    instance, rng = drawn(seed, layers=(1, 5), batch=(1, 6)), random.Random(seed)
    ratio = rng.choice(list(partitions(instance.batch, len(instance.accelerators))))
    low = lower(instance, ratio)
    location = np.array([rng.randrange(low.accelerators) for _ in range(low.n)])
    if rng.random() < 0.3:
        location[:] = location[0]
    start, end = low.timetable(location, np.array(random_sequence(low, rng)))
    samples = tuple(r for r in ratio if r)
    found = []
    for labels in permutations(range(len(samples))):  # equal shares may change names
        if all(samples[b] == samples[c] for b, c in enumerate(labels)):
            named = [(phase, layer, labels[b] if b >= 0 else -1) for phase, layer, b in low.operations]
            places, times = dict(zip(named, location, strict=True)), dict(zip(named, start, strict=True))
            writer = Writer(instance.to_json(), int(end.max()) + 1, Program(), samples, ordered)
            found.append(is_point(writer, places, times))
            sooner = Writer(instance.to_json(), int(end.max()), Program(), samples, ordered)
            assert not is_point(sooner, places, times)  # places say what is moved and how long that takes
            assert violated(writer, places, times, dict(zip(named, end, strict=True)), rng) == []
    assert any(found)


def violated(writer, places, start, end, rng):
    """Windows that do not hold in a plan, of random boxes around it, between any two of its times."""
    point = {writer.last: max(end.values())}
    for o, a in places.items():
        point[writer.start[o]] = start[o]
        for b in writer.places:
            point[writer.x[o][b]], point[writer.load[o][b]] = int(a == b), (end[o] - start[o]) * (a == b)
    point, program, found = {j: int(v) for j, v in point.items()}, writer.program, []
    for freely in (0.0, 0.5, 0.9):
        box = Box(program.lower[:], program.upper[:], [])
        for j, v in point.items():
            if rng.random() >= freely:
                box.lower[j] = v - rng.choice([0, (v - box.lower[j]) // 2])
                box.upper[j] = v + rng.choice([0, (box.upper[j] - v) // 2])
        times = sorted({point[writer.start[o]] for o in places} | {int(t) for t in end.values()})
        for machine, begin, until in product(program.machines, times, (None, *times)):
            if begin <= (box.lower[writer.last] if until is None else until):
                row, most = box.window(machine, begin, until)
                if sum(a * point[j] for j, a in row.items()) > most:
                    found.append((begin, until))
    return found


@pytest.mark.parametrize("medium", ["links", "ports", "shared"])
@pytest.mark.parametrize("seed", seeds(20, 200))
def test_windows_hold_in_every_plan_and_a_store_holds_what_the_evaluator_says(seed, medium):
    """Where links are shared, operations wait before they end, and no moment counts more than that."""
    instance, rng = registry.library("suboperation_mapping").generate("tiny", seed), random.Random(seed)
    tight = tuple(each.model_copy(update={"memory": 0}) for each in instance.accelerators)
    instance = instance.changed(name="tight", accelerators=tight, medium="links")
    ratio = rng.choice(list(partitions(instance.batch, len(instance.accelerators))))
    low = lower(instance, ratio)
    plan = low.plan(
        np.array([rng.randrange(low.accelerators) for _ in range(low.n)]), np.array(random_sequence(low, rng))
    )
    waiting = instance.changed(name=medium, medium=medium)
    alone, times = timetable(instance, plan), timetable(waiting, plan)
    samples = [b for b, r in enumerate(ratio) if r]
    named = {o: (o[0], o[1], samples.index(o[2]) if o[2] >= 0 else -1) for o in map(tuple, times.start)}
    at = {name: times.location[o] for o, name in named.items()}
    start = {name: times.start[o] for o, name in named.items()}
    over = {name: times.start[o] + alone.end[o] - alone.start[o] for o, name in named.items()}  # without its waits
    bound = max(times.end.values()) + 1
    writer = Writer(waiting.to_json(), bound, Program(), tuple(r for r in ratio if r))
    assert violated(writer, at, start, over, rng) == []
    peaks = evaluate(waiting, plan).terms["peak_memory"]
    fixed = {writer.start[o]: v for o, v in start.items()}
    for o, b in product(named.values(), writer.places):
        fixed |= {writer.x[o][b]: int(at[o] == b), writer.load[o][b]: (over[o] - start[o]) * int(at[o] == b)}
    box = Box(writer.program.lower[:], writer.program.upper[:], [])
    for k, v in fixed.items():
        box.lower[k] = box.upper[k] = v
    for a, (room, always, held) in enumerate(writer.program.stores):
        here, peak = {o[1] for o in at if at[o] == a}, peaks[instance.accelerators[a].name]
        point = fixed | {j: int(layer in here) for layer, (j, _) in enumerate(always)}
        rows = [box.moment((room, always, held), time)[0] for time in start.values()]
        most = max(sum(size * point[j] for j, size in row.items()) for row in rows)
        assert most == peak if medium == "links" else most <= peak


@pytest.mark.parametrize("seed", seeds(20, 200))
def test_the_optimum_of_a_tiny_instance_is_proven_where_dram_costs_nothing(seed):
    """Ways between accelerators differ. Where DRAM costs something, a schedule that waits for room may be sooner: no
    plan does that, but programs do not say so."""
    instance = registry.library("suboperation_mapping").generate("tiny", seed)
    roomy = tuple(each.model_copy(update={"memory": 10**6}) for each in instance.accelerators)
    truth, free = (
        brute_force.run(each, Budget(time_s=200).start())
        for each in (instance, instance.changed(name="roomy", accelerators=roomy))
    )
    if truth.status is not Status.OPTIMAL:
        pytest.skip("no plan, or too many")
    found = proven(instance, truth.claimed)
    assert found is not None or free.claimed < truth.claimed
    assert proven(instance, truth.claimed + 1) is None


@pytest.mark.parametrize("seed", [4010, 5007, 5020, 5031, 5052])
def test_an_optimum_that_dram_costs_is_proven_by_what_is_there_at_a_moment(seed):
    """These five have no proof by rows of precedences alone; two of them need the ways that differ, too."""
    instance = registry.library("suboperation_mapping").generate("tiny", seed)
    truth = brute_force.run(instance, Budget(time_s=200).start())
    assert proven(instance, truth.claimed) is not None
    assert proven(instance, truth.claimed + 1) is None


@pytest.mark.parametrize("seed", seeds(6, 60))
def test_shaving_refutes_what_is_better_than_an_optimum_and_no_more(seed):
    """By brute force; the checker has the last word of every ratio."""
    instance = drawn(seed, layers=(1, 4), batch=(1, 3), accelerators=(1, 3))
    truth = brute_force.run(instance, Budget(time_s=200).start())
    if truth.status is not Status.OPTIMAL:
        pytest.skip("too many plans")
    data, best = instance.to_json(), truth.claimed
    kept = []
    for ratio in partitions(instance.batch, len(instance.accelerators)):
        name = ",".join(str(r) for r in ratio if r)
        steps = shaving(written(data, best, name), Budget(5.0).start()).finished()
        if steps is not None:
            refuted(written(data, best, name).program, steps)
        kept.append(shaving(written(data, best + 1, name), Budget(1.0).start()).finished())
    assert None in kept


def boxes_around(instance, samples, rng):
    """The box of all ratios with as many shares, that of the ratio alone, and one between."""
    root = ((1, instance.batch, len(samples)),)
    alone = tuple((s, s, samples.count(s)) for s in dict.fromkeys(samples))
    low, high = sorted(rng.choice(range(1, instance.batch + 1)) for _ in range(2))
    between = ((min(low, samples[-1]), max(high, samples[0]), len(samples)),)
    return [box for box in (root, alone, between) if contains(box, samples)]


@pytest.mark.parametrize("seed", seeds(12, 300))
def test_every_plan_is_a_point_of_its_boxes(seed):
    """With fused operations at their places and times, and its makespan; the rest of the point is the engine's to find.

    Where first accelerators are told apart, equal ones are exchanged so that the fused operation in the middle is on
    one of them.
    """
    instance, rng = drawn(seed, layers=(2, 5), batch=(1, 6), accelerators=(1, 4)), random.Random(seed)
    if seed % 3:
        instance = alike(instance, rng)
    ratio = rng.choice(list(partitions(instance.batch, len(instance.accelerators))))
    low, samples = lower(instance, ratio), tuple(r for r in ratio if r)
    location = np.array([rng.randrange(low.accelerators) for _ in range(low.n)])
    start, end = low.timetable(location, np.array(random_sequence(low, rng)))
    for box, apart in product(boxes_around(instance, samples, rng), (False, True)):
        writer = Located(instance.to_json(), int(end.max()) + 1, Program(), box, apart)
        order, kind = classes(instance.to_json(), apart)
        class_of = dict(zip(order, kind, strict=True))
        fused = {o: k for k, o in enumerate(low.operations) if o in writer.x}
        middle = location[fused[list(writer.x)[len(fused) // 2]]] if fused else 0
        if apart:  # without it one class has all
            together = dict(zip(*classes(instance.to_json(), False), strict=True))
            first = next(a for a in order if together[a] == together[middle])
            class_of[middle], class_of[first] = class_of[first], class_of[middle]
        places = {o: class_of[int(location[k])] for o, k in fused.items()}
        assert is_point(writer, places, {o: start[k] for o, k in fused.items()})


def alike(instance, rng):
    """The same with some accelerators equal, at one bandwidth."""
    return Instance.model_validate_json(json.dumps(with_equal_accelerators(instance.to_json(), rng)))


@pytest.mark.in_turn
@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("seed", seeds(8, 80))
def test_an_optimum_is_a_point_of_some_box_where_accelerators_are_equal(seed, apart):
    """Of all optima at least one is kept; and nothing better is refuted that there is."""
    instance, rng = drawn(seed, layers=(2, 2), batch=(1, 3), accelerators=(2, 3)), random.Random(seed)
    instance = alike(instance, rng)
    truth = brute_force.run(instance, Budget(time_s=200).start())
    if truth.status is not Status.OPTIMAL:
        pytest.skip("too many plans")
    data, n = instance.to_json(), len(instance.accelerators)
    roots = [((1, instance.batch, k),) for k in range(1, min(n, instance.batch) + 1)]
    assert any(is_point(Located(data, truth.claimed + 1, Program(), box, apart), {}, {}) for box in roots)


@pytest.mark.parametrize("seed", seeds(12, 150))
def test_least_length_of_a_stage(seed):
    """Never above the best assignment of any ratio of the box, priced by trying all."""
    rng = random.Random(seed)
    n, batch, scale = rng.randint(1, 3), rng.randint(1, 7), rng.choice([5, 10**4, 10**7])
    tables = tuple(tuple(rng.randint(0, scale) for _ in range(batch)) for _ in range(n))
    rates = tuple(rng.choice([0, 1, 777, GRAIN * scale // 3]) for _ in range(n))
    shares = rng.choice(list(partitions(batch, n)))
    samples = tuple(s for s in shares if s)
    low, high = rng.randint(1, samples[-1]), rng.randint(samples[0], batch)
    box = ((low, high, len(samples)),)
    best = min(
        max(
            sum(tables[a][s - 1] + -(-s * rates[a] // GRAIN) for s, b in zip(ratio, where, strict=True) if a == b)
            for a in range(n)
        )
        for padded in partitions(batch, n)
        if contains(box, ratio := tuple(s for s in padded if s))
        for where in product(range(n), repeat=len(ratio))
    )
    assert least_length(tables, rates, box, batch) <= best
    assert least_length(
        tables, (0,) * n, tuple((s, s, samples.count(s)) for s in dict.fromkeys(samples)), batch
    ) <= min(
        max(sum(tables[a][s - 1] for s, b in zip(samples, where, strict=True) if a == b) for a in range(n))
        for where in product(range(n), repeat=len(samples))
    )


def around(rng, samples, batch):
    """A box with a ratio in it, of one group or of two."""
    shares, cut = len(samples), rng.randrange(len(samples))
    if cut and samples[cut - 1] > samples[cut]:  # larger ones in a group of their own
        return (samples[cut] + 1, batch, cut), (1, samples[cut], shares - cut)
    return ((rng.randint(1, samples[-1]), rng.randint(samples[0], batch), shares),)


@pytest.mark.parametrize("seed", seeds(12, 150))
def test_least_length_of_a_stage_by_the_number_of_holders(seed):
    """Never above the best assignment to so many accelerators, and that where each is as quick as the next one."""
    rng = random.Random(seed)
    n, batch, scale = rng.randint(1, 3), rng.randint(1, 7), rng.choice([5, 10**4, 10**7])
    tables = [tuple(rng.randint(0, scale) for _ in range(batch)) for _ in range(n)]
    rates = [rng.choice([0, GRAIN, GRAIN * (scale // 3)]) for _ in range(n)]
    ordered = seed % 2
    if ordered:  # equal but for one of them, which is slower; more samples take longer
        table = sorted(tables[0])
        tables = [tuple(table)] * (n - 1) + [tuple(t + scale // 2 for t in table)]
        rates.sort()
    samples = tuple(s for s in rng.choice(list(partitions(batch, n))) if s)
    box, shares = around(rng, samples, batch), len(samples)
    best = {}
    for padded in partitions(batch, n):
        if contains(box, ratio := tuple(s for s in padded if s)):
            for where in product(range(n), repeat=shares):
                loads = [0] * n
                for s, a in zip(ratio, where, strict=True):
                    loads[a] += tables[a][s - 1] + s * rates[a] // GRAIN
                best[len({*where})] = min(max(loads), best.get(len({*where}), max(loads)))
    found = by_holders(tuple(tables), tuple(rates), box, batch, shares)
    for held, length in enumerate(found, 1):
        assert length <= best[held]
        if ordered:  # some may be left idle
            assert length == min(best[k] for k in range(1, held + 1))


@pytest.mark.parametrize("seed", seeds(12, 150))
def test_least_length_of_a_stage_and_of_gathering_after_it(seed):
    """Never above the best assignment; of equal shares, and the same time to the place from everywhere, equal."""
    rng = random.Random(seed)
    n, scale = rng.randint(2, 3), rng.choice([5, 10**4, 10**7])
    equal, shares = seed % 2, rng.randint(1, n)
    batch = shares * rng.randint(1, 3) if equal else rng.randint(1, 7)
    tables = tuple(tuple(rng.randint(0, scale) for _ in range(batch)) for _ in range(n))
    rates = tuple(rng.choice([0, 1, 777, GRAIN * scale // 3]) for _ in range(n))
    moved = [rng.choice([1, GRAIN, GRAIN * scale // 5 + 1]) for _ in range(n)]
    place = rng.randrange(n)
    if equal:
        moved, box = moved[:1] * n, ((batch // shares, batch // shares, shares),)
    else:
        box = around(rng, tuple(s for s in rng.choice(list(partitions(batch, n))) if s), batch)
    best = 1 << 62
    for padded in partitions(batch, n):
        if contains(box, ratio := tuple(s for s in padded if s)):
            for where in product(range(n), repeat=len(ratio)):
                own = [[s for s, b in zip(ratio, where, strict=True) if a == b] for a in range(n)]
                ends = [sum(tables[a][s - 1] for s in own[a]) + sum(own[a]) * rates[a] // GRAIN for a in range(n)]
                gathered = sum(sum(own[a]) * moved[a] for a in range(n) if a != place)
                best = min(best, GRAIN * max(ends) + gathered)
    rate = min(moved[:place] + moved[place + 1 :])
    found = with_gathering(tables, rates, box, batch, place, rate)
    assert found <= best
    assert found >= GRAIN * least_length(tables, rates, box, batch)
    if equal:
        assert found == best


def test_boxes_hold_all_ratios_or_the_proof_is_refused():
    """Ratios that no box holds need trees of their own; a group of no shares holds nothing."""
    instance = drawn(3, layers=(4, 4), batch=(6, 6), accelerators=(3, 3)).to_json()
    named = {"6-6x1": [], "4-5x1,1-2x1": [], "3-3x2": []}
    names = [name for name, _ in cases(instance, 10, Program, tuple(named))]
    assert names == [*named, "4,1,1", "3,2,1", "2,2,2"]
    assert contains(((1, 5, 2),), (5, 1))
    assert not contains(((1, 5, 2), (1, 5, -1)), (5,))
    assert not contains(((1, 4, 2),), (5, 1))
    assert not contains(((4, 5, 1), (1, 2, 1)), (3, 3))


@pytest.mark.parametrize("seed", seeds(8, 80))
def test_optimum_is_proven_and_nothing_above_it(seed):
    instance = drawn(seed, layers=(1, 2), batch=(1, 3), accelerators=(1, 2))
    if seed % 3 == 0:
        instance = alike(instance, random.Random(seed))
    truth = brute_force.run(instance, Budget(time_s=200).start())
    if truth.status is not Status.OPTIMAL:
        pytest.skip("too many plans")
    optimum = truth.claimed
    assert proven(instance, optimum + 1) is None
    certificate = proven(instance, optimum)
    assert certificate is not None
    assert proven(instance, max(0, optimum - 1)) is not None
    with pytest.raises(Refused):
        check({**certificate, "bound": optimum + 1})


@pytest.mark.in_turn
@pytest.mark.parametrize("name", ["mtrain_example_fig5", *some(1, ["mtrain_example_fig6", "mtrain_c2_alexnet_7p5gbs"])])
def test_library_optimum(name):
    bounds = {"mtrain_example_fig5": 36, "mtrain_example_fig6": 24, "mtrain_c2_alexnet_7p5gbs": 3597380}
    certificate = proven(load_instance(name), bounds[name])
    assert certificate is not None
    rng, facts = random.Random(0), certificate["instance"]
    for key in sorted(certificate["proof"])[:5]:
        fewer = {k: tree for k, tree in certificate["proof"].items() if k != key}
        assert not accepted(facts, bounds[name], fewer)
    for _ in range(30 if len(certificate["proof"]) < 10 else 3):  # an altered proof proves nothing else
        assert not accepted(facts, bounds[name] + rng.randint(1, 9), damaged(rng, certificate["proof"]))


def test_bound_for_all_ratios_at_once():
    """Well below the optimum one dual proves it."""
    certificate = proven(load_instance("mtrain_c2_alexnet_7p5gbs"), 2_000_000)
    assert list(certificate["proof"]) == ["all"]


def climbed(data, goal, work, start=None):
    """The bound after so many relaxations, and the certificate; the checker has the last word."""
    found = climb(data, goal, Budget(200.0).start(), start, Certificate(asked=work))
    if found is None:
        return None, None
    certificate = {"schema": 1, "instance": data, "bound": found[0], "proof": found[1]}
    check(certificate)
    return found[0], certificate


@pytest.mark.parametrize("seed", seeds(8, 120))
def test_the_bound_grows_with_the_work_up_to_the_optimum(seed):
    """It is never above it, whatever the goal; and the proof of one proves none that is better."""
    instance = drawn(seed, layers=(1, 2), batch=(1, 3), accelerators=(1, 2))
    if seed % 3 == 0:
        instance = alike(instance, random.Random(seed))
    truth = brute_force.run(instance, Budget(200.0).start())
    if truth.status is not Status.OPTIMAL:
        pytest.skip("too many plans")
    data, optimum = instance.to_json(), truth.claimed
    bounds = [climbed(data, optimum, work)[0] for work in (1, 3, 10, 5000)]
    known = [bound for bound in bounds if bound is not None]
    assert bounds == [None] * (len(bounds) - len(known)) + sorted(known)
    assert known[-1] == optimum
    beyond, certificate = climbed(data, optimum + 1 + seed, 200)
    if optimum == 0:  # that nothing is negative needs no certificate
        assert beyond is None
        return
    assert beyond <= optimum
    assert not accepted(data, optimum + 1, certificate["proof"])
    assert not accepted(data, optimum + 1, damaged(random.Random(seed), certificate["proof"]))


@pytest.mark.parametrize("seed", seeds(8, 120))
def test_a_climb_goes_on_where_a_certificate_ended(seed):
    """To the optimum; from there, nowhere."""
    instance = drawn(seed, layers=(1, 2), batch=(1, 3), accelerators=(1, 2))
    truth = brute_force.run(instance, Budget(200.0).start())
    if truth.status is not Status.OPTIMAL:
        pytest.skip("too many plans")
    data, optimum = instance.to_json(), truth.claimed
    first, certificate = next(
        (bound, made) for k in range(1, 100) for bound, made in [climbed(data, optimum, k)] if made
    )
    proof = certificate["proof"]
    assert climbed(data, first, 100, (first, proof)) == (None, None)
    if first < optimum:
        assert climbed(data, optimum, 5000, (first, proof))[0] == optimum


def test_the_same_work_gives_the_same_proof():
    data = drawn(7, layers=(5, 5), batch=(6, 6), accelerators=(3, 3)).to_json()
    first, again = (climbed(data, 1 << 40, 30) for _ in range(2))
    assert first == again != (None, None)


def test_millions_of_ratios_are_bounded_in_boxes():
    """Of 100 samples on eight accelerators, where nothing is fused; one by one they would take gigabytes.

    Four layers of FP, BP (the first has none) and WU take 10, 10 and 10 ticks a sample, 11,000 in all; a climb tells
    an eighth of that at least, with a case for each number of shares.
    """
    data = network([("split", 10, 10, 10)] * 4, 8, 100, 10**9)
    found = Climb(data, 11_000, Budget(200.0).start(), Certificate(asked=8))
    found.run()
    assert 11_000 / 8 <= found.bound <= 11_000
    assert [part.name for part in found.all.parts] == ["100-100x1", *(f"1-{101 - k}x{k}" for k in range(2, 9))]
    assert found.asked <= 8


def test_a_ratio_is_shaved_to_the_optimum_and_from_a_certificate_on(monkeypatch):
    """The optimum is that of brute force; without chains the tree of its second ratio ends below."""
    instance = drawn(39, layers=(2, 3), batch=(2, 3), accelerators=(2, 3))
    data, optimum = instance.to_json(), 3555
    assert brute_force.run(instance, Budget(200.0).start()).claimed == optimum
    params = Certificate(spreads=0, widest=0, widest_alone=0, asked=5000)
    budget = Budget(200.0).start()
    bound, proof = climb(data, optimum, budget, None, params)
    assert bound == optimum
    assert accepted(data, optimum, proof)
    assert not accepted(data, optimum + 1, proof)
    steps = proof["2,1"]
    assert "w" in {kind for kind, *_ in steps}
    without = {**proof, "2,1": [step for step in steps if step[0] != "w"]}
    assert not accepted(data, optimum, without)
    monkeypatch.setattr(Climb, "shaving", lambda *_: None)
    others = {name: tree for name, tree in proof.items() if name != "2,1"}
    for less in (1, optimum - 300, optimum - 1):  # as if no more had been proven of the other ratios
        kept = {**others, f"2,1 below {optimum}": steps}
        assert accepted(data, less, kept)
        assert not accepted(data, optimum + 1, kept)
        assert not accepted(data, less, {**others, f"2,1 below {optimum + 1}": steps})
        assert climb(data, optimum, budget, (less, kept), params) == (optimum, proof)  # nothing is shaved anew
    whole = {f"{name} below {optimum}": tree for name, tree in proof.items()}  # nothing is left to do
    assert Climb(data, optimum, budget, params, (1, whole)).all.value == optimum
    unshaved = climb(data, optimum, budget, None, params)[1]
    assert all(step[0] != "w" for steps in unshaved.values() for step in steps)


@pytest.mark.in_turn
def test_what_is_shaved_is_nearer_than_a_plan_that_is_no_optimum(monkeypatch):
    """Its makespan cannot be refuted, half of the way there can; 3555 is the optimum, by brute force as above."""
    data, optimum = drawn(39, layers=(2, 3), batch=(2, 3), accelerators=(2, 3)).to_json(), 3555
    params = Certificate(spreads=0, widest=0, widest_alone=0, asked=2000)
    bound, proof = climb(data, optimum + 100, Budget(200.0).start(), None, params)
    assert accepted(data, bound, proof)
    assert not accepted(data, optimum + 1, proof)
    assert "w" in {kind for steps in proof.values() for kind, *_ in steps}
    monkeypatch.setattr(Climb, "shaving", lambda *_: None)
    assert climb(data, optimum + 100, Budget(200.0).start(), None, params)[0] < bound <= optimum


def test_what_was_shaved_is_kept_where_another_ratio_holds_the_bound(monkeypatch):
    """The next climb begins with it; a checker accepts it at the bound, and not at one above the optimum."""
    instance = drawn(39, layers=(2, 3), batch=(2, 3), accelerators=(2, 3))
    data, optimum = instance.to_json(), 3555  # by brute force, as above
    params = Certificate(spreads=0, widest=0, widest_alone=0, asked=5000)
    budget = Budget(200.0).start()
    start = {name: shaving(written(data, optimum - 1, name), budget).finished() for name in ("2,1", "3")}

    def ends_at_the_other(self, case):
        """In the place of all but shaving, which has turns by the clock."""
        case.opened, self.ahead = True, 0.0
        self.asked += self.params.asked if case.name == "3" else 0
        return True

    monkeypatch.setattr(Climb, "work", ends_at_the_other)
    monkeypatch.setattr(Climb, "proof", lambda *_: None)  # as if that held the bound where it was
    bound, further = climb(data, optimum, budget, (optimum - 1, start), params)
    assert (bound, sorted(further)) == (optimum - 1, [f"2,1 below {optimum}", "3"])
    assert accepted(data, bound, further)
    assert not accepted(data, optimum + 1, further)
    assert climb(data, optimum, budget, (bound, further), params) is None  # nothing more
    monkeypatch.undo()
    once, search = [], Climb.shaving
    monkeypatch.setattr(Climb, "shaving", lambda self, name: once.append(name) or search(self, name))
    assert climb(data, optimum, budget, (bound, further), params)[0] == optimum
    assert "2,1" not in once
