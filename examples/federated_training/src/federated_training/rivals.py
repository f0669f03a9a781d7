"""What others do about stragglers, on the clock of :mod:`federated_training.schemes`.

``uniform``   submodels of one width, as HeteroFL (Diao et al. 2021) and FjORD (Horvath et al. 2021) cut them: a device
              keeps the first neurons of every layer, always the same ones, the largest common share that it can train
              in the cycle; every parameter is averaged over the devices that have it, equally
``fedprox``   whole models and partial work (Li et al. 2020): a device does the steps of its pass that fit into the
              cycle, at least one, drawn towards the global model with weight ``proximal``; plain average
``dropped``   only devices that can train the whole model in the cycle take part, as federated averaging drops the
              others; plain average

Interpretation
--------------
1. Without HeteroFL's scaler and masked loss, without FjORD's random widths and distillation: what is compared is the
   uniform, nested submodel itself.
2. The largest common share is that of the baseline ``uniform`` of the registry.
3. The time of a step is the same for all steps of a pass: work, traffic and spill of Eq. (4) grow with the images.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from federated_training.averages import partial_average, plain_average
from federated_training.network import Indices, Network
from mapgap.catalogue import registry
from mapgap.core import Budget, InputError
from mapgap.problems.neuron_masking import PROBLEM, Plan

if TYPE_CHECKING:
    from federated_training.schemes import Fleet

Steps = Iterator[tuple[float, Network, list[list[Indices]]]]
"""Time, global model, and the kept neurons of every device that took part."""
FITS = 1.0 + 1e-9
"""Cycle times that a device may take."""


def uniform(fleet: Fleet, model: Network) -> Steps:
    """Nested submodels of one width per device."""
    method = registry.methods(PROBLEM.name)["uniform"]
    result = method.solve(fleet.instance, Budget(time_s=60.0).start())
    if not isinstance(result.plan, Plan):
        raise InputError(f"uniform: expected a common share within the limits, found none: {result.reason}")
    counts = [mask.kept for mask in result.plan.masks]
    kept = [[np.arange(n) for n in row] for row in counts]
    pace, now = max(fleet.times(counts)), 0.0
    while True:
        models = [fleet.train(model, device, rows) for device, rows in enumerate(kept)]
        model = partial_average(model, models, kept, equal=True)
        now += pace
        yield now, model, kept


def fedprox(fleet: Fleet, model: Network) -> Steps:
    """Whole models, as many steps as fit."""
    times = fleet.times([fleet.neurons] * len(fleet.split.parts))
    passes = [fleet.batches(device) for device in range(len(times))]
    steps = [max(1, min(most, int(FITS * most / time))) for most, time in zip(passes, times, strict=True)]
    pace = max(time * done / most for time, done, most in zip(times, steps, passes, strict=True))
    now = 0.0
    while True:
        model = plain_average([fleet.train(model, device, fleet.whole, most) for device, most in enumerate(steps)])
        now += pace
        yield now, model, [fleet.whole] * len(steps)


def dropped(fleet: Fleet, model: Network) -> Steps:
    """Whole models on the devices that are quick enough."""
    times = fleet.times([fleet.neurons] * len(fleet.split.parts))
    quick = [device for device, time in enumerate(times) if time <= FITS]
    if not quick:
        raise InputError("dropped: expected a device that trains the whole model in a cycle, found stragglers only")
    pace, now = max(times[device] for device in quick), 0.0
    while True:
        model = plain_average([fleet.train(model, device, fleet.whole) for device in quick])
        now += pace
        yield now, model, [fleet.whole] * len(quick)


LOOPS: Mapping[str, Callable[[Fleet, Network], Steps]] = {"uniform": uniform, "fedprox": fedprox, "dropped": dropped}
