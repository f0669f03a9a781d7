"""What every integer program of the registry keeps: numbered rows, one point per plan, no row too many or too few."""

import random
import re
from functools import cache

import pytest

from mapgap.catalogue import registry
from mapgap.core import Budget, InputError, Status, resolve
from mapgap.solvers.model import prove, read_solution

SEEDS = range(8)
FLIP_SEEDS = range(120)
CASES = [
    (problem, method.name)
    for problem in registry.problems()
    for method in registry.methods(problem).values()
    if method.models is not None
]


@cache
def tiny(problem, seed):
    return registry.library(problem).generate("tiny", seed)


@cache
def parts(problem, name, seed):
    return resolve(registry.methods(problem)[name].models)(tiny(problem, seed))


@cache
def posed(problem, name, seed):
    """Whether the method has programs for the instance; it refuses an objective that is not linear."""
    try:
        parts(problem, name, seed)
    except InputError:
        return False
    return True


def better(problem, values):
    """The best of some objectives; ``None`` for none."""
    values = [value for value in values if value is not None]
    pick = max if registry.problems()[problem].sense == "max" else min
    return pick(values) if values else None


def solved(model):
    """The optimum of one program in the instance's terms; ``None`` if it has no point, a word if it is not solved."""
    outcome = model.solve(Budget(time_s=30.0).start())
    if outcome.status is Status.INFEASIBLE:
        return None
    return model.objective(outcome.objective) if outcome.status is Status.OPTIMAL else "unbounded"


@cache
def optimum(problem, name, seed, complete=False, without=()):
    """The best optimum of all parts."""
    found = [solved(part.build(complete=complete, without=without)) for part in parts(problem, name, seed)]
    return "unbounded" if "unbounded" in found else better(problem, found)


def truth(problem, seed):
    """The optimum by brute force; ``None`` without a plan."""
    result = registry.methods(problem)["enumerate"].solve(tiny(problem, seed), Budget(time_s=60.0).start())
    assert result.enumerated
    if result.plan is None:
        return None
    return registry.problems()[problem].evaluate(tiny(problem, seed), result.plan).objective


def kind_of(problem, name):
    """The model class; one that appears in every instance that has a part."""
    found = next(part for seed in FLIP_SEEDS if posed(problem, name, seed) for part in parts(problem, name, seed))
    return type(found.build())


@pytest.mark.parametrize("problem", registry.problems())
def test_cpsat_and_mip_offer_their_models(problem):
    offered = {name for owner, name in CASES if owner == problem}
    assert {"cpsat", "mip"} & set(registry.methods(problem)) <= offered


@pytest.mark.parametrize(("problem", "name"), CASES)
def test_rows_are_numbered_in_the_program_and_in_the_code(problem, name):
    # From the equation in the docstring to the method that adds it, and back.
    model = kind_of(problem, name)
    numbers = [row.number for row in model.rows()]
    assert numbers == list(range(1, len(numbers) + 1))
    assert all(row.text for row in model.rows())
    stated = {int(number) for number in re.findall(r"^ *\((\d+)\)", model.__doc__, re.MULTILINE)}
    assert stated == set(numbers)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("problem", "name"), CASES)
def test_a_model_has_the_optimum_of_brute_force(problem, name, seed):
    if not posed(problem, name, seed):
        pytest.skip("the objective is not linear")
    expected = truth(problem, seed)
    assert optimum(problem, name, seed) == expected
    assert optimum(problem, name, seed, complete=True) == expected


@pytest.mark.parametrize(("problem", "name"), CASES)
def test_fixed_to_a_plan_a_model_says_what_the_evaluator_says(problem, name):
    # Feasible exactly when no rule is broken, and then with the same objective.
    spec, library = registry.problems()[problem], registry.library(problem)
    rng = random.Random(1)
    seen = {True: 0, False: 0}
    for seed in (seed for seed in range(20) if posed(problem, name, seed)):
        for _ in range(10):
            plan = library.random_plan(tiny(problem, seed), rng)
            assert plan is not None, "the library samples no plans"
            evaluation = spec.evaluate(tiny(problem, seed), plan)
            for part in parts(problem, name, seed):
                model = part.build(complete=True)
                if not model.fix(plan):
                    continue
                seen[evaluation.feasible] += 1
                assert solved(model) == (evaluation.objective if evaluation.feasible else None), (seed, plan)
    assert min(seen.values()) >= 10, f"too few plans with a point (feasible, infeasible): {seen}"


@pytest.mark.parametrize(("problem", "name"), CASES)
def test_every_row_is_needed_and_implied_ones_change_nothing(problem, name):
    # A flip test per row: without it the optimum of some tiny instance is another one (or there is one at last).
    for row in kind_of(problem, name).rows():
        flips = (
            seed
            for seed in (SEEDS if row.implied else FLIP_SEEDS)
            if posed(problem, name, seed)
            and optimum(problem, name, seed, True, (row.number,)) != optimum(problem, name, seed, True)
        )
        flipped = next(flips, None)
        assert (flipped is None) == row.implied, (row, flipped)


@pytest.mark.parametrize(("problem", "name"), CASES)
def test_a_plan_is_a_hint_and_comes_back(problem, name):
    spec = registry.problems()[problem]
    for seed in (seed for seed in SEEDS if posed(problem, name, seed)):
        for part in parts(problem, name, seed):
            first = prove(part.build(complete=True), Budget(time_s=30.0).start())
            if first.plan is None:
                continue
            again = part.build(complete=True)
            values = again.assignment(first.plan)
            assert values is not None, "a plan of the model has no point in it"
            second = prove(again, Budget(time_s=30.0).start(), start=first.plan)
            assert second.claimed == first.claimed == spec.evaluate(tiny(problem, seed), first.plan).objective


@pytest.mark.parametrize(("problem", "name"), CASES)
def test_a_written_model_solved_elsewhere_gives_the_same_optimum(problem, name, tmp_path):
    spec = registry.problems()[problem]
    solvable = (seed for seed in FLIP_SEEDS if posed(problem, name, seed) and truth(problem, seed) is not None)
    seed = next(solvable)
    for suffix in kind_of(problem, name).suffixes:
        found = []
        for part in parts(problem, name, seed):
            model = part.build()
            model.write(tmp_path / f"model{suffix}")
            if not solve_file(tmp_path / f"model{suffix}", tmp_path / "model.sol"):
                continue
            plan = model.read(read_solution(tmp_path / "model.sol"))
            evaluation = spec.evaluate(tiny(problem, seed), plan)
            assert evaluation.feasible
            found.append(evaluation.objective)
        assert better(problem, found) == truth(problem, seed)


def solve_file(path, solution):
    """Solve a file with nothing of the house in between; whether a solution was written."""
    if path.suffix == ".pbtxt":
        from google.protobuf import text_format
        from ortools.sat.python import cp_model

        model = cp_model.CpModel()
        text_format.Parse(path.read_text(), model.Proto())
        solver = cp_model.CpSolver()
        if solver.solve(model) != cp_model.OPTIMAL:
            return False
        solution.write_text(text_format.MessageToString(solver.ResponseProto()))
        return True
    import highspy

    engine = highspy.Highs()
    engine.setOptionValue("output_flag", False)
    engine.readModel(str(path))
    engine.run()
    if engine.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        return False
    engine.writeSolution(str(solution), 0)
    return True
