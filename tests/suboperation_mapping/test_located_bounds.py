"""Located programs and boxes of ratios: no bound above brute force or any plan, no row without effect."""

import gzip
import inspect
import itertools
import json
import math
import random
import re
from pathlib import Path

import numpy as np
import pytest

from mapgap.catalogue.files import load_instance
from mapgap.contract.seeds import seeds
from mapgap.core import Budget, Status
from mapgap.formulations.suboperation_mapping import enumerate as enumeration
from mapgap.formulations.suboperation_mapping import stage_optima
from mapgap.formulations.suboperation_mapping.box_bound import box_bound, fluid_bound, search_of
from mapgap.formulations.suboperation_mapping.box_search import BoxSearch
from mapgap.formulations.suboperation_mapping.boxes import Cutter, of_ratio, ratios, roots, tightened
from mapgap.formulations.suboperation_mapping.located_flow import LocatedFlow
from mapgap.formulations.suboperation_mapping.located_frame import Frame, Group
from mapgap.formulations.suboperation_mapping.located_model import LocatedModel
from mapgap.formulations.suboperation_mapping.orbits import Orbits
from mapgap.formulations.suboperation_mapping.params import Boxes
from mapgap.formulations.suboperation_mapping.phase_graph import PhaseGraph
from mapgap.formulations.suboperation_mapping.ratio_model import horizon
from mapgap.formulations.suboperation_mapping.stage_model import StageModel
from mapgap.heuristics.suboperation_mapping.search.pool import Search, unfit
from mapgap.instances.suboperation_mapping import LIBRARY
from mapgap.problems.suboperation_mapping import PROBLEM
from mapgap.problems.suboperation_mapping.certificate.lengths import GRAIN, lines
from mapgap.problems.suboperation_mapping.lowered.arrays import lower
from mapgap.problems.suboperation_mapping.lowered.ratios import partitions
from mapgap.solvers.integer_lp import LinearOutcome, WholeRows


def twice(instance, seed):
    """An instance of two accelerators with the first one twice, and some link between the two."""
    first, second = instance.accelerators
    (_, out), (back, _) = instance.bandwidth
    between = random.Random(seed).choice([out, back, 2 * out])
    return instance.changed(
        name=f"{instance.name} twice",
        accelerators=(first, second, first.model_copy(update={"name": "again"})),
        bandwidth=((1, out, between), (back, 1, back), (between, out, 1)),
        layers=tuple(
            layer.model_copy(
                update={key: (*rows, rows[0]) for key in ("fp", "bp", "wu") if (rows := getattr(layer, key))}
            )
            for layer in instance.layers
        ),
    )


def doubled(seed):
    """A tiny instance whose first accelerator there is twice, with at most eight operations."""
    for attempt in itertools.count():
        instance = LIBRARY.generate("tiny", 10_000 * seed + attempt)
        if len(instance.accelerators) == 2 and len(instance.layers) <= 2 and instance.batch <= 2:
            return twice(instance, seed)
    raise AssertionError


def generated(family, seed):
    """An instance of a family; of ``doubled``, a small one with an accelerator twice."""
    if family != "doubled":
        return LIBRARY.generate(family, seed)
    two = (LIBRARY.generate("small", 100 * seed + k) for k in itertools.count())
    return twice(next(i for i in two if len(i.accelerators) == 2), seed)


def optimum(instance):
    result = enumeration.run(instance, Budget(time_s=300).start())
    assert result.enumerated or result.reason
    return None if result.plan is None else PROBLEM.evaluate(instance, result.plan).objective


def located(frame, box):
    model = LocatedModel(frame, box)
    return model.bound(model.lp.solve(30))


def root_bound(frame):
    instance = frame.instance
    return min(located(frame, box) for box in roots(instance.batch, len(instance.accelerators)))


def bounded(instance, best):
    """All bounds are at most ``best``: of the roots, of both methods, and of the best ratio's own program."""
    frame = Frame(instance)
    flow = fluid_bound(instance, Budget(time_s=300).start())
    boxes = box_bound(instance, Budget(time_s=300).start())
    assert flow.bound is not None
    assert boxes.bound is not None
    assert flow.bound <= best
    assert boxes.bound <= best
    apart = BoxSearch(frame)
    while apart.step(30):
        pass
    assert apart.bound() <= best
    each = [located(frame, of_ratio(r)) for r in partitions(instance.batch, len(instance.accelerators))]
    assert min(each) <= best


@pytest.mark.parametrize("seed", seeds(8, 240))
def test_no_bound_exceeds_brute_force(seed):
    instance = LIBRARY.generate("tiny", seed)
    best = optimum(instance)
    if best is not None:
        bounded(instance, best)


