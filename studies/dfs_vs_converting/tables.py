"""Table III of MTrain regenerated, and the numbers that its prose quotes."""

from __future__ import annotations

from mapgap.records.runs import Runs
from mapgap.reporting.tables import Rows, Table, tabulated
from mapgap.reporting.verdicts import verdict
from mapgap.studies.dfs_vs_converting.experiments import (
    CONVERTING,
    DFS,
    EXACT,
    LISTED,
    TABLE_3,
    TITLES,
    gap,
    gflops,
    gflops_of,
    kinder,
    library_name,
    published,
    seconds,
)


@tabulated(
    "table_3",
    "Table III regenerated: throughput in GFLOPS at 3 GB/s, gap to the proven bound, search time",
    "network | cluster: cl. | dfs: DFS; .1f | converting; .1f | listed: HEFT; .1f | best: best plan; .1f "
    "| limit: proven limit; .1f | dfs_gap: DFS gap [%]; .2f | dfs_over_best: DFS over best [%]; .2f "
    "| converting_gap: conv. gap [%]; .2f | best_gap: best gap [%]; .2f | dfs_s: DFS [s]; .2f "
    "| converting_s: conv. [s]; .2f | exact_s: exact [s]; .0f",
    "HEFT: list scheduling at every ratio, the best of all (heft_dfs). Proven limit: no mapping can be faster. "
    "Gaps are of the makespan, against that limit; DFS over best is certain, since that plan is known. "
    "DFS and converting each in the reading of the delta latency that is faster on the instance.",
)
def table_3(runs: Runs) -> Rows:
    """Table III regenerated: DFS, converting and the optimum on one instance per row."""
    printed = published()
    for network in TABLE_3:
        for cluster in (1, 2, 3):
            name = library_name(cluster, network, "3")
            fact = runs.fact(name)
            if fact is None:
                continue
            key = f"t3_{network}_c{cluster}"
            best_dfs, best_converting = kinder(runs, name, DFS), kinder(runs, name, CONVERTING)
            dfs, converting = gflops(runs, name, best_dfs), gflops(runs, name, best_converting)
            ratio = converting / dfs if dfs and converting else None
            best = gflops_of(name, fact.best)
            yield {
                "network": TITLES[network],
                "cluster": cluster,
                "dfs": dfs,
                "converting": converting,
                "listed": gflops(runs, name, LISTED),
                "best": best,
                "limit": gflops_of(name, fact.bound),
                "dfs_gap": gap(runs, name, best_dfs),
                "dfs_over_best": 100 * (best / dfs - 1) if dfs and best else None,
                "converting_gap": gap(runs, name, best_converting),
                "best_gap": None if fact.gap is None else 100 * fact.gap,
                "dfs_s": seconds(runs, name, best_dfs),
                "converting_s": seconds(runs, name, best_converting),
                "exact_s": seconds(runs, name, EXACT),
                "printed_dfs": printed.get(f"{key}_dfs"),
                "printed_converting": printed.get(f"{key}_mt"),
                "printed_dfs_s": printed.get(f"{key}_dfs_t"),
                "printed_converting_s": printed.get(f"{key}_mt_t"),
                "verdict": verdict(printed.get(f"{key}_mt"), converting) if f"{key}_mt" in printed else "not printed",
                "ratio": ratio,
                "printed_ratio": printed.get(f"{key}_qr"),
                "ratio_verdict": verdict(printed.get(f"{key}_qr"), ratio, kind="gain"),
            }


@tabulated(
    "table_3_published",
    "Published next to reproduced",
    "network | cluster: cl. | printed_dfs: DFS printed; g | dfs: DFS; .1f | printed_converting: conv. printed; g "
    "| converting; .1f | verdict | printed_ratio: conv./DFS printed; .2f | ratio: conv./DFS; .3f "
    "| ratio_verdict: verdict on the ratio | printed_dfs_s: DFS printed [s]; g "
    "| printed_converting_s: conv. printed [s]; g",
    "Throughput verdict on converting: reproduced within 10 %, close within 25 %; on the ratio by what it gains. "
    "The accelerator models are calibrated on single-device figures only, never on these numbers.",
)
def table_3_published(table: Table) -> Rows:
    """The same rows next to what the paper prints."""
    yield from (row for row in table.rows if row["printed_dfs"] is not None)
