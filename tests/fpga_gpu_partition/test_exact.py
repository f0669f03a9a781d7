"""Exact methods of the FPGA-GPU partition against brute force, against each other and against the evaluator."""

import random
from functools import cache
from itertools import pairwise, product

import numpy as np
import pytest

from mapgap.contract.seeds import seeds
from mapgap.core import Budget, InputError, OutOfTime, Status, Stop
from mapgap.formulations.fpga_gpu_partition import cpsat, enumerate, label_setting, mip, pareto_front, portfolio
from mapgap.formulations.fpga_gpu_partition.chain import chain, priced
from mapgap.formulations.fpga_gpu_partition.configurations import tabulate
from mapgap.formulations.fpga_gpu_partition.dominance import nondominated
from mapgap.formulations.fpga_gpu_partition.params import LabelSetting
from mapgap.formulations.fpga_gpu_partition.questions import Question, chord
from mapgap.heuristics.fpga_gpu_partition import paper_rule
from mapgap.instances.fpga_gpu_partition.families import networks, realistic, scaling, small, tiny
from mapgap.problems.fpga_gpu_partition import OBJECTIVES, PROBLEM, Plan
from mapgap.problems.fpga_gpu_partition.evaluate import evaluate

METHODS = {each.__name__.rpartition(".")[2]: each.run for each in (cpsat, mip, label_setting, pareto_front, portfolio)}


def budget(seconds=300.0):
    return Budget(time_s=seconds).start()


def front_of(points):
    """Non-dominated pairs, by comparison of all with all."""
    distinct = sorted(set(points))
    return [p for p in distinct if not any(q != p and q[0] <= p[0] and q[1] <= p[1] for q in distinct)]


@cache
def all_points(seed):
    """Energy and latency of every feasible plan of a tiny instance."""
    instance = tiny(seed)
    found = []
    for names in product(*([o.name for o in layer.options] for layer in instance.layers)):
        checked = evaluate(instance, Plan(options=names))
        if checked.feasible:
            found.append((checked.terms["energy"], checked.terms["latency"]))
    return found


@pytest.mark.in_turn
@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("seed", seeds(3, 14))
def test_all_methods_agree_under_every_objective(seed, objective):
    instance = PROBLEM.retarget(tiny(seed), objective)
    truth = enumerate.run(instance, budget())
    assert truth.enumerated
    for name, run in METHODS.items():
        result = run(instance, budget())
        assert (result.status, result.claimed, result.bound) == (truth.status, truth.claimed, truth.bound), name
        if result.plan is not None:
            assert evaluate(instance, result.plan).objective == truth.claimed, name
        else:
            assert result.reason, name


@pytest.mark.parametrize("engine", ["labels", "mip", "cpsat"])
@pytest.mark.parametrize("seed", seeds(4, 20))
def test_the_front_is_the_front_of_all_plans(seed, engine):
    # Also the infeasible seeds: no plan, no point.
    result = pareto_front.run(tiny(seed), budget(), engine)
    points = result.notes.get("front", [])
    assert [(p["energy"], p["latency"]) for p in points] == front_of(all_points(seed))
    assert result.status is (Status.OPTIMAL if points else Status.INFEASIBLE)


def verify_front(instance, points):
    """Every point is attained by its plan, by rising energy and falling latency."""
    for point in points:
        checked = evaluate(instance, Plan(options=tuple(point["options"])))
        assert checked.feasible
        assert (checked.terms["energy"], checked.terms["latency"]) == (point["energy"], point["latency"])
    for one, next_one in pairwise(points):
        assert one["energy"] < next_one["energy"]
        assert one["latency"] > next_one["latency"]


@pytest.mark.parametrize("seed", [0, 5])
def test_fronts_of_larger_instances_agree_and_verify(seed):
    instance = small(seed)
    labels, engine = (pareto_front.run(instance, budget(), e).notes for e in ("labels", "mip"))
    assert labels["front_complete"]
    assert engine["front_complete"]
    pairs = [[(p["energy"], p["latency"]) for p in notes["front"]] for notes in (labels, engine)]
    assert pairs[0] == pairs[1]
    assert len(pairs[0]) == {0: 1, 5: 3}[seed]  # one front of a single plan, one of several
    verify_front(instance, labels["front"])
    verify_front(instance, engine["front"])


@pytest.mark.in_turn
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_engines_agree_on_a_larger_instance(objective):
    # CP-SAT is left out of the product, for which it needs many questions.
    instance = PROBLEM.retarget(small(8), objective)
    values = {n: run(instance, budget()).bound for n, run in METHODS.items() if (n, objective) != ("cpsat", "edp")}
    assert len(set(values.values())) == 1, values


