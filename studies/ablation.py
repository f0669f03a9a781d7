"""Every parameter of every algorithm, changed one at a time: what the plan, the bound and the time lose.

Fresh seeds of small and realistic families, and larger instances of the library. A number is halved and doubled, a
truth value turned over, a list of numbers cut at either end. What nobody notices is a candidate to go.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any

from mapgap.catalogue import registry
from mapgap.catalogue.files import load_instance
from mapgap.core import InstanceBase, Method
from mapgap.execution.sweep import MethodJob
from mapgap.records.record import RunRecord
from mapgap.records.runs import Runs
from mapgap.reporting.report import Page, Section
from mapgap.reporting.study import Phase, Study
from mapgap.reporting.tables import Rows, Table, tabulated

FIRST_SEED = 1300
FAMILIES: Mapping[str, Mapping[str, int]] = {
    "fpga_gpu_partition": {"small": 3, "networks": 2},
    "hybrid_pipeline": {"small": 2, "scaling": 2, "distinct": 1},
    "layer_flow": {"small": 2, "realistic": 2, "cluster": 12},
    "multi_model_splitting": {"realistic": 2, "mixed_6x4": 2, "mixed_10x8": 1},
    "neuron_masking": {"small": 2, "fleet": 2, "scaling": 1},
    "suboperation_mapping": {"small": 2, "realistic": 3},
}
"""Seeds per family of every problem."""
LARGER: Mapping[str, Sequence[str]] = {
    "layer_flow": ["helix_llama30b_t4_geo", "helix_llama70b_42"],
    "suboperation_mapping": ["mtrain_c3_resnet18_1gbs", "mtrain_scale_4fpga_resnet18_3gbs"],
}
"""Instances of the library where those of the families are too easy for a parameter to be seen."""
LIMIT_S = 3.0
AS_IT_IS = ("", "''")
"""Name and value of no change."""
NOTICED, SLOWER = 0.1, 10.0
"""A loss in percent of plan or bound, and a change in percent of the time, from which a parameter matters."""


def changes(value: Any) -> Iterator[Any]:
    """Other values of a parameter."""
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, (int, float)):
        yield from (type(value)(value / 2), type(value)(value * 2))
    elif isinstance(value, tuple) and len(value) > 1:
        yield from (list(value[:-1]), list(value[1:]))


def tuned(problem: str) -> list[Method]:
    """The methods of a problem that have parameters."""
    return [method for method in registry.methods(problem).values() if method.params is not None]


def own(method: Method) -> dict[str, Any]:
    """The parameters that none of a method's members has: theirs are changed where they run alone."""
    found = registry.methods(method.problem)
    of_members = {name for each in method.members if each in found for name in found[each].defaults}
    return {name: value for name, value in method.defaults.items() if name not in of_members}


def instances(problem: str, quick: bool) -> Iterator[InstanceBase]:
    """Fresh seeds of the families of a problem; names say the problem."""
    for family, count in FAMILIES[problem].items():
        for seed in range(FIRST_SEED, FIRST_SEED + (1 if quick else count)):
            made = registry.library(problem).generate(family, seed)
            yield made.model_copy(update={"name": f"{problem}:{made.name}"})
    for name in () if quick else LARGER.get(problem, ()):
        yield load_instance(name)


def phases(quick: bool) -> list[Phase]:
    """Per problem: every method as it is, and with every parameter changed."""
    found = []
    for problem in FAMILIES:
        jobs = []
        for instance in instances(problem, quick):
            for method in tuned(problem):
                settings: list[dict[str, Any]] = [{}]
                settings += [{name: other} for name, value in own(method).items() for other in changes(value)]
                limit = 1.0 if quick else LIMIT_S
                jobs += [MethodJob(instance, method.name, limit, options=options) for options in settings]
        found.append(Phase(problem, jobs, parallel=2))
    return found


def percent(value: int | None, reference: int | None, sign: int) -> float | None:
    """By how much a value is worse than a reference, in percent of it; ``None`` where either is missing."""
    if value is None or reference is None:
        return None
    return 100.0 * sign * (value - reference) / max(1, abs(reference))


