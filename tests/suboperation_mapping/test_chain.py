"""Bounds of a ratio along a chain of layers: hand-solved ones, plans, and proofs that are none."""

import json
import random
from bisect import bisect_left
from dataclasses import replace
from functools import partial
from itertools import permutations, product

import numpy as np
import pytest
from certificates import damaged, drawn, with_equal_accelerators
from chains import makespans, network

from mapgap.contract.seeds import seeds
from mapgap.core import Budget, Status
from mapgap.formulations.suboperation_mapping import chain_bound, chain_check, chain_diagram, stage_mip
from mapgap.formulations.suboperation_mapping.ascent import Ascent
from mapgap.formulations.suboperation_mapping.chain_arrays import (
    FRONT,
    NOTHING,
    PLACE,
    PLACES,
    RISING,
    SPREAD,
    START,
    Arrays,
)
from mapgap.formulations.suboperation_mapping.chain_diagram import Diagram
from mapgap.formulations.suboperation_mapping.chain_kernels import different, gather, thin
from mapgap.formulations.suboperation_mapping.chain_plan import chain_plans
from mapgap.formulations.suboperation_mapping.chain_tree import Tree, weighed_proof
from mapgap.formulations.suboperation_mapping.params import Certificate, Stage
from mapgap.problems.suboperation_mapping import Instance
from mapgap.problems.suboperation_mapping.certificate import chain_labels
from mapgap.problems.suboperation_mapping.certificate.chain import Chain
from mapgap.problems.suboperation_mapping.certificate.chain_after import makespan, moved
from mapgap.problems.suboperation_mapping.certificate.chain_costs import NEVER
from mapgap.problems.suboperation_mapping.certificate.chain_labels import outlived, undominated
from mapgap.problems.suboperation_mapping.certificate.chain_shares import CHAIN, COUNTED, HEADED, SHORTCUTS
from mapgap.problems.suboperation_mapping.certificate.chain_weights import UNIT
from mapgap.problems.suboperation_mapping.evaluate import evaluate
from mapgap.problems.suboperation_mapping.lowered.arrays import lower
from mapgap.problems.suboperation_mapping.lowered.ratios import partitions

WORK = 10**6


def best(data, ratio, goal):
    """The bound that is found for a ratio, checked."""
    ascent = Ascent(data, ratio, goal, Certificate(moves=20_000))
    while ascent.climb(Budget(100.0).start()):
        pass
    assert outlived(Chain(data, ratio, ascent.kind), ascent.bound, ascent.proof) is None
    return ascent.bound


def solved(data, ratio, optimum):
    """Whether the optimum is proven, and no more when more is asked for."""
    return best(data, ratio, optimum) == optimum >= best(data, ratio, optimum + 1)


FREE = 10**15  # bytes a second: any transfer takes a tick


def test_one_accelerator_does_all_the_work():
    """Sequentially: FP 2 (3 + 5), the fused ones 1 + 1, BP 2 * 5, WU 2 (3 + 5), in units of WORK, nothing moved."""
    data = network(
        [("split", 3 * WORK, 0, 3 * WORK), ("fused", WORK, WORK, 0), ("split", 5 * WORK, 5 * WORK, 5 * WORK)], 1
    )
    assert solved(data, (2,), 44 * WORK)
    assert solved(data, (1, 1), 44 * WORK)


def proven(data, **options):
    """The bound of all ratios, by the method."""
    return chain_bound.run(Instance.model_validate_json(json.dumps(data)), Budget(100.0).start(), **options).bound


def test_a_share_of_no_samples_has_no_chain():
    """Its times would be those of the whole batch, the last ones of a table."""
    with pytest.raises(ValueError, match="no samples"):
        Chain(network([("split", 1, 0, 1), ("fused", 1, 1, 0)]), (2, 0))


def test_updates_run_beside_what_comes_next():
    """One share. Conv of FP 4 and WU 4, BN of 1 and 1, conv of FP 4, BP 4, WU 8; two FPGAs, transfers nearly free.

    FP 4 + 1 + 4 and BP 4 + 1 follow each other: 14. The WU of the last conv takes 8 from when its FP ended, at 9, so
    till 17; that of the first follows the BN's BP, at 14, and ends at 18 on the other FPGA. Nothing can be earlier.
    """
    data = network(
        [("split", 4 * WORK, 0, 4 * WORK), ("fused", WORK, WORK, 0), ("split", 4 * WORK, 4 * WORK, 8 * WORK)],
        2,
        1,
        FREE,
    )
    assert best(data, (1,), 18 * WORK) == 18 * WORK
    assert best(data, (1,), 19 * WORK) <= 18 * WORK + 10
    assert 18 * WORK <= proven(data) <= 18 * WORK + 10


def placed(data, fp, bp, wu):
    """What the label of a chain proves in the end of two shares of a sample; places by layer and share."""
    chain = Chain(data, (1, 1))
    label, state = chain.start(), chain.origin
    for k, step in enumerate(chain.steps):
        layer, ways = step.args[1], chain.moves(k, state)
        if step.func is Chain.update:
            move = ways[wu[layer][step.keywords["b"]]]
        else:
            part, places = (0, fp) if step.func is Chain.spread_alone else (1, bp)
            move = next(way for way in ways if way[0][part] == places[layer])
        label, state = moved(chain, label, move), move[0]
    return makespan(chain, label)


