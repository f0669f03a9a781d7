"""Executions other than Asteroid's, the objective bottleneck: values by hand, and all methods on every combination."""

import json
import random

import pytest
from pipelines import example, executed, pipelines_along
from pydantic import ValidationError

from mapgap.catalogue.registry import methods
from mapgap.contract.seeds import seeds
from mapgap.core import Budget, Status
from mapgap.formulations.hybrid_pipeline.certificate import prove
from mapgap.heuristics.hybrid_pipeline.asteroid import algorithm_2
from mapgap.heuristics.hybrid_pipeline.chain import chain
from mapgap.instances.hybrid_pipeline import LIBRARY
from mapgap.problems.hybrid_pipeline import PROBLEM, Device, Execution, Instance, Plan, Stage
from mapgap.problems.hybrid_pipeline.certificate import check
from mapgap.problems.hybrid_pipeline.evaluate import evaluate
from mapgap.problems.hybrid_pipeline.lowered.order import memory_order
from mapgap.problems.hybrid_pipeline.simulate import simulate

METHODS = methods("hybrid_pipeline")

STAGES = Plan(
    micro_batch=2,
    stages=(Stage(start=0, stop=3, devices=(0,), shares=(2,)), Stage(start=3, stop=4, devices=(1,), shares=(2,))),
)
GROUP = Plan(micro_batch=2, stages=(Stage(start=0, stop=4, devices=(0, 1), shares=(1, 1)),))


def value(plan, objective="latency", **execution):
    found = evaluate(example(execution=Execution(**execution), objective=objective), plan)
    assert found.feasible
    return found.objective


def test_two_stages_under_every_execution():
    # M = 4; l1-l3 on F take 6 + 12, l4 on S 4 + 8, two samples of two bytes cross in c = 4.
    assert value(STAGES) == 18 + 2 * 4 + 4 * 12  # > 4 * 18
    assert value(STAGES, communication="free") == 4 * 18  # > 18 + 4 * 12
    assert value(STAGES, communication="load") == (18 + 8) + 4 * (12 + 8)  # > 4 * 26
    assert value(STAGES, training=False) == 6 + 4 + 4 + (4 - 1) * 6
    assert value(STAGES, training=False, communication="load") == 10 + 8 + (4 - 1) * 10
    assert value(STAGES, replication=False, latency="flow_shop") == 18 + 2 * 4 + 12 + (4 - 1) * 18
    assert value(STAGES, "bottleneck") == 18
    assert value(STAGES, "bottleneck", training=False) == 6
    assert value(STAGES, "bottleneck", communication="load") == 18 + 8


def test_a_group_under_every_allreduce():
    # One sample each: F takes 4 + 8, S 8 + 16; E = 24. 20 bytes of weights, one byte a tick.
    assert value(GROUP) == 4 * 24 + 2 * 20 // 2
    assert value(GROUP, allreduce_factor=4) == 4 * 24 + 4 * 20 // 2
    assert value(GROUP, medium="shared") == 4 * 24 + 2 * 20
    assert value(GROUP, allreduce="micro_batch") == 4 * (24 + 20)
    assert value(GROUP, allreduce="rotating") == 4 * (24 + 10)
    assert value(GROUP, training=False) == 4 * 8
    assert value(GROUP, "bottleneck") == 24  # the AllReduce ends the round and is no part of a step
    assert value(GROUP, "bottleneck", allreduce="micro_batch") == 24 + 20


def test_parallel_links_between_groups():
    # Two F and two S, one sample each: 3 + 6 and 2 + 4; T_a = 12 and 8; c = 4 over one link, 2 over two.
    devices = tuple(Device(name=name, type=kind) for name, kind in (("F1", 0), ("F2", 0), ("S1", 1), ("S2", 1)))
    plan = Plan(
        micro_batch=2,
        stages=(
            Stage(start=0, stop=3, devices=(0, 1), shares=(1, 1)),
            Stage(start=3, stop=4, devices=(2, 3), shares=(1, 1)),
        ),
    )
    one = example(devices=devices, bandwidth=((10**6,) * 4,) * 4)
    two = one.changed(execution=Execution(transfers="parallel"))
    assert evaluate(one, plan).objective == (9 + 2 * 4 + 4 * 6) + 12  # D = 41, A = 12
    assert evaluate(two, plan).objective == (9 + 2 * 2 + 4 * 6) + 12


