"""Who checks the writers? Every problem has a second one, made from its rules apart, and both say the same.

A certificate proves what the writer of its problem says (docs/certificates.md). The second writers lie in
``second_writers``, import the standard library alone, and prefer to be plain than to be quick. Compared are

- of a writer with ``program`` the whole integer program: bounds of the variables, rows, products and the row of the
  bound. Rows are compared as a set, their numbers play no part.
- of a writer with ``check`` the verdict, on true claims, on those that are one too strong, and on damaged proofs.
"""

import ast
import copy
import importlib.util
import random
import sys
from functools import cache
from math import prod
from pathlib import Path

import pytest
from certificates import damaged

from mapgap.catalogue import registry
from mapgap.contract.seeds import samples, some
from mapgap.core import Budget
from mapgap.evidence import check
from mapgap.evidence.ledger import Ledger

FOLDER = Path(__file__).parent / "second_writers"
PROGRAMS = ("fpga_gpu_partition", "multi_model_splitting")
CHECKERS = {"layer_flow": "cover_bound", "neuron_masking": "lagrangian"}
"""And the method whose bound is claimed."""
BOOK = Ledger.load()
MANY = 10_000
"""Combinations of options of one module, all of which the second writer prices: more are for the night."""
FRESH = {
    "fpga_gpu_partition": ("tiny",),
    "multi_model_splitting": ("tiny", "small"),
    "layer_flow": ("tiny", "small"),
    "neuron_masking": ("tiny", "small", "fleet"),
}
"""Families, of which a seed takes one."""


