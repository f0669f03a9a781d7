"""The writer of the FPGA-GPU partition for certificates; rules as in the package's docstring. Standard library only.

Modules run one after the other, so a plan is worth the sums over its modules (rule 1). A module's latency and energy
follow from the options of its own layers and from the sides on which the tensors lie that it reads of earlier modules.
Every combination of these is looked at, timed by rule 2 and priced, and is one variable, unless another one of the
same module with the same sides of what is read and of what later modules read is at least as good in all of latency,
energy, multipliers and M20K: exchanging it then leaves a plan that is no worse. Equations make the sides agree.

:mod:`~.costs` prices the combinations.

Variables come module by module: the combinations, as ``Facts.combinations`` lists them, then a side, 1 for the FPGA, of
every layer of the module that later ones read. If the objective is the product, energy and latency are the last two.
"""

from __future__ import annotations

from typing import Any

from .costs import Facts

LEAST = {"source": -1}  # the network input
SENSE = "min"
READ = {"source": None, "part": None, "bytes": None}
OPTION = dict.fromkeys(
    ("name", "home", "gpu_ticks", "gpu_energy", "fpga_ticks", "fpga_energy", "multipliers", "m20k", "gpu_reads")
    + ("fpga_reads", "gpu_makes", "fpga_makes", "fold", "split", "channels")
) | {"kind": ("gpu", "fpga", "split"), "home": ("gpu", "fpga")}
LAYER = {"name": None, "operation": None, "reads": [READ], "outputs": None, "options": [OPTION], "macs": None}
SHAPE = {
    **dict.fromkeys(("name", "source", "tags", "energy_weight", "latency_weight", "latency_limit", "energy_limit")),
    **dict.fromkeys(("tick_ns", "energy_unit_nj", "standby_mw", "input_bytes")),
    "schema": (1,),
    "form": ("expanded",),
    "problem": ("fpga_gpu_partition",),
    "objective": ("energy", "latency", "edp", "weighted"),
    "fabric": dict.fromkeys(("multipliers", "m20k")),
    "link": dict.fromkeys(("bytes_per_second", "setup_ticks", "setup_energy", "energy_per_mb")),
    "modules": [{"name": None, "kind": None, "layers": [LAYER]}],
}


def program(instance: dict[str, Any], bound: int, new: Any) -> Any:
    """Some best plan among those of an objective below ``bound``, if there is one."""
    found, facts = new(), Facts(instance)
    sums: dict[str, list[tuple[int, int]]] = {name: [] for name in ("latency", "energy", "multipliers", "m20k")}
    sides: dict[int, int] = {}
    for m in range(len(instance["modules"])):
        chosen = []
        for homes, values in facts.combinations(m):
            y = found.variable(0, 1)
            chosen.append((y, homes))
            for name, value in zip(sums, values, strict=True):
                sums[name].append((y, value))
        found.equal([(y, 1) for y, _ in chosen], 1)
        for k, layer in enumerate(facts.seen[m]):
            if layer not in sides:
                sides[layer] = found.variable(0, 1)
            found.equal([*((y, 1) for y, homes in chosen if homes[k] == "fpga"), (sides[layer], -1)], 0)
    for name in ("multipliers", "m20k"):
        found.at_most(sums[name], instance["fabric"][name])
    for name in ("latency", "energy"):
        if instance[f"{name}_limit"] is not None:
            found.at_most(sums[name], instance[f"{name}_limit"])
    weights = {"energy": (1, 0), "latency": (0, 1), "weighted": (instance["energy_weight"], instance["latency_weight"])}
    if instance["objective"] != "edp":
        a, b = weights[instance["objective"]]
        terms = [*((y, a * e) for y, e in sums["energy"]), *((y, b * t) for y, t in sums["latency"])]
        found.cutoff = found.at_most(terms, min(bound - 1, sum(a for _, a in terms)))
        return found
    names = ("energy", "latency")
    energy, latency = (found.variable(0, sum(value for _, value in sums[name])) for name in names)
    for name, total in zip(names, (energy, latency), strict=True):
        found.equal([*sums[name], (total, -1)], 0)
    found.products.append((energy, latency, min(bound - 1, found.upper[energy] * found.upper[latency])))
    found.cutoff = found.at_most([(energy, 1)], found.upper[energy])
    return found
