"""ELFISH's stragglers, the optimal mask, and what it does to training (Tables 2 and 3, Figs. 3-5).

The paper picks the neurons of each layer by a one-parameter greedy. Here it stands next to the proven optimum for every
objective, and the masks train a network on a simulated clock.

Trainings have three roles, told apart by their seeds (:mod:`mapgap.studies.neuron_masking.design`): a pilot (0 to 4),
the tuning of asynchronous learning (100 to 104), and the tests on which all claims rest (1000 to 1013 in the first
fleet, 1100 to 1113 in the second, and so on), fixed before they were run.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

from mapgap.catalogue.files import load_instance
from mapgap.core import InstanceBase
from mapgap.execution.sweep import Job, MethodJob
from mapgap.records.record import relative
from mapgap.records.runs import Runs
from mapgap.reporting import figures
from mapgap.reporting.report import Page, Picture, Section, picture
from mapgap.reporting.run_tables import instance_table, method_table, run_table
from mapgap.reporting.study import Phase, Study
from mapgap.reporting.tables import Column, Rows, Table, header, tabulated
from mapgap.studies.neuron_masking import profile, trainings
from mapgap.studies.neuron_masking.design import (
    ALL_STRAGGLERS,
    CYCLES,
    MIXINGS,
    PILOT_SEEDS,
    REPLACING,
    SETTINGS,
    TUNED,
    TUNING_SEEDS,
    UNTUNED,
    Setting,
    seeds_for_tests,
)
from mapgap.studies.neuron_masking.job import KIND, SCHEMES, Options, TrainingJob, available

PROBLEM = "neuron_masking"
NETWORKS = {"lenet": "LeNet", "alexnet_cifar": "AlexNet", "vgg11": "VGG-11", "vgg13": "VGG-13"}
OBJECTIVES = {"neurons": "neurons", "contribution": "contribution", "smallest_share": "smallest share"}
EXACT = "lagrangian"
EXACTS = (EXACT, "mip", "cpsat")
EXACT_S = 30.0
"""Limit of a run that is to prove an optimum."""
HEURISTICS = ("elfish_greedy", "uniform", "largest_cost_first", "contribution_per_cost")
TOP = {"selection": "top"}
ALPHAS = ("neuron_time", "layer_time", "uniform")
FLEETS = tuple(f"elfish_alexnet_cifar_{title}_fleet" for title in ("fig1", "setting1", "setting2"))


def library_name(network: str, straggler: int) -> str:
    """Library name of an instance of Table 3."""
    return f"elfish_{network}_straggler{straggler}"


@cache
def instance(name: str, objective: str | None = None, mode: str = "hard") -> InstanceBase:
    """A library instance under an objective and a reading of memory, which its name states."""
    title = name if objective is None else f"{name}@{objective}"
    return load_instance(title).changed(memory_mode=mode, name=title if mode == "hard" else f"{title}:{mode}")


def _jobs(
    networks: Iterable[str],
    stragglers: Sequence[int],
    objectives: Sequence[str],
    methods: Sequence[str],
    mode: str = "hard",
    time_s: float = 60.0,
    workers: int = 1,
) -> list[Job]:
    return [
        MethodJob(instance(library_name(network, number), objective, mode), method, time_s, workers=workers)
        for network in networks
        for number in stragglers
        for objective in objectives
        for method in methods
    ]


def _greedy_jobs(networks: Iterable[str], stragglers: Sequence[int], alphas: Sequence[str]) -> list[Job]:
    """ELFISH's counts with the largest contributions: what chance costs, and what alpha does."""
    return [
        MethodJob(
            instance(library_name(network, number), objective), "elfish_greedy", 60.0, options={"alpha": alpha, **TOP}
        )
        for network in networks
        for number in stragglers
        for objective in OBJECTIVES
        for alpha in alphas
    ]


def _training(setting: Setting, seed: int, scheme: str, mixing: float = UNTUNED, cycles: int = CYCLES) -> Job:
    options = Options(scheme, cycles=cycles, iid=setting.iid, mixing=mixing)
    return TrainingJob(instance(f"elfish_digits_{setting.fleet}"), options, seed)


def _pilot() -> list[Job]:
    schemes = [scheme for scheme in SCHEMES if scheme != "async"]
    return [_training(setting, seed, scheme) for setting in SETTINGS for seed in PILOT_SEEDS for scheme in schemes]


def _tuning() -> list[Job]:
    return [
        _training(setting, seed, "async", mixing) for setting in SETTINGS for mixing in MIXINGS for seed in TUNING_SEEDS
    ]


def _tests() -> list[Job]:
    """All schemes; asynchronous learning as tuned, and where all devices are stragglers with replacing models, too."""
    found = []
    for setting in SETTINGS:
        for seed in seeds_for_tests(setting):
            for scheme in SCHEMES:
                mixing = TUNED[setting] if scheme == "async" else UNTUNED
                found.append(_training(setting, seed, scheme, mixing))
            if setting == ALL_STRAGGLERS:
                found.append(_training(setting, seed, "async", REPLACING))
    return found


