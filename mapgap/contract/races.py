"""Every method of a problem on one instance for the same time, and what an exact method must not lose.

::

    python -m mapgap.contract.races my_problem -t 1 -t 10 --seeds 200 205 --library 10 -o races.jsonl

appends one line per run and finding, goes on where an earlier call was stopped, and prints what is lost.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from mapgap.catalogue import registry
from mapgap.catalogue.files import load_instance
from mapgap.contract.known import sign
from mapgap.core import Budget, InstanceBase, Method
from mapgap.execution.run import run_method
from mapgap.records.record import RunRecord

SLACK_S = float(os.environ.get("MAPGAP_CONTRACT_SLACK", "1"))
"""Seconds by which a run may exceed its time; more on a machine that is busy."""
EARLY = 0.5
"""Part of the time by which an exact method must have announced a plan, if a heuristic ends with one by then."""
BRUTE_FORCE = 0
"""Exact methods of a lower rank are oracles for tiny instances and take part in no race."""


def entrants(problem: str, every: bool = True) -> list[Method]:
    """Exact methods (or the strongest alone) and all heuristics."""
    known = registry.methods(problem).values()
    exact = [m for m in known if m.kind == "exact" and m.rank >= BRUTE_FORCE]
    if not every:
        exact = [registry.strongest_exact(problem)]
    return [*exact, *(m for m in known if m.kind in ("published", "baseline"))]


def race(instance: InstanceBase, time_s: float, every: bool = True) -> dict[str, RunRecord]:
    """Every entrant on an instance, each in a process of its own."""
    return {m.name: run_method(instance, m, Budget(time_s)) for m in entrants(instance.problem, every)}


def lost(problem: str, records: Mapping[str, RunRecord], time_s: float, slack_s: float = SLACK_S) -> list[str]:
    """What the exact methods and the fast planner owe and did not keep; empty as it should be.

    - No exact method ends with a plan that is worse than a heuristic's, nor with none where a heuristic has one.
    - It has announced a plan early (:data:`EARLY`), if a heuristic had one by then.
    - It ends in time, without an error, and with the best bound that it announced.
    - The fast planner is never worse than a published heuristic that ends in time.
    """
    methods, s = registry.methods(problem), sign(problem)
    quick = {n: r for n, r in records.items() if methods[n].kind in ("published", "baseline") and not r.error}
    values = {n: s * r.objective for n, r in quick.items() if r.objective is not None}
    found = []
    for name, record in records.items():
        method = methods[name]
        if method.kind == "exact":
            found += [f"{name}: {text}" for text in _owed(record, values, quick, s, time_s, slack_s)]
        if method.fast:
            published = {n: v for n, v in values.items() if methods[n].kind == "published"}
            found += [f"{name}: {text}" for text in _worse(record, published, s)]
    return found


def _owed(
    record: RunRecord,
    values: Mapping[str, int],
    quick: Mapping[str, RunRecord],
    s: int,
    time_s: float,
    slack_s: float,
) -> Iterator[str]:
    if record.error:
        yield record.error
        return
    yield from _worse(record, values, s)
    wall_s = record.wall_s or 0.0
    if wall_s > time_s + slack_s:
        yield f"{wall_s:.2f} s, of {time_s:g}"
    early = EARLY * time_s
    first = min((point.time_s for point in record.trace if point.objective is not None), default=wall_s)
    ready = [name for name in values if (quick[name].wall_s or 0.0) <= early]
    if ready and first > early + slack_s:
        yield f"first plan after {first:.2f} s, when {ready[0]} has ended long ago"
    announced = [s * point.bound for point in record.trace if point.bound is not None]
    if announced and (record.bound is None or s * record.bound < max(announced)):
        yield f"ends with bound {record.bound}, has announced {s * max(announced)}"


def _worse(record: RunRecord, values: Mapping[str, int], s: int) -> Iterator[str]:
    """Who has a better plan."""
    mine = None if record.objective is None else s * record.objective
    better = {name: value for name, value in values.items() if mine is None or value < mine}
    if better:
        best = min(better, key=lambda name: better[name])
        yield f"{record.objective}, and {best} has {s * better[best]}"


def instances(problem: str, seeds: Iterable[int], files: int) -> Iterator[InstanceBase]:
    """Fresh seeds of every family, then so many instances of the library, evenly spread."""
    library = registry.library(problem)
    for seed in seeds:
        for family in library.families:
            yield library.generate(family, seed)
    paths = sorted(library.folder.glob("*.yaml"))
    for k in range(min(files, len(paths))):
        yield load_instance(paths[k * len(paths) // min(files, len(paths))])


def row(instance: InstanceBase, time_s: float, record: RunRecord) -> dict[str, Any]:
    """What is written of one run."""
    first = min((point.time_s for point in record.trace if point.objective is not None), default=None)
    return {
        "problem": instance.problem,
        "instance": instance.name,
        "time_s": time_s,
        "method": record.method,
        "status": str(record.status),
        "objective": record.objective,
        "bound": record.bound,
        "wall_s": round(record.wall_s or 0.0, 3),
        "first_s": None if first is None else round(first, 3),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description="Exact methods against heuristics at equal time.")
    parser.add_argument("problem")
    parser.add_argument("-t", "--time-limit", type=float, action="append", required=True)
    parser.add_argument("--seeds", type=int, nargs=2, default=(200, 201), metavar=("FIRST", "LAST"))
    parser.add_argument("--library", type=int, default=10, help="instances of the library")
    parser.add_argument("-o", "--output", type=Path, required=True)
    flags = parser.parse_args()
    known = flags.output.read_text(encoding="utf-8").splitlines() if flags.output.exists() else []
    done = {(each["instance"], each["time_s"]) for each in map(json.loads, known) if "lost" in each}
    failures = [each for each in map(json.loads, known) if each.get("lost")]
    for instance in instances(flags.problem, range(*flags.seeds), flags.library):
        for time_s in flags.time_limit:
            if (instance.name, time_s) in done:
                continue
            records = race(instance, time_s)
            found = {"instance": instance.name, "time_s": time_s, "lost": lost(flags.problem, records, time_s)}
            lines = [*(row(instance, time_s, record) for record in records.values()), found]
            with flags.output.open("a", encoding="utf-8") as file:
                file.writelines(json.dumps(line) + "\n" for line in lines)
            failures += [found] if found["lost"] else []
            for text in found["lost"]:
                print(f"{instance.name}, {time_s:g} s: {text}", flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
