"""Partition of a CNN between a GPU and an FPGA under direct hardware mapping.

Source: Carballo-Hernandez, Pelcat, Berry, "Why is FPGA-GPU Heterogeneity the Best Option for Embedded Deep Neural
Networks?", SLOHA 2021, Sections III-V.

**Given** a CNN as a sequence of modules (Fire, bottleneck, ShuffleNet unit, residual block, a single layer) and, for
each layer, its *options*: the whole layer on the GPU, the whole layer on the FPGA with some fold, or a split of its
channels between both; each option with times, energies, the multipliers and M20K blocks it occupies and the bytes
that either side reads and makes. **Decide** one option per layer. **Minimise** energy, latency, their product or a
weighted sum of them, under the fabric's multipliers and M20K blocks and, if given, limits on latency and energy.

Per plan
--------
====  ======================================================================================================
(1)   latency L = sum over the modules of their makespans; one module at a time
(2)   energy E = sum over layers and transfers of their energies + per module the standby energy of its makespan
(3)   sum over all layers of the whole network of multipliers <= fabric; the same for M20K
(4)   objective = E, L, E * L or ``energy_weight * E + latency_weight * L``
====  ======================================================================================================

Interpretation
--------------
What the paper leaves open is pinned here, and nowhere else.

1.  *Modules run one after the other*; a module begins when every job of the one before has ended. The paper measures
    and overlaps within modules (Sec. V-B). (Alternative: overlap across modules.)
2.  Inside a module three *in-order queues* work side by side: GPU, FPGA and link. Jobs are issued layer by layer in
    the order of the instance, for each layer: what its GPU part lacks, what its FPGA part lacks (input by input), the
    GPU part, the FPGA part, the join. A job starts when its queue is free and its data are there. This gives
    the paper's "max function as consequence of the heterogeneous model's parallel execution" (Sec. V-B). The order is
    data, not a decision. (Alternatives: any order; a dispatcher that takes what is ready first, which can become
    slower when a layer becomes faster.)
3.  The FPGA works on one layer at a time, although every mapped layer has hardware of its own. Its layers hand over
    whole tensors. (Alternative: neighbouring layers overlap as a pipeline; the gain is bounded by the FPGA's busy
    time, which ``terms`` reports.)
4.  *Static resources* add up over the whole network: nothing is reconfigured between modules (Sec. III-A: mapped
    "concurrently"). What an option occupies is its own affair, so a fold, which uses a multiplier several times, is an
    option of its own. Strict direct hardware mapping has fold 1 only.
5.  A *tensor* is one part of a layer's output. Most outputs have one part; an output whose consumers read disjoint
    channels (channel split of ShuffleNetV2) has several. Every part of an output lies on one side, the *home*: where
    the layer ran, or where a split is joined. A module may read any tensors of earlier modules and of the network
    input, so modules are any cut of the graph in topological order, not only cuts through a single tensor.
6.  A tensor that is read on the other side is moved over the link, once per module and only the bytes that are not
    there yet; reads of one tensor on one side are nested (the GPU reads the first channels, the FPGA the last; a
    ``Read`` of less than the whole, for instance behind a pooling, is the same for all who read so much). What was
    moved is forgotten at the end of the module; the home copy stays. (Alternative: copies stay for later modules.)
7.  *Fused layers* (Fig. 2c) are neighbours on the FPGA: a tensor whose readers are all there never crosses the link.
    Its buffers are part of the M20K of the options.
8.  *Grouped convolution* (Fig. 2b) is a split by input channels: the FPGA reads ``g`` of the ``C`` channels, both
    sides make partial sums of the *whole* output, which are added at the home; the other side's sums cross the link. A
    split by output channels reads everything twice and each side makes its channels; a layer whose channels do not mix
    (depthwise) splits in both. Which splits exist is a matter of the options; the addition is part of their ticks.
9.  *Depthwise-separable split* (Fig. 2a), 3x3 on the GPU and 1x1 on the FPGA, is a choice of options for two layers.
10. The network input lies on the GPU's side, where the camera and the CPU are; every output of the network (a layer
    that no layer reads) is delivered there, at the end of its module.
11. A transfer takes ``setup_ticks`` and ``ceil(bytes / bandwidth)`` in ticks, in either direction; directions do not
    overlap. It costs ``setup_energy`` and ``ceil(bytes * energy_per_mb / 10^6)``. A transfer of no bytes does not
    happen, and a part that reads no bytes of a tensor does not wait for it.
12. Standby power is paid for the whole makespan, rounded up per module: ``ceil(standby_mw * tick_ns * makespan /
    (1000 * energy_unit_nj))``; what runs costs its energy on top.
13. Layers without arithmetic (addition, concatenation) are layers with options of little or no cost, so that they say
    where their inputs meet. Activations, folded normalisation and pooling belong to the layer before them.
"""

from typing import TYPE_CHECKING

from mapgap.core import Problem, lazily

if TYPE_CHECKING:
    from mapgap.problems.fpga_gpu_partition.instance import (
        NETWORK_INPUT,
        OBJECTIVES,
        Fabric,
        Instance,
        Layer,
        Link,
        Module,
        Objective,
        Option,
        Plan,
        Read,
        Side,
    )

_HERE = "mapgap.problems.fpga_gpu_partition"
UNITS = {
    "energy": "{energy} nJ",
    "latency": "{tick} ns",
    "edp": "{energy} nJ x {tick} ns",
    "weighted": "weighted units of {energy} nJ and {tick} ns",
}

PROBLEM = Problem(
    name="fpga_gpu_partition",
    title="Partition of CNN modules between a GPU and an FPGA",
    paper="DHM FPGA-GPU (Carballo-Hernandez et al.)",
    sense="min",
    unit=lambda instance: UNITS[instance.objective].format(energy=instance.energy_unit_nj, tick=instance.tick_ns),
    instance_type=f"{_HERE}.instance:Instance",
    plan_type=f"{_HERE}.instance:Plan",
    evaluate=f"{_HERE}.evaluate:evaluate",
    gantt=f"{_HERE}.evaluate:gantt",
    diagnose=f"{_HERE}.evaluate:diagnose",
    describe=f"{_HERE}.describe:describe",
    explain=f"{_HERE}.explain:EXPLAINER",
    objectives=f"{_HERE}.instance:OBJECTIVES",
)

__all__ = [
    "NETWORK_INPUT",
    "OBJECTIVES",
    "PROBLEM",
    "Fabric",
    "Instance",
    "Layer",
    "Link",
    "Module",
    "Objective",
    "Option",
    "Plan",
    "Read",
    "Side",
]
__getattr__ = lazily(__name__, "instance", "evaluate")
