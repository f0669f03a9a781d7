"""Claims of the paper that runs can confirm or refute: numbers of the prose, and who runs out of resource."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from statistics import fmean, geometric_mean
from typing import Any

from mapgap.records.runs import Runs
from mapgap.reporting.tables import Rows, tabulated
from mapgap.reporting.verdicts import Kind, verdict
from mapgap.studies.multi_model_splitting.experiments import (
    BASELINES,
    FIG_6,
    FIG_11A,
    FIG_11B,
    FIG_12,
    FIG_13,
    LONGEST_MS,
    MAPPINGS,
    SHORT,
    SYNERGY,
    TITLES,
    WORKLOADS,
    Results,
)
from mapgap.studies.multi_model_splitting.facts import printed

SENSING = "sensing times, source and target devices"
ENDS = "source and target devices"
THROUGHPUT, LATENCY = "throughput_per_s", "mean_latency_s"
W1, _, W3, W4 = WORKLOADS
FOUR, MIXED = FIG_12
SIX = FIG_11B[6]

#: Place, claim, key of the printed number, instance, method, what the paper leaves open.
VALUES = [
    ("Fig. 9", "W1 Synergy", "w1_syn_tput", W1, SYNERGY, SENSING),
    ("Fig. 9", "W1 PriMinDev", "w1_primindev", W1, "pri_min_dev", ENDS),
    ("Fig. 12", "4 MAX78000, Synergy", "het4_syn", FOUR, SYNERGY, ENDS),
    ("Fig. 12", "with MAX78002, Synergy", "het31_syn", MIXED, SYNERGY, ENDS),
    ("Fig. 12", "with MAX78002, PriMinDev", "het31_primindev", MIXED, "pri_min_dev", ENDS),
    *(("Fig. 13", f"W1 {m}, Synergy", f"map_{m}", f"synergy_w1_{m}", SYNERGY, SENSING) for m in MAPPINGS),
]
#: Place, claim, key, instance, term, numerator, denominator, what the paper leaves open.
RATIOS = [
    ("Fig. 9", "W1 Synergy over PriMinDev", "w1_ratio", W1, THROUGHPUT, SYNERGY, "pri_min_dev", SENSING),
    ("Fig. 9", "W3 Synergy over PriMaxDev", "w3_ratio", W3, THROUGHPUT, SYNERGY, "pri_max_dev", ENDS),
    ("Fig. 9", "W4 Synergy over JointModel", "w4_ratio", W4, THROUGHPUT, SYNERGY, "joint_model", ENDS),
    ("Fig. 10", "W1 latency, PriMinDev over Synergy", "w1_lat_ratio", W1, LATENCY, "pri_min_dev", SYNERGY, SENSING),
    ("Fig. 10", "W3 latency, PriMaxDev over Synergy", "w3_lat_ratio", W3, LATENCY, "pri_max_dev", SYNERGY, ENDS),
    ("Fig. 11 (b)", "6 pipelines, over PriMinDev", "npipe6_ratio", SIX, THROUGHPUT, SYNERGY, "pri_min_dev", SENSING),
    ("Fig. 12", "4 MAX78000, Synergy over JointModel", "het4_ratio", FOUR, THROUGHPUT, SYNERGY, "joint_model", ENDS),
]


CYCLES = {"w1": "distributed", "any": "any", "overl": "overlapped"}
"""End of the key of a printed cycle period, and the mapping of workload 1 that it belongs to."""
COMPARED = tuple(dict.fromkeys([*WORKLOADS, *FIG_11A.values(), *FIG_11B.values(), *FIG_12, *FIG_13]))
"""The scenarios in which the paper compares Synergy with its baselines."""


SMALL = 2.0
"""A printed ratio below this is judged by what it gains."""


def _kind(paper: float, unit: str) -> Kind:
    return "gain" if unit == "x" and paper < SMALL else "value"


BOUNDING = ("map_any", "cycle_any")
"""Printed numbers from which the longest sensing time was taken."""


@tabulated(
    "claims",
    "Printed numbers next to ours",
    "where | claim | printed; .3g | ours; .3g | unit | verdict "
    f"| longest: sensing {LONGEST_MS} ms; .3g | verdict_longest: verdict then | why: not printed",
    "PriMinDev of workload 1 is 4.20 / 38.4; a cycle is 3 / throughput. Ratios below 2 are judged by what they "
    "gain (reproduced within a quarter, close within a half), all else by value (10 %, 25 %). Workload 1 placed "
    "anywhere is what bounds sensing, so its agreement at the longest sensing is no evidence. The last column "
    "names what the paper does not print.",
)
def claims(results: Results) -> list[dict[str, Any]]:
    """Numbers of the paper's prose next to ours, where sensing takes no time and where it takes as long as it may."""
    paper, rows = printed(), []
    longest = {key: ours for _, _, key, ours, _, _ in _ours(replace(results, sensing_ms=LONGEST_MS))}
    for where, what, key, ours, unit, why in _ours(results):
        if ours is not None:
            row = {"key": key, "where": where, "claim": what, "printed": paper[key], "ours": ours, "unit": unit}
            kind, later = _kind(paper[key], unit), longest[key]
            row |= {"why": why, "verdict": verdict(paper[key], ours, kind=kind), "longest": later}
            if later is not None and key not in BOUNDING:
                row["verdict_longest"] = verdict(paper[key], later, kind=kind)
            rows.append(row)
    return sorted(rows, key=lambda row: row["where"].replace("Fig. 9", "Fig. 09"))


