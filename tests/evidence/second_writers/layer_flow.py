"""A second checker of layer flow, made from the rules apart from the first; standard library only.

It reads the same proofs. Whether F units pass within a weight below the grid the first asks a table of all weights;
here pairs of weight and units are multiplied out node by node, and the question is whether one of them is a cover.
"""


def holds(instance, bound, proof):
    """Does the proof show that at most ``bound`` units flow?"""
    flow, layers = bound + 1, instance["layers"]
    tables = [node["throughput"] for node in instance["nodes"]]
    if bound < 0:
        return False
    passed = [[min(units, flow) for units in table] for table in tables]
    if proof == []:
        work = sum(max(k * units for k, units in enumerate(row, 1)) for row in passed)
        return sum(instance["entry"]) < flow or sum(instance["exit"]) < flow or work < layers * flow
    grid, weights = proof
    classes = [table for n, table in enumerate(tables) if table not in tables[:n]]
    chosen = [weights[classes.index(table)] for table in tables]
    shapes = [len(row) for row in weights] == [len(table) for table in classes]
    whole = all(type(v) is int and v >= 0 for v in (grid, *(v for row in weights for v in row)))
    if not (shapes and whole and 0 < grid <= 10_000):
        return False
    if sum(max(k * v for k, v in enumerate(row, 1)) for row in chosen) >= layers * grid:
        return False
    return not lighter_cover(passed, chosen, grid, flow)


def lighter_cover(passed, weights, grid, flow):
    """Do nodes of a weight below the grid, each with one number of layers, pass the flow?"""
    pairs = [(0, 0)]
    for units, row in zip(passed, weights, strict=True):
        options = [(0, 0), *zip(row, units, strict=True)]
        found = {(w + v, u + more) for w, u in pairs for v, more in options if w + v < grid}
        pairs, most = [], -1
        for w, u in sorted(found, key=lambda pair: (pair[0], -pair[1])):
            if u > most:
                pairs.append((w, u))
                most = u
    return pairs[-1][1] >= flow if pairs else False