def test_thirty_modules():
    instance = PROBLEM.retarget(scaling(2), "energy")
    assert len(instance.modules) == 30
    results = [run(instance, budget()) for run in (label_setting.run, mip.run)]
    assert results[0].status is Status.OPTIMAL
    assert results[0].bound == results[1].bound


@pytest.mark.parametrize("seed", seeds(6, 60))
def test_configurations_lose_no_point_of_the_front(seed):
    # Every combination of configurations whose homes fit, against every plan: pruning must not change the front.
    instance = tiny(seed).model_copy(update={"latency_limit": None, "energy_limit": None})
    plans = []
    for names in product(*([o.name for o in layer.options] for layer in instance.layers)):
        checked = evaluate(instance, Plan(options=names))
        if checked.feasible:
            plans.append((checked.terms["energy"], checked.terms["latency"]))
    tables = tabulate(instance, budget())
    combined = []
    for choice in product(*(range(len(table)) for table in tables.modules)):
        plan = tables.plan(list(choice))
        if tables.choice(plan) != list(choice):
            continue  # homes of two modules differ, or an equal choice stands before it
        checked = evaluate(instance, plan)
        assert (checked.terms["energy"], checked.terms["latency"]) == tables.totals(list(choice))
        if checked.feasible:
            combined.append((checked.terms["energy"], checked.terms["latency"]))
    assert front_of(combined) == front_of(plans)


@pytest.mark.in_turn
@pytest.mark.parametrize("seed", range(6))
def test_narrow_passes_change_nothing(seed):
    # Widening from a single label must end at the same front as a search that never cuts.
    instance = small(seed)
    whole = pareto_front.run(instance, budget()).notes["front"]
    narrow = pareto_front.run(instance, budget(), params=LabelSetting(widths=(1, 7, 50, 10**7))).notes
    assert narrow["front_complete"]
    assert [(p["energy"], p["latency"]) for p in narrow["front"]] == [(p["energy"], p["latency"]) for p in whole]


@pytest.mark.in_turn
@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("width", [1, 64])
def test_the_plan_of_one_narrow_pass_lies_above_its_bound(width, objective):
    # 64 labels per module are all that a tiny instance has, so its best plan is found; one label may miss every plan.
    for seed in range(14):
        instance = PROBLEM.retarget(tiny(seed), objective)
        truth = enumerate.run(instance, budget())
        result = label_setting.run(instance, budget(), params=LabelSetting(widths=(width,)))
        if truth.claimed is None:
            assert result.plan is None
            continue
        assert result.bound is None or result.bound <= truth.claimed
        if width > 1:
            assert evaluate(instance, result.plan).objective == truth.claimed
        elif result.plan is not None:
            found = evaluate(instance, result.plan)
            assert found.feasible
            assert found.objective >= truth.claimed


@pytest.mark.parametrize("seed", [s for s in range(30) if all_points(s)])
def test_prices_bound_every_plan(seed):
    stages = chain(tabulate(tiny(seed), budget()))
    for energy_weight, latency_weight in ((1, 0), (0, 1), (3, 2)):
        price = priced(stages, energy_weight, latency_weight)
        least = int(stages.suffixes(price[None, :])[0][0, 0]) - int(
            price[2:] @ np.minimum(stages.room, stages.most[2:])
        )
        assert all(price[1] * e + price[0] * t >= least for e, t in all_points(seed))


def test_without_time_there_is_a_bound_and_the_plan_to_start_from():
    instance = small(1)
    optimum = label_setting.run(instance, budget()).bound
    with pytest.raises(OutOfTime):
        tabulate(instance, Budget(time_s=0.0).start())
    start = paper_rule.run(instance, budget()).plan
    for name, run in METHODS.items():
        if name == "portfolio":
            continue
        result = run(instance, Budget(time_s=0.0).start(), start=start)
        assert (result.status, result.stop, result.plan) == (Status.FEASIBLE, Stop.TIME, start)
        assert result.reason
        assert result.bound <= optimum <= evaluate(instance, result.plan).objective


@pytest.mark.in_turn
@pytest.mark.parametrize("name", ["cpsat", "mip", "label_setting"])
def test_a_plan_to_start_from_is_kept_where_nothing_better_is_found(name):
    instance = small(3)
    optimum = METHODS[name](instance, budget())
    again = METHODS[name](instance, budget(), start=optimum.plan)
    assert (again.status, again.bound) == (Status.OPTIMAL, optimum.bound)


@pytest.mark.in_turn
@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("seed", [s for s in range(30) if all_points(s)])
def test_the_bound_of_the_prices_holds_for_every_plan(seed, objective):
    instance = PROBLEM.retarget(tiny(seed), objective)
    stages = chain(tabulate(instance, budget()))
    bound = label_setting.Prices(stages, [(1.0, 0.0), (0.0, 1.0), (1.0, 3.0)]).bound()
    assert bound <= min(instance.value(e, t) for e, t in all_points(seed))


