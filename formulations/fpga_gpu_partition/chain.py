"""Modules as a chain of stages: which configurations may follow each other, and bounds on everything that follows.

The *state* between two modules is the set of tensors that lie on the FPGA among those that later modules read, one bit
per layer. Most cuts have one such layer, hence two states.

A *price* ``w = (b, a, λ, μ)`` on (latency, energy, multipliers, M20K), all non-negative integers, bounds every plan
that fits (Lagrangian relaxation of the fabric)::

    b L + a E >= min over chains of (sum of w * values) - λ * multipliers - μ * M20K of the fabric
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mapgap.core import MapgapError
from mapgap.formulations.fpga_gpu_partition.configurations import Tables
from mapgap.formulations.fpga_gpu_partition.dominance import Array
from mapgap.solvers.highs import MatrixModel

MOST_STATES = 1024
NEVER = 2**61
"""Cost of what cannot be continued."""
PRICE_RANGE = 2**50
"""Priced totals stay below this, so that int64 holds every sum."""


class TooManyStates(MapgapError):
    """A cut between modules is crossed by too many tensors for states to be listed."""


@dataclass(frozen=True)
class Chain:
    """Stages of an instance.

    Attributes
    ----------
    tables : Tables
    values : per module (n, 4) int64
        Latency, energy, multipliers, M20K.
    following : per module (states, n) int64
        State after each configuration from each state before; -1 where the homes do not fit.
    states : per module
        Number of states after it.
    room : (2,) int64
        Multipliers and M20K of the fabric.
    """

    tables: Tables
    values: tuple[Array, ...]
    following: tuple[Array, ...]
    states: tuple[int, ...]
    room: Array

    @cached_property
    def most(self) -> Array:
        """(4,): no plan exceeds these totals."""
        total: Array = np.sum([values.max(axis=0) for values in self.values], axis=0)
        return total

    @cached_property
    def least(self) -> Array:
        """(4,): no plan is below these totals."""
        total: Array = np.sum([values.min(axis=0) for values in self.values], axis=0)
        return total

    @cached_property
    def joined(self) -> bool:
        """Some choice of configurations agrees on the side of every tensor."""
        return int(self.suffixes(np.zeros((1, 4), np.int64))[0][0, 0]) == 0

    def suffixes(self, prices: NDArray[Any]) -> list[NDArray[Any]]:
        """Per module ``(prices, states before it)``: least priced total from there to the end; one more for the end."""
        after = np.zeros((len(prices), 1), prices.dtype)
        found = [after]
        for values, following in zip(reversed(self.values), reversed(self.following), strict=True):
            cost = prices @ values.T.astype(prices.dtype)
            before = np.empty((len(prices), len(following)), prices.dtype)
            for state, row in enumerate(following):
                fits = row >= 0
                total = cost[:, fits] + after[:, row[fits]]
                before[:, state] = total.min(axis=1) if fits.any() else NEVER
            after = np.minimum(before, NEVER)
            found.append(after)
        return found[::-1]

    def cheapest(self, price: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """Least priced total of a chain, fabric aside, and the totals (4,) of such a chain."""
        suffix = self.suffixes(price[None, :])
        state, totals = 0, np.zeros(4)
        for m, (values, following) in enumerate(zip(self.values, self.following, strict=True)):
            row = following[state]
            cost = np.where(row >= 0, values @ price + suffix[m + 1][0][row], np.inf)
            taken = int(cost.argmin())
            totals += values[taken]
            state = int(row[taken])
        return float(suffix[0][0, 0]), totals


def chain(tables: Tables) -> Chain:
    """The stages of an instance.

    Raises
    ------
    TooManyStates
    """
    last_reader = {t: m for m, table in enumerate(tables.modules) for t in table.inputs}
    alive: list[int] = []
    following, states = [], []
    for m, table in enumerate(tables.modules):
        after = [t for t in (*alive, *table.outputs) if last_reader[t] > m]
        if 2 ** max(len(alive), len(after)) > MOST_STATES:
            raise TooManyStates(f"module {m}: {len(after)} tensors cross the cut behind it")
        rows = np.full((2 ** len(alive), len(table)), -1, np.int64)
        for state in range(2 ** len(alive)):
            side = {t: state >> bit & 1 for bit, t in enumerate(alive)}
            fits = np.ones(len(table), bool)
            for k, t in enumerate(table.inputs):
                fits &= table.input_on_fpga[:, k] == side[t]
            new = np.zeros(len(table), np.int64)
            for bit, t in enumerate(after):
                on_fpga = side[t] if t in side else table.output_on_fpga[:, table.outputs.index(t)]
                new += on_fpga << np.int64(bit)
            rows[state] = np.where(fits, new, -1)
        following.append(rows)
        states.append(2 ** len(after))
        alive = after
    fabric = tables.instance.fabric
    values = tuple(table.values for table in tables.modules)
    room = np.array([fabric.multipliers, fabric.m20k], np.int64)
    return Chain(tables, values, tuple(following), tuple(states), room)


def priced(stages: Chain, energy_weight: float, latency_weight: float) -> Array:
    """(4,) int64: the best price for ``energy_weight * E + latency_weight * L``, found with cutting planes.

    The bound is concave and piecewise linear in (λ, μ); every evaluation gives a plane above it, and the next (λ, μ) is
    the highest point below all planes (Kelley 1960). Rounding to integers keeps a valid price.
    """
    direction = np.array([latency_weight, energy_weight])
    unit = np.maximum(stages.room, 1).astype(np.float64)
    base = float(direction @ stages.least[:2])
    reach = max(float(direction @ (stages.most - stages.least)[:2]), 1.0)
    planes: list[tuple[float, NDArray[np.float64]]] = []
    best, best_value = np.zeros(2), -np.inf
    dual = np.zeros(2)
    for _ in range(40):
        total, totals = stages.cheapest(np.array([*direction, *(dual / unit)]))
        value = total - float(dual @ (stages.room / unit)) - base
        if value > best_value:
            best, best_value = dual, value
        slope = totals[2:] / unit - stages.room / unit
        planes.append((value - float(slope @ dual), slope))
        model = MatrixModel()
        height = model.column(upper=2 * reach, cost=-1.0)
        columns = [model.column(upper=100 * reach) for _ in range(2)]
        for constant, gradient in planes:
            terms = [(height, 1.0)] + [(c, -float(g)) for c, g in zip(columns, gradient, strict=True)]
            model.row(terms, upper=constant)
        answer = model.solve(5.0, relaxed=True, simplex=True)
        if answer.values is None or answer.values[height] <= best_value + 1e-6 * reach:
            break
        dual = np.asarray(answer.values[columns])
    price = np.array([*direction, *(best / unit)])
    scale = PRICE_RANGE / max(float(price @ np.maximum(stages.most, [0, 0, *stages.room])), 1.0)
    return np.floor(price * scale).astype(np.int64)
