"""What the attack did and found: one JSON file per part, and a page made from them.

::

    MAPGAP_ACCOUNT=reports/robustness pytest -m nightly tests/robustness
    python tests/support/account.py reports/robustness -o reports/robustness/summary.md
"""

import argparse
import json
import os
import platform
import resource
import time
from datetime import UTC, datetime
from pathlib import Path

from mapgap.records.environment import cores, revision

ORDER = ("files", "methods", "plans", "lines", "kills", "rogues", "dask")
TITLES = {
    "files": "Files that are no instances",
    "methods": "Changed instances that are accepted, before every method",
    "plans": "Plans",
    "lines": "Lines of run files",
    "kills": "Signals",
    "rogues": "Methods that attack",
    "dask": "Dask workers that die",
}


def keep(part, began, **figures):
    """Keep the figures of a part, if a folder for them is set."""
    if "MAPGAP_ACCOUNT" in os.environ:
        folder = Path(os.environ["MAPGAP_ACCOUNT"])
        folder.mkdir(parents=True, exist_ok=True)
        figures["memory of the attacker (MB)"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        figures["seconds"] = round(time.monotonic() - began)
        told = {"figures": figures, "revision": revision(), "day": datetime.now(UTC).date().isoformat()}
        (folder / f"{part}.json").write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")


def page(folder):
    """The page of all parts that are there."""
    files = {name: folder / f"{name}.json" for name in ORDER}
    parts = {name: json.loads(file.read_text(encoding="utf-8")) for name, file in files.items() if file.exists()}
    made = "Made by `pytest -m nightly tests/robustness`. Every part is a test that fails on its first"
    lines = ["# Attack", "", made, "finding.", ""]
    for name, told in parts.items():
        lines += [f"## {TITLES[name]}", "", f"Revision {told['revision']}, {told['day']}.", ""]
        lines += ["| | |", "|---|---:|", *(f"| {what} | {value} |" for what, value in told["figures"].items()), ""]
    lines += [f"Python {platform.python_version()}, {cores()} cores, shared with other work: seconds say little."]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("-o", "--output", type=Path, required=True)
    flags = parser.parse_args()
    flags.output.parent.mkdir(parents=True, exist_ok=True)
    flags.output.write_text(page(flags.folder), encoding="utf-8")
