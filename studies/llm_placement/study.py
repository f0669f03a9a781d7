"""What exo, llama.cpp, EdgeShard and Petals lose on models and clusters of the library, beside certified optima.

Three conditions, each a set of instances: the time of a token, that of a prompt, and the flow of tokens. The exact
method solves every instance; of what it proves a certificate is made and checked at once, in no run's time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from mapgap.core import Certificate, Status
from mapgap.evidence.certified import CertifiedJob
from mapgap.execution.sweep import MethodJob
from mapgap.problems.hybrid_pipeline import PROBLEM, Plan
from mapgap.records.record import RunRecord
from mapgap.records.runs import Runs
from mapgap.reporting.report import Page, Section
from mapgap.reporting.study import Phase, Study, load_told
from mapgap.reporting.tables import Rows, tabulated
from mapgap.studies.llm_placement.pairs import CLUSTERS, CONDITIONS, MODELS, instance, pairs

EXACT = "portfolio"
RULES = ("exo", "exo_ring", "llama_cpp", "edgeshard", "petals")
LIMIT_S = 30.0
Pair = tuple[str, str]
Found = Mapping[Pair, Mapping[str, RunRecord]]
"""Cluster and model to method to its run, in one condition."""


def phases(quick: bool) -> list[Phase]:
    """One phase per condition."""
    found = []
    for condition in CONDITIONS:
        jobs: list[MethodJob] = []
        for cluster, model in pairs(quick):
            made = instance(cluster, model, condition)
            jobs.append(CertifiedJob(made, EXACT, LIMIT_S))
            jobs += (MethodJob(made, rule, LIMIT_S) for rule in RULES)
        found.append(Phase(condition, jobs, parallel=2))
    return found


def found_in(runs: Runs, condition: str) -> Found:
    """The runs of a condition."""
    found: dict[Pair, dict[str, RunRecord]] = {}
    for record in runs:
        cluster, model, of = record.instance.split(":")
        if of == condition:
            found.setdefault((cluster, model), {})[record.method] = record
    return found


def loss(record: RunRecord | None, best: int | None) -> float | None:
    """Percent above the optimum; ``None`` without a plan."""
    value = None if record is None else record.objective
    return None if value is None or not best else 100.0 * (value / best - 1)


@tabulated(
    "rules",
    "What rules lose",
    "condition | rule | instances: with a plan | optimal | near: within 5 % | median: median loss [%]; .1f "
    "| worst: worst [%]; .1f | worst_on: on | missing: no plan where there is one",
    "Loss: by how much a rule's plan takes longer than the certified optimum; over the instances where it has one. "
    "decode: one token, prefill: one prompt, one sequence in flight each. flow: the longest step, eight sequences.",
)
def rules(runs: Runs) -> Rows:
    """A row per condition and rule."""
    for condition in CONDITIONS:
        found = found_in(runs, condition)
        for rule in RULES:
            yield {"condition": condition, "rule": rule} | _summary(found, rule)


def _summary(found: Found, rule: str) -> dict[str, Any]:
    solvable = {pair: each for pair, each in found.items() if each[EXACT].objective is not None}
    losses = {
        pair: value
        for pair, each in solvable.items()
        if (value := loss(each.get(rule), each[EXACT].objective)) is not None
    }
    row: dict[str, Any] = {"instances": len(solvable), "missing": len(solvable) - len(losses)}
    if not losses:
        return row
    worst = max(losses, key=lambda pair: losses[pair])
    return row | {
        "optimal": sum(value == 0 for value in losses.values()),
        "near": sum(value <= 5 for value in losses.values()),
        "median": median(losses.values()),
        "worst": losses[worst],
        "worst_on": " ".join(worst),
    }


@tabulated(
    "proofs",
    "What is proven of the library",
    "condition | instances | clusters | models | optimal: optima | infeasible: no plan | certified "
    "| median_s: median [s]; .3f | longest_s: longest [s]; .3f",
    "Seconds of the exact method on the clock, one thread. Certified: an optimum, or that there is no plan, by a "
    "certificate that the checker accepts.",
)
def proofs(runs: Runs) -> Rows:
    """A row per condition."""
    for condition in CONDITIONS:
        found = found_in(runs, condition)
        exact = [each[EXACT] for each in found.values()]
        times = [record.wall_s or 0.0 for record in exact]
        yield {
            "condition": condition,
            "instances": len(exact),
            "clusters": len({cluster for cluster, _ in found}),
            "models": len({model for _, model in found}),
            "optimal": sum(record.status == Status.OPTIMAL for record in exact),
            "infeasible": sum(record.status == Status.INFEASIBLE for record in exact),
            "certified": sum(record.certificate == Certificate.CHECKED for record in exact),
            "median_s": median(times) if times else None,
            "longest_s": max(times, default=None),
        }


@tabulated(
    "losses",
    "Every instance",
    "condition | cluster | model | optimum: optimum [ms]; .4g | proof "
    "| exo: exo [%]; .1f | exo_ring: exo ring [%]; .1f | llama_cpp: llama.cpp [%]; .1f | edgeshard: EdgeShard [%]; .1f "
    "| petals: Petals [%]; .1f",
    "A blank: no plan.",
)
def losses(runs: Runs) -> Rows:
    """A row per instance."""
    for condition in CONDITIONS:
        for (cluster, model), each in found_in(runs, condition).items():
            exact = each[EXACT]
            row: dict[str, Any] = {"condition": condition, "cluster": cluster, "model": model}
            tick_ms = 1e-6 * instance(cluster, model, condition).tick_ns
            row |= {"optimum": None if exact.objective is None else tick_ms * exact.objective, "proof": exact.word}
            yield row | {rule: loss(each.get(rule), exact.objective) for rule in RULES}


@tabulated(
    "by_cluster",
    "By cluster and by model",
    "condition | place: cluster or model | instances | exo: exo, median [%]; .1f | exo_ring: exo ring; .1f "
    "| llama_cpp: llama.cpp; .1f | edgeshard: EdgeShard; .1f | petals: Petals; .1f",
    "Medians over the instances where a rule has a plan.",
)
def by_cluster(runs: Runs) -> Rows:
    """Medians of every cluster, then of every model."""
    for condition in CONDITIONS:
        found = found_in(runs, condition)
        for k, names in ((0, CLUSTERS), (1, MODELS)):
            for name in names:
                mine = {pair: each for pair, each in found.items() if pair[k] == name}
                if mine:
                    summaries = {rule: _summary(mine, rule).get("median") for rule in RULES}
                    yield {"condition": condition, "place": name, "instances": len(mine)} | summaries


@tabulated(
    "both",
    "Prompt and token want different placements",
    "cluster | model | same: one plan is best for both | prompt: best for a token, prompt longer by [%]; .1f "
    "| token: best for a prompt, token longer by [%]; .1f",
    "Where prefill and decode are both solvable. What lies between the two: mapgap import … --front.",
)
def both(runs: Runs) -> Rows:
    """A row per pair: what the best plan for one objective loses on the other."""
    decode, prefill = (found_in(runs, condition) for condition in ("decode", "prefill"))
    for pair in decode:
        one, other = decode[pair][EXACT], prefill.get(pair, {}).get(EXACT)
        if one.plan is None or other is None or other.plan is None:
            continue
        crossed = [
            _crossed(pair, "prefill", one.plan, other.objective),
            _crossed(pair, "decode", other.plan, one.objective),
        ]
        row = {"cluster": pair[0], "model": pair[1], "prompt": crossed[0], "token": crossed[1]}
        yield row | {"same": "yes" if 0 in crossed else "no"}


def _crossed(pair: Pair, condition: str, plan: Mapping[str, Any], best: int | None) -> float | None:
    value = PROBLEM.evaluate(instance(*pair, condition), Plan.model_validate(plan, strict=False)).objective
    return None if value is None or not best else 100.0 * (value / best - 1)


@tabulated(
    "phases",
    "How often",
    "pairs | same: one plan is best for both | different | prompt_median: prompt longer by, median of these [%]; .1f "
    "| prompt_most: at most [%]; .1f | token_median: token longer by, median [%]; .1f | token_most: at most [%]; .1f",
)
def counted(rows: Sequence[Mapping[str, Any]]) -> Rows:
    """Counts of the table above."""
    other = [row for row in rows if row["same"] == "no"]
    found: dict[str, Any] = {"pairs": len(rows), "same": len(rows) - len(other), "different": len(other)}
    for key in ("prompt", "token"):
        values = [row[key] for row in other]
        found |= {f"{key}_median": median(values), f"{key}_most": max(values)} if values else {}
    yield found


def page(runs: Runs, quick: bool) -> Page:
    """All tables."""
    exact = both(runs)
    told = "; ".join(f"{name}: {condition.title}" for name, condition in CONDITIONS.items())
    lead = [
        f"{len(MODELS)} models on {len(CLUSTERS)} clusters of boards with public numbers; weights of 4.5 bits, 300 us "
        f"of a message beside its bytes. Conditions: {told}.",
        "Times are estimates, a roofline times what was measured of such models; a placement that is best here is best "
        "for these estimates.",
        load_told(runs),
    ]
    if quick:
        lead.append("The small version: two models on two clusters.")
    sections = [
        Section("Rules", tables=[rules(runs), proofs(runs)]),
        Section("Two objectives", tables=[counted(exact.rows), exact]),
        Section("Where", tables=[by_cluster(runs)]),
        Section("All", tables=[losses(runs)]),
    ]
    return Page("Language models on unequal machines", lead, sections)


STUDY = Study(
    name="llm_placement",
    title="Layers of language models on the boards of a home",
    problem=PROBLEM.name,
    phases=phases,
    page=page,
    headline=("rules", "proofs", "phases"),
)