def _ours(results: Results) -> Iterator[tuple[str, str, str, float | None, str, str]]:
    """Where, claim, key of the printed number, ours (``None`` without its runs), unit, what the paper leaves open."""
    for where, what, key, name, method, why in VALUES:
        yield where, what, key, results.term(name, method), "inferences/s", why
    six = results.term(SIX, SYNERGY)
    what = "6 pipelines, Synergy, mean per pipeline"
    yield "Fig. 11 (b)", what, "npipe6_syn", six / 6 if six else None, "inferences/s", SENSING
    alone, joint = results.term(MIXED, "ind_best"), results.term(MIXED, SYNERGY)
    below_synergy = 100 * (1 - alone / joint) if alone and joint else None
    yield "Fig. 12", "with MAX78002, IndBest below Synergy", "het31_indbest", below_synergy, "%", ENDS
    for where, what, key, name, term, above, below, why in RATIOS:
        over, under = results.term(name, above, term), results.term(name, below, term)
        yield where, what, key, over / under if over and under else None, "x", why
    for end, mapping in CYCLES.items():
        rate = results.term(f"synergy_w1_{mapping}", SYNERGY)
        yield "Fig. 13", f"W1 {mapping}, cycle", f"cycle_{end}", 3000 / rate if rate else None, "ms", SENSING


@tabulated(
    "mean_gain",
    "Mean throughput gain over the baselines",
    "sensing: sensing [ms] | over | ratios | printed; .1f | mean: arithmetic mean; .2f "
    "| geometric: geometric mean; .2f | verdict: verdict on the geometric mean",
    "Throughput of Synergy over that of a baseline, in the scenarios of Figs. 9 and 11 to 13. The paper does not "
    "say over what it averages; a baseline that is out of resource has no ratio. Next best: the best baseline of a "
    "scenario.",
)
def mean_gain(runs: Runs) -> Rows:
    """The abstract's mean gain over the baselines, under every reading of "on average"."""
    average = printed()["avg_gain"]
    for ms in (0, LONGEST_MS):
        ratios = [found for name in COMPARED if (found := _over_baselines(Results(runs, ms), name))]
        for over, chosen in (("all", [r for each in ratios for r in each]), ("next best", [min(r) for r in ratios])):
            if chosen:
                mean = geometric_mean(chosen)
                row = {"sensing": ms, "over": over, "ratios": len(chosen), "mean": fmean(chosen), "geometric": mean}
                yield row | {"printed": average, "verdict": verdict(average, mean, kind=_kind(average, "x"))}


def _over_baselines(results: Results, name: str) -> list[float]:
    """Throughput of Synergy over that of every baseline that found a plan."""
    mine = results.term(name, SYNERGY)
    return [mine / its for method in BASELINES if (its := results.term(name, method))] if mine else []


@tabulated("thresholds", "Counts of devices and pipelines", "what: Fig. 11 | printed | ours | verdict")
def thresholds(results: Results) -> Rows:
    """Counts of devices or pipelines at which something changes (Fig. 11)."""
    devices = {n: results.term(name, SYNERGY) for n, name in FIG_11A.items()}
    alone = {n: results.out_of_resource(name, "ind_best") for n, name in FIG_11A.items()}
    crowded = {n: results.out_of_resource(name, "ind_best") for n, name in FIG_11B.items()}
    if None in (*devices.values(), *alone.values(), *crowded.values()):
        return
    full = devices[max(devices)]
    risen = [n for n, value in devices.items() if value and full and value >= 0.99 * full]
    for key, what, value, counts in (
        ("ndev_sat", "devices from which on Synergy's throughput does not rise", 4, risen),
        ("ndev_indbest_ok", "fewest devices at which IndBest runs", 4, [n for n, out in alone.items() if not out]),
        ("npipe_indbest_oor", "fewest pipelines at which IndBest is OOR", 5, [n for n, out in crowded.items() if out]),
    ):
        ours = min(counts, default=None)
        row = {"key": key, "what": what, "printed": value, "ours": ours}
        yield row | {"verdict": "equal" if value == ours else "differs", "agrees": 1 if value == ours else -1}


@tabulated(
    "out_of_resource",
    "Out of resource: printed and here",
    "where | instance | method | printed | ours | verdict | first: first limit exceeded",
    "Workload 2: Sec. 7.2 says that IndBest is comparable to Synergy there, and further down that it runs out of "
    "resource there; the first is taken.",
)
def oor_pattern(results: Results) -> Rows:
    """Where the paper reports OOR of IndModel and IndBest, and where it happens here."""
    expected = [
        *(("Fig. 9", name, "ind_model", True) for name in WORKLOADS[:2]),
        *(("Fig. 9", name, "ind_best", False) for name in WORKLOADS[:2]),
        *(("Fig. 11 (a)", name, "ind_model", True) for name in FIG_11A.values()),
        *(("Fig. 11 (a)", name, "ind_best", n < 4) for n, name in FIG_11A.items()),
        *(("Fig. 11 (b)", name, "ind_best", n >= 5) for n, name in FIG_11B.items()),
        *(("Fig. 12", name, "ind_best", False) for name in FIG_12),
        *(("Fig. 6", name, "synergy_without_joint", True) for name in FIG_6),
    ]
    for where, name, method, paper in expected:
        record, ours = results.record(name, method), results.out_of_resource(name, method)
        if record is not None and ours is not None:
            row = {"where": where, "instance": SHORT[name], "method": TITLES[method], "sign": 1 if ours else -1}
            row |= {key: "OOR" if out else "runs" for key, out in (("printed", paper), ("ours", ours))}
            row |= {"verdict": "reproduced" if paper == ours else "differs"}
            yield row | {"first": record.reason.split(";")[0] if ours else ""}
