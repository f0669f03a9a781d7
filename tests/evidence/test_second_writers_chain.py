"""Chains of sub-operation mapping: the checker of the certificate and a second one come to the same verdicts."""

import copy
import importlib.util
import json
import random
from functools import partial
from itertools import product
from pathlib import Path

import chains
import pytest
from certificates import damaged, layer_of, network, with_equal_accelerators

from mapgap.contract.seeds import fresh, seeds, some
from mapgap.core import Budget, Status
from mapgap.evidence.check import Program, Refused, check
from mapgap.formulations.suboperation_mapping import chain_check
from mapgap.formulations.suboperation_mapping.chain_diagram import Diagram
from mapgap.formulations.suboperation_mapping.chain_tree import Tree
from mapgap.formulations.suboperation_mapping.cpsat import RatioModel
from mapgap.formulations.suboperation_mapping.params import Certificate as Params
from mapgap.problems.suboperation_mapping import Instance
from mapgap.problems.suboperation_mapping.certificate import cases, chain_after, chain_labels, chain_shares, partitions
from mapgap.problems.suboperation_mapping.certificate.chain import Chain
from mapgap.problems.suboperation_mapping.certificate.chain_labels import outlived
from mapgap.problems.suboperation_mapping.certificate.chain_path import Path as Steps
from mapgap.problems.suboperation_mapping.certificate.chain_shares import (
    CHAIN,
    CHAINS,
    COUNTED,
    ELSEWHERE,
    HEADED,
    SHORTCUTS,
)
from mapgap.problems.suboperation_mapping.certificate.chain_weights import UNIT, Weights
from mapgap.problems.suboperation_mapping.lowered.arrays import lower
from mapgap.solvers.model import prove

FOLDER = Path(__file__).parent / "second_writers"