def test_algorithm_2_plans_with_the_links_that_there_are():
    """What it claims is Eqs. (4)-(6) of its plan, over one link or several; every pipeline is an oracle for both."""
    changed = 0
    for seed in range(40):
        instance = LIBRARY.generate("steady", seed)
        instance = instance.with_micro_batch(instance.micro_batch_sizes[-1]).model_copy(update={"replanning": None})
        values = []
        for transfers in ("one_link", "parallel"):
            made = instance.changed(execution=Execution(transfers=transfers))
            seen = chain(made, memory_order(made))
            found = algorithm_2(seen)
            if found.plan is None:
                continue
            assert found.latency == evaluate(made, found.plan).terms["literal_ticks"]
            assert found.latency >= min(evaluate(made, plan).terms["literal_ticks"] for plan in pipelines_along(seen))
            values.append(found.latency)
        changed += len(set(values)) == 2
    assert changed > 0


def test_without_replication_a_group_breaks_a_rule():
    found = evaluate(example(execution=Execution(replication=False)), GROUP)
    assert [(v.rule, v.where, v.amount) for v in found.violations] == [("replication", "stage 0", 1)]


def test_defaults_are_left_out_of_files_and_hashes():
    data = example().to_json()
    assert not {"execution", "objective"} & data.keys()
    other = example(execution=Execution(training=False), objective="bottleneck")
    assert Instance.model_validate_json(json.dumps(other.to_json())) == other
    hashes = {example().content_hash, other.content_hash, PROBLEM.retarget(example(), "bottleneck").content_hash}
    assert len(hashes) == 3
    assert PROBLEM.retarget(other, "latency").content_hash != example().content_hash


def test_loads_need_links_that_are_all_equal():
    devices = tuple(Device(name=f"D{d}", type=0) for d in range(3))
    rates = ((1, 5, 5), (5, 1, 7), (5, 7, 1))
    with pytest.raises(ValidationError, match="load: expected one bandwidth between all devices, found 2 from 5 to 7"):
        example(devices=devices, bandwidth=rates, execution=Execution(communication="load"))
    with pytest.raises(ValidationError, match="load: expected transfers over one_link"):
        example(execution=Execution(communication="load", transfers="parallel"))


def solved(method, instance, **options):
    result = METHODS[method].solve(instance, Budget(time_s=300.0), **options)
    if result.plan is None:
        return result.status, None
    checked = evaluate(instance, result.plan)
    assert checked.feasible, checked.violations
    assert checked.objective == result.claimed == result.bound
    return result.status, checked.objective


@pytest.mark.parametrize("seed", seeds(10, 120))
def test_label_search_is_brute_force_under_every_execution(seed):
    instance = LIBRARY.generate("executions", seed)
    truth = solved("enumerate", instance)
    assert solved("label_dp", instance) == truth
    assert solved("label_dp", instance, engine="python") == truth


