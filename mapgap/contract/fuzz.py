"""Every method against brute force at the magnitudes of real instances, and the account of a long run.

::

    python -m mapgap.contract.fuzz run 0 1000 -o part.json       # seeds 0 to 999 over all problems
    python -m mapgap.contract.fuzz summary part*.json -o summary.md
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from mapgap.catalogue import registry
from mapgap.contract.known import sign
from mapgap.core import Budget, InstanceBase, Status
from mapgap.execution.run import run_method
from mapgap.records.environment import revision, versions
from mapgap.records.record import RunRecord

FAMILY = "realistic"
TIME_S = 10.0
"""Of a run. A method that does not end by then has proven nothing, which is no fault here."""


def problems() -> list[str]:
    """Those whose library has the family."""
    return [name for name in registry.problems() if FAMILY in registry.library(name).families]


def case(number: int) -> tuple[str, int]:
    """Problem and seed of a case; the problems take turns."""
    known = problems()
    return known[number % len(known)], number // len(known)


def runs(instance: InstanceBase, seed: int = 0, kinds: Iterable[str] = ("exact", "bound")) -> dict[str, RunRecord]:
    """Every method of some kinds on an instance, brute force among them."""
    methods = registry.methods(instance.problem)
    return {
        name: run_method(instance, method, Budget(TIME_S, seed=seed), isolate=False)
        for name, method in methods.items()
        if method.kind in kinds
    }


def findings(problem: str, records: Mapping[str, RunRecord]) -> list[str]:
    """What the runs say that brute force refutes, and what went wrong; empty as it should be."""
    truth, s = records["enumerate"], sign(problem)
    found = [f"{record.method}: {record.error}" for record in records.values() if record.error]
    if truth.status not in (Status.OPTIMAL, Status.INFEASIBLE):
        return [*found, f"enumerate: no answer within {TIME_S:g} s: {truth.reason}"]
    for record in records.values():
        if record.error:
            continue
        said = f"{record.method}: {record.status} {record.objective}, bound {record.bound}; it is {truth.objective}"
        if truth.objective is None:
            if record.objective is not None or record.status == Status.OPTIMAL:
                found.append(said)
        elif (
            record.status == Status.INFEASIBLE
            or (record.status == Status.OPTIMAL and record.objective != truth.objective)
            or (record.objective is not None and s * record.objective < s * truth.objective)
            or (record.bound is not None and s * record.bound > s * truth.objective)
        ):
            found.append(said)
    return found


def account(first: int, last: int, time_s: float = 1e9) -> dict[str, Any]:
    """Cases from ``first`` up to ``last`` as far as the time goes: counts, findings, versions."""
    begin = time.perf_counter()
    counts: Counter[str] = Counter()
    wrong = []
    number = first
    while number < last and time.perf_counter() - begin < time_s:
        problem, seed = case(number)
        records = runs(registry.library(problem).generate(FAMILY, seed), seed)
        counts[f"{problem}/cases"] += 1
        for record in records.values():
            counts[f"{problem}/{record.method}/runs"] += 1
            counts[f"{problem}/{record.method}/proved"] += record.status in (Status.OPTIMAL, Status.INFEASIBLE)
            counts[f"{problem}/{record.method}/refused"] += bool(record.notes.get("distrusted"))
        wrong += [f"{problem} {FAMILY} {seed}: {text}" for text in findings(problem, records)]
        number += 1
    return {
        "first": first,
        "last": number,
        "counts": dict(counts),
        "findings": wrong,
        "seconds": round(time.perf_counter() - begin),
        "versions": versions(),
        "revision": revision(),
    }


def summary(parts: Iterable[Mapping[str, Any]]) -> str:
    """The account of several parts as Markdown."""
    parts = sorted(parts, key=lambda part: part["first"])
    counts: Counter[str] = Counter()
    for part in parts:
        counts.update(part["counts"])
    wrong = [text for part in parts for text in part["findings"]]
    rows = [
        (problem, name, counts[f"{problem}/{name}/runs"], counts[f"{problem}/{name}/proved"], refused)
        for key, refused in sorted(counts.items())
        if key.endswith("/refused")
        for problem, name, _ in [key.split("/")]
    ]
    cases = {problem: counts[f"{problem}/cases"] for problem in problems()}
    used = sorted({f"{name} {release}" for part in parts for name, release in part["versions"].items()})
    lines = [
        "# Cross-check at realistic size",
        "",
        f"Random instances of the family `{FAMILY}` (values of 10^3 to 10^7, zeros, ties, extremes), small enough for "
        "brute force. Every exact method and every bound is held against it: no status, objective, bound or INFEASIBLE "
        "may be wrong. A method may give up (UNKNOWN or FEASIBLE with a reason).",
        "",
        f"{sum(cases.values())} cases ({', '.join(f'{name} {n}' for name, n in cases.items())}), "
        f"{sum(row[2] for row in rows)} runs of at most {TIME_S:g} s, "
        f"{sum(part['seconds'] for part in parts)} s in all.",
        f"Cases {', '.join('{}-{}'.format(part['first'], part['last'] - 1) for part in parts)}. "
        f"Revision {', '.join(sorted({str(part['revision']) for part in parts}))}. {', '.join(used)}.",
        "",
        f"**{len(wrong)} findings.**",
        "",
        *[f"- {text}" for text in wrong],
        *([""] if wrong else []),
        "| problem | method | runs | proved | an engine or a model refused |",
        "|---|---|---:|---:|---:|",
        *[f"| {' | '.join(map(str, row))} |" for row in rows],
        "",
    ]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description="Exact methods against brute force at realistic size.")
    commands = parser.add_subparsers(dest="command", required=True)
    some = commands.add_parser("run")
    some.add_argument("first", type=int)
    some.add_argument("last", type=int)
    some.add_argument(
        "-t", "--time-limit", type=float, default=1e9, help="seconds; the case that runs then is the last"
    )
    some.add_argument("-o", "--output", type=Path, required=True)
    joined = commands.add_parser("summary")
    joined.add_argument("parts", type=Path, nargs="+")
    joined.add_argument("-o", "--output", type=Path, required=True)
    flags = parser.parse_args()
    flags.output.parent.mkdir(parents=True, exist_ok=True)
    if flags.command == "summary":
        flags.output.write_text(summary(json.loads(path.read_text()) for path in flags.parts))
        return 0
    found = account(flags.first, flags.last, flags.time_limit)
    flags.output.write_text(json.dumps(found, indent=1) + "\n")
    for text in found["findings"]:
        print(text)
    return 1 if found["findings"] else 0


if __name__ == "__main__":
    sys.exit(main())
