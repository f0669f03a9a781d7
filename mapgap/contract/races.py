"""Every method of a problem on one instance for the same time, and what an exact method must not lose.

::

    python -m mapgap.contract.races my_problem -t 1 -t 10 -t 60 --seeds 200 205 --library 10 -o races.jsonl

takes fresh seeds of every family of the problem (of all problems, if none is named) and so many instances of its
library, appends one line per run and finding, goes on where an earlier call was stopped, and prints what is lost. The
study ``equal_time`` is a committed selection of such races. With ``--monotone`` no heuristic runs; what is lost is what
a run of an exact method loses with more time.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

from mapgap.catalogue import registry
from mapgap.core import Budget, InstanceBase
from mapgap.evidence import races as rules
from mapgap.evidence.races import debts, entrants, library_instances
from mapgap.execution.run import run_uninterrupted
from mapgap.records.record import RunRecord

SLACK_S = float(os.environ.get("MAPGAP_CONTRACT_SLACK", rules.SLACK_S))
"""Seconds by which a run may exceed its time; more on a machine that is busy."""


def race(instance: InstanceBase, time_s: float, every: bool = True) -> dict[str, RunRecord]:
    """Every entrant on an instance, each in a process of its own."""
    return {m.name: run_uninterrupted(instance, m, Budget(time_s)) for m in entrants(instance.problem, every)}


def lost(records: Mapping[str, RunRecord], time_s: float, slack_s: float = SLACK_S) -> list[str]:
    """What the exact methods and the fast planner owe (:func:`mapgap.evidence.races.debts`), in words."""
    return [f"{debt.method}: {debt.words}" for debt in debts(records, time_s, slack_s)]


def weaker(runs: Sequence[RunRecord]) -> list[str]:
    """Where a run of a method ends with a weaker bound or a worse plan than one before it, which had less time."""
    found = [f"{run.method}: {run.error}" for run in runs if run.error]
    for shorter, longer in pairwise(runs):
        for word, s, old, new in (
            ("bound", shorter.sign, shorter.bound, longer.bound),
            ("plan", -shorter.sign, shorter.objective, longer.objective),
        ):
            proven = word == "bound" and longer.status == "INFEASIBLE"
            if old is not None and not proven and (new is None or s * new < s * old):
                found.append(
                    f"{longer.method}: {word} {new} in {longer.time_limit_s:g} s, {old} in {shorter.time_limit_s:g} s"
                )
    return found


def instances(
    problem: str, seeds: Iterable[int], files: int, families: Collection[str] | None = None
) -> Iterator[InstanceBase]:
    """Fresh seeds of every family (or of some), then so many instances of the library, evenly spread."""
    library = registry.library(problem)
    for seed in seeds:
        for family in library.families:
            if families is None or family in families:
                yield library.generate(family, seed)
    yield from library_instances(problem, files)


def row(instance: InstanceBase, record: RunRecord) -> dict[str, Any]:
    """What is written of one run."""
    first = min((point.time_s for point in record.trace if point.objective is not None), default=None)
    return {
        "problem": instance.problem,
        "instance": instance.name,
        "time_s": record.time_limit_s,
        "method": record.method,
        "status": str(record.status),
        "objective": record.objective,
        "bound": record.bound,
        "wall_s": round(record.wall_s or 0.0, 3),
        "first_s": None if first is None else round(first, 3),
    }


class Races:
    """Races whose runs and findings are lines of a file, if there is one; none that it holds is run again."""

    def __init__(self, output: Path | None = None, every: bool = True) -> None:
        self.output, self.every = output, every
        text = output.read_text(encoding="utf-8") if output is not None and output.exists() else ""
        whole, _, torn = text.rpartition("\n")
        if output is not None and torn:  # a call that was killed within a line
            output.write_text(f"{whole}\n" if whole else "", encoding="utf-8")
        known = [json.loads(line) for line in whole.splitlines()]
        self.known: dict[tuple[str, str, str], list[str]] = {
            (each["problem"], each["instance"], str(each["time_s"])): each["lost"] for each in known if "lost" in each
        }

    def lost(self, instance: InstanceBase, time_s: float, slack_s: float = SLACK_S) -> list[str]:
        """What is lost on an instance; the race is run if it is not known."""

        def run() -> tuple[Iterable[RunRecord], list[str]]:
            records = race(instance, time_s, self.every)
            return records.values(), lost(records, time_s, slack_s)

        return self._once(instance, time_s, run)

    def weaker(self, instance: InstanceBase, limits_s: Sequence[float]) -> list[str]:
        """What exact methods lose with more time; they are run if it is not known."""

        def run() -> tuple[Iterable[RunRecord], list[str]]:
            exact = [each for each in entrants(instance.problem, self.every) if each.kind == "exact"]
            runs = [[run_uninterrupted(instance, each, Budget(limit)) for limit in sorted(limits_s)] for each in exact]
            return chain(*runs), [text for each in runs for text in weaker(each)]

        return self._once(instance, sorted(limits_s), run)

    def _once(
        self,
        instance: InstanceBase,
        time_s: float | Sequence[float],
        run: Callable[[], tuple[Iterable[RunRecord], list[str]]],
    ) -> list[str]:
        key = instance.problem, instance.name, str(time_s)
        if key not in self.known:
            records, self.known[key] = run()
            who = {"problem": instance.problem, "instance": instance.name, "time_s": time_s}
            self._append([*(row(instance, each) for each in records), who | {"lost": self.known[key]}])
        return self.known[key]

    def _append(self, lines: Iterable[Mapping[str, Any]]) -> None:
        if self.output is not None:
            with self.output.open("a", encoding="utf-8") as file:
                file.writelines(json.dumps(line) + "\n" for line in lines)


def main() -> int:
    parser = argparse.ArgumentParser(description="Exact methods against heuristics at equal time.")
    parser.add_argument("problems", nargs="*", metavar="problem", help="all, if none is named")
    parser.add_argument("-t", "--time-limit", type=float, action="append", required=True)
    parser.add_argument("-f", "--family", action="append", help="of these families only")
    parser.add_argument("--seeds", type=int, nargs=2, default=(200, 201), metavar=("FIRST", "LAST"))
    parser.add_argument("--library", type=int, default=10, help="instances of the library")
    parser.add_argument("--strongest", action="store_true", help="of the exact methods only the strongest")
    parser.add_argument("--monotone", action="store_true", help="exact methods only, and what more time loses")
    parser.add_argument("-o", "--output", type=Path, required=True)
    flags = parser.parse_args()
    races, failures = Races(flags.output, every=not flags.strongest), 0
    for problem in flags.problems or registry.problems():
        for instance in instances(problem, range(*flags.seeds), flags.library, flags.family):
            if flags.monotone:
                found = [f"{instance.name}: {text}" for text in races.weaker(instance, flags.time_limit)]
            else:
                found = [
                    f"{instance.name}, {time_s:g} s: {text}"
                    for time_s in flags.time_limit
                    for text in races.lost(instance, time_s)
                ]
            failures += len(found)
            print(*found, sep="\n", end="\n" if found else "", flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
