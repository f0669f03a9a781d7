"""What the combinations of options of a module cost: part of the writer, standard library only.

Combinations are built layer by layer; :mod:`~.partial` argues which unfinished ones may be dropped.
"""

from __future__ import annotations

from itertools import product
from typing import Any

from .partial import Partial, better, undominated

INPUT = -1


class Facts:
    """What the combinations of options of one module cost."""

    def __init__(self, instance: dict[str, Any]) -> None:
        self.instance = instance
        self.layers = [layer for module in instance["modules"] for layer in module["layers"]]
        self.module = [m for m, module in enumerate(instance["modules"]) for _ in module["layers"]]
        read = {r["source"] for layer in self.layers for r in layer["reads"]}
        self.outputs = set(range(len(self.layers))) - read
        #: Per module the layers whose side matters beyond one module: read from earlier ones, or by later ones.
        shared = {
            r["source"]
            for i, layer in enumerate(self.layers)
            for r in layer["reads"]
            if r["source"] != INPUT and self.module[r["source"]] != self.module[i]
        }
        self.seen = []
        for m in range(len(instance["modules"])):
            mine = [i for i in range(len(self.layers)) if self.module[i] == m]
            outside = {r["source"] for i in mine for r in self.layers[i]["reads"]} & shared - set(mine)
            self.seen.append(sorted(outside) + [i for i in mine if i in shared])

    def combinations(self, m: int) -> list[tuple[tuple[str, ...], tuple[int, ...]]]:
        """``(sides of seen layers, (latency, energy, multipliers, M20K))``, without those that are no better."""
        mine = [i for i in range(len(self.layers)) if self.module[i] == m]
        outside, inside = ([i for i in self.seen[m] if (i in mine) is own] for own in (False, True))
        found = []
        for where in product(("gpu", "fpga"), repeat=len(outside)):
            partial = [Partial(self.instance, {INPUT: "gpu", **dict(zip(outside, where, strict=True))})]
            for k, i in enumerate(mine):
                needed = {r["source"] for j in mine[k + 1 :] for r in self.layers[j]["reads"]} | self.outputs
                extended = [self.step(each, i, option) for each in partial for option in self.layers[i]["options"]]
                partial = better(extended, needed, set(inside))
            for each in partial:
                for i in mine:
                    for part, size in enumerate(self.layers[i]["outputs"] if i in self.outputs else ()):
                        each.fetch(i, part, "gpu", size)
            for sides in product(*(dict.fromkeys(o["home"] for o in self.layers[i]["options"]) for i in inside)):
                listed = [
                    each.values()
                    for each in partial
                    if all(each.home[i] == s for i, s in zip(inside, sides, strict=True))
                ]
                found += [((*where, *sides), values) for values in undominated(listed)]
        return found

    def step(self, before: Partial, i: int, option: dict[str, Any]) -> Partial:
        """A combination with an option for one more layer (rules 2, 6, 8, 10 to 12)."""
        found, layer = before.copy(), self.layers[i]
        ends, there = [0], {}
        for side in ("gpu", "fpga"):
            if option["kind"] in (side, "split"):
                sizes = option[f"{side}_reads"] if option["kind"] == "split" else map(self.size, layer["reads"])
                reads = zip(layer["reads"], sizes, strict=True)
                there[side] = max(found.fetch(r["source"], r["part"], side, size) for r, size in reads)
        for side, after in there.items():
            done = found.run(side, after, option[f"{side}_ticks"], option[f"{side}_energy"])
            if option["home"] != side and option[f"{side}_makes"]:
                done = found.move(done, option[f"{side}_makes"])
            ends.append(done)
        found.ready[i], found.home[i] = max(ends), option["home"]
        found.needs = [found.needs[0] + option["multipliers"], found.needs[1] + option["m20k"]]
        return found

    def size(self, read: dict[str, Any]) -> int:
        """Bytes that a layer reads of a tensor."""
        if read["bytes"] is not None:
            return int(read["bytes"])
        if read["source"] == INPUT:
            return int(self.instance["input_bytes"])
        return int(self.layers[read["source"]]["outputs"][read["part"]])
