"""Layer sequences of library networks: what Asteroid's profiler reports besides times (Sec. 3.3).

Rows of a layer table are in topological order, so every row is a layer and every place between two rows a cut. All
tensors that a later row still reads cross the cut, residual connections included.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import prod

from mapgap.instances.facts import NETWORK_INPUT, ROOT, load_network, network_names, read_table, unknown

WORD = 4
"""Bytes of a value (fp32)."""
CLASSES = {"resnet50": 100}
"""Classes of the data set where they differ from the table's: Mini-ImageNet has 100, the table 1000."""


@dataclass(frozen=True)
class Operator:
    """One layer; all sizes per sample.

    Attributes
    ----------
    name : str
    inputs : tuple of int
        Layers read; -1 is the network input.
    params, macs : int
        Parameters; multiply-accumulates of the forward pass.
    read, out : int
        Elements read and written by the forward pass.
    """

    name: str
    inputs: tuple[int, ...]
    params: int
    macs: int
    read: int
    out: int


@cache
def operators(network: str) -> tuple[Operator, ...]:
    """Layers of a network.

    Raises
    ------
    InputError
        No such network.
    """
    if network not in network_names():
        raise unknown("network", network, network_names())
    if network == "bert_small":
        return _bert()
    rows, first = load_network(network).rows, prod(load_network(network).input_chw)
    found = []
    for row in rows:
        params, macs, out = row.params, row.macs, row.out
        if row.type == "fc" and row.index == len(rows) - 1 and network in CLASSES:
            out = CLASSES[network]
            params, macs = row.cin * out + out, row.cin * out
        read = sum(first if i == NETWORK_INPUT else rows[i].out for i in row.inputs)
        found.append(Operator(row.name, row.inputs, params, macs, read, out))
    return tuple(found)


def _bert() -> tuple[Operator, ...]:
    """BERT-small on 32 tokens of width 512: "input shape 32 x 512" (Sec. 5.1) skips the embeddings and the pooler.

    What is left has 56 layers, the number that Sec. 5.7 states.
    """
    rows = read_table(ROOT / "networks" / "bert_small.yaml")["rows"]
    kept = [row for row in rows if not row["name"].startswith(("emb.", "pooler"))]
    place = {row["i"]: i for i, row in enumerate(kept)}
    size = {row["i"]: row["out_s32"] for row in rows}
    return tuple(
        Operator(
            name=row["name"],
            inputs=tuple(place.get(i, NETWORK_INPUT) for i in row["from"]),
            params=row["params"],
            macs=row["macs_s32"],
            read=sum(size[i] for i in row["from"]),
            out=row["out_s32"],
        )
        for row in kept
    )


def crossing(network: str) -> list[int]:
    """a_l: bytes per sample that cross the cut behind each layer; 0 behind the last."""
    layers = operators(network)
    last_read = {NETWORK_INPUT: -1}
    for i, layer in enumerate(layers):
        for source in layer.inputs:
            last_read[source] = i
    first = 32 * 512 if network == "bert_small" else prod(load_network(network).input_chw)
    sizes = {NETWORK_INPUT: first} | {i: layer.out for i, layer in enumerate(layers)}
    return [
        WORD * sum(sizes[source] for source, last in last_read.items() if source <= cut < last)
        for cut in range(len(layers))
    ]