def _few_trainings() -> list[Job]:
    setting = Setting("2of4")
    return [
        _training(setting, seed, scheme, TUNED[setting] if scheme == "async" else UNTUNED, 15)
        for seed in seeds_for_tests(setting)[:5]
        for scheme in SCHEMES[:5]
    ]


def phases(quick: bool) -> list[Phase]:
    """The runs; without the extra ``training`` those of masks only."""
    if quick:
        found = [
            Phase("Masks", _jobs(NETWORKS, (4,), ("neurons", "contribution"), (EXACT, "elfish_greedy")), 2),
            Phase("Baselines", _jobs(("alexnet_cifar",), (4,), tuple(OBJECTIVES), (EXACT, *HEURISTICS)), 2),
            Phase("Spill", _jobs(("vgg13",), (3,), ("neurons",), (EXACT, "elfish_greedy"), "spill"), 2),
            Phase("Hard", _jobs(("vgg13",), (3,), ("neurons",), (EXACT, "elfish_greedy")), 2),
        ]
        trainings_of = [Phase("Training", _few_trainings(), 2)]
    else:
        every = (1, 2, 3, 4)
        fleets = [MethodJob(instance(name), method, 120.0) for name in FLEETS for method in (EXACT, *HEURISTICS)]
        found = [
            Phase("Heuristics", _jobs(NETWORKS, every, tuple(OBJECTIVES), HEURISTICS), 2),
            Phase("Alpha", _greedy_jobs(NETWORKS, every, ALPHAS), 2),
            Phase("Spill", _jobs(NETWORKS, every, ("neurons",), (EXACT, "elfish_greedy"), "spill"), 2),
            Phase("Fleets", fleets, 2),
            Phase("Exact", _jobs(NETWORKS, every, tuple(OBJECTIVES), EXACTS, time_s=EXACT_S, workers=2), 1),
        ]
        trainings_of = [
            Phase("Training, pilot", _pilot(), 2),
            Phase("Training, tuning", _tuning(), 2),
            Phase("Training, test", _tests(), 2),
        ]
    return [*found, *trainings_of] if available() else found


def percent_below(runs: Runs, name: str, method: str, **options: str) -> float | None:
    """Percent of the best proven bound by which a plan falls short of it."""
    gap = runs.gap(name, method, **options)
    return None if gap is None else 100 * gap


def kept(runs: Runs, name: str, method: str) -> float | None:
    """Kept part of all neurons."""
    part: float | None = runs.term(name, method, "kept_fraction")
    return part


def gaps(runs: Runs) -> Table:
    """Every heuristic below the proven bound, by objective."""
    rows: list[dict[str, Any]] = []
    for network in NETWORKS:
        for number in (1, 2, 3, 4):
            for objective, title in OBJECTIVES.items():
                name = f"{library_name(network, number)}@{objective}"
                fact = runs.fact(name)
                if fact is None:
                    continue
                row: dict[str, Any] = {"network": NETWORKS[network], "straggler": number, "objective": title}
                row |= {"best": fact.best, "proven": "optimal" if fact.proven else "", "by": fact.bound_by}
                row |= {method: percent_below(runs, name, method) for method in HEURISTICS}
                row |= {
                    f"top_{alpha}": percent_below(runs, name, "elfish_greedy", alpha=alpha, **TOP) for alpha in ALPHAS
                }
                row |= {"kept": kept(runs, name, EXACT), "kept_greedy": kept(runs, name, "elfish_greedy")}
                rows.append(row)
    columns = [
        *header("network | straggler: str. | objective | best: best plan | proven | elfish_greedy: ELFISH [%]; .2f"),
        *(Column(f"top_{alpha}", f"ELFISH, alpha {alpha}, top U [%]", ".2f") for alpha in ALPHAS),
        *(Column(method, f"{method} [%]", ".2f") for method in HEURISTICS[1:]),
        *header("kept_greedy: kept, ELFISH; .3f | kept: kept, exact; .3f"),
    ]
    shown = [c for c in columns if any(row.get(c.key) is not None for row in rows)]
    note = (
        "Gap to the proven bound; memory is hard. ELFISH draws a fifth of the neurons at random, 'top U' does not. "
        "The uniform share is optimal for the smallest share by monotonicity of the costs."
    )
    return Table("gaps", "How far below the proven bound each mask lies", shown, rows, note)


@tabulated(
    "spill",
    "Hard memory and spill",
    "network | straggler: str. | hard_greedy: ELFISH, hard; .3f | spill_greedy: ELFISH, spill; .3f "
    "| hard: exact, hard; .3f | spill: exact, spill; .3f",
    "Kept part of all neurons. Hard: M <= b_M as Eq. (5); spill: M may exceed it at Eq. (4)'s price in time.",
)
def spill(runs: Runs) -> Rows:
    """Hard memory against Eq. (4)'s spill, kept neurons."""
    for network in NETWORKS:
        for number in (1, 2, 3, 4):
            name = f"{library_name(network, number)}@neurons"
            row: dict[str, Any] = {"network": NETWORKS[network], "straggler": number}
            for mode, suffix in (("hard", ""), ("spill", ":spill")):
                row[mode] = kept(runs, name + suffix, EXACT)
                row[f"{mode}_greedy"] = kept(runs, name + suffix, "elfish_greedy")
            if row["spill"] is not None:
                yield row