def without_transfers(data):
    for layer in data["layers"]:
        layer |= dict.fromkeys(("network_input_bytes", "output_bytes", "weight_bytes"), 0)
        layer["inputs"] = [{**edge, "bytes": 0} for edge in layer["inputs"]]
    return data


def test_an_early_operation_does_not_fill_the_time_till_the_next_one():
    """Three layers, nothing fused: FP 1, 4, 3; BP of the last two 6, 5; WU 2, 3, 2. Two shares on A and B.

    A has FP of the first layer of one share, and of the second layer; B has all others. It begins with FP of the
    other share, but nothing else can start there before 1 + 4 = 5. Then two FP of 3, BP of 11 and WU of 7 are left, 42
    in all: 47 is the end, which is that of a schedule that takes one share after the other.
    """
    data = without_transfers(
        network(
            [
                ("split", WORK, 0, 2 * WORK),
                ("split", 4 * WORK, 6 * WORK, 3 * WORK),
                ("split", 3 * WORK, 5 * WORK, 2 * WORK),
            ]
        )
    )
    on_b = (1, 1)
    assert placed(data, [(0, 1), (0, 0), on_b], [(), on_b, on_b], [on_b] * 3) == 47 * WORK


def test_work_after_the_fp_of_one_share_waits_for_that_though_another_one_has_ended():
    """Two layers, nothing fused. On B: FP 1, BP 5, WU 2 and 3; on A: FP 10. FP of one share is on A, all else on B.

    The share on B has done all there at 1 + 1 + 5 + 2 + 3 = 12. The FP of the other one end at 20; then come BP and WU
    of it, 10 in all, till 30.
    """
    data = without_transfers(network([("split", WORK, 0, 2 * WORK), ("split", WORK, 5 * WORK, 3 * WORK)]))
    for layer in data["layers"]:
        layer["fp"][0] = [10 * k * WORK for k in (1, 2)]
    on_b = (1, 1)
    assert placed(data, [(0, 1), (0, 1)], [(), on_b], [on_b] * 2) == 30 * WORK


def test_halves_of_a_network_on_two_accelerators_are_not_mixed():
    """What weights cannot see: one share, all of FP and BP on the critical path, no transfer worth its time.

    With transfers of 10 units all lies on one FPGA: FP 4, BN 1 + 1, FP 4, BP 4, WU 4 + 4, one after the other, 22.
    The best weights, half here and half there, give 14 and half of the two WU that overlap.
    """
    layers = [("split", 4 * WORK, 0, 4 * WORK), ("fused", WORK, WORK, 0), ("split", 4 * WORK, 4 * WORK, 4 * WORK)]
    data = network(layers, 2, 1, 10**5)
    diagram = Diagram(Chain(data, (1,)))
    root = diagram.weights(22 * WORK, 50)
    assert root.value < 21 * WORK * UNIT
    tree = Tree(root, 22 * WORK, Certificate(labels=0))
    while tree.bound < 22 * WORK and tree.climb(diagram, 22 * WORK, Budget(20.0).start()):
        pass
    assert tree.bound > 21.99 * WORK  # weights are whole numbers of 4096ths
    assert outlived(Chain(data, (1,)), tree.bound, tree.proof(diagram.last)) is None
    assert outlived(Chain(data, (1,)), 22 * WORK + 1, tree.proof(diagram.last)) is not None
    assert solved(data, (1,), 22 * WORK)
    alone = Stage(boxes=False, destructive=False, complete=0)
    found = stage_mip.run(Instance.model_validate_json(json.dumps(data)), Budget(100.0).start(), params=alone)
    assert (found.status, found.bound) == (Status.OPTIMAL, 22 * WORK)
    assert found.notes["rung"] == "chain"


def test_a_shortcut_moves_its_tensor_twice():
    """A residual block of one share on two FPGAs, whose ends only fit one each; any transfer takes 10 units.

    FP 4 (conv), 1 (BN), 4 (conv), 1 (BN), and back 1, 4, 1 and a WU of 4 follow each other: 20. Between the two BN
    lies one transfer along the block, in either direction, whichever FPGA the conv is on, and one along the shortcut:
    40 more. The other WU has its FPGA for itself while the outer BN gathers. Without the shortcut there are 40.
    """
    layers = [("split", 4, 0, 4), ("fused", 1, 1, 0), ("split", 4, 4, 4), ("fused", 1, 1, 0)]
    data = network([(kind, *(WORK * t for t in ticks)) for kind, *ticks in layers], 2, 1, 10**5)
    data["layers"][3]["inputs"].append({"source": 1, "bytes": 1000})
    for layer, fits in ((0, 0), (1, 0), (3, 1)):
        for phase in ("fp", "bp", "wu"):
            rows = data["layers"][layer][phase]
            data["layers"][layer][phase] = [[t * (1 if a == fits else 50) for t in row] for a, row in enumerate(rows)]
    assert solved(data, (1,), 60 * WORK)
    diagram = Diagram(Chain(data, (1,)))
    assert diagram.search(60 * WORK, diagram.weights(60 * WORK, 50).weighing, 10**5, Budget(20.0).start()) == 40 * WORK


def planned(data, ratio, beam=50):
    """The plan that weights and a beam lead to."""
    diagram = Diagram(Chain(data, ratio))
    root = diagram.weights(10**8, 30)
    instance = Instance.model_validate_json(json.dumps(data))
    padded = (*ratio, *[0] * (len(instance.accelerators) - len(ratio)))
    one, budget = lower(instance, padded), Budget(100.0).start()
    return instance, root, chain_plans(diagram, root, 10**8, one, Stage(beam=beam), budget)[0]


