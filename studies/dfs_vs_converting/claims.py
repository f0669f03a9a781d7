"""Every number of the paper that the runs say something about, in both readings of the delta latency.

Search times are not compared: the paper's machine is not named, and here most are some 10 ms. The effort of a search is
counted, by the batch ratios that it maps, which is what takes the time in both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from mapgap.instances.published_numbers import published_rows
from mapgap.records.runs import Runs
from mapgap.reporting.tables import Rows, tabulated
from mapgap.reporting.verdicts import Kind, judge
from mapgap.studies.dfs_vs_converting.experiments import (
    BANDWIDTHS,
    CONVERTING,
    DFS,
    FPGAS,
    READINGS,
    SCALE_BANDWIDTHS,
    STEPS,
    TABLE_3,
    TITLES,
    gflops,
    library_name,
    scale_name,
    synchronous,
)

Reading = int
"""Place in :data:`READINGS`: 0 the literal sum, 1 the growth of the makespan."""
Found = Callable[[Runs, Reading], float | None]
SHORT = {"res18": "resnet18", "tiny": "tinyyolov3", "alex": "alexnet", "vgg": "vgg16"}
"""Networks as the identifiers of prose numbers name them."""
QUOTED = (
    *("c2_vgg_05", "c2_res18_05", "c2_tiny_05", "c3_vgg_05", "c3_res18_05", "c3_tiny_05"),
    *("c3_tiny_0125", "c3_vgg_0125"),
)
"""Throughput at narrow bandwidths, in GB/s, quoted in Sec. VI-B."""
NO_GAIN = 0.05
"""More FPGAs that bring less than this bring nothing."""


@dataclass(frozen=True)
class Claim:
    """A published number by its identifier: what kind it is, and what runs make of it in a reading."""

    key: str
    kind: Kind
    found: Found
    read: bool = True
    """Does it depend on the reading?"""


def all_claims() -> Iterator[Claim]:
    """The claims, in the order of the paper."""
    narrow, wide = (throughput(library_name(1, "alexnet", label)) for label in ("0p125", "15"))
    first = throughput(library_name(1, "alexnet", "0p125"), STEPS[:1])
    yield Claim("c1_alex_step", "gain", percent_over(narrow, first))
    yield Claim("c1_alex_bw", "gain", percent_over(wide, narrow))
    yield Claim("c1_alex_0125", "value", narrow)
    for short, network in SHORT.items():
        every = [throughput(library_name(1, network, label)) for label in BANDWIDTHS]
        yield Claim(f"c1_{short}_max", "value", folded(max, every))
    for key in QUOTED:
        where, short, bandwidth = key.split("_")
        name = library_name(int(where[1]), SHORT[short], {"05": "0p5", "0125": "0p125"}[bandwidth])
        yield Claim(key, "value", throughput(name))
    fast = [library_name(cluster, network, "15") for cluster in (1, 2, 3) for network in TITLES]
    over_hap = [over(throughput(name), sharded(name)) for name in fast]
    yield Claim("hap_lo", "gain", folded(min, over_hap))
    yield Claim("hap_hi", "gain", folded(max, over_hap))
    yield from (claim for network in TABLE_3 for cluster in (1, 2) for claim in _table_3(network, cluster))
    yield from _searches()


def _searches() -> Iterator[Claim]:
    """Secs. VI-D and VI-E: ratios, and what more FPGAs bring."""
    yield Claim("res18_c2_exact", "value", throughput(library_name(2, "resnet18", "3")))
    for cluster in (1, 2, 3):
        name = library_name(cluster, "resnet18", "3")
        yield Claim(f"ratios_c{cluster}", "count", noted(name, DFS, "ratios"), read=False)
    yield Claim("scale_lowbw", "count", widest_without_gain)


def _table_3(network: str, cluster: int) -> Iterator[Claim]:
    """One row of Table III: throughput of DFS and converting, their ratio, and that of the ratios that they map."""
    name, key = library_name(cluster, network, "3"), f"t3_{network}_c{cluster}"
    yield Claim(f"{key}_dfs", "value", throughput(name, READINGS[DFS]))
    yield Claim(f"{key}_mt", "value", throughput(name))
    yield Claim(f"{key}_tr", "value", over(mapped(name, DFS), mapped(name, CONVERTING)))
    yield Claim(f"{key}_qr", "gain", over(throughput(name), throughput(name, READINGS[DFS])))


def throughput(name: str, methods: Sequence[str] = READINGS[CONVERTING]) -> Found:
    """GFLOPS of a method's plan, in the reading's variant if there are several."""
    return lambda runs, reading: gflops(runs, name, methods[min(reading, len(methods) - 1)])


def sharded(name: str) -> Found:
    """GFLOPS of HAP-style sharding as Sec. III-B executes it."""
    return lambda runs, _: synchronous(runs, name, "hap_sharding")


def mapped(name: str, method: str) -> Found:
    """Batch ratios that a method maps."""
    return lambda runs, reading: runs.note(name, READINGS[method][reading], "ratios_mapped")


def noted(name: str, method: str, note: str) -> Found:
    """What a method notes of its run."""
    return lambda runs, _: runs.note(name, method, note)


def over(above: Found, below: Found) -> Found:
    """The ratio of two numbers."""

    def found(runs: Runs, reading: Reading) -> float | None:
        a, b = above(runs, reading), below(runs, reading)
        return a / b if a is not None and b else None

    return found


def percent_over(above: Found, below: Found) -> Found:
    """By how many percent one number is above the other."""

    def found(runs: Runs, reading: Reading) -> float | None:
        ratio = over(above, below)(runs, reading)
        return None if ratio is None else 100 * (ratio - 1)

    return found


def folded(fold: Callable[[Iterable[float]], float], each: Sequence[Found]) -> Found:
    """One number of many, if all are known."""

    def found(runs: Runs, reading: Reading) -> float | None:
        values = [value for of in each if (value := of(runs, reading)) is not None]
        return fold(values) if len(values) == len(each) else None

    return found


def widest_without_gain(runs: Runs, reading: Reading) -> float | None:
    """Sec. VI-E: the greatest bandwidth of the sweep at which more than two FPGAs bring nothing; 0 if there is none."""
    widest = 0.0
    for label in SCALE_BANDWIDTHS:
        values = [throughput(scale_name(count, label))(runs, reading) for count in FPGAS]
        known = [value for value in values if value is not None]
        if len(known) < len(values):
            return None
        if max(known) < (1 + NO_GAIN) * known[0]:
            widest = max(widest, BANDWIDTHS[label])
    return widest


@tabulated(
    "claims",
    "Numbers of the paper, in both readings",
    "key | where | claim | printed; g | unit | sum: literal sum; .4g | growth: growth of the makespan; .4g "
    "| ours: kinder; .4g | verdict",
    "Both readings of the delta latency; the verdict is on the one that is nearer to the printed number. "
    "Of ratios of search times: printed by the clock, here of the batch ratios that are mapped. "
    f"More FPGAs that bring less than {NO_GAIN:.0%} bring nothing. Steps of one sample, DFS over partitions.",
)
def claims(runs: Runs) -> Rows:
    """All numbers that the runs say something about, printed and here; the verdict is on the kinder reading."""
    printed = {row["id"]: row for row in published_rows("mtrain")}
    for claim in all_claims():
        values = [claim.found(runs, reading) for reading in ((0, 1) if claim.read else (0,))]
        known = [value for value in values if value is not None]
        if len(known) < len(values):
            continue
        row = printed[claim.key]
        judged = [(judge(claim.kind, row["value"], value, row["unit"]), value) for value in known]
        best, ours = min(judged, key=lambda each: each[0].rank)
        yield {
            "key": claim.key,
            "where": row["where"],
            "claim": row["what"],
            "printed": row["value"],
            "unit": row["unit"],
            "sum": known[0],
            "growth": known[-1],
            "ours": ours,
            "verdict": str(best),
        }
