"""Transfers of sub-operation mapping that share ports or a medium, or are late: by hand, by replay, by brute force."""

import json
import random

import numpy as np
import pytest
from certificates import accepted
from cli_support import wide
from mtrain_example import SPLIT, figure5, table

from mapgap import load
from mapgap.catalogue import registry
from mapgap.catalogue.files import load_instance
from mapgap.clock.replay import ends
from mapgap.contract.seeds import samples, seeds
from mapgap.core import Budget, InputError, Status, Stop
from mapgap.evidence import check
from mapgap.formulations.suboperation_mapping.certificate import prove
from mapgap.formulations.suboperation_mapping.ratio_model import WAITS
from mapgap.instances.suboperation_mapping.families import random_plan, random_sequence
from mapgap.instances.suboperation_mapping.relations import implied, relations
from mapgap.problems.suboperation_mapping import PROBLEM, Accelerator, Edge, Instance, Layer, Plan
from mapgap.problems.suboperation_mapping.clock import script
from mapgap.problems.suboperation_mapping.evaluate import evaluate, gantt, timetable
from mapgap.problems.suboperation_mapping.lowered.arrays import lower

METHODS = registry.methods(PROBLEM.name)
LIBRARY = registry.library(PROBLEM.name)
MEDIA = ("ports", "shared")
OPTIONS = (*((medium, False) for medium in MEDIA), *((medium, True) for medium in ("links", *MEDIA)))
"""Media, and whether messages have latencies."""
SLOW = ("mip", "mip_cbc")
"""Asked of one instance in ten, and of no two options with one seed: they solve the program of ``cpsat``."""


def exchange():
    """One layer on three accelerators, a sample each: 10 ticks of FP, 10 of WU, and 6 bytes of dW to two others."""
    rows = table((10, 20, 30), (10, 20, 30), (10, 20, 30))
    conv = Layer(name="conv", kind="split", network_input_bytes=1, output_bytes=0, weight_bytes=6, fp=rows, wu=rows)
    return Instance(
        name="exchange",
        batch=3,
        tick_ns=1,
        memory_unit_bytes=1,
        flops=1,
        accelerators=tuple(Accelerator(name=name, memory=1000, pes=1) for name in "ABC"),
        bandwidth=((10**9,) * 3,) * 3,
        layers=(conv,),
    )


EXCHANGED = Plan(ratio=(1, 1, 1), order=tuple((f"FP/conv/{b}", f"WU/conv/{b}") for b in range(3)))


@pytest.mark.parametrize(
    ("medium", "makespan"),
    [
        ("links", 32),  # 10 + 10, then two transfers of 6
        # At 20 A to B and B to A begin; C to A waits for the way into A. At 26 it begins, since 20, and A to C; B to C
        # waits for the way into C. A is done at 32. Then B to C, since 26, and C to B begin: 38.
        ("ports", 38),
        ("shared", 56),  # six transfers of 6, one after the other
    ],
)
def test_an_exchange_by_hand(medium, makespan):
    found = evaluate(exchange().changed(medium=medium), EXCHANGED)
    assert found.objective == makespan
    assert found.terms["transfer_ticks"] == dict.fromkeys("ABC", 12)
    assert found.terms["compute_ticks"] == dict.fromkeys("ABC", 20)
    waited = {"links": None, "ports": {"A": 0, "B": 6, "C": 6}, "shared": {"A": 12, "B": 18, "C": 24}}
    # Shared: from 20 on A, B, C, A, B, C send in turn, so A waits 12 before its second, B 6 + 12, C 12 + 12.
    assert found.terms.get("waiting_ticks") == waited[medium]


LATE = ((7, 4, 1), (0, 7, 2), (3, 0, 7))
"""Nanoseconds between A, B and C; the diagonal is not read."""


