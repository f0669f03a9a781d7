"""The same share of every layer: the simplest mask, and the best one for the smallest share.

``n_i = max(least_i, ceil(s N_i / 10000))`` is the smallest mask whose every layer has the share s (in ten-thousandths).
Costs grow with every ``n_i``; so if any mask within the limits has the smallest share s, this one is within them too.
Hence the largest s that fits, found by bisection, is the optimum of ``smallest_share`` for one device. For a fleet the
objective is the minimum over independent devices, hence again optimal. For the other objectives it is a baseline.
"""

from __future__ import annotations

from mapgap.core import Budget, SolveResult
from mapgap.heuristics.neuron_masking._common import Straggler, largest_fitting, solve_fleet
from mapgap.problems.neuron_masking import SHARE, Instance, Mask


def one(straggler: Straggler) -> Mask | None:
    """The mask of the largest common share."""
    layers = straggler.instance.layers

    def mask_of(share: int) -> list[int]:
        return [max(layer.least, -(-share * layer.neurons // SHARE)) for layer in layers]

    kept = largest_fitting(straggler, mask_of, SHARE)
    return None if kept is None else Mask(kept=tuple(kept))


def run(instance: Instance, budget: Budget) -> SolveResult:
    """The largest common share of every device."""
    return solve_fleet(instance, budget, one)
