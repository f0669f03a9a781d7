"""Models of your own under one command: ``mapgap import FILE --cluster two.yaml --inference --certify``, timed.

    python -m mapgap.studies.hybrid_pipeline.certified_models [FILE.onnx …]

Without files the nine networks that the package ``onnx`` brings for its own tests, and that of ``magika`` if it is
installed. The boards are two of the library, so their times are estimates. Every certificate is checked once more, by
:mod:`mapgap.evidence.check`. Printed is a table in Markdown; the exit code is 1 if any of it fails.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from mapgap.core import quantity
from mapgap.evidence import check

CLUSTER = """\
schema: 1
form: cluster
boards:
  one: {board: NX}
  two: {board: TX2}
link_mbps: 1000
settings: {micro_batch: 1, mini_batch: 1}
"""


def packaged() -> list[Path]:
    """Models in packages that are installed here."""
    found: list[Path] = []
    for package, pattern in (("onnx", "backend/test/data/light/*.onnx"), ("magika", "models/*/model.onnx")):
        spec = importlib.util.find_spec(package)
        if spec is not None and spec.origin is not None:
            found += sorted(Path(spec.origin).parent.glob(pattern))
    return found


def certified(model: Path, folder: Path) -> dict[str, Any]:
    """What the command says of a model, its optima in seconds by objective, and how long it took.

    Raises
    ------
    RuntimeError
        The command fails, or an optimum is not proven.
    mapgap.evidence.check.Refused
        A certificate proves nothing.
    """
    (folder / "two.yaml").write_text(CLUSTER)
    flags = ("--cluster", "two.yaml", "--inference", "--certify", "-o", "mine.yaml", "--json")
    command = [sys.executable, "-m", "mapgap", "import", str(model.resolve()), *flags]
    before, begin = os.times(), time.monotonic()
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    wall, after = time.monotonic() - begin, os.times()
    if done.returncode:
        raise RuntimeError(f"{model.name}: {done.stderr.strip()}")
    made, *told = map(json.loads, done.stdout.splitlines())
    optima = {}
    for run, proof in zip(told[::2], told[1::2], strict=True):
        check.check(check.read(folder / proof["file"]))
        if not run["objective"] == run["bound"] == proof["bound"]:
            raise RuntimeError(f"{run['instance']}: {run['objective']} found, {proof['bound']} proven")
        optima[run["instance"].partition("@")[2] or "latency"] = run["objective"] * int(run["unit"].split()[2]) * 1e-9
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return {"layers": made["layers"], "parts": made["cuts"], "optima": optima, "wall_s": wall, "cpu_s": cpu}


def main(files: list[str]) -> int:
    models = [Path(file) for file in files] or packaged()
    print("| model | layers | parts | latency | longest step | CPU s | wall s |")
    print("|---|---|---|---|---|---|---|")
    failed = 0
    for model in models:
        name = model.stem if model.stem != "model" else model.parents[2].name
        try:
            with tempfile.TemporaryDirectory() as folder:
                found = certified(model, Path(folder))
        except (RuntimeError, check.Refused) as error:
            failed += 1
            print(f"| {name} | {error} |")
            continue
        times = [quantity(found["optima"][objective], "s") for objective in ("latency", "bottleneck")]
        spent = f"{found['cpu_s']:.1f} | {found['wall_s']:.1f}"
        print(f"| {name} | {found['layers']} | {found['parts']} | {' | '.join(times)} | {spent} |", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
