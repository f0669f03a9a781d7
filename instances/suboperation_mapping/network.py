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

from dataclasses import dataclass
from functools import cache
from math import prod
from typing import Literal

from mapgap.core import Finding, InputError
from mapgap.instances.facts import NETWORK_INPUT, Network, Row, load_network

WORD = 4
"""Bytes of an fp32 number."""
SPLIT, FUSED = ("conv", "fc"), ("bn",)
RESIZE = ("maxpool", "avgpool", "upsample", "padshortcut", "split")
COMBINE = ("add", "mul")
SUPPORTED = (*SPLIT, *FUSED, *RESIZE, *COMBINE, "cat")

Phase = Literal["fp", "bp", "wu"]
PHASES: tuple[Phase, ...] = ("fp", "bp", "wu")
Reads = dict[int, int]
"""What reading a row means: producing layer (or ``NETWORK_INPUT``) to elements per sample."""


@dataclass(frozen=True)
class Block:
    """One layer of G* before any device is known; sizes per sample.

    Attributes
    ----------
    row : Row
        The operator that makes it a layer.
    kind : {"split", "fused"}
    reads : dict
        Producing layer to elements that cross the edge.
    input_bytes, output_bytes, weight_bytes : int
        The output is that of the absorbed operators, too, if nothing consumes the layer.
    phases : tuple of {"fp", "bp", "wu"}
        Phases in which the layer has an operation; layers that read the network input only pass no loss on.
    """

    row: Row
    kind: Literal["split", "fused"]
    reads: Reads
    input_bytes: int
    output_bytes: int
    weight_bytes: int
    phases: tuple[Phase, ...]


def _block(row: Row, reads: Reads, output: int) -> Block:
    inner = any(source != NETWORK_INPUT for source in reads)
    kind: Literal["split", "fused"] = "split" if row.type in SPLIT else "fused"
    present = {"fp": True, "bp": inner, "wu": kind == "split"}
    phases = tuple(phase for phase in PHASES if present[phase])
    return Block(row, kind, reads, WORD * sum(reads.values()), WORD * output, WORD * row.params, phases)


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
    layers: list[Row] = []
    reads: list[Reads] = []
    values: list[Reads] = []  # what a reader of the row reads
    whole = {NETWORK_INPUT: prod(network.input_chw)}
    for row in network.rows:
        if row.type not in SUPPORTED:
            text = f"expected operators among {', '.join(SUPPORTED)}; found {row.type} ({row.name})"
            raise InputError(Finding(text, ("network",)))
        read = _merged([values[i] if i != NETWORK_INPUT else whole for i in row.inputs])
        if row.type in SPLIT or row.type in FUSED:
            layers.append(row)
            reads.append(read)
            values.append({len(layers) - 1: row.out})
        elif row.type in RESIZE:
            before = sum(read.values())
            values.append({source: -(-elements * row.out // before) for source, elements in read.items()})
        elif row.type in COMBINE:  # the latest producer adds: it reads the tensors of the others
            owner = max(read)
            reads[owner] = _merged([reads[owner], {source: e for source, e in read.items() if source != owner}])
            values.append({owner: row.out})
        else:  # cat
            values.append(read)
    consumed = {source for read in reads for source in read}
    last = {source: elements for source, elements in values[-1].items() if source not in consumed}
    return tuple(
        _block(row, read, last.get(i, row.out)) for i, (row, read) in enumerate(zip(layers, reads, strict=True))
    )


def _merged(parts: list[Reads]) -> Reads:
    found: Reads = {}
    for part in parts:
        for source, elements in part.items():
            found[source] = max(elements, found.get(source, 0))
    return dict(sorted(found.items()))
