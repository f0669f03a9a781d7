"""docs/measured_profiles.md does what it says: its scripts run, and what they write is solved by every method."""

import runpy
import shutil
from pathlib import Path

import pytest

from mapgap.catalogue import registry
from mapgap.catalogue.files import check_file
from mapgap.core import Budget, Status
from mapgap.execution.run import run_method

SCRIPTS = Path(__file__).parents[2] / "docs" / "measured"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The tables, the scripts, and the instances that these write."""
    if not SCRIPTS.is_dir():
        pytest.skip("the pages are not part of a wheel")
    folder = tmp_path_factory.mktemp("measured") / "measured"
    shutil.copytree(SCRIPTS, folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.syspath_prepend(str(folder))
        for script in sorted(folder.glob("*.py")):
            runpy.run_path(str(script))
    return folder


def test_the_page_names_every_script():
    page = (SCRIPTS.parent / "measured_profiles.md").read_text()
    names = {path.name for path in SCRIPTS.glob("*.py")} - {"tables.py"}
    assert {name for name in names if f"](measured/{name})" in page} == names


def test_one_instance_of_every_problem_of_the_house(folder):
    assert {check_file(path).problem for path in folder.glob("*.yaml")} == set(registry.house())


@pytest.mark.parametrize("problem", registry.house())
def test_exact_methods_agree_and_no_heuristic_is_better(folder, problem):
    instance = next(i for i in map(check_file, sorted(folder.glob("*.yaml"))) if i.problem == problem)
    methods = registry.methods(problem)
    # Orders on two FPGAs are too many to enumerate, even for three layers.
    check = "cpsat" if problem == "suboperation_mapping" else "enumerate"
    optimum = run_method(instance, methods[check], Budget(60.0), isolate=False)
    assert optimum.status == Status.OPTIMAL
    exact = run_method(instance, registry.strongest_exact(problem), Budget(60.0), isolate=False)
    assert (exact.status, exact.objective) == (Status.OPTIMAL, optimum.objective)
    sign = -1 if optimum.sense == "max" else 1
    for method in methods.values():
        if method.kind == "published":
            found = run_method(instance, method, Budget(60.0), isolate=False)
            assert not found.error
            assert found.objective is None or sign * found.objective >= sign * optimum.objective


def test_measured_points_are_kept_and_lines_lie_between(folder):
    names = runpy.run_path(str(folder / "tables.py"))
    assert names["table"]({1: 10.0, 3: 20.0, 4: 19.0}, 4) == (10, 15, 20, 20)
