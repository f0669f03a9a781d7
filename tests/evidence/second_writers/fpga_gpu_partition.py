"""A second writer of the FPGA-GPU partition, made from the rules apart from the first; standard library only.

Every product of options of a module is run from its start, for all sides of the tensors that it reads of earlier
modules; of two with the same sides one goes if the other is nowhere worse. The first writer builds combinations layer
by layer and drops some before they are finished.

    (m, sides, values)      module m takes a combination: sides of the layers that others see, what it costs
    ("side", i)             1 if the output of layer i, which later modules read, lies on the FPGA
    ("energy",)             of the whole network, where the objective is a product
    ("latency",)            likewise
"""

import json
from functools import cache
from itertools import product

LATER = ("name", "source", "tags", "objective", "energy_weight", "latency_weight", "latency_limit", "energy_limit")
"""Fields that the combinations do not depend on, so that all objectives of a network share them."""


class Run:
    """One module under one combination, job after job: rules 2, 6, 10 and 11."""

    def __init__(self, instance, sizes, homes):
        self.link, self.tick, self.sizes = instance["link"], instance["tick_ns"], sizes
        self.homes = homes  # layer: side of its output; that of earlier modules from the start
        self.made = {}  # layer of this module: when its output is there
        self.moved = {}  # tensor: bytes that are on its other side, and since when
        self.ends = {"gpu": 0, "fpga": 0, "link": 0}
        self.energy = 0

    def job(self, queue, ready, ticks, energy):
        self.ends[queue] = max(self.ends[queue], ready) + ticks
        self.energy += energy
        return self.ends[queue]

    def transfer(self, ready, size):
        """Rule 11, upwards to whole ticks and units."""
        ticks = self.link["setup_ticks"] - (-size * 10**9 // (self.link["bytes_per_second"] * self.tick))
        return self.job("link", ready, ticks, self.link["setup_energy"] - (-size * self.link["energy_per_mb"] // 10**6))

    def on(self, side, source, part, size):
        """When a reader on a side has the bytes of a tensor that it asks for."""
        ready = self.made.get(source, 0)
        if size == 0 or self.homes[source] == side:
            return ready if size else 0
        there, since = self.moved.get((source, part), (0, 0))
        if there < size:
            there, since = self.moved[source, part] = size, self.transfer(ready, size - there)
        return since

    def layer(self, i, layer, option):
        home, split = option["home"], option["kind"] == "split"
        sides = ("gpu", "fpga") if split else (option["kind"],)
        starts = {}
        for side in sides:
            sizes = option[side + "_reads"] if split else [self.size(read) for read in layer["reads"]]
            reads = zip(layer["reads"], sizes, strict=True)
            starts[side] = max(self.on(side, read["source"], read["part"], size) for read, size in reads)
        ends = []
        for side in sides:
            ends.append(self.job(side, starts[side], option[side + "_ticks"], option[side + "_energy"]))
            if side != home and split and option[side + "_makes"]:
                ends.append(self.transfer(ends[-1], option[side + "_makes"]))
        self.homes[i], self.made[i] = home, max(ends)

    def size(self, read):
        return self.sizes[read["source"]][read["part"]] if read["bytes"] is None else read["bytes"]


def combinations(instance, m):
    """All ``(sides, (latency, energy, multipliers, m20k))`` of module m, and the layers whose sides these are."""
    before = sum(len(module["layers"]) for module in instance["modules"][:m])
    layers = [layer for module in instance["modules"] for layer in module["layers"]]
    sizes = {-1: [instance["input_bytes"]]} | {i: layer["outputs"] for i, layer in enumerate(layers)}
    after = before + len(instance["modules"][m]["layers"])
    own = range(before, after)
    readers = {
        i: [j for j, layer in enumerate(layers) for read in layer["reads"] if read["source"] == i] for i in sizes
    }
    earlier = [i for i in range(before) if any(j in own for j in readers[i])]
    seen = [*earlier, *(i for i in own if any(j >= after for j in readers[i]))]
    found = set()
    for outside in product(("gpu", "fpga"), repeat=len(earlier)):
        for options in product(*(layers[i]["options"] for i in own)):
            run = Run(instance, sizes, {-1: "gpu", **dict(zip(earlier, outside, strict=True))})
            for i, option in zip(own, options, strict=True):
                run.layer(i, layers[i], option)
            for i in own:
                for part, size in enumerate(layers[i]["outputs"] if not readers[i] else ()):
                    run.on("gpu", i, part, size)
            latency = max(run.ends.values())
            standby = -(-instance["standby_mw"] * instance["tick_ns"] * latency // (1000 * instance["energy_unit_nj"]))
            fabric = (sum(option[key] for option in options) for key in ("multipliers", "m20k"))
            sides = tuple(int(run.homes[i] == "fpga") for i in seen)
            found.add((sides, (latency, run.energy + standby, *fabric)))
    return seen, found


def undominated(found):
    """Those of which no other one with the same sides is at least as good in everything."""
    kept = {}
    for sides, values in sorted(found):  # whatever dominates another one comes before it, and is no later
        _, energy, multipliers, m20k = values
        rivals = kept.setdefault(sides, [])
        if not any(e <= energy and x <= multipliers and y <= m20k for _, e, x, y in rivals):
            rivals.append(values)
    return [(sides, values) for sides, rivals in kept.items() for values in rivals]


@cache
def choices(facts):
    """Per module the layers that are seen, and the undominated combinations."""
    instance = json.loads(facts)
    every = [combinations(instance, m) for m in range(len(instance["modules"]))]
    return [(seen, undominated(found)) for seen, found in every]


def program(instance, bound):
    """``variables`` (name: bounds), ``rows``, ``products`` and ``cutoff``; no order is meant."""
    variables, rows, picks = {}, set(), []

    def row(terms, most):
        rows.add((frozenset((name, a) for name, a in terms.items() if a), most))

    def equation(terms, value):
        row(terms, value)
        row({name: -a for name, a in terms.items()}, -value)

    facts = {key: value for key, value in instance.items() if key not in LATER}
    for m, (seen, kept) in enumerate(choices(json.dumps(facts))):
        names = [(m, sides, values) for sides, values in kept]
        picks += names
        variables |= dict.fromkeys(names, (0, 1))
        equation(dict.fromkeys(names, 1), 1)
        for place, i in enumerate(seen):
            variables.setdefault(("side", i), (0, 1))
            equation({("side", i): -1} | {name: name[1][place] for name in names}, 0)
    latency, energy, multipliers, m20k = ({name: name[2][k] for name in picks} for k in range(4))
    row(multipliers, instance["fabric"]["multipliers"])
    row(m20k, instance["fabric"]["m20k"])
    for terms, limit in ((latency, instance["latency_limit"]), (energy, instance["energy_limit"])):
        if limit is not None:
            row(terms, limit)
    products = []
    if instance["objective"] == "edp":
        most = (sum(energy.values()), sum(latency.values()))
        for name, terms, largest in zip(("energy", "latency"), (energy, latency), most, strict=True):
            variables[name,] = (0, largest)
            equation({**terms, (name,): -1}, 0)
        products.append((("energy",), ("latency",), min(bound - 1, most[0] * most[1])))
        worth, better = {("energy",): 1}, most[0]
    else:
        both = {
            "energy": (1, 0),
            "latency": (0, 1),
            "weighted": (instance["energy_weight"], instance["latency_weight"]),
        }
        price, wait = both[instance["objective"]]
        worth = {name: price * energy[name] + wait * latency[name] for name in picks}
        better = min(bound - 1, sum(worth.values()))
    row(worth, better)
    cutoff = (frozenset((name, a) for name, a in worth.items() if a), better)
    return {"variables": variables, "rows": rows, "products": products, "cutoff": cutoff}
