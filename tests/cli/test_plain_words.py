"""Plans, values and lists as people read them."""

import json

import pytest
from cli_support import inside

from mapgap.catalogue import registry
from mapgap.catalogue.files import load_instance, load_plan
from mapgap.catalogue.sizes import known_sizes, size_of
from mapgap.cli.words import standing
from mapgap.core import plainly, quantity
from mapgap.evidence.ledger import Known, Ledger, glance

ONE_OF_EACH = {
    "hybrid_pipeline": "asteroid_b_mobilenetv2_100mbps",
    "multi_model_splitting": "synergy_w1_any",
    "suboperation_mapping": "mtrain_c2_alexnet_3gbs",
    "fpga_gpu_partition": "dhm_squeezenet_fold4",
    "neuron_masking": "elfish_lenet_straggler1",
}


def test_every_problem_of_the_house_tells_its_plans():
    assert set(ONE_OF_EACH) == set(registry.house()) - {"layer_flow"}  # its layers are equal and have no names
    assert all(registry.problems()[name].describe is not None for name in registry.house())


@pytest.mark.parametrize("problem", ONE_OF_EACH)
def test_a_plan_is_told_by_names(problem):
    instance = load_instance(ONE_OF_EACH[problem])
    plan = load_plan(Ledger.load().plan_path(instance.name), problem)
    told = registry.problems()[problem].describe(instance, plan)
    assert set(told.right) <= set(told.columns)
    assert all(len(row) == len(told.columns) for row in told.rows)
    text = json.dumps(told.rows)
    layers = getattr(instance, "layers", None) or [y for p in instance.pipelines for y in p.layers]
    assert layers[0].name in text or problem == "suboperation_mapping"
    for field in ("devices", "accelerators"):
        assert all(each.name in text for each in getattr(instance, field, ())) or problem == "multi_model_splitting"


def test_stages_carry_what_the_evaluator_says():
    instance = load_instance("asteroid_b_mobilenetv2_100mbps")
    plan = load_plan(Ledger.load().plan_path(instance.name), "hybrid_pipeline")
    problem = registry.problems()["hybrid_pipeline"]
    steps = problem.evaluate(instance, plan).terms["steps"]
    rows = problem.describe(instance, plan).rows
    forward = [quantity(ticks * instance.seconds_per_tick, "s") for ticks in steps["forward"][::2]]
    assert [row[3] for row in rows] == forward


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (26_371_567, "ticks of 1000 ns", "26.37 s"),
        (58, "ticks of 1000 ns", "58 us"),
        (0, "ticks of 100 ns", "0 s"),
        (60_904, "1000 nJ", "60.9 mJ"),
        (7, "100 ns", "700 ns"),
        (234, "neurons", None),
        (18_934_410, "1000 nJ x 1000 ns", "18.93 mJ ms"),
    ],
)
def test_ticks_are_seconds_and_energy_is_joules(value, unit, text):
    assert plainly(value, unit) == text


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.99996, "s", "1 s"),
        (12_345, "s", "12,345 s"),
        (1_500_000_000, "B", "1.5 GB"),
        (0, "B", "0 B"),
        (3e-9, "s", "3 ns"),
    ],
)
def test_quantities_keep_four_digits(value, unit, text):
    assert quantity(value, unit) == text


def test_where_a_plan_stands_is_said_against_the_better_bound():
    known = Known("i", unit="ticks of 1000 ns", plan=110, bound=90)
    rows = standing(120, 100, known, 1)
    assert rows["best known"] == "110 ticks of 1000 ns (110 us), this plan is 9.1% off"
    assert rows["best bound"] == "100 ticks of 1000 ns (100 us), this plan is 20% off"
    assert standing(110, None, known, 1)["best known"].endswith("met by this plan")
    assert standing(105, None, known, 1)["best known"].endswith("this plan is better")
    assert standing(None, None, known, 1)["best bound"] == "90 ticks of 1000 ns (90 us)"


def test_a_glance_at_the_ledger_sees_what_the_ledger_says():
    glanced, loaded = glance(), Ledger.load().entries
    assert set(glanced) == set(loaded)
    for name, entry in loaded.items():
        known = glanced[name]
        assert (known.instance_hash, known.unit, known.sense) == (entry.instance_hash, entry.unit, entry.sense)
        assert known.plan == (entry.plan.value if entry.plan else None)
        assert known.bound == (entry.bound.value if entry.bound else None)
        assert known.certificate == (entry.certificate or "")


def test_sizes_of_the_library_are_those_of_its_instances():
    # python -m mapgap.catalogue.sizes writes them anew; an instance that is not in the file has no size in the list.
    sizes = known_sizes()
    names = sorted(sizes)[:: len(sizes) // 12]
    assert {name: size_of(load_instance(name)) for name in names} == {name: sizes[name] for name in names}


def test_lists_and_show_say_size_best_known_and_status(monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")
    listed = inside("list", "instances", "--tag", "elfish").stdout
    (row,) = [line for line in listed.splitlines() if " elfish_lenet_straggler1 " in line]
    assert "5 layers, 1 device" in row
    assert "234 neurons" in row
    assert "optimal" in row
    assert "instances of neuron_masking" in listed
    shown = inside("show", "elfish_lenet_straggler1").stdout
    assert "234 neurons" in shown
    assert "optimal (checked)" in shown


PLANNER = """
from mapgap.core import Method, SolveResult, Status, Stop
from mapgap.problems.neuron_masking import Mask, Plan

def run(instance, budget):
    mask = Mask(kept=tuple(layer.least for layer in instance.layers))
    plan = Plan(cycle=len(instance.cycle_ms) - 1, masks=(mask,) * len(instance.devices))
    return SolveResult(Status.FEASIBLE, Stop.DONE, plan)

METHODS = [Method("t_least", "neuron_masking", "baseline", "test", run)]
"""


@pytest.mark.in_turn
def test_a_method_without_a_bound_is_told_how_far_it_is_from_the_best_bound_known(tmp_path):
    plugin = tmp_path / "least.py"
    plugin.write_text(PLANNER)
    chart = tmp_path / "chart.svg"
    done = inside("solve", "elfish_lenet_straggler1", "--plugin", plugin, "-m", "t_least", "--gantt", chart)
    assert done.returncode == 0, done.stderr
    assert "best known  234 neurons, this plan is" in done.stdout
    assert "best bound  234 neurons, this plan is" in done.stdout
    assert f"chart written to {chart}" in done.stdout
    assert "conv1" in done.stdout


@pytest.mark.in_turn
def test_why_a_method_does_not_apply_is_said(monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    flags = ("-m", "cuts_only", "-m", "label_dp", "--time-limit", 20)
    shown = inside("solve", "asteroid_b_mobilenetv2_100mbps", *flags).stdout
    assert "cuts_only found nothing  the instance has no failure" in shown