def test_a_beam_along_the_chain_has_the_best_plan_of_both():
    """The two networks above, whose optima are 18 and 22 units, and some ticks for transfers."""
    first = [("split", 4 * WORK, 0, 4 * WORK), ("fused", WORK, WORK, 0), ("split", 4 * WORK, 4 * WORK, 8 * WORK)]
    second = [*first[:2], ("split", 4 * WORK, 4 * WORK, 4 * WORK)]
    assert 18 * WORK <= planned(network(first, 2, 1, FREE), (1,))[2].makespan <= 18 * WORK + 10
    assert planned(network(second, 2, 1, 10**5), (1,))[2].makespan == 22 * WORK


def test_a_state_keeps_labels_that_differ():
    """By hand, of ``(state, D, E, E)``: the first is no later than the second, as what is left on one is made good."""
    rows = np.array([[0, 10, 6, 0], [0, 11, 5, 1], [0, 10, 5, 1], [0, 10, 0, 6], [0, 30, 0, 0], [1, 99, 9, 9]])
    for width, close, inner, expected in (
        (9, 0, False, [1, 0, 1, 1, 0, 1]),
        (9, 1, False, [1, 0, 0, 1, 0, 1]),
        (9, 6, False, [1, 0, 0, 0, 0, 1]),
        (1, 0, False, [1, 0, 0, 0, 0, 1]),
        (9, 0, True, [1, 1, 1, 1, 1, 1]),
        (9, 1, True, [1, 0, 0, 1, 1, 1]),
    ):
        kept = np.zeros(len(rows), np.bool_)
        thin(rows, width, close, inner, kept)
        assert kept.tolist() == [bool(k) for k in expected], (width, close, inner)


@pytest.mark.parametrize("blocks", [2, 3, 4, 6, 8])
def test_few_labels_of_a_state_balance_two_accelerators(blocks):
    """Most of the work is that of WU, which wait for nothing else. Weights of the bound, which mix two paths, see no
    harm in all of it on one accelerator: where labels are ranked by them alone it ends 4 to 38 % later."""
    one = [("split", WORK, WORK, 8 * WORK), ("fused", WORK, WORK, 0)]
    data = network([("split", WORK, 0, 8 * WORK), one[1], *blocks * one, one[0]], 2, 1, 10**9)
    _, root, plan = planned(data, (1,), 3)
    assert root.value / UNIT <= plan.makespan <= 1.07 * root.value / UNIT


def chains_of(data, kind=CHAIN):
    """The chains of all ratios that have one."""
    for ratio in partitions(data["batch"], len(data["accelerators"])):
        shares = tuple(share for share in ratio if share)
        try:
            yield Chain(data, shares, kind)
        except ValueError:
            continue


@pytest.mark.in_turn
@pytest.mark.parametrize("seed", seeds(12, 300))
def test_arrays_have_the_moves_of_the_writer(seed):
    """State by state and move by move: of random networks, half of them on equal accelerators, and a residual block."""
    layers = [("split", 3, 4, 5), ("fused", 6, 7, 0), ("split", 8, 9, 10), ("fused", 11, 12, 0), ("split", 13, 14, 15)]
    block = network([*layers, layers[3], layers[2]], 2, 7, 10**7 + seed)
    block["layers"][5]["inputs"].append({"source": 1, "bytes": 3000 + seed})
    drawn_one = drawn(seed, layers=(2, 9), batch=(1, 5), accelerators=(1, 3)).to_json()
    drawn_one = with_equal_accelerators(drawn_one, random.Random(seed)) if seed % 2 else drawn_one
    for kind in (CHAIN, SHORTCUTS):
        blocks = [Chain(block, ratio, kind) for ratio in [(6, 1), (7,), (3, 3), (2, 2, 1)]]
        for chain in (*chains_of(drawn_one, kind), *blocks, Chain(block, (2, 2, 1), kind, (4, 4, 2))):
            same_moves(chain)


@pytest.mark.in_turn
@pytest.mark.parametrize("seed", seeds(6, 300))
def test_arrays_count_shares_as_the_writer_does(seed):
    """Two to four accelerators, equal ones or none; alike shares and others."""
    rng = random.Random(seed)
    data = drawn(seed, layers=(2, 9), batch=(2, 5), accelerators=(2, 4)).to_json()
    data = with_equal_accelerators(data, rng) if seed % 2 else data
    for chain in (chain for kind in (COUNTED, HEADED) for chain in chains_of(data, kind)):
        if len(chain.spreads) ** 2 < 500:
            same_moves(chain)


