"""What every integer program of the registry keeps: numbered rows, one point per plan, no row too many or too few.

A method whose objective is not linear on some instances says so (its ``models`` raise
:class:`~mapgap.core.InputError`); those instances are left out, and enough others must remain.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Literal

import highspy
import pytest
from google.protobuf import text_format
from ortools.sat.python import cp_model

from mapgap.catalogue import registry
from mapgap.contract.known import TIME_S, best, optimum, problem_of, tiny
from mapgap.contract.seeds import samples, seeds, some
from mapgap.core import Budget, InputError, InstanceBase, PlanBase, Status, Stop, resolve
from mapgap.solvers.model import Model, Part, prove, read_solution

HINT_SEEDS = range(3)
FLIP_SEEDS = range(120)
PROBLEMS = list(registry.problems())
CASES = [
    (problem, method.name)
    for problem in PROBLEMS
    for method in registry.methods(problem).values()
    if method.models is not None
]
Answer = int | Literal["unbounded"] | None
"""An optimum in the instance's terms; ``None`` where there is no point."""


@cache
def parts(problem: str, name: str, seed: int) -> list[Part] | None:
    """The programs of a tiny instance; ``None`` where the method offers none for its objective."""
    try:
        found: list[Part] = resolve(registry.methods(problem)[name].models)(tiny(problem, seed))
    except InputError:
        return None
    return found


def posed(problem: str, name: str, count: int) -> Iterable[int]:
    """The first seeds whose instances have programs."""
    seeds = (seed for seed in FLIP_SEEDS if parts(problem, name, seed) is not None)
    return islice(seeds, count)


def parts_of(problem: str, name: str, seed: int) -> list[Part]:
    return parts(problem, name, seed) or []


def solved(model: Model) -> Answer:
    """The optimum of one program."""
    outcome = model.solve(Budget(TIME_S).start())
    if outcome.status is Status.INFEASIBLE:
        return None
    assert outcome.stop is not Stop.TIME, "a program of a tiny instance is not solved in time"
    if outcome.status is not Status.OPTIMAL or outcome.objective is None:
        return "unbounded"
    return model.objective(outcome.objective)


@cache
def answer(problem: str, name: str, seed: int, complete: bool, without: int | None) -> Answer:
    """The best optimum of all programs of an instance, one row left out."""
    left_out = () if without is None else (without,)
    found = [solved(part.build(complete=complete, without=left_out)) for part in parts_of(problem, name, seed)]
    if "unbounded" in found:
        return "unbounded"
    return best(problem, [value for value in found if isinstance(value, int)])


@cache
def kind_of(problem: str, name: str) -> type[Model]:
    """The model class; one that appears in every instance that has a part."""
    return type(next(part for seed in FLIP_SEEDS for part in parts_of(problem, name, seed)).build())


def skip_twins(problem: str, name: str) -> None:
    """What concerns a program, and not the engine, is tested with the first method that has it."""
    for owner, other in CASES:
        if (owner, other) == (problem, name):
            return
        if owner == problem and kind_of(problem, other) is kind_of(problem, name):
            pytest.skip(f"the program of {other} on another engine")


@pytest.mark.parametrize("problem", PROBLEMS)
def test_cpsat_and_mip_offer_their_models(problem: str) -> None:
    offered = {name for owner, name in CASES if owner == problem}
    assert {"cpsat", "mip"} & set(registry.methods(problem)) <= offered


@pytest.mark.parametrize(("problem", "name"), CASES)
def test_rows_are_numbered_in_the_program_and_in_the_code(problem: str, name: str) -> None:
    # From the equation in the docstring to the method that adds it, and back.
    model = kind_of(problem, name)
    numbers = [row.number for row in model.rows()]
    assert numbers == list(range(1, len(numbers) + 1))
    assert all(row.text for row in model.rows())
    stated = [int(number) for number in re.findall(r"^ *\((\d+)\)", model.__doc__ or "", re.MULTILINE)]
    assert sorted(stated) == numbers


@pytest.mark.in_turn
@pytest.mark.parametrize("seed", seeds(2, 40))
@pytest.mark.parametrize(("problem", "name"), CASES)
def test_a_model_has_the_optimum_of_brute_force(problem: str, name: str, seed: int) -> None:
    if parts(problem, name, seed) is None:
        assert len(list(posed(problem, name, 20))) == 20, "hardly any instance has a program"
        pytest.skip("the method offers no program for this objective")
    assert answer(problem, name, seed, False, None) == optimum(problem, seed)
    assert answer(problem, name, seed, True, None) == optimum(problem, seed)


