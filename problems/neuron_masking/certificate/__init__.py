"""The checker of neuron masking for certificates; rules as in the package's docstring. Standard library only.

Given the cycle time the devices are independent, so bounds of single devices add up (and the smallest share of all is
reached if each device reaches it). A single device is a :mod:`~.chain` of counts ``n_1 .. n_I``. Its proof is a bound
and steps that visit boxes of counts; multipliers of its limits make a :mod:`~.lagrangian` that closes the boxes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .chain import Chain

SENSE = "max"
RATE = {"ticks": None, "per": None}
SHAPE = {
    **dict.fromkeys(
        ("name", "source", "tags", "top_percent", "memory_unit_bytes", "work_unit_macs", "cycle_ms", "inputs")
    ),
    "schema": (1,),
    "form": ("expanded",),
    "problem": ("neuron_masking",),
    "objective": ("neurons", "contribution", "smallest_share", "rate"),
    "memory_mode": ("hard", "spill"),
    "layers": [dict.fromkeys(("name", "neurons", "least", "work", "weights", "features"))],
    "devices": [
        {
            **dict.fromkeys(
                ("name", "tick_ps", "overhead", "time_limit", "work_limit", "memory_limit", "contributions")
            ),
            "transfer": RATE,
            "spill": RATE,
        }
    ],
}
MS_PER_HOUR = 3_600_000


def check(instance: dict[str, Any], bound: int, proof: Sequence[Any]) -> str | None:
    """Why the proof fails; ``None`` if no plan has an objective above ``bound``.

    ``proof`` has one entry per cycle time: per device ``[bound, steps]``, or the index of a cycle time with a larger
    index whose limits are no tighter, so that its bounds serve. Where no mask exists, or for the objective
    ``smallest_share``, it is not looked at.
    """
    known: dict[int, int] = {}
    for cycle in reversed(range(len(instance["cycle_ms"]))):
        chains = [Chain(instance, d, cycle) for d in range(len(instance["devices"]))]
        if not all(chain.fits(chain.lower) for chain in chains):
            continue
        if instance["objective"] == "smallest_share":
            if all(chain.reaches(bound + 1) for chain in chains):
                return f"cycle {cycle}: every device has a mask of share {bound + 1}"
            continue
        if type(given := proof[cycle]) is int:
            if given not in known or not no_tighter(instance, given, cycle):
                return f"cycle {cycle}: cycle {given} bounds nothing"
            known[cycle] = known[given]
        else:
            for chain, (limit, steps) in zip(chains, given, strict=True):
                if (reason := chain.bounded(limit, steps)) is not None:
                    return f"cycle {cycle}: {reason}"
            known[cycle] = sum(limit for limit, _ in given)
        value = known[cycle]
        if instance["objective"] == "rate":
            value = MS_PER_HOUR * value // instance["cycle_ms"][cycle]
        if value > bound:
            return f"cycle {cycle}: only {value} is proven"
    return None


def no_tighter(instance: dict[str, Any], one: int, other: int) -> bool:
    """Does cycle ``one`` allow every mask of cycle ``other``?"""
    names = ("time_limit", "work_limit")
    return all(device[name][one] >= device[name][other] for device in instance["devices"] for name in names)
