"""Compiled loops of the three procedures of MTrain-Mapping (Alg. 2); the interpretation is pinned in ``mtrain``.

All kernels have explicit signatures and are cached, so nothing compiles inside a search. ``timing`` and ``storage``
stand for the argument groups of :class:`mapgap.problems.suboperation_mapping.lowered.Lowered`.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from mapgap.problems.suboperation_mapping.lowered import run_timetable

_TIMING = "i8[:,::1],i8[::1],i8[::1],i8[:,:,::1],i8[::1],i8[::1],i8[:,:,::1]"
_STORAGE = "i8[::1],i8[::1],i8[::1],i8[::1],i8[::1],i8[::1]"
_PLAN = "i8[::1],i8[::1],i8[::1],i8[::1]"
UNMAPPED = -1


@njit(f"b1({_STORAGE},i8[::1],i8[::1],i8[::1])", cache=True)
def fits(item_owner, item_release, item_units, layer, weight_units, capacity, location, start, end):  # type: ignore[no-untyped-def]
    """Whether a partial schedule respects the DRAM budget.

    Operations with location -1 are not mapped yet: they hold nothing, and a tensor whose WU is not mapped stays
    stored for ever. A complete schedule that fits is therefore feasible.
    """
    count, items = len(capacity), len(item_owner)
    present = np.zeros((count, len(weight_units)), np.int64)
    base = np.zeros(count, np.int64)
    for o in range(len(layer)):
        a = location[o]
        if a >= 0 and present[a, layer[o]] == 0:
            present[a, layer[o]] = 1
            base[a] += weight_units[layer[o]]
    upper = base.copy()
    for i in range(items):
        if location[item_owner[i]] >= 0:
            upper[location[item_owner[i]]] += item_units[i]
    for a in range(count):
        if base[a] > capacity[a]:
            return False
        if upper[a] <= capacity[a]:  # fits even if nothing is ever released
            continue
        for i in range(items):
            if location[item_owner[i]] != a:
                continue
            moment, stored = start[item_owner[i]], base[a]
            for j in range(items):
                owner, release = item_owner[j], item_release[j]
                held = location[release] < 0 or moment < end[release]
                if location[owner] == a and start[owner] <= moment and held:
                    stored += item_units[j]
            if stored > capacity[a]:
                return False
    return True


@njit(f"b1({_STORAGE})", cache=True)
def roomy(item_owner, item_release, item_units, layer, weight_units, capacity):  # type: ignore[no-untyped-def]
    """Whether every accelerator could hold everything, so that no schedule needs a check."""
    return weight_units.sum() + item_units.sum() <= capacity.min()


@njit(f"i8({_TIMING},i8,i8,i8[::1])", cache=True)
def duration(  # type: ignore[no-untyped-def]
    compute, pred_ptr, pred, pred_ticks, holder_ptr, holder, gradient_ticks, o, a, location
):
    """Lat_Comp + Lat_Comm of ``o`` on ``a``; its predecessors and the holders of its dW are mapped."""
    total = compute[o, a]
    for e in range(pred_ptr[o], pred_ptr[o + 1]):
        total += pred_ticks[e, location[pred[e]], a]
    for target in range(compute.shape[1]):  # dW once to every other accelerator with an FP of the layer
        for h in range(holder_ptr[o], holder_ptr[o + 1]):
            if location[holder[h]] == target:
                total += gradient_ticks[o, a, target]
                break
    return total


@njit("i8(i8[::1],i8[::1],i8[::1],i8[::1])", cache=True)
def ready_set(pred_ptr, pred, location, ready):  # type: ignore[no-untyped-def]
    """Step 2: write the unmapped operations without unmapped predecessors to ``ready``, by number; their count."""
    count = 0
    for o in range(len(location)):
        if location[o] >= 0:
            continue
        blocked = False
        for e in range(pred_ptr[o], pred_ptr[o + 1]):
            blocked = blocked or location[pred[e]] < 0
        if not blocked:
            ready[count] = o
            count += 1
    return count


@njit(f"b1({_TIMING},{_STORAGE},b1,i8,i8[::1],i8,i8[::1],i8[::1],i8[::1],i8[::1],i8[::1])", cache=True)
def choose(  # type: ignore[no-untyped-def]
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
    free_of_checks,
    tie,
    block,
    makespan,
    available,
    best,
    location,
    start,
    end,
):
    """Steps 3-6: write the best assignment of a block to ``best``; False if none fits the DRAM.

    A depth-first walk enumerates the assignments in lexicographic order. A prefix whose key already reaches the best
    key is cut, which cannot change the result because both parts of the key only grow.
    """
    count, k = compute.shape[1], len(block)
    choice = np.full(k, -1, np.int64)
    span, second = np.zeros(k + 1, np.int64), np.zeros(k + 1, np.int64)  # key of each prefix
    free = np.zeros((k + 1, count), np.int64)
    span[0], free[0] = makespan, available
    found, depth = False, 0
    best_span, best_second = np.int64(0), np.int64(0)
    while depth >= 0:
        choice[depth] += 1
        a, o = choice[depth], block[depth]
        if a == count:
            location[o], choice[depth] = UNMAPPED, -1
            depth -= 1
            continue
        moment = free[depth, a]
        for e in range(pred_ptr[o], pred_ptr[o + 1]):
            moment = max(moment, end[pred[e]])
        ticks = duration(compute, pred_ptr, pred, pred_ticks, holder_ptr, holder, gradient_ticks, o, a, location)
        location[o], start[o], end[o] = a, moment, moment + ticks
        span[depth + 1] = max(span[depth], end[o])  # step 5
        second[depth + 1] = second[depth] + (ticks if tie == 0 else end[o] if tie == 1 else 0)
        if found and (
            span[depth + 1] > best_span or (span[depth + 1] == best_span and second[depth + 1] >= best_second)
        ):
            continue
        if depth + 1 < k:
            free[depth + 1] = free[depth]
            free[depth + 1, a] = end[o]
            depth += 1
        elif free_of_checks or fits(  # step 4
            item_owner, item_release, item_units, layer, weight_units, capacity, location, start, end
        ):
            found, best_span, best_second = True, span[k], second[k]  # step 6
            best[:k] = choice
    return found


@njit(f"i8({_TIMING},{_STORAGE},i8,i8,{_PLAN})", cache=True)
def greedy(  # type: ignore[no-untyped-def]
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
    cap,
    tie,
    location,
    sequence,
    start,
    end,
):
    """Procedure (1), steps 1-9: fill location, sequence, start, end; return the number of operations mapped.

    Fewer than n operations are mapped when no candidate of a block fits the DRAM.
    """
    n, count = compute.shape
    free_of_checks = roomy(item_owner, item_release, item_units, layer, weight_units, capacity)
    location[:] = UNMAPPED
    size = 1  # operations whose assignments are enumerated together
    while size < n and float(count) ** (size + 1) <= cap:
        size += 1
    ready, best, free = np.empty(n, np.int64), np.empty(n, np.int64), np.zeros(count, np.int64)
    mapped = 0
    while mapped < n:
        waiting = ready_set(pred_ptr, pred, location, ready)
        for first in range(0, waiting, size):
            block = ready[first : min(first + size, waiting)]
            if not choose(
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
                free_of_checks,
                tie,
                block,
                end[sequence[:mapped]].max() if mapped else 0,
                free,
                best,
                location,
                start,
                end,
            ):
                return mapped
            for i in range(len(block)):  # steps 8-9
                o, a = block[i], best[i]
                moment = free[a]
                for e in range(pred_ptr[o], pred_ptr[o + 1]):
                    moment = max(moment, end[pred[e]])
                location[o], start[o] = a, moment
                end[o] = moment + duration(
                    compute, pred_ptr, pred, pred_ticks, holder_ptr, holder, gradient_ticks, o, a, location
                )
                free[a] = end[o]
                sequence[mapped] = o
                mapped += 1
    return mapped


@njit(f"b1({_TIMING},{_STORAGE},b1,i8,i8,i8,{_PLAN},i8[::1],i8[::1])", cache=True)
def attempt(  # type: ignore[no-untyped-def]
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
    free_of_checks,
    o,
    target,
    makespan,
    location,
    sequence,
    start,
    end,
    trial_start,
    trial_end,
):
    """Move ``o`` to ``target`` if that is strictly faster than ``makespan`` and fits the DRAM."""
    source = location[o]
    location[o] = target
    run_timetable(
        compute,
        pred_ptr,
        pred,
        pred_ticks,
        holder_ptr,
        holder,
        gradient_ticks,
        location,
        sequence,
        trial_start,
        trial_end,
    )
    if trial_end.max() < makespan and (
        free_of_checks
        or fits(item_owner, item_release, item_units, layer, weight_units, capacity, location, trial_start, trial_end)
    ):
        start[:] = trial_start
        end[:] = trial_end
        return True
    location[o] = source
    return False


@njit(f"i8({_TIMING},{_STORAGE},i8[::1],{_PLAN})", cache=True)
def balance(  # type: ignore[no-untyped-def]
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
    balanced,
    location,
    sequence,
    start,
    end,
):
    """Procedure (2), steps 12-20: move operations to their accelerator in ``balanced``; return the accepted moves."""
    free_of_checks = roomy(item_owner, item_release, item_units, layer, weight_units, capacity)
    trial_start, trial_end = np.empty_like(start), np.empty_like(end)
    accepted = 0
    while True:
        before = accepted
        for position in range(len(sequence)):  # step 13
            o = sequence[position]
            if location[o] != balanced[o] and attempt(  # steps 15-18
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
                free_of_checks,
                o,
                balanced[o],
                end.max(),
                location,
                sequence,
                start,
                end,
                trial_start,
                trial_end,
            ):
                accepted += 1
        if accepted == before:  # step 20
            return accepted


@njit(f"i8({_TIMING},{_STORAGE},{_PLAN})", cache=True)
def locality(  # type: ignore[no-untyped-def]
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
    location,
    sequence,
    start,
    end,
):
    """Procedure (3), steps 21-28: move operations to accelerators of neighbours; return the accepted moves."""
    n, count = compute.shape
    free_of_checks = roomy(item_owner, item_release, item_units, layer, weight_units, capacity)
    trial_start, trial_end = np.empty_like(start), np.empty_like(end)
    near = np.zeros((n, n), np.bool_)  # every data transfer of Sec. V-B, in both directions
    for o in range(n):
        for e in range(pred_ptr[o], pred_ptr[o + 1]):
            near[o, pred[e]] = near[pred[e], o] = True
        for h in range(holder_ptr[o], holder_ptr[o + 1]):
            near[o, holder[h]] = near[holder[h], o] = True
    beside = np.zeros(count, np.bool_)
    accepted = 0
    while True:
        before = accepted
        for position in range(n):  # step 22
            o = sequence[position]
            beside[:] = False
            for p in range(n):
                if near[o, p]:
                    beside[location[p]] = True
            for target in range(count):  # step 23
                if (
                    beside[target]
                    and target != location[o]
                    and attempt(  # steps 24-26
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
                        free_of_checks,
                        o,
                        target,
                        end.max(),
                        location,
                        sequence,
                        start,
                        end,
                        trial_start,
                        trial_end,
                    )
                ):
                    accepted += 1
        if accepted == before:  # step 28
            return accepted
