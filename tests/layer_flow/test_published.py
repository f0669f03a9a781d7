"""What Helix's authors printed, and what is proven of their instances."""

from pathlib import Path

import pytest
import yaml

from mapgap.catalogue import registry
from mapgap.catalogue.files import load_instance
from mapgap.core import Budget
from mapgap.evidence import check
from mapgap.formulations.layer_flow.certificate import prove
from mapgap.heuristics.layer_flow.helix_placement import FILE
from mapgap.problems.layer_flow import Plan
from mapgap.problems.layer_flow.evaluate import evaluate

BEST, OTHERS = (
    yaml.safe_load(file.read_text(encoding="utf-8"))["placements"]
    for file in (FILE, Path(__file__).with_name("published_again.yaml"))
)

PROVEN = {  # tokens per second; where a plan is better than the published one, its counts are said
    "helix_llama30b_a100": 1044.5333,
    "helix_llama30b_t4_single": 397.6851,
    "helix_llama30b_t4_geo": 397.6851,
    "helix_llama30b_l4_single": 252.6498,  # six times 10 layers
    "helix_llama30b_l4_single_monotone": 214.9814,
    "helix_llama30b_10": 286.5874,
    "helix_llama70b_single": 2045.6410,  # 4 x 8 + 8 x 3 + 12 x 2 = 80 layers
}


def test_all_published_solutions_are_here():
    assert len(BEST) + len(OTHERS) == 17
    assert len({each["file"] for each in (*BEST, *OTHERS)}) == 17


@pytest.mark.parametrize("each", [*BEST, *OTHERS], ids=lambda each: each["file"])
def test_the_evaluator_says_what_the_authors_printed(each):
    instance = load_instance(each["name"])
    assert instance.content_hash == each.get("instance", instance.content_hash)
    plan = Plan(starts=tuple(each["starts"]), counts=tuple(each["counts"]))
    found = evaluate(instance, plan)
    assert found.feasible
    assert found.objective / instance.scale == pytest.approx(float(each["published"]), rel=1e-6)


@pytest.mark.parametrize("name", PROVEN)
def test_one_pipeline_is_optimal_and_the_checker_says_so(name):
    instance = load_instance(name)
    plan = registry.methods("layer_flow")["one_pipeline"].solve(instance, Budget(20).start()).plan
    best = evaluate(instance, plan).objective
    assert best / instance.scale == pytest.approx(PROVEN[name], abs=1e-4)
    facts = instance.to_json()
    proof = prove(facts, best, Budget(60).start())
    certificate = {"schema": 1, "instance": facts, "bound": best, "proof": proof}
    assert f"above {best}" in check.check(certificate)
    with pytest.raises(check.Refused):
        check.check({**certificate, "bound": best - 1})


@pytest.mark.in_turn
def test_on_clusters_that_stay_open_the_plan_is_near_the_bound():
    # Published: 952.11, 1212.18 and 4892.24 tokens/s.
    methods = registry.methods("layer_flow")
    for name, least in (
        ("helix_llama70b_geo_unpruned", 1754.3),
        ("helix_llama70b_geo", 1754.3),
        ("helix_llama70b_42_unpruned", 5905.7),
    ):
        instance = load_instance(name)
        plan = methods["stages"].solve(instance, Budget(60).start()).plan
        value = evaluate(instance, plan).objective
        assert value / instance.scale >= least
        facts = instance.to_json()
        bound = 12500 * value // 10000
        proof = prove(facts, bound, Budget(60).start())
        check.check({"schema": 1, "instance": facts, "bound": bound, "proof": proof})