@pytest.mark.parametrize("seed", seeds(3, 60))
def test_no_bound_exceeds_brute_force_with_equal_accelerators(seed):
    """Orbits: were the averaging wrong, the bound with one variable per class would exceed the optimum."""
    instance = doubled(seed)
    best = optimum(instance)
    assert {0, 2} <= set(Orbits(instance).members[0])
    if best is not None:
        bounded(instance, best)


def annealed(instance, ratio, seed):
    search = Search(instance, Budget().start())
    for turn, parent in enumerate(unfit(instance, [ratio])):
        search.anneal(ratio, parent, 0.01, 5000, seed + turn)
    return None if search.best is None else search.best.makespan


@pytest.mark.parametrize("family", ["small", "branching", "realistic", "doubled"])
@pytest.mark.parametrize("seed", seeds(1, 20))
def test_every_plan_is_at_least_the_bound_of_each_box_that_holds_its_ratio(family, seed):
    instance = generated(family, seed)
    frame = Frame(instance)
    parts = len(instance.accelerators)
    for ratio in list(partitions(instance.batch, parts))[:: 1 + seed % 3]:
        makespan = annealed(instance, ratio, seed)
        if makespan is None:
            continue
        assert located(frame, of_ratio(ratio)) <= makespan
        count = parts - ratio.count(0)
        assert located(frame, tightened((Group(1, instance.batch, count),), instance.batch)) <= makespan


def test_boxes_hold_every_ratio_once():
    """Were a ratio lost by a cut, nothing would bound its plans."""
    for seed in range(12):
        instance = LIBRARY.generate("small", seed)
        frame, parts = Frame(instance), len(instance.accelerators)
        cutter, boxes = Cutter(frame), roots(instance.batch, parts)
        for _ in range(4):
            held = [r for box in boxes for r in ratios(box, instance.batch, parts)]
            assert sorted(held) == sorted(partitions(instance.batch, parts))
            boxes = [
                child for box in boxes for child in (cutter.split(box) if any(g.low < g.high for g in box) else [box])
            ]


def test_dividing_a_box_never_lowers_the_bound():
    for seed in range(6):
        frame = Frame(LIBRARY.generate("branching", seed))
        search = BoxSearch(frame)
        bounds = []
        while search.step(30):
            bounds.append(search.bound())
        assert bounds == sorted(bounds)


#: Methods of the rows that can be left out, with what they then return.
OPTIONAL = {
    "moved": (LocatedFlow, "classes"),
    "carried": (LocatedFlow, "classes"),
    "shifted": (LocatedFlow, "classes"),
    "gradients": (LocatedFlow, "classes"),
    "stage_times": (LocatedModel, None),
    "gathers": (LocatedModel, None),
    "optima": (LocatedModel, None),
    "share_times": (LocatedModel, None),
    "windows": (LocatedModel, None),
    "after": (LocatedModel, None),
    "area": (LocatedModel, None),
    "around": (LocatedModel, None),
}


def programs():
    """Frames and ratios: tiny ones first, then one of ResNet-18, for what ticks of two digits do not show."""
    for family, seed in itertools.product(("branching", "small", "tiny"), range(12)):
        frame = Frame(LIBRARY.generate(family, seed))
        for ratio in itertools.islice(partitions(frame.instance.batch, frame.orbits.count), 1, 2):
            yield frame, ratio
    yield Frame(load_instance("mtrain_c1_resnet18_1gbs")), (40, 24)


@pytest.mark.in_turn
@pytest.mark.parametrize("method", OPTIONAL)
def test_no_row_is_without_effect(method, monkeypatch):
    """Without the row some bound falls, and none rises."""
    places, value = OPTIONAL[method]
    for frame, ratio in programs():
        full = located(frame, of_ratio(ratio))
        with monkeypatch.context() as patch:
            patch.setattr(places, method, lambda self, *_, **__: [[] for _ in self.kinds] if value else None)
            less = located(frame, of_ratio(ratio))
        assert less <= full
        if less < full:
            return
    pytest.fail("no bound fell")


def assignments(costs):
    """Length and holders of every assignment of shares to accelerators."""
    accelerators, shares = costs.shape
    for where in itertools.product(range(accelerators), repeat=shares):
        load = [sum(costs[a, b] for b in range(shares) if where[b] == a) for a in range(accelerators)]
        yield where, max(load)


