"""Pipelines of graphs of layers: stages are differences of ideals; values by hand, and all ideals by brute force."""

import json

import pytest
from graphs import ideals, least, random_graph
from pipelines import example
from pydantic import ValidationError

from mapgap.catalogue.registry import methods
from mapgap.contract.seeds import seeds
from mapgap.core import Budget, InputError, Status
from mapgap.evidence.check import NONE
from mapgap.formulations.hybrid_pipeline.certificate import prove
from mapgap.problems.hybrid_pipeline import Execution, Graph, Instance, Plan, Stage, Tensor
from mapgap.problems.hybrid_pipeline.certificate import check
from mapgap.problems.hybrid_pipeline.certificate.graph import MOST, found, needs
from mapgap.problems.hybrid_pipeline.evaluate import evaluate
from mapgap.problems.hybrid_pipeline.lowered.graph import blocks, orders

METHODS = methods("hybrid_pipeline")
CHAINS = ("label_dp", "cpsat", "mip", "enumerate")
DIAMOND = Graph(edges=((0, 1), (0, 2), (1, 3), (2, 3)))
"""l1 is read by l2 and l3, both by l4; every output of the example is one byte per sample, a byte takes a tick."""


def diamond(graph=DIAMOND, objective="latency", **execution):
    made = example()
    layers = tuple(layer.model_copy(update={"output_bytes": 1}) for layer in made.layers)
    return made.changed(layers=layers, graph=graph, objective=objective, execution=Execution(**execution))


def two(front, back, devices=((0,), (1,))):
    stages = [Stage(layers=rows, devices=on, shares=(2,)) for rows, on in zip((front, back), devices, strict=True)]
    return Plan(micro_batch=2, stages=tuple(stages))


def steps(instance, plan):
    found = evaluate(instance, plan)
    assert found.feasible, found.violations
    return [f + b for f, b in zip(found.terms["steps"]["forward"], found.terms["steps"]["backward"], strict=True)]


def test_a_diamond_by_hand():
    # On F a layer takes 1 + 2 a sample, on S 2 + 4: two samples, so l1 and l3 take 12 on F, l2 and l4 24 on S.
    plan = two((0, 2), (1, 3))
    # l1 and l3 cross, a byte each: 2 samples of 2 bytes, c = 4 each way.
    assert steps(diamond(), plan) == [12, 8, 24]
    assert steps(diamond(communication="load"), plan) == [12 + 8, 0, 24 + 8]
    assert steps(diamond(communication="free"), plan) == [12, 0, 24]
    # Behind l1 alone one tensor crosses, though two layers read it.
    assert steps(diamond(), two((0,), (1, 2, 3))) == [6, 4, 36]
    own = {"communication": "tensors", "replication": False}
    assert steps(diamond(**own), plan) == [12 + 8, 0, 24 + 8]


def test_tensors_that_pass_by_cost_nothing():
    """Stages l1, l2, l3 with l4: what l1 makes for l3 crosses both cuts, and l2 pays for it only as a cut."""
    made = diamond(communication="tensors", replication=False)
    third = made.devices[1].model_copy(update={"name": "S2"})
    made = made.changed(devices=(*made.devices, third), bandwidth=((10**6,) * 3,) * 3)
    stages = [((0,), 0), ((1,), 1), ((2, 3), 2)]
    plan = Plan(micro_batch=2, stages=tuple(Stage(layers=r, devices=(d,), shares=(2,)) for r, d in stages))
    # l1 sends its tensor once, whoever reads it: 2 samples, both ways 4. l2 reads and makes one. The last reads two.
    assert steps(made, plan)[::2] == [6 + 4, 12 + 8, 24 + 8]
    both = made.changed(execution=Execution(communication="load", replication=False))
    # Cuts: behind l1 its tensor; behind l2 those of l1 and l2.
    assert steps(both, plan)[::2] == [6 + 4, 12 + 4 + 8, 24 + 8]
    hosted = made.changed(graph=made.graph.model_copy(update={"hosts": (1,)}))
    assert steps(hosted, plan)[::2] == [6 + 4, 12, 24]
    back = made.changed(graph=made.graph.model_copy(update={"gradients": (Tensor(layers=(3, 0), size=5),)}))
    assert steps(back, plan)[::2] == [6 + 2 + 10, 12 + 4, 24 + 4 + 10]


@pytest.mark.parametrize(
    ("graph", "plan", "rule"),
    [
        (DIAMOND, two((0, 3), (1, 2)), "order of layers"),
        (DIAMOND, two((0, 1), (1, 2, 3)), "layers of stages"),
        (DIAMOND, two((0, 1), (2,)), "layers of stages"),
        (DIAMOND.model_copy(update={"together": ((1, 2),)}), two((0, 2), (1, 3)), "co-location"),
        (DIAMOND.model_copy(update={"unsupported": ((2,), ())}), two((0, 2), (1, 3)), "support"),
    ],
)
def test_broken_rules_of_graphs(graph, plan, rule):
    found = evaluate(diamond(graph), plan)
    assert not found.feasible
    assert {violation.rule for violation in found.violations} == {rule}


