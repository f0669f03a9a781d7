"""ELFISH's stragglers, the optimal mask, and what it does to training (Tables 2 and 3, Figs. 3-5).

The paper picks the neurons of each layer by a one-parameter greedy. Here it stands next to the proven optimum for every
objective, and the masks train a network on a simulated clock.

Trainings have three roles, told apart by their seeds (:mod:`mapgap.studies.neuron_masking.design`): a pilot (0 to 4),
the tuning of asynchronous learning (100 to 104), and the tests on which all claims rest (1000 to 1013 in the first
fleet, 1100 to 1113 in the second, and so on), fixed before they were run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from itertools import product
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
from mapgap.reporting.tables import Rows, Table, header, tabulated
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
STRAGGLERS = (1, 2, 3, 4)
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
    stragglers: Iterable[int],
    objectives: Iterable[str],
    methods: Iterable[str],
    mode: str = "hard",
    time_s: float = 60.0,
    **settings: Any,
) -> list[Job]:
    """Every method on every straggler with every network, under every objective."""
    return [
        MethodJob(instance(library_name(network, number), objective, mode), method, time_s, **settings)
        for network, number, objective, method in product(networks, stragglers, objectives, methods)
    ]


def _trainings(
    settings: Iterable[Setting],
    schemes: Iterable[str],
    seeds: Callable[[Setting], Iterable[int]],
    mixings: Callable[[Setting], Iterable[float]] = lambda setting: [TUNED[setting]],
    cycles: int = CYCLES,
) -> list[Job]:
    """Every scheme in every fleet on its seeds; asynchronous learning with every mixing weight of the fleet."""
    chosen = list(schemes)
    return [
        TrainingJob(
            instance(f"elfish_digits_{setting.fleet}"), Options(scheme, cycles, setting.iid, mixing=mixing), seed
        )
        for setting in settings
        for seed in seeds(setting)
        for scheme in chosen
        for mixing in (mixings(setting) if scheme == "async" else [UNTUNED])
    ]


def _tested_mixings(setting: Setting) -> list[float]:
    """As tuned; where all devices are stragglers also with replacing models."""
    return [TUNED[setting], *([REPLACING] if setting == ALL_STRAGGLERS else [])]


def phases(quick: bool) -> list[Phase]:
    """The runs; of the small version without the package that trains (:mod:`.job`) those of masks only.

    The design of the full one does not depend on what is installed: its page is a function of its runs.
    """
    if quick:
        both = (EXACT, "elfish_greedy")
        masks = {
            "Masks": _jobs(NETWORKS, (4,), ("neurons", "contribution"), both),
            "Baselines": _jobs(("alexnet_cifar",), (4,), OBJECTIVES, (EXACT, *HEURISTICS)),
            "Spill": _jobs(("vgg13",), (3,), ("neurons",), both, "spill"),
            "Hard": _jobs(("vgg13",), (3,), ("neurons",), both),
        }
        few = _trainings([Setting("2of4")], SCHEMES[:5], lambda setting: seeds_for_tests(setting)[:5], cycles=15)
        training = {"Training": few}
    else:
        # ELFISH's counts with the largest contributions: what chance costs, and what alpha does.
        greedy = {alpha: {"alpha": alpha, **TOP} for alpha in ALPHAS}
        masks = {
            "Heuristics": _jobs(NETWORKS, STRAGGLERS, OBJECTIVES, HEURISTICS),
            "Alpha": [
                MethodJob(instance(library_name(network, number), objective), "elfish_greedy", 60.0, options=options)
                for network, number, objective, options in product(NETWORKS, STRAGGLERS, OBJECTIVES, greedy.values())
            ],
            "Spill": _jobs(NETWORKS, STRAGGLERS, ("neurons",), (EXACT, "elfish_greedy"), "spill"),
            "Fleets": [MethodJob(instance(n), method, 120.0) for n, method in product(FLEETS, (EXACT, *HEURISTICS))],
            "Exact": _jobs(NETWORKS, STRAGGLERS, OBJECTIVES, EXACTS, time_s=EXACT_S, workers=2),
        }
        pilot = [scheme for scheme in SCHEMES if scheme != "async"]
        training = {
            "Training, pilot": _trainings(SETTINGS, pilot, lambda _: PILOT_SEEDS),
            "Training, tuning": _trainings(SETTINGS, ["async"], lambda _: TUNING_SEEDS, lambda _: MIXINGS),
            "Training, test": _trainings(SETTINGS, SCHEMES, seeds_for_tests, _tested_mixings),
        }
    found = masks | (training if not quick or available() else {})
    return [Phase(name, jobs, 1 if name == "Exact" else 2) for name, jobs in found.items()]


def percent_below(runs: Runs, name: str, method: str, **options: str) -> float | None:
    """Percent of the best proven bound by which a plan falls short of it."""
    gap = runs.gap(name, method, **options)
    return None if gap is None else 100 * gap


def kept(runs: Runs, name: str, method: str) -> float | None:
    """Kept part of all neurons."""
    part: float | None = runs.term(name, method, "kept_fraction")
    return part


def _cases() -> list[tuple[str, str, int]]:
    """Library name, network and straggler of every instance of Table 3."""
    return [(library_name(network, number), NETWORKS[network], number) for network in NETWORKS for number in STRAGGLERS]


def gaps(runs: Runs) -> Table:
    """Every heuristic below the proven bound, by objective."""
    rows: list[dict[str, Any]] = []
    for (base, network, number), (objective, title) in product(_cases(), OBJECTIVES.items()):
        name = f"{base}@{objective}"
        if (fact := runs.fact(name)) is None:
            continue
        row: dict[str, Any] = {"network": network, "straggler": number, "objective": title}
        row |= {"best": fact.best, "proven": "optimal" if fact.proven else "", "by": fact.bound_by}
        row |= {method: percent_below(runs, name, method) for method in HEURISTICS}
        row |= {f"top_{alpha}": percent_below(runs, name, "elfish_greedy", alpha=alpha, **TOP) for alpha in ALPHAS}
        rows.append(row | {"kept": kept(runs, name, EXACT), "kept_greedy": kept(runs, name, "elfish_greedy")})
    columns = header(
        "network | straggler: str. | objective | best: best plan | proven | elfish_greedy: ELFISH [%]; .2f"
        + "".join(f" | top_{alpha}: ELFISH, alpha {alpha}, top U [%]; .2f" for alpha in ALPHAS)
        + "".join(f" | {method}: {method} [%]; .2f" for method in HEURISTICS[1:])
        + " | kept_greedy: kept, ELFISH; .3f | kept: kept, exact; .3f"
    )
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
    """Kept neurons with hard memory and with spill, objective: kept neurons."""
    for base, network, number in _cases():
        row: dict[str, Any] = {"network": network, "straggler": number}
        for mode, name in (("hard", f"{base}@neurons"), ("spill", f"{base}@neurons:spill")):
            row |= {mode: kept(runs, name, EXACT), f"{mode}_greedy": kept(runs, name, "elfish_greedy")}
        if row["spill"] is not None:
            yield row


@tabulated(
    "fleets",
    "One cycle time for a whole fleet",
    "fleet | method | cycle: cycle [min]; g | rate: contribution per hour | kept; .3f | gap: gap [%]; .2f",
)
def fleets(runs: Runs) -> Rows:
    """The common cycle time of a whole fleet."""
    for name, method in product(FLEETS, (EXACT, *HEURISTICS)):
        record = runs.get(name, method)
        if record is not None and record.plan:
            row = {"fleet": name, "method": method, "rate": record.objective, "gap": percent_below(runs, name, method)}
            yield row | {"cycle": record.terms["cycle_ms"] / 60_000, "kept": record.terms["kept_fraction"]}


@tabulated(
    "engines",
    "What the exact methods prove",
    "method | objective | runs | proven: proven optimal | longest: longest proof [s]; .2f "
    "| open: most left open [%]; .4f",
    f"Limit {EXACT_S:g} s, two workers; the last column is the distance of a method's plan to its own bound.",
)
def engines(runs: Runs) -> Rows:
    """What each exact method proves of the stragglers, and what it leaves open."""
    for method, (objective, title) in product(EXACTS, OBJECTIVES.items()):
        wanted = {instance(name, objective).name for name, _, _ in _cases()}
        found = [r for r in runs if r.method == method and r.instance in wanted and not r.error]
        times = [r.wall_s for r in found if r.status == "OPTIMAL" and r.wall_s is not None]
        left = [gap for r in found if (gap := relative(r.objective, r.bound, r.sign)) is not None]
        if found:
            row = {"method": method, "objective": title, "runs": len(found), "proven": len(times)}
            yield row | {"longest": max(times, default=None), "open": 100 * max(left) if left else None}


def layer_pictures(runs: Runs) -> list[Picture]:
    """Share of kept neurons by layer."""
    found = []
    for network, objective in product(NETWORKS, ("neurons", "contribution")):
        name = f"{library_name(network, 4)}@{objective}"
        plans = {m: runs.get(name, m) for m in (EXACT, "elfish_greedy", "uniform", "contribution_per_cost")}
        shares = {m: r.terms["devices"]["straggler4"]["shares"] for m, r in plans.items() if r is not None and r.plan}
        if len(shares) > 1:
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
    needs=("scipy",),
)
