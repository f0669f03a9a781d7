"""Engines that lie: nothing unproven is called OPTIMAL or INFEASIBLE, on instances on which a lie can show."""

import random
import re
import subprocess
import sys
import time
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
import yaml

from mapgap.catalogue import registry
from mapgap.contract import liars
from mapgap.contract.seeds import samples, some
from mapgap.core import CONFIRMED, RECOMPUTED, UNCONFIRMED, Budget, Method, OutOfTime, SolveResult, Status, Stop
from mapgap.execution import confirm
from mapgap.execution.confirm import OWN
from mapgap.execution.run import run_method

CHOSEN = yaml.safe_load((Path(__file__).parents[1] / "data" / "liars.yaml").read_text())
CASES = [(problem, method.name) for problem in CHOSEN for method in liars.exact_methods(problem)]


@cache
def known(problem, family, seed):
    """An instance, and its optimum by a search of the house, or by engines that do not lie."""
    instance = registry.library(problem).generate(family, seed)
    own = [m for m in registry.methods(problem).values() if m.kind == "exact" and set(m.engines) <= OWN]
    best = max((m for m in own if not m.members), key=lambda m: m.rank)
    found = best.solve(instance, Budget(60.0).start())
    if found.status is Status.UNKNOWN:  # too large for brute force
        found = registry.strongest_exact(problem).solve(instance, Budget(60.0).start())
    assert found.status is Status.OPTIMAL
    return instance, registry.problems()[problem].evaluate(instance, found.plan).objective


def drawn(problem, name, number):
    """A liar and an instance for it, at random."""
    rng = random.Random(f"{problem}-{name}-{number}")
    method = registry.methods(problem)[name]
    asked = [engine for engine in method.engines if engine in liars.ENGINES]
    engines = rng.choice([(rng.choice(asked or liars.ENGINES),), (rng.choice(liars.ENGINES),), liars.ENGINES])
    share = rng.choice([1.0, 1.0, 0.5, 0.3])
    liar = liars.Liar(engines, rng.choice(liars.KINDS), share, seed=number)
    seed = rng.choice(CHOSEN[problem]["tiny"])
    return method, known(problem, "tiny", seed), liar


@pytest.mark.in_turn
@pytest.mark.parametrize("sample", samples(1, 400))
@pytest.mark.parametrize(("problem", "name"), CASES)
def test_no_lie_is_believed(problem, name, sample):
    wrong = []
    for number in sample:
        method, (instance, truth), liar = drawn(problem, name, number)
        wrong += liars.lied_run(method, instance, truth, liar)
    assert not wrong


@pytest.mark.parametrize("name", ["cpsat", "mip", "joint"])
def test_an_instance_on_which_one_lie_was_believed(name):
    """A plan of 25 exists and the start has 36: every engine that denies it made these methods say OPTIMAL 29 or 36."""
    instance, truth = known("multi_model_splitting", "tiny", 95)
    assert truth == 25
    with liars.lying(liars.Liar(liars.ENGINES, "infeasible")) as liar:
        record = run_method(instance, name, Budget(5.0), isolate=False)
    assert liar.told
    assert record.word == "open"
    assert record.bound is None or record.bound <= truth
    assert f"{name} (" in record.notes[UNCONFIRMED][0]


def test_a_disagreement_names_both_engines(monkeypatch):
    """HiGHS calls a plan of 36 optimal; where there are neither certificates nor brute force, CP-SAT is asked."""
    instance, truth = known("multi_model_splitting", "tiny", 95)
    library, methods = registry.library(instance.problem), dict(registry.methods(instance.problem))
    start = methods["ruin_and_recreate"].solve(instance, Budget(10.0).start()).plan
    worth = registry.problems()[instance.problem].evaluate(instance, start).objective
    assert worth > truth == 25
    monkeypatch.setattr(registry, "library", lambda _: replace(library, proving=None))
    monkeypatch.setattr(registry, "methods", lambda _: {n: m for n, m in methods.items() if n != "enumerate"})
    claim = SolveResult(Status.OPTIMAL, Stop.PROVED, start, worth, worth)
    found = confirm.confirmed(methods["mip"], instance, claim, Budget(60.0).start())
    assert (found.status, found.bound, found.plan) == (Status.FEASIBLE, None, start)
    (why,) = found.notes[UNCONFIRMED]
    assert re.fullmatch(rf"mip \(HiGHS\) claims OPTIMAL {worth}; cpsat \(CP-SAT\) has a plan of \d+", why)

    best = methods["joint"].solve(instance, Budget(60.0).start())
    right = confirm.confirmed(methods["mip"], instance, best, Budget(60.0).start())
    assert (right.status, right.notes[CONFIRMED]) == (Status.OPTIMAL, "cpsat (CP-SAT)")
    # One of the two engines of joint may have lied: both are asked, or a third one alone.
    right = confirm.confirmed(methods["joint"], instance, best, Budget(60.0).start())
    assert right.notes[CONFIRMED] == "cpsat (CP-SAT) and mip (HiGHS)"
    with liars.lying(liars.Liar(liars.ENGINES, "infeasible")):  # all deny every plan, the known one too
        none = confirm.confirmed(methods["mip"], instance, best, Budget(60.0).start())
    assert none.status is Status.FEASIBLE