def second(name):
    spec = importlib.util.spec_from_file_location(f"second_of_{name}", FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SECOND = second("suboperation_chain")


def drawn(seed, layers=(2, 7), batch=(1, 4), tails=(0, 0, 1, 2, 3)):
    """Mostly split and fused layers in turns, with a tail, skips and branches; ticks up to 3, 10^3 or 10^6; any medium.

    DRAM never binds.
    """
    rng = random.Random(f"chain {seed}")
    n, samples, scale = rng.randint(1, 3), rng.randint(*batch), rng.choice([3, 1000, 10**6])

    def ticks(count):
        tile, cost = rng.choice([1, 1, 2]), rng.choice([0, *[rng.randint(1, scale)] * 5])
        return [-(-k // tile) * cost for k in range(1, count + 1)]

    def size():
        return rng.choice([0, 1, 7, scale // 10, scale])

    found = []
    count, tail = rng.randint(*layers), rng.choice(tails)
    for i in range(count):
        alternate = "fused" if i and found[-1]["kind"] == "split" else "split"
        kind = rng.choice(["fused", "split"]) if i and rng.random() < 0.12 else alternate
        kind = "split" if i >= count - tail else kind
        nearest = rng.choice([i - 1, i - 1, i - 1, rng.randrange(i)]) if i else 0
        sources = {nearest, *(rng.randrange(i) for _ in range(rng.choice([0, 0, 1, 2])))} if i else set()
        entries = samples if kind == "split" else 1
        rows = [[ticks(entries) for _ in range(n)] for _ in range(3)]
        found.append(layer_of(i, kind, [(s, size()) for s in sorted(sources)], size(), size(), rows))

    def latency():
        return [[rng.choice([0, 1, scale // 5]) for _ in range(n)] for _ in range(n)] if rng.random() < 0.5 else None

    medium = partial(rng.choice, ["links", "links", "ports", "shared"])
    return network(f"chain_{seed}", samples, n, rng, found, medium=medium, latency_ns=latency), rng


def residual(seed):
    """Networks of :func:`drawn` whose fused layers often read an earlier one as well."""
    instance, rng = drawn(seed, (4, 7), (1, 3))
    data, scale = instance.to_json(), 10 ** rng.randint(0, 6)
    fused = [i for i, layer in enumerate(data["layers"]) if layer["kind"] == "fused"]
    for k, i in enumerate(fused):
        read = {edge["source"] for edge in data["layers"][i]["inputs"]}
        for source in {*fused[max(0, k - 2) : k]} - read if rng.random() < 0.7 else ():
            data["layers"][i]["inputs"].append({"source": source, "bytes": rng.randint(0, scale)})
    return Instance.model_validate_json(json.dumps(data)), rng


def ratio_of(instance, rng):
    return rng.choice(list(partitions(instance.batch, instance.batch, len(instance.accelerators))))


def accepts(checker, proof):
    """Whatever is raised, the certificate is refused."""
    try:
        return checker(proof) is None
    except SECOND.TooWide:
        raise
    except Exception:
        return False


def verdict(data, ratio, bound, proof, kind=CHAIN, most=(), out=(), wide=False):
    """That of both; that of the first one if the proof is damaged or too bold, and so too *wide* for the second.

    Compiled loops say the same.
    """
    one = accepts(lambda part: outlived(Chain(data, ratio, kind, most, out), bound, part), proof)
    assert accepts(lambda part: chain_check.outlived(Chain(data, ratio, kind, most, out), bound, part), proof) == one
    try:
        other = accepts(partial(SECOND.outlived, data, ratio, bound, kind=kind.strip(), most=most, absent=out), proof)
    except SECOND.TooWide:
        assert wide
        return one
    assert one == other, (ratio, bound, proof)
    return one


def optimum(data, ratio):
    """The least makespan of a ratio where links are not shared: no plan on a medium is better."""
    plain = Instance.model_validate_json(json.dumps({**data, "medium": "links"}))
    padded = (*ratio, *[0] * (len(plain.accelerators) - len(ratio)))
    found = prove(RatioModel(lower(plain, padded)), Budget(time_s=20).start())
    return found.claimed if found.status is Status.OPTIMAL else pytest.skip("no optimum")


def diagram_of(data, ratio, kind=CHAIN, most=(), out=(), small=250):
    """Where there is one, which both checkers know, and it is small."""
    try:
        found = Chain(data, ratio, kind, most, out)
    except ValueError:
        with pytest.raises(ValueError, match=r"in a row|begins with a fused"):
            SECOND.Path(data, ratio)
        pytest.skip("no chain")
    return Diagram(found) if sum(map(len, found.states())) < small else pytest.skip("too many states")


def proofs_of(diagram, best):
    """Pairs of a bound and a proof: of weights alone, and searched for with labels."""
    found = diagram.weights(max(1, best), 30)
    value, weighing = found.value, found.weighing
    yield value // UNIT, {"weights": [[0, weighing.runs]], "grid": [1 + best // 100] * diagram.last}
    # No label may be left where shares are counted.
    tree = Tree(found, max(1, best), Params(moves=10_000, **({"labels": 0} if diagram.chain.counted else {})))
    while tree.bound < best and tree.climb(diagram, best, Budget(4).start()):
        pass
    yield tree.bound, tree.proof(diagram.last)
    for bound in {best + 1, best, best * 3 // 4} if not diagram.chain.counted else ():
        if reached := diagram.search(bound, weighing, 10**5, Budget(20).start()):
            yield reached, {"weights": [[0, weighing.runs]], "grid": [1] * diagram.last}


@pytest.mark.in_turn
@pytest.mark.parametrize("seed", [*seeds(3, 150), *(pytest.param(k, marks=pytest.mark.nightly) for k in fresh(40))])
@pytest.mark.parametrize("kind", CHAINS)
def test_verdicts_of_random_networks(seed, kind):
    """True proofs are accepted; those of one more than the optimum are refused, whatever is changed in them.

    On equal accelerators with half of the seeds; where shares are counted, a choice is then one of what is left.
    """
    instance, rng = residual(seed) if kind == SHORTCUTS else drawn(seed)
    data, ratio = instance.to_json(), ratio_of(instance, rng)
    if seed % 2:
        data = with_equal_accelerators(data, rng)
    diagram = diagram_of(data, ratio, kind)
    best = optimum(data, ratio)
    for bound, proof in proofs_of(diagram, best):
        proof = json.loads(json.dumps(proof))
        assert verdict(data, ratio, bound, proof, kind)
        assert not verdict(data, ratio, best + 1, proof, kind, wide=True)
        for _ in range(3):
            other = damaged(rng, proof)
            verdict(data, ratio, bound, other, kind, wide=True)
            assert not verdict(data, ratio, best + 1, other, kind, wide=True)


@pytest.mark.parametrize("seed", seeds(6, 150))
def test_weights_of_a_later_step_are_those_of_that_step_on(seed):
    """They prove what the same ones prove from the beginning, alone and after lesser ones, and never more."""
    instance, rng = drawn(seed, (2, 5), (1, 3))
    data, ratio = instance.to_json(), ratio_of(instance, rng)
    diagram = diagram_of(data, ratio)
    best, last = optimum(data, ratio), diagram.last
    found = diagram.weights(max(1, best), 30)
    bound, runs = found.value // UNIT, found.weighing.runs
    begin = rng.randint(1, last)
    starts = [*(run[0] for run in runs), last + 1]
    late = [[max(begin, run[0]), *run[1:]] for run, end in zip(runs, starts[1:], strict=True) if end > begin]
    less = [[run[0], *(w if w == UNIT else w // 2 for w in run[1:])] for run in runs]
    for weights in ([[begin, late]], [[0, less], [begin, late]]):
        proof = {"weights": weights, "grid": [1] * last}
        assert verdict(data, ratio, bound, proof)
        assert not verdict(data, ratio, best + 1, proof)


@pytest.mark.parametrize("seed", seeds(10, 300))
def test_both_leave_out_the_same_moves_of_equal_accelerators(seed):
    """Whatever was chosen before, mostly places of fused operations, among three or four of which most are equal."""
    rng = random.Random(f"exchanges {seed}")
    split, fused = ("split", 1, 1, 1), ("fused", 1, 1, 0)
    data = chains.network([split, fused, split, *rng.choice([[], [fused]]), fused, split], n := rng.choice([3, 4]))
    for a in range(n - rng.choice([0, 0, 1, 2]), n):
        data["layers"][0]["fp"][a] = [5, 10]
    kind = rng.choice([CHAIN, CHAIN, SHORTCUTS, COUNTED, HEADED])
    ratio = rng.choice([(2,), (1, 1)])
    path, start = SECOND.Path(data, ratio, kind.strip()), Chain(data, ratio, kind)
    places = [k for k in range(len(start.steps)) if start.fused(k, 0)]
    exchanged = 0
    for _ in range(20):
        here, rules = start, ()
        for _ in range(3):
            k = rng.choice(places) if rng.random() < 0.8 else rng.randrange(len(start.steps))
            choice = k, rng.randrange(n ** len(start.fused(k, 0) or (0,))), rng.random() < 0.3
            here, rules = here.narrowed(*choice), (*rules, choice)
        other = {}
        for step, those, yes in SECOND.same_as(path, rules):
            other.setdefault(step, set()).update((j, yes) for j in those)
            exchanged += len(those) > 1
        assert {step: {*those} for step, those in here.chosen.items()} == other
    classes = [sum(first == a for first in start.firsts) for a in range(n)]
    assert (exchanged > 0) == (max(classes) > 2 and kind not in (COUNTED, HEADED))


@pytest.mark.in_turn
@pytest.mark.parametrize("seed", [*seeds(3, 100), *(pytest.param(k, marks=pytest.mark.nightly) for k in fresh(40))])
@pytest.mark.parametrize("kind", [CHAIN, COUNTED, HEADED])
def test_verdicts_where_nothing_is_fused(seed, kind):
    """No more than the optimum is proven of shares that wait for each other, whatever the weights."""
    instance, rng = drawn(seed, (2, 5), (2, 3), tails=[5])
    data = with_equal_accelerators(instance.to_json(), rng) if seed % 2 else instance.to_json()
    ratio = (instance.batch - 1, 1) if len(instance.accelerators) > 1 else (instance.batch,)
    diagram, best = diagram_of(data, ratio, kind, small=400), optimum(data, ratio)
    for bound, proof in proofs_of(diagram, best):
        assert verdict(data, ratio, bound, json.loads(json.dumps(proof)), kind)
        assert not verdict(data, ratio, best + 1, proof, kind, wide=True)
        other = damaged(rng, json.loads(json.dumps(proof)))
        assert not verdict(data, ratio, best + 1, other, kind, wide=True)


@pytest.mark.parametrize("seed", seeds(4, 200))
def test_counting_loses_nothing_but_which_share_reads_which(seed):
    """The cheapest steps by weights cost what they do where all have names, if there is one link for all.

    A share of a tail of several layers may be next to one share in FP and to another one in BP: there it costs less.
    """
    instance, rng = drawn(seed, (2, 6))
    ratio, data = ratio_of(instance, rng), with_equal_accelerators(instance.to_json(), rng)
    data.pop("latency_ns", None)
    diagram = diagram_of(data, ratio, COUNTED)
    runs, plain = diagram.weights(10**6, 5).weighing.runs, Chain(data, ratio)
    whole, counted = (Weights(chain, 0, runs).rest(0)[chain.origin] for chain in (plain, diagram.chain))
    several = plain.fold is None or plain.fold > len(ratio) + 3  # FP, WU of every share, BP, and what the tail reads
    assert counted <= whole if several else counted == whole


@pytest.mark.parametrize("seed", seeds(3, 100))
@pytest.mark.parametrize("kind", [CHAIN, COUNTED, HEADED])
def test_a_box_bounds_each_of_its_ratios(seed, kind):
    """Shares have less in it than in one ratio, and may have more; or are left out, with their work or without it."""
    instance, rng = drawn(seed)
    data, ratio = instance.to_json(), ratio_of(instance, rng)
    limits = [(rng.randint(b < 1, size), rng.randint(size, instance.batch)) for b, size in enumerate(ratio)]
    first, *others = (limit for limit in limits if limit[0])
    gone = [rng.random() < 0.5 for _ in others]
    out = [limit for limit, is_gone in zip(others, gone, strict=True) if is_gone]
    here = [first, *(limit for limit, is_gone in zip(others, gone, strict=True) if not is_gone)]
    low, most = zip(*here, strict=True)
    diagram = diagram_of(data, low, kind, most, out)
    best = optimum(data, ratio)
    for bound, proof in proofs_of(diagram, best):
        proof = json.loads(json.dumps(proof))
        assert verdict(data, low, bound, proof, kind, most, out)
        assert not verdict(data, low, best + 1, proof, kind, most, out, wide=True)
        verdict(data, low, bound, damaged(rng, proof), kind, most, out, wide=True)


@pytest.mark.parametrize("seed", seeds(1, 60))
def test_verdicts_of_boxes(seed):
    """One of all ratios; or one for each number of shares, without which the certificate is incomplete."""
    instance, rng = drawn(seed, (3, 6), (2, 3))
    data, batch, parts = instance.to_json(), instance.batch, len(instance.accelerators)
    weights = {}
    for shares in range(1, min(parts, batch) + 1):
        found = diagram_of(data, [1] * shares, CHAIN, [batch] * shares).weights(10**6, 3)
        weights[shares] = (
            found.value // UNIT,
            {"weights": [[0, found.weighing.runs]], "grid": [1] * len(SECOND.Path(data, [1] * shares).steps)},
        )
    every = {f"1-{batch}x{shares} chain": proof for shares, (_, proof) in weights.items()}
    alone = f"1-{batch}x1" + f",0-{batch}x{parts - 1}" * (parts > 1) + " chain"
    apart, values = {}, []
    for shares in weights:
        found = diagram_of(data, [1], CHAIN, [batch], [(1, batch)] * (shares - 1)).weights(10**6, 3)
        name = f"1-{batch}x1" + f",1-{batch}w{shares - 1}" * (shares > 1) + " chain"
        steps = len(SECOND.Path(data, [1], absent=[(1, batch)] * (shares - 1)).steps)
        apart[name] = {"weights": [[0, found.weighing.runs]], "grid": [1] * steps}
        values.append(found.value // UNIT)
    for proof, bound in (
        (every, min(value for value, _ in weights.values())),
        ({alone: weights[1][1]}, weights[1][0]),
        (apart, min(values)),
    ):
        certificate = json.loads(json.dumps({"schema": 1, "instance": data, "bound": bound, "proof": proof}))
        check(certificate)
        own = dict(cases(data, bound, Program, tuple(proof)))
        others = dict(second("suboperation_mapping").cases(data, bound, Program, tuple(proof)))
        assert own.keys() == others.keys() == proof.keys()
        for name, part in certificate["proof"].items():
            assert accepts(others[name], part)
            other = damaged(rng, part)
            assert accepts(own[name], other) == accepts(others[name], other)
        for name in proof:
            with pytest.raises(Refused):
                check({**certificate, "proof": {other: part for other, part in proof.items() if other != name}})


def test_a_program_of_a_box_has_all_its_shares():
    instance, _ = drawn(1, (3, 6), (2, 3))
    with pytest.raises(Refused, match="no samples"):
        check({"schema": 1, "instance": instance.to_json(), "bound": 0, "proof": {f"0-{instance.batch}x1": []}})


@pytest.mark.parametrize("seed", seeds(1, 60))
def test_verdicts_of_a_certificate(seed):
    """One with a chain for every ratio: both writers ask for the same, and find the same."""
    instance, rng = drawn(seed, (3, 6), (2, 3))
    data, values, proof = instance.to_json(), [], {}
    for ratio in partitions(instance.batch, instance.batch, len(instance.accelerators)):
        kind = rng.choice(CHAINS)
        diagram = diagram_of(data, ratio, kind)
        found = diagram.weights(10**6, 3)
        values.append(found.value // UNIT)
        proof[",".join(map(str, ratio)) + kind] = {
            "weights": [[0, found.weighing.runs]],
            "grid": [1 + values[-1] // 9] * diagram.last,
        }
    bound, proof = min(values), json.loads(json.dumps(proof))
    check({"schema": 1, "instance": data, "bound": bound, "proof": proof})
    for limit in (bound, max(values) + max(values) // 9 + 2):
        own = dict(cases(data, limit, Program, tuple(proof)))
        others = dict(second("suboperation_mapping").cases(data, limit, Program, tuple(proof)))
        assert own.keys() == others.keys() == proof.keys()
        for name in proof:
            for part in (proof[name], damaged(rng, proof[name])):
                assert accepts(own[name], part) == accepts(others[name], part)
            assert limit > bound or accepts(others[name], proof[name])


def in_order():
    """A split layer, a fused one, a split one on two equal accelerators; operations take 10 ticks, transfers none."""
    instance, _ = drawn(0, (3, 3), (2, 2))
    data = instance.to_json()
    rows = [[10, 10], [10, 10]]
    for i, (layer, kind) in enumerate(zip(data["layers"], ("split", "fused", "split"), strict=True)):
        layer |= {"kind": kind, "inputs": [{"source": i - 1, "bytes": 0}] if i else [], "weight_bytes": 0}
        layer |= {"output_bytes": 0, "fp": [row[: 1 + (kind == "split")] for row in rows]}
        layer |= {"bp": layer["fp"] if i else [], "wu": rows if kind == "split" else []}
    data |= {"batch": 2, "bandwidth": [[1, 1], [1, 1]], "accelerators": [{"name": a} for a in "ab"]}
    data.pop("latency_ns", None)
    return data


END = 70
"""FP of three layers and BP of two take 50 ticks, if shares lie side by side, and the WU of the first layer follow: 60.
In all there are 12 operations, and nothing goes on beside FP of the fused one: (12 + 1) / 2 slots, so 7 at least. Seven
are enough: a WU of the last layer lies beside the fused BP, the other one comes in the end."""


@pytest.mark.parametrize(("factor", "fits"), [(1, True), (10**9, True), (10**14, False)])
def test_compiled_loops_leave_sums_of_more_than_64_bits_to_the_writer(factor, fits, monkeypatch):
    """Ticks are so many times as many, and the optimum is: no more is proven, however large it is."""
    data, ratio, asked = in_order(), (1, 1), []
    weights = Diagram(Chain(data, ratio)).weights(END, 20).weighing.runs
    for layer in data["layers"]:
        layer |= {phase: [[factor * t for t in row] for row in layer[phase]] for phase in ("fp", "bp", "wu")}
    proof = {"weights": [[0, weights]], "grid": [1] * len(Chain(data, ratio).steps)}
    follow = chain_labels.outlived
    monkeypatch.setattr(chain_labels, "outlived", lambda *args: asked.append(args) or follow(*args))
    for bound in (END * factor // 2, END * factor, END * factor + 1):
        found = chain_check.outlived(Chain(data, ratio), bound, proof)
        assert (found is None) == (bound <= END * factor)
        assert (follow(Chain(data, ratio), bound, proof) is None) == (found is None)
    assert len(asked) == (0 if fits else 3)


def changed(proof, change):
    proof = copy.deepcopy(proof)
    change(proof["weights"][0][1])
    return proof


ILLEGAL = {
    "falls": lambda runs: runs.append([runs[-1][0] + 1, UNIT, 0, 0]),
    "more than one": lambda runs: runs[-1].__setitem__(slice(2, 4), [UNIT, 1]),
    "of D": lambda runs: runs[-1].__setitem__(1, UNIT + 1),
    "of D below one": lambda runs: runs[-1].__setitem__(1, UNIT - 1),
    "below nothing": lambda runs: runs[-1].__setitem__(slice(2, 4), [UNIT + 1, -1]),
    "more than one in the tail": lambda runs: runs[0].__setitem__(slice(1, 5), [UNIT, UNIT, 0, 0]),
    "of work, falling at its end": lambda runs: runs[0].__setitem__(slice(1, 5), [0, 0, UNIT, 0]),
    "missing": lambda runs: runs[0].__setitem__(0, 1),
    "behind the end": lambda runs: runs.append([99, UNIT, UNIT // 2, UNIT // 2]),
    "one too few": lambda runs: runs[-1].pop(),
}


def by_hand():
    data = in_order()
    path = SECOND.Path(data, (1, 1))
    half = UNIT // 2
    runs = [[0, half // 2, half // 2, half, half // 4], [path.fold + 1, UNIT, half, half]]
    return data, {"weights": [[0, runs]], "grid": [1] * len(path.steps)}


@pytest.mark.parametrize("change", ILLEGAL)
def test_weights_that_prove_nothing_are_refused(change):
    """Even of a bound of 0, of which any others are a proof."""
    data, proof = by_hand()
    assert verdict(data, (1, 1), 0, {**proof, "weights": []})
    assert verdict(data, (1, 1), 0, changed(proof, lambda runs: runs[0].__setitem__(4, 0)))
    assert not verdict(data, (1, 1), 0, changed(proof, ILLEGAL[change]))


def turning_point(data, ratio, most=(), kind=CHAIN, out=()):
    """The largest bound that the second checker accepts of labels alone, none of them rounded."""
    proof = {"weights": [], "grid": [1] * len(SECOND.Path(data, ratio, absent=out).steps)}
    holds = partial(SECOND.outlived, data, ratio, proof=proof, kind=kind.strip(), most=most, absent=out)
    low, high = 0, 1
    while holds(bound=high) is None:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(bound=middle) is None else (low, middle)
    return low, proof


def test_a_bound_that_can_be_found_by_hand():
    data = in_order()
    assert turning_point(data, (1, 1))[0] == END


READ = {  # by network, the layers of that in order that it is made of, and what each reads
    "a branch": ((0, 0, 1, 2), ([], [], [0, 1], [2])),
    "a block": ((0, 1, 2, 1, 2), ([], [0], [1], [1, 2], [3])),
    "fused ones in a row": ((0, 1, 1, 1, 2), ([], [0], [1], [1, 2], [3])),
}


def same_turning_points(seeds=8):
    """Of small networks, with shortcuts and without; one share, two accelerators."""
    for seed, name, kind in product(range(seeds), READ, (CHAIN, SHORTCUTS)):
        data, rng, (those, read) = in_order(), random.Random(seed), READ[name]
        data["layers"] = [copy.deepcopy(data["layers"][i]) for i in those]
        for layer, sources in zip(data["layers"], read, strict=True):
            layer |= {"inputs": [{"source": k, "bytes": rng.randint(1, 9)} for k in sources]}
            layer["bp"] = layer["fp"] if sources else []
            layer |= {
                phase: [[rng.randint(1, 40) for _ in row] for row in layer[phase]] for phase in ("fp", "bp", "wu")
            }
        data["bandwidth"] = [[10**9, 10**9]] * 2
        bound, proof = turning_point(data, (2,), kind=kind)
        assert verdict(data, (2,), bound, proof, kind)
        assert not verdict(data, (2,), bound + 1, proof, kind)


def unlike(seed, kinds=(0, 1, 2), limits=((1, 1), ())):
    """A network of some layers of that in order, for three samples, with unlike accelerators; shares, or a box."""
    data, rng = in_order(), random.Random(seed)
    data |= {"batch": 3, "bandwidth": [[10**9, 10**9]] * 2}
    data["layers"] = [copy.deepcopy(data["layers"][i]) for i in kinds]
    for i, layer in enumerate(data["layers"]):
        layer["inputs"] = [{"source": i - 1, "bytes": rng.randint(0, 9)}] if i else []
        samples = 3 if layer["kind"] == "split" else 1
        rows = [[sorted(rng.choices(range(1, 30), k=samples)) for _ in range(2)] for _ in range(3)]
        layer |= {"fp": rows[0], "bp": rows[1] if i else [], "wu": rows[2] if layer["wu"] else []}
    return data, *limits


def crossed():
    """FP of the last layer is quick on a and b, its BP on a and c, and there is hardly a link between b and c.

    So of two alike shares the one that comes first, with FP on a, goes to c, and the other one from b to a.
    """
    data = in_order()
    data |= {"accelerators": [{"name": a} for a in "abc"], "bandwidth": [[1000] * 3, [1000, 1, 1], [1000, 1, 1]]}
    for layer in data["layers"]:
        layer |= {phase: [layer[phase][0]] * 3 if layer[phase] else [] for phase in ("fp", "bp", "wu")}
    last = data["layers"][2]
    last |= {"output_bytes": 1000, "fp": [[100] * 2, [100] * 2, [900] * 2], "bp": [[100] * 2, [900] * 2, [100] * 2]}
    return data | {"tick_ns": 10**9, "layers": [*data["layers"][:2], last]}, (1, 1), ()


def small_ones():
    """Networks, shares, and what they may have at most."""
    for limits in (((1, 1), ()), ((2, 1), ()), ((1, 1), (2, 1)), ((1, 1), (2, 2))):
        yield unlike(11, limits=limits)
    yield unlike(11, (0, 1, 0, 1, 2))
    yield crossed()
    data, *limits = unlike(11)
    data["layers"][1] |= {"fp": [[99], [1]], "bp": [[99], [1]]}  # so it lies on the second accelerator
    yield data, *limits
    for seed, kinds in enumerate(((0, 1, 2), (0, 1, 0, 1, 2))):
        data, *limits = unlike(seed, kinds)
        yield with_equal_accelerators(data, random.Random(1)), *limits


def same_with_any_order():
    """What labels prove with all places is what both checkers accept of those in order, and no more."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(SECOND.Path, "orderly", lambda *_: True)
        known = [(case, *turning_point(*case)) for case in small_ones()]
    for (data, shares, most), bound, proof in known:
        assert verdict(data, shares, bound, proof, most=most)
        assert not verdict(data, shares, bound + 1, proof, most=most)


def test_the_order_of_alike_shares_costs_nothing():
    same_with_any_order()


def all_equal(data):
    return [0 for _ in data["accelerators"]]


LIMITS, RISING = Chain.__init__, Chain.rising


def all_alike(self, *args, **kwargs):
    LIMITS(self, *args, **kwargs)
    self.alike_shares = list(range(len(self.shares) - 1))


UNFIT = {
    "the first fused FP is on the first accelerator": (chain_shares, "firsts", all_equal),
    "all shares are alike": (Chain, "__init__", all_alike),
    "BP rises whatever FP does": (Chain, "rising", lambda self, c=None: RISING(self)),
    "alike shares lie apart": (
        Chain,
        "rising",
        lambda self, c=None: [x if x is None or len({*x}) > 1 else None for x in RISING(self, c)],
    ),
    "shares have their most samples": (
        Chain,
        "compute",
        lambda self, o, a: self.layers[o[1]][o[0].lower()][a][self.most[o[2]] - 1 if o[2] >= 0 else 0],
    ),
}


def same_where_shares_are_counted(seeds=16):
    """What weights prove of two shares of a sample, on unlike accelerators and on equal ones, and no more."""
    for seed in range(seeds):
        instance, rng = drawn(seed, (3, 5), (2, 3))
        data = with_equal_accelerators(instance.to_json(), rng) if seed % 2 else instance.to_json()
        try:
            chain = Chain(data, (1, 1), COUNTED)
        except ValueError:
            continue
        if len(chain.places) > 1:
            found = Diagram(chain).weights(10**6, 5)
            bound = found.value // UNIT
            proof = {"weights": [[0, found.weighing.runs]], "grid": [1] * len(chain.steps)}
            assert verdict(data, (1, 1), bound, proof, COUNTED)
            # Where nothing is fused a label is worth more than the sum of its costs.
            assert chain.fold is None or not verdict(data, (1, 1), bound + 1, proof, COUNTED)


def test_counted_shares_are_those_of_both_checkers():
    same_where_shares_are_counted()


MISCOUNTED = {
    "shares are always where they were": (Chain, "nearest", lambda self, before, own: own),
    "shares are never where they were": (Chain, "nearest", lambda self, before, own: [ELSEWHERE for _ in own]),
    "all may have been where one was": (
        Chain,
        "nearest",
        lambda self, before, own: [a if a in before else ELSEWHERE for a in own],
    ),
    "all accelerators are equal": (chain_shares, "firsts", all_equal),
}


@pytest.mark.parametrize("j", [1, 3])
def test_what_is_counted_has_equal_weights(j):
    """Two alike shares, then two equal accelerators: of a bound of 0, of which any others would be a proof."""
    data, proof = by_hand()
    even = changed(proof, lambda runs: runs[0].__setitem__(slice(1, 5), [9, 9, 9, 9]))
    uneven = changed(even, lambda runs: runs[0].__setitem__(j, 8))
    assert verdict(data, (1, 1), 0, even, COUNTED)
    assert verdict(data, (1, 1), 0, uneven)
    assert not verdict(data, (1, 1), 0, uneven, COUNTED)


COMPUTE, MOVED, FOLDED = Chain.compute, Chain.moved, chain_labels.folded
WRONG = {
    "nothing moved": (Chain, "moved", lambda *_: 0),
    "a tick less to move": (Chain, "moved", lambda *args: max(0, MOVED(*args) - 1)),
    "a tick less to compute": (Chain, "compute", lambda *args: max(0, COMPUTE(*args) - 1)),
    "nothing beside the path": (Chain, "beside", lambda *_: None),
    "no transfers of a shortcut": (Chain, "longer", lambda self, k, kept, after, added: added),
    "shortcuts that are forgotten": (Chain, "source", lambda *_: None),
    "nothing left of the tail": (
        chain_labels,
        "folded",
        lambda *args: (FOLDED(*args)[0], *(0 for _ in FOLDED(*args)[1:])),
    ),
    "work done beside a fused BP on its own accelerator": (
        Chain,
        "alone",
        lambda self, _, ticks, since=0: (since + ticks, *(-ticks for _ in self.places)),
    ),
}


def same_where_shares_are_left_out(seeds=6):
    """One share is there, another one has its work only; networks with a branch, too."""
    for seed, out in product(range(seeds), [[(1, 1)], [(1, 2)], [(2, 2), (1, 1)]]):
        data, *_ = unlike(seed, (0, 1, 0, 1, 2))
        if seed % 2:
            data["layers"][3]["inputs"].append({"source": 0, "bytes": 1})
            data["layers"][2]["inputs"] = [{"source": 1, "bytes": 2}]
        bound, proof = turning_point(data, (1,), out=out)
        assert verdict(data, (1,), bound, proof, out=out)
        assert not verdict(data, (1,), bound + 1, proof, out=out)


def test_shares_that_are_left_out_have_the_same_work():
    same_where_shares_are_left_out()


def test_a_share_that_is_left_out_has_samples():
    """It is refused with none, and in a program, which has all shares."""
    data = in_order()
    for name in ("1-2x1,0-1w1 chain", "1-2x1,2-1w1 chain", "1-2x1,1-1w1"):
        with pytest.raises(Refused):
            check({"schema": 1, "instance": data, "bound": 0, "proof": {name: {"weights": [], "grid": []}}})


SPARED = Chain.spared
GONE = {
    "of shares that are left out the most samples": (
        Steps,
        "spared",
        lambda self, layer, *state, phase, low, high: SPARED(self, layer, *state, phase=phase, low=high, high=high),
    ),
    "of shares that are left out no BP": (
        Steps,
        "spared",
        lambda self, layer, *state, phase, low, high: SPARED(self, layer, *state, phase="WU", low=low, high=high),
    ),
    "no shares that are left out": (Steps, "left_out", lambda *_: None),
}


def same_where_shares_wait(seeds=10):
    """Nothing is fused; two shares, two accelerators."""
    for seed in range(seeds):
        data, *_ = unlike(seed, (0, 2))
        bound, proof = turning_point(data, (2, 1))
        assert verdict(data, (2, 1), bound, proof)
        assert not verdict(data, (2, 1), bound + 1, proof)


@pytest.mark.in_turn
def test_shares_wait_for_the_same():
    same_where_shares_wait()


def late_fp(self, after, added, pairs):
    """As if all FP were as long as the longest."""
    d = len(self.shares)
    longest = added if pairs else (*[max(added[:d])] * d, *added[d:])
    to, found, pairs = WAITING(self, after, longest, pairs)
    return to, (*added[:d], *found[d:]), pairs


WAITING, WAITED = Chain.waiting, chain_after.waited
IMPATIENT = {
    "no share waits": (chain_after, "waited", lambda _, label: tuple(label)),
    "FP is as long as that of the other share": (Chain, "waiting", late_fp),
    "a tick more on the first accelerator": (
        chain_after,
        "waited",
        lambda chain, label: tuple(x + (j == 4) for j, x in enumerate(WAITED(chain, label))),
    ),
    "a tick less of the first share": (
        chain_after,
        "waited",
        lambda chain, label: tuple(x - (j == 6) for j, x in enumerate(WAITED(chain, label))),
    ),
}


MUTANTS = {
    **{name: (same_where_shares_wait, *change) for name, change in IMPATIENT.items()},
    **{name: (same_where_shares_are_left_out, *change) for name, change in GONE.items()},
    **{name: (same_with_any_order, *change) for name, change in UNFIT.items()},
    **{name: (same_where_shares_are_counted, *change) for name, change in MISCOUNTED.items()},
    **{name: (same_turning_points, *change) for name, change in WRONG.items()},
}


@pytest.mark.in_turn
@pytest.mark.parametrize("wrong", some(4, list(MUTANTS)))
def test_what_is_wrong_changes_a_verdict(monkeypatch, wrong):
    same, *change = MUTANTS[wrong]
    monkeypatch.setattr(*change)
    with pytest.raises(AssertionError):
        same()