@pytest.mark.parametrize(
    ("medium", "makespan"),
    [
        ("links", 37),  # A sends from 20: 6 + 4 to B, 6 + 1 to C; B and C are done at 34 and 35
        # At 20 A to B and B to A begin. At 26 C to A, which waited for A, until 35, and B to C until 34. At 30 A waits
        # for C, 34 to 41; C to B, 35 to 41.
        ("ports", 41),
        ("shared", 66),  # 20, then 10 + 6 + 9 + 7 + 8 + 6 in turn
    ],
)
def test_latencies_by_hand(medium, makespan):
    found = evaluate(exchange().changed(medium=medium, latency_ns=LATE), EXCHANGED)
    assert found.objective == makespan
    assert found.terms["transfer_ticks"] == {"A": 17, "B": 14, "C": 15}


def test_a_message_is_rounded_up_once():
    instance = exchange().changed(tick_ns=10, latency_ns=((0, 5, 4), (0, 0, 0), (0, 0, 0)))
    assert [instance.transfer_ticks(size, 0, 1) for size in (0, 1, 5, 6, 25)] == [0, 1, 1, 2, 3]
    assert instance.transfer_ticks(6, 0, 2) == 1
    assert instance.transfer_ticks(6, 0, 0) == 0


@pytest.mark.parametrize(
    ("late", "place"),
    [
        (((0, 1),), "3 rows of 3 entries, one per board; found rows of"),
        (((0, 1, 1), (1, 0, -1), (1, 1, 0)), r"latency_ns\[1\]\[2\]: expected 0 to \d+ nanoseconds, found -1"),
        (((0, 1, 1), (1, 0, 2**30), (1, 1, 0)), "tick_ns"),
    ],
)
def test_latencies_of_the_wrong_shape_or_size_are_refused(late, place):
    with pytest.raises(ValueError, match=place):
        exchange().changed(latency_ns=late)


def test_figure_5_by_hand():
    # In the plan of links, A to B is used from 24 to 29, 56 to 61, 66 to 69, 76 to 78 and 88 to 90, B to A from 15 to
    # 20, 47 to 52 and 76 to 79. Nothing meets on a port. On one medium A sends first at 76, B then: all of B after it
    # is two ticks later.
    assert evaluate(figure5().changed(medium="ports"), SPLIT).objective == 90
    shared = figure5().changed(medium="shared")
    assert evaluate(shared, SPLIT).objective == 92
    assert max(bar.end for lane in gantt(shared, SPLIT) for bar in lane.bars) == pytest.approx(92e-9)


def test_what_an_operation_receives_comes_by_sender_the_longest_first():
    # BN on C gathers 4, 2 and 6 bytes of shares on B, A and B: from A until 12, then 6 and 4 from B. Meanwhile A reads
    # from B and waits for the way out of B: D's FP of share 3, ready at 10, is served at once.
    conv = Layer(
        name="conv",
        kind="split",
        network_input_bytes=0,
        output_bytes=2,
        weight_bytes=0,
        fp=table(*([(0,) * 6] * 3)),
        wu=table(*([(0,) * 6] * 3)),
    )
    bn = Layer(
        name="bn",
        kind="fused",
        inputs=(Edge(source=0, bytes=2),),
        output_bytes=0,
        weight_bytes=0,
        fp=table((0,), (0,), (0,)),
        bp=table((0,), (0,), (0,)),
    )
    instance = exchange().changed(batch=6, layers=(conv, bn), medium="ports")
    wu = tuple(f"WU/conv/{b}" for b in range(3))
    plan = Plan(ratio=(2, 1, 3), order=(("FP/conv/1",), ("FP/conv/0", "FP/conv/2"), ("FP/bn", "BP/bn", *wu)))
    tasks = [task for task in script(instance, plan, 1).tasks if task.name.startswith("0/FP/bn/move")]
    assert [(task.move.sender, task.move.bytes) for task in tasks] == [("A", 2), ("B", 6), ("B", 4)]
    assert timetable(instance, plan).end["FP", 1, -1] == 12