@tabulated(
    "parameters",
    "What a changed parameter loses",
    "problem | method | parameter | default | changed: changed to | instances | plan: plan, mean loss [%]; .3f "
    "| plan_worst: worst [%]; .2f | bound: bound, mean loss [%]; .3f | proofs: proofs lost "
    "| time: time [%]; .0f | matters",
    "Loss: of the changed run against the run with all defaults, same instance, seed and limit; negative is better. "
    "Time: of the changed run in percent of the other one, mean over instances. Runs that end by time differ between "
    "machines.",
)
def parameters(runs: Runs) -> Rows:
    """One row per parameter and change."""
    groups: dict[tuple[str, str], dict[str, dict[tuple[str, str], RunRecord]]] = defaultdict(dict)
    for record in runs:
        name, value = next(((k, v) for k, v in record.options.items()), ("", ""))
        known = groups[record.problem, record.method].setdefault(record.instance, {})
        known[name, repr(value)] = record
    for (problem, method), found in sorted(groups.items()):
        defaults = registry.methods(problem)[method].defaults
        settings = sorted({key for each in found.values() for key in each if key[0]}, key=lambda key: (key[0], key[1]))
        for name, value in settings:
            both = (AS_IT_IS, (name, value))
            pairs = [(each[both[0]], each[both[1]]) for each in found.values() if each.keys() >= set(both)]
            yield {"problem": problem, "method": method, "parameter": name, "default": defaults.get(name)} | row(
                value, pairs
            )


def row(value: str, pairs: Sequence[tuple[RunRecord, RunRecord]]) -> dict[str, Any]:
    """Losses over pairs of a run with defaults and a changed one."""
    plans = [loss for a, b in pairs if (loss := percent(b.objective, a.objective, a.sign)) is not None]
    plans += [100.0 for a, b in pairs if a.objective is not None and b.objective is None]
    bounds = [loss for a, b in pairs if (loss := percent(b.bound, a.bound, -a.sign)) is not None]
    times = [100.0 * (b.wall_s or 0.0) / a.wall_s for a, b in pairs if a.wall_s]
    proofs = sum(a.status == "OPTIMAL" and b.status != "OPTIMAL" for a, b in pairs)
    plan, bound, time = (fmean(each) if each else None for each in (plans, bounds, times))
    noticed = max(abs(plan or 0.0), abs(bound or 0.0)) >= NOTICED
    slower = time is not None and abs(time - 100.0) >= SLOWER
    return {
        "changed": value,
        "instances": len(pairs),
        "plan": plan,
        "plan_worst": max(plans, default=None),
        "bound": bound,
        "proofs": proofs,
        "time": time,
        "matters": "yes" if noticed or proofs else "time" if slower else "no",
    }


@tabulated(
    "counts",
    "Parameters that matter",
    "problem | parameters | yes: plan, bound or proofs | time: time only | no: nothing noticed",
    "A parameter matters if any change of it, in any method that has it, costs or gains 0.1 % of plan or bound, loses "
    "a proof, or changes the time by a tenth.",
)
def counts(table: Table) -> Rows:
    """One row per problem."""
    best: dict[str, dict[str, str]] = defaultdict(dict)
    order = ("no", "time", "yes")
    for each in table.rows:
        held = best[each["problem"]].get(each["parameter"], "no")
        best[each["problem"]][each["parameter"]] = max(held, each["matters"], key=order.index)
    for problem, names in best.items():
        yield {"problem": problem, "parameters": len(names)} | {
            word: sum(value == word for value in names.values()) for word in order
        }


def page(records: Runs, quick: bool) -> Page:
    """Both tables."""
    table = parameters(records)
    lead = [
        "Every parameter of every algorithm (mapgap show METHOD lists them) is changed, one at a time, on fresh "
        f"seeds and larger instances, {LIMIT_S:g} s a run, at most two runs at a time."
    ]
    if quick:
        lead.append("The small version: one seed a family, one second a run.")
    return Page("Parameters, one at a time", lead, [Section("Ablation", tables=[counts(table), table])])


STUDY = Study(
    name="ablation",
    title="Parameters, one at a time",
    problem="",
    phases=phases,
    page=page,
    headline=["counts"],
)
