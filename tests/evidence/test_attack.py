"""The adversary: what it reports is reproducible, certain, and survives the file."""

import random
from dataclasses import replace
from itertools import pairwise

import pytest

from mapgap.catalogue import registry
from mapgap.catalogue.files import load_instance
from mapgap.cli.evidence import show_attack
from mapgap.core import Budget, InputError, Method, PlanError, SolveResult, Status, Stop
from mapgap.evidence.attack import KEEP, Attack, attack, changeable, integers, mutate, rounded, widen


def value(problem, method, instance):
    spec = registry.problems()[problem]
    result = registry.methods(problem)[method].solve(instance, Budget(200.0))
    return None if result.plan is None else spec.evaluate(instance, result.plan).objective


@pytest.fixture
def counted(monkeypatch):
    """The phases end after numbers of instances: a busy machine gets through few in any time."""
    monkeypatch.setattr(Attack, "spent", property(lambda self: self.tried / 60))


def _zeros(instance):
    data = instance.to_json()
    return set(integers(data)) - set(changeable(data))


@pytest.mark.in_turn
def test_an_attack_ends_with_a_replayable_worst_case(tmp_path, counted):
    problem, method = "suboperation_mapping", "mtrain_converting"
    search, path = attack(problem, method, time_s=8.0, family="tiny", folder=tmp_path)
    hit = search.worst
    assert search.tried > 10
    assert hit.ratio > 1.0
    instance = load_instance(path)
    assert instance.content_hash == hit.instance.content_hash
    # Brute force and a fresh run of the heuristic say the same.
    assert value(problem, "enumerate", instance) == hit.plan == hit.bound
    assert value(problem, method, instance) == hit.value
    assert hit.ratio == hit.limit == hit.value / hit.plan


@pytest.mark.parametrize("problem", registry.house())
def test_changed_instances_are_valid_and_different(problem):
    library = registry.library(problem)
    instance = library.generate("tiny", 1)
    ranges = {}
    for seed in range(20):
        widen(ranges, library.generate("tiny", seed))
    rng = random.Random(0)
    changed = [mutate(instance, ranges, rng) for _ in range(20)]
    assert sum(other is not None for other in changed) >= 10
    for other in [*(o for o in changed if o is not None), *rounded(instance, ranges)]:
        assert other.content_hash != instance.content_hash
        assert type(instance).model_validate_json(other.model_dump_json(by_alias=True)) == other
        assert _zeros(other) == _zeros(instance)  # they say that something is absent


def test_an_optimal_method_has_no_worst_case():
    problem = registry.problems()["suboperation_mapping"]
    method = registry.methods(problem.name)["mtrain_dfs"]
    exact = registry.methods(problem.name)["enumerate"]
    search = Attack(problem, method, "tiny", 1.0, exact=exact)
    instance = registry.library(problem.name).generate("tiny", 0)
    hit = search.measure(instance)
    assert hit is None or hit.ratio >= 1.0


@pytest.mark.parametrize(
    ("family", "method", "words"), [("tyni", "mtrain_dfs", "--family"), ("tiny", "cpsat", "published")]
)
def test_bad_requests(family, method, words):
    with pytest.raises(InputError, match=words):
        attack("suboperation_mapping", method, time_s=1.0, family=family)


def _stops_early(problem, plan_of):
    """An exact method that stops early: another method's plan, and the bound nine tenths of the optimum (or 10/9)."""

    def run(instance, budget):
        methods = registry.methods(problem)
        optimum = value(problem, "enumerate", instance)
        if optimum is None:
            return SolveResult(Status.UNKNOWN, Stop.TIME, reason="none found in time")
        bound = 9 * optimum // 10 if registry.problems()[problem].sense == "min" else -(-10 * optimum // 9)
        plan = methods[plan_of].solve(instance, Budget(200.0)).plan
        return SolveResult(Status.UNKNOWN if plan is None else Status.FEASIBLE, Stop.TIME, plan, bound)

    return Method("stops_early", problem, "exact", "none", run)


