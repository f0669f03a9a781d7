"""Networks that are chains of layers, and plans of them."""

import json

from mapgap.problems.suboperation_mapping import Instance
from mapgap.problems.suboperation_mapping.lowered.arrays import lower
from mapgap.problems.suboperation_mapping.lowered.mapped import Mapped


def network(layers, accelerators=2, batch=2, rate=10**9):
    """A chain; ``layers`` are pairs of a kind and ticks of a sample of FP, BP and WU, on every accelerator alike."""
    found = []
    for index, (kind, *ticks) in enumerate(layers):
        counts = range(1, batch + 1) if kind == "split" else range(1, 2)
        table = [[[k * t for k in counts] for _ in range(accelerators)] for t in ticks]
        found.append(
            {
                "name": f"l{index}",
                "kind": kind,
                "inputs": [{"source": index - 1, "bytes": 1000}] if index else [],
                "network_input_bytes": 0 if index else 1000,
                "output_bytes": 1000,
                "weight_bytes": 1000,
                "fp": table[0],
                "bp": table[1] if index else [],
                "wu": table[2] if kind == "split" else [],
            }
        )
    return Instance.model_validate_json(
        json.dumps(
            {
                "problem": "suboperation_mapping",
                "name": "network",
                "batch": batch,
                "tick_ns": 1,
                "memory_unit_bytes": 10**9,
                "flops": 1,
                "accelerators": [{"name": f"a{i}", "memory": 10**6, "pes": 1} for i in range(accelerators)],
                "bandwidth": [[rate] * accelerators] * accelerators,
                "layers": found,
            }
        )
    ).to_json()


def makespans(data, ratio, rng, count):
    """Of random plans of a ratio."""
    lowered = lower(Instance.model_validate_json(json.dumps(data)), ratio)
    for k in range(count):
        places = (
            rng.choices(range(lowered.accelerators), k=lowered.n)
            if k % 4
            else [k // 4 % lowered.accelerators] * lowered.n
        )
        location = lowered.topological * 0 + places
        yield Mapped(lowered, location, lowered.topological, *lowered.timetable(location, lowered.topological)).makespan
