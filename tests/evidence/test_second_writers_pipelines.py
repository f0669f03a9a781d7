"""Writers of certificates against second ones that were written apart: sub-operation mapping and hybrid pipelines.

Who believes a certificate believes its writer. A second one, of the problem's rules and with nothing of the first one's
code, has to write the same rows, or to come to the same verdicts.
"""

import importlib.util
import random
from functools import cache
from itertools import combinations_with_replacement
from pathlib import Path

import highspy
import numpy as np
import pytest
from certificates import with_equal_accelerators
from graphs import random_graph

from mapgap.catalogue.files import load_instance
from mapgap.catalogue.registry import library, methods
from mapgap.contract.seeds import fresh, seeds, some
from mapgap.core import Budget
from mapgap.evidence.check import NONE, Program, Refused, read
from mapgap.evidence.check import check as checked
from mapgap.problems.hybrid_pipeline.certificate import check
from mapgap.problems.hybrid_pipeline.certificate.stages import Stages
from mapgap.problems.hybrid_pipeline.certificate.transfers import Transfers
from mapgap.problems.suboperation_mapping import Plan
from mapgap.problems.suboperation_mapping.certificate import alike, cases, located
from mapgap.problems.suboperation_mapping.certificate.flows import Flows
from mapgap.problems.suboperation_mapping.certificate.graph import Graph
from mapgap.problems.suboperation_mapping.certificate.loads import Loads
from mapgap.problems.suboperation_mapping.certificate.located import Located
from mapgap.problems.suboperation_mapping.certificate.memory import Memory
from mapgap.problems.suboperation_mapping.certificate.times import Writer
from mapgap.problems.suboperation_mapping.evaluate import evaluate, timetable

CERTIFICATES = Path(__file__).parents[2] / "instances" / "best_known"
SHORT = 300_000
"""Bytes of a packed certificate whose programs take some seconds."""
NO_PLAN = NONE["min"]


