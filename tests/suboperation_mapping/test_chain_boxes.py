"""Boxes of ratios that are bounded along a chain, and climbs: what they leave out, and that they go on."""

import json
import random
from functools import partial
from itertools import combinations_with_replacement, groupby, pairwise, permutations, product

import numpy as np
import pytest
from certificates import drawn, with_equal_accelerators
from chains import makespans, network

from mapgap.contract.seeds import seeds
from mapgap.core import Budget
from mapgap.evidence.check import Refused, check
from mapgap.formulations.suboperation_mapping import chain_bound, stage_mip
from mapgap.formulations.suboperation_mapping.boxes import Cutter, of_ratio, ratios, roots, single
from mapgap.formulations.suboperation_mapping.certificate import Climb, climb, groups_of
from mapgap.formulations.suboperation_mapping.chain_boxes import (
    done_by,
    kept_of_name,
    name_of_kept,
    narrowed,
    shares_of_box,
)
from mapgap.formulations.suboperation_mapping.chain_size import Devices, headed_devices, moves
from mapgap.formulations.suboperation_mapping.params import Certificate
from mapgap.problems.suboperation_mapping import Instance
from mapgap.problems.suboperation_mapping.certificate.chain import along
from mapgap.problems.suboperation_mapping.certificate.chain_labels import outlived
from mapgap.problems.suboperation_mapping.certificate.chain_shares import CHAINS
from mapgap.problems.suboperation_mapping.lowered.ratios import partitions


@pytest.mark.parametrize("seed", seeds(10, 200))
def test_a_narrowed_box_has_all_ratios_of_the_box(seed):
    """Its chain has moves few enough, and all work of the box if these are; none if one share has too many."""
    rng = random.Random(seed)
    (box, batch, devices), most = box_of(rng), rng.choice([10, 300, 5000])
    along = rng.choice([Devices(devices), Devices(devices, (devices - 1, 1))])
    work = (0, *sorted(rng.choices(range(1, 10**6), k=batch)))
    kept = narrowed(box, along, work, most)
    assert bool(kept) == (moves((1,), along) <= most)
    if not kept:
        return
    done, every = (done_by(those, work) for those in (kept, shares_of_box(box)))
    assert moves(tuple(len(list(run)) for _, run in groupby(s for s in kept if not s.out)), along) <= most
    assert done == every if moves(tuple(g.number for g in box), along) <= most else done <= every
    assert kept_of_name(name_of_kept(kept)) == kept
    for ratio in ratios(box, batch, devices):
        assert all(low <= size <= high for (low, high, _), size in zip(kept, filter(None, ratio), strict=True))


@pytest.mark.parametrize("members", [(3,), (1, 2), (2, 2), (1, 1, 1)])
@pytest.mark.parametrize("runs", [(1,), (2,), (2, 1), (3,)])
def test_moves_that_are_counted_are_orbits(runs, members):
    """Of how many shares of each run lie on each accelerator in FP, in BP, and of the place of a fused operation."""
    places, found = range(sum(members)), set()
    ends = [0, *np.cumsum(members)]
    exchanges = [
        [a for part in parts for a in part] for parts in product(*(permutations(range(*e)) for e in pairwise(ends)))
    ]
    spreads = list(product(*(combinations_with_replacement(places, run) for run in runs)))
    for front, back, place in product(spreads, spreads, places):
        alike = [[sorted(name[a] for a in run) for run in (*front, *back)] + [[name[place]]] for name in exchanges]
        found.add(repr(min(alike)))
    assert moves(runs, Devices(len(places), members)) == len(found)


def test_six_alike_shares_have_few_places():
    """As :mod:`~mapgap.formulations.suboperation_mapping.chain_size` says."""
    assert moves((6,), Devices(6, (3, 3))) == 47_814


def test_the_first_of_each_class_stands_alone():
    data = network([("split", 1, 1, 1), ("fused", 1, 1, 0)], 6, 1)
    data["layers"][0]["fp"] = [[1], [2], [1], [2], [3], [1]]
    assert headed_devices(data) == Devices(6, (1, 1, 1, 1, 2))


def box_of(rng):
    """One of those into which all ratios are divided, at the middle of an interval each time; batch and devices."""
    batch, devices = rng.randint(2, 30), rng.randint(2, 12)
    boxes, cutter = roots(batch, devices), Halves(batch)
    for _ in range(4):
        box = rng.choice(boxes)
        boxes = boxes if single(box) else cutter.split(box)
    return box, batch, devices


class Halves(Cutter):
    """Cuts intervals in the middle."""

    def __init__(self, batch):
        self.batch = batch

    def error(self, low, high):
        return high - low