@pytest.mark.parametrize(
    ("graph", "said"),
    [
        (Graph(edges=((1, 0),)), "expected layers u < v below 4, found [1, 0]"),
        (Graph(together=((1, 1),)), "expected distinct layers below 4, found [1, 1]"),
        (Graph(unsupported=((),)), "expected 2 entries, one per type, found 1"),
        (Graph(hosts=(1,)), "expected execution communication: tensors beside them, found step"),
    ],
)
def test_graphs_that_are_none(graph, said):
    with pytest.raises((ValidationError, InputError)) as error:
        diamond(graph)
    assert said in str(error.value)


def test_files_without_a_graph_stay_as_they_are():
    assert "graph" not in example().to_json()
    assert "stored" not in example(execution=Execution(training=False)).to_json()["execution"]
    chain = Stage(start=0, stop=4, devices=(0,), shares=(2,))
    assert list(chain.to_json()) == ["start", "stop", "devices", "shares"]
    chosen = Stage(layers=(0, 2), devices=(0,), shares=(2,))
    assert list(chosen.to_json()) == ["devices", "shares", "layers"]
    for made in (chain, chosen):
        assert Stage.model_validate_json(json.dumps(made.to_json())) == made
    made = diamond(communication="tensors", replication=False)
    assert Instance.model_validate_json(json.dumps(made.to_json())) == made
    for wrong in ({}, {"start": 0}, {"start": 0, "stop": 1, "layers": (0,)}):
        with pytest.raises((ValidationError, InputError), match="expected start and stop, or layers"):
            Stage(devices=(0,), shares=(2,), **wrong)


def test_what_lies_between_two_of_a_class_is_in_their_block():
    found = blocks(diamond(DIAMOND.model_copy(update={"together": ((0, 3),)})))
    assert found.members == ((0, 1, 2, 3),)
    found = blocks(diamond(DIAMOND.model_copy(update={"together": ((1, 2),)})))
    assert found.members == ((0,), (1, 2), (3,))
    assert orders(blocks(diamond()), 10, 0) == [[0, 1, 2, 3], [0, 2, 1, 3]]


@pytest.mark.in_turn
@pytest.mark.parametrize("seed", seeds(60, 500))
def test_the_optimum_on_graphs_is_brute_force_over_ideals(seed):
    instance = random_graph(seed)
    truth = least(instance)
    result = METHODS["ideal_dp"].solve(instance, Budget(300.0))
    if truth is None:
        assert result.status is Status.INFEASIBLE
        return
    assert result.status is Status.OPTIMAL
    assert evaluate(instance, result.plan).feasible
    assert evaluate(instance, result.plan).objective == result.bound == result.claimed == truth


@pytest.mark.parametrize("seed", seeds(8, 60))
def test_methods_that_know_chains_prove_nothing_of_graphs(seed):
    instance = random_graph(seed, communication="step", stored="warm_up")
    truth = least(instance)
    for name in CHAINS:
        result = METHODS[name].solve(instance, Budget(300.0))
        assert result.status in {Status.FEASIBLE, Status.UNKNOWN}
        assert result.bound is None
        if result.plan is not None:
            found = evaluate(instance, result.plan)
            assert found.feasible
            assert found.objective >= truth
            assert result.reason == "optimal along this order of the layers"


@pytest.mark.parametrize("seed", seeds(8, 60))
def test_of_too_many_ideals_the_bound_holds_for_every_order(seed):
    instance = random_graph(seed)
    truth = least(instance)
    result = METHODS["ideal_dp"].solve(instance, Budget(300.0), ideals=1)
    if truth is None:
        assert result.plan is None
        return
    assert result.bound <= truth
    if result.status is Status.FEASIBLE:
        assert evaluate(instance, result.plan).objective >= truth
        assert f"no plan on the graph is below {result.bound}" in result.reason
    else:
        assert result.status in {Status.OPTIMAL, Status.UNKNOWN}


def test_ideals_of_a_graph_are_counted():
    """Of k layers side by side there are 2^k, of a chain k + 1."""
    for count, edges, number in ((4, (), 16), (4, None, 5), (4, DIAMOND.edges, 6)):
        instance = diamond(Graph(edges=edges, together=()))
        assert len(ideals(instance)) == number
        assert len(instance.layers) == count
        assert METHODS["ideal_dp"].solve(instance, Budget(60.0)).notes["ideals"] == number