@cache
def second(problem):
    """The second writer of a problem."""
    path = Path(__file__).parent / "second_writers" / f"{problem}.py"
    spec = importlib.util.spec_from_file_location(f"second_writer_{problem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def entries(pattern, by_day):
    """Names of the library's certificates; those that are too long for every day by night."""
    names = sorted(path.name.removesuffix(".cert.json.gz") for path in CERTIFICATES.glob(f"{pattern}.cert.json.gz"))
    return chosen(names, by_day)


def plans(pattern, by_day):
    """Names of the library's plans, in the same way."""
    return chosen(sorted(path.stem for path in CERTIFICATES.glob(f"{pattern}.json")), by_day)


def chosen(names, by_day):
    """Two of the short ones by day, all by night."""
    long = [pytest.param(name, marks=pytest.mark.nightly) for name in names if not by_day(name)]
    return [*some(2, [name for name in names if by_day(name)]), *long]


def certificate(name):
    return read(CERTIFICATES / f"{name}.cert.json.gz")


# Sub-operation mapping: the same programs


def content(program):
    """What a program says: bounds, the set of its rows but those that say nothing, products, machines, stores, goal."""
    rows = {(frozenset(terms.items()), bound) for terms, bound in program.rows if terms or bound < 0}
    terms, bound = program.rows[program.cutoff]
    others = program.products, program.machines, [(*store, sorted(held)) for *store, held in program.stores]
    return program.lower, program.upper, rows, *others, (terms, bound)


def same_programs(instance, bound, names):
    """Both writers write the same programs, variable by variable; what has none has two checkers, by name."""
    programs = dict(cases(instance, bound, Program, names))
    others = dict(second("suboperation_mapping").cases(instance, bound, Program, names))
    assert programs.keys() == others.keys()
    checkers = {name: (programs.pop(name), others[name]) for name in [*programs] if callable(programs[name])}
    for name in programs:
        for part, own, other in zip(
            ("lower", "upper", "rows", "products", "machines", "stores", "cutoff"),
            content(programs[name]),
            content(others[name]),
            strict=True,
        ):
            assert own == other, (name, part)
    return checkers


def at_one_gigabyte(name):
    """One bandwidth, networks of at most 41 layers, and proofs that are not long.

    Not AlexNet: where nothing is fused the second checker compares pairs of labels, for a minute a chain and longer.
    """
    short = (CERTIFICATES / f"{name}.cert.json.gz").stat().st_size < SHORT
    one = name.endswith("_1gbs") and not any(each in name for each in ("alexnet", "resnet56", "vgg16"))
    return name.startswith("mtrain_example") or (one and short)


@pytest.mark.in_turn
@pytest.mark.parametrize("name", entries("mtrain_*", at_one_gigabyte))
def test_programs_of_the_library(name):
    found = certificate(name)
    checkers = same_programs(found["instance"], found["bound"], tuple(found["proof"]))
    for key in random.Random(name).sample(sorted(checkers), min(3, len(checkers))):  # chains, a long one takes seconds
        assert [checker(found["proof"][key]) for checker in checkers[key]] == [None, None]


def names_of(instance, rng):
    """Of every kind a proof may ask for: ratios, with orders or a bound of their own, all ratios, boxes around some."""
    batch, n = instance["batch"], len(instance["accelerators"])
    ratios = [
        ratio
        for parts in range(1, n + 1)
        for ratio in combinations_with_replacement(range(batch, 0, -1), parts)
        if sum(ratio) == batch
    ]
    ends = ("", " order", f" below {NO_PLAN}")
    yield tuple(",".join(map(str, ratio)) + rng.choice(ends) for ratio in ratios)
    yield ("all",)
    for _ in range(2):
        ratio, groups = rng.choice(ratios), []
        while ratio:
            number = rng.randint(1, len(ratio))
            groups.append(f"{rng.randint(1, ratio[number - 1])}-{rng.randint(ratio[0], batch)}x{number}")
            ratio = ratio[number:]
        yield (",".join(groups) + " apart" * rng.randint(0, 1),)


def same_programs_of_a_random_instance(family, seed):
    instance, rng = library("suboperation_mapping").generate(family, seed).to_json(), random.Random(f"{family} {seed}")
    if rng.random() < 0.5:
        instance = with_equal_accelerators(instance, rng)
    if seed % 2:  # one latency between all, or those that differ
        n, late = len(instance["accelerators"]), random.Random(f"late {family} {seed}")
        several = [0, 1, instance["tick_ns"], 7 * instance["tick_ns"] + 3][-late.choice((1, 4)) :]
        instance["latency_ns"] = [[late.choice(several) for _ in range(n)] for _ in range(n)]
    for names in names_of(instance, rng):
        same_programs(instance, rng.choice([0, rng.randint(1, 300), rng.randint(1, 10**6), NO_PLAN]), names)


@pytest.mark.parametrize("family", ["tiny", "realistic"])
@pytest.mark.parametrize("seed", seeds(6, 200))
def test_programs_of_tiny_instances(family, seed):
    same_programs_of_a_random_instance(family, seed)


@pytest.mark.in_turn
@pytest.mark.parametrize("family", ["small", "branching"])
@pytest.mark.parametrize("seed", [*seeds(1, 30), *(pytest.param(k, marks=pytest.mark.nightly) for k in fresh(10))])
def test_programs_of_small_instances(family, seed):
    same_programs_of_a_random_instance(family, seed)


def is_point(program, fixed):
    """Whether a program has a point with these values: found by a MIP, checked in whole numbers."""
    lower, upper = np.array(program.lower, float), np.array(program.upper, float)
    for j, value in fixed.items():
        lower[j], upper[j] = max(lower[j], value), min(upper[j], value)
    engine, count = highspy.Highs(), len(lower)
    engine.setOptionValue("output_flag", False)
    engine.addVars(count, lower, upper)
    engine.changeColsIntegrality(count, np.arange(count, dtype=np.int32), [highspy.HighsVarType.kInteger] * count)
    for terms, side in program.rows:
        index, value = np.array(list(terms), np.int32), np.array(list(terms.values()), float)
        engine.addRow(-highspy.kHighsInf, side, len(terms), index, value)
    engine.run()
    x = [round(value) for value in engine.getSolution().col_value]
    return (
        len(x) == count
        and all(sum(a * x[j] for j, a in terms.items()) <= side for terms, side in program.rows)
        and all(low <= value <= high for low, value, high in zip(program.lower, x, program.upper, strict=True))
        and all(x[j] == value for j, value in fixed.items())
    )


@pytest.mark.parametrize("name", plans("mtrain_*", at_one_gigabyte))
def test_the_best_plan_of_an_instance_is_a_point(name):
    """Of the program of its ratio and of that of all ratios, where the bound is just above its makespan."""
    instance = load_instance(name)
    plan = Plan.model_validate_json((CERTIFICATES / f"{name}.json").read_bytes())
    assert evaluate(instance, plan).feasible
    found, seen = timetable(instance, plan), instance.to_json()
    first = next(i for i, layer in enumerate(instance.layers) if layer.kind == "split")
    shares = [b for b, samples in enumerate(plan.ratio) if samples]
    shares.sort(key=lambda b: (-plan.ratio[b], found.location["FP", first, b]))  # equal ones may change names
    renamed = {(p, i, shares.index(b) if b >= 0 else b): (p, i, b) for p, i, b in found.location}
    ratio, makespan = tuple(plan.ratio[b] for b in shares), max(found.end.values())
    configurations = len(plan.ratio) ** len(ratio)
    for shared in ((), ratio) if configurations <= 300 else ((),):
        writer = second("suboperation_mapping").Writer(seen, makespan + 1, Program(), ratio=shared)
        fixed = {writer.last: makespan}
        for o in writer.placed:
            fixed |= {j: int(a == found.location[renamed[o]]) for a, j in writer.x[o].items()}
            fixed[writer.start[o]] = found.start[renamed[o]]
        assert is_point(writer.program, fixed), shared
        for o in writer.placed[-1:] if name.startswith("mtrain_example") else ():  # too early if it is the first
            assert not is_point(writer.program, fixed | {writer.start[o]: 0}), shared


def test_every_change_of_a_program_is_seen():
    """A row less, or a number that is another one: what the comparison is there to find."""
    found = certificate("mtrain_example_fig5")
    instance, bound, names = found["instance"], found["bound"], tuple(found["proof"])
    others = second("suboperation_mapping").cases(instance, bound, Program, names)
    whole = {name: content(program) for name, program in others}
    rng = random.Random(1)
    for name, program in cases(instance, bound, Program, names):
        assert content(program) == whole[name]
        rows = program.rows
        for i in rng.sample(range(len(rows)), 60):
            terms, side = rows[i]
            if rows.count(rows[i]) > 1 or i == program.cutoff:
                continue
            program.rows = rows[:i] + [({}, 0)] + rows[i + 1 :]
            assert content(program) != whole[name]
            j = rng.choice(list(terms))
            for changed in (({**terms, j: terms[j] + 1}, side), (terms, side + 1), ({**terms, j: -terms[j]}, side)):
                program.rows = rows[:i] + [changed] + rows[i + 1 :]
                assert content(program) != whole[name]
        program.rows = rows
        for bounds in (program.lower, program.upper):
            bounds[rng.randrange(len(bounds))] += 1
            assert content(program) != whole[name]


TENSORS, GRAINS, COMPUTE = Memory.tensors, Graph.grains, Graph.compute
SAMPLE_BYTES, PREDECESSORS = Graph.sample_bytes, Graph.predecessors


CLASSES = alike.classes
MUTANTS = {
    "no rows of the DRAM": (Memory, "memory", lambda *_: None),
    "tensors without those of consumers": (Memory, "tensors", lambda self: TENSORS(self)[::2]),
    "a tick less to compute": (Graph, "compute", lambda self, o, a: COMPUTE(self, o, a) - 1),
    "transfers rounded down": (Graph, "ticks", lambda self, *transfer: GRAINS(self, *transfer) >> 10),
    "grains rounded up": (Graph, "grains", lambda self, *transfer: GRAINS(self, *transfer) + 1),
    "bytes of a sample": (Graph, "sample_bytes", lambda self, o, p: SAMPLE_BYTES(self, o, p) + (o[0] == "WU")),
    "weights that are not moved": (Graph, "predecessors", lambda self, o: [(p, 0) for p, _ in PREDECESSORS(self, o)]),
    "no stages": (Writer, "stage", lambda *_: None),
    "no windows": (Writer, "times", lambda *_: None),
    "waits of nothing": (Writer, "waits", lambda self, listed, before: dict.fromkeys(listed, 0)),
    "no order": (Writer, "order", lambda *_: None),
    "no flow": (Loads, "flow", lambda *_: None),
    "nothing moved in a box": (Flows, "moved", lambda self, o: [[] for _ in self.places]),
    "no phases in a box": (Located, "between", lambda *_: None),
    "equal accelerators": (alike, "equal", lambda *_: True),
    "members of a class told apart": (Graph, "stands", lambda *_: 1),
    "classes of one": (located, "classes", lambda instance, apart: CLASSES(instance, True)),
}


def same_programs_of_small_instances():
    for seed in range(12):
        same_programs_of_a_random_instance("small", seed)


@pytest.mark.in_turn
@pytest.mark.parametrize("mutant", some(5, list(MUTANTS)))
def test_every_part_of_the_writer_is_compared(monkeypatch, mutant):
    """A first writer with a mistake in it writes another program of some small instance."""
    monkeypatch.setattr(*MUTANTS[mutant])
    with pytest.raises(AssertionError):
        same_programs_of_small_instances()


# Hybrid pipelines: the same verdicts


def few_layers(name):
    """At most 125 layers on at most five devices."""
    return (
        "efficientnet" not in name
        and "_c_" not in name
        and not name.startswith(("asteroid_nano6", "asteroid_nano7", "asteroid_nano8"))
    )


@pytest.mark.in_turn
@pytest.mark.parametrize("name", entries("asteroid_*", few_layers))
def test_verdicts_of_the_library(name):
    """All entries are optima: the bound is accepted, and one more is refused, by a plan of just this objective."""
    found = certificate(name)
    instance, bound = found["instance"], found["bound"]
    for checker in (check, second("hybrid_pipeline").check):
        assert checker(instance, bound, found["proof"]) is None
        assert checker(instance, bound + 1, found["proof"]).endswith(f" {bound}")


def same_verdicts(instance):
    """The first checker accepts the optimum that the second one finds, and nothing above it; the optimum."""
    value = second("hybrid_pipeline").optimum(instance)
    if value is None:
        assert check(instance, NO_PLAN, {}) is None
    else:
        assert check(instance, value, {}) is None
        assert (check(instance, value + 1, {}) or "").endswith(f" {value}")
        assert check(instance, 2 * value + 9, {}) is not None
    return value


@pytest.mark.parametrize("family", ["tiny", "realistic", "small", "executions", "steady"])
@pytest.mark.parametrize("seed", [*seeds(6, 200), *(pytest.param(k, marks=pytest.mark.nightly) for k in fresh(40))])
def test_verdicts_of_random_instances(family, seed):
    same_verdicts(library("hybrid_pipeline").generate(family, seed).to_json())


@pytest.mark.parametrize("seed", [*seeds(10, 400), *(pytest.param(k, marks=pytest.mark.nightly) for k in fresh(100))])
def test_verdicts_of_graphs(seed):
    same_verdicts(random_graph(seed).to_json())


def test_some_instances_have_no_plan():
    chains = [library("hybrid_pipeline").generate("tiny", seed) for seed in range(12)]
    for made in (chains, [random_graph(seed) for seed in range(12)]):
        assert {same_verdicts(instance.to_json()) is None for instance in made} == {True, False}


@pytest.mark.nightly
def test_verdicts_of_a_deep_network():
    """53 layers on six devices; larger ones take the second checker many minutes."""
    instance = library("hybrid_pipeline").generate("scaling", 0)
    value = methods("hybrid_pipeline")["label_dp"].solve(instance, Budget(time_s=300.0)).bound
    for checker in (check, second("hybrid_pipeline").check):
        assert checker(instance.to_json(), value, {}) is None
        assert checker(instance.to_json(), value + 1, {}) is not None


def test_neither_takes_a_proof():
    found = certificate("asteroid_nano1_mobilenetv2_100mbps")
    for checker in (check, second("hybrid_pipeline").check):
        assert checker(found["instance"], found["bound"], [["q", 0]]) is not None
    with pytest.raises(Refused):
        checked({**found, "proof": [["q", 0]]})


CROSSING, SHARE = Transfers.crossing, Stages.share
WRONG = {
    "free cuts": (Transfers, "crossing", lambda *_: 0),
    "a tick more of each cut": (Transfers, "crossing", lambda *arguments: CROSSING(*arguments) + 1),
    "no AllReduce": (Transfers, "allreduce", lambda *_: 0),
    "weights that are everywhere": (Transfers, "migration", lambda *_: 0),
    "memory of one micro-batch": (Stages, "share", lambda self, c, i, j, kept: SHARE(self, c, i, j, 1)),
}


def same_verdicts_of_small_instances():
    for seed in range(60):
        same_verdicts(library("hybrid_pipeline").generate("small", seed).to_json())


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_cost_changes_a_verdict(monkeypatch, wrong):
    monkeypatch.setattr(*WRONG[wrong])
    with pytest.raises(AssertionError):
        same_verdicts_of_small_instances()
