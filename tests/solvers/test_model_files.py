"""Written models and solutions of other solvers: names that every reader takes, and every form of a solution file."""

import subprocess

import highspy
import pulp
import pytest
from google.protobuf import text_format
from ortools.sat.python import cp_model

from mapgap.core import InputError, PlanBase
from mapgap.solvers.cpsat import CpSatModel
from mapgap.solvers.mip import MipModel, legible
from mapgap.solvers.model import read_solution, row

NAMES = ["kept[conv1,2]", "x->y", "x__y", "e3", "free", "3rd", "model_0", "rows_2", "status", "objective", "dual"]


class Chosen(PlanBase):
    """Variables that are 1, by position."""

    ones: tuple[int, ...]


class Knapsack(MipModel):
    """Two of the variables at least, the last ones being cheaper, under names that file formats do not take."""

    def __init__(self):
        super().__init__("a name with blanks")
        self.x = [pulp.LpVariable(name, cat="Binary") for name in NAMES]
        self.program += pulp.lpSum((len(NAMES) - k) * x for k, x in enumerate(self.x))
        self.add_rows()

    @row(1)
    def two(self):
        """Two at least."""
        self.program += pulp.lpSum(self.x) >= 2, "(1) at least: two"

    @row(2)
    def others(self):
        """Not the last one with the first one."""
        self.program += self.x[0] + self.x[-1] <= 1

    def assignment(self, plan):
        return {x: int(k in plan.ones) for k, x in enumerate(self.x)}

    def plan(self, value):
        return Chosen(ones=tuple(k for k, x in enumerate(self.x) if value(x)))


class Switches(CpSatModel):
    """The same for CP-SAT."""

    def __init__(self):
        super().__init__()
        self.x = [self.program.new_bool_var(name) for name in NAMES]
        self.program.minimize(sum((len(NAMES) - k) * x for k, x in enumerate(self.x)))
        self.add_rows()

    @row(1)
    def two(self):
        """Two at least."""
        self.program.add(sum(self.x) >= 2)

    def assignment(self, plan):
        return {x: int(k in plan.ones) for k, x in enumerate(self.x)}

    def plan(self, value):
        return Chosen(ones=tuple(k for k, x in enumerate(self.x) if value(x)))


BEST = Chosen(ones=(len(NAMES) - 2, len(NAMES) - 1))


@pytest.mark.parametrize("style", [0, 1])
@pytest.mark.parametrize("suffix", [".lp", ".mps"])
def test_highs_reads_the_file_and_mapgap_reads_its_answer(tmp_path, suffix, style):
    Knapsack().write(tmp_path / f"m{suffix}")
    engine = highspy.Highs()
    engine.setOptionValue("output_flag", False)
    assert engine.readModel(str(tmp_path / f"m{suffix}")) == highspy.HighsStatus.kOk
    engine.run()
    engine.writeSolution(str(tmp_path / "m.sol"), style)
    assert Knapsack().read(read_solution(tmp_path / "m.sol")) == BEST


@pytest.mark.parametrize("suffix", [".lp", ".mps"])
def test_cbc_reads_the_file_and_mapgap_reads_its_answer(tmp_path, suffix):
    Knapsack().write(tmp_path / f"m{suffix}")
    cbc = pulp.PULP_CBC_CMD().path
    command = [cbc, str(tmp_path / f"m{suffix}"), "solve", "solu", str(tmp_path / "m.sol")]
    subprocess.run(command, check=True, capture_output=True)
    assert Knapsack().read(read_solution(tmp_path / "m.sol")) == BEST


def test_cpsat_answers_by_position(tmp_path):
    Switches().write(tmp_path / "m.pbtxt")
    assert 'name: "kept[conv1,2]"' in (tmp_path / "m.pbtxt").read_text()
    read = cp_model.CpModel()
    text_format.Parse((tmp_path / "m.pbtxt").read_text(), read.Proto())
    solver = cp_model.CpSolver()
    solver.solve(read)
    (tmp_path / "m.sol").write_text(text_format.MessageToString(solver.ResponseProto()))
    assert Switches().read(read_solution(tmp_path / "m.sol")) == BEST
    short = ", ".join("1" if k in BEST.ones else "0" for k in range(len(NAMES)))
    (tmp_path / "m.sol").write_text(f"status: OPTIMAL\nsolution: [{short}]\nobjective_value: 3\n")
    assert Switches().read(read_solution(tmp_path / "m.sol")) == BEST


