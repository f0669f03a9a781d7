"""Federated learning under ELFISH's schemes (Secs. 4-6) on a simulated clock.

The clock is the cost model of the problem: a device needs the time T of Eq. (4) for a cycle under its mask, however
long NumPy takes. Time is counted in cycle times b_T of the instance, the time of a capable device for the whole model.

Schemes
-------
``sync``             whole models; every cycle lasts as long as the slowest device
``async``            whole models; a device uploads when it is done, and the server moves towards its model
``soft``             soft-training only (Sec. 4): counts by ELFISH's greedy; plain average of the recovered models
``elfish``           as ``soft``, with the aggregation of Sec. 5
``optimal``          as ``elfish``, with counts of the largest contribution, optimal in every cycle
``optimal_neurons``  as ``elfish``, with the most neurons
``uniform``, ``fedprox``, ``dropped``: what others do about stragglers (:mod:`federated_training.rivals`)

Interpretation
--------------
1. One cycle is one pass over a device's images in batches (Sec. 5.2: "one epoch local training"), plain SGD.
2. U of Eq. (7) is the norm of the difference of a neuron's incoming weights and bias between the ends of two cycles of
   the device's model, masked neurons recovered from the global model; in the first cycle all are equal.
3. A mask keeps ``ceil(P_s n_i)`` neurons of largest U and draws the others (Sec. 4.1), whatever chose the counts.
4. Sec. 5.1 gives no formula for alpha_i. Here alpha_i is proportional to the completeness of the partial model, the
   share of neurons it keeps; every parameter is averaged over the devices that trained it, with their alphas scaled to
   one; a parameter that nobody trained stays.
5. ``async``: x <- x + ``mixing`` (x_i - x) at each upload; the paper gives no weight. With ``mixing`` 1 an upload
   replaces the model. The study tunes it per fleet.
"""

from __future__ import annotations

import heapq
import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from federated_training import rivals
from federated_training.averages import partial_average, plain_average
from federated_training.data import Split, split_digits
from federated_training.network import Array, Indices, Network, stages
from mapgap.catalogue import registry
from mapgap.core import Budget, Finding, InputError
from mapgap.problems.neuron_masking import PROBLEM, Instance, Mask, Plan
from mapgap.problems.neuron_masking.evaluate import evaluate
from mapgap.studies.neuron_masking.job import RIVALS, SCHEMES, Options

#: Method, its options and objective that choose the counts of a scheme.
COUNTS: dict[str, tuple[str, dict[str, Any], str]] = {
    "soft": ("elfish_greedy", {"selection": "top"}, "neurons"),
    "elfish": ("elfish_greedy", {"selection": "top"}, "neurons"),
    "optimal": ("lagrangian", {}, "contribution"),
    "optimal_neurons": ("lagrangian", {}, "neurons"),
}
LARGEST_U = 10_000
"""Contributions are scaled to integers up to this."""


@dataclass(frozen=True)
class Outcome:
    """What a training showed.

    Attributes
    ----------
    curve : list of (time, accuracy)
        Test accuracy of the global model after every aggregation (``async``: every upload); time in cycle times.
    kept : list of list of float
        Mean share of kept neurons by device and layer.
    uploads : int
        Local models that reached the server.
    """

    curve: list[tuple[float, float]]
    kept: list[list[float]]
    uploads: int


