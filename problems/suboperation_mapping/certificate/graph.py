"""Operations, precedences, and what they take: part of the writer, standard library only."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import chain
from typing import Any

from .alike import Classes
from .lengths import GRAIN

Operation = tuple[str, int, int]  # phase, layer, share; -1 for the operations of fused layers


class Graph(Classes):
    """The operations of one ratio; of split layers as a whole if ``ratio`` is ``None``."""

    def __init__(self, instance: dict[str, Any], ratio: Any, kind: Sequence[int] = ()) -> None:
        super().__init__(len(instance["accelerators"]), kind)
        self.instance, self.layers, self.ratio = instance, instance["layers"], ratio
        self.shares = range(1 if ratio is None else len(ratio))
        self.consumers = [
            [(c, e["bytes"]) for c, layer in enumerate(self.layers) for e in layer["inputs"] if e["source"] == i]
            for i in range(len(self.layers))
        ]
        backward = [(p, i) for i in reversed(range(len(self.layers))) for p in ("WU", "BP")]
        nodes = [("FP", i) for i in range(len(self.layers))] + backward
        self.nodes = [
            (p, i) for p, i in nodes if p == "FP" or (self.layers[i]["inputs"] if p == "BP" else self.split(i))
        ]
        self.operations = [o for p, i in self.nodes for o in self.of(p, i)]  # in a topological order
        self.before = {o: self.predecessors(o) for o in self.operations}

    @cached_property
    def above(self) -> dict[Operation, set[Operation]]:
        """What comes before each operation."""
        found: dict[Operation, set[Operation]] = {}
        for o in self.operations:
            found[o] = {q for p, _ in self.before[o] for q in (p, *found[p])}
        return found

    def split(self, layer: int) -> bool:
        return bool(self.layers[layer]["kind"] == "split")

    def of(self, phase: str, layer: int) -> list[Operation]:
        """The operations of a phase of a layer."""
        return [(phase, layer, b) for b in (self.shares if self.split(layer) else (-1,))]

    def samples(self, o: Operation) -> int:
        return int(self.instance["batch"] if o[2] < 0 else self.ratio[o[2]] if self.ratio else 0)

    def predecessors(self, o: Operation) -> list[tuple[Operation, int]]:
        """With the bytes that each sends (rules 2 to 4)."""
        phase, index, share = o
        layer, consumers = self.layers[index], self.consumers[index]
        sources = [(e["source"], e["bytes"]) for e in layer["inputs"]] if phase == "FP" else consumers
        found = []
        for other, size in sources:
            parts = self.of("FP" if phase == "FP" else "BP", other)
            for p in parts if share < 0 or not self.split(other) else [parts[share]]:
                found.append((p, size * min(self.samples(o), self.samples(p))))
        if phase != "FP":
            own = layer["weight_bytes"] if phase == "BP" else layer["network_input_bytes"] * self.samples(o)
            if phase == "WU":
                own += sum(e["bytes"] for e in layer["inputs"]) * self.samples(o)
            found.append((("FP", index, share), own + (0 if consumers else layer["output_bytes"] * self.samples(o))))
        return found

    def ticks(self, size: int, i: int, j: int) -> int:
        """Of a transfer, which is one message (rules 6, 11)."""
        if i == j or not size:
            return 0
        rate, late = self.instance["bandwidth"][i][j], self.instance.get("latency_ns") or ()
        return int(-(-(size * 10**9 + (late[i][j] * rate if late else 0)) // (rate * self.instance["tick_ns"])))

    def cheapest(self, size: int, a: int) -> int:
        """Least ticks of a transfer to ``a`` from elsewhere."""
        return min((self.ticks(size, i, a) for i in self.everywhere if i != a), default=0)

    def grains(self, size: int, i: int, j: int) -> int:
        """To move ``size`` bytes, rounded down; latencies are left out, as flows do not tell messages."""
        return 0 if i == j else GRAIN * size * 10**9 // (self.instance["bandwidth"][i][j] * self.instance["tick_ns"])

    def cheapest_grains(self, size: int, a: int) -> int:
        return min((self.grains(size, i, a) for i in self.everywhere if i != a), default=0)

    def sample_bytes(self, o: Operation, p: Operation) -> int:
        """What a sample of an operation reads from a predecessor, the weights left out."""
        layer, consumers = self.layers[o[1]], self.consumers[o[1]]
        if p[1] == o[1]:
            read = layer["network_input_bytes"] + sum(e["bytes"] for e in layer["inputs"]) if o[0] == "WU" else 0
            return int(read + (0 if consumers else layer["output_bytes"]))
        edges = [(e["source"], e["bytes"]) for e in layer["inputs"]] if o[0] == "FP" else consumers
        return int(min(size for other, size in edges if other == p[1]))

    def serial(self) -> int:
        """No plan takes longer: one operation after the other, each with all bytes of the network from everybody."""
        most, n = len(self.shares) if self.ratio else len(self.everywhere), len(self.layers)
        phases = ("fp", "bp", "wu")
        ticks = sum(most * max(chain.from_iterable(layer[p]), default=0) for layer in self.layers for p in phases)
        sizes = (
            layer["weight_bytes"]
            + self.instance["batch"]
            * (layer["network_input_bytes"] + layer["output_bytes"] + sum(edge["bytes"] for edge in layer["inputs"]))
            for layer in self.layers
        )
        rates = [rate for i, row in enumerate(self.instance["bandwidth"]) for j, rate in enumerate(row) if i != j]
        late = max((ns for row in self.instance.get("latency_ns") or () for ns in row), default=0)
        moved = -(-(sum(sizes) * 10**9 + late * min(rates)) // (min(rates) * self.instance["tick_ns"])) if rates else 0
        operations = len(phases) * n * most
        return int(ticks + operations * (operations + most) * moved)

    def compute(self, o: Operation, a: int) -> int:
        return int(self.layers[o[1]][o[0].lower()][a][self.samples(o) - 1 if o[2] >= 0 else 0])
