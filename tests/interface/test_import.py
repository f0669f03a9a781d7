"""What ``import mapgap`` costs and shows."""

import subprocess
import sys
from types import ModuleType

import pytest

import mapgap
from mapgap.core import Problem

HEAVY = {
    *("numpy", "numba", "pandas", "matplotlib", "ortools", "pulp", "highspy", "pydantic", "yaml", "rich", "typer"),
    *("mapgap.core", "mapgap.problems", "mapgap.interface"),
}


def in_a_new_process(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=900)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_import_loads_nothing_of_the_house_and_no_library():
    in_a_new_process(f"import sys, mapgap; loaded = {HEAVY!r} & set(sys.modules); assert not loaded, loaded")


def test_import_takes_a_few_milliseconds():
    # Of the processor's time, best of several: other processes may hold the core.
    code = "import time; a = time.process_time(); import mapgap; print(time.process_time() - a)"
    assert min(float(in_a_new_process(code)) for _ in range(5)) < 0.05


def test_loading_an_instance_needs_no_solver_and_no_plots():
    in_a_new_process(
        "import sys, mapgap; mapgap.load('elfish_lenet_straggler1')\n"
        "loaded = {'ortools', 'pulp', 'highspy', 'numba', 'matplotlib', 'pandas', 'rich', 'typer'} & set(sys.modules)\n"
        "assert not loaded, loaded"
    )


def test_every_public_name_is_there_and_documented():
    assert set(mapgap.__all__) <= set(dir(mapgap))
    for name in mapgap.__all__:
        thing = getattr(mapgap, name)
        assert name.startswith("__") or thing.__doc__, name


@pytest.mark.in_turn
def test_every_public_name_can_be_imported_from_the_package():
    in_a_new_process(f"from mapgap import {', '.join(name for name in mapgap.__all__)}")
    in_a_new_process("from mapgap import *; load, solve, problems")


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'solv'"):
        _ = mapgap.solv


@pytest.mark.in_turn
@pytest.mark.parametrize("name", ["problems", "instances"])
@pytest.mark.parametrize("first", ["", "import mapgap.{}.neuron_masking; ", "from mapgap.{} import neuron_masking; "])
def test_packages_that_list_what_they_hold(name, first):
    # Whatever was imported before, the name is both the package and the function.
    code = f"{first.format(name)}import mapgap; print(len(mapgap.{name}())); import mapgap.{name}.neuron_masking as n; "
    assert int(in_a_new_process(f"{code}assert n is mapgap.{name}.neuron_masking")) > 0


def test_problems_are_mappings_and_packages():
    assert isinstance(mapgap.problems, ModuleType)
    assert all(isinstance(each, Problem) for each in mapgap.problems().values())
