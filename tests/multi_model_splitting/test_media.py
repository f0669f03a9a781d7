"""Multi-model splitting on one medium and with latencies: by hand, replayed, by brute force, with certificates."""

import importlib.util
import random
from pathlib import Path

import pytest
from certificates import accepted

from mapgap import load
from mapgap.catalogue.files import load_instance, load_plan
from mapgap.catalogue.registry import library, methods
from mapgap.contract.seeds import seeds
from mapgap.core import Budget, Status
from mapgap.evidence import check
from mapgap.evidence.ledger import Ledger
from mapgap.evidence.media import media
from mapgap.formulations.multi_model_splitting.certificate import prove
from mapgap.instances.editing import each
from mapgap.instances.multi_model_splitting.relations import implied, relations
from mapgap.problems.multi_model_splitting import PROBLEM, Device, Instance, PipelinePlan, Plan, Segment
from mapgap.problems.multi_model_splitting.evaluate import evaluate
from mapgap.problems.multi_model_splitting.gantt import gantt
from mapgap.problems.multi_model_splitting.lowered.radios import PLAIN, SOONEST, later

METHODS = methods(PROBLEM.name)
KNOW = ("cpsat", "enumerate", "joint", "mip", "mip_cbc", "portfolio", "replan")


def pairs():
    """Two pipelines of one layer on four devices: A to B, and C to D. Sending takes 10, receiving 2."""

    def pipeline(name, source, target):
        cut = {"bytes": 5, "transmit": (10,) * 4, "receive": (2,) * 4}
        return {
            "name": name,
            "source": {"device": source},
            "target": {"device": target},
            "model": name,
            "sensing": (1,) * 4,
            "layers": ({"name": "l", "weights": 1, "bias": 0, "output_bytes": 5, "inference": (4,) * 4},),
            "boundaries": ({**cut, "load": (1,) * 4}, {**cut, "unload": (1,) * 4}),
        }

    return Instance(
        name="pairs",
        tick_ns=1000,
        devices=tuple(Device(name=name, weights=1, bias=1, layers=4) for name in "ABCD"),
        pipelines=(pipeline("p", "A", "B"), pipeline("q", "C", "D")),
    )


def placed(*devices):
    """The layer of either pipeline on a device."""
    ends = ((0, 1), (2, 3))
    return Plan(
        pipelines=tuple(
            PipelinePlan(source=s, target=t, segments=(Segment(device=d, first=0, last=1),))
            for (s, t), d in zip(ends, devices, strict=True)
        )
    )


OPTIONS = (("shared", False), ("links", True), ("shared", True))
"""Media, and whether messages have latencies."""