@pytest.mark.in_turn
@pytest.mark.parametrize("sample", samples(4, 20))
@pytest.mark.parametrize(("problem", "name"), CASES)
def test_fixed_to_a_plan_a_model_says_what_the_evaluator_says(problem: str, name: str, sample: list[int]) -> None:
    skip_twins(problem, name)
    # Feasible exactly when no rule is broken, and then with the same objective; and the plan that is read from the
    # model's solution is worth the same.
    spec, library = problem_of(problem), registry.library(problem)
    rng = random.Random(1)
    seen = {True: 0, False: 0}
    for seed in posed(problem, name, len(sample)):
        instance = tiny(problem, seed)
        for _ in range(10):
            plan = library.random_plan(instance, rng)
            assert plan is not None, "the library samples no plans"
            evaluation = spec.evaluate(instance, plan)
            for part in parts_of(problem, name, seed):
                model = part.build(complete=True)
                if not model.fix(plan):
                    continue
                seen[evaluation.feasible] += 1
                result = prove(model, Budget(TIME_S).start())
                expected = Status.OPTIMAL if evaluation.feasible else Status.INFEASIBLE
                assert (result.status, result.claimed) == (
                    expected,
                    evaluation.objective if evaluation.feasible else None,
                ), (seed, plan)
                if result.plan is not None:
                    assert worth(problem, instance, result.plan) == evaluation.objective, (seed, plan)
    needed = [True] if spec.always_feasible else [True, False]
    assert all(seen[kind] >= len(sample) // 2 for kind in needed), (
        f"too few plans with a point (feasible, infeasible): {seen}"
    )


def worth(problem: str, instance: InstanceBase, plan: PlanBase) -> int | None:
    """What the evaluator says of a plan that must be feasible."""
    evaluation = problem_of(problem).evaluate(instance, plan)
    assert evaluation.feasible, evaluation.violations
    return evaluation.objective


@pytest.mark.in_turn
@pytest.mark.parametrize("eighth", some(1, range(8)))
@pytest.mark.parametrize("sample", samples(4, 16))
@pytest.mark.parametrize(("problem", "name"), CASES)
def test_every_row_is_needed_and_implied_ones_change_nothing(
    problem: str, name: str, sample: list[int], eighth: int
) -> None:
    skip_twins(problem, name)
    # A flip test per row: without it the optimum of some tiny instance is another one (or there is one at last).
    for row in kind_of(problem, name).rows()[eighth::8]:
        tried = posed(problem, name, len(sample) if row.implied else len(FLIP_SEEDS))
        flips = (
            seed
            for seed in tried
            if answer(problem, name, seed, True, row.number) != answer(problem, name, seed, True, None)
        )
        flipped = next(flips, None)
        assert (flipped is None) == row.implied, (row, flipped)


@pytest.mark.parametrize(("problem", "name"), some(2, CASES))
def test_a_plan_is_a_hint_and_comes_back(problem: str, name: str) -> None:
    found = 0
    for seed in posed(problem, name, len(HINT_SEEDS)):
        for part in parts_of(problem, name, seed):
            first = prove(part.build(complete=True), Budget(TIME_S).start())
            if first.plan is None:
                continue
            found += 1
            again = part.build(complete=True)
            assert again.assignment(first.plan) is not None, "a plan of the model has no point in it"
            second = prove(again, Budget(TIME_S).start(), start=first.plan)
            assert second.claimed == first.claimed == worth(problem, tiny(problem, seed), first.plan)
    assert found, "no program has a plan"


@pytest.mark.parametrize(("problem", "name"), CASES)
def test_a_written_model_solved_elsewhere_gives_the_same_optimum(problem: str, name: str, tmp_path: Path) -> None:
    skip_twins(problem, name)
    seed = next(s for s in posed(problem, name, len(FLIP_SEEDS)) if optimum(problem, s) is not None)
    for suffix in kind_of(problem, name).suffixes:
        found = []
        for part in parts_of(problem, name, seed):
            model = part.build()
            model.write(tmp_path / f"model{suffix}")
            if solve_file(tmp_path / f"model{suffix}", tmp_path / "model.sol"):
                value = worth(problem, tiny(problem, seed), model.read(read_solution(tmp_path / "model.sol")))
                assert value is not None
                found.append(value)
        assert best(problem, found) == optimum(problem, seed)


def solve_file(path: Path, solution: Path) -> bool:
    """Solve a file with nothing of the house in between; whether a solution was written."""
    if path.suffix == ".pbtxt":
        model = cp_model.CpModel()
        text_format.Parse(path.read_text(), model.Proto())
        solver = cp_model.CpSolver()
        solver.parameters.num_workers = 1
        if solver.solve(model) != cp_model.OPTIMAL:
            return False
        solution.write_text(text_format.MessageToString(solver.ResponseProto()))
        return True
    engine = highspy.Highs()
    engine.setOptionValue("output_flag", False)
    engine.setOptionValue("presolve", "off")  # its presolve proves wrong optima of some segment-flow models
    engine.setOptionValue("mip_rel_gap", 0.0)  # by default it stops at 1e-4
    engine.readModel(str(path))
    engine.run()
    if engine.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        return False
    engine.writeSolution(str(solution), 0)
    return True
