"""What the compiled loops of the label search read and write: named tables of arrays."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mapgap.kernels import Flags, Integer, Integers, Integers2, Integers3

Array = NDArray[Any]
"""Whole numbers; in a kernel NumPy's and Python's are one type."""
Small = Annotated[NDArray[np.int32], "i4[::1]"]
Small2 = Annotated[NDArray[np.int32], "i4[:,::1]"]
Levels = Annotated[NDArray[np.int16], "i2[:,::1]"]


class Stages(NamedTuple):
    """What the cost of a stage depends on; fields as in ``lowered.Lowered``."""

    forward: Integers3
    backward: Integers3
    both: Integers3
    state: Integers
    activation: Integers
    room: Integers
    groups: Integers2
    batch: Integer


class Links(NamedTuple):
    """What lies between stages, what a stage pays besides, and what follows or precedes the round.

    ``every_step``: an AllReduce is part of E_b, not of T_a; other fields as in ``lowered.Lowered``.
    """

    comm: Integers2
    level: Levels
    near: Levels
    load: Integers
    reduce_num: Integers
    reduce_den: Integers
    reduce_add: Integers
    weights: Integers
    move: Integers3
    every_step: Integer


class Round(NamedTuple):
    """The objective (``lowered.Form``) and the numbers of rounds R and of K's that differ.

    ``micro_batches``: the largest K; it rises from ``kept`` by ``more`` with a stage behind.

    ``relaxed``: 1 where the search is for a bound that holds for all larger times, see :class:`CompiledSearch`.

    ``heads``: G where nodes are told apart by the group of their first stage, else 1; then a link is the best one to
    any device behind.
    """

    busy: Integer
    aligned: Integer
    ways: Integer
    excess: Integer
    drain: Integer
    turns: Integer
    rounds: Integer
    micro_batches: Integer
    kept: Integer
    more: Integer
    slots: Integer
    relaxed: Integer
    heads: Integer


class Steps(NamedTuple):
    """``groups.Moves``, the states that a pipeline may end in, and sums that no stages go below.

    ``asked`` (G,): groups of some move; ``least`` and ``least_f`` (G, L + 1): least E and E_f of the layers before a
    cut on devices of a group, as one stage or several; ``front`` and ``front_f`` (G, L + 1): the same, and larger if
    possible, where the group is that of all devices left.
    """

    first: Integers
    group: Small
    target: Small
    left: Integers
    complete: Flags
    asked: Flags
    least: Small2
    least_f: Small2
    front: Small2
    front_f: Small2


class Space(NamedTuple):
    """Where stages may lie below the upper bound.

    ``window`` and ``nearest`` (P + 1, G): last end of a stage from a position on, first begin of a stage up to it;
    ``open``: positions that may be cuts; ``reach`` (S,): how far the devices left come from the front.
    """

    cuts: Integers
    window: Small2
    nearest: Small2
    open: Flags
    reach: Integers


class Store(NamedTuple):
    """Labels and nodes; rows of ``pool`` as below. ``table`` finds a node by its key, ``costs`` holds those of stages
    that end at the position at work (E_f, E_b, that position), from ``place`` on by group."""

    pool: Small2
    head: Integers
    key: Integers
    following: Integers
    first: Integers
    table: Integers
    costs: Small2
    place: Integers
