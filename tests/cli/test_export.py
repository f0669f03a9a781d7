"""``mapgap export`` and ``mapgap check --solution``: out to another solver and back, as a user goes."""

import json
from pathlib import Path

import highspy
import pytest
from cli_support import inside, mapgap, tiny
from google.protobuf import text_format
from ortools.sat.python import cp_model

from mapgap.catalogue import files

PLUGIN = Path(__file__).parents[1] / "support" / "model_plugin.py"
ON_A, ON_B = 58, 114  # ticks; see cli_support.tiny


@pytest.fixture(scope="module")
def instance(tmp_path_factory):
    return files.save_expanded(tiny(), tmp_path_factory.mktemp("export") / "tiny.yaml")


def export(instance, path, *more):
    return inside("export", instance, "-o", path, "--plugin", PLUGIN, *more)


def check(instance, *more):
    return inside("check", instance, "--plugin", PLUGIN, *more)


def solve_elsewhere(path, solution):
    """With HiGHS or CP-SAT, and nothing of mapgap."""
    if path.suffix == ".pbtxt":
        model = cp_model.CpModel()
        text_format.Parse(path.read_text(), model.Proto())
        solver = cp_model.CpSolver()
        solver.solve(model)
        solution.write_text(text_format.MessageToString(solver.ResponseProto()))
        return
    engine = highspy.Highs()
    engine.setOptionValue("output_flag", False)
    engine.readModel(str(path))
    engine.run()
    engine.writeSolution(str(solution), 0)


@pytest.mark.parametrize(("model", "suffix"), [("t_mip", ".lp"), ("t_mip", ".mps"), ("t_cpsat", ".pbtxt")])
def test_out_to_another_solver_and_back(instance, tmp_path, model, suffix):
    path, solution, plan = tmp_path / f"m{suffix}", tmp_path / "m.sol", tmp_path / "plan.json"
    done = export(instance, path, "--model", model)
    assert (done.returncode, len(done.stdout.splitlines())) == (0, 1)
    assert str(path) in done.stdout
    solve_elsewhere(path, solution)
    done = check(instance, "--solution", solution, "--model", model, "-o", plan, "--json")
    found = json.loads(done.stdout)
    assert (done.returncode, found["feasible"], found["objective"]) == (0, True, ON_A)
    again = inside("check", instance, plan, "--json")
    assert json.loads(again.stdout)["objective"] == ON_A


def test_the_lp_file_is_legible(instance, tmp_path):
    export(instance, tmp_path / "m.lp", "--model", "t_mip")
    text = (tmp_path / "m.lp").read_text()
    assert "OBJ: 58 use_A + 114 use_B" in text
    assert "r01_1_one_accelerator: use_A + use_B = 1" in text


def test_the_line_says_how_the_objective_follows_from_the_file(instance, tmp_path):
    done = export(instance, tmp_path / "m.pbtxt", "--model", "t_cpsat")
    assert done.stdout.endswith(": 1 variables, 1 constraints; objective = the file's + 58\n")
    (entry,) = json.loads(export(instance, tmp_path / "m.pbtxt", "--model", "t_cpsat", "--json").stdout)["files"]
    assert entry == {
        "path": str(tmp_path / "m.pbtxt"),
        "part": "",
        "variables": 1,
        "constraints": 1,
        "sign": 1,
        "constant": 58,
    }


