"""Which rows switch, which models are refused, and what two engines prove together."""

import pulp
import pytest

from mapgap.core import Budget, SolveResult, Status, Stop
from mapgap.solvers.big_m import big_m
from mapgap.solvers.guard import GuardError
from mapgap.solvers.mip import MipModel, confirmed, solve
from mapgap.solvers.outcome import Outcome
from mapgap.solvers.turns import EngineError, in_turn


class Ordered(MipModel):
    """Two tasks on a machine: start of the first plus 3, unless the second precedes; a horizon of ``most``."""

    def __init__(self, most, engine="highs"):
        super().__init__("ordered", engine)
        self.b = pulp.LpVariable("b", cat="Binary")
        self.s = [pulp.LpVariable(f"s{k}", 0, most, cat="Integer") for k in range(2)]
        self.end = pulp.LpVariable("T", 0, most, cat="Integer")
        self.program += self.end
        self.program += self.s[1] >= self.s[0] + 3 - most * (1 - self.b)
        self.program += self.s[0] >= self.s[1] + 4 - most * self.b
        self.program += self.end >= self.s[0] + 3
        self.program += self.end >= self.s[1] + 4

    def assignment(self, plan):
        return None

    def plan(self, value):
        raise NotImplementedError


def test_the_coefficient_of_an_order_is_a_big_m():
    found = big_m(Ordered(50).program, above=1)
    assert (found.size, found.variable) == (50, "b")


def test_costs_memory_and_equations_are_none():
    x, y = (pulp.LpVariable(name, cat="Binary") for name in "xy")
    t, q = (pulp.LpVariable(name, 0, 10**9, cat="Integer") for name in "tq")
    program = pulp.LpProblem("p", pulp.LpMinimize)
    program += t
    program += t >= 10**8 * x + 10**8 * y  # a cost
    program += 10**7 * x + 10**7 * y <= 15 * 10**6  # a knapsack
    program += q == 10**8 * x  # a definition
    assert big_m(program, above=1) is None


def test_a_row_that_comes_later_is_looked_at_too():
    model = Ordered(50)
    assert model.switched().size == 50
    model.program += model.s[1] >= model.s[0] + 3 - 5_000_000 * (1 - model.b)
    with pytest.raises(GuardError, match=r"found 5e\+06 at b"):
        model.solve(Budget(10.0))


@pytest.mark.parametrize(("most", "refused"), [(4_999_999, False), (5_000_000, True)])
@pytest.mark.parametrize("engine", ["highs", "cbc"])
def test_from_half_a_unit_on_a_model_is_refused(most, refused, engine):
    model = Ordered(most, engine)
    if refused:
        with pytest.raises(GuardError, match=r"row .*expected big M below 5e\+06 .*found 5e\+06 at b"):
            model.solve(Budget(10.0))
    else:
        outcome = model.solve(Budget(10.0))
        assert (outcome.objective, outcome.bound) == (7, 7)


def test_no_engine_takes_over_where_a_row_has_a_big_m():
    assert Ordered(50).engines == ("highs",)
    assert Ordered(50, "cbc").engines == ("cbc",)
    assert Ordered(1, "cbc").engines == ("cbc", "highs")
    assert Ordered(1).engines == ("highs", "cbc")


def value(variable):
    return 0


def outcome(status, objective=None, bound=None, stop=Stop.PROVED):
    return Outcome(status, stop, objective, bound, value)


@pytest.mark.parametrize(
    ("first", "second", "status", "bound"),
    [
        (outcome(Status.OPTIMAL, 7, 7), outcome(Status.OPTIMAL, 7, 7), Status.OPTIMAL, 7),
        (outcome(Status.OPTIMAL, 7, 7), outcome(Status.FEASIBLE, 9, 5), Status.FEASIBLE, 5),
        (outcome(Status.OPTIMAL, 7, 7), outcome(Status.UNKNOWN), Status.FEASIBLE, None),
        (outcome(Status.OPTIMAL, 7, 7), outcome(Status.INFEASIBLE), Status.FEASIBLE, None),
        (outcome(Status.OPTIMAL, 7, 7), outcome(Status.OPTIMAL, 8, 8), Status.OPTIMAL, 7),
        (outcome(Status.INFEASIBLE), outcome(Status.INFEASIBLE), Status.INFEASIBLE, None),
        (outcome(Status.INFEASIBLE), outcome(Status.UNKNOWN, bound=4), Status.UNKNOWN, 4),
        (outcome(Status.UNKNOWN, bound=6), outcome(Status.UNKNOWN, bound=4), Status.UNKNOWN, 4),
    ],
)
def test_two_engines_prove_what_both_prove(first, second, status, bound):
    found = confirmed(first, second, value)
    assert (found.status, found.bound) == (status, bound)
    assert found.objective == first.objective


@pytest.mark.parametrize("first", [outcome(Status.INFEASIBLE), outcome(Status.OPTIMAL, 7, 7)])
def test_a_solution_refutes_the_other_engine(first):
    with pytest.raises(EngineError, match="but there is a solution of 6"):
        confirmed(first, outcome(Status.FEASIBLE, 6, 2), value)


def test_the_next_engine_is_asked_and_the_result_says_so():
    sound = SolveResult(Status.OPTIMAL, Stop.PROVED, bound=3)

    def ask(engine):
        if engine == "a":
            raise EngineError("claims bound 9 beside its own solution of 3")
        return sound

    found = in_turn(ask, ("a", "b"))
    assert (found.status, found.bound) == (Status.OPTIMAL, 3)
    assert found.notes["distrusted"] == ["a: claims bound 9 beside its own solution of 3"]
    assert in_turn(ask, ("b",)) == sound
    last = in_turn(ask, ("a",))
    assert (last.status, last.stop, last.bound) == (Status.UNKNOWN, Stop.DONE, None)
    assert last.reason == "a: claims bound 9 beside its own solution of 3"


def test_an_optimum_whose_last_digits_an_engine_cannot_see_is_not_proven():
    program = pulp.LpProblem("p", pulp.LpMinimize)
    t = pulp.LpVariable("t", 0, 10**8, cat="Integer")
    x = pulp.LpVariable("x", cat="Binary")
    program += t
    program += t >= 16_779_692 - x
    for engine in ("highs", "cbc"):
        found = solve(program, Budget(10.0), engine)
        assert (found.status, found.objective) == (Status.FEASIBLE, 16_779_691)
        assert found.bound < 16_779_691