@pytest.mark.parametrize("seed", seeds(4, 20))
def test_least_lengths_are_those_of_all_assignments(seed):
    rng = np.random.default_rng(seed)
    accelerators, shares = int(rng.integers(1, 4)), int(rng.integers(1, 5))
    size = 10 ** int(rng.integers(1, 8))
    costs = rng.integers(0, size, (accelerators, shares))
    listed = list(assignments(costs))
    for h, value in enumerate(stage_optima.least_lengths(costs), 1):
        assert value == min(length for where, length in listed if len(set(where)) == h)


@pytest.mark.parametrize("seed", seeds(4, 20))
def test_envelopes_lie_below_their_table_and_touch_it(seed):
    rng = np.random.default_rng(seed)
    table = tuple(int(t) for t in np.cumsum(rng.integers(0, 10**6, 24)))
    low = int(rng.integers(1, 24))
    high = int(rng.integers(low, 25))
    below = lines(table, low, high)
    for s in range(low, high + 1):
        value = max(alpha + beta * s for alpha, beta in below)
        assert value <= GRAIN * table[s - 1]
        if s in (low, high):  # ends are corners of the hull, up to the rounding of a slope
            assert GRAIN * table[s - 1] - value <= 24 * len(below)


def test_orbits_of_two_pairs():
    """Four accelerators in two pairs of equals: 2 orbits of places, 2 + 4 of pairs (the same one, or two)."""
    instance = LIBRARY.generate(
        "tiny", next(s for s in range(99) if len(LIBRARY.generate("tiny", s).accelerators) == 2)
    )
    rate = instance.bandwidth[0][1]
    paired = instance.changed(
        accelerators=tuple(
            a.model_copy(update={"name": f"{a.name}{k}"}) for k in range(2) for a in instance.accelerators
        ),
        bandwidth=tuple((rate,) * 4 for _ in range(4)),
        layers=tuple(
            layer.model_copy(update={key: rows * 2 for key in ("fp", "bp", "wu") if (rows := getattr(layer, key))})
            for layer in instance.layers
        ),
    )
    orbits = Orbits(paired)
    assert orbits.members == [[0, 2], [1, 3]]
    assert [len(orbits.tuples(n)) for n in (1, 2)] == [2, 6]
    assert sum(orbits.size(w) for w in orbits.tuples(3)) == 4**3


def read_places(proof):
    """Fused nodes and their accelerators, as a proof names them."""
    return tuple(((phase, layer), a) for phase, layer, a in proof["places"])


def weighted(proof, model):
    """The multipliers of a proof."""
    rows = dict(zip(proof["rows"][::2], proof["rows"][1::2], strict=True))
    return LinearOutcome(Status.UNKNOWN, rows, proof["shift"], closed=model.closed(read_places(proof)))


def relabelled(orbits, places):
    """All accelerators under other names that mean the same: places of fused nodes up to equal accelerators."""
    for order in itertools.product(*(itertools.permutations(those) for those in orbits.members)):
        name = {
            a: b
            for those, others in zip(orbits.members, order, strict=True)
            for a, b in zip(those, others, strict=True)
        }
        yield {v: name[a] for v, a in places.items()}


@pytest.mark.in_turn
@pytest.mark.parametrize("family", ["branching", "doubled", "realistic"])
def test_boxes_and_places_hold_every_mapping(family):
    """Were a place lost when a box is divided, nothing would bound the plans that have it."""
    rng, divided = random.Random(3), 0
    for seed in range(8):
        frame = Frame(generated(family, seed))
        search = BoxSearch(frame)
        for _ in range(40):
            search.step(30)
        divided += any(each.places for each in search.all())
        every = list(partitions(frame.instance.batch, frame.orbits.count))
        for _ in range(25):
            ratio = rng.choice(every)
            places = {v: rng.randrange(frame.orbits.count) for v in frame.fused}
            assert any(
                ratio in search.ratios(each) and all(names[v] == a for v, a in each.places)
                for each in search.all()
                for names in relabelled(frame.orbits, places)
            )
    assert divided > 0


@pytest.mark.in_turn
@pytest.mark.parametrize("family", ["branching", "doubled"])
@pytest.mark.parametrize("seed", seeds(2, 20))
def test_dividing_by_places_never_passes_a_plan(family, seed):
    """The bound of the whole search, to its end, against the best plan of an annealing of every ratio."""
    instance = generated(family, seed)
    frame = Frame(instance)
    best = min(m for r in partitions(instance.batch, frame.orbits.count) if (m := annealed(instance, r, seed)))
    for search in (BoxSearch(frame), search_of(frame)):
        bounds = [search.bound()]
        while len(bounds) < 200 and search.step(30, best):
            bounds.append(search.bound())
        assert bounds == sorted(bounds)
        assert bounds[-1] <= best