# A minimised and a maximised problem.
@pytest.mark.parametrize(
    ("problem", "method", "plan_of"),
    [("suboperation_mapping", "mtrain_converting", "mtrain_dfs"), ("neuron_masking", "elfish_greedy", "enumerate")],
)
def test_where_the_optimum_is_not_proven_the_loss_is_an_interval(problem, method, plan_of):
    spec, methods = registry.problems()[problem], registry.methods(problem)
    search = Attack(spec, methods[method], "tiny", 1.0, exact=_stops_early(problem, plan_of))
    hits = [search.measure(registry.library(problem).generate("tiny", seed)) for seed in range(15)]
    hits = [hit for hit in hits if hit is not None]
    assert len(hits) > 5
    for hit in hits:
        optimum = value(problem, "enumerate", hit.instance)
        loss = hit.value / optimum if spec.sense == "min" else optimum / hit.value
        assert not hit.proven
        assert hit.ratio <= loss < hit.limit
        assert hit.ratio < hit.limit


def test_search_and_shrink_raise_the_lower_end_of_an_interval(tmp_path, monkeypatch, capsys, counted):
    """No phase may mistake the upper end, which a weak bound alone can make large, for what is lost."""
    problem, method = "suboperation_mapping", "single_accelerator"
    monkeypatch.setattr(registry, "strongest_exact", lambda _: _stops_early(problem, "mtrain_dfs"))
    seen = []
    search, path = attack(problem, method, time_s=8.0, family="tiny", folder=tmp_path, tell=seen.append)
    hit = search.worst
    assert 1.0 < hit.ratio < hit.limit
    for before, after in pairwise(seen):
        if before.worst is not None:
            assert after.worst.ratio >= before.worst.ratio * (KEEP if after.phase == "shrink" else 1.0)
    assert any(b.worst is not a.worst and b.phase == "shrink" for a, b in pairwise(seen))
    instance = load_instance(path)
    optimum = value(problem, "enumerate", instance)
    assert hit.ratio <= hit.value / optimum <= hit.limit
    words = f"between {hit.ratio:.4f} and {hit.limit:.4f}"
    assert words in instance.source
    show_attack(search, path, as_json=False)
    assert words in capsys.readouterr().out


def test_plans_worth_nothing_are_counted_apart_from_no_plan(monkeypatch, capsys):
    problem = "neuron_masking"
    methods = registry.methods(problem)
    search = Attack(registry.problems()[problem], methods["elfish_greedy"], "tiny", 1.0, exact=methods["enumerate"])
    instance = next(
        i
        for i in (registry.library(problem).generate("tiny", seed) for seed in range(40))
        if value(problem, "enumerate", i)
    )
    plain = Attack.solve
    for found in (0, None):

        def crippled(self, method, *rest, found=found):
            record = plain(self, method, *rest)
            return replace(record, objective=found) if method is self.method else record

        monkeypatch.setattr(Attack, "solve", crippled)
        assert search.measure(instance) is None
    assert (search.worthless, search.failures) == (1, 1)
    show_attack(search, None, as_json=False)
    told = capsys.readouterr().out
    assert "on 1 the method found no plan although there is one, on 1 only a plan worth 0" in told


def test_an_objective_replaces_that_of_every_instance():
    problem = next(spec for spec in registry.problems().values() if len(spec.objectives) > 1)
    method = next(m for m in registry.methods(problem.name).values() if m.kind == "published")
    for objective in problem.objectives:
        search = Attack(problem, method, "tiny", 1.0, objective=objective)
        assert {search.sample(seed).objective for seed in range(5)} == {objective}


def test_an_exact_method_that_is_wrong_ends_the_search():
    """A bound above the heuristic's own plan must not become a ratio."""

    def wrong(instance, budget):
        return SolveResult(Status.UNKNOWN, Stop.DONE, bound=10**9)

    exact = Method("wrong", "suboperation_mapping", "exact", "r", wrong)
    problem = registry.problems()["suboperation_mapping"]
    search = Attack(problem, registry.find_method(problem.name, "mtrain_converting"), "tiny", 1.0, exact=exact)
    with pytest.raises(PlanError, match=r"wrong is refuted: .* claims bound 1000000000, but "):
        search.run()