class Fleet:
    """Devices, their data and their clocks."""

    def __init__(self, instance: Instance, options: Options, seed: int) -> None:
        self.instance, self.options = instance, options
        self.layers = stages(options.network)
        self.neurons = [layer.neurons for layer in instance.layers]
        if self.neurons != [layer.shape[0] for layer in self.layers]:
            text = f"expected the layers of {options.network}, found {self.neurons} neurons"
            raise InputError(Finding(text, ("network",)))
        self.split: Split = split_digits(len(instance.devices), seed, iid=options.iid)
        self.rng = np.random.default_rng([seed, 1])

    @property
    def whole(self) -> list[Indices]:
        """All neurons of every layer."""
        return [np.arange(n) for n in self.neurons]

    def times(self, masks: Sequence[Sequence[int]]) -> list[float]:
        """Time of a cycle of every device under kept counts (devices, layers), in cycle times."""
        plan = Plan(masks=tuple(Mask(kept=tuple(kept)) for kept in masks))
        report = evaluate(self.instance, plan).terms["devices"]
        return [report[d.name]["time_s"] / (self.instance.cycle_ms[0] / 1000) for d in self.instance.devices]

    def batches(self, device: int) -> int:
        """Steps of one pass of a device over its images."""
        return -(-len(self.split.parts[device][1]) // self.options.batch)

    def train(self, model: Network, device: int, kept: Sequence[Indices], most: int | None = None) -> Network:
        """One pass of a device over its images (or the first ``most`` steps of it) with the kept neurons; the recovered
        whole model. With ``proximal`` every step is also drawn towards where the pass began."""
        images, labels = self.split.parts[device]
        part, pull = model.part(kept), self.options.proximal
        began = part.copy() if pull else part
        order = self.rng.permutation(len(labels))
        for start in range(0, len(order), self.options.batch)[:most]:
            chosen = order[start : start + self.options.batch]
            gradient = part.loss_and_gradient(images[chosen], labels[chosen])[1]
            if pull:
                ends = zip(gradient, part.parameters, began.parameters, strict=True)
                gradient = [(dw + pull * (w - v), db + pull * (b - c)) for (dw, db), (w, b), (v, c) in ends]
            part.descend(gradient, self.options.rate)
        return model.recover(part, kept)


class Masks:
    """Counts by a method of the registry, neurons by U and chance (Sec. 4.1)."""

    def __init__(self, fleet: Fleet, scheme: str) -> None:
        self.fleet = fleet
        name, self.options, objective = COUNTS[scheme]
        self.method = registry.methods(PROBLEM.name)[name]
        self.instance = PROBLEM.retarget(fleet.instance, objective)
        self.follows_contribution = objective == "contribution"
        equal = tuple(tuple(1 for _ in range(n)) for n in fleet.neurons)
        self.contributions = [equal] * len(fleet.instance.devices)
        self.counts: list[tuple[int, ...]] | None = None

    def choose(self) -> list[list[Indices]]:
        """Kept neurons by device and layer, for the next cycle."""
        if self.counts is None or self.follows_contribution:
            self.counts = self._counts()
        chosen = []
        for kept, contribution in zip(self.counts, self.contributions, strict=True):
            chosen.append([self._draw(n, row) for n, row in zip(kept, contribution, strict=True)])
        return chosen

    def _counts(self) -> list[tuple[int, ...]]:
        devices = tuple(
            device.model_copy(update={"contributions": rows})
            for device, rows in zip(self.fleet.instance.devices, self.contributions, strict=True)
        )
        instance = self.instance.model_copy(update={"devices": devices})
        result = self.method.solve(instance, Budget(time_s=60.0).start(), **self.options)
        if not isinstance(result.plan, Plan):
            raise InputError(f"{self.method.name}: expected a mask within the limits, found none: {result.reason}")
        return [mask.kept for mask in result.plan.masks]

    def _draw(self, n: int, contribution: Sequence[int]) -> Indices:
        ranking = np.argsort(-np.asarray(contribution), kind="stable")
        top = -(-self.fleet.instance.top_percent * n // 100)
        others = self.fleet.rng.choice(ranking[top:], size=n - top, replace=False)
        return np.sort(np.concatenate([ranking[:top], others]))

    def learn(self, device: int, before: Network, after: Network) -> None:
        """Eq. (7): U from the device's model at the ends of two cycles."""
        changes = [
            np.sqrt(((w1 - w0) ** 2).sum(axis=(1, 2, 3)) + (b1 - b0) ** 2)
            for (w0, b0), (w1, b1) in zip(before.parameters, after.parameters, strict=True)
        ]
        scale = LARGEST_U / max(1e-12, max(float(change.max()) for change in changes))
        self.contributions[device] = tuple(tuple(int(u) for u in np.rint(scale * change)) for change in changes)


def _synchronous(fleet: Fleet, model: Network) -> Iterator[tuple[float, Network, list[list[Indices]]]]:
    """Whole models, plain average; the slowest device sets the pace."""
    masks = [fleet.whole for _ in fleet.split.parts]
    pace = max(fleet.times([fleet.neurons] * len(masks)))
    now = 0.0
    while True:
        model = plain_average([fleet.train(model, d, kept) for d, kept in enumerate(masks)])
        now += pace
        yield now, model, masks


def _asynchronous(fleet: Fleet, model: Network) -> Iterator[tuple[float, Network, list[list[Indices]]]]:
    """Each device for itself; yields at each upload."""
    count = len(fleet.split.parts)
    paces = fleet.times([fleet.neurons] * count)
    queue = [(pace, d) for d, pace in enumerate(paces)]
    heapq.heapify(queue)
    fetched = [model] * count
    mixing = fleet.options.mixing
    while True:
        now, d = heapq.heappop(queue)
        trained = fleet.train(fetched[d], d, fleet.whole)
        mixed = [
            ((1 - mixing) * w + mixing * v, (1 - mixing) * b + mixing * c)
            for (w, b), (v, c) in zip(model.parameters, trained.parameters, strict=True)
        ]
        model = fetched[d] = Network(model.layers, mixed)
        heapq.heappush(queue, (now + paces[d], d))
        yield now, model, [fleet.whole]


def _masked(fleet: Fleet, model: Network) -> Iterator[tuple[float, Network, list[list[Indices]]]]:
    """Mask, train, recover, aggregate (Secs. 4.2 and 5)."""
    scheme = fleet.options.scheme
    masks = Masks(fleet, scheme)
    ends: list[Network | None] = [None] * len(fleet.split.parts)
    now = 0.0
    while True:
        kept = masks.choose()
        now += max(fleet.times([[len(row) for row in rows] for rows in kept]))
        models = [fleet.train(model, d, rows) for d, rows in enumerate(kept)]
        for d, trained in enumerate(models):
            masks.learn(d, ends[d] or model, trained)
            ends[d] = trained
        model = plain_average(models) if scheme == "soft" else partial_average(model, models, kept)
        yield now, model, kept


def train(instance: Instance, options: Options, seed: int) -> Outcome:
    """Train a fleet until its simulated time is over.

    Parameters
    ----------
    instance : Instance
        Devices with one cycle time; its layers are those of ``options.network``.
    options : Options
    seed : int
        Of data, initial model, order of images and drawn neurons. Schemes share data and initial model.

    Raises
    ------
    InputError
        An unknown scheme, an instance of another network, no scikit-learn, or no mask within the limits.
    """
    if options.scheme not in (known := (*SCHEMES, *RIVALS)):
        raise InputError(Finding(f"expected one of {', '.join(known)}, found {options.scheme!r}", ("scheme",)))
    fleet = Fleet(instance, options, seed)
    model = Network.initial(fleet.layers, np.random.default_rng([seed, 0]))
    loops: dict[str, Callable[..., Any]] = {"sync": _synchronous, "async": _asynchronous, **rivals.LOOPS}
    curve = [(0.0, model.accuracy(*fleet.split.test))]
    shares: list[Array] = []
    uploads = 0
    for now, latest, kept in loops.get(options.scheme, _masked)(fleet, model):
        if now > options.cycles + 1e-9:
            break
        uploads += len(kept)
        shares.append(np.array([[len(row) / n for row, n in zip(rows, fleet.neurons, strict=True)] for rows in kept]))
        curve.append((now, latest.accuracy(*fleet.split.test)))
    return Outcome(curve, np.mean(shares, axis=0).tolist() if shares else [], uploads)


def measure(instance: dict[str, Any], options: Options, seed: int) -> dict[str, Any]:
    """Train on one thread, as a record of a run notes it.

    Parameters
    ----------
    instance : dict
        Its JSON form.

    Returns
    -------
    dict
        ``curve`` (time in cycle times, accuracy), ``kept`` (mean share by device and layer), ``uploads`` and ``cpu_s``.
    """
    begin = time.process_time()
    with threadpool_limits(1):
        outcome = train(Instance.model_validate_json(json.dumps(instance)), options, seed)
    return {
        "curve": [[round(moment, 6), round(accuracy, 6)] for moment, accuracy in outcome.curve],
        "kept": outcome.kept,
        "uploads": outcome.uploads,
        "cpu_s": time.process_time() - begin,
    }
