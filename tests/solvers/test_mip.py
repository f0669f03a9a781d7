"""The MIP runner: statuses and bounds come from the engine."""

import itertools
import os
import random
import stat

import pulp
import pytest

from mapgap.core import Budget, MapgapError, Status, Stop
from mapgap.solvers.guard import GuardError, check_version
from mapgap.solvers.mip import MipModel, read_cbc_log, round_up, solve
from mapgap.solvers.turns import EngineError

ENGINES = ("highs", "cbc")


def knapsack(seed: int) -> tuple[pulp.LpProblem, int | None]:
    """Cover a demand at least cost; the model and the optimum by brute force."""
    rng = random.Random(seed)
    n = rng.randint(3, 6)
    size, cost = [rng.randint(1, 9) for _ in range(n)], [rng.randint(1, 9) for _ in range(n)]
    demand = rng.randint(5, 40)
    values = [
        sum(c for c, y in zip(cost, choice, strict=True) if y)
        for choice in itertools.product((0, 1), repeat=n)
        if sum(s for s, y in zip(size, choice, strict=True) if y) >= demand
    ]
    problem = pulp.LpProblem("cover", pulp.LpMinimize)
    x = [pulp.LpVariable(f"x{i}", cat="Binary") for i in range(n)]
    problem += pulp.lpSum(c * v for c, v in zip(cost, x, strict=True))
    problem += pulp.lpSum(s * v for s, v in zip(size, x, strict=True)) >= demand
    return problem, min(values, default=None)


@pytest.mark.parametrize("engine", ENGINES)
def test_against_brute_force(engine):
    """Optimal value, bound and infeasibility of 40 covering problems."""
    for seed in range(40):
        problem, best = knapsack(seed)
        outcome = solve(problem, Budget(time_s=100).start(), engine)
        assert outcome.objective == best, seed
        assert outcome.status is (Status.INFEASIBLE if best is None else Status.OPTIMAL), seed
        assert outcome.bound == best, seed


@pytest.mark.in_turn
@pytest.mark.parametrize("engine", ENGINES)
def test_time_limit_is_never_optimal(engine):
    """A market-split problem that needs far longer than its limit; PuLP itself may call this Optimal."""
    rng = random.Random(3)
    problem = pulp.LpProblem("split", pulp.LpMinimize)
    x = [pulp.LpVariable(f"x{i}", cat="Binary") for i in range(50)]
    gap = [(pulp.LpVariable(f"p{k}", 0), pulp.LpVariable(f"m{k}", 0)) for k in range(5)]
    problem += pulp.lpSum(p + m for p, m in gap)
    for p, m in gap:
        row = [rng.randint(0, 99) for _ in x]
        problem += pulp.lpSum(c * v for c, v in zip(row, x, strict=True)) + p - m == sum(row) // 2
    outcome = solve(problem, Budget(time_s=1).start(), engine)
    assert outcome.status in (Status.FEASIBLE, Status.UNKNOWN)
    assert outcome.bound is None or outcome.objective is None or outcome.bound <= outcome.objective


def test_log_of_a_stopped_run_is_feasible_only():
    text = "Result - Stopped on time limit\n\nObjective value:                27.00000000\nLower bound:  12.3\n"
    assert read_cbc_log(text) == (Status.FEASIBLE, 27.0, 13)
    assert read_cbc_log("") == (Status.UNKNOWN, None, None)


def test_bounds_round_up_but_not_over_noise():
    assert round_up(12.0000000001) == 12
    assert round_up(12.3) == 13
    assert round_up(float("-inf")) is None


def test_maximisation_is_refused():
    with pytest.raises(MapgapError, match="minimisation"):
        solve(pulp.LpProblem("m", pulp.LpMaximize), Budget(time_s=1).start())


def test_continuous_columns_beside_integer_ones():
    """The presolve of HiGHS 1.14.0 answers 10000 to the second model (ERGO-Code/HiGHS issue 3094)."""
    cover = pulp.LpProblem("cover", pulp.LpMinimize)
    x, z = pulp.LpVariable("x", 0, 10), pulp.LpVariable("z", 0, 10, cat="Integer")
    cover += 2 * x + 3 * z
    cover += 2 * x + 2 * z >= 10
    assert solve(cover, Budget(time_s=100).start()).objective == 10
    switch = pulp.LpProblem("switch", pulp.LpMinimize)
    done = [pulp.LpVariable(f"done{k}", 0, 1000) for k in range(2)]
    left = [pulp.LpVariable(f"left{k}", 0, 1000) for k in range(2)]
    on = [pulp.LpVariable(f"on{k}", cat="Binary") for k in range(2)]
    switch += 10 * left[0] + 8 * left[1]
    switch += on[0] + on[1] <= 1
    for k in range(2):
        switch += done[k] <= 1000 * on[k]
        switch += done[k] + left[k] == 1000
    assert solve(switch, Budget(time_s=100).start()).objective == 8000


def test_a_release_with_a_wrong_presolve_is_refused():
    with pytest.raises(GuardError, match=r"highspy 1\.14\.0.*3094"):
        check_version("highspy", "1.14.0")
    check_version("highspy", "1.13.1")


def pretended(monkeypatch, tmp_path, script):
    """Something else in place of CBC."""
    program = tmp_path / "cbc"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr(pulp.PULP_CBC_CMD, "pulp_cbc_path", str(program))


def test_cbc_is_killed_when_it_overlooks_its_limit(monkeypatch, tmp_path):
    """In the relaxation of 14,000 columns it went on for three minutes; this one would for ever."""
    pretended(monkeypatch, tmp_path, f"echo $$ > {tmp_path / 'process'}; exec tail -f /dev/null")
    problem, _ = knapsack(0)
    outcome = solve(problem, Budget(time_s=0.2).start(), "cbc")
    assert (outcome.status, outcome.stop, outcome.bound) == (Status.UNKNOWN, Stop.TIME, None)
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "process").read_text()), 0)


@pytest.mark.parametrize(("script", "words"), [("exit 3", "code 3"), ("exit 0", "no solution")])
def test_a_cbc_that_fails_is_no_answer(script, words, monkeypatch, tmp_path):
    pretended(monkeypatch, tmp_path, script)
    with pytest.raises(EngineError, match=words):
        solve(knapsack(0)[0], Budget(time_s=5).start(), "cbc")


class Cover(MipModel):
    """The fewest of many columns, but at least seven."""

    def __init__(self, engine):
        super().__init__("cover", engine)
        columns = [pulp.LpVariable(f"x{i}", cat="Binary") for i in range(2000)]
        self.program += pulp.lpSum(columns)
        self.program += pulp.lpSum(columns) >= 7

    def assignment(self, plan):
        raise NotImplementedError

    def plan(self, value):
        raise NotImplementedError


@pytest.mark.parametrize("engine", ENGINES)
def test_no_program_is_handed_over_without_the_time_for_it(engine, monkeypatch):
    """PuLP cannot be stopped while it hands a program over: 7 s for 180,000 columns, of which 3 were over the limit."""
    model, handed = Cover(engine), []
    for name in ("HiGHS", "PULP_CBC_CMD"):
        original = getattr(pulp, name)
        monkeypatch.setattr(pulp, name, lambda of=original, **options: handed.append(1) or of(**options))
    outcome = model.solve(Budget(time_s=0.0).start())
    assert (outcome.status, outcome.stop, outcome.bound, handed) == (Status.UNKNOWN, Stop.TIME, None, [])
    outcome = model.solve(Budget(time_s=60.0).start())
    assert (outcome.status, outcome.objective, outcome.bound, handed) == (Status.OPTIMAL, 7, 7, [1])
