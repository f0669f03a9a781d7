"""The same share of every layer: the simplest mask, and the best one for the smallest share.

``n_i = max(least_i, ceil(s N_i / 10000))`` is the smallest mask whose every layer has the share s (in ten-thousandths).
Costs grow with every ``n_i``; so if any mask within the limits has the smallest share s, this one is within them too.
Hence the largest s that fits, found by bisection, is the optimum of ``smallest_share`` for one device. For a fleet the
objective is the minimum over independent devices, hence again optimal. For the other objectives it is a baseline.
"""

from __future__ import annotations

from mapgap.core import Budget, SolveResult
from mapgap.heuristics.neuron_masking.straggler import Straggler, solve_fleet
from mapgap.problems.neuron_masking import SHARE, Instance, Mask
from mapgap.problems.neuron_masking.lowered.shares import largest_fitting, uniform_mask


def one(straggler: Straggler) -> Mask | None:
    """The mask of the largest common share."""
    least, neurons = straggler.least, straggler.neurons
    kept = largest_fitting(lambda share: uniform_mask(least, neurons, share), straggler.fits, SHARE)
    return None if kept is None else Mask(kept=kept)


def run(instance: Instance, budget: Budget) -> SolveResult:
    """The largest common share of every device."""
    return solve_fleet(instance, budget, one)
