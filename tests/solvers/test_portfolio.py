"""What stands on the board of a portfolio, and who is named for it."""

import pytest

from mapgap.catalogue import registry
from mapgap.contract.known import sign
from mapgap.contract.seeds import seeds, some
from mapgap.core import Budget, Evaluation, PlanBase, PlanError, SolveResult, Status, Stop, Violation
from mapgap.execution.run import run_method
from mapgap.solvers.portfolio import Board, Member, Portfolio

PROBLEMS = [name for name in registry.problems() if "portfolio" in registry.methods(name)]


@pytest.mark.parametrize("problem", PROBLEMS)
def test_a_plan_to_start_from_is_the_first_plan_and_named_where_nobody_finds_a_better_one(problem, tmp_path):
    methods, library = registry.methods(problem), registry.library(problem)
    instance = next(
        each
        for each in (library.generate("tiny", seed) for seed in range(20))
        if methods["enumerate"].solve(each, Budget(60.0).start()).plan is not None
    )
    best = methods["enumerate"].solve(instance, Budget(60.0).start()).plan
    file = tmp_path / "plan.json"
    file.write_text(best.model_dump_json())
    record = run_method(instance, "portfolio", Budget(60.0), options={"start": str(file)}, isolate=False)
    assert record.status == "OPTIMAL"
    assert record.found_by == "start"
    assert record.proved_by in methods["portfolio"].members


@pytest.mark.in_turn
@pytest.mark.parametrize("problem", PROBLEMS)
def test_the_record_names_who_found_the_plan_and_who_proved_the_bound(problem):
    record = run_method(registry.library(problem).generate("small", 3), "portfolio", Budget(2.0), isolate=False)
    members = registry.methods(problem)["portfolio"].members
    assert {record.found_by, record.proved_by} <= set(members)
    assert set(record.notes["used_s"]) <= set(members)


@pytest.mark.parametrize("seed", seeds(2, 40))
@pytest.mark.parametrize("problem", PROBLEMS)
def test_without_time_there_is_a_bound_and_no_false_word(problem, seed):
    methods, instance = registry.methods(problem), registry.library(problem).generate("tiny", seed)
    truth, none = (
        methods[name].solve(instance, Budget(s).start()) for name, s in (("enumerate", 60.0), ("portfolio", 0.0))
    )
    if truth.status is Status.INFEASIBLE:
        assert none.status in (Status.INFEASIBLE, Status.UNKNOWN)
    else:
        assert sign(problem) * none.bound <= sign(problem) * truth.claimed


FAMILIES = {
    "fpga_gpu_partition": ("realistic", "small"),
    "hybrid_pipeline": ("small", "realistic", "executions", "distinct"),
    "layer_flow": ("small", "realistic", "cluster"),
    "multi_model_splitting": ("small", "full", "wearables_6x4", "mixed_10x8", "large_models_20x16"),
    "neuron_masking": ("small", "fleet", "realistic", "scaling"),
    "suboperation_mapping": ("small", "branching", "realistic"),
}


@pytest.mark.parametrize("seed", seeds(1, 4))
@pytest.mark.parametrize(("problem", "family"), some(2, [(name, each) for name in FAMILIES for each in FAMILIES[name]]))
def test_no_heuristic_is_better(problem, family, seed):
    """Heuristics for a second; the portfolio for as long as all of them and a little more, whatever else happens."""
    instance, spec = registry.library(problem).generate(family, 720 + seed), registry.problems()[problem]
    begun, plans = Budget(300.0).start(), {}
    for method in registry.methods(problem).values():
        if method.kind in ("published", "baseline"):
            plans[method.name] = method.solve(instance, Budget(1.0).start()).plan
    found = registry.methods(problem)["portfolio"].solve(instance, Budget(5.0 + begun.elapsed_s).start())
    s = sign(problem)
    for name, plan in plans.items():
        assert plan is None or s * found.claimed <= s * spec.evaluate(instance, plan).objective, name