def two_chains():
    """Chains l1 l2 and l3 l4, 4 + 5 and 3 + 2: l1 with l3 is half of the work, and no cut along the order."""
    made = diamond(Graph(edges=((0, 1), (2, 3))), "bottleneck", training=False, replication=False, communication="free")
    kind = made.types[0].model_copy(
        update={"forward": tuple((t, 2 * t) for t in (4, 5, 3, 2)), "memory": 10**6, "name": "K"}
    )
    return made.changed(types=(kind, kind.model_copy(update={"name": "S"})))


def test_the_order_matters():
    made = two_chains()
    best = METHODS["ideal_dp"].solve(made, Budget(60.0))
    assert best.bound == 2 * (4 + 3)
    assert {stage.layers for stage in best.plan.stages} == {(0, 2), (1, 3)}
    straight = METHODS["label_dp"].solve(made, Budget(60.0))
    assert evaluate(made, straight.plan).objective == 2 * (4 + 5)
    assert straight.status is Status.FEASIBLE


@pytest.mark.in_turn
@pytest.mark.parametrize("seed", seeds(40, 500))
def test_certificates_of_graphs_against_brute_force_over_ideals(seed):
    """The checker accepts the optimum, and of what is above it nothing; without a plan it accepts everything."""
    instance = random_graph(seed)
    truth, seen = least(instance), instance.to_json()
    if truth is None:
        assert check(seen, 1, {}) is check(seen, NONE["min"], {}) is None
        return
    assert prove(seen, truth, Budget(300.0)) == {}
    for bound in (0, truth // 2, truth):
        assert check(seen, bound, {}) is None
    for bound in (truth + 1, 2 * truth + 5):
        assert check(seen, bound, {}).startswith("micro-batches of ")
    assert check(seen, truth + 1, {}).endswith(f" {truth}")


def test_a_certificate_of_a_graph_is_not_one_of_its_chain():
    """Along the order a plan is worse: what is proven of the chain is refused of the graph."""
    made = two_chains()
    seen = made.to_json()
    chain, graph = (METHODS[name].solve(made, Budget(60.0)) for name in ("label_dp", "ideal_dp"))
    worse, best = (evaluate(made, each.plan).objective for each in (chain, graph))
    assert best < worse
    assert check(seen, best, {}) is None
    assert check(seen, worse, {}) is not None
    assert check({key: value for key, value in seen.items() if key != "graph"}, worse, {}) is None


def with_graph(**changed):
    seen = diamond().to_json()
    return seen | {"graph": seen["graph"] | changed}


@pytest.mark.parametrize(
    ("seen", "said"),
    [
        (with_graph(order=[0, 1]), "not covered by the argument: the field order of graph"),
        (with_graph(edges=[[0, 4]]), "a graph of layers that there are not"),
        (with_graph(edges=[[0, True]]), "a graph of layers that there are not"),
        (with_graph(edges=[[2, 1]]), "an edge that does not lead to a later layer"),
        (with_graph(tensors=[{"layers": [0, 1], "size": -1}]), "a tensor without a size"),
        (with_graph(tensors=[{"layers": [0], "size": 1, "per": 2}]), "not covered by the argument: the field per of"),
        (with_graph(unsupported=[[0]]), "types without the layers that they do not support"),
        (with_graph(hosts=["S"]), "hosts that are no types, or a graph after a failure"),
    ],
)
def test_graphs_that_the_argument_does_not_cover(seen, said):
    assert check(seen, 1, {}).startswith(said)
    with pytest.raises(InputError, match="no certificates for it"):
        prove(seen, 1, Budget(300.0))


def test_graphs_with_too_many_cuts_are_refused_at_once():
    """Of 15 layers side by side there are 2^15 sets."""
    made = example()
    layers = tuple(made.layers[0].model_copy(update={"name": f"l{k}"}) for k in range(15))
    kinds = tuple(
        kind.model_copy(update={"forward": kind.forward[:1] * 15, "backward": kind.backward[:1] * 15})
        for kind in made.types
    )
    wide = made.changed(layers=layers, types=kinds, graph=Graph(edges=()))
    assert 2**14 < MOST < 2**15
    with pytest.raises(InputError, match=f"more than {MOST:,} sets of layers that may lie in front of a cut"):
        prove(wide.to_json(), 1, Budget(300.0))
    classes = wide.changed(graph=Graph(edges=(), together=((0, 1), (2, 3))))  # 13 of them
    assert check(classes.to_json(), 1, {}) is None


def test_cuts_of_the_checker_are_the_ideals():
    for seed in range(40):
        instance = random_graph(seed)
        whole = [each for each in ideals(instance) if not apart(instance, each)]
        assert sorted(found(needs(instance.to_json()))) == sorted(sum(1 << i for i in each) for each in whole)


def apart(instance, layers):
    return any(0 < len(layers.intersection(each)) < len(each) for each in instance.graph.together)


def test_the_portfolio_proves_on_graphs():
    instance = diamond()
    result = METHODS["portfolio"].solve(instance, Budget(60.0))
    assert (result.status, result.bound) == (Status.OPTIMAL, least(instance))