@cache
def second(problem):
    """The second writer of a problem."""
    spec = importlib.util.spec_from_file_location(f"tests_second_{problem}", FOLDER / f"{problem}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def certificates(problem, chosen=lambda instance: True):
    """Every certificate of the library, as read from its file."""
    names = [name for name, entry in BOOK.entries.items() if entry.problem == problem]
    files = [file for file in map(BOOK.certificate_path, names) if file.is_file()]
    found = [certificate for certificate in map(check.read, files) if chosen(certificate["instance"])]
    assert found
    return found


def limit_of(certificate):
    """What the writers get for the bound of a certificate."""
    bound, problem = certificate["bound"], certificate["instance"]["problem"]
    return check.NONE[check.writer_of(problem).SENSE] if bound is None else bound


def names_of(instance, other):
    """What the variables of the first writer stand for, in the names of the second, whose program is ``other``.

    The order is that of the first writer's docstring. Combinations of options it lists in an order of its own; were
    they not what it says, rows would differ.
    """
    if instance["problem"] == "multi_model_splitting":
        return list(other["variables"])
    names, facts = [], check.writer_of("fpga_gpu_partition").Facts(instance)
    for m in range(len(instance["modules"])):
        for sides, values in facts.combinations(m):
            names.append((m, tuple(int(side == "fpga") for side in sides), tuple(values)))
        names += [name for layer in facts.seen[m] if (name := ("side", layer)) not in names]
    return names + [("energy",), ("latency",)] * (instance["objective"] == "edp")


def differences(first, names, other):
    """What two programs differ in: one of the checker's kind, with names for its variables, and one of names."""
    bounds = zip(first.lower, first.upper, strict=True)
    if not len(names) == len(first.lower) == len(other["variables"]):
        return ["variables"]
    if dict(zip(names, bounds, strict=True)) != other["variables"]:
        return ["variables"]
    rows = [(frozenset((names[j], a) for j, a in terms.items()), most) for terms, most in first.rows]
    products = [(names[x], names[y], most) for x, y, most in first.products]
    pairs = {
        "rows": (set(rows), other["rows"]),
        "products": (products, other["products"]),
        "cutoff": (rows[first.cutoff], other["cutoff"]),
    }
    return [what for what, (one, two) in pairs.items() if one != two]


def compared(instance, bound):
    """What the programs of both writers differ in."""
    problem = instance["problem"]
    first = check.writer_of(problem).program(instance, bound, check.Program)
    other = second(problem).program(instance, bound)
    return differences(first, names_of(instance, other), other)


def verdicts(instance, bound, proof):
    """Do the checker and the second writer believe a proof? What cannot be followed is not believed."""
    try:
        check.check({"schema": 1, "instance": instance, "bound": bound, "proof": proof})
        first = True
    except check.Refused:
        first = False
    try:
        other = second(instance["problem"]).holds(instance, bound, proof)
    except Exception:  # of whatever kind, as in the checker
        other = False
    return first, other


def stronger(instance, proof):
    """The same steps for one less: of neuron masking every proof has bounds of its own, per device."""
    if instance["problem"] == "layer_flow":
        return proof
    return [[[limit - 1, steps] for limit, steps in part] if isinstance(part, list) else part for part in proof]


def fresh(problem, sample):
    """Where random numbers come from, and an instance, for every seed; the families take turns."""
    for seed in sample:
        family = FRESH[problem][seed % len(FRESH[problem])]
        yield random.Random(f"second-writers-{problem}-{seed}"), registry.library(problem).generate(family, seed)


def products_of(instance):
    """Combinations of options of the module with most of them."""
    return max(prod(len(layer["options"]) for layer in module["layers"]) for module in instance["modules"])


def test_second_writers_share_nothing_with_the_first():
    """They import the standard library alone, and nothing of mapgap."""
    for file in FOLDER.glob("*.py"):
        nodes = list(ast.walk(ast.parse(file.read_text(encoding="utf-8"))))
        modules = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
        modules |= {node.module for node in nodes if isinstance(node, ast.ImportFrom)}
        assert {name.split(".")[0] for name in modules} <= sys.stdlib_module_names


# --- integer programs ---


@pytest.mark.in_turn
@pytest.mark.parametrize("sixth", some(1, range(6)))
def test_programs_of_the_library_are_equal(sixth):
    """A sixth of the certificates of multi-model splitting, and of the FPGA-GPU partition with few combinations."""
    chosen = certificates("multi_model_splitting")
    chosen += certificates("fpga_gpu_partition", lambda instance: products_of(instance) <= MANY)
    assert [each["instance"]["name"] for each in chosen[sixth::6] if compared(each["instance"], limit_of(each))] == []


@pytest.mark.nightly
def test_large_programs_of_the_library_are_equal():
    """The other certificates of the FPGA-GPU partition."""
    chosen = certificates("fpga_gpu_partition", lambda instance: products_of(instance) > MANY)
    assert [each["instance"]["name"] for each in chosen if compared(each["instance"], limit_of(each))] == []


@pytest.mark.parametrize("sample", samples(6, 200))
@pytest.mark.parametrize("problem", PROGRAMS)
def test_programs_of_fresh_instances_are_equal(problem, sample):
    """With the bound that says that there is no plan, and with some that variables exceed."""
    nothing = check.NONE["min"]
    for rng, whole in fresh(problem, sample):
        instance = whole.to_json()
        assert compared(instance, nothing) == [], whole.name
        free = second(problem).program(instance, nothing)
        largest = free["products"][0][2] if free["products"] else free["cutoff"][1]
        for bound in (rng.randint(0, largest + 2), rng.randint(0, largest // 8 + 2)):
            assert compared(instance, bound) == [], (whole.name, bound)


SPECIAL = [
    ("multi_model_splitting", "tiny", 57),  # three twins on one device: nothing moves
    ("multi_model_splitting", "small", 3),  # transfers that are equal to those of the second twin alone
    ("multi_model_splitting", "small", 43),  # targets that only some of the twins may have
    ("multi_model_splitting", "small", 52),  # four twins
    ("fpga_gpu_partition", "scaling", 0),
    ("fpga_gpu_partition", "networks", 3),  # tensors that several later modules read
    pytest.param("fpga_gpu_partition", "networks", 1, marks=pytest.mark.nightly),
]


@pytest.mark.parametrize(("problem", "family", "seed"), SPECIAL)
def test_programs_of_special_instances_are_equal(problem, family, seed):
    instance = registry.library(problem).generate(family, seed).to_json()
    assert problem == "fpga_gpu_partition" or instance["sharing"]
    assert compared(instance, check.NONE["min"]) == []
    assert compared(instance, 60) == []


def changes(program):
    """What could be changed, in words, and a copy of the program with this one change."""

    def copied(what):
        return what, copy.deepcopy(program)

    for k, (terms, most) in enumerate(program.rows):
        if program.rows.count((terms, most)) > 1:
            continue  # a row that is written twice is one row
        for j in terms:
            what, other = copied(f"coefficient {j} of row {k}")
            other.rows[k][0][j] += 1
            yield what, other
        what, other = copied(f"right-hand side of row {k}")
        other.rows[k] = (terms, most + 1)
        yield what, other
        if k != program.cutoff:
            what, other = copied(f"no row {k}")
            del other.rows[k]
            other.cutoff -= k < program.cutoff
            yield what, other
    for j in range(len(program.lower)):
        for values in ("lower", "upper"):
            what, other = copied(f"{values} bound of variable {j}")
            getattr(other, values)[j] += 1
            yield what, other
    for k, (x, y, most) in enumerate(program.products):
        what, other = copied(f"product {k}")
        other.products[k] = (x, y, most + 1)
        yield what, other
    what, other = copied("cutoff")
    other.cutoff = 0
    yield what, other


@pytest.mark.parametrize(("problem", "seed"), [("multi_model_splitting", 4), ("fpga_gpu_partition", 2)])
def test_a_single_change_of_a_program_is_seen(problem, seed):
    """A row less, another coefficient, right-hand side, bound, product or cutoff."""
    instance = registry.library(problem).generate("tiny", seed).to_json()
    written = check.writer_of(problem).program(instance, 10**6, check.Program)
    other = second(problem).program(instance, 10**6)
    names = names_of(instance, other)
    assert differences(written, names, other) == []
    tried = 0
    for what, altered in changes(written):
        assert differences(altered, names, other) != [], what
        tried += 1
    assert tried > 100


# --- arguments that are recomputed ---


PART = [
    ("layer_flow", 1),
    ("neuron_masking", 6),  # every sixth one by day, by night all
    pytest.param("neuron_masking", 1, marks=pytest.mark.nightly),
]


@pytest.mark.in_turn
@pytest.mark.parametrize(("problem", "every"), PART)
def test_verdicts_on_the_library_are_equal(problem, every):
    """Certificates are believed by both, and by none of them a claim that is one too strong."""
    for certificate in certificates(problem)[::every]:
        instance, bound, proof = certificate["instance"], certificate["bound"], certificate["proof"]
        assert verdicts(instance, bound, proof) == (True, True), instance["name"]
        assert verdicts(instance, bound - 1, proof) == (False, False), instance["name"]
        assert verdicts(instance, bound - 1, stronger(instance, proof)) == (False, False), instance["name"]


@pytest.mark.parametrize("sample", samples(6, 200))
@pytest.mark.parametrize("problem", CHECKERS)
def test_verdicts_on_fresh_instances_are_equal(problem, sample):
    """Proofs of the best bound and of a weaker one, claims that are one stronger, damaged proofs."""
    library, method = registry.library(problem), registry.methods(problem)[CHECKERS[problem]]
    seen = set()
    for rng, whole in fresh(problem, sample):
        instance = whole.to_json()
        best = method.solve(whole, Budget(60.0).start()).bound
        bound = -1 if best is None else best + rng.choice([0, 0, 1, best // 50])
        proof = library.prove(instance, bound, Budget(60.0).start())
        if proof is None:
            continue
        claims = [(bound, proof), (bound - 1, proof), (bound - 1, stronger(instance, proof)), (bound + 1, proof)]
        claims += [(bound - rng.choice([0, 0, 1]), damaged(rng, proof)) for _ in range(6)]
        for claimed, shown in claims:
            first, other = verdicts(instance, claimed, shown)
            assert first == other, (whole.name, claimed, shown)
            seen.add(first)
    assert seen == {True, False}


def test_verdicts_on_damaged_certificates_are_equal():
    """Of layer flow; those of neuron masking may ask for lists that do not end, and fresh instances are small."""
    rng = random.Random(6)
    for certificate in certificates("layer_flow"):
        instance, bound = certificate["instance"], certificate["bound"]
        for _ in range(4):
            shown = damaged(rng, certificate["proof"])
            first, other = verdicts(instance, bound, shown)
            assert first == other, (instance["name"], shown)


def fooled(problem, monkeypatch):
    """A first writer with a fault: masks that are listed are not looked at; no node passes anything."""
    writer = check.writer_of(problem)
    monkeypatch.setattr(check, "writer_of", lambda _: writer)
    if problem == "neuron_masking":
        monkeypatch.setattr(sys.modules[f"{writer.__name__}.lagrangian"].Lagrangian, "exception", lambda self: None)
    else:
        monkeypatch.setattr(writer, "useful", lambda *_: [])


@pytest.mark.in_turn
@pytest.mark.parametrize("problem", CHECKERS)
def test_a_fault_of_a_checker_is_seen(problem, monkeypatch):
    fooled(problem, monkeypatch)
    differ = 0
    for certificate in certificates(problem)[:40]:
        instance, bound, proof = certificate["instance"], certificate["bound"], certificate["proof"]
        first, other = verdicts(instance, bound - 1, stronger(instance, proof))
        assert not other
        differ += first
    assert differ
