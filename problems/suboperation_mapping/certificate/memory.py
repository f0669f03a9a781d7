"""What DRAM must hold at once (rule 7): part of the writer, standard library only.

``w[l][a]`` is 1 if an operation of layer ``l`` lies on ``a``; its weights and gradients are there for ever. A tensor is
held where its owner lies from the owner's start to the end of the WU that releases it. So when an operation ``m``
starts, every tensor is held whose owner is ``m`` or comes before it and whose WU is ``m`` or comes after it, if that WU
ends later than ``m`` starts: if ``m`` or the WU takes a tick wherever it lies. What is held at one moment fits: of the
start of every ``m`` there is a row, of other moments the accelerator is a store of the program.
"""

from __future__ import annotations

from .graph import Operation
from .loads import Loads
from .machines import machines


class Memory(Loads):
    """Rows of the DRAM, for programs in which all operations have a place and a start."""

    start: dict[Operation, int]

    def units(self, size: int) -> int:
        return -(-size // int(self.instance["memory_unit_bytes"]))

    def tensors(self) -> list[tuple[Operation, Operation, int]]:
        """``(owner, the WU that releases it, units)`` of every tensor."""
        found = []
        for o in self.operations:
            if o[0] == "WU":
                layer, forward = self.layers[o[1]], ("FP", *o[1:])
                read = layer["network_input_bytes"] + sum(edge["bytes"] for edge in layer["inputs"])
                held = [(forward, read)]
                for c, size in self.consumers[o[1]]:
                    held.append((("BP", c, o[2] if self.split(c) else -1), size))
                if not self.consumers[o[1]]:
                    held.append((forward, layer["output_bytes"]))
                found += [(owner, o, self.units(size * self.samples(o))) for owner, size in held if size]
        return found

    def memory(self) -> None:
        """The accelerators as machines; a store and rows of every one where not everything fits anyway."""
        self.program.machines += machines(self)
        weights = [self.units(2 * layer["weight_bytes"]) for layer in self.layers]
        tensors = self.tensors()
        room = [accelerator["memory"] for accelerator in self.instance["accelerators"]]
        tight = [a for a in self.places if sum(weights) + sum(units for *_, units in tensors) > room[a]]
        takes = {o: min(self.compute(o, a) for a in self.places) > 0 for o in self.operations}
        for a in tight:
            own = [self.program.variable(0, 1) for _ in self.layers]
            for o in self.operations:
                self.program.at_most([(self.x[o][a], 1), (own[o[1]], -1)], 0)
            held = list(zip(own, weights, strict=True))
            self.program.at_most(held, room[a])
            stored = [(self.start[o], self.x[o][a], size, self.start[wu], self.load[wu]) for o, wu, size in tensors]
            self.program.stores.append((room[a], held, stored))
            for m in self.operations:
                at_once = [
                    (self.x[owner][a], units)
                    for owner, wu, units in tensors
                    if (owner == m or owner in self.above[m])
                    and (wu == m or m in self.above[wu])
                    and (takes[m] or takes[wu])
                ]
                if at_once:
                    self.program.at_most([*held, *at_once], room[a])
