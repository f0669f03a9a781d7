"""What the combinations of options of a module cost: part of the writer, standard library only."""

from __future__ import annotations

from itertools import product
from typing import Any

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

    def combinations(self, m: int) -> list[tuple[tuple[str, ...], tuple[int, int, int, int]]]:
        """``(sides of seen layers, (latency, energy, multipliers, M20K))``, without those that are no better."""
        mine = [i for i in range(len(self.layers)) if self.module[i] == m]
        outside = [i for i in self.seen[m] if i not in mine]
        best: dict[tuple[str, ...], list[tuple[int, int, int, int]]] = {}
        for where in product(("gpu", "fpga"), repeat=len(outside)):
            for options in product(*(self.layers[i]["options"] for i in mine)):
                home = {INPUT: "gpu", **dict(zip(outside, where, strict=True))}
                home |= {i: option["home"] for i, option in zip(mine, options, strict=True)}
                latency, energy = self.cost(dict(zip(mine, options, strict=True)), home)
                needs = (sum(o["multipliers"] for o in options), sum(o["m20k"] for o in options))
                best.setdefault(tuple(home[i] for i in self.seen[m]), []).append((latency, energy, *needs))
        return [(sides, values) for sides, listed in best.items() for values in undominated(listed)]

    def cost(self, chosen: dict[int, dict[str, Any]], home: dict[int, str]) -> tuple[int, int]:
        """Makespan and energy of a module (rules 2, 6, 8, 10 to 12)."""
        free = {"gpu": 0, "fpga": 0, "link": 0}
        ready: dict[int, int] = {}
        copied: dict[tuple[int, int], tuple[int, int]] = {}
        energies = []

        def run(queue: str, after: int, ticks: int, energy: int) -> int:
            free[queue] = max(after, free[queue]) + ticks
            energies.append(energy)
            return free[queue]

        def move(after: int, size: int) -> int:
            link, tick = self.instance["link"], self.instance["tick_ns"]
            ticks = link["setup_ticks"] - (-size * 10**9 // (link["bytes_per_second"] * tick))
            return run("link", after, ticks, link["setup_energy"] - (-size * link["energy_per_mb"] // 10**6))

        def fetch(source: int, part: int, side: str, size: int) -> int:
            made = ready.get(source, 0)
            if size == 0 or home[source] == side:
                return made if size else 0
            held, since = copied.get((source, part), (0, 0))
            if size > held:
                since = move(made, size - held)
                copied[source, part] = (size, since)
            return since

        for i, option in chosen.items():
            layer, ends, there = self.layers[i], [0], {}
            for side in ("gpu", "fpga"):
                if option["kind"] in (side, "split"):
                    sizes = option[f"{side}_reads"] if option["kind"] == "split" else map(self.size, layer["reads"])
                    reads = zip(layer["reads"], sizes, strict=True)
                    there[side] = max(fetch(r["source"], r["part"], side, size) for r, size in reads)
            for side, after in there.items():
                done = run(side, after, option[f"{side}_ticks"], option[f"{side}_energy"])
                if option["home"] != side and option[f"{side}_makes"]:
                    done = move(done, option[f"{side}_makes"])
                ends.append(done)
            ready[i] = max(ends)
        for i in chosen:
            for part, size in enumerate(self.layers[i]["outputs"] if i in self.outputs else ()):
                fetch(i, part, "gpu", size)
        makespan = max(free.values())
        standby = self.instance["standby_mw"] * self.instance["tick_ns"] * makespan
        return makespan, sum(energies) - (-standby // (1000 * self.instance["energy_unit_nj"]))

    def size(self, read: dict[str, Any]) -> int:
        """Bytes that a layer reads of a tensor."""
        if read["bytes"] is not None:
            return int(read["bytes"])
        if read["source"] == INPUT:
            return int(self.instance["input_bytes"])
        return int(self.layers[read["source"]]["outputs"][read["part"]])


def undominated(listed: list[tuple[int, int, int, int]]) -> list[tuple[int, int, int, int]]:
    """Without values that another one reaches or undercuts in all four."""
    kept: list[tuple[int, int, int, int]] = []
    for values in sorted(set(listed)):
        if not any(all(a <= b for a, b in zip(other, values, strict=True)) for other in kept):
            kept.append(values)
    return kept
