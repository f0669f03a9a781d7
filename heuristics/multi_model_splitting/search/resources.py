"""What is placed, and what one more segment would cost: the arithmetic of Secs. 5.2 and 5.4.1 for the heuristics."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mapgap.heuristics.multi_model_splitting.search.candidate_search import FORBIDDEN, Path
from mapgap.problems.multi_model_splitting import UNITS, Instance
from mapgap.problems.multi_model_splitting.lowered.tables import Array, Mask, Tables, capacities

SENSOR, MCU, ACCELERATOR, RADIO = range(len(UNITS))


def remaining(tables: Tables) -> Array:
    """``(R, L + 1)``: demand of the layers from a boundary on."""
    return np.asarray(tables.need[:, -1:] - tables.need, np.int64)


def misfits(tables: Tables, left: Array) -> Mask:
    """``(N, L, L + 1)``: no segment, or one that exceeds what is ``left`` (3, N) on the device."""
    last = tables.layers
    need = tables.need[:, None, :] - tables.need[:, :last, None]
    exceeds = (need[:, None] > left[:, :, None, None]).any(axis=0)
    backwards = np.arange(last + 1)[None, :] <= np.arange(last)[:, None]
    return np.asarray(exceeds | backwards[None])


@dataclass(frozen=True)
class Ends:
    """Source and target of a pipeline, and whether its first segment runs on the source (see :func:`costs`)."""

    source: int
    target: int
    begins_at_source: bool


Choice = tuple[Path, Ends | None]
"""An execution plan of one pipeline; without ends it is the split of its model alone."""


@dataclass
class Ledger:
    """What the selected plans occupy.

    Attributes
    ----------
    load : (4, N)
        Ticks per unit and device.
    left : (3, N)
        Weights, bias and layers that are still free.
    latency : int
        Sum of the tasks of all selected plans.
    """

    load: Array
    left: Array
    latency: int = 0

    @classmethod
    def empty(cls, instance: Instance) -> Ledger:
        """Nothing placed."""
        return cls(np.zeros((len(UNITS), len(instance.devices)), np.int64), capacities(instance))

    @property
    def cycle(self) -> int:
        return int(self.load.max())

    def placed(self, tables: Tables, path: Path, ends: Ends | None) -> Ledger:
        """The ledger with one more plan; without ``ends`` only the model's own tasks count."""
        load, left, latency = self.load.copy(), self.left.copy(), self.latency
        here = ends.source if ends else path[0][0]

        def work(unit: int, device: int, ticks: int) -> None:
            nonlocal latency
            load[unit, device] += ticks
            latency += ticks

        if ends:
            work(SENSOR, ends.source, int(tables.sensing[ends.source]))
        for device, first, last in path:
            if here != device:
                work(RADIO, here, int(tables.transmit[first, here]))
                work(RADIO, device, int(tables.receive[first, device]))
            work(MCU, device, int(tables.load[first, device] + tables.unload[last, device]))
            work(ACCELERATOR, device, int(tables.running[last, device] - tables.running[first, device]))
            left[:, device] -= tables.need[:, last] - tables.need[:, first]
            here = device
        if ends and here != ends.target:
            work(RADIO, here, int(tables.transmit[-1, here]))
            work(RADIO, ends.target, int(tables.receive[-1, ends.target]))
        return Ledger(load, left, latency)


def costs(tables: Tables, ledger: Ledger, ends: Ends | None) -> tuple[Array, Array]:
    """``(N, L, L + 1)``: largest load that a segment leads to, and its latency; forbidden where it does not fit.

    Since a pipeline visits a device at most once, the load of a device depends on its own segment and on whether it
    is source or target; the loads of a source and a target without the first or the last segment are charged to the
    first and the last segment. If source and target are one device, the load at the end depends on whether the first
    segment was on it, which is why ``ends`` says so and the other first segments are forbidden.
    """
    last, before = tables.layers, tables.running.T
    load, unload = tables.load.T[:, :last, None], tables.unload.T[:, None, :]
    running = before[:, None, :] - before[:, :last, None]
    into, out = tables.receive.T[:, :last].copy(), tables.transmit.T.copy()
    both = load + unload + running
    if ends is None:
        into[:, 0], out[:, last] = 0, 0
    else:
        into[ends.source, 0], out[ends.target, last] = 0, 0
    latency = both + into[:, :, None] + out[:, None, :]
    radio = ledger.load[RADIO][:, None, None] + into[:, :, None] + out[:, None, :]
    others = np.zeros_like(radio)
    if ends is not None:
        s, t = ends.source, ends.target
        sent, received = int(tables.transmit[0, s]), int(tables.receive[last, t])
        away_s, away_t = np.arange(len(radio)) != s, np.arange(len(radio)) != t
        radio[s, 1:] += sent
        radio[t, :, :last] += received
        others[away_s, 0] = ledger.load[RADIO, s] + sent
        at_end = ledger.load[RADIO, t] + received + (sent if s == t and not ends.begins_at_source else 0)
        others[away_t, :, last] = np.maximum(others[away_t, :, last], at_end)
        latency[away_s, 0] += sent
        latency[away_t, :, last] += received
    mcu = ledger.load[MCU][:, None, None] + load + unload
    accelerator = ledger.load[ACCELERATOR][:, None, None] + running
    largest = np.maximum.reduce([mcu, accelerator, radio, others])
    forbidden = misfits(tables, ledger.left)
    if ends is not None:
        forbidden[away_s if ends.begins_at_source else ~away_s, 0] = True
    return np.where(forbidden, FORBIDDEN, largest), np.where(forbidden, FORBIDDEN, latency)
