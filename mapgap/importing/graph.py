"""The intermediate form: one graph of layers with times per kind of device and batch size, bytes and parameters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import networkx as nx

from mapgap.core import Finding, InputError
from mapgap.importing.source import Source


@dataclass(frozen=True)
class Origin:
    """Where a part of a graph comes from.

    Attributes
    ----------
    file, sha256, format : str
    read : str
        What was taken from the file.
    assumed : tuple of str
        What it does not say and was assumed.
    """

    file: str
    sha256: str
    format: str
    read: str
    assumed: tuple[str, ...] = ()

    def __str__(self) -> str:
        text = f"{self.file} ({self.format}, sha256 {self.sha256[:16]}): {self.read}."
        return text + (f" Assumed: {'; '.join(self.assumed)}." if self.assumed else "")


def origin(source: Source, format_name: str, read: str, assumed: Iterable[str] = ()) -> Origin:
    """The origin of what was read from a file."""
    return Origin(source.path.name, source.sha256, format_name, read, tuple(assumed))


@dataclass(frozen=True)
class Layer:
    """One node; sizes per sample.

    Attributes
    ----------
    operation : str
    output_bytes, weight_bytes : int
    macs : int, optional
    stored_bytes : int, optional
        Kept from the forward to the backward pass; ``None``: the output.
    attributes : mapping
        ``kernel``, ``channels_in``, ``channels_out``, ``groups``, ``pixels``, … where a file says them.
    """

    operation: str
    output_bytes: int = 0
    weight_bytes: int = 0
    macs: int | None = None
    stored_bytes: int | None = None
    attributes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Time:
    """Nanoseconds of one layer for one batch size.

    Attributes
    ----------
    forward : float
    backward : float, optional
        ``None`` where it was not measured.
    low, high : float, optional
        Spread of the forward times.
    """

    forward: float
    backward: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Kind:
    """A kind of device that a file speaks of.

    Attributes
    ----------
    memory_bytes : int, optional
    names : tuple of str
        Devices of this kind that the file lists.
    link_bytes_per_second : float, optional
    unsupported : frozenset of str
        Layers that they cannot execute.
    host : bool
        Tensors lie in their memory: transfers cost them nothing.
    """

    memory_bytes: int | None = None
    names: tuple[str, ...] = ()
    link_bytes_per_second: float | None = None
    unsupported: frozenset[str] = frozenset()
    host: bool = False


QUANTITIES = ("weights", "products", "inputs", "outputs", "kernels", "run")
"""Of what a file may hold in all."""


@dataclass(frozen=True)
class Total:
    """What a file holds of one quantity in all, counted apart from its layers.

    Attributes
    ----------
    quantity : str
        ``weights`` (bytes), ``products`` (multiply-accumulates), ``inputs`` or ``outputs`` (how many), ``kernels`` or
        ``run`` (nanoseconds of all operators, and of the whole run beside them).
    amount : float
    lost : mapping of str to float
        Parts of the file that no layer holds, by name.
    kind, batch : str and int
        Of a time.
    load : float, optional
        Of a run: processes that wanted to run, per core.
    """

    quantity: str
    amount: float
    lost: Mapping[str, float] = field(default_factory=dict)
    kind: str = ""
    batch: int = 0
    load: float | None = None


Times = dict[str, dict[int, Time]]
"""Layer to batch size to time."""


@dataclass
class LayerGraph:
    """A model as a graph of layers, and what is known of it.

    Attributes
    ----------
    name : str
    graph : networkx.DiGraph
        Nodes are names of layers with the attribute ``layer`` (:class:`Layer`), in the order of the file; an edge
        says who reads whose output.
    times : dict
        Kind of device to :data:`Times`.
    kinds : dict
        Kinds of devices that a file describes, by name.
    origins : list of Origin
    readers : set of str
        Layers that read the input of the network; without any, those without predecessors.
    input_bytes : int
        Per sample.
    together : list of set of str
        Layers that must be on one device.
    tensors, gradients : list of (tuple of str, int), optional
        What forward and backward pass move: who makes it, then who reads it, and its bytes per sample.
    totals : list of Total
        What the file holds in all, where it can be counted apart from the layers.
    training : bool, optional
        Whether the file is about training or inference; ``None`` where it does not say.
    over_roofline : dict
        Device to measured time over roofline of such models, where a reader knows of measurements.
    passes : list of (LayerGraph, int)
        Where the model is run in several ways one after the other: the same layers each time, and how often.
    """

    name: str
    graph: nx.DiGraph = field(default_factory=nx.DiGraph)
    times: dict[str, Times] = field(default_factory=dict)
    kinds: dict[str, Kind] = field(default_factory=dict)
    origins: list[Origin] = field(default_factory=list)
    readers: set[str] = field(default_factory=set)
    input_bytes: int = 0
    together: list[set[str]] = field(default_factory=list)
    tensors: list[tuple[tuple[str, ...], int]] | None = None
    gradients: list[tuple[tuple[str, ...], int]] | None = None
    totals: list[Total] = field(default_factory=list)
    training: bool | None = None
    over_roofline: dict[str, float] = field(default_factory=dict)
    passes: list[tuple[LayerGraph, int]] = field(default_factory=list)

    def add(self, name: str, layer: Layer, reads: Iterable[str] = ()) -> None:
        """A layer and whose outputs it reads."""
        self.graph.add_node(name, layer=layer)
        for source in reads:
            self.graph.add_edge(source, name)

    def layer(self, name: str) -> Layer:
        found: Layer = self.graph.nodes[name]["layer"]
        return found

    def order(self) -> list[str]:
        """Layers in topological order; among those that could come next, the first one of the file.

        Raises
        ------
        InputError
            There is no layer, or a cycle.
        """
        if not self.graph:
            raise InputError(f"{self.name}: expected at least one layer, found none")
        place = {name: k for k, name in enumerate(self.graph)}
        try:
            return list(nx.lexicographical_topological_sort(self.graph, key=place.__getitem__))
        except nx.NetworkXUnfeasible as error:
            cycle = " -> ".join(str(edge[0]) for edge in nx.find_cycle(self.graph))
            text = f"expected layers without a cycle, found {cycle}"
            raise InputError(Finding(text, place=self.name)) from error

    def inputs(self, name: str) -> list[str]:
        """Layers that a layer reads, in the order of the file."""
        return list(self.graph.predecessors(name))

    def reads_input(self, name: str) -> bool:
        """Does the layer read the input of the network?"""
        return name in self.readers if self.readers else self.graph.in_degree(name) == 0

    def batches(self, kind: str) -> list[int]:
        """Batch sizes at which every layer of a kind of device was measured."""
        tables = [set(times) for times in self.times.get(kind, {}).values()]
        return sorted(set.intersection(*tables)) if tables else []