@pytest.mark.in_turn
def test_four_accelerators_have_boxes_along_chains():
    """Both methods prove no more than a plan has; the certificate holds, though shares are left out of some chains."""
    rng = random.Random(3)
    layers = [("split", *rng.choices(range(10**4, 10**5), k=3)), ("fused", 500, 500, 0)] * 2
    data = network(layers, 4, 5, 10**8)
    instance = Instance.model_validate_json(json.dumps(data))
    plan = min(makespan for ratio in [(2, 1, 1, 1), (2, 2, 1, 0)] for makespan in makespans(data, ratio, rng, 100))
    for method in (chain_bound, stage_mip):
        found = method.run(instance, Budget(1.0).start())
        assert "chain" in dict(found.notes["ladder"])
        assert found.bound <= plan
    params = partial(Certificate, widest=64, widest_alone=64, enough=0.0, told_apart=4)  # no program of a box
    bound, proof = climb(data, plan, Budget(20.0).start(), None, params(asked=40))
    assert any("x" in key for key in proof)
    assert any("w" in key for key in proof)
    check({"schema": 1, "instance": data, "bound": bound, "proof": proof})
    more, proof = climb(data, plan, Budget(20.0).start(), (bound, proof), params(asked=60))
    assert more > bound
    check({"schema": 1, "instance": data, "bound": more, "proof": proof})


def test_a_box_of_a_certificate_is_bounded_along_more_moves():
    """Which are kept if they prove more; then there is nothing else to do along a chain.

    The program of the box is quicker, and comes before that.
    """
    rng = random.Random(7)
    layers = [("split", *rng.choices(range(10**4, 10**5), k=3)), ("fused", 500, 500, 0)] * 2
    data = network(layers, 4, 5, 10**8)
    begun, search = (
        Climb(data, 10**9, Budget(60.0).start(), Certificate(widest=widest, enough=0.0), (0, {}))
        for widest in (64, 5000)
    )
    few, more = (each.kept_of("2-3x1,1-1x2") for each in (begun, search))
    assert done_by(few, search.along.work) < done_by(more, search.along.work)
    case = begun.case("2-3x1,1-1x2", 0)
    assert case.chain == name_of_kept(few)
    assert begun.work(case)
    assert (case.leaves[0][2].solved, case.ascent.bound) == (True, 0)
    assert begun.work(case)
    first = case.ascent
    case = search.case(name_of_kept(few) + first.kind, first.bound, first.proof)
    assert (case.name, case.chain) == ("2-3x1,1-1x2", name_of_kept(few))
    while search.work(case):
        pass
    assert case.ascent.bound > first.bound
    assert case.chain == name_of_kept(more)
    assert not case.wider
    name = case.chain + case.ascent.kind
    assert outlived(along(data, name), case.ascent.bound, case.ascent.proof) is None


@pytest.mark.parametrize("seed", seeds(3, 120))
def test_a_climb_goes_on_from_any_certificate_of_another(seed):
    """Whatever shares their chains leave out, and however soon they end; samples take up to 10^6 ticks."""
    rng = random.Random(seed)
    data = drawn(seed, layers=(2, 5), batch=(2, 5), accelerators=(2, 4)).to_json()
    data = with_equal_accelerators(data, rng) if seed % 2 else data
    some_ratios = list(partitions(data["batch"], len(data["accelerators"])))[:3]
    plan = min(makespan for ratio in some_ratios for makespan in makespans(data, ratio, rng, 20))
    known = None
    for _ in range(3):
        params = Certificate(
            asked=rng.randint(3, 40),
            widest=rng.choice([64, 300, 80_000]),
            widest_alone=rng.choice([64, 300, 80_000]),
            enough=rng.choice([0.0, 0.85]),
            told_apart=rng.choice([0, 3]),
        )
        known = climb(data, plan, Budget(5.0).start(), known, params) or known
        if known is not None:
            check({"schema": 1, "instance": data, "bound": known[0], "proof": json.loads(json.dumps(known[1]))})


def test_a_climb_goes_on_from_programs_where_chains_are_quicker():
    """On four equal accelerators; what it does then raises the bound, be it along chains.

    Nothing is shaved there, as the program of a ratio may take minutes.
    """
    rng = random.Random(9)
    layers = [("split", *rng.choices(range(10**4, 10**5), k=3)), ("fused", 500, 500, 0)]
    data = with_equal_accelerators(network([*layers, layers[0]], 4, 4, 10**8), rng)
    some_ratios = [(2, 1, 1), (2, 2), (4,)]
    plan = min(makespan for ratio in some_ratios for makespan in makespans(data, ratio, rng, 100))
    start = climb(data, plan, Budget(20.0).start(), None, Certificate(widest=0, widest_alone=0, asked=5))
    assert len(start[1]) > 1
    assert not any(name.endswith(CHAINS) for name in start[1])
    again = Climb(data, plan, Budget(20.0).start(), Certificate(), start)
    assert {case.name for case in again.all.parts} == start[1].keys()
    assert again.shaving("2,1,1") is None
    more, proof = climb(data, plan, Budget(20.0).start(), start, Certificate(asked=5))
    assert more > start[0]
    check({"schema": 1, "instance": data, "bound": more, "proof": proof})


