"""How many moves a step of a chain has, by how many of its shares are alike, told apart or counted.

Six alike shares on three and three equal accelerators have 47,814 places of FP, BP and a fused operation where they are
counted, not 6^13.

References
----------
Burnside's lemma: Cameron, "Permutation Groups", 1999, section 1.1 (orbits are as many as points that are fixed by an
exchange, on average).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from itertools import product
from math import comb, factorial, prod
from typing import Any, NamedTuple

from mapgap.formulations.suboperation_mapping.params import Chains as Params
from mapgap.problems.suboperation_mapping.certificate.alike import firsts


class Devices(NamedTuple):
    """How many there are, and where a chain counts shares, how many of each class of equal ones."""

    number: int
    members: tuple[int, ...] = ()


def devices_of(instance: dict[str, Any], params: Params) -> Devices:
    """As chains have them."""
    places = range(len(instance["accelerators"]))
    if len(places) <= params.told_apart:
        return Devices(len(places))
    classes = Counter(firsts(instance))
    return Devices(len(places), tuple(sorted(classes.values())))


def headed_devices(instance: dict[str, Any]) -> Devices:
    """Where shares are counted, and the first one of equal accelerators is told apart from the others."""
    of_first = firsts(instance)
    classes = Counter((first, first == a) for a, first in enumerate(of_first))
    return Devices(len(of_first), tuple(sorted(classes.values())))


@cache
def moves(runs: Sequence[int], devices: Devices) -> int:
    """Of a step between fused layers at most: places of FP, of BP, and of a fused BP; of runs of alike shares.

    Those that are counted are the orbits of these places under exchanges of equal accelerators, by Burnside's lemma.
    """
    number = devices.number
    if not devices.members:
        return prod(comb(run + number - 1, run) for run in runs) * int(number ** (1 + sum(runs)))
    found = Fraction(0)
    for kinds in product(*map(cycles, devices.members)):
        every = [length for lengths in kinds for length in lengths]
        found += Fraction(every.count(1) * prod(ways(run, every) for run in runs) ** 2, prod(map(centralizer, kinds)))
    return int(found)


def cycles(members: int, most: int | None = None) -> list[tuple[int, ...]]:
    """Lengths of the cycles of permutations, falling."""
    if not members:
        return [()]
    lengths = range(1, min(members, most or members) + 1)
    return [(length, *rest) for length in lengths for rest in cycles(members - length, length)]


def centralizer(lengths: tuple[int, ...]) -> int:
    """Of so many permutations one has cycles of these lengths."""
    return prod(length**count * factorial(count) for length, count in Counter(lengths).items())


def ways(shares: int, lengths: Sequence[int]) -> int:
    """To place alike shares so that all accelerators of a cycle have equally many."""
    found = [1] + [0] * shares
    for length in lengths:
        for n in range(length, shares + 1):
            found[n] += found[n - length]
    return found[shares]
