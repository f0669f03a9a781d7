"""Galvatron's profiles: times of a transformer by micro-batch size, and, in a second file, rates between devices.

``layertype_0_bsz8_seq2048`` is the forward time of one layer in milliseconds *per sample* at batch 8,
``layertype_other_…`` that of everything beside the layers. ``pp_size_2`` of the second file is GB/s between neighbours.
Neither says how many layers there are, nor any size: these are settings.

Source: Miao et al., "Galvatron: Efficient Transformer Training over Multiple GPUs Using Automatic Parallelism",
VLDB 2023; ``galvatron/core/profiler``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from mapgap.core import Finding, InputError
from mapgap.core.workload import Settings
from mapgap.importing.graph import Kind, Layer, LayerGraph, Time, Total, origin
from mapgap.importing.source import Source

NAME, TITLE = "galvatron", "Galvatron computation and p2p profiles"
KIND = "profiled"
_TIME = re.compile(r"layertype_(\d{1,4}|other)_bsz(\d{1,6})(?:_seq(\d+))?")
_RUN = re.compile(r"layernum\[(\d{1,4})\]_bsz(\d{1,6})(?:_seq\d+)?")
_PAIR = re.compile(r"pp_size_(\d{1,6})")


def looks_like(source: Source) -> bool:
    """Keys ``layertype_…`` or ``layernum[…`` of a computation profile, ``pp_size_…`` of a profile of links."""
    data = source.json
    keys = (
        [key for key in data if key.startswith(("layertype_", "layernum[", "pp_size_"))]
        if isinstance(data, dict)
        else []
    )
    return bool(keys) and len(keys) * 2 > len(data)


def read(sources: Sequence[Source], settings: Settings) -> LayerGraph:
    """A chain: the layers, then everything else as one layer at the end.

    Raises
    ------
    InputError
        Nothing but rates, or what only a setting can tell is missing.
    """
    links = [source for source in sources if any(_PAIR.fullmatch(key) for key in source.json)]
    profiles = [source for source in sources if source not in links]
    if not profiles:
        text = "expected a computation profile (layertype_0_bsz…), found rates between devices only"
        raise InputError(Finding(text, place=str(sources[0].path)))
    source = profiles[0]
    measured = _times(source)
    count = settings.whole("layers", "layers of the model", least=1)
    output = settings.whole(
        "output_bytes", "bytes per sample that a layer hands on (sequence x width x bytes of a value)"
    )
    weights = settings.whole("weight_bytes", "bytes of the weights of a layer")
    rest = settings.whole("other_weight_bytes", "bytes of the weights beside the layers", 0)
    settings.check()
    if count > 10_000:
        raise InputError(f"--set layers={count}: expected at most 10,000 layers")
    graph = LayerGraph(source.path.stem.removeprefix("computation_profiling_"), training=True)
    times = graph.times.setdefault(KIND, {})
    for k in range(1, count + 1):
        graph.add(f"layer{k}", Layer("transformer", output, weights), [f"layer{k - 1}"] if k > 1 else [])
        times[f"layer{k}"] = dict(measured["0"])
    assumed = ["all layers are equal, and the rest of the model comes behind them"]
    if "other" in measured:
        graph.add("other", Layer("other", 0, rest), [f"layer{count}"])
        times["other"] = dict(measured["other"])
    graph.totals = [Total("weights", count * weights + rest), *_runs(source, count, whole="other" in measured)]
    graph.origins.append(
        origin(source, NAME, f"times at batches {', '.join(map(str, sorted(measured['0'])))}", assumed)
    )
    for link in links[:1]:
        rates = {int(_PAIR.fullmatch(key)[1]): value for key, value in link.root.fields() if _PAIR.fullmatch(key)}  # type: ignore[index]
        size = min(rates)
        rate = rates[size].number() * 1e9
        graph.kinds[KIND] = Kind(None, (), rate)
        graph.origins.append(origin(link, NAME, f"{rates[size].number():g} GB/s between neighbours (pp_size_{size})"))
    return graph


def _runs(source: Source, count: int, *, whole: bool) -> list[Total]:
    """Time of so many layers, and of what is beside them, by the whole runs ``layernum[n]_…`` of the file.

    They were measured for two numbers of layers; more take as much longer for each layer as these differ by.
    """
    runs: dict[int, dict[int, float]] = {}
    for key, value in source.root.fields():
        if (match := _RUN.fullmatch(key)) is not None:
            runs.setdefault(int(match[2]), {})[int(match[1])] = value.number() * 1e6
    found = []
    for batch, by_layers in runs.items():
        if len(by_layers) < 2:
            continue
        (few, low), *_, (many, high) = sorted(by_layers.items())
        each = (high - low) / (many - few)
        found.append(Total("kernels", (low + (count - few) * each) if whole else count * each, {}, KIND, batch))
    return found


def _times(source: Source) -> dict[str, dict[int, Time]]:
    """Type of layer to batch to time of the whole batch."""
    found: dict[str, dict[int, Time]] = {}
    lengths = set()
    for key, value in source.root.fields():
        match = _TIME.fullmatch(key)
        if match is None:
            if not key.startswith("layernum["):
                value.wrong("a key layertype_0_bsz…, layertype_other_bsz… or layernum[…]_bsz…")
            continue
        batch = int(match[2])
        if batch < 1:
            value.wrong("a batch of at least 1")
        lengths.add(match[3])
        found.setdefault(match[1], {})[batch] = Time(value.number() * 1e6 * batch)
    if "0" not in found or len(set(found) - {"other"}) > 1 or len(lengths) > 1:
        text = "expected times layertype_0_bsz… of one type of layer and one length of sequence"
        raise InputError(Finding(f"{text}, found {', '.join(sorted(found)) or 'none'}", place=str(source.path)))
    return found