@pytest.mark.in_turn
def test_boxes_that_overlap_have_one_proof_of_what_they_have_in_common(monkeypatch):
    """A box of a certificate is as wide as its chain is, so others may lie in it; then both are divided alike."""
    monkeypatch.setattr(Climb, "shaving", lambda *_: None)  # in turns by time
    data = with_equal_accelerators(
        network([("split", 7000, 8000, 9000), ("fused", 500, 500, 0)] * 2, 3, 6, 10**8), random.Random(1)
    )
    params = Certificate(widest=0, widest_alone=0, asked=30)  # programs alone: their trees would follow each other
    search = Climb(data, 10**9, Budget(60.0).start(), params, (1, {"1-6x3": [], "1-5x3": [], "1-5x2": [], "6-6x1": []}))
    search.run()
    cases = [case.name for case in search.all.ways(search.bound)]
    assert len({*cases}) < len(cases)
    check({"schema": 1, "instance": data, "bound": search.bound, "proof": search.proof(search.bound)})


def test_boxes_and_ratios_of_equal_accelerators_have_programs_as_well_as_chains():
    """A box before its chain, and is then divided; a ratio with a chain that has moves few enough for a tree."""
    rng = random.Random(11)
    layers = [("split", *rng.choices(range(10**4, 10**5), k=3)), ("fused", 500, 500, 0)] * 2
    data = network(layers, 4, 5, 10**8)
    search = Climb(data, 10**9, Budget(60.0).start(), Certificate(widest_alone=300, remembered=0, enough=0.5), (0, {}))
    box = search.case("2-3x1,1-1x2", 0)
    while search.work(box):
        pass
    assert box.leaves[0][2].solved
    assert box.divided == 0
    assert [*map(groups_of, search.parts(box.name))] == [of_ratio((3, 1, 1))]
    ratio = search.case("3,1,1", 0)
    while search.work(ratio):
        pass
    assert ratio.ascent.tree is None
    assert search.parts("3,1,1") == ["3-3x1,1-1x2"]
    again = search.case("3-3x1,1-1x2", 0)
    assert not again.ascent.weights
    for _ in range(4):
        search.work(again)
    assert again.ascent.tree is not None
    name = again.chain + again.ascent.kind
    assert outlived(along(data, name), again.ascent.bound, again.ascent.proof) is None
    assert search.parts(again.name) == ["3,1,1"]


@pytest.mark.parametrize("seed", seeds(10, 200))
def test_the_box_of_a_name_has_the_ratios_that_were_left_out(seed):
    """Whatever is left out of the chain; groups are apart, as its parts are to have all ratios again."""
    rng = random.Random(seed)
    box, batch, devices = box_of(rng)
    work = tuple(range(batch + 1))
    kept = narrowed(box, Devices(devices), work, max(devices**3, rng.choice([300, 5000, 10**5])))
    found = groups_of(name_of_kept(kept))
    assert all(small.high < large.low for large, small in pairwise(found))
    assert {*ratios(box, batch, devices)} <= {*ratios(found, batch, devices)}


def test_a_climb_ends_with_chains_and_goes_on_from_them():
    """The checker accepts the file; a better bound, or less of the proof, it refuses."""
    rng = random.Random(5)
    layers = [("split", *rng.choices(range(10**4, 10**5), k=3)), ("fused", 10, 10, 0)] * 2
    data = network(layers, 2, 3, 10**8)
    plan = min(makespan for ratio in [(3,), (2, 1)] for makespan in makespans(data, ratio, rng, 50))
    bound, proof = climb(data, plan, Budget(20.0).start(), None, Certificate(asked=5))
    assert any(key.endswith(" chain") for key in proof)
    certificate = {"schema": 1, "instance": data, "bound": bound, "proof": proof}
    check(certificate)
    with pytest.raises(Refused):
        check({**certificate, "bound": plan + 1})
    again = climb(data, plan, Budget(20.0).start(), (bound, proof), Certificate(asked=9))
    assert again is None or again[0] > bound
    for key, part in product(list(proof), [{}, {"weights": [], "grid": []}]):
        if key.endswith(" chain"):
            with pytest.raises(Refused):
                check({**certificate, "proof": {**proof, key: part}})
