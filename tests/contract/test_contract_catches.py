"""The contract's own test: what is put wrong in the example, on purpose, it finds."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from announced import announce_project

from mapgap.contract.seeds import some

PROJECT = Path(__file__).parents[2] / "examples" / "gpu_placement"
FAILED = re.compile(r"^(?:FAILED|ERROR) .*::(\w+)", re.MULTILINE)

if not PROJECT.is_dir():
    pytest.skip("the examples are not part of a wheel", allow_module_level=True)

#: Which module of the contract, which file, what stands there, what is put there instead, which test must fail.
WRONG = {
    "a plan that the enumeration leaves out": (
        "test_contract",
        (
            "enumerate.py",
            "if budget.exhausted:",
            "if gpus[0] == gpus[-1]:\n            continue\n        if budget.exhausted:",
        ),
        "test_plan_is_feasible_and_bound_is_valid",
    ),
    "a bound that is too good": (
        "test_contract",
        ("area_bound.py", "bound = -(-SCALE * sum", "bound = -2 * (-SCALE * sum"),
        "test_plan_is_feasible_and_bound_is_valid",
    ),
    "a heuristic that claims to be optimal": (
        "test_cross_check",
        ("first_fit.py", "Status.FEASIBLE", "Status.OPTIMAL"),
        "test_engines_and_brute_force_agree",
    ),
    "instances that differ from run to run": (
        "test_library",
        ("instances/families.py", 'random.Random(f"gpus-small-{seed}")', "random.Random()"),
        "test_same_seed_same_instance",
    ),
    "a case that is forgotten": (
        "test_library",
        ("instances/parts.py", '{"apart": (*instance.apart, (a, b))}', '{"together": (*instance.together, (a, b))}'),
        "test_the_best_case_is_the_optimum",
    ),
    "a row that says nothing": (
        "test_models",
        ("cpsat.py", "self.program.add(self.x[i, a] == self.x[i, b])", "pass"),
        "test_fixed_to_a_plan_a_model_says_what_the_evaluator_says",
    ),
    "an implied row that is called needed": (
        "test_models",
        ("cpsat.py", "@row(6, implied=True)", "@row(6)"),
        "test_every_row_is_needed_and_implied_ones_change_nothing",
    ),
    "a needed row that is called implied": (
        "test_models",
        ("mip.py", "@row(5)", "@row(5, implied=True)"),
        "test_every_row_is_needed_and_implied_ones_change_nothing",
    ),
    "a plan that is read from the wrong variables": (
        "test_models",
        ("mip.py", "value(self.x[i, j])) for j", "value(self.x[i, j - 1])) for j"),
        "test_a_plan_is_a_hint_and_comes_back",
    ),
    "a relation that does not hold": (
        "test_relations",
        ("instances/parts.py", "tuple(2 * size for size in instance.sizes)", "instance.sizes"),
        "test_the_optimum_follows_from_that_of_the_other_instance",
    ),
}


@pytest.mark.in_turn
@pytest.mark.parametrize("name", some(2, list(WRONG)))
def test_the_contract_finds(name, tmp_path):
    module, (file, right, wrong), expected = WRONG[name]
    announce_project(tmp_path / "site", PROJECT)
    shutil.copytree(PROJECT / "src", tmp_path / "src")
    path = tmp_path / "src" / "gpu_placement" / file
    assert path.read_text().count(right) == 1
    path.write_text(path.read_text().replace(right, wrong))
    # By night and day: which cases a day takes turns with the commit, and this test must not.
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "no:cacheprovider",
        "--tb=no",
        "-rfE",
        "-m",
        "nightly or not nightly",
    ]
    done = subprocess.run(
        [*command, "--pyargs", f"mapgap.contract.{module}", "-k", f"gpu_placement and {expected}"],
        cwd=tmp_path,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(tmp_path / "site"), str(tmp_path / "src")]),
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    assert expected in FAILED.findall(done.stdout), done.stdout[-2000:]
