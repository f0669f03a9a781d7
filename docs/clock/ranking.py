"""Do plans rank on the clock as in the model? ``python ranking.py [INSTANCE …]``: plans of three problems, emulated.

Of one instance per problem the plans of its methods and random ones that break no rule; each run takes about as long as
the next. Adds to ranking.csv.
"""

import csv
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import mapgap
from mapgap.catalogue import registry
from mapgap.catalogue.files import save_plan
from mapgap.clock.trace import Trace

INSTANCES = ("asteroid_b_mobilenetv2_100mbps", "synergy_w3_any", "mtrain_c1_resnet18_0p125gbs")
PLANS, SECONDS = 20, 4.0


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


def main():
    rows = []
    for name in sys.argv[1:] or INSTANCES:
        instance = mapgap.load(name)
        for label, plan in plans(instance, random.Random(0)):
            clock = registry.problems()[instance.problem].clock
            script = clock.script(instance, plan, 1)
            rounds = 4 * script.in_flight + 1
            with tempfile.TemporaryDirectory() as folder:
                plan_file, trace = Path(folder) / "plan.json", Path(folder) / "trace.jsonl"
                save_plan(plan, plan_file)
                flags = ["--emulate", "--rounds", str(rounds), "--scale", f"{SECONDS / rounds / script.seconds:.6g}"]
                command = [sys.executable, "-m", "mapgap", "run", name, str(plan_file), *flags, "-o", str(trace)]
                subprocess.run(command, check=True, capture_output=True)
                head = Trace.read(trace).head
            drawn = registry.problems()[instance.problem].gantt(instance, plan)
            chart = head["model_s"] if script.in_flight else max(bar.end for lane in drawn for bar in lane.bars)
            rows.append([name, label, head["model_s"], chart, head["clock_s"], head["machine"]["load"]])
            print(*rows[-1], flush=True)
    new = not Path("ranking.csv").exists()
    with open("ranking.csv", "a", newline="") as stream:
        head = [["instance", "plan of", "model_s", "chart_s", "clock_s", "load"]]
        csv.writer(stream).writerows([*(head if new else []), *rows])


if __name__ == "__main__":
    os.chdir(Path(__file__).parent)
    main()
