"""The writer of sub-operation mapping for certificates; rules as in the package's docstring. Standard library only.

A certificate refutes one program per ratio, ``{"40,24": tree, …}`` with every partition of the batch into at most N
shares (rule 8: shares are interchangeable), or one program for all ratios at once, ``{"all": tree}``. A key that ends
in ``" order"`` asks for the program with orders, one like ``"40,24 below 9000"`` for that of a bound of its own, which
is no less: its points are more. A key like ``"33-63x1,1-31x2"`` is a box: one program for all ratios
that have one share of 33 to 63 samples and then two of 1 to 31; ratios of a box need no program of their own. Equal
accelerators have common variables in it; a key that ends in ``" apart"`` asks for the program in which the first one of
each class has its own (:mod:`~.alike`). A key of a ratio or a box that ends in ``" chain"`` has no tree but what
:mod:`~.chain` needs; so has one that ends in ``" shortcuts"``, whose chain has these (:mod:`~.chain_shortcuts`), or in
``" counted"`` or ``" headed"``, whose chain counts alike shares on each accelerator. Shares of such a box may have 0
samples at least: they are left out, and need not be there. Those of a group with a ``w``, as in
``"16-16x3,5-8w2 counted"``, are left out but for their work of BP and WU.

Every plan of a makespan below the bound is a point of the program of its ratio: ``x[o][a]`` places operation ``o``,
``load[o][a]`` is how long it occupies accelerator ``a``, ``last`` the makespan (:mod:`~.loads`), its start that of the
plan's timetable (:mod:`~.times`). All are integers of at most ``bound - 1``, and every row holds, as these modules
argue. In the program of all ratios only fused operations have a place and a start, and the DRAM is left out, and so it
is in those of boxes (:mod:`~.located`); in the others :mod:`~.memory` says what of it must fit.

Variables come in this order, those of places by accelerator, in a box by class, as first members are listed; beside a
state come its own accelerators and the first others of classes, first members before all others. ``*`` where the
program of a ratio, ``+`` where that of a box has them. Operations are listed FP by rising layer, then WU and BP by
falling layer, those of a layer by share.

1.  ``+`` samples of each group; ``last``; places by operation; ``*`` configurations of each split FP and BP of several
    shares, the last share's place changing fastest; loads by operation.
2.  By operation what its load is made of. With a place: joint choices for each layer whose shares it gathers, and ``*``
    for each other predecessor from which ways differ, then by predecessor and accelerator the ``y`` of what takes a
    tick to move; of a WU the joint choices of dW, by
    configuration as they first differ in the own place or the holders; ``+`` ticks of what was gathered. Without one:
    samples, or ``+`` a constant 1 if no fused operation comes before it, the joint choices of states; by state, group
    and accelerator shares, samples if they may differ, ticks if there are several lines; by predecessor, accelerator
    and group the samples and then the weights that were moved, if that takes a grain; of a WU holders, and dW sent.
3.  Starts by operation; ``*`` by stage its joint choices and those of fetched weights; pairs of an order; ``w`` of each
    accelerator with rows of the DRAM; ``+`` by FP, then BP, then WU of layers that read the network input, the lengths
    of the states; by FP of a layer of which dW is sent, and by the first place of its states, numbers of holders.

Where links are shared (rule 10), an operation can also wait between its start and its end. ``load`` is then what it
takes without waiting, and ``start + load`` no later than its end. No row says of an end that it is as late as the plan
has it, only that something comes after it: what starts after the end, or that two operations do not overlap, of which
``load`` takes the beginning. And what DRAM holds until an end, it holds until ``start + load``: rows of a moment count
no more than that. So all rows hold, and :mod:`~.loads` adds those of ports or of the medium.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from .chain import along
from .chain_labels import outlived
from .chain_shares import CHAINS
from .lengths import box, contains
from .located import Located
from .times import Writer

SENSE = "min"
APART = " apart"
ORDER = " order"
BELOW = " below "
LAYER = dict.fromkeys(("name", "network_input_bytes", "output_bytes", "weight_bytes", "fp", "bp", "wu"))
SHAPE = {
    **dict.fromkeys(("name", "source", "tags", "batch", "tick_ns", "memory_unit_bytes", "flops")),
    **dict.fromkeys(("bandwidth", "latency_ns")),
    "schema": (1,),
    "form": ("expanded",),
    "problem": ("suboperation_mapping",),
    "medium": ("links", "ports", "shared"),
    "accelerators": [dict.fromkeys(("name", "memory", "pes"))],
    "layers": [{**LAYER, "kind": ("split", "fused"), "inputs": [{"source": None, "bytes": None}]}],
}


def cases(instance: dict[str, Any], bound: int, new: Any, names: Any) -> Iterator[tuple[str, Any]]:
    """The programs to be refuted, or what checks a proof, by name, given the names under which there are proofs."""
    if "all" in names:
        yield "all", Writer(instance, bound, new(), None).program
        return
    boxes = {name: box(name) for name in names if "x" in name}
    for name, groups in boxes.items():
        if kind := next((kind for kind in CHAINS if name.endswith(kind)), None):
            yield name, partial(outlived, along(instance, name), bound)
        elif "w" in name or min(low for low, *_ in groups) < 1:
            raise ValueError("a share that is left out, or of no samples")
        else:
            yield name, Located(instance, bound, new(), groups, name.endswith(APART)).program
    own = {ratio: int(limit) for ratio, below, limit in (name.partition(BELOW) for name in names) if below}
    if any(limit < bound for limit in own.values()):
        raise ValueError("a ratio with a bound below that of the certificate")
    for ratio in partitions(instance["batch"], instance["batch"], len(instance["accelerators"])):
        if any(contains(groups, ratio) for groups in boxes.values()):
            continue
        name = ",".join(map(str, ratio))
        if kind := next((kind for kind in CHAINS if name + kind in names), None):
            yield name + kind, partial(outlived, along(instance, name + kind), bound)
            continue
        if name in own:
            yield f"{name}{BELOW}{own[name]}", Writer(instance, own[name], new(), ratio).program
            continue
        ordered = name + ORDER in names
        yield name + ORDER if ordered else name, Writer(instance, bound, new(), ratio, ordered).program


def partitions(batch: int, largest: int, parts: int) -> Iterator[tuple[int, ...]]:
    """Non-increasing, without zeros."""
    if batch == 0:
        yield ()
    elif parts:
        for first in range(min(batch, largest), 0, -1):
            for rest in partitions(batch - first, first, parts - 1):
                yield (first, *rest)