@pytest.mark.parametrize("make", [tiny, realistic, small])
@pytest.mark.parametrize("seed", range(8))
def test_a_plan_of_dropped_configurations_has_one_that_is_no_worse(make, seed):
    instance = make(seed)
    tables = tabulate(instance, budget())
    rng = random.Random(seed)
    for _ in range(40):
        plan = Plan(options=tuple(rng.choice(layer.options[:3]).name for layer in instance.layers))
        before = evaluate(instance, plan)
        if not before.feasible:
            continue
        after = evaluate(instance, tables.plan(tables.no_worse(plan)))
        assert after.feasible
        for name in ("energy", "latency", "multipliers", "m20k"):
            assert after.terms[name] <= before.terms[name]


def test_too_few_labels_leave_a_valid_bound():
    # Cut in every pass: the plan stays feasible, nothing is called optimal without proof, the bound is below.
    instance = PROBLEM.retarget(small(5), "edp")
    result = label_setting.run(instance, budget(), params=LabelSetting(widths=(2,)))
    optimum = mip.run(instance, budget()).bound
    assert result.bound <= optimum <= result.claimed
    assert result.status is (Status.OPTIMAL if result.bound == result.claimed else Status.FEASIBLE)


@pytest.mark.parametrize("models", [cpsat.models, mip.models])
def test_a_product_has_no_integer_program_and_the_linear_objectives_are_named(models):
    with pytest.raises(InputError, match=r"objective: expected a linear .*energy, latency, weighted.*'edp'"):
        models(PROBLEM.retarget(tiny(0), "edp"))


def test_an_unknown_engine_is_refused():
    with pytest.raises(InputError, match="labels"):
        pareto_front.run(tiny(0), budget(), "abacus")


def test_the_chord_touches_the_hyperbola_at_both_ends():
    # 100 * 40 = 200 * 20 = 4,000: from (40 energy, 100 ticks) to (20, 200) the slope is 0.2 energy per tick.
    energy_weight, latency_weight = chord(4000, 100, 200, 40, (40, 200))
    assert latency_weight / energy_weight == pytest.approx(0.2, rel=1e-3)
    assert chord(4000, 100, 100, 40, (40, 200)) == (1, 0)


@pytest.mark.parametrize(
    ("value", "first", "last", "ceiling", "reach"),
    [(4000, 100, 200, 40, (10**8, 10)), (10**17, 10, 10**6, 10**10, (10**9, 10**6)), (10**12, 1, 2, 10**12, (0, 0))],
)
def test_no_objective_along_a_chord_reaches_what_engines_get_wrong(value, first, last, ceiling, reach):
    energy_weight, latency_weight = chord(value, first, last, ceiling, reach)
    assert energy_weight >= 1
    assert energy_weight * reach[0] + latency_weight * reach[1] < 2**31


def test_a_product_with_limits_far_below_its_reach_is_proven():
    # Seeds whose questions once had objectives beyond 2^31; brute force knows the products.
    for seed in (50, 101):
        instance = realistic(seed)
        found, truth = (method.run(instance, budget()) for method in (cpsat, enumerate))
        assert (found.status, found.bound) == ("OPTIMAL", truth.bound)


def test_both_models_answer_a_question_with_all_limits():
    tables = tabulate(small(0), budget())
    energy, latency = tables.worth(cpsat.answer(tables, Question(1, 0), budget(), None).plan)
    question = Question(2, 3, max_latency=latency, max_energy=energy + energy // 10)
    answers = [engine(tables, question, budget(), None) for engine in (cpsat.answer, mip.answer)]
    assert answers[0].bound == answers[1].bound
    for answer in answers:
        e, t = tables.worth(answer.plan)
        assert 2 * e + 3 * t == answer.bound
        assert t <= latency
    impossible = Question(1, 0, max_latency=int(sum(t.values[:, 0].min() for t in tables.modules)) - 1)
    assert {e(tables, impossible, budget(), None).status for e in (cpsat.answer, mip.answer)} == {Status.INFEASIBLE}


@pytest.mark.parametrize("chunk", [30, 1000])
@pytest.mark.parametrize("columns", [1, 2, 4])
def test_nondominated_rows(columns, chunk):
    rows = np.random.default_rng(columns).integers(0, 6, (200, columns))
    kept = nondominated(rows, chunk=chunk)
    for i in range(len(rows)):
        better = [j for j in range(len(rows)) if (rows[j] <= rows[i]).all() and ((rows[j] < rows[i]).any() or j < i)]
        assert (i in kept) == (not better)


def test_the_exact_method_is_cheap_on_small_instances_only():
    assert label_setting.cheap(tiny(0))
    assert not label_setting.cheap(networks(502))