def same_moves(chain):
    """Of states that can be reached; remembered places of others have moves, too."""
    diagram, here, arrays = Diagram(chain), [chain.origin], Arrays(chain)
    pairs, fronts = list(product(chain.places, repeat=2)), {k: [*map(tuple, v)] for k, v in arrays.fronts.items()}
    known = {NOTHING: [None], PLACE: list(chain.places), SPREAD: chain.spreads, PLACES: pairs, **fronts}
    assert {*fronts[RISING]} <= {*fronts[FRONT]} <= {*chain.spreads}
    sorts, kept = START, NOTHING
    for k in range(diagram.last):
        step = arrays.made(k, sorts, kept, np.ones(len(here), np.bool_))
        sorts, kept = arrays.after(step)
        after = list(product(*(known[sort] for sort in step.sorts)))
        reached = {*chain.states()[k]}
        moves = [move for state in here if state in reached for move in chain.moves(k, state)]
        every = np.arange(len(moves))
        assert [after[i] for i in diagram.to(k, every)] == [move[0] for move in moves]
        assert diagram.first_move[k + 1] - diagram.first_move[k] == len(moves)
        if chain.inner(k) and k != chain.fold:  # inside, what moves add has weights
            assert diagram.added(k, every).tolist() == [list(move[1]) for move in moves]
        costs = [list(chain.cost(k, move[1])) if k != chain.fold else [] for move in moves]
        found = diagram.cost(k, every).tolist()
        assert found == [cost + [0] * (len(row) - len(cost)) for row, cost in zip(found, costs, strict=True)]
        begun = np.argwhere(np.zeros((1, 1, 1)) if diagram.pairs[k] is None else diagram.pairs[k]).tolist()
        assert begun == sorted([j, b, a] for j, move in enumerate(moves) for b, a in move[2])
        counts = [len(chain.moves(k, state)) if state in reached else 0 for state in here]
        assert np.diff(diagram.starts[k]).tolist() == counts
        numbers = [chain.numbers[chain.twin(k), state] for state in here if state in reached]
        assert diagram.numbers[k].tolist() == [j for those in numbers for j in those]
        here = after


@pytest.mark.parametrize("seed", seeds(3, 200))
def test_a_beam_makes_a_plan_of_any_network(seed):
    """The evaluator agrees with its makespan, and it is not below what weights prove."""
    data = drawn(seed, layers=(2, 9), batch=(1, 5), accelerators=(1, 3)).to_json()
    for shares in [chain.ratio for chain in chains_of(data)]:
        instance, root, mapped = planned(data, shares)
        found = evaluate(instance, mapped.plan)
        assert found.objective == mapped.makespan or any(v.rule == "DRAM" for v in found.violations)
        assert mapped.makespan * UNIT >= root.value


def test_an_accelerator_waits_between_fp_and_what_follows():
    """Nothing is fused. Two shares; the first layer only fits one FPGA, the second one only the two others.

    FP 10 and WU 50 of the first layer, FP 30, BP 30 and no WU of the second, in units of WORK; transfers take a tick.
    The first FPGA has 120 to do, and a share alone takes 10 + 30 + 30 + 50. But no WU of it begins before 70, and two
    of them follow each other: 170, which a plan has that gives each share an FPGA of its own for the second layer.
    """
    data = network([("split", 10, 0, 50), ("split", 30, 30, 0)], 3, 2, FREE)
    for layer, own in zip(data["layers"], ([0], [1, 2]), strict=True):
        for phase in ("fp", "bp", "wu"):
            layer[phase] = [[(t if a in own else 1000) * WORK for t in row] for a, row in enumerate(layer[phase])]
    assert best(data, (1, 1), 170 * WORK) == 170 * WORK
    assert best(data, (1, 1), 171 * WORK) <= 170 * WORK + 20


