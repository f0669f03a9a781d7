"""A recorded corpus: what every method answers on fixed instances, so that a change shows what it changed.

``python tests/corpus/corpus.py record FILE`` runs every method on every instance of the corpus and writes one JSON line
a run; ``compare OLD NEW`` lists the differences and exits with 1 if a run that ended by itself is worse. Only runs that
ended by work (``proved``, ``done``) are the same on every machine; those that ended by time are recorded and not
compared.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mapgap.catalogue import registry
from mapgap.catalogue.files import load_instance
from mapgap.core import Budget, InstanceBase
from mapgap.execution.run import run_method

LIMIT_S = 5.0
SEEDS = range(4)
#: Beside seeds of ``tiny`` and ``small``: instances of every library, small and large.
LIBRARY = {
    "suboperation_mapping": ["mtrain_example_fig5", "mtrain_c2_alexnet_3gbs", "mtrain_c1_resnet18_1gbs"],
    "hybrid_pipeline": [
        "asteroid_a_resnet50_100mbps",
        "asteroid_d_mobilenetv2_1000mbps",
        "asteroid_b_bert_small_100mbps",
    ],
    "fpga_gpu_partition": ["dhm_squeezenet_fold1", "dhm_mobilenetv2_x0_5_fold4", "dhm_shufflenetv2_x0_5_fold1"],
    "multi_model_splitting": ["synergy_w1_overlapped", "synergy_w4_any", "synergy_fig11b_3pipelines"],
    "neuron_masking": ["elfish_lenet_straggler1", "elfish_vgg11_straggler2", "elfish_alexnet_cifar_straggler4"],
}
COMPARED = ("stop", "status", "objective", "bound", "plan", "notes")


def instances(problem: str) -> Iterator[InstanceBase]:
    """The instances of one problem."""
    library = registry.library(problem)
    for family in ("tiny", "small"):
        for seed in SEEDS:
            yield library.generate(family, seed)
    for name in LIBRARY.get(problem, []):
        yield load_instance(name)


def digest(data: Any) -> str | None:
    """Of JSON data; ``None`` of ``None``."""
    if data is None:
        return None
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()[:16]


def told(notes: Any) -> Any:
    """Notes without measured times."""
    if isinstance(notes, dict):
        return {key: told(value) for key, value in sorted(notes.items()) if not key.endswith("_s")}
    return notes


def run(instance: InstanceBase, method: str) -> dict[str, Any]:
    """One line of the corpus."""
    record = run_method(instance, method, Budget(LIMIT_S, seed=1))
    data = record.to_json()
    return {
        "problem": instance.problem,
        "instance": instance.name,
        "hash": instance.content_hash,
        "method": method,
        "sense": record.sense,
        "stop": str(record.stop),
        "status": str(record.status),
        "objective": record.objective,
        "bound": record.bound,
        "plan": digest(data["plan"]),
        "notes": told(data.get("notes") or {}),
        "error": record.error,
        "wall_s": round(record.wall_s or 0.0, 3),
    }


def record(path: Path, only: set[str]) -> None:
    """Run everything (or the problems named) and append to a file, leaving out what it holds."""
    held = set()
    if path.exists():
        held = {(line["hash"], line["method"]) for line in map(json.loads, path.read_text().splitlines())}
    with path.open("a", encoding="utf-8") as file:
        for problem in registry.problems():
            if only and problem not in only:
                continue
            for instance in instances(problem):
                for method in registry.methods(problem):
                    if (instance.content_hash, method) not in held:
                        file.write(json.dumps(run(instance, method)) + "\n")
                        file.flush()


def compare(old: Path, new: Path) -> int:
    """List differences; the number of runs that ended by work before and are worse now."""
    lines = [
        {(x["problem"], x["instance"], x["method"]): x for x in map(json.loads, p.read_text().splitlines())}
        for p in (old, new)
    ]
    worse, counts = 0, {"equal": 0, "better": 0, "other": 0, "worse": 0, "by time": 0, "gone": 0}
    for key, before in lines[0].items():
        after = lines[1].get(key)
        if after is None:
            counts["gone"] += 1
            continue
        if before["hash"] != after["hash"]:
            print(*key, "is another instance now")
            worse += 1
        changed = [name for name in COMPARED if before[name] != after[name]]
        if before["stop"] not in ("proved", "done"):
            counts["by time"] += 1
            continue
        sign = -1 if before["sense"] == "max" else 1
        kind = "equal" if not changed else "other"
        value, bound = (before["objective"], after["objective"]), (before["bound"], after["bound"])
        if changed:
            if after["error"] or lost(*value, sign) or lost(*bound, -sign):
                kind = "worse"
            elif value[0] != value[1] or bound[0] != bound[1]:
                kind = "better"
            print(kind, *key, {name: (before[name], after[name]) for name in changed if name != "plan"}, sep="\t")
        counts[kind] += 1
        worse += kind == "worse"
    print(counts)
    return worse


def lost(before: int | None, after: int | None, sign: int) -> bool:
    """Whether a value that should be small (``sign`` 1) or large (-1) is worse than before, or gone."""
    return before is not None and (after is None or sign * after > sign * before)


if __name__ == "__main__":
    if sys.argv[1] == "record":
        record(Path(sys.argv[2]), set(sys.argv[3:]))
    else:
        sys.exit(min(1, compare(Path(sys.argv[2]), Path(sys.argv[3]))))
