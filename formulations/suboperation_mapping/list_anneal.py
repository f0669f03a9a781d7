"""Simulated annealing over (location, patience): a list scheduler decodes both into a sequence.

Among the operations whose predecessors have a place, the decoder takes the one of smallest ``possible start -
patience``: an operation of large patience is waited for, so a weight update does not delay the backward pass.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from mapgap.problems.suboperation_mapping.lowered import Lowered, run_memory_excess, run_timetable

Array = NDArray[np.int64]

_I1, _I2, _I3 = "i8[::1]", "i8[:,::1]", "i8[:,:,::1]"
_TIMING = f"{_I2},{_I1},{_I1},{_I3},{_I1},{_I1},{_I3}"
_STORAGE = ",".join([_I1] * 6)


@njit(f"i8({_TIMING},{_I1},{_I1},{_I1},f8[::1],{_I1},{_I1},{_I1})", cache=True)
def _decode(  # type: ignore[no-untyped-def]
    compute,
    pred_ptr,
    pred,
    pred_ticks,
    holder_ptr,
    holder,
    gradient_ticks,
    succ_ptr,
    succ,
    location,
    patience,
    sequence,
    start,
    end,
):
    """Fill sequence, start and end of the list schedule; returns the makespan."""
    n, count = compute.shape
    duration, release = np.zeros(n, np.int64), np.zeros(n, np.int64)
    missing, free = np.empty(n, np.int64), np.zeros(count, np.int64)
    ready, size = np.empty(n, np.int64), 0
    for o in range(n):
        a = location[o]
        duration[o] = compute[o, a]
        for e in range(pred_ptr[o], pred_ptr[o + 1]):
            duration[o] += pred_ticks[e, location[pred[e]], a]
        for h in range(holder_ptr[o], holder_ptr[o + 1]):
            target = location[holder[h]]
            first = True
            for k in range(holder_ptr[o], h):
                if location[holder[k]] == target:
                    first = False
            if first:
                duration[o] += gradient_ticks[o, a, target]
        missing[o] = pred_ptr[o + 1] - pred_ptr[o]
        if missing[o] == 0:
            ready[size] = o
            size += 1
    makespan = np.int64(0)
    for position in range(n):
        chosen, least = 0, 1e300
        for k in range(size):
            o = ready[k]
            key = max(release[o], free[location[o]]) - patience[o]
            if key < least:
                chosen, least = k, key
        o = ready[chosen]
        size -= 1
        ready[chosen] = ready[size]
        a = location[o]
        start[o] = max(release[o], free[a])
        end[o] = start[o] + duration[o]
        free[a] = end[o]
        makespan = max(makespan, end[o])
        sequence[position] = o
        for e in range(succ_ptr[o], succ_ptr[o + 1]):
            q = succ[e]
            release[q] = max(release[q], end[o])
            missing[q] -= 1
            if missing[q] == 0:
                ready[size] = q
                size += 1
    return makespan


@njit(f"i8({_TIMING},{_STORAGE},{_I1},{_I1},{_I1},f8[::1],{_I1},{_I1},{_I1},i8,i8,f8,f8,f8,f8)", cache=True)
def _anneal(  # type: ignore[no-untyped-def]
    compute,
    pred_ptr,
    pred,
    pred_ticks,
    holder_ptr,
    holder,
    gradient_ticks,
    item_owner,
    item_release,
    item_units,
    layer,
    weight_units,
    capacity,
    succ_ptr,
    succ,
    location,
    patience,
    group,
    best_location,
    best_sequence,
    iterations,
    seed,
    hot,
    cold,
    penalty,
    relocate,
):
    """Anneal in place; returns the best makespan without DRAM excess, or -1."""
    np.random.seed(seed)
    n, count = compute.shape
    start, end, sequence = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    saved = location.copy()
    cost, best, wide = 1e300, np.int64(-1), 1000.0 * cold
    for step in range(iterations):
        temperature = hot * (cold / hot) ** (step / iterations)
        o = np.random.randint(n)
        old = patience[o]
        saved[:] = location
        kind = np.random.random()
        if step == 0:
            pass
        elif kind < relocate and count > 1:
            if kind < 0.6 * relocate:
                location[o] = (location[o] + 1 + np.random.randint(count - 1)) % count
            elif kind < 0.8 * relocate:  # exchange two operations of a layer and phase
                q = np.random.randint(n)
                for _ in range(n):
                    if group[q] == group[o] and location[q] != location[o]:
                        break
                    q = (q + 1) % n
                location[o], location[q] = location[q], location[o]
            else:
                target = np.random.randint(count)
                for q in range(n):
                    if group[q] == group[o]:
                        location[q] = target
        else:
            patience[o] = np.random.normal() * 0.1 * wide + old if kind < 0.8 else np.random.random() * wide
        makespan = _decode(
            compute,
            pred_ptr,
            pred,
            pred_ticks,
            holder_ptr,
            holder,
            gradient_ticks,
            succ_ptr,
            succ,
            location,
            patience,
            sequence,
            start,
            end,
        )
        limit = cost - temperature * np.log(1.0 - np.random.random())
        accepted = False
        if makespan <= limit:
            excess = run_memory_excess(
                item_owner, item_release, item_units, layer, weight_units, capacity, location, start, end
            )
            if makespan + penalty * excess <= limit:
                accepted = True
                cost = makespan + penalty * excess
                if excess == 0 and (best < 0 or makespan < best):
                    best = makespan
                    best_location[:] = location
                    best_sequence[:] = sequence
        if not accepted:
            location[:] = saved
            patience[o] = old
    return best


def list_anneal(
    lowered: Lowered, location: Array, *, iterations: int, seed: int, hot: float = 0.01, relocate: float = 0.5
) -> tuple[int, Array, Array] | None:
    """Best ``(makespan, location, sequence)`` found, or ``None`` if nothing fits the DRAM.

    Parameters
    ----------
    hot : float
        First temperature as a share of the start's makespan.
    relocate : float
        Share of moves that change locations; 0 keeps them.
    """
    n = lowered.n
    order = np.argsort(lowered.pred, kind="stable")
    succ = np.repeat(np.arange(n), np.diff(lowered.pred_ptr))[order].astype(np.int64)
    succ_ptr = np.searchsorted(lowered.pred[order], np.arange(n + 1)).astype(np.int64)
    scale = float(max(1, lowered.makespan(location, lowered.topological)))
    groups: dict[tuple[str, int], int] = {}
    group = np.array([groups.setdefault((p, q), len(groups)) for p, q, _ in lowered.operations], np.int64)
    patience = np.array([0.0 if p == "WU" else 0.01 * scale for p, _, _ in lowered.operations])
    best_location, best_sequence = location.copy(), lowered.topological.copy()
    best = _anneal(
        *lowered.timing,
        *lowered.storage,
        succ_ptr,
        succ,
        location.copy(),
        patience,
        group,
        best_location,
        best_sequence,
        iterations,
        seed,
        hot * scale,
        max(1e-5 * scale, 1e-3),
        10.0 * scale / max(1, int(lowered.capacity.max(initial=1))),
        relocate,
    )
    if best < 0:
        return None
    start, end = np.empty(n, np.int64), np.empty(n, np.int64)
    run_timetable(*lowered.timing, best_location, best_sequence, start, end)
    return int(end.max()), best_location, best_sequence


def starts(lowered: Lowered) -> list[Array]:
    """Locations to start from: everything on one accelerator, and share ``b`` on accelerator ``b``."""
    found = [np.full(lowered.n, a, np.int64) for a in range(lowered.accelerators)]
    found.append(np.array([max(share, 0) for _, _, share in lowered.operations], np.int64))
    return found
