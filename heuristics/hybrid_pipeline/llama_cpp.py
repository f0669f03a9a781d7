"""llama.cpp's layers of a model over several devices, as they are without ``--tensor-split`` (ggml-org/llama.cpp,
``src/llama-model.cpp``, ``load_tensors``, "default split, by free memory").

1.  ``splits``: sums of the free memory of the devices, in their order, divided by the sum of all.
2.  With all layers offloaded, layer i of the n blocks, and the output as layer n, is on the device
    ``upper_bound(splits, i / (n + 1))``: the first one whose sum is beyond that part.

``--tensor-split a,b,…`` puts other numbers in the place of the free memory.

Interpretation
--------------
1.  The devices are those of the instance, in its order. ``split`` gives numbers in the place of their memories, by
    commas, as the flag does.
2.  The last layer of the instance is the output. A first layer called ``embedding`` (the option names it), which
    llama.cpp leaves in the memory of the host, goes with the first block; otherwise every layer counts.
3.  Sums and parts have 24 bits, as theirs.
4.  A device without a layer is idle. Whether weights and caches fit is not looked at: what does not hold them is out of
    memory, and no plan. (Newer versions have ``--fit``, "adjust unset arguments to fit in device memory", which is left
    out; where the split fits, it has nothing to do.) A stage has one device.
"""

from __future__ import annotations

import time

import numpy as np

from mapgap.core import Budget, Finding, InputError, SolveResult
from mapgap.heuristics.hybrid_pipeline.chain import report, result
from mapgap.heuristics.hybrid_pipeline.exo import placed, span
from mapgap.problems.hybrid_pipeline import Instance
from mapgap.problems.hybrid_pipeline.lowered.batching import every_micro_batch


@every_micro_batch
def run(instance: Instance, budget: Budget, embedding: str = "embedding", split: str = "") -> SolveResult:
    """Layers by free memory, in the order of the devices.

    Raises
    ------
    InputError
        ``split`` is not a number per device, or all are 0.
    """
    begin = time.process_time()
    memory = np.array([instance.device_type(d).memory for d in range(len(instance.devices))], np.float32)
    if split:
        memory = _numbers(split, len(memory))
    front, layers = span(instance, embedding, "")
    if not memory.any():
        memory[:] = 1
    counts = counted(memory, layers)
    plan = placed(instance, range(len(memory)), counts, front)
    return report(budget, result(instance, plan, begin, layers=counts))


def counted(memory: np.ndarray[tuple[int], np.dtype[np.float32]], layers: int) -> list[int]:
    """How many of so many layers, the output included, every device has."""
    sums = np.zeros_like(memory)
    total = np.float32(0)
    for d, free in enumerate(memory):  # step 1; one after the other, as each sum is rounded
        total = np.float32(total + free)
        sums[d] = total
    sums = sums / total
    parts = np.arange(layers, dtype=np.float32) / np.float32(layers)
    places = np.minimum(np.searchsorted(sums, parts, side="right"), len(memory) - 1)  # step 2
    return [int(count) for count in np.bincount(places, minlength=len(memory))]


def _numbers(text: str, count: int) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    try:
        found = np.array([float(each) for each in text.split(",")], np.float32)
    except ValueError:
        found = np.zeros(0, np.float32)
    if len(found) != count or not np.isfinite(found).all() or (found < 0).any() or not found.any():
        raise InputError(Finding(f"expected {count} numbers by commas, not all 0; found {text!r}", ("split",)))
    return found
