"""Eqs. (3), (7), (8) for many stages of one group at once: the costs of columns."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mapgap.problems.hybrid_pipeline.lowered.arrays import Lowered
from mapgap.problems.hybrid_pipeline.lowered.tables import Array

NEVER = 2**50
"""Ticks of what cannot be: above every latency."""

CHUNK = 4096
"""Stages whose tables are held at once."""


class _Members(NamedTuple):
    """A class of a group: number of its devices, times by stage and share, largest share by stage."""

    number: int
    times: Array
    largest: Array


def largest_shares(low: Lowered, start: Array, stop: Array, group: int, kept: int) -> dict[int, Array]:
    """Eq. (3): largest share by class of the group, (S,) each; -1 where not even the weights fit."""
    state = low.state[stop] - low.state[start]
    stored = kept * (low.activation[stop] - low.activation[start])
    found = {}
    for c in np.flatnonzero(low.groups[group]).tolist():
        room = low.room[c] - state
        fits = np.where(stored > 0, room // stored.clip(1), low.batch).clip(None, low.batch)
        found[c] = np.where(room < 0, -1, fits)
    return found


def holds(low: Lowered, largest: dict[int, Array], group: int) -> NDArray[np.bool_]:
    """Where all members hold the weights and together the B samples, (S,)."""
    total: Array = np.sum([low.groups[group, c] * share for c, share in largest.items()], axis=0)
    weights = np.min(list(largest.values()), axis=0) >= 0
    return np.asarray(weights & (total >= low.batch))


def _least_limit(members: list[_Members], batch: int) -> Array:
    """First value of the tables within which the shares add up to B, (S,); the largest shares do."""
    values = np.sort(np.concatenate([m.times for m in members], axis=1), axis=1)
    every = np.arange(len(values))
    low, high = np.zeros(len(values), np.int64), np.full(len(values), values.shape[1] - 1)
    while (low < high).any():
        middle = (low + high) // 2
        limit = values[every, middle][:, None]
        shares = sum(m.number * np.minimum(m.largest, (m.times <= limit).sum(axis=1) - 1) for m in members)
        enough = shares >= batch
        low, high = np.where(enough, low, middle + 1), np.where(enough, middle, high)
    return np.asarray(values[every, low])


def least_time(low: Lowered, table: Array, start: Array, stop: Array, group: int) -> Array:
    """min max_d of sums of a time table over the shares of B samples that fit a last stage (K = 1).

    Parameters
    ----------
    table : (C, L + 1, B + 1)
        ``low.both`` gives T of Eq. (7), ``low.forward`` the least possible largest forward time; ticks.
    start, stop : (S,)
        Layers of the stages.

    Returns
    -------
    (S,)
        Ticks, ``NEVER`` where a micro-batch does not fit.
    """
    found = np.full(len(start), NEVER)
    for k in range(0, len(start), CHUNK):
        first, last = start[k : k + CHUNK], stop[k : k + CHUNK]
        shares = largest_shares(low, first, last, group, 1)
        fits = np.flatnonzero(holds(low, shares, group))
        members = [
            _Members(int(low.groups[group, c]), (table[c, last] - table[c, first])[fits], share[fits])
            for c, share in shares.items()
        ]
        found[k + fits] = _least_limit(members, low.batch)
    return found


def stage_times(low: Lowered, start: Array, stop: Array, group: int, kept: int) -> Array:
    """(E_f, E_b) of Eqs. (7), (8) with the ties of rule 6, (S, 2) ticks; ``NEVER`` where a micro-batch does not fit."""
    found = np.full((len(start), 2), NEVER)
    for k in range(0, len(start), CHUNK):
        first, last = start[k : k + CHUNK], stop[k : k + CHUNK]
        shares = largest_shares(low, first, last, group, kept)
        fits = np.flatnonzero(holds(low, shares, group))
        if len(fits):
            shares = {c: share[fits] for c, share in shares.items()}
            found[k + fits] = _stage_times(low, first[fits], last[fits], group, shares)
    return found


def _stage_times(low: Lowered, start: Array, stop: Array, group: int, largest: dict[int, Array]) -> Array:
    """All stages hold a micro-batch. Limits on E_f fall from value to value while the shares add up to B."""
    number = {c: int(low.groups[group, c]) for c in largest}
    both, forward, backward = (
        {c: table[c, stop] - table[c, start] for c in largest} for table in (low.both, low.forward, low.backward)
    )
    total = _least_limit([_Members(number[c], both[c], largest[c]) for c in largest], low.batch)[:, None]
    cap = {c: np.minimum(largest[c], (both[c] <= total).sum(axis=1) - 1) for c in largest}
    best = np.full((len(start), 2), NEVER)
    left = np.arange(len(start))  # stages with limits to try
    shares = dict(cap)  # of the stages left
    while len(left):
        every = np.arange(len(left))
        f = np.max([forward[c][left][every, shares[c]] for c in shares], axis=0)
        b = _least_limit([_Members(number[c], backward[c][left], shares[c]) for c in shares], low.batch)
        better = f + b <= best[left].sum(axis=1)  # ties: the smaller E_f, which comes later
        best[left[better]] = np.stack([f, b], axis=1)[better]
        shares = {c: np.minimum(cap[c][left], (forward[c][left] < f[:, None]).sum(axis=1) - 1) for c in shares}
        more = sum(number[c] * share for c, share in shares.items()) >= low.batch
        more &= f > 0
        left, shares = left[more], {c: share[more] for c, share in shares.items()}
    return best
