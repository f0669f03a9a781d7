"""ELFISH's masked neuron selection (Sec. 4.1): a one-parameter greedy for the counts, then U and chance.

Step 1, Eq. (6): layer i masks the share ``P^i = alpha^i P`` of its neurons, for the smallest P that meets Eq. (5).
Step 2, below Eq. (7): of the ``n_i`` neurons that a layer keeps, the share P_s are those of largest contribution, the
others are drawn from the rest.

Interpretation
--------------
1. ``alpha`` is not given; "the layer with higher training time costs will keep fewer ratios". ``neuron_time`` takes
   T^i of Eq. (3) per neuron, ``layer_time`` T^i n^i, ``uniform`` 1; the largest alpha is scaled to 1.
2. P is found by bisection (the paper: "greedy"), on a grid of 2^-20; it runs on until every layer is at its floor.
3. ``P^i n^i`` is rounded up, so that a mask meets the limits at the real P; the floor and whole layers are kept.
4. T, M and W are those of Eqs. (1)-(4) for the masked model, not Eq. (6)'s sums of constants, which would not meet
   Eq. (5).
5. The draw uses the run's seed. ``selection="top"`` keeps the largest contributions only and shows the loss by chance.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from fractions import Fraction

from mapgap.core import Budget, Finding, InputError, SolveResult
from mapgap.heuristics.neuron_masking.straggler import Straggler, solve_fleet
from mapgap.problems.neuron_masking import Instance, Mask
from mapgap.problems.neuron_masking.lowered.shares import largest_fitting

GRID = 2**20
"""Steps of P between 0 and the P that takes every layer to its floor."""
ALPHAS = ("neuron_time", "layer_time", "uniform")
SELECTIONS = ("paper", "top")


def weights(straggler: Straggler, alpha: str) -> list[Fraction]:
    """alpha^i of every layer, at most 1, from the times of the whole model."""
    if alpha == "uniform":
        return [Fraction(1)] * len(straggler.neurons)
    rate = straggler.device.transfer
    times = []
    before = straggler.instance.inputs
    for layer in straggler.instance.layers:
        memory = layer.weights * before + layer.features  # M^i of Eq. (2)
        time = layer.work * before + Fraction(rate.ticks * memory, rate.per)  # T^i of Eq. (3), in ticks
        times.append(max(Fraction(1, GRID), time) * (layer.neurons if alpha == "layer_time" else 1))
        before = layer.neurons
    largest = max(times)
    return [time / largest for time in times]


def counts(straggler: Straggler, alpha: str) -> list[int] | None:
    """Step 1: kept neurons of every layer, or ``None`` if not even the floors meet the limits."""
    share = weights(straggler, alpha)
    layers = straggler.instance.layers
    last = 1 / min(share)  # here every P^i is at least 1

    def mask_of(step: int) -> list[int]:
        p = last * (GRID - step) / GRID  # Eq. (6): P^i = alpha^i P of layer i is masked
        return [max(layer.least, int((1 - a * p) * layer.neurons // 1)) for layer, a in zip(layers, share, strict=True)]

    return largest_fitting(mask_of, straggler.fits, GRID)  # the smallest P


def draw(straggler: Straggler, kept: Sequence[int], rng: random.Random) -> Mask:
    """Step 2: ``ceil(P_s n_i)`` neurons by contribution, the others at random, indices rising."""
    chosen = []
    for i, n in enumerate(kept):
        ranking = straggler.device.ranking(i)
        top = -(-straggler.instance.top_percent * n // 100)
        chosen.append(tuple(sorted(ranking[:top] + rng.sample(ranking[top:], n - top))))
    return Mask(kept=tuple(kept), chosen=tuple(chosen))


def run(instance: Instance, budget: Budget, alpha: str = "neuron_time", selection: str = "paper") -> SolveResult:
    """Masked neuron selection of Sec. 4.1.

    Raises
    ------
    InputError
        An unknown ``alpha`` or ``selection``.
    """
    wrong = [
        Finding(f"expected one of {', '.join(known)}, found {value!r}", (field,))
        for field, value, known in (("alpha", alpha, ALPHAS), ("selection", selection, SELECTIONS))
        if value not in known
    ]
    if wrong:
        raise InputError(wrong)
    rng = random.Random(budget.seed)

    def one(straggler: Straggler) -> Mask | None:
        kept = counts(straggler, alpha)  # step 1
        if kept is None:
            return None
        return draw(straggler, kept, rng) if selection == "paper" else Mask(kept=tuple(kept))  # step 2

    return solve_fleet(instance, budget, one)
