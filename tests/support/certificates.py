"""What the tests of certificates share: asking the checker, and damaging proofs and instances."""

import copy

from mapgap.contract import mutations

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
