"""Times of an ONNX model's operators on the machine at hand, by ONNX Runtime's own profiler.

For every number of threads and every batch size the model runs in a session of its own: first some runs to warm up,
whose events are left out, then the repetitions. Per operator the median counts; the quartiles are its spread. What an
operator of the session does is attributed to a layer by name: nodes that were fused or made anew belong to the layer
whose name they carry, constants to the layer that first reads them, and the nodes inside a Loop, If or Scan to that.
Where more than 1 % of the time cannot be attributed the model runs again without optimisation, which keeps every
node; what still cannot be attributed then is an error.

A second session without the profiler tells the time of the whole run, beside which the sum of the layers stands.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import onnx
import onnxruntime as ort

from mapgap.core import InputError
from mapgap.core.machine import machine_load
from mapgap.core.workload import Settings
from mapgap.importing.conservation import WITHIN, check, named_after
from mapgap.importing.formats import onnx_model
from mapgap.importing.graph import LayerGraph, Time, Total
from mapgap.importing.onnx_files.dimensions import fix
from mapgap.importing.onnx_files.run import Feed, Run, run, values
from mapgap.importing.source import Source

USUAL = (1, 2, 4, 8)
"""Batch sizes that are measured where nobody says which."""
CAST = ("InsertedPrecisionFreeCast_", "InsertedCast_")
"""Before the name of a tensor: what ONNX Runtime calls a conversion that it puts in."""
Tell = Callable[[str], None]


@dataclass(frozen=True)
class Attributed:
    """Nanoseconds of every layer in every run, of all operators in every run, and of those without a layer."""

    layers: Mapping[str, list[float]]
    whole: list[float]
    stray: Mapping[str, float]

    @property
    def share(self) -> float:
        """Of the time, what no layer owns."""
        return sum(self.stray.values()) / (sum(self.whole) or 1.0)


def measure(
    path: Path,
    batches: Sequence[int] | None,
    threads: Sequence[int],
    *,
    repetitions: int,
    warm_up: int,
    provider: str,
    level: str,
    settings: Settings,
    tell: Tell,
) -> tuple[LayerGraph, dict[str, Any], str]:
    """The graph of a model with times per number of threads and batch size; the machine; what was done.

    Parameters
    ----------
    batches : sequence of int, optional
        ``None``: those of :data:`USUAL` that the model takes, or the one that it fixes.

    Raises
    ------
    InputError
        The provider is not installed, the model cannot be run, or it fixes another batch.
    """
    if provider not in ort.get_available_providers():
        known = ", ".join(ort.get_available_providers())
        raise InputError(f"--provider: expected one of {known}; found {provider!r}")
    source = Source.open(path)
    described = onnx_model.describe(source, settings)
    graph = described.graph
    check(graph)
    notes: list[str] = []
    models = _models(source, batches, provider, settings, tell, notes)
    for count in threads:
        kind = f"threads{count}"
        for batch, model in models.items():
            tell(f"{path.name}: {count} thread(s), batch {batch}")
            how: dict[str, Any] = {"runs": warm_up + repetitions, "threads": count, "provider": provider}
            feed = values(model, settings)
            found, used = _profiled(model, feed, level, how, described, repetitions)
            if used != level:
                notes.append(f"{kind} at {batch}: optimisation none, since {level} leaves operators without a layer")
            for name in graph.graph:
                graph.times.setdefault(kind, {}).setdefault(name, {})[batch] = _time(found.layers.get(name))
            wall = run(model, feed, level=used, profile=False, **how).wall[-repetitions:]
            lost = {name: spent / repetitions for name, spent in found.stray.items()}
            layers = sum(graph.times[kind][name][batch].forward for name in graph.graph)
            graph.totals += [
                Total("kernels", layers + sum(lost.values()), lost, kind, batch),
                Total("run", median(wall), {}, kind, batch, machine_load() or 0.0),
            ]
    check(graph)
    machine = {
        "processor": _processor(),
        "system": platform.platform(),
        "onnxruntime": ort.__version__,
        "onnx": onnx.__version__,
        "provider": provider,
        "load": machine_load() or 0.0,
    }
    note = (
        f"{path.name} (sha256 {source.sha256[:16]}) by ONNX Runtime {ort.__version__} on {machine['processor']}: "
        f"{repetitions} runs after {warm_up} to warm up, medians of every operator, optimisation {level}"
    )
    return graph, machine, "; ".join([note, *dict.fromkeys(notes)])


def _models(
    source: Source,
    batches: Sequence[int] | None,
    provider: str,
    settings: Settings,
    tell: Tell,
    notes: list[str],
) -> dict[int, onnx.ModelProto]:
    """The model at every batch size that it takes; each runs once, so that what cannot be measured is said at once."""
    found: dict[int, onnx.ModelProto] = {}
    for batch in batches or USUAL:
        model = onnx_model.load(source)
        said = fix(model, settings, batch)
        if said.samples != batch and batches is not None:
            text = f"{source.path.name} is fixed to a batch of {said.samples}; expected --batch {said.samples}"
            raise InputError(f"--batch {batch}: {text}")
        if said.samples in found:
            continue
        tell(f"{source.path.name}: does it take a batch of {said.samples}?")
        model = onnx_model.with_weights(model, source)
        try:
            feed = values(model, settings)
            settings.check()
            run(model, feed, provider=provider, profile=False)
        except InputError as error:
            if batches is not None or not found:
                hint = f"{source.path.name} at batch {said.samples}"
                raise InputError(f"{hint}: {problem}" for problem in error.problems) from error
            notes.append(f"it takes no batch of {batch} ({'; '.join(error.problems)})")
            break
        found[said.samples] = model
    return found


def _profiled(
    model: onnx.ModelProto,
    feed: Feed,
    level: str,
    how: Mapping[str, Any],
    described: onnx_model.Described,
    repetitions: int,
) -> tuple[Attributed, str]:
    """Times by layer, and the level of optimisation: the one that was asked for, unless ``none`` attributes more."""
    if level != "none":
        try:
            found = attributed(run(model, feed, level=level, **how), described, repetitions)
        except InputError:  # what ONNX Runtime runs without optimisation, it may refuse with it
            return attributed(run(model, feed, level="none", **how), described, repetitions), "none"
        if found.share <= WITHIN:
            return found, level
        plain = attributed(run(model, feed, level="none", **how), described, repetitions)
        return (found, level) if found.share <= plain.share else (plain, "none")
    return attributed(run(model, feed, level=level, **how), described, repetitions), level


def attributed(ran: Run, described: onnx_model.Described, repetitions: int) -> Attributed:
    """Times of the last repetitions by layer."""
    layers: dict[str, list[float]] = {}
    stray: dict[str, float] = {}
    whole = [0.0] * repetitions
    for name, steps in ran.steps.items():
        spent = [step.nanoseconds for step in steps[-repetitions:]]
        spent += [0.0] * (repetitions - len(spent))
        whole = [a + b for a, b in zip(whole, spent, strict=True)]
        owner = owner_of(name, described)
        if owner is None:
            stray[name] = sum(spent)
        else:
            before = layers.get(owner, [0.0] * repetitions)
            layers[owner] = [a + b for a, b in zip(before, spent, strict=True)]
    return Attributed(layers, whole, stray)


def owner_of(name: str, described: onnx_model.Described) -> str | None:
    """The layer to which an operator of a session belongs: its name, a name that it goes on from, or its tensor."""
    names, owners = described.graph.graph, described.owners
    for prefix in CAST:
        tensor = name.removeprefix(prefix)
        if tensor != name and tensor in owners:
            return owners[tensor]
    layer, other = named_after(name, names), named_after(name, owners)
    return owners[other] if other is not None and len(other) > len(layer or "") else layer


def _time(spent: list[float] | None) -> Time:
    """Median and quartiles."""
    if not spent:
        return Time(0.0)
    low, _, high = quantiles(spent, n=4, method="inclusive") if len(spent) > 1 else (spent[0],) * 3
    return Time(float(median(spent)), None, low, high)


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or "unknown processor"