@tabulated(
    "fleets",
    "One cycle time for a whole fleet",
    "fleet | method | cycle: cycle [min]; g | rate: contribution per hour | kept; .3f | gap: gap [%]; .2f",
)
def fleets(runs: Runs) -> Rows:
    """The common cycle time of a whole fleet."""
    for name in FLEETS:
        for method in (EXACT, *HEURISTICS):
            record = runs.get(name, method)
            if record is not None and record.plan:
                terms = record.terms
                row = {
                    "fleet": name,
                    "method": method,
                    "rate": record.objective,
                    "gap": percent_below(runs, name, method),
                }
                yield row | {"cycle": terms["cycle_ms"] / 60_000, "kept": terms["kept_fraction"]}


@tabulated(
    "engines",
    "What the exact methods prove",
    "method | objective | runs | proven: proven optimal | longest: longest proof [s]; .2f "
    "| open: most left open [%]; .4f",
    f"Limit {EXACT_S:g} s, two workers; the last column is the distance of a method's plan to its own bound.",
)
def engines(runs: Runs) -> Rows:
    """What each exact method proves of the stragglers, and what it leaves open."""
    wanted = {instance(library_name(n, k), o).name: o for n in NETWORKS for k in (1, 2, 3, 4) for o in OBJECTIVES}
    for method in EXACTS:
        for objective, title in OBJECTIVES.items():
            found = [r for r in runs if r.method == method and wanted.get(r.instance) == objective and not r.error]
            times = [r.wall_s for r in found if r.status == "OPTIMAL" and r.wall_s is not None]
            left = [gap for r in found if (gap := relative(r.objective, r.bound, r.sign)) is not None]
            if found:
                row = {"method": method, "objective": title, "runs": len(found), "proven": len(times)}
                row |= {"longest": max(times, default=None), "open": 100 * max(left) if left else None}
                yield row


def layer_pictures(runs: Runs) -> list[Picture]:
    """Share of kept neurons by layer."""
    found = []
    for network in NETWORKS:
        for objective in ("neurons", "contribution"):
            name = f"{library_name(network, 4)}@{objective}"
            shares: dict[str, dict[str, float]] = {}
            for method in (EXACT, "elfish_greedy", "uniform", "contribution_per_cost"):
                record = runs.get(name, method)
                if record is not None and record.plan:
                    shares[method] = record.terms["devices"]["straggler4"]["shares"]
            if len(shares) < 2:
                continue
            layers = list(next(iter(shares.values())))
            series = {method: [100 * share[layer] for layer in layers] for method, share in shares.items()}
            title = f"{NETWORKS[network]}, straggler 4, {OBJECTIVES[objective]}"
            figure = figures.grouped_bars(layers, series, ylabel="kept neurons [%]", title=title)
            found.append(picture(f"layers_{network}_{objective}", figure, "Kept neurons of each layer."))
    return found


def _lead(runs: Runs, table: Table) -> list[str]:
    lead = [
        "ELFISH masks neurons of a straggler so that its training cycle ends with those of the other devices; a greedy "
        "with one parameter chooses how many of each layer. Here it stands next to the proven optimum."
    ]
    for title in OBJECTIVES.values():
        values = [r["elfish_greedy"] for r in table.rows if r["objective"] == title and r["elfish_greedy"] is not None]
        if values:
            lead.append(f"{title}: ELFISH's masks lie {min(values):.1f} % to {max(values):.1f} % below the bound.")
    proven = sum(fact.proven for fact in runs.facts.values())
    lead.append(f"{proven} of {len(runs.facts)} instances are proven optimal.")
    return lead


def page(records: Runs, quick: bool) -> Page:
    """The page of the study."""
    masks = records.where(lambda record: record.kind != KIND)
    table = gaps(masks)
    sections = [
        Section("Gaps", tables=[table, spill(masks)], figures=layer_pictures(masks)),
        trainings.section(records.where(kind=KIND)),
        profile.section(),
    ]
    if not quick:
        sections.insert(1, Section("Fleets", tables=[fleets(masks)]))
    tables = [engines(masks), method_table(masks), instance_table(masks), run_table(masks)]
    sections.append(Section("All runs", tables=tables))
    return Page("Neuron masking: how far from optimal are ELFISH's masks?", _lead(masks, table), sections)


STUDY = Study(
    name="neuron_masking",
    title="ELFISH's masks and the optimum, and what they do to training (Tables 2 and 3, Figs. 3-5)",
    problem=PROBLEM,
    phases=phases,
    page=page,
    headline=("gaps", "table_2", "table_3"),
)
