"""The record of a run as JSON lines, and what it says beside the model."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mapgap.core import GanttBar, GanttLane, InputError, Quarters, Script
from mapgap.core.storage import read_text, replace_file

NUMBERS = ("model_s", "start", "end", "seconds")
"""What every record has, in seconds of the model."""


@dataclass(frozen=True)
class Trace:
    """What a run was, and a record of every task in the order in which they ended."""

    head: Mapping[str, Any]
    records: Sequence[Mapping[str, Any]]

    def write(self, path: Path) -> None:
        """All of it or nothing."""
        head = {"schema": 1, "form": "trace", **self.head, "tasks": len(self.records)}
        lines = [json.dumps(each) for each in (head, *self.records)]
        replace_file(path, ("\n".join(lines) + "\n").encode(), parents=False)

    @classmethod
    def read(cls, path: Path) -> Trace:
        """A trace.

        Raises
        ------
        InputError
            It is none, or part of one.
        """
        found = []
        for k, line in enumerate(read_text(path).splitlines(), 1):
            try:
                found.append(json.loads(line))
            except (ValueError, RecursionError) as error:
                raise InputError(f"{path}:{k}: expected a JSON object on every line, found none") from error
            sound = isinstance(found[-1], dict) and (
                k == 1 or all(type(found[-1].get(name)) in (int, float) and found[-1][name] >= 0 for name in NUMBERS)
            )
            if not sound:
                text = f"expected an object with {', '.join(NUMBERS)}, numbers from 0 on, found another one"
                raise InputError(f"{path}:{k}: {text}")
        if not found or found[0].get("form") != "trace":
            raise InputError(f"{path}: expected a trace of mapgap run, found another file")
        if found[0].get("tasks") != len(found) - 1 or len(found) < 2:
            raise InputError(f"{path}: expected {found[0].get('tasks')} tasks, found {len(found) - 1}")
        return cls(found[0], found[1:])

    def lanes(self) -> list[GanttLane]:
        """The run as a chart, lanes by name."""
        bars: dict[str, list[GanttBar]] = {}
        for each in sorted(self.records, key=lambda each: float(each["start"])):
            moved = each["end"] - each["start"] if "bytes" in each else 0.0
            label = str(each["task"]).partition("/")[2].partition("/")[0]
            bars.setdefault(each["lane"], []).append(GanttBar(each["start"], each["end"], label, each["group"], moved))
        return [GanttLane(lane, tuple(found)) for lane, found in bars.items()]

    def rows(self) -> list[tuple[str, str, int, float, float, Quarters | None]]:
        """Lane, group, how many tasks, seconds of all of them by the model and by the clock, and the second over the
        first of single ones."""
        groups: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
        for each in self.records:
            if each["model_s"] or each.get("bytes"):
                groups.setdefault((each["lane"], each["group"]), []).append(each)
        found = []
        for (lane, group), tasks in sorted(groups.items()):
            model, clock = (sum(each[name] for each in tasks) for name in ("model_s", "seconds"))
            ratios = [each["seconds"] / each["model_s"] for each in tasks if each["model_s"]]
            found.append((lane, group, len(tasks), model, clock, Quarters.of(ratios) if ratios else None))
        return found


def measured(script: Script, records: Sequence[Mapping[str, Any]]) -> float:
    """Seconds of a round on the clock: the mean, or of rounds that overlap the mean time between ends of later ones,
    without those in flight at the end; there are more than three times as many as overlap."""
    end = {each["task"]: each["end"] for each in records}
    ends = [max(end[name] for name in names) for names in script.rounds]
    if not script.in_flight:
        return float((ends[-1] - min(each["start"] for each in records)) / len(ends))
    groups = (len(ends) - 1) // script.in_flight - 1  # they come in groups; the first ones settle
    count = (groups + 1) // 2 * script.in_flight
    last = groups * script.in_flight
    return float((ends[last] - ends[last - count]) / count)