@pytest.mark.parametrize("sample", samples(20, 400))
def test_evaluator_replay_and_kernel_agree(sample):
    """Three independent clocks of every random plan: the evaluator's, the replay's of its tasks, the compiled one."""
    held = 0
    for seed in sample:
        rng = random.Random(f"media-{seed}")
        base = LIBRARY.generate(rng.choice(("tiny", "small", "branching", "realistic")), seed)
        for medium, late in (("links", False), *OPTIONS):
            instance = delayed(base.changed(medium=medium), rng) if late else base.changed(medium=medium)
            plan = random_plan(instance, rng)
            timed = timetable(instance, plan)
            if timed is None:
                continue
            held += 1
            makespan = max(timed.end.values())
            assert evaluate(instance, plan).objective == makespan
            replayed = max(ends(script(instance, plan, 1), medium).values()) / instance.seconds_per_tick
            assert replayed == pytest.approx(makespan, rel=1e-9, abs=1e-6), (seed, medium)
            lowered = lower(instance, plan.ratio)
            start, end = lowered.timetable(*lowered.mapping(plan))
            for o, operation in enumerate(lowered.operations):
                assert (start[o], end[o]) == (timed.start[operation], timed.end[operation]), (seed, medium, operation)
            excess = lowered.memory_excess(lowered.mapping(plan)[0], start, end)
            assert (excess == 0) == evaluate(instance, plan).feasible
            assert makespan >= evaluate(base, plan).objective
    assert held > len(sample)


def renumbered(name, number):
    phase, layer, *share = name.split("/")
    return "/".join([phase, layer, *(str(number[int(b)]) for b in share)])


@pytest.mark.parametrize("sample", samples(10, 200))
def test_shares_may_change_their_numbers(sample):
    """Rule 8 holds on every medium: no tie is broken by the number of a share."""
    for seed in sample:
        rng = random.Random(f"shares-{seed}")
        base = LIBRARY.generate(rng.choice(("tiny", "small", "branching")), seed)
        n = len(base.accelerators)
        number = rng.sample(range(n), n)
        for medium, late in OPTIONS:
            instance = delayed(base.changed(medium=medium), rng) if late else base.changed(medium=medium)
            lowered = lower(instance, random_plan(instance, rng).ratio)
            location = np.array([rng.randrange(n) for _ in range(lowered.n)])
            plan = lowered.plan(location, np.array(random_sequence(lowered, rng)))

            ratio = [0] * n
            for b, share in enumerate(plan.ratio):
                ratio[number[b]] = share
            order = tuple(tuple(renumbered(name, number) for name in names) for names in plan.order)
            other = Plan(ratio=tuple(ratio), order=order)
            assert evaluate(instance, plan).objective == evaluate(instance, other).objective, (seed, medium)


