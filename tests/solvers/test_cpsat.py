"""The CP-SAT runner: its guard, statuses and bounds."""

import itertools
import random

import pytest
from ortools.sat.python import cp_model

from mapgap.core import Budget, Status, Stop
from mapgap.solvers.cpsat import solve
from mapgap.solvers.guard import GuardError, check_version


def assignment(seed: int, scale: int) -> tuple[cp_model.CpModel, int | None]:
    """Three to five items on two bins with memory limits; the model and the optimum by brute force."""
    rng = random.Random(seed)
    n = rng.randint(3, 5)
    size = [rng.randint(1, 9) * scale for _ in range(n)]
    cost = [[rng.randint(0, 9), rng.randint(0, 9)] for _ in range(n)]
    room = [rng.randint(5, 25) * scale for _ in range(2)]
    best = None
    for choice in itertools.product((0, 1), repeat=n):
        if all(sum(size[i] for i in range(n) if choice[i] == b) <= room[b] for b in (0, 1)):
            value = sum(cost[i][choice[i]] for i in range(n))
            best = value if best is None else min(best, value)
    model = cp_model.CpModel()
    x = [[model.new_bool_var(f"x[{i},{b}]") for b in (0, 1)] for i in range(n)]
    for row in x:
        model.add_exactly_one(row)
    for b in (0, 1):
        model.add(sum(size[i] * x[i][b] for i in range(n)) <= room[b]).with_name(f"memory[{b}]")
    model.minimize(sum(cost[i][b] * x[i][b] for i in range(n) for b in (0, 1)))
    return model, best


@pytest.mark.parametrize("scale", [1, 2**29])
def test_every_accepted_model_is_right(scale):
    """In bytes the engine may be wrong: the guard must refuse those models; whatever it accepts must be right."""
    accepted, named = 0, ""
    for seed in range(200):
        model, best = assignment(seed, scale)
        try:
            outcome = solve(model, Budget(time_s=100).start())
        except GuardError as error:
            named = str(error)
            continue
        accepted += 1
        assert outcome.objective == best
        assert outcome.status is (Status.INFEASIBLE if best is None else Status.OPTIMAL)
    assert accepted == 200 if scale == 1 else accepted < 200
    assert scale == 1 or "memory[" in named  # the refused row is named


def test_guard_reads_the_objective_and_counts_wide_variables():
    """The limit is on activity, not on coefficients; 2^31 - 1 is accepted and 2^31 is not."""
    for top, refused in ((2**30 - 1, False), (2**30, True)):
        model = cp_model.CpModel()
        a = model.new_int_var(0, top, "a")
        model.minimize(2 * a)
        if refused:
            with pytest.raises(GuardError, match="objective"):
                solve(model, Budget(time_s=1).start())
        else:
            assert solve(model, Budget(time_s=1).start()).objective == 0


def test_known_bad_release_is_refused():
    with pytest.raises(GuardError, match=r"9\.15"):
        check_version("ortools", "9.15.6755")
    check_version("ortools", "9.14.6206")


def test_a_run_that_is_out_of_time_proves_nothing():
    """Forty jobs on seven machines with no time at all: never OPTIMAL, and the bound stays below the objective."""
    rng = random.Random(1)
    model = cp_model.CpModel()
    x = [[model.new_bool_var("") for _ in range(7)] for _ in range(40)]
    top = model.new_int_var(0, 10**6, "top")
    for row in x:
        model.add_exactly_one(row)
    size = [rng.randint(1000, 9999) for _ in x]
    for m in range(7):
        model.add(sum(s * row[m] for s, row in zip(size, x, strict=True)) <= top)
    model.minimize(top)
    outcome = solve(model, Budget(time_s=0.05).start())
    assert outcome.status in (Status.FEASIBLE, Status.UNKNOWN)
    assert outcome.stop is Stop.TIME
    assert outcome.objective is None or outcome.bound <= outcome.objective


def test_an_engine_without_a_bound_states_none():
    """Stopped within its presolve, CP-SAT states the bound 0, which no objective below 0 has."""
    model = cp_model.CpModel()
    x = [model.new_int_var(1, 2000, f"x[{i}]") for i in range(300)]
    for a, b in itertools.pairwise(x):
        product = model.new_int_var(1, 4_000_000, "")
        model.add_multiplication_equality(product, [a, b])
        model.add(product + a <= 3_000_000)
    model.minimize(-sum(x))
    for time_s in (0.0, 0.05, 0.2):
        outcome = solve(model, Budget(time_s=time_s).start())
        # All at the square root of 3,000,000 is possible, so a bound above -300 * 1731 is wrong.
        assert outcome.bound is None or outcome.bound <= -300 * 1731