def test_places_raise_bounds_and_lower_none():
    """In the relaxation the fused operations lie half here, half there."""
    raised = 0
    for seed in range(8):
        bounds = []
        for places in (False, True):
            search = search_of(Frame(LIBRARY.generate("branching", seed), Boxes(places=places)))
            while search.step(60):
                pass
            bounds.append(search.bound())
        assert bounds[1] >= bounds[0]
        raised += bounds[1] > 1.01 * bounds[0]
    assert raised > 0


def test_the_file_of_duals_proves_every_box_again(tmp_path):
    """From the file alone: the multipliers of each box give at least the bound that it is listed with."""
    instance = LIBRARY.generate("branching", 1)
    path = tmp_path / "duals.json.gz"
    result = fluid_bound(instance, Budget(time_s=300).start(), duals=str(path))
    content = json.loads(gzip.decompress(path.read_bytes()))
    frame = Frame(instance)
    values = []
    for each in content["boxes"]:
        proof = each["proof"]
        assert proof["places"] == []  # no box is divided
        model = LocatedModel(frame, tuple(Group(*g) for g in proof["box"]))
        values.append(model.bound(weighted(proof, model)))
        assert values[-1] >= each["bound"]
    assert content["instance"] == instance.content_hash
    assert content["bound"] == result.bound == min(values)


@pytest.mark.parametrize("name", ["mtrain_c1_alexnet_3gbs", "branching"])
def test_duals_on_the_stage_model_prove_its_bounds_again(tmp_path, name):
    """From the file alone, and for every ratio: the rows of the stage model, weighted with the doubles of the file."""
    instance = LIBRARY.generate(name, 1) if name == "branching" else load_instance(name)
    path = tmp_path / "duals.json.gz"
    result = box_bound(instance, Budget(time_s=30).start(), duals=str(path))
    content = json.loads(gzip.decompress(path.read_bytes()))
    phases, seen = PhaseGraph(instance), 0
    for each in content["boxes"]:
        proof = each["proof"]
        if proof is None or "columns" not in proof:
            continue
        assert all(low == high for low, high, _ in each["holds"])
        shares = [low for low, _, count in each["holds"] for _ in range(count)]
        ratio = (*sorted(shares, reverse=True), *[0] * (len(instance.accelerators) - len(shares)))
        model = StageModel(phases, ratio, float(proof["scale"]), columns=proof["columns"])
        duals = np.zeros(model.matrix.rows)
        duals[proof["rows"][::2]] = proof["rows"][1::2]
        rows = WholeRows(model.matrix, -(-horizon(lower(instance, ratio)) // proof["scale"]))
        bound = rows.bound(duals, model.closed(read_places(proof)))
        assert math.ceil(bound * proof["scale"]) >= each["bound"] > 0
        seen += 1
    assert seen > 0
    assert content["bound"] == result.bound


def test_an_instance_that_fits_no_dram_has_no_bound():
    """A bound of 2^62 ticks would be nonsense in a table."""
    instance = LIBRARY.generate("tiny", 3)
    none = instance.changed(accelerators=tuple(a.model_copy(update={"memory": 0}) for a in instance.accelerators))
    for method in (fluid_bound, box_bound):
        result = method(none, Budget(time_s=10).start())
        assert result.status is Status.INFEASIBLE
        assert result.bound is None


def numbered(text):
    return [int(number) for number in re.findall(r"^ *\((\d+)\)", text, re.MULTILINE)]


def test_every_row_is_a_method_and_proven_in_the_docs():
    methods = [inspect.getdoc(method) or "" for _, method in inspect.getmembers(LocatedModel, inspect.isfunction)]
    stated = numbered(LocatedModel.__doc__)
    assert stated == list(range(1, len(stated) + 1))
    assert sorted({number for doc in methods for number in numbered(doc)}) == stated
    page = (Path(__file__).parents[2] / "docs" / "methods" / "suboperation_mapping.md").read_text()
    section = page.partition("## The located program")[2].partition("\n## ")[0]
    proofs = re.findall(r"^- \*\*((?:\(\d+\)(?:, )?)+)", section, re.MULTILINE)
    assert [int(number) for numbers in proofs for number in re.findall(r"\d+", numbers)] == stated


def test_the_search_uses_columns_where_accelerators_are_few():
    """Three accelerators: ratios one by one; with four and more located programs alone."""
    small = LIBRARY.generate("small", 0)
    assert search_of(Frame(small)).one is not None