def test_who_has_worked_least_for_their_share_is_next(monkeypatch):
    # On a clock on which every piece takes a second, shares of 4 and 1/2 are eight pieces to one: the first piece of
    # each, then four times eight and one, then two of the first member.
    now, turns = [0.0], []
    monkeypatch.setattr("time.perf_counter", lambda: now[0])

    def steps(name):
        def work(board):
            while len(turns) < 40:
                turns.append(name)
                now[0] += 1.0
                yield

        return work

    board = Board(None, Budget(60.0).start(), lambda instance, plan: None)
    Portfolio(first=[], turns=[Member("often", steps("often"), 4.0), Member("rarely", steps("rarely"), 0.5)]).run(board)
    assert turns == ["often", "rarely"] + 4 * (8 * ["often"] + ["rarely"]) + 2 * ["often"]


def test_processes_are_tended_while_others_work():
    # After each of three pieces of the other member, and in the name of whose they are: bounds 1 to 3, the last of
    # which closes the run before the member with the processes has a second turn.
    turns, names = [], []

    def steps(name):
        def work(board):
            while True:
                turns.append(name)
                yield

        return work

    def tend():
        names.append(board.budget.by)
        board.prove(len(names))

    board = Board(None, Budget(60.0).start(), lambda instance, plan: Evaluation(3), start=PlanBase())
    members = [Member("processes", steps("processes"), 1e-9, tend), Member("other", steps("other"))]
    found = Portfolio(first=[], turns=members).run(board)
    assert turns == ["processes"] + 3 * ["other"]
    assert names == 3 * ["processes"]
    assert (found.status, found.bound) == (Status.OPTIMAL, 3)


def test_plans_that_are_announced_are_weighed_when_somebody_asks():
    worth = {1: 5, 2: 9, 3: 4}
    seen, told = [], []

    class Numbered(PlanBase):
        number: int

    def evaluate(instance, plan):
        seen.append(plan.number)
        return Evaluation(worth[plan.number])

    board = Board(None, Budget(60.0, listener=lambda plan, bound: told.append(plan.number)).start(), evaluate)
    ours = board.listened()
    for number in (1, 2):
        ours.report(plan=Numbered(number=number))
    assert (seen, told) == ([], [1, 2])
    assert board.value == 5  # the better of both, whichever came last
    assert (board.plan.number, seen) == (1, [1, 2])
    ours.report(plan=Numbered(number=2))
    board.take(SolveResult(Status.FEASIBLE, Stop.DONE, Numbered(number=3), claimed=4))  # speaks for all
    assert (board.value, seen) == (4, [1, 2, 3])


@pytest.mark.parametrize("lie", [{"violations": (Violation("memory", "b", 1, "too much"),)}, {"objective": 7}])
def test_a_member_whose_plan_is_not_what_it_says_fails_the_portfolio(lie):
    # Another member's good plan must not cover it up: either it breaks a rule, or it claims 6 for a plan of 7.
    def evaluate(instance, plan):
        return Evaluation(**{"objective": 6, **lie})

    def liar(board):
        board.take(SolveResult(Status.FEASIBLE, Stop.DONE, PlanBase(), claimed=6))
        yield

    board = Board(None, Budget(5.0).start(), evaluate)
    with pytest.raises(PlanError, match="liar"):
        Portfolio(first=[Member("liar", liar)]).run(board)


@pytest.mark.parametrize(("seconds", "known", "named"), [(0.0, None, "quick"), (60.0, 3, "slow")])
def test_the_last_member_gives_a_bound_where_nobody_has(seconds, known, named):
    def slow(board):
        board.prove(known)
        yield

    def quick(board):
        board.prove(2)
        yield

    told = []
    run = Budget(seconds).start()
    board = Board(None, run, lambda instance, plan: None)
    run.listener = lambda plan, bound: told.append((run.by, bound))
    found = Portfolio(first=[Member("slow", slow)], last=Member("quick", quick)).run(board)
    assert told == [(named, found.bound)]
    assert found.bound == (known or 2)
    assert set(found.notes["used_s"]) == ({"slow", "quick"} if known is None else {"slow"})
