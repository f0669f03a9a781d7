"""Masks that grow with one number, and the largest of them within the limits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from mapgap.problems.neuron_masking.instance import SHARE

Counts = TypeVar("Counts", bound=Sequence[int])


def uniform_mask(least: Sequence[int], neurons: Sequence[int], share: int) -> tuple[int, ...]:
    """``n_i = max(least_i, ceil(share N_i / 10000))``: the smallest mask whose every layer has the share.

    Costs grow with every ``n_i``; so if any mask within the limits has the smallest share ``share``, so is this one.
    Hence the largest ``share`` that fits (:func:`largest_fitting`) is the optimum of ``smallest_share``.
    """
    return tuple(max(low, -(-share * n // SHARE)) for low, n in zip(least, neurons, strict=True))


def largest_fitting(mask_of: Callable[[int], Counts], fits: Callable[[Counts], bool], top: int) -> Counts | None:
    """``mask_of(step)`` for the largest step in 0..top that fits, ``None`` if none does.

    Masks must not shrink as the step grows.
    """
    if not fits(mask_of(0)):
        return None
    low, high = 0, top
    while low < high:  # low fits, every larger step than high does not
        middle = (low + high + 1) // 2
        if fits(mask_of(middle)):
            low = middle
        else:
            high = middle - 1
    return mask_of(low)
