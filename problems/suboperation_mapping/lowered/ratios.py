"""Ratios: how the batch is shared out."""

from __future__ import annotations

from collections.abc import Iterator

from mapgap.core import InputError
from mapgap.problems.suboperation_mapping.instance import Instance

Ratio = tuple[int, ...]
"""Samples of every share, one per accelerator; they add up to the batch."""


def partitions(batch: int, parts: int) -> Iterator[Ratio]:
    """Partitions of ``batch`` into at most ``parts`` parts, non-increasing, padded with zeros, most unequal first."""

    def extend(rest: int, largest: int, slots: int) -> Iterator[Ratio]:
        if slots == 0:
            if rest == 0:
                yield ()
            return
        for first in range(min(rest, largest), -1, -1):
            if first * slots < rest:
                return
            for tail in extend(rest - first, first, slots - 1):
                yield (first, *tail)

    yield from extend(batch, batch, parts)


def pe_order(instance: Instance) -> list[int]:
    """Accelerators by falling number of PEs, ties by index."""
    return sorted(range(len(instance.accelerators)), key=lambda a: (-instance.accelerators[a].pes, a))


def pe_ratio(instance: Instance) -> Ratio:
    """Alg. 1, step 3: ``B * PE_i / sum PE`` rounded by largest remainder, ties to the lowest index."""
    pes = [accelerator.pes for accelerator in instance.accelerators]
    total = sum(pes)
    shares = [instance.batch * p // total for p in pes]
    by_remainder = sorted(range(len(pes)), key=lambda a: (-(instance.batch * pes[a] % total), a))
    for a in by_remainder[: instance.batch - sum(shares)]:
        shares[a] += 1
    return tuple(shares)


def parse_ratio(instance: Instance, text: str) -> Ratio:
    """The ratio of ``"40,24"``.

    Raises
    ------
    InputError
        Not N non-negative integers that add up to the batch.
    """
    parts = [part.strip() for part in text.split(",")]
    shares = tuple(int(part) for part in parts) if all(part.isdigit() for part in parts) else ()
    if len(shares) != len(instance.accelerators) or sum(shares) != instance.batch:
        expected = f"{len(instance.accelerators)} integers that add up to {instance.batch}"
        raise InputError(f"ratio: expected {expected}, separated by commas, found {text!r}")
    return shares