def crowded(seed, medium="shared", late=False):
    """A tiny instance whose transmissions are long and receptions short, so that one medium binds often.

    Latencies are below, about and above the ticks of transmissions, and one for every sender in a fourth of the seeds.
    """
    rng = random.Random(f"splitting-media-{seed}")
    base, factor = library(PROBLEM.name).generate("tiny", rng.randrange(10**6)), rng.choice((1, 3, 8))

    def cut(old):
        return {
            "transmit": tuple(ticks * factor for ticks in old.transmit),
            "receive": tuple(ticks // factor for ticks in old.receive),
        }

    slower = each(base.pipelines, lambda pipeline: {"boundaries": each(pipeline.boundaries, cut)})
    found = base.changed(pipelines=slower, medium=medium)
    if not late:
        return found
    n, tick, alike = len(base.devices), base.tick_ns, rng.random() < 0.25
    several = (0, 1, tick // 2, tick, tick * rng.randint(2, 9), tick * rng.randint(5, 60))
    rows = [[rng.choice(several) for _ in range(n)] for _ in range(n)]
    late_ns = tuple(tuple(row[:1] * n if alike else row) for row in rows)
    return found.changed(latency_ns=late_ns, objective=rng.choice(("throughput", "throughput", "latency")))


def test_by_hand():
    instance = pairs()
    plan = placed(0, 2)
    # Each sends its output once: 10 on its radio. On one medium both: 20.
    assert evaluate(instance, plan).objective == evaluate(instance.changed(medium="ports"), plan).objective == 10
    shared = evaluate(instance.changed(medium="shared"), plan)
    assert (shared.objective, shared.terms["bottleneck"], shared.terms["medium_ticks"]) == (20, "medium", 20)
    assert [lane.name for lane in gantt(instance.changed(medium="shared"), plan)][-1] == "medium (bottleneck)"
    latency = instance.changed(objective="latency")
    assert evaluate(latency, plan).objective == evaluate(latency.changed(medium="shared"), plan).objective
    replayed = media(instance, plan)
    assert replayed.links == pytest.approx(1e-6 * 10, rel=0.01)
    assert replayed.shared == pytest.approx(1e-6 * 20, rel=0.01)


def test_latencies_by_hand():
    late = ((9, 4000, 0, 0), (0, 9, 1, 0), (0, 0, 9, 2500), (0, 0, 0, 9))  # ticks of 1000 ns
    instance, plan = pairs().changed(latency_ns=late), placed(0, 2)
    # A to B 10 + 4; C to D 10 + 3, as ticks are rounded up. Both on one medium: 27.
    assert evaluate(instance, plan).terms["load_ticks"]["A"]["radio"] == evaluate(instance, plan).objective == 14
    assert evaluate(instance, plan).terms["load_ticks"]["B"]["radio"] == 2
    assert evaluate(instance.changed(medium="shared"), plan).objective == 27
    # Of either sensing, load, inference, unload, transmission and reception.
    latency = instance.changed(objective="latency")
    assert evaluate(latency, plan).objective == (1 + 1 + 4 + 1 + 14 + 2) + (1 + 1 + 4 + 1 + 13 + 2)
    # B runs the layer of A: the input moves instead. No bytes are no message.
    assert evaluate(instance, placed(1, 2)).terms["load_ticks"]["A"]["radio"] == 14
    empty = each(instance.pipelines, lambda pipeline: {"boundaries": each(pipeline.boundaries, lambda _: {"bytes": 0})})
    assert evaluate(instance.changed(pipelines=empty), plan).objective == 10
    for medium in ("links", "shared"):
        replayed = getattr(media(instance.changed(medium=medium), plan), medium)
        assert replayed == pytest.approx(1e-6 * {"links": 14, "shared": 27}[medium], rel=0.01)


def test_methods_that_know_no_latencies_know_those_of_a_sender():
    """What a message takes whoever receives it is part of a transmission: nothing is lost, and nothing is said."""
    alike = pairs().changed(latency_ns=((4000,) * 4,) * 4)
    found = METHODS["synergy"].solve(alike, Budget(300.0).start())
    assert (evaluate(alike, found.plan).objective, found.reason) == (14, "")
    differs = pairs().changed(latency_ns=((0, 4000, 0, 0), *((0,) * 4,) * 3))
    assert SOONEST in METHODS["synergy"].solve(differs, Budget(300.0).start()).reason


@pytest.mark.parametrize(
    ("late", "said"),
    [
        (((0,) * 4,), "4 rows of 4 entries, one per board; found rows of"),
        (((0, 0, 0, -1), *((0,) * 4,) * 3), r"latency_ns\[0\]\[3\]: expected 0 to \d+ nanoseconds, found -1"),
        (((0, 0, 0, 2**40), *((0,) * 4,) * 3), "tick_ns"),
    ],
)
def test_latencies_of_the_wrong_shape_or_size_are_refused(late, said):
    with pytest.raises(ValueError, match=said):
        pairs().changed(latency_ns=late)


def test_merged_transmissions_take_the_medium_once():
    instance = pairs()
    first = instance.pipelines[0].model_copy(update={"signal": "s", "model": "m"})
    both = (first, first.model_copy(update={"name": "q"}))
    shared = instance.changed(pipelines=both, sharing=True, medium="shared")
    one = placed(0, 0).pipelines[0]
    assert evaluate(shared, Plan(pipelines=(one, one))).objective == 10
    assert evaluate(shared.changed(sharing=False), Plan(pipelines=(one, one))).objective == 20


def test_defaults_leave_no_trace():
    instance = pairs()
    assert "medium" not in instance.to_json()
    assert len({instance.changed(medium=m).content_hash for m in ("links", "ports", "shared")}) == 3
    known = Ledger.load().entries["synergy_w1_any"]
    assert known.instance_hash == load_instance("synergy_w1_any").content_hash
    shared = load("synergy_w1_any@shared")
    assert (shared.name, shared.in_turn) == ("synergy_w1_any@shared", True)
    assert not load("synergy_w1_any@latency@shared").in_turn


@pytest.mark.parametrize(("medium", "late"), OPTIONS)
@pytest.mark.parametrize("seed", seeds(1, 500))
def test_brute_force(seed, medium, late):
    """No plan beats it, no bound is beyond it; exact methods prove it, and so do certificates, and no more."""
    instance = crowded(seed, medium, late)
    whole = METHODS["enumerate"].solve(instance, Budget(300.0).start())
    best = whole.bound if whole.status is Status.OPTIMAL else None
    assert best is not None or whole.status is Status.INFEASIBLE
    for name, method in METHODS.items():
        if name == "enumerate" or (name in ("mip", "mip_cbc", "replan") and seed % 5):
            continue
        found = method.solve(instance, Budget(30.0, seed=seed).start())
        where = (seed, name)
        judged = None if found.plan is None else evaluate(instance, found.plan)
        if judged is not None:
            assert judged.feasible, where
            assert judged.objective >= best, where
            assert found.claimed in (None, judged.objective), where
        if found.bound is not None and best is not None:
            assert found.bound <= best, where
        if found.status is Status.OPTIMAL:
            assert judged.objective == found.bound == best, where
        if found.status is Status.INFEASIBLE:
            assert best is None, where
        if name in KNOW:
            assert found.status is whole.status, where
        elif found.plan is not None and not method.knows:
            assert (PLAIN in found.reason) == instance.in_turn, where
            assert (SOONEST in found.reason) == bool(later(instance)), where
    facts = instance.to_json()
    limit = check.NONE["min"] if best is None else best
    assert accepted(facts, best, prove(facts, limit, Budget(60.0).start())), seed
    if best is not None:
        assert prove(facts, best + 1, Budget(1.0).start()) is None, seed


def test_latencies_go_with_their_devices():
    late = tuple(tuple(1000 * (4 * d + e) for e in range(4)) for d in range(4))
    instance = pairs().changed(latency_ns=late)
    by_label = {case.label: case.instance for case in PROBLEM.explain.relaxations(instance)}
    assert by_label["messages without latency"].latency_ns == ()
    assert by_label["a second B"].latency_ns == (*((*row, row[1]) for row in late), (*late[1], late[1][1]))
    fewer = [each.latency_ns for each in library(PROBLEM.name).shrink(instance) if len(each.devices) == 3]
    assert fewer[0] == tuple(row[:3] for row in late[:3])  # without D
    assert len(fewer) == 4
    later_still = instance.changed(latency_ns=tuple(tuple(2 * ns for ns in row) for row in late))
    assert (implied(9, instance, later_still), implied(9, later_still, instance)) == (9, None)


@pytest.mark.parametrize("seed", seeds(2, 60))
def test_what_follows_from_what(seed):
    def best(instance):
        found = METHODS["enumerate"].solve(instance, Budget(300.0).start())
        return found.bound if found.status is Status.OPTIMAL else None

    instance = crowded(10_000 + seed, late=seed % 2 == 1)
    kin = [instance, *(instance.changed(medium=medium) for medium in ("links", "ports"))]
    kin += [instance.changed(objective="latency"), instance.changed(latency_ns=())]
    value = best(instance)
    for relation in relations(instance, random.Random(seed)):
        other = best(relation.instance)
        if value is not None:
            assert other is not None
            assert other == value * relation.factor if relation.equal else other <= value * relation.factor
    values = {each.content_hash: best(each) for each in kin}
    for source in kin:
        for target in kin:
            known, other = values[source.content_hash], values[target.content_hash]
            bound = None if known is None else implied(known, source, target)
            assert bound is None or other is None or bound <= other


@pytest.mark.in_turn
@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("seed", seeds(3, 100))
def test_the_second_writer_states_the_same_program(seed, late):
    path = Path(__file__).parents[1] / "evidence" / "test_second_writers.py"
    spec = importlib.util.spec_from_file_location("second_writers_of_media", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    instance = crowded(seed, late=late).to_json()
    for bound in (5, 10**6, check.NONE["min"]):
        assert module.compared(instance, bound) == []


@pytest.mark.in_turn
def test_the_medium_counts_for_the_library():
    """With the ledger's plan all devices send for 1.5 times as long as the busiest radio is taken; a better plan is
    found for the medium, and replayed it is quicker, too."""
    name = max(
        (name for name in ("synergy_w1_any", "synergy_w2_any", "synergy_w3_any", "synergy_w4_any")),
        key=lambda name: ratio(name)[0],
    )
    factor, shared, plan = ratio(name)
    assert factor > 1
    found = METHODS["joint"].solve(shared, Budget(20.0).start())
    assert evaluate(shared, found.plan).objective <= evaluate(shared, plan).objective


def ratio(name):
    """How much longer the cycle of the best plan known is on one medium; the instance there, and the plan."""
    instance, plan = load_instance(name), load_plan(Ledger.load().plan_path(name), PROBLEM.name)
    shared = PROBLEM.on_medium(instance, "shared")
    return evaluate(shared, plan).objective / evaluate(instance, plan).objective, shared, plan
