"""The evaluator against flows by hand, and the reading of compact files."""

import pytest

from mapgap.catalogue.files import load_instance
from mapgap.core import InputError
from mapgap.instances.layer_flow.compact import Compact, expand
from mapgap.problems.layer_flow import Instance, Node, Plan
from mapgap.problems.layer_flow.describe import describe
from mapgap.problems.layer_flow.evaluate import evaluate, gantt
from mapgap.problems.layer_flow.explain import EXPLAINER


def cluster(tables, layers, *, partial=False, entry=10**6, exit_=10**6, link=10**6, links=None):
    count = len(tables)
    mesh = tuple(tuple(0 if i == j else link for j in range(count)) for i in range(count))
    return Instance(
        name="by hand",
        scale=1,
        layers=layers,
        partial=partial,
        nodes=tuple(Node(name=f"n{i}", kind="k", throughput=table) for i, table in enumerate(tables)),
        entry=(entry,) * count,
        exit=(exit_,) * count,
        links=mesh if links is None else links,
    )


def value(instance, *intervals):
    plan = Plan(starts=tuple(s for s, _ in intervals), counts=tuple(e - s for s, e in intervals))
    return evaluate(instance, plan).objective


def test_a_chain_passes_what_its_slowest_node_passes():
    three = cluster([(9000, 5000), (7000, 4000), (3000,)], 5)
    assert value(three, (0, 2), (2, 4), (4, 5)) == 3000
    assert value(three, (0, 2), (2, 4), (0, 1)) == 0  # nobody holds the last layer


def test_nodes_side_by_side_add_up_and_links_limit_each_of_them():
    tables = [(9000, 5000), (3000, 2500), (2000, 1500)]
    assert value(cluster(tables, 4), (0, 2), (2, 4), (2, 4)) == 2500 + 1500
    # From n0 to n1 only 1000: 1000 + 1500.
    links = ((0, 1000, 9000), (0, 0, 0), (0, 0, 0))
    assert value(cluster(tables, 4, links=links), (0, 2), (2, 4), (2, 4)) == 2500
    assert value(cluster(tables, 4, entry=1200), (0, 2), (2, 4), (2, 4)) == 1200
    assert value(cluster(tables, 4, exit_=700), (0, 2), (2, 4), (2, 4)) == 1400  # each of two nodes sends 700


def test_overlapping_intervals_join_under_partial_inference_only():
    tables = [(90, 50, 30), (90, 50, 40)]
    assert value(cluster(tables, 4), (0, 3), (1, 4)) == 0
    assert value(cluster(tables, 4, partial=True), (0, 3), (1, 4)) == 30
    # Not backwards: n1 ends where n0 does, so it is no step onwards, and a gap is none either.
    assert value(cluster(tables, 4, partial=True), (0, 3), (0, 3)) == 0
    assert value(cluster(tables, 5, partial=True), (0, 2), (3, 5)) == 0


def test_a_table_is_taken_as_it_is():
    # 10 layers are faster than 9: nothing is repaired.
    odd = cluster([(50, 10, 40)], 3)
    assert value(odd, (0, 3)) == 40


def test_every_broken_rule_is_named():
    instance = cluster([(5, 4), (5, 4)], 3)
    found = evaluate(instance, Plan(starts=(-1, 2), counts=(1, 3)))
    assert [(v.rule, v.where, v.amount) for v in found.violations] == [
        ("layers", "n0", 1),
        ("layers", "n1", 2),
        ("table", "n1", 1),
    ]
    assert found.objective is None
    assert [v.rule for v in evaluate(instance, Plan(starts=(0,), counts=(1,))).violations] == ["nodes"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"entry": (1,)}, "expected 2 values"),
        ({"links": ((1, 1), (1, 0))}, "expected 0 from a node to itself"),
        ({"links": ((0, 1, 1), (1, 0))}, "expected 2 values"),
        ({"exit": (1, 2**30)}, "2\\^30"),
        ({"layers": 1}, "at most 1 entries"),
    ],
)
def test_what_is_no_instance_is_refused(changes, words):
    with pytest.raises(ValueError, match=words):
        cluster([(5, 4), (5, 4)], 3).changed(**changes)


def compact(**changes):
    data = {
        "name": "c",
        "scale": 10,
        "layers": 3,
        "kinds": {"a": (5.04, 2.0, 3.06, 1.0)},
        "nodes": {"x": "a", "y": "a"},
        "entry": {"x": 2.0},
        "exit": 100.0,
        "links": {"x": {"y": 1.5}},
    }
    return Compact.model_validate({**data, **changes})


def test_compact_numbers_are_rounded_and_links_cut_to_what_nodes_pass():
    found = expand(compact())
    assert found.nodes[0].throughput == (50, 20, 31)  # a fourth layer does not exist
    assert (found.entry, found.exit) == ((20, 0), (50, 50))
    assert found.links == ((0, 15), (15, 0))
    assert expand(compact(table="monotone")).nodes[0].throughput == (50, 20, 20)
    assert expand(compact(links={}, mesh=9.0)).links == ((0, 50), (50, 0))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"nodes": {"x": "b", "y": "a"}}, "expected a kind"),
        ({"entry": {"z": 1.0}}, "expected a node"),
        ({"mesh": 1.0}, "expected mesh or links"),
        ({"links": {"x": {"y": 1.0}, "y": {"x": 2.0}}}, "in the other direction"),
        ({"kinds": {"a": (2.0**30,)}}, "flow units"),
        ({"exit": -1.0}, "from 0 on"),
    ],
)
def test_what_cannot_be_expanded_is_named(changes, words):
    with pytest.raises(InputError, match=words):
        expand(compact(**changes))


def test_a_plan_is_told_and_explained():
    instance = load_instance("helix_llama30b_l4_single")
    plan = Plan(starts=(0, 10, 20, 30, 40, 50, 0, 0), counts=(10,) * 6 + (1, 1))
    rows = describe(instance, plan).rows
    assert {row[0] for row in rows} == {node.name for node in instance.nodes}
    assert rows[0][2:] == ("1", "0.00 tokens/s", "2,678.28 tokens/s", "0.0 %")
    assert ("1 to 10 (10)", "252.65 tokens/s", "252.65 tokens/s", "100.0 %") in [row[2:] for row in rows]
    assert "252.65" in EXPLAINER.binding(instance, plan).sentence
    assert [lane.bars[0].end for lane in gantt(instance, plan) if lane.bars] == [1.0] * 6
    other = Plan(starts=plan.starts, counts=(10,) * 5 + (9, 1, 1))
    (change,) = EXPLAINER.exchanges(instance, plan, other)
    assert change.apply(plan) == other
