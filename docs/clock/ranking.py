"""Do plans rank on the clock as in the model? ``python ranking.py [INSTANCE …]``: plans of three problems, emulated.

Of one instance per problem the plans of its methods and random ones that break no rule; each run takes about as long as
the next. Writes ranking.csv, where it leaves the rows of other instances, and prints the table of the page.
"""

import csv
import os
import random
import statistics
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

import mapgap
from mapgap.catalogue import registry
from mapgap.catalogue.files import save_plan
from mapgap.clock.replay import full
from mapgap.clock.trace import Trace

INSTANCES = ("asteroid_b_mobilenetv2_100mbps", "synergy_w3_any", "mtrain_c1_resnet18_0p125gbs")
PLANS, SECONDS = 20, 6.0
FILE = Path(__file__).with_name("ranking.csv")
COLUMNS = ("instance", "plan of", "rounds", "in_flight", "model_s", "chart_s", "clock_s", "late_s", "load")


def plans(instance, rng):
    """Plans of different value: of the published methods and the baselines, then random ones."""
    problem = registry.problems()[instance.problem]
    found = {}
    for name, method in registry.methods(instance.problem).items():
        if method.kind in ("published", "baseline") and len(found) < PLANS:
            result = mapgap.solve(instance, name, time_limit=1, ledger=False)
            if result.plan is not None and not problem.evaluate(instance, result.plan).violations:
                found.setdefault(result.objective, (name, result.plan))
    library = registry.library(instance.problem)
    while len(found) < PLANS:
        plan = library.random_plan(instance, rng)
        value = problem.evaluate(instance, plan)
        if not value.violations:
            found.setdefault(value.objective, ("random", plan))
    return list(found.values())


def emulated(name, instance, label, plan):
    """A row: the plan on the clock for about :data:`SECONDS`."""
    problem = registry.problems()[instance.problem]
    script = problem.clock.script(instance, plan, 1)
    if script.in_flight:
        script = full(partial(problem.clock.script, instance, plan))
    with tempfile.TemporaryDirectory() as folder:
        plan_file, trace = Path(folder) / "plan.json", Path(folder) / "trace.jsonl"
        save_plan(plan, plan_file)
        flags = ["--emulate", "--scale", f"{SECONDS / len(script.rounds) / script.seconds:.6g}", "-o", str(trace)]
        subprocess.run(
            [sys.executable, "-m", "mapgap", "run", name, plan_file, *flags], check=True, capture_output=True
        )
        head = Trace.read(trace).head
    drawn = problem.gantt(instance, plan)
    chart = head["model_s"] if script.in_flight else max(bar.end for lane in drawn for bar in lane.bars)
    told = {each: head[each] for each in COLUMNS if each in head}
    return {"plan of": label, **told, "instance": name, "chart_s": chart, "load": head["machine"]["load"]}


def ranks(values):
    return [sorted(values).index(value) for value in values]


def compared(rows, column):
    """Cells of the page: plans, rank correlation, errors, the latest word, and the place of the best plan."""
    model, clock = ([float(row[name]) for row in rows] for name in (column, "clock_s"))
    errors = [100 * abs(b - a) / a for a, b in zip(model, clock, strict=True)]
    place = ranks(clock)[model.index(min(model))]
    order = statistics.correlation(ranks(model), ranks(clock))
    error = f"{statistics.fmean(errors):.1f} % ({max(errors):.1f} %)"
    late = f"{1000 * max(float(row['late_s']) for row in rows):.0f} ms"
    return f"| {len(rows)} | {order:.3f} | {error} | {late} | {'fastest' if not place else f'number {place + 1}'} |"


def table(path=FILE):
    """The rows of the page."""
    with open(path, newline="") as stream:
        rows = list(csv.DictReader(stream))
    found = []
    for name in INSTANCES:
        own = [row for row in rows if row["instance"] == name]
        if any(row["chart_s"] != row["model_s"] for row in own):
            found += [
                f"| `{name}`, chart {compared(own, 'chart_s')}",
                f"| the same, formula {compared(own, 'model_s')}",
            ]
        elif own:
            found.append(f"| `{name}` {compared(own, 'model_s')}")
    return found


def main():
    names = sys.argv[1:] or INSTANCES
    rows = []
    if FILE.exists():
        with open(FILE, newline="") as stream:
            rows = [row for row in csv.DictReader(stream) if row["instance"] not in names]
    for name in names:
        instance = mapgap.load(name)
        for label, plan in plans(instance, random.Random(0)):
            rows.append(emulated(name, instance, label, plan))
            print(*(rows[-1][column] for column in COLUMNS), flush=True)
    with open(FILE, "w", newline="") as stream:
        writer = csv.DictWriter(stream, COLUMNS)
        writer.writeheader()
        writer.writerows(rows)
    print(*table(), sep="\n")


if __name__ == "__main__":
    os.chdir(Path(__file__).parent)
    main()
