"""From the layer table of a network to the layers of G*: what splits, what fuses, which tensor crosses which edge.

Convolutions and fully connected layers split, batch normalisations fuse; all other operators are absorbed (rule 1 of
:mod:`mapgap.problems.suboperation_mapping`). Interpretation of what the rule leaves open:

- pooling, up-sampling, a padded short-cut and a channel split shrink or grow the tensor that crosses the edge;
- ``add`` (and ``mul``) belongs to the producer of largest index, which gains an input edge from each other producer;
- after ``cat`` a consumer reads every part; an operator behind ``cat`` resizes every part in proportion;
- if two absorbed paths lead from one producer to one consumer the tensor crosses once, in the larger of the two
  sizes: the accelerator that receives it can derive the smaller one.

Elements are fp32 words of 4 bytes (Sec. VI-A).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import Literal

from mapgap.core import Finding, InputError
from mapgap.instances.facts import NETWORK_INPUT, Network, Row, load_network

WORD = 4
"""Bytes of an fp32 number."""
SPLIT, FUSED = ("conv", "fc"), ("bn",)
RESIZE = ("maxpool", "avgpool", "upsample", "padshortcut", "split")
COMBINE = ("add", "mul")
SUPPORTED = (*SPLIT, *FUSED, *RESIZE, *COMBINE, "cat")

Reads = dict[int, int]
"""What reading a row means: producing layer (or ``NETWORK_INPUT``) to elements per sample."""


@dataclass
class Block:
    """One layer of G* before any device is known; sizes per sample.

    Attributes
    ----------
    row : Row
        The operator that makes it a layer.
    kind : {"split", "fused"}
    reads : dict
        Producing layer to elements that cross the edge.
    output : int
        Elements of the layer's own output; with its absorbed operators if nothing consumes it.
    """

    row: Row
    kind: Literal["split", "fused"]
    reads: Reads = field(default_factory=dict)
    output: int = 0

    @property
    def input_bytes(self) -> int:
        return WORD * sum(self.reads.values())

    @property
    def output_bytes(self) -> int:
        return WORD * self.output

    @property
    def weight_bytes(self) -> int:
        return WORD * self.row.params

    @property
    def has_backward(self) -> bool:
        """Layers that read the network input only pass no loss on."""
        return any(source != NETWORK_INPUT for source in self.reads)


@cache
def blocks_of(name: str) -> tuple[Block, ...]:
    """Layers of a library network (cached; do not modify).

    Raises
    ------
    InputError
        No such network, or an operator that MTrain does not treat.
    """
    return lower_network(load_network(name))


def lower_network(network: Network) -> tuple[Block, ...]:
    """Absorb every operator that is no layer of its own.

    Raises
    ------
    InputError
        An operator that MTrain does not treat.
    """
    blocks: list[Block] = []
    values: list[Reads] = []  # what a reader of the row reads
    for row in network.rows:
        if row.type not in SUPPORTED:
            text = f"expected operators among {', '.join(SUPPORTED)}; found {row.type} ({row.name})"
            raise InputError(Finding(text, ("network",)))
        read = _merged([values[i] if i != NETWORK_INPUT else _input(network) for i in row.inputs])
        if row.type in SPLIT or row.type in FUSED:
            kind: Literal["split", "fused"] = "split" if row.type in SPLIT else "fused"
            blocks.append(Block(row, kind, read, row.out))
            values.append({len(blocks) - 1: row.out})
        elif row.type in RESIZE:
            before = sum(read.values())
            values.append({source: -(-elements * row.out // before) for source, elements in read.items()})
        elif row.type in COMBINE:
            values.append(_combined(blocks, read, row))
        else:  # cat
            values.append(read)
    consumed = {source for block in blocks for source in block.reads}
    for source, elements in values[-1].items():
        if source not in consumed and source != NETWORK_INPUT:
            blocks[source].output = elements
    return tuple(blocks)


def _input(network: Network) -> Reads:
    channels, height, width = network.input_chw
    return {NETWORK_INPUT: channels * height * width}


def _merged(parts: list[Reads]) -> Reads:
    found: Reads = {}
    for part in parts:
        for source, elements in part.items():
            found[source] = max(elements, found.get(source, 0))
    return dict(sorted(found.items()))


def _combined(blocks: list[Block], read: Reads, row: Row) -> Reads:
    """The latest producer adds: it reads the tensors of the others and its output is the sum."""
    owner = max(read)
    others = {source: elements for source, elements in read.items() if source != owner}
    blocks[owner].reads = _merged([blocks[owner].reads, others])
    return {owner: row.out}
