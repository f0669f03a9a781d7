"""What an import hands to a problem: layers in order, boards with times, links, and the settings a user gave.

Readers of foreign files know no problem, and problems know no file formats; this is all that they share. Plain data.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from mapgap.core.errors import Finding, InputError, suggest

Curve = tuple[tuple[int, float], ...]
"""Measured points ``(samples, nanoseconds)``, by rising number of samples; at least one."""
MOST_SAMPLES = 4096
"""Of a batch for which an instance has a table with an entry per sample."""
EXTERNAL = -1
"""What a layer lists among its inputs when it reads the input of the network."""


def at(curve: Curve, samples: int) -> float:
    """Nanoseconds for a number of samples.

    Between two points the line through them; below the first and beyond the last one the line through the two nearest
    points, if it rises, else proportional. With one point, proportional to the samples. Never below 0.
    """
    if len(curve) == 1:
        return curve[0][1] * samples / curve[0][0]
    k = next((k for k in range(1, len(curve) - 1) if samples <= curve[k][0]), len(curve) - 1)
    (a, first), (b, second) = curve[k - 1], curve[k]
    if not a <= samples <= b and second < first:
        near, time = curve[0] if samples < a else curve[-1]
        return time * samples / near
    return max(0.0, first + (second - first) * (samples - a) / (b - a))


@dataclass(frozen=True)
class WorkLayer:
    """One layer; sizes per sample.

    Attributes
    ----------
    name, operation : str
    inputs : tuple of int
        Earlier layers that it reads; :data:`EXTERNAL` is the input of the network.
    output_bytes, weight_bytes : int
    macs : int, optional
        Multiply-accumulates; ``None`` where no file says.
    stored_bytes : int
        What its forward pass leaves behind for the backward pass.
    attributes : mapping
        What else a file said: ``kernel``, ``channels_in``, ``channels_out``, ``groups``, ``pixels``, …
    """

    name: str
    operation: str
    inputs: tuple[int, ...]
    output_bytes: int
    weight_bytes: int
    macs: int | None = None
    stored_bytes: int = 0
    attributes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class WorkBoard:
    """One board and the times of all layers on it.

    Attributes
    ----------
    name, kind : str
        Boards of one kind have equal times.
    memory_bytes : int, optional
        ``None`` where nobody says.
    forward, backward : tuple of Curve, one per layer
        ``backward`` is empty where nobody measured it.
    facts : mapping
        Further fields of the cluster file or of the library's board.
    unsupported : frozenset of int
        Layers that it cannot execute.
    host : bool
        Tensors lie in its memory: transfers cost it nothing.
    quartiles : tuple of (tuple of Curve), optional
        Lower and upper quartiles of the forward times; empty where nobody measured them.
    """

    name: str
    kind: str
    memory_bytes: int | None
    forward: tuple[Curve, ...]
    backward: tuple[Curve, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    unsupported: frozenset[int] = frozenset()
    host: bool = False
    quartiles: tuple[tuple[Curve, ...], ...] = ()


Moved = tuple[tuple[int, ...], int]
"""A tensor: the layer that makes it and those that read it, and its bytes per sample."""


@dataclass(frozen=True)
class Workload:
    """A model on a cluster.

    Attributes
    ----------
    name : str
    source : str
        Files, hashes, what was read and what was assumed, in one text.
    input_bytes : int
        Per sample.
    layers : tuple of WorkLayer
        In topological order.
    boards : tuple of WorkBoard
    bandwidth : tuple of tuple of int
        Bytes per second from row to column; 0 on the diagonal.
    batches : tuple of int
        Batch sizes at which times were measured.
    latency_ns : tuple of tuple of int
        Of a message from row to column beside its bytes; empty where none takes any.
    others : tuple of Workload
        Further models on the same boards.
    together : tuple of tuple of int
        Layers that must be on one board.
    tensors, gradients : tuple of Moved, optional
        What forward and backward pass move, where a file says more than the outputs of the layers.
    training : bool, optional
        Whether the files are about training or inference; ``None`` where they do not say.
    """

    name: str
    source: str
    input_bytes: int
    layers: tuple[WorkLayer, ...]
    boards: tuple[WorkBoard, ...]
    bandwidth: tuple[tuple[int, ...], ...]
    batches: tuple[int, ...]
    others: tuple[Workload, ...] = ()
    together: tuple[tuple[int, ...], ...] = ()
    tensors: tuple[Moved, ...] | None = None
    gradients: tuple[Moved, ...] | None = None
    training: bool | None = None
    latency_ns: tuple[tuple[int, ...], ...] = ()

    def quartiles(self) -> tuple[Workload, ...]:
        """With all forward times at their lower, and with all at their upper quartiles; empty where none was measured.

        Backward times stay.
        """
        if not any(board.quartiles for board in self.boards):
            return ()
        return tuple(
            replace(
                self,
                boards=tuple(
                    replace(board, forward=board.quartiles[k]) if board.quartiles else board for board in self.boards
                ),
            )
            for k in range(2)
        )

    def crossing(self) -> list[int]:
        """Bytes per sample of all tensors that cross the cut behind each layer; 0 behind the last."""
        return [sum(self._size(source) for source in sources) for sources in self._open()]

    def cuts(self) -> list[int]:
        """Articulation points: layers behind which a single tensor crosses, their own output; the last one included.

        Tensors of no bytes do not count.
        """
        found = []
        for i, sources in enumerate(self._open()):
            if i == len(self.layers) - 1 or {s for s in sources if self._size(s)} <= {i}:
                found.append(i)
        return found

    def _size(self, source: int) -> int:
        return self.input_bytes if source == EXTERNAL else self.layers[source].output_bytes

    def _open(self) -> list[set[int]]:
        """Behind each layer: whose outputs later layers still read."""
        last = {source: i for i, layer in enumerate(self.layers) for source in layer.inputs}
        change: dict[int, set[int]] = {}  # who begins or ends to be open there
        for source, end in last.items():
            change.setdefault(max(source, 0), set()).add(source)
            change.setdefault(end, set()).symmetric_difference_update({source})
        found: list[set[int]] = [set()]
        for i in range(len(self.layers)):
            found.append(found[-1] ^ change.get(i, set()))
        return found[1:]

    def chain(self) -> Workload:
        """The same model with all layers between two articulation points as one."""
        found, start = [], 0
        for stop in self.cuts():
            found.append(range(start, stop + 1))
            start = stop + 1
        return self.merged(found)

    def merged(self, groups: Sequence[range]) -> Workload:
        """Adjoining ranges of layers as one layer each: sums of times, weights and what is stored.

        A group's output is all that crosses the cut behind it; its inputs are the groups whose outputs it reads.
        """
        place = {i: g for g, group in enumerate(groups) for i in group}
        crossing = self.crossing()
        layers = []
        for g, group in enumerate(groups):
            inner = [self.layers[i] for i in group]
            reads = {place.get(s, EXTERNAL) for layer in inner for s in layer.inputs} - {g}
            last = inner[-1]
            macs = [layer.macs for layer in inner if layer.macs is not None]
            heavy = max(inner, key=lambda layer: (layer.macs or 0, layer.weight_bytes))
            layers.append(
                WorkLayer(
                    name=last.name if len(inner) == 1 else f"{inner[0].name} … {last.name}",
                    operation=heavy.operation,
                    inputs=tuple(sorted(reads)),
                    output_bytes=last.output_bytes if group.stop == len(self.layers) else crossing[group.stop - 1],
                    weight_bytes=sum(layer.weight_bytes for layer in inner),
                    macs=sum(macs) if len(macs) == len(inner) else None,
                    stored_bytes=sum(layer.stored_bytes for layer in inner),
                    attributes=heavy.attributes,
                )
            )
        boards = tuple(
            replace(
                board,
                forward=tuple(_sum([board.forward[i] for i in group]) for group in groups),
                backward=tuple(_sum([board.backward[i] for i in group]) for group in groups) if board.backward else (),
                unsupported=frozenset(place[i] for i in board.unsupported),
            )
            for board in self.boards
        )
        joined = (tuple(sorted({place[i] for i in each})) for each in self.together)
        together = tuple(each for each in joined if len(each) > 1)
        return replace(self, layers=tuple(layers), boards=boards, together=together, tensors=None, gradients=None)


def _sum(curves: Sequence[Curve]) -> Curve:
    points = sorted({samples for curve in curves for samples, _ in curve})
    return tuple((samples, math.fsum(at(curve, samples) for curve in curves)) for samples in points)


class Settings:
    """Values that a user gave by name; what a problem needs and nobody gave is asked for, all of it at once.

    ``preset`` holds values that go before the defaults; nobody minds if one of them is not used.
    """

    def __init__(self, given: Mapping[str, Any] | None = None, preset: Mapping[str, Any] | None = None) -> None:
        self.given = dict(given or {})
        self.preset = dict(preset or {})
        self.used: set[str] = set()
        self.known: dict[str, str] = {}
        self.missing: list[str] = []
        self.wrong: list[str] = []

    def whole(self, name: str, meaning: str, default: int | None = None, *, least: int = 0, most: int = 2**53) -> int:
        """An integer; without a default it is asked for."""
        value = self._value(name, meaning, default)
        if value is None:
            return max(least, 1)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            span = f"from {least} on" if most == 2**53 else f"from {least} to {most}"
            self.wrong.append(f"--set {name}={value}: expected an integer {span}: {meaning}")
            return max(least, 1)
        return value

    def number(self, name: str, meaning: str, default: float | None = None) -> float:
        """A number that is not negative; without a default it is asked for."""
        value = self._value(name, meaning, default)
        if value is None:
            return 1.0
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1e18:
            self.wrong.append(f"--set {name}={value}: expected a number from 0 on: {meaning}")
            return 1.0
        return float(value)

    def flag(self, name: str, meaning: str, default: bool) -> bool:
        value = self._value(name, meaning, default)
        if not isinstance(value, bool):
            self.wrong.append(f"--set {name}={value}: expected true or false: {meaning}")
            return default
        return value

    def text(self, name: str, meaning: str, default: str | None = None, known: Sequence[str] = ()) -> str:
        """A word, one of ``known`` if these are given; without a default it is asked for."""
        value = self._value(name, meaning, default)
        if value is None:
            return ""
        if known and value not in known:
            hint = suggest(str(value), known)
            self.wrong.append(f"--set {name}={value}: expected one of {', '.join(known)}{hint}")
        return str(value)

    def given_to(self, names: Mapping[str, Any]) -> dict[str, Any]:
        """Those of the settings that carry one of these names."""
        self.used |= set(names) & set(self.given)
        self.known |= dict.fromkeys(names, "")
        values = {**self.preset, **self.given}
        return {name: values[name] for name in names if name in values}

    def get(self, name: str) -> Any:
        """What was given, or preset; ``None`` without either."""
        return self.given.get(name, self.preset.get(name))

    def _value(self, name: str, meaning: str, default: Any) -> Any:
        self.used.add(name)
        self.known[name] = meaning
        if name in self.given or name in self.preset:
            return self.get(name)
        if default is None:
            self.missing.append(f"missing: {name}: expected {meaning} (--set {name}=…)")
        return default

    def ask(self, text: str) -> None:
        """Note that something is missing which is no setting."""
        self.missing.append(f"missing: {text}")

    def check(self, *, complete: bool = False) -> None:
        """Say all that is missing or wrong; with ``complete`` also the settings that nobody knew.

        Raises
        ------
        InputError
        """
        found = [*self.missing, *self.wrong]
        if complete and not found:
            for name in sorted(set(self.given) - self.used):
                known = ", ".join(sorted(self.known)) or "none"
                found.append(f"--set {name}: expected one of {known}; found {name!r}{suggest(name, self.known)}")
        if found:
            raise InputError(Finding(text) for text in dict.fromkeys(found))


@dataclass(frozen=True)
class LibraryBoard:
    """A board of the library that a cluster file can name.

    Attributes
    ----------
    name : str
    memory_bytes : int
        What a process may use.
    gflops, memory_gbps, launch_us : float, optional
        Peak speed, memory bandwidth and the cost of starting an operator, where the library has a speed model.
    over_roofline : mapping
        Network to measured training time over what the roofline of these numbers says.
    facts : mapping
        What problems ask for, by the names of their settings.
    """

    name: str
    memory_bytes: int
    gflops: float | None = None
    memory_gbps: float | None = None
    launch_us: float | None = None
    over_roofline: Mapping[str, float] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)
