"""The paper's partition: Fig. 2's pattern for every module, in module order until the fabric is full.

The paper gives patterns, not an algorithm: it says which layer of a module goes where (Sec. IV, Fig. 2) and that every
evaluated module was partitioned so; it does not say how a whole network shares one fabric. This file is the smallest
algorithm that these words admit.

Algorithm
---------
(a)  Everything is on the GPU.
(b)  For every module, in the order of the network:
(c)      the *pattern* of its type says which layers may go to the FPGA, and by which options (Fig. 2);
(d)      every such layer takes the most channels, then the preferred fold, that fit what is left of the fabric;
(e)      the module is mapped so, if all its layers fit, else it stays on the GPU.

Interpretation
--------------
1.  *Patterns.* A module with a depthwise layer (inverted bottleneck, ShuffleNetV2 unit): every 1×1 convolution on the
    FPGA, every depthwise layer on the GPU (Fig. 2a: "delegating all the 1×1 convolution on the FPGA"). Any other module
    of several layers (Fire, residual block): its dense convolutions larger than 1×1 are grouped convolutions, ``g_l``
    input channels on the FPGA and the rest on the GPU (Fig. 2b). Everything else stays on the GPU. Fig. 2c (fused
    layers) follows where two mapped layers are neighbours.
2.  *Single layers* (the first convolution, the classifier) are no modules of the paper and stay on the GPU; the option
    ``singles`` treats them as grouped convolutions, too.
3.  *g_l* is not given: the largest split that fits. (Alternatives: half of the channels.)
4.  *Full.* A module whose pattern does not fit what is left stays on the GPU as a whole, and later modules are still
    tried; the option ``stop`` ends there instead.
5.  *Fold.* Direct hardware mapping has none. Where the instance offers folds, ``paper_rule`` takes the smallest with
    which the module fits, ``paper_rule_folded`` the largest, so that more modules fit.
6.  *No look at the gain.* The patterns are applied whether they help or not, as in the paper.

References
----------
Carballo-Hernandez, Pelcat, Berry, SLOHA 2021, Sections III-B and IV, Fig. 2.
"""

from __future__ import annotations

from collections.abc import Sequence

from mapgap.core import Budget, SolveResult
from mapgap.heuristics.fpga_gpu_partition.construction import free_fabric, on_gpu, result, taken
from mapgap.problems.fpga_gpu_partition import Instance, Layer, Module, Option


def partition(instance: Instance, largest_fold: bool, singles: bool, stop: bool) -> tuple[list[Option], list[str]]:
    """The options of all layers, and the modules that got their pattern."""
    options = on_gpu(instance)  # (a)
    free = free_fabric(instance, options)
    mapped = []
    first = 0
    for module in instance.modules:  # (b)
        last = first + len(module.layers)
        wanted = pattern(module, singles)  # (c)
        chosen = fitting(wanted, free, largest_fold)  # (d)
        if chosen is None and stop:
            break
        if chosen is not None and any(chosen):  # (e)
            before = options[first:last]
            options[first:last] = [new or old for new, old in zip(chosen, before, strict=True)]
            free = taken(taken(free, before, -1), options[first:last])
            mapped.append(module.name)
        first = last
    return options, mapped


def pattern(module: Module, singles: bool) -> list[list[Option]]:
    """(c): options of every layer that follow the module's pattern; none for layers that stay on the GPU."""
    if len(module.layers) == 1 and not singles:  # rule 2
        return [[]]
    separable = any(layer.operation.startswith("depthwise") for layer in module.layers)
    return [_pointwise(layer) if separable else _grouped(layer) for layer in module.layers]


def _pointwise(layer: Layer) -> list[Option]:
    """Fig. 2a: a 1×1 convolution whole on the FPGA."""
    return [o for o in layer.options if o.kind == "fpga"] if layer.operation == "conv1x1" else []


def _grouped(layer: Layer) -> list[Option]:
    """Fig. 2b: a larger convolution split by input channels."""
    large = layer.operation.startswith("conv") and layer.operation != "conv1x1"
    return [o for o in layer.options if o.kind == "split" and o.split == "input"] if large else []


def fitting(wanted: Sequence[list[Option]], free: tuple[int, int], largest_fold: bool) -> list[Option | None] | None:
    """(d): one option for every layer that the pattern maps, or ``None`` if the module does not fit.

    Layers are taken in order and each takes the most channels (rule 3), then the preferred fold (rule 5), that leave
    room for the least demand of the layers behind it.
    """
    chosen: list[Option | None] = []
    multipliers, m20k = free
    for position, options in enumerate(wanted):
        if not options:
            chosen.append(None)
            continue
        behind = [rest for rest in wanted[position + 1 :] if rest]
        room = (
            multipliers - sum(min(o.multipliers for o in rest) for rest in behind),
            m20k - sum(min(o.m20k for o in rest) for rest in behind),
        )
        fit = [o for o in options if o.multipliers <= room[0] and o.m20k <= room[1]]
        if not fit:
            return None  # rule 4
        sign = -1 if largest_fold else 1
        best = min(fit, key=lambda o: (-(o.channels or 0), sign * (o.fold or 1)))
        chosen.append(best)
        multipliers -= best.multipliers
        m20k -= best.m20k
    return chosen


def run(
    instance: Instance, budget: Budget, singles: bool = False, stop: bool = False, largest_fold: bool = False
) -> SolveResult:
    """The rule with either preference among folds."""
    options, mapped = partition(instance, largest_fold, singles, stop)
    return result(instance, budget, options, modules_mapped=mapped)