@pytest.mark.parametrize("stored", ["one", "all", "behind"])
@pytest.mark.parametrize("seed", seeds(5, 60))
def test_label_search_is_brute_force_however_much_is_stored(seed, stored):
    instance = LIBRARY.generate("executions", seed)
    rules = instance.execution.model_copy(update={"training": True, "stored": stored})
    tight = tuple(kind.model_copy(update={"memory": kind.memory * 3 // 4}) for kind in instance.types)
    instance = instance.changed(execution=rules, types=tight)
    truth = solved("enumerate", instance)
    assert solved("label_dp", instance) == truth
    assert solved("label_dp", instance, engine="python") == truth
    assert solved("ideal_dp", instance) == truth


@pytest.mark.parametrize("seed", seeds(4, 40))
def test_models_are_brute_force_under_every_execution(seed):
    for instance in (LIBRARY.generate("executions", seed), flow_shop(seed)):
        truth = solved("enumerate", instance)
        for method in ("cpsat", "mip", "mip_cbc"):
            assert solved(method, instance) == truth, method


def flow_shop(seed):
    """Training as Alpa counts it, of realistic size; AllReduces with every micro-batch, or none that count."""
    rng = random.Random(f"flow-{seed}")
    counts = rng.choice(({"allreduce": "micro_batch"}, {"allreduce": "rotating"}, {"allreduce_factor": 0}))
    instance = executed(seed, training=True, latency="flow_shop", **{"allreduce": "round"} | counts)
    tight = tuple(kind.model_copy(update={"memory": kind.memory * 3 // 4}) for kind in instance.types)
    return instance.changed(objective="latency", types=tight if rng.random() < 0.5 else instance.types)


@pytest.mark.parametrize("seed", seeds(15, 300))
def test_searches_are_brute_force_in_a_flow_shop(seed):
    instance = flow_shop(seed)
    truth = solved("enumerate", instance)
    assert solved("label_dp", instance) == truth
    assert solved("label_dp", instance, engine="python") == truth
    assert solved("ideal_dp", instance) == truth
    if truth[1] is not None:
        assert check(instance.to_json(), truth[1], {}) is None
        assert check(instance.to_json(), truth[1] + 1, {}).endswith(f"a plan of objective {truth[1]}")


def test_a_flow_shop_has_no_end_of_a_round():
    rules = Execution(latency="flow_shop")
    with pytest.raises(ValidationError, match="flow_shop: expected allreduce: micro_batch or rotating"):
        example(execution=rules)
    seen = example(execution=rules.model_copy(update={"allreduce_factor": 0})).to_json()
    assert seen["execution"]["latency"] == "flow_shop"
    assert "latency" not in example(execution=Execution(training=False)).to_json()["execution"]
    seen["execution"]["allreduce_factor"] = 2
    assert check(seen, 1, {}) == "an AllReduce at the end of a round that is a flow shop"


def test_the_family_has_every_kind():
    family = [LIBRARY.generate("executions", seed) for seed in range(60)]
    for field in Execution.model_fields.keys() - {"stored", "latency"}:
        assert len({getattr(instance.execution, field) for instance in family}) == (3 if field in THREE else 2)
    assert {instance.objective for instance in family} == {"latency", "bottleneck"}


THREE = ("allreduce", "communication")


def test_inference_is_simulated_as_it_is_computed():
    """Steps of equal micro-batches in a row: nothing waits but for the longest step in front."""
    checked = 0
    for seed in range(120):
        instance = LIBRARY.generate("executions", seed)
        plan = METHODS["label_dp"].solve(instance, Budget(300.0)).plan
        if plan is None or instance.execution.training:
            continue
        checked += len(plan.stages) > 1
        assert simulate(instance, plan).latency == evaluate(instance, plan).terms["literal_ticks"]
    assert checked > 3


def test_simulated_executions_by_hand():
    def simulated(plan, **execution):
        return simulate(example(execution=Execution(**execution)), plan).latency

    assert simulated(GROUP, allreduce="micro_batch") == 4 * (24 + 20)
    assert simulated(GROUP) == 4 * 24 + 20
    # One micro-batch after the other on both devices, whatever crosses is part of their loads: no link is used.
    assert not [
        task
        for task in simulate(example(execution=Execution(communication="load")), STAGES).tasks
        if task.where[0] == "link" and task.end > task.start
    ]


def test_certificates_of_a_worked_plan_under_other_executions():
    # One device or both, by hand: F alone takes 8 per micro-batch; l1-l3 on F and l4 on S in front or behind of c = 4.
    for change, least in (
        ({"execution": Execution(training=False)}, 6 + 4 + 4 + 3 * 6),
        ({"execution": Execution(training=False), "objective": "bottleneck"}, 6),
    ):
        instance = example(**change).to_json()
        assert check(instance, least, {}) is None
        assert prove(instance, least, Budget(300.0)) == {}
        assert prove(instance, least + 1, Budget(300.0)) is None


def test_planners_that_replicate_are_refused_where_that_is_not_allowed():
    instance = example(execution=Execution(replication=False))
    result = METHODS["data_parallel"].solve(instance, Budget(300.0))
    assert result.status is Status.UNKNOWN
    assert "expected one device" in result.reason


def test_the_bound_on_simulated_rounds_is_for_asteroids_execution_only():
    result = METHODS["simulator_bound"].solve(example(execution=Execution(training=False)), Budget(300.0))
    assert (result.bound, result.status) == (None, Status.UNKNOWN)
    assert "Asteroid's execution" in result.reason
