"""Every method against brute force at the magnitudes of real instances, and the account of a long run.

::

    python -m mapgap.contract.fuzz run 0 4000 -o runs.jsonl            # seeds 0 to 3999 of every problem
    python -m mapgap.contract.fuzz run 0 300 --what mutations -o runs.jsonl   # of certificates
    python -m mapgap.contract.fuzz summary runs.jsonl -o summary.md

A long run is a series of processes, each for some hundreds of cases, that append to one file; killed and started again
it goes on where it was. A process that dies or hangs is a finding, and the next one starts behind its case.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from mapgap.catalogue import registry
from mapgap.contract.known import sign
from mapgap.contract.mutations import KINDS, mutated
from mapgap.core import Budget, InstanceBase, Status
from mapgap.evidence import check
from mapgap.evidence.contradictions import contradictions
from mapgap.execution.run import run_method
from mapgap.records.environment import revision, versions
from mapgap.records.record import RunRecord

FAMILY = "realistic"
TIME_S = 1.0
"""Of a run. A method that does not end by then has proven nothing, which is no fault here."""
TRUTH_S = 10.0
"""Of the brute force; where that is not enough, the methods are held against each other alone."""
CERTIFICATE = "certificate"
PROCESS, BLOCK = 500, 25
"""Cases of a process, and of a line of its file."""
HANGS_S = 300.0
"""Without a new line a process counts as hung."""


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
        name: run_method(instance, method, Budget(_limit(name), seed=seed), isolate=False)
        for name, method in methods.items()
        if method.kind in kinds
    }


def findings(problem: str, records: Mapping[str, RunRecord]) -> list[str]:
    """What the runs say that brute force refutes, or one says against another, and errors; empty as it should be."""
    truth, s = records["enumerate"], sign(problem)
    found = [f"{record.method}: {record.error}" for record in records.values() if record.error]
    found += [each.words for each in contradictions(records.values())]
    if truth.status not in (Status.OPTIMAL, Status.INFEASIBLE):
        return found
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


def certified(instance: InstanceBase, truth: RunRecord) -> tuple[bool, list[str]]:
    """Is there a certificate of the optimum, and what is wrong; no file may prove more than the optimum."""
    library, found, proven = registry.library(instance.problem), [], False
    if library.proving is None or truth.objective is None:
        return False, []
    worse = -sign(instance.problem)
    for bound in (truth.objective, truth.objective - worse):
        proof = library.prove(instance.to_json(), bound, Budget(TIME_S).start())
        if proof is None:
            continue
        file = {"schema": 1, "instance": instance.to_json(), "bound": bound, "proof": proof}
        try:
            check.check(json.loads(json.dumps(file)), instance.to_json())
        except check.Refused as reason:
            if bound == truth.objective:
                found.append(f"{CERTIFICATE}: the checker refuses the proof of {bound}: {reason}")
            continue
        if bound == truth.objective:
            proven = True
        else:
            found.append(f"{CERTIFICATE}: the checker accepts bound {bound}; it is {truth.objective}")
    return proven, found


def tried(problem: str, seed: int) -> tuple[Counter[str], list[str]]:
    """One case: counts by method, findings."""
    instance = registry.library(problem).generate(FAMILY, seed)
    records = runs(instance, seed)
    truth, counts = records["enumerate"], Counter({"cases": 1})
    counts["feasible"] = truth.objective is not None
    counts["unknown"] = truth.status not in (Status.OPTIMAL, Status.INFEASIBLE)
    for record in records.values():
        counts[f"{record.method}/runs"] += 1
        counts[f"{record.method}/proved"] += record.status in (Status.OPTIMAL, Status.INFEASIBLE)
        counts[f"{record.method}/refused"] += bool(record.notes.get("distrusted"))
    wrong = findings(problem, records)
    if truth.status == Status.OPTIMAL:
        proven, more = certified(instance, truth)
        counts.update({f"{CERTIFICATE}/runs": 1, f"{CERTIFICATE}/proved": proven, f"{CERTIFICATE}/refused": 0})
        wrong += more
    return counts, [f"{problem} {FAMILY} {seed}: {text}" for text in wrong]


WHAT: dict[str, Callable[[str, int], tuple[Counter[str], list[str]]]] = {"cases": tried, "mutations": mutated}


def account(what: str, problem: str, first: int, last: int) -> dict[str, Any]:
    """Seeds from ``first`` up to ``last`` of a problem: counts, findings, versions."""
    begin = time.perf_counter()
    counts: Counter[str] = Counter()
    wrong = []
    for seed in range(first, last):
        some, texts = WHAT[what](problem, seed)
        counts.update(some)
        wrong += texts
    return {**_blank(what, problem, first, last), "counts": counts, "findings": wrong, "seconds": _since(begin)}


def series(what: str, first: int, last: int, only: Iterable[str], output: Path) -> Iterator[str]:
    """Run all cases that the file has not, in processes of ``PROCESS`` cases; yields findings as they are written."""

    def parts_of(name: str) -> list[dict[str, Any]]:
        return [part for part in read(output) if (part["what"], part["problem"]) == (what, name)]

    begin = {name: max([first, *(part["last"] for part in parts_of(name))]) for name in only}
    while any(seed < last for seed in begin.values()):
        for name in begin:
            if begin[name] >= last:
                continue
            stop = min(last, begin[name] + PROCESS)
            _watched(what, name, begin[name], stop, output)
            done = [part for part in parts_of(name) if part["last"] > begin[name]]
            reached = max([begin[name], *(part["last"] for part in done)])
            if reached < stop:  # it died or hung within the next block
                reached = min(stop, reached + BLOCK)
                text = f"{name} {FAMILY} {reached - BLOCK} to {reached - 1}: the process died or hung"
                lost = {**_blank(what, name, reached - BLOCK, reached), "counts": {}, "findings": [text], "seconds": 0}
                _append(output, lost)
                done.append(lost)
            begin[name] = reached
            yield from (text for part in done for text in part["findings"])


def read(output: Path) -> list[dict[str, Any]]:
    """The parts in a file; a torn last line counts for nothing."""
    lines = output.read_text().splitlines(keepends=True) if output.exists() else []
    return [json.loads(line) for line in lines if line.endswith("\n")]


def summary(parts: Iterable[Mapping[str, Any]]) -> str:
    """The account of several parts as Markdown."""
    listed = sorted(parts, key=lambda part: (part["problem"], part["first"]))
    parts = [part for part in listed if part["what"] == "cases"]
    counts: dict[str, Counter[str]] = {}
    spans: dict[str, list[list[int]]] = {}
    revisions: dict[str, Counter[str]] = {}
    for part in parts:
        revisions.setdefault(part["problem"], Counter())[str(part["revision"])] += part["last"] - part["first"]
        counts.setdefault(part["problem"], Counter()).update(part["counts"])
        span = spans.setdefault(part["problem"], [])
        if span and span[-1][1] == part["first"]:
            span[-1][1] = part["last"]
        else:
            span.append([part["first"], part["last"]])
    wrong = [text for part in parts for text in part["findings"]]
    rows = [
        (problem, name, found[f"{name}/runs"], found[f"{name}/proved"], refused)
        for problem, found in counts.items()
        for key, refused in sorted(found.items())
        for name, _, what in [key.partition("/")]
        if what == "refused"
    ]
    used = sorted({f"{name} {release}" for part in parts for name, release in part["versions"].items()})
    lines = [
        "# Cross-check at realistic size",
        "",
        f"Random instances of the family `{FAMILY}` (values of 10^3 to 10^7, zeros, ties, extremes), small enough for "
        "brute force. Every exact method and every bound is held against it and against the others: no status, "
        "objective, bound or INFEASIBLE may be wrong. A method may give up (UNKNOWN or FEASIBLE with a reason). "
        "Of every optimum a certificate is made and checked; none may prove more.",
        "",
        f"{sum(found['cases'] for found in counts.values())} cases, {sum(row[2] for row in rows)} runs "
        f"of at most {TIME_S:g} s (brute force {TRUTH_S:g} s), {sum(part['seconds'] for part in parts):.0f} s in all. "
        f"{', '.join(used)}.",
        "",
        f"**{len(wrong)} findings.**",
        "",
        *[f"- {text}" for text in wrong],
        *([""] if wrong else []),
        "| problem | cases | with a plan | without brute force | seeds | revisions |",
        "|---|---:|---:|---:|---|---|",
        *[
            f"| {name} | {found['cases']} | {found['feasible']} | {found['unknown']} | "
            f"{', '.join(f'{a}-{b - 1}' for a, b in spans[name])} | "
            f"{', '.join(f'{revision} ({n})' for revision, n in revisions[name].items())} |"
            for name, found in counts.items()
        ],
        "",
        "| problem | method | runs | proved | an engine or a model refused |",
        "|---|---|---:|---:|---:|",
        *[f"| {' | '.join(map(str, row))} |" for row in rows],
        "",
        *_mutations([part for part in listed if part["what"] == "mutations"]),
    ]
    return "\n".join(lines)


def _mutations(parts: list[Mapping[str, Any]]) -> list[str]:
    """The account of altered certificates."""
    counts: Counter[str] = Counter()
    by_problem: Counter[str] = Counter()
    for part in parts:
        counts.update(part["counts"])
        by_problem[part["problem"]] += sum(n for key, n in part["counts"].items() if key.endswith("/tried"))
    if not parts:
        return []
    wrong = [text for part in parts for text in part["findings"]]
    return [
        "## Altered certificates",
        "",
        "Certificates of optima of random instances, each altered in one place, half of them with a better bound too "
        "where the proof was altered. What the checker accepts is compared with brute force on the instance in the "
        "altered file; *of no instance*: what it is about is refused on loading.",
        "",
        f"{sum(by_problem.values())} mutations of {counts['cases']} instances "
        f"({', '.join(f'{name} {n}' for name, n in by_problem.items())}), "
        f"{sum(part['seconds'] for part in parts):.0f} s. "
        f"Revision {', '.join(sorted({str(part['revision']) for part in parts}))}.",
        "",
        f"**{len(wrong)} that claim more than the truth were accepted.**",
        "",
        *[f"- {text}" for text in wrong],
        *([""] if wrong else []),
        "| altered | tried | refused | accepted and true | accepted, of no instance | truth unknown | wrong |",
        "|---|---:|---:|---:|---:|---:|---:|",
        *[
            f"| {kind} | "
            + " | ".join(
                str(counts[f"{kind}/{v}"]) for v in ("tried", "refused", "true", "vacuous", "unknown", "wrong")
            )
            + " |"
            for kind in KINDS
        ],
        "",
    ]


def _limit(name: str) -> float:
    return TRUTH_S if name == "enumerate" else TIME_S


def _since(begin: float) -> float:
    return round(time.perf_counter() - begin, 1)


def _blank(what: str, problem: str, first: int, last: int) -> dict[str, Any]:
    return {
        "what": what,
        "problem": problem,
        "first": first,
        "last": last,
        "versions": versions(),
        "revision": revision(),
    }


def _append(output: Path, part: Mapping[str, Any]) -> None:
    with output.open("a") as stream:
        stream.write(json.dumps(part) + "\n")


def _watched(what: str, problem: str, first: int, last: int, output: Path) -> None:
    """A process for some cases; killed when no line comes for long."""
    command = [sys.executable, "-m", __name__ if __name__ != "__main__" else __spec__.name, "part"]
    cases = [problem, str(first), str(last), "--what", what, "-o", str(output)]
    with subprocess.Popen([*command, *cases]) as process:
        size, since = -1, time.monotonic()
        while process.poll() is None:
            now = output.stat().st_size if output.exists() else 0
            if now != size:
                size, since = now, time.monotonic()
            if time.monotonic() - since > HANGS_S:
                process.kill()
            time.sleep(0.2)


def main() -> int:
    parser = argparse.ArgumentParser(description="Exact methods against brute force at realistic size.")
    commands = parser.add_subparsers(dest="command", required=True)
    some = commands.add_parser("run", help="seeds of every problem, or of some")
    some.add_argument("-p", "--problem", action="append", choices=problems())
    part = commands.add_parser("part", help="what `run` starts: one process")
    part.add_argument("problem")
    for each in (some, part):
        each.add_argument("first", type=int)
        each.add_argument("last", type=int)
        each.add_argument("--what", choices=WHAT, default="cases")
        each.add_argument("-o", "--output", type=Path, required=True)
    joined = commands.add_parser("summary")
    joined.add_argument("parts", type=Path, nargs="+")
    joined.add_argument("-o", "--output", type=Path, required=True)
    flags = parser.parse_args()
    flags.output.parent.mkdir(parents=True, exist_ok=True)
    if flags.command == "summary":
        flags.output.write_text(summary(part for path in flags.parts for part in read(path)))
        return 0
    if flags.command == "part":
        for seed in range(flags.first, flags.last, BLOCK):
            _append(flags.output, account(flags.what, flags.problem, seed, min(flags.last, seed + BLOCK)))
        return 0
    found = False
    for text in series(flags.what, flags.first, flags.last, flags.problem or problems(), flags.output):
        found = True
        print(text, flush=True)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