def test_several_programs_are_named_or_all_written(instance, tmp_path):
    path, solution = tmp_path / "m.lp", tmp_path / "m.sol"
    several = export(instance, path, "--model", "t_parts")
    assert (several.returncode, path.exists()) == (2, False)
    assert "the instance has 2 integer programs ('only A', 'only B')" in several.stderr
    done = export(instance, path, "--model", "t_parts", "--part", "*")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["m_only_A.lp", "m_only_B.lp"]
    assert [line.partition(" (")[2][:6] for line in done.stdout.splitlines()] == ["only A", "only B"]
    assert export(instance, path, "--model", "t_parts", "--part", "only B").returncode == 0
    assert path.read_text() == (tmp_path / "m_only_B.lp").read_text()
    solve_elsewhere(path, solution)
    done = check(instance, "--solution", solution, "--model", "t_parts", "--part", "only B", "--json")
    assert json.loads(done.stdout)["objective"] == ON_B
    unsaid = check(instance, "--solution", solution, "--model", "t_parts")
    assert unsaid.returncode == 2
    assert "name one" in unsaid.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["m.lp", "--model", "t_mpi"], "did you mean 't_mip'?"),
        (["m.lp", "--model", "single"], "that has an integer program"),
        (["m.pbtxt", "--model", "t_mip"], "expected a file name in .lp, .mps"),
        (["m.lp", "--model", "t_cpsat"], "expected a file name in .pbtxt"),
        (["m.lp", "--model", "t_parts", "--part", "only C"], "expected one of 'only A', 'only B'; found 'only C'"),
        (["m.lp", "--model", "t_parts", "--part", "C*"], "found 'C*'"),
        (["m.lp", "--model", "t_mip", "--objective", "energy"], "one objective only"),
        (["nowhere/m.lp", "--model", "t_mip"], "an existing folder"),
    ],
)
def test_bad_exports_are_one_message(instance, tmp_path, monkeypatch, arguments, words):
    monkeypatch.chdir(tmp_path)
    done = export(instance, *arguments)
    assert done.returncode == 2
    assert words in done.stderr
    assert done.stderr.count("error: ") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "expected one of them, found none"),
        (["plan.json", "--solution", "m.sol"], "found both"),
        (["plan.json", "--model", "t_mip"], "expected --solution with them"),
        (["--solution", "nothing.sol"], "expected a readable file, found: nothing there"),
        (["--solution", "strange.sol", "--model", "t_mip"], "found 'use_C'"),
        (["--solution", "rough.sol", "--model", "t_mip"], "use_A: expected an integer, found 0.5"),
        (["--solution", "none.sol", "--model", "t_mip"], "found none of a plan"),
        (["--solution", "strange.sol", "--model", "t_cpsat"], "expected values of 1 variables, found 2"),
        (["--solution", "strange.sol", "--model", "t_parts", "--part", "*"], "expected the label of one part"),
        (["--solution", "good.sol", "--model", "t_mip", "-o", "nowhere/p.json"], "an existing folder"),
    ],
)
def test_bad_solutions_are_one_message(instance, tmp_path, monkeypatch, arguments, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "strange.sol").write_text("use_A 1\nuse_C 1\n")
    (tmp_path / "rough.sol").write_text("use_A 0.5\nuse_B 0.5\n")
    (tmp_path / "none.sol").write_text("use_A 0\n")
    (tmp_path / "good.sol").write_text("use_A 1\n")
    done = check(instance, *arguments)
    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_a_place_that_cannot_be_written_is_one_message(instance, tmp_path):
    done = export(instance, "/proc/m.lp", "--model", "t_mip")
    assert (done.returncode, done.stderr.count("error: ")) == (2, 1)
    assert "expected a file that can be written" in done.stderr
    (tmp_path / "good.sol").write_text("use_A 1\n")
    done = check(instance, "--solution", tmp_path / "good.sol", "--model", "t_mip", "-o", "/proc/p.json")
    assert (done.returncode, done.stderr.count("error: ")) == (2, 1)


def test_a_solution_that_breaks_a_rule_of_the_problem_exits_5(tmp_path):
    # The program of the plug-in knows nothing of memory; the evaluator does.
    small = files.save_expanded(tiny(memory=1), tmp_path / "small.yaml")
    (tmp_path / "m.sol").write_text("use_A 1\n")
    done = check(small, "--solution", tmp_path / "m.sol", "--model", "t_mip")
    assert done.returncode == 5
    assert "violation: " in done.stderr


@pytest.mark.in_turn
def test_in_a_process_of_its_own(instance, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(PLUGIN.parent))  # the plug-in imports its neighbour
    done = mapgap("export", instance, "-o", tmp_path / "m.lp", "--model", "t_mip", "--plugin", PLUGIN)
    assert done.returncode == 0
    assert (tmp_path / "m.lp").exists()
