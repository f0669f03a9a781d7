"""A real network on three slowed boards: ``python computed.py`` profiles, plans, runs, calibrates, and runs ten plans.

The boards are processes on this machine. The plans are the best one of the calibrated model and others from the best to
the worst with one board per stage. Writes computed.csv and prints the table of the page.
"""

import csv
import itertools
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import mapgap
from mapgap.catalogue import registry
from mapgap.catalogue.files import save_plan
from mapgap.clock.trace import Trace
from mapgap.problems.hybrid_pipeline import Plan, Stage

BOARDS = """\
schema: 1
form: cluster
boards:
  a: {kind: threads1, memory_gb: 1, slower: 20}
  b: {kind: threads1, memory_gb: 1, slower: 40}
  c: {kind: threads1, memory_gb: 1, slower: 30}
link_mbps: 100
settings: {micro_batch: 8, mini_batch: 64, replication: false}
"""
MODEL, PLANS = "mobile_tiny.onnx", 10
FILE = Path(__file__).with_name("computed.csv")
COLUMNS = ("plan", "stages", "profile_s", "calibrated_s", "clock_s", "late_s", "load")


def run(*command):
    subprocess.run([sys.executable, "-m", "mapgap", *command], check=True, capture_output=True)


def on_the_clock(name, plan):
    """What is told of a run of a plan."""
    save_plan(plan, Path("plan.json"))
    run("split", name, "plan.json", "--model", MODEL, "-o", "parts")
    flags = ("--parts", "parts", "--boards", "boards.yaml", "--rounds", "3", "-o", "trace.jsonl")
    run("run", name, "plan.json", *flags)
    return Trace.read(Path("trace.jsonl")).head


def seconds(instance, plan):
    return registry.problems()[instance.problem].evaluate(instance, plan).objective * instance.seconds_per_tick


def every(instance):
    """All plans with one board per stage, the best one first."""
    count, boards, found = len(instance.layers), range(len(instance.devices)), []
    for stages in range(1, len(boards) + 1):
        for cuts in itertools.combinations(range(1, count), stages - 1):
            spans = list(itertools.pairwise((0, *cuts, count)))
            for chosen in itertools.permutations(boards, stages):
                found.append(
                    Plan(
                        micro_batch=8,
                        stages=tuple(
                            Stage(start=a, stop=b, devices=(d,), shares=(8,))
                            for (a, b), d in zip(spans, chosen, strict=True)
                        ),
                    )
                )
    return sorted(found, key=lambda plan: seconds(instance, plan))


def table(path=FILE):
    """The rows of the page."""
    with open(path, newline="") as stream:
        rows = list(csv.DictReader(stream))
    clock = [float(row["clock_s"]) for row in rows]
    found = []
    for column in ("profile_s", "calibrated_s"):
        model = [float(row[column]) for row in rows]
        errors = [100 * abs(b - a) / a for a, b in zip(model, clock, strict=True)]
        place = sorted(clock).index(clock[model.index(min(model))]) + 1
        cells = f"{sum(errors) / len(errors):.1f} % | {max(errors):.1f} % | {sum(e <= 10 for e in errors)} | {place}"
        found.append(f"| {column.removesuffix('_s')} | {len(rows)} | {cells} |")
    return found


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        subprocess.run([sys.executable, "-m", "mapgap.importing.models", "."], check=True, capture_output=True)
        Path("boards.yaml").write_text(BOARDS)
        run("profile", MODEL, "--batch", "8", "--repetitions", "50", "-o", "profile.json")
        run("import", "profile.json", "--cluster", "boards.yaml", "--inference", "-o", "mine.yaml")
        instance = mapgap.load("mine.yaml")
        on_the_clock("mine.yaml", every(instance)[0])
        run("calibrate", "mine.yaml", "trace.jsonl", "-o", "measured.yaml")
        measured = mapgap.load("measured.yaml")
        plans, rows = every(measured), []
        for k in range(PLANS):
            place = k * (len(plans) - 1) // (PLANS - 1)
            plan = plans[place]
            head = on_the_clock("measured.yaml", plan)
            values = (seconds(instance, plan), seconds(measured, plan), head["clock_s"], head["late_s"])
            label = f"{place + 1} of {len(plans)}"
            rows.append(dict(zip(COLUMNS, (label, len(plan.stages), *values, head["machine"]["load"]), strict=True)))
            print(*rows[-1].values(), flush=True)
        os.chdir(FILE.parent)
    with open(FILE, "w", newline="") as stream:
        writer = csv.DictWriter(stream, COLUMNS)
        writer.writeheader()
        writer.writerows(rows)
    print(*table(), sep="\n")


if __name__ == "__main__":
    main()