def any_proof(chain, rng, coarse):
    """Weights that keep the rules, and a grid that keeps labels few, at random."""
    last, n, k = len(chain.steps), len(chain.places), len(chain.shares)
    found = []
    for first in sorted({0, *rng.choices(range(last), k=rng.randint(0, 3))}):
        cuts = sorted(rng.randint(0, UNIT) for _ in range(chain.weighed))
        parts = [y - x for x, y in zip([0, *cuts], cuts, strict=False)]
        runs = [[first, *parts]] if chain.inner(first) else []
        if chain.fold is not None:
            work, room = parts[k:], UNIT - sum(parts[k:])
            more = [rng.randint(0, room // n) for _ in work]
            runs.append([max(first, chain.fold + 1), UNIT, *work])
            later = rng.randint(runs[-1][0], last)
            if later > runs[-1][0]:
                runs.append([later, UNIT, *(x + y for x, y in zip(work, more, strict=True))])
        found.append([first, runs])
    return {"weights": found, "grid": [max(1, rng.randint(coarse // 2, coarse)) for _ in range(last)]}


@pytest.mark.in_turn
@pytest.mark.parametrize("seed", seeds(12, 300))
def test_no_proof_is_above_a_plan(seed):
    """Whatever the weights and the grid: a bound above the makespan of a plan of the ratio is refused."""
    rng = random.Random(seed)
    data = drawn(seed, layers=(2, 7), batch=(1, 4), accelerators=(1, 3)).to_json()
    data["medium"] = rng.choice(["links", "links", "ports", "shared"])
    for ratio in rng.sample(found := list(partitions(data["batch"], len(data["accelerators"]))), min(2, len(found))):
        shares = tuple(share for share in ratio if share)
        try:
            chain = Chain(data, shares, SHORTCUTS if seed % 2 else CHAIN)
        except ValueError:
            continue
        least = min(makespans(data, shares, rng, 40))
        diagram = Diagram(chain)
        found = diagram.weights(max(1, least), 20)
        assert found.value <= least * UNIT
        assert diagram.search(least + 1, found.weighing, 10**6, Budget(20.0).start()) <= least
        tree = Tree(found, least + 1, Certificate(moves=10_000))
        while tree.bound <= least and tree.climb(diagram, least + 1, Budget(20.0).start()):
            pass
        assert tree.bound <= least
        if max(map(len, chain.states())) <= 16:  # such weights drop few labels
            for _ in range(3):
                assert outlived(chain, least + 1, any_proof(chain, rng, least // 20)) is not None


@pytest.mark.in_turn
@pytest.mark.parametrize("seed", seeds(10, 200))
@pytest.mark.parametrize("labels", [300, 10**5])
def test_a_tree_ends_with_the_optimum_of_the_chain(seed, labels):
    """That of all labels, none of which is dropped; with few of them for each leaf, so that some are divided."""
    rng = random.Random(seed)
    layers = [("split", *rng.choices(range(1, 10**5), k=3)), ("fused", 10, 10, 0)] * 2 + [("split", 7, 9**5, 9**5)]
    layers = layers if seed % 3 else [("split", *rng.choices(range(1, 10**5), k=3)) for _ in range(2)]
    data = network(layers, 2, 2, rng.choice([10**5, 10**8, FREE]))
    ratio = rng.choice([(2,), (1, 1)])
    diagram = Diagram(Chain(data, ratio))
    above = 10**7
    root = diagram.weights(above, 20)
    optimum = diagram.search(above, root.weighing, 10**7, Budget(20.0).start())
    assert 0 < optimum < above
    tree = Tree(root, above, Certificate(labels=labels))
    while tree.climb(diagram, above, Budget(20.0).start()):
        assert tree.bound <= optimum
    assert tree.bound == optimum if tree.leaves[0][2].closed else tree.bound <= optimum
    assert tree.leaves[0][2].closed or labels == 300
    assert outlived(Chain(data, ratio), tree.bound, tree.proof(diagram.last)) is None


@pytest.mark.parametrize("seed", seeds(8, 200))
def test_choices_lose_no_schedule(seed):
    """Of all places of fused operations and of one WU, some that equal accelerators are exchanged in have a leaf."""
    rng = random.Random(seed)
    split, fused = ("split", 1, 1, 1), ("fused", 1, 1, 0)
    data, n = network([split, fused, split, *rng.choice([[], [fused]]), fused, split], 4, 1), 4
    kinds = rng.choice([(0, 0, 0, 0), (0, 0, 0, 1), (0, 0, 1, 1)])
    data["layers"][0]["fp"] = [[1 + kind] for kind in kinds]
    chain = Chain(data, (1,))
    update = next(k for k, step in enumerate(chain.steps) if step.func is Chain.update)
    ways = {k: list(product(range(n), repeat=len(chain.fused(k, 0) or ()))) for k in range(len(chain.steps))}
    ways = {k: those for k, those in ways.items() if len(those) > 1} | {update: [(a,) for a in range(n)]}
    exchanges = [g for g in permutations(range(n)) if [kinds[a] for a in g] == [*kinds]]

    def leaves(here, depth):
        k = rng.choice([*ways])
        number = rng.randrange(len(ways[k]))
        for yes in (True, False):
            half = here.narrowed(k, number, yes)
            yield from leaves(half, depth - 1) if depth else [half.chosen]

    found = list(leaves(chain, rng.randint(2, 4)))
    for _ in range(500):
        every = [rng.choice(those) for those in ways.values()]
        places = [dict(zip(ways, (tuple(g[a] for a in where) for where in every), strict=True)) for g in exchanges]
        assert any(
            all((ways[k].index(own[k]) == j) == yes for k, those in leaf.items() for j, yes in those)
            for own in places
            if own[chain.first_fused][0] in chain.firsts
            for leaf in found
        )


def test_which_moves_are_equal_to_one_that_is_left_out():
    """Four accelerators, of which the last one is unlike; the first fused FP tells the first one apart.

    The second and the third can be exchanged until a schedule has to have a place on one of them, or any other choice
    is made.
    """
    split, fused = ("split", 1, 1, 1), ("fused", 1, 1, 0)
    data = network([split, fused, split, fused, fused, split], 4)
    for layer in data["layers"]:
        layer["fp"][3] = [5 * t for t in layer["fp"][3]]
    chain = Chain(data, (2,))
    meet = next(k for k, step in enumerate(chain.steps) if step.func is Chain.meet)
    join = next(k for k, step in enumerate(chain.steps) if step.func is Chain.join)
    update = next(k for k, step in enumerate(chain.steps) if step.func is Chain.update)

    def barred(*choices):
        found = chain
        for choice in choices:
            found = found.narrowed(*choice)
        return sorted(number for number, yes in found.chosen[choices[-1][0]] if not yes)

    without = [barred((join, a, False)) for a in range(4)]
    assert without == [[0], [1, 2], [1, 2], [3]]
    assert barred((join, 0, False), (join, 2, False)) == [0, 1, 2]
    assert barred((join, 1, True), (join, 2, False)) == [2]
    assert barred((update, 3, False), (join, 2, False)) == [2]
    assert barred((update, 3, True), (join, 2, False)) == [2]
    # Of FP and BP the places on one accelerator, on two, and on another one and one of these.
    assert [barred((meet, number, False)) for number in (5, 9, 2)] == [[5, 10], [6, 9], [1, 2]]
    for kind in (COUNTED, HEADED):
        assert Chain(data, (2,), kind).narrowed(join, 2, False).chosen[join] == ((2, False),)


def test_the_first_of_equal_accelerators_has_a_name_of_its_own():
    """Transfers take longer than all else, so one of two does everything: 3 FP, 2 BP and 3 WU one after the other.

    Where names follow from what accelerators have, equal weights put half of each WU on the one, half on the other.
    """
    work, update = 10**4, 9 * 10**4
    layers = [("split", work, 0, update), *[("fused", 0, 0, 0), ("split", work, work, update)] * 2]
    data, least = network(layers, 2, 1, 10**5), 5 * work + 3 * update
    values = {}
    for kind in (COUNTED, HEADED):
        diagram = Diagram(Chain(data, (1,), kind))
        found = diagram.weights(least, 60)
        values[kind] = found.value // UNIT
        assert outlived(diagram.chain, values[kind], weighed_proof(found.weighing.runs, diagram.last)) is None
    assert values[COUNTED] < 0.6 * least
    assert 0.98 * least < values[HEADED] <= least


def test_a_tree_without_time_is_not_over():
    """What labels or choices had no time for is asked again; then the tree ends with the optimum."""
    layers = [("split", 4 * WORK, 0, 4 * WORK), ("fused", WORK, WORK, 0), ("split", 4 * WORK, 4 * WORK, 4 * WORK)]
    data = network(layers, 2, 1, 10**5)
    diagram = Diagram(Chain(data, (1,)))
    tree = Tree(diagram.weights(30 * WORK, 50), 30 * WORK, Certificate())
    before = tree.bound
    late = Budget(0.0).start()
    assert tree.climb(diagram, 30 * WORK, late)
    assert (tree.over, tree.bound, len(tree.leaves)) == (False, before, 1)
    while tree.climb(diagram, 30 * WORK, Budget(20.0).start()):
        pass
    assert tree.over
    assert tree.bound == 22 * WORK  # by hand: all on one accelerator


@pytest.mark.parametrize("kind", [CHAIN, HEADED])
@pytest.mark.parametrize("seed", seeds(3, 60))
def test_a_tree_goes_on_where_its_proof_ended(seed, kind):
    """Its leaves are those of the proof, whatever labels proved; it proves no less, and all of that is proven.

    Also where too few paths are looked at for weights as good as those of the proof.
    """
    rng = random.Random(seed)
    layers = [("split", *rng.choices(range(1, 10**5), k=3)), ("fused", 10, 10, 0)] * 3 + [("split", 7, 9**5, 9**5)]
    data, ratio = network(layers, 2, 2, rng.choice([10**6, 10**8])), (1, 1)
    least = min(makespans(data, ratio, rng, 60))
    diagram = Diagram(Chain(data, ratio, kind))
    params = Certificate(labels=rng.choice([0, 100, 10_000]))
    tree = Tree(diagram.weights(least, 20), least, params)
    for _ in range(rng.randint(2, 12)):
        tree.climb(diagram, least, Budget(20.0).start())
    proof = json.loads(json.dumps(tree.proof(diagram.last)))
    root = diagram.weights(least, rng.choice([1, 20]))
    other = Tree(root, least, replace(params, rounds=rng.choice([1, 12])))
    other.regrow(diagram, root, proof, tree.bound)
    assert len(other.leaves) == len(tree.leaves)
    assert all(diagram.split(diagram.point(leaf.runs)) == leaf.runs for *_, leaf in other.leaves)
    assert tree.bound <= other.bound <= least
    for _ in range(12):
        assert outlived(diagram.chain, other.bound, other.proof(diagram.last)) is None
        if other.bound >= least or not other.climb(diagram, least, Budget(20.0).start()):
            break


@pytest.mark.parametrize("seed", seeds(3, 60))
def test_a_tree_of_a_certificate_loses_nothing_to_a_new_one(seed):
    """Whichever of both goes on, the bound only rises, is accepted, and is that of no plan less."""
    rng = random.Random(seed)
    layers = [("split", *rng.choices(range(1, 10**5), k=3)), ("fused", 10, 10, 0)] * 3 + [("split", 7, 9**5, 9**5)]
    data, ratio = network(layers, 2, 2, rng.choice([10**6, 10**8])), (1, 1)
    least = min(makespans(data, ratio, rng, 60))
    ascents = [Ascent(data, ratio, least, Certificate(labels=0, outermost=n)) for n in (0, 2)]
    for _ in range(rng.randint(2, 8)):
        ascents[0].climb(Budget(20.0).start())
    older, newer = ascents
    newer.bound, newer.kind, newer.proof = older.bound, older.kind, json.loads(json.dumps(older.proof))
    for _ in range(12):
        before = newer.bound
        newer.climb(Budget(20.0).start())
        assert before <= newer.bound <= least
        assert outlived(Chain(data, ratio, newer.kind), newer.bound, newer.proof) is None


@pytest.mark.parametrize("kind", [CHAIN, SHORTCUTS, HEADED])
@pytest.mark.parametrize("seed", seeds(2, 40))
def test_a_tree_begins_with_the_divisions_of_another_ratio(seed, kind):
    """Of the same ratio it is the same tree, up to a division that gains nothing; of another one no plan is below."""
    rng = random.Random(seed)
    layers = [("split", *rng.choices(range(1, 10**5), k=3)), ("fused", 10, 10, 0)] * 3 + [("split", 7, 9**5, 9**5)]
    data = network(layers, rng.choice([2, 3]), 7, rng.choice([10**6, 10**8]))
    here, there = rng.sample([(6, 1), (5, 2), (4, 3)], 2)
    least, params = min(makespans(data, there, rng, 60)), Certificate(labels=0)
    diagram = Diagram(Chain(data, here, kind))
    root = diagram.weights(2 * least, 20)
    first = Tree(root, 2 * least, params)
    for _ in range(12):
        first.climb(diagram, 2 * least, Budget(20.0).start())
    again = Tree(root, 2 * least, params, first.divisions)
    while again.follow(diagram):
        pass
    if again.bound < first.bound:
        weakest = again.leaves[0][2]
        for half in first.divisions[weakest.choices]:
            diagram.narrow(half.choices)
            if diagram.weighing(half.runs).rest[0] < weakest.value + chain_diagram.CLOSE * 2 * least * UNIT:
                break
        else:
            pytest.fail("both halves prove more")
        diagram.narrow(())
    diagram = Diagram(Chain(data, there, kind))
    other = Tree(diagram.weights(least, 20), least, params, first.divisions)
    while other.bound < least and other.follow(diagram):
        pass
    assert other.bound <= least
    assert outlived(diagram.chain, other.bound, other.proof(diagram.last)) is None


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("most", [0, 340_000])
@pytest.mark.parametrize("seed", seeds(2, 40))
def test_where_shares_are_counted_a_tree_tells_some_apart_if_moves_are_few(seed, most, named):
    """Shares as well only if they are to have names."""
    rng = random.Random(seed)
    layers = [("split", *rng.choices(range(1, 10**4), k=3)), ("fused", 10, 10, 0)] * 2 + [("split", 7, 8**4, 9**4)]
    data, ratio = network(layers, 4, 3, rng.choice([10**6, 10**8])), (1, 1, 1)
    least = min(makespans(data, ratio, rng, 60))
    ascent = Ascent(data, ratio, least, Certificate(widest_alone=most, remembered=0, moves=200_000), named=named)
    assert ascent.climb(Budget(100.0).start())
    assert ascent.kind == COUNTED
    for _ in range(20):
        ascent.climb(Budget(100.0).start())
    grown = most > 0 and ascent.root.value < least * UNIT
    assert (ascent.tree is not None) == (ascent.weighed == (CHAIN if named else HEADED)) == grown
    assert ascent.bound <= least
    assert outlived(Chain(data, ratio, ascent.kind), ascent.bound, ascent.proof) is None


@pytest.mark.in_turn
@pytest.mark.parametrize("seed", seeds(4, 60))
def test_a_damaged_proof_proves_nothing_more(seed):
    """The best bound is proven; one more is not, by no change of the proof."""
    rng = random.Random(seed)
    layers = [("split", *rng.choices(range(1, 10**5), k=3)), ("fused", 10, 10, 0)] * 2 + [("split", 7, 9**5, 9**5)]
    data = network(layers, 2, 2, rng.choice([10**5, 10**8, FREE]))
    ratio = rng.choice([(2,), (1, 1)])
    chain = Chain(data, ratio)
    least = min(makespans(data, ratio, rng, 60))
    ascent = Ascent(data, ratio, least, Certificate(moves=20_000))
    while ascent.climb(Budget(100.0).start()):
        pass
    assert outlived(chain, ascent.bound, ascent.proof) is None
    diagram = Diagram(chain)
    tree = Tree(diagram.weights(least, 20), least, Certificate(moves=10_000))
    while tree.bound < least and tree.climb(diagram, least, Budget(20.0).start()):
        pass
    assert outlived(chain, tree.bound, tree.proof(diagram.last)) is None
    for proof in [ascent.proof, tree.proof(diagram.last)] * 10:
        try:
            assert outlived(chain, least + 1, damaged(rng, proof)) is not None
        except (ValueError, KeyError, TypeError, IndexError):
            continue  # the checker calls it malformed


@pytest.mark.parametrize("fault", ["falls", "sum", "negative", "fraction", "late", "first", "tail"])
def test_weights_that_break_a_rule_are_refused(fault):
    data = network([("split", 3, 0, 3), ("fused", 1, 1, 0), ("split", 5, 5, 5), ("fused", 1, 1, 0), ("split", 5, 5, 5)])
    chain = Chain(data, (1, 1))
    fold, last, half = chain.fold, len(chain.steps), UNIT // 2
    good = [[0, 0, 0, half, half], [fold + 1, UNIT, half, half]]
    assert outlived(chain, 1, {"weights": [[0, good]], "grid": [1] * last}) is None
    bad = {
        "falls": [*good, [last, UNIT, half, half - 1]],
        "sum": [*good, [last, UNIT, half, half + 1]],
        "negative": [[0, 0, 0, half, half], [fold + 1, UNIT, half, -1]],
        "fraction": [[0, 0, 0, half, float(half)], [fold + 1, UNIT, half, half]],
        "late": [[1, 0, 0, half, half], [fold + 1, UNIT, half, half]],
        "first": [[0, 0, 0, half, half], [fold + 1, UNIT + 1, half, half]],
        "tail": [[0, 1, 0, half, half], [fold + 1, UNIT, half, half]],
    }[fault]
    with pytest.raises(ValueError, match="weight"):
        outlived(chain, 1, {"weights": [[0, bad]], "grid": [1] * last})


def test_a_tree_has_a_leaf_for_either_half():
    """Places of the last FP and of its WU on two FPGAs; leaves that are missing, or one too many, prove nothing."""
    data = network([("split", 3, 0, 3), ("fused", 1, 1, 0), ("split", 5, 5, 5)])
    chain = Chain(data, (2,))
    leaf = {"weights": [], "grid": [1] * len(chain.steps)}
    whole = next(bound for bound in range(1000) if outlived(chain, bound + 1, leaf) is not None)
    assert whole > 0
    tree = [[0, 1], leaf, [1, 0], leaf, leaf]
    assert outlived(chain, whole, tree) is None
    assert outlived(chain, whole + 1, tree) is not None
    for wrong in (tree[:-1], [*tree, leaf], [[0, 1], leaf], [], [[0, 1.0], leaf, leaf], [[0, True], leaf, leaf]):
        assert outlived(chain, whole, wrong) is not None


@pytest.mark.parametrize("seed", seeds(4, 60))
def test_a_proof_may_not_leave_too_many_labels(seed, monkeypatch):
    """The least limit under which a proof holds is the same for the page and for compiled loops."""
    rng = random.Random(seed)
    tail = ("split", rng.randint(1, 99), rng.randint(1, 99), rng.randint(1, 99))
    chain = Chain(network([tail, ("fused", rng.randint(1, 99), rng.randint(1, 99), 0), tail], 2, 3), (2, 1))
    leaf = {"weights": [], "grid": [rng.randint(1, 20) for _ in chain.steps]}

    def holds(limit, follow):
        monkeypatch.setattr(chain_labels, "MOST", limit)
        reason = follow(chain, 1, leaf)
        assert reason in (None, chain_labels.MANY)
        return reason is None

    page, compiled = (
        bisect_left(range(5000), True, key=partial(holds, follow=each)) for each in (outlived, chain_check.outlived)
    )
    assert 0 < page == compiled < 5000

    above, diagram = 10**6, Diagram(chain)  # than any schedule: labels are left in the end
    weighing = diagram.weights(above, 5).weighing
    proof = {"weights": [[0, weighing.runs]], "grid": [1] * len(chain.steps)}
    searched = []
    for limit in (*range(0, 2 * page, 1 + page // 3), 10**6):  # whoever looks for a proof keeps to it
        monkeypatch.setattr(chain_labels, "MOST", limit)
        searched.append(diagram.search(above, weighing, 10**6, Budget(20.0).start()))
        assert (searched[-1] == 0) == (outlived(chain, above, proof) == chain_labels.MANY)
    assert searched[0] == 0 < searched[-1]


@pytest.mark.parametrize("seed", seeds(6, 200))
def test_rows_that_differ_are_numbered_as_they_come(seed):
    rng = random.Random(seed)
    most, width = rng.choice([1, 20, 2**40]), rng.randint(1, 4)
    rows = [tuple(rng.randint(-most, most) for _ in range(width)) for _ in range(rng.randint(1, 400))]
    rows += rng.choices(rows, k=rng.randint(0, 100))
    which = np.empty(len(rows), np.int32)
    found = different(np.array(rows), which)
    assert [*map(tuple, found.tolist())] == [*dict.fromkeys(rows)]
    assert [*map(tuple, found[which].tolist())] == rows


@pytest.mark.parametrize("seed", seeds(10, 200))
def test_labels_that_are_left_are_those_that_no_other_one_dominates(seed):
    """By comparing all pairs; of 3 to 8 numbers, with ties and twins."""
    rng = random.Random(seed)
    numbers, most = rng.randint(3, 8), rng.choice([2, 5, 10**6])
    labels = [tuple(rng.randint(0, most) for _ in range(numbers)) for _ in range(rng.randint(1, 60))]
    labels += rng.sample(labels, 1)
    best = {x for x in labels if not any(y != x and all(a <= b for a, b in zip(y, x, strict=True)) for y in labels)}
    assert undominated(labels) == sorted(best)


@pytest.mark.parametrize("seed", seeds(6, 200))
def test_compiled_loops_leave_the_same_labels_of_every_state(seed):
    """By comparing all pairs; of 1 to 3 states and 2 to 6 numbers, up to the start of nothing; of a few and of many."""
    rng = random.Random(seed)
    numbers, most, count = rng.randint(2, 6), rng.choice([2, 20, 10**7, NEVER]), rng.choice([1, 5, 25, 400])
    labels = [(rng.randrange(3), *(rng.randint(0, most) for _ in range(numbers))) for _ in range(count)]
    labels += rng.choices(labels, k=rng.randint(0, count // 4))
    best = {
        x
        for x in labels
        if not any(y != x and y[0] == x[0] and all(a <= b for a, b in zip(y, x, strict=True)) for y in labels)
    }
    found = chain_diagram.undominated(np.array(labels))
    assert sorted(map(tuple, found.tolist())) == sorted(best)


def test_labels_are_gathered_by_state_the_best_first():
    states, values = np.array([2, 0, 2, 0, 3, 2]), np.array([5, 9, 1, 4, 7, 3])
    order = np.empty(6, np.int64)
    gather(states[:, None].copy(), np.argsort(values), np.array([0, 2, 2, 5, 6]), order)
    assert order.tolist() == [3, 1, 2, 5, 0, 4]


def test_nothing_is_left_of_no_labels():
    assert undominated([]) == []


def test_equal_layers_have_their_own_shares():
    """Moves are kept for layers of the same numbers; those of other shares, or of another inner layer, are others."""
    data = network([("split", 3, 0, 3), ("fused", 1, 1, 0)] + [("split", 3, 4, 3), ("fused", 1, 1, 0)] * 3, 2, 3)
    chain, fresh = Chain(data, (2, 1)), Chain(data, (2, 1))
    assert len({chain.twin(k) for k in range(len(chain.steps))}) < len(chain.steps)
    fresh.twin = lambda k: k
    for k, states in enumerate(chain.states()[:-1]):
        assert all(chain.moves(k, state) == fresh.moves(k, state) for state in states)