def test_a_response_of_another_model_is_refused(tmp_path):
    (tmp_path / "m.sol").write_text("solution: 1\nsolution: 0\n")
    with pytest.raises(InputError, match=f"expected values of {len(NAMES)} variables, found 2"):
        Switches().read(read_solution(tmp_path / "m.sol"))


@pytest.mark.parametrize(
    "text",
    [
        "# Solution for model a\n# Objective value = 3\nmodel_0 1\nstatus 0\nrows_2 1e+00\n",  # Gurobi
        "solution status: optimal\nobjective value:   3\nmodel_0   1 \t(obj:2)\nrows_2 1.0 \t(obj:1)\n",  # SCIP
        "Optimal - objective value 3.00000000\n      6 model_0     1     5\n**    7 rows_2    1    4\n",  # CBC
        '<variables>\n <variable name="model_0" index="6" value="1"/>\n'
        ' <variable name="rows_2" index="7" status="x" value="1.0"/>\n</variables>\n',  # CPLEX
    ],
)
def test_forms_of_solution_files(tmp_path, text):
    (tmp_path / "m.sol").write_text(text)
    plan = Knapsack().read(read_solution(tmp_path / "m.sol"))
    assert plan == Chosen(ones=(NAMES.index("model_0"), NAMES.index("rows_2")))


@pytest.mark.parametrize("text", ["", "Infeasible\n", "no solution available\n", "# Columns 0\n"])
def test_a_file_without_values_is_refused(tmp_path, text):
    (tmp_path / "m.sol").write_text(text)
    with pytest.raises(InputError, match="expected lines of a variable's name and its value"):
        read_solution(tmp_path / "m.sol")


def test_strange_names_and_fractions_are_all_told(tmp_path):
    (tmp_path / "m.sol").write_text("model_0 0.5\nnobody 1\n")
    with pytest.raises(InputError) as caught:
        Knapsack().read(read_solution(tmp_path / "m.sol"))
    assert [word in str(caught.value) for word in ("'nobody'", "model_0: expected an integer, found 0.5")] == [True] * 2


@pytest.mark.parametrize("model", [Knapsack, Switches])
def test_a_place_that_cannot_be_written_is_one_message(tmp_path, model):
    suffix = model.suffixes[0]
    with pytest.raises(InputError, match="expected a file that can be written, found: No such file or directory"):
        model().write(tmp_path / "nowhere" / f"m{suffix}")
    with pytest.raises(InputError, match="expected a file name in"):
        model().write(tmp_path / "m.txt")


def test_names_are_legible_unique_and_stay_what_they_are():
    taken = set()
    names = [legible(name, taken) for name in NAMES]
    assert names[:6] == ["kept_conv1_2", "x_y", "x_y_2", "_e3", "_free", "_3rd"]
    assert len(set(names)) == len(NAMES)
    again = set()
    assert [legible(name, again) for name in names] == names
    assert len(legible("n" * 500, set())) <= 200


def test_constraints_are_named_after_the_numbered_rows(tmp_path):
    # From a line of the file to the equation in the model's docstring.
    Knapsack().write(tmp_path / "m.lp")
    names = [line.partition(":")[0] for line in (tmp_path / "m.lp").read_text().splitlines() if line.startswith("r0")]
    assert names == ["r01_1_at_least_two", "r02_others_1"]
    Switches().write(tmp_path / "m.pbtxt")
    assert 'name: "r01_two_1"' in (tmp_path / "m.pbtxt").read_text()


def test_number_of_constraints():
    assert Knapsack().row_count() == 2
    assert Switches().row_count() == 1