def test_without_time_the_bound_is_the_word_of_its_engine():
    instance, truth = known("multi_model_splitting", "tiny", 95)
    method = registry.methods(instance.problem)["mip"]
    best = method.solve(instance, Budget(60.0).start())
    found = confirm.confirmed(method, instance, best, Budget(0.0).start())
    assert (found.status, found.stop, found.bound) == (Status.FEASIBLE, Stop.TIME, truth)
    assert "nobody else could confirm it in time" in found.notes[UNCONFIRMED][0]


def test_a_refuted_run_leaves_no_bound_in_its_trace():
    """One part of a method claims a bound of all plans; the plan of another one shows it up."""
    instance, truth = known("suboperation_mapping", "tiny", 11)
    plan = registry.methods(instance.problem)["enumerate"].solve(instance, Budget(60.0).start()).plan

    def run(instance, budget):
        budget.report(bound=truth + 7)
        budget.report(plan=plan)
        return SolveResult(Status.FEASIBLE, Stop.TIME, plan, claimed=truth)

    record = run_method(instance, Method("two", instance.problem, "exact", "", run), Budget(5.0), isolate=False)
    assert not liars.wrong_words(record, truth)
    assert record.refuted
    assert [point.objective for point in record.trace] == [truth]  # of the bound there is nothing
    assert all(point.bound is None for point in record.trace)


def test_a_bound_that_was_recomputed_needs_nobody():
    instance, truth = known("multi_model_splitting", "tiny", 95)
    method = registry.methods(instance.problem)["joint"]
    plan = method.solve(instance, Budget(60.0).start()).plan

    def late(bound):
        budget = Budget(0.0, recomputed=[truth - 5, truth - 3]).start()
        return confirm.confirmed(method, instance, SolveResult(Status.FEASIBLE, Stop.TIME, plan, bound), budget)

    assert (late(truth - 3).bound, late(truth - 3).notes) == (truth - 3, {})
    word = late(truth - 1)
    assert (word.bound, word.notes[RECOMPUTED]) == (truth - 1, truth - 3)
    assert f"claims bound {truth - 1}" in word.notes[UNCONFIRMED][0]
    budget = Budget(0.0, recomputed=[truth]).start()  # nobody has time to confirm what is proven
    best = confirm.confirmed(method, instance, SolveResult(Status.OPTIMAL, Stop.PROVED, plan, truth), budget)
    assert (best.status, best.bound, best.notes) == (Status.OPTIMAL, truth, {RECOMPUTED: truth})


class Slow:
    """A part whose program is never built."""

    def build(self):
        while True:
            time.sleep(0.01)


def test_a_program_that_takes_too_long_to_build_ends_with_the_time():
    with pytest.raises(OutOfTime):
        confirm.built(Slow(), Budget(0.1).start())


ALL_ASKED = """
import sys
from mapgap.catalogue import registry
from mapgap.core import Budget, resolve
from mapgap.execution import confirm

problem, seed = sys.argv[1], int(sys.argv[2])
method = registry.strongest_exact(problem)
resolve(method.run)
confirm.prepare(method)
instance = registry.library(problem).generate("tiny", seed)
result = method.solve(instance, Budget(60.0).start())
before = set(sys.modules)
assert list(confirm._Claim(method, instance, result).confirmations(Budget(60.0).start()))
print(*sorted(name for name in set(sys.modules) - before if name.startswith("mapgap.")))
"""


@pytest.mark.in_turn
@pytest.mark.parametrize("problem", some(1, list(CHOSEN)))
def test_whoever_confirms_is_imported_before_the_run(problem):
    """To import can be to compile for seconds: a run was killed for it, with its proof."""
    command = [sys.executable, "-c", ALL_ASKED, problem, str(CHOSEN[problem]["tiny"][0])]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.split() == []


@pytest.mark.in_turn
@pytest.mark.parametrize("problem", CHOSEN)
def test_honest_engines_are_confirmed(problem):
    instance, truth = known(problem, "tiny", CHOSEN[problem]["tiny"][0])
    for method in liars.exact_methods(problem):
        record = run_method(instance, method, Budget(60.0), isolate=False)
        assert (record.word, record.objective, record.bound) == ("solver-proven", truth, truth), method.name
        assert record.notes.get(CONFIRMED) or record.notes[RECOMPUTED] == truth
