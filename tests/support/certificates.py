"""What the tests of certificates share: asking the checker, and damaging proofs and instances."""

import copy
import json
import random

from mapgap.contract import mutations
from mapgap.problems.suboperation_mapping import Instance

damaged = mutations.damaged


def accepted(instance, bound, proof):
    """Does the checker believe that no plan is better than the bound?"""
    return mutations.accepted({"schema": 1, "instance": instance, "bound": bound, "proof": proof})


def with_equal_accelerators(instance, rng):
    """An instance of sub-operation mapping (expanded) in which accelerators have tables of others, at one bandwidth."""
    data, n = copy.deepcopy(instance), len(instance["accelerators"])
    source = [rng.randrange(a + 1) for a in range(n)]
    for layer in data["layers"]:
        for phase in ("fp", "bp", "wu"):
            layer[phase] = [layer[phase][a] for a in source] if layer[phase] else []
    data["bandwidth"] = [[data["bandwidth"][0][-1] or 1] * n for _ in range(n)]
    return data


def layer_of(index, kind, inputs, output, weight, rows):
    """A layer (expanded) with inputs (source, bytes) and ticks of FP, BP and WU by accelerator and samples."""
    fp, bp, wu = rows
    return {
        "name": f"l{index}",
        "kind": kind,
        "inputs": [{"source": source, "bytes": size} for source, size in inputs],
        "network_input_bytes": 0 if inputs else 5,
        "output_bytes": output,
        "weight_bytes": weight,
        "fp": fp,
        "bp": bp if inputs else [],
        "wu": wu if kind == "split" else [],
    }


def network(name, samples, n, rng, layers, **more):
    """An instance of sub-operation mapping with ``n`` accelerators whose DRAM never binds.

    Rates are drawn, and behind them ``more``: by key what draws a value.
    """
    data = {
        "problem": "suboperation_mapping",
        "name": name,
        "batch": samples,
        "tick_ns": 1,
        "memory_unit_bytes": 10**9,
        "flops": 1,
        "accelerators": [{"name": f"a{i}", "memory": 10**6, "pes": 1} for i in range(n)],
        "bandwidth": [[rng.choice([10**9, 3 * 10**8, 2 * 10**9]) for _ in range(n)] for _ in range(n)],
        "layers": layers,
    }
    given = {key: value for key, draw in more.items() if (value := draw()) is not None}
    return Instance.model_validate_json(json.dumps({**data, **given}))


def drawn(seed, layers=(1, 3), batch=(1, 4), accelerators=(1, 3)):
    """A network with branches, ticks of 0 to 10^6 with ties, bandwidths of every size, DRAM that never binds."""
    rng = random.Random(seed)
    n, samples = rng.randint(*accelerators), rng.randint(*batch)
    scale = rng.choice([3, 1000, 10**6])

    def ticks(count):
        kind = rng.random()
        if kind < 0.1:
            return [0] * count
        tile, cost = rng.choice([1, 2, 4]), rng.randint(1, scale)
        if kind < 0.7:  # batch tiles
            return [-(-k // tile) * cost for k in range(1, count + 1)]
        return [rng.randint(0, scale) for _ in range(count)]

    found = []
    for index in range(rng.randint(*layers)):
        kind = "fused" if index and rng.random() < 0.5 else "split"
        sources = sorted(rng.sample(range(index), min(index, rng.choice([1, 1, 2]))))
        count = samples if kind == "split" else 1
        rows = [[ticks(count) for _ in range(n)] for _ in range(3)]
        inputs = [(s, rng.choice([0, 1, 7, scale])) for s in sources]
        found.append(layer_of(index, kind, inputs, rng.choice([0, 3, scale]), rng.choice([0, 1, scale]), rows))
    return network(f"drawn_{seed}", samples, n, rng, found)