def delayed(instance, rng):
    """Latencies from none to a hundred ticks, which differ by pair or are all one; none where they make sums too
    large."""
    n, tick = len(instance.accelerators), instance.tick_ns
    one = rng.choice((None, None, tick * rng.randint(1, 9)))
    several = (0, 1, tick // 2, tick, tick * rng.randint(1, 9), tick * rng.choice((9, 100)))
    late = tuple(tuple(rng.choice(several) if one is None else one for _ in range(n)) for _ in range(n))
    return next(instance.if_valid(latency_ns=late), instance)


def crowded(seed, medium="links", late=False):
    """A tiny instance in which it pays to divide the work and what is moved meets on its way.

    One layer in three shares, a fused one behind it in a third of the seeds; two or three accelerators of nearly one
    speed. The DRAM binds in a third.
    """
    rng = random.Random(f"crowded-{seed}")
    n, fused = rng.choice((2, 3, 3)), rng.random() < 0.35
    batch, tick = rng.choice((2, 3) if n == 3 else (2, 3, 4)), rng.randint(3, 12)

    def rows(entries):
        return tuple(tuple(k * tick * rng.randint(8, 12) // 10 for k in entries) for _ in range(n))

    conv = Layer(
        name="conv",
        kind="split",
        network_input_bytes=rng.randint(0, 3),
        output_bytes=rng.randint(0, 3),
        weight_bytes=rng.randint(1, 8),
        fp=rows(range(1, batch + 1)),
        wu=rows(range(1, batch + 1)),
    )
    norm = Layer(
        name="norm",
        kind="fused",
        inputs=(Edge(source=0, bytes=rng.randint(0, 6)),),
        output_bytes=1,
        weight_bytes=0,
        fp=rows((0, 1)[rng.random() < 0.5 :][:1]),
        bp=rows((1,)),
    )
    rates = tuple(tuple(10**9 * rng.choice((1, 1, 2)) for _ in range(n)) for _ in range(n))
    found = exchange().changed(
        batch=batch,
        bandwidth=rates,
        layers=(conv, norm) if fused else (conv,),
        accelerators=tuple(Accelerator(name=name, memory=10**6, pes=1) for name in "ABC"[:n]),
        medium=medium,
    )
    if late:  # few of the longest, with which everything lies on one accelerator
        found = found.changed(latency_ns=tuple(tuple(rng.choice((0, 1, 2, 4, 9)) for _ in range(n)) for _ in range(n)))
    if rng.random() < 0.35:
        room = [int(found.largest_demand * rng.uniform(0.5, 0.9)) for _ in range(n)]
        boards = zip(found.accelerators, room, strict=True)
        return found.changed(accelerators=tuple(a.model_copy(update={"memory": units}) for a, units in boards))
    return found


@pytest.mark.parametrize(("medium", "late"), OPTIONS)
@pytest.mark.parametrize("seed", seeds(1, 500))
def test_brute_force(seed, medium, late):
    """No plan is better than the best of all, no bound beyond it, no proof wrong, no optimum claimed without one."""
    instance = crowded(seed, medium, late)
    whole = METHODS["enumerate"].solve(instance, Budget(300.0).start())
    best = whole.bound if whole.status is Status.OPTIMAL else None
    assert whole.status in (Status.OPTIMAL, Status.INFEASIBLE)
    for name, method in METHODS.items():
        if name == "enumerate" or (name in SLOW and (seed + OPTIONS.index((medium, late))) % 10):
            continue
        options = {"rounds": 20} if name == "anneal" else {}
        found = method.solve(instance, Budget(2.0 if name in SLOW else 20.0, seed=seed).start(), **options)
        if found.plan is not None:
            value = evaluate(instance, found.plan)
            assert value.feasible, name
            assert value.objective >= best, name
            assert found.claimed in (None, value.objective), name
        if found.bound is not None and best is not None:
            assert found.bound <= best, name
        if found.status is Status.OPTIMAL:
            assert value.objective == found.bound == best, name
        if found.status is Status.INFEASIBLE:
            assert best is None, name
        if found.status is Status.FEASIBLE and method.kind == "exact" and found.stop is Stop.DONE:
            assert medium != "links", name
            assert "shared links" in found.reason, name


@pytest.mark.in_turn
@pytest.mark.parametrize(("medium", "late"), OPTIONS)
@pytest.mark.parametrize("seed", seeds(1, 60))
def test_certificates_hold_and_prove_no_more(seed, medium, late):
    instance = crowded(seed, medium, late)
    whole = METHODS["enumerate"].solve(instance, Budget(300.0).start())
    facts = instance.to_json()
    best = whole.bound if whole.status is Status.OPTIMAL else None
    proof = prove(facts, check.NONE["min"] if best is None else best, Budget(10.0).start())
    if proof is not None:
        assert accepted(facts, best, proof)
        assert not accepted(facts | {"medium": "radio"}, best, proof)
    if best is not None:
        assert prove(facts, best + 1, Budget(1.0).start()) is None


def test_a_certificate_counts_what_the_medium_carries():
    """On one medium more is proven than on links, whose optimum it exceeds."""
    values = []
    for medium in ("links", *MEDIA):
        found = METHODS["enumerate"].solve(exchange().changed(medium=medium), Budget(300.0).start())
        values.append(found.bound)
    assert values == [32, 36, 40]
    facts = exchange().changed(medium="shared").to_json()
    assert accepted(facts, 36, prove(facts, 36, Budget(60.0).start()))
    found = METHODS["portfolio"].solve(exchange().changed(medium="shared"), Budget(10.0).start())
    assert (found.status, found.bound, found.stop) == (Status.FEASIBLE, 36, Stop.DONE)


def test_links_are_left_out_of_json_and_hash():
    links = exchange()
    assert "medium" not in links.to_json()
    assert links.changed(medium="links").content_hash == links.content_hash
    others = [links.changed(medium=medium) for medium in MEDIA]
    assert len({each.content_hash for each in (links, *others)}) == 3
    for each in others:
        assert Instance.model_validate_json(json.dumps(each.to_json())) == each
    # The hash under which the ledger has known it since before there were media.
    assert load_instance("mtrain_example_fig5").content_hash == load_instance("mtrain_example_fig5@links").content_hash


def test_what_follows_from_other_instances():
    links = exchange()
    ports = links.changed(medium="ports")
    assert implied(32, links, ports) == 32
    assert implied(38, ports, links) is None
    tight = tuple(a.model_copy(update={"memory": 14}) for a in links.accelerators)
    assert implied(32, links.changed(accelerators=tight), ports.changed(accelerators=tight)) is None
    labels = [relation.label for relation in relations(ports, random.Random(0))]
    assert "a link for every pair" in labels
    assert "accelerators in another order" not in labels


def test_latencies_go_with_their_accelerators():
    instance = exchange().changed(latency_ns=LATE)
    by_label = {case.label: case.instance for case in PROBLEM.explain.relaxations(instance)}
    assert by_label["messages without latency"].latency_ns == ()
    # Like B, and to B at the best of its rates and latencies.
    assert by_label["a second B"].latency_ns == ((7, 4, 1, 4), (0, 7, 2, 0), (3, 0, 7, 0), (0, 0, 2, 1))
    fewer = [each.latency_ns for each in LIBRARY.shrink(instance) if len(each.accelerators) == 2]
    assert fewer == [((7, 4), (0, 7)), ((7, 1), (3, 7)), ((7, 2), (0, 7))]
    shuffled = next(r for r in relations(instance, random.Random(1)) if r.label == "accelerators in another order")
    order = [instance.accelerators.index(a) for a in shuffled.instance.accelerators]
    assert shuffled.instance.latency_ns == tuple(tuple(LATE[i][j] for j in order) for i in order)
    assert order != [0, 1, 2]
    later = instance.changed(latency_ns=tuple(tuple(2 * ns for ns in row) for row in LATE))
    assert (implied(30, instance, later), implied(30, later, instance)) == (30, None)


@pytest.mark.parametrize("seed", seeds(1, 60))
def test_relations_hold(seed):
    def optimum(instance):
        found = METHODS["enumerate"].solve(instance, Budget(300.0).start())
        return found.bound if found.status is Status.OPTIMAL else None

    for medium, late in OPTIONS:
        instance = crowded(seed, medium, late)
        best = optimum(instance)
        for relation in relations(instance, random.Random(seed)):
            other = optimum(relation.instance)
            if best is not None:
                assert other is not None
                assert other == best * relation.factor if relation.equal else other <= best * relation.factor


def test_a_board_alone_is_never_beaten_by_the_quick_planner():
    """On its links of its own the best plan known of this instance is faster than a board, on ports it is not."""
    instance = load_instance("mtrain_c2_resnet56_0p125gbs@ports")
    found = [
        METHODS[name].solve(instance, Budget(60.0).start()) for name in ("annealed_converting", "single_accelerator")
    ]
    quick, single = (evaluate(instance, each.plan).objective for each in found)
    assert quick <= single


@pytest.mark.in_turn
def test_the_command_line_takes_a_medium():
    done = wide("solve", "mtrain_example_fig5", "--medium", "shared", "-m", "portfolio", "--json")
    record = json.loads(done.stdout)
    assert record["instance"] == "mtrain_example_fig5@shared"
    assert (record["status"], record["objective"]) == ("OPTIMAL", 36)  # everything on the first
    with pytest.raises(InputError, match="offers no choice"):
        load("elfish_lenet_straggler1", medium="ports")
    refused = wide("solve", "mtrain_example_fig5", "--medium", "radio")
    assert refused.returncode == 2
    assert "links, ports, shared" in refused.stderr


@pytest.mark.in_turn
def test_a_method_that_cannot_prove_says_why():
    told = []
    for seed in range(40):
        instance = crowded(seed, "shared")
        found = METHODS["cpsat"].solve(instance, Budget(20.0).start())
        if found.status is Status.FEASIBLE and found.stop is Stop.DONE:
            told.append(found.reason)
    assert told
    assert all(WAITS in reason for reason in told)
