"""Sub-operation mapping: CNN training on heterogeneous FPGAs (MTrain).

Source: Tang, Jones, Xiong, Zhou, Hu, "MTrain: Enable Efficient CNN Training on Heterogeneous FPGA-based Edge
Servers", Sections III-VI.

**Given** one training iteration of a CNN with batch ``B`` and ``N`` accelerators: the latency of every operation for
every share of the batch on every accelerator, DRAM sizes and peer-to-peer bandwidths. **Decide** the *ratio*
(non-negative integers ``r_1..r_N`` with sum ``B``), an accelerator for every sub-operation and an order on every
accelerator. **Minimise** the makespan of one iteration.

The graph ``G*`` (Sec. IV)
--------------------------
*Split* layers (the paper's non-batch-wise conv and fc) become one sub-operation per non-zero share in FP, BP (none for
layers that read only the network input) and WU. *Fused* layers (batch-wise: BN) are one operation in FP and one in BP.

Interpretation
--------------
What the paper leaves open is pinned here, and nowhere else.

1.  ReLU, pooling, additions and up-sampling belong to the producing layer and change its output size; a
    concatenation has no operation, its consumers read every part. Sizes are therefore a property of the *edge*.
    (Alternative: operations of their own.)
2.  ``FP(l, b)`` follows the FP of all its producers, share to share; a fused layer gathers all shares.
3.  ``BP(l, b)`` follows the BP of the consumers of ``l`` (their loss) and ``FP(l, b)`` (its weights, moved when the two
    lie on different accelerators). In a layer without consumers the loss is made from the output of ``FP(l, b)``,
    which is then moved too. The stored normalised activations of a fused layer are *not* moved to its BP; the paper
    names weights only.
4.  ``WU(l, b)`` follows the BP of the consumers of ``l`` (the loss at the layer's output) and ``FP(l, b)``, whose
    accelerator stores the layer's input activation. "l11 and l12 finish after dW_2B_1 and dW_2B_2 are gathered to
    accelerators where l1 and l2 are placed" (Sec. IV): the duration of a WU includes one transfer of dW to every
    *other* accelerator that holds an FP sub-operation of the layer, even when two WU of the layer share an accelerator.
5.  Duration = compute + every transfer from a predecessor on another accelerator, one after the other, on the
    *receiving* accelerator ("the latency for each sub-operation is the sum of Lat_Comp and Lat_Comm", Sec. III-C);
    the dW of rule 4 occupies the *sending* one. An operation starts when all predecessors have ended, one operation
    at a time per accelerator. Nothing is cached: each consumer pays for its own transfer. The network input costs
    nothing to read.
6.  A transfer takes ``ceil(bytes / bandwidth)`` in ticks; rule 11 adds what a message takes.
7.  DRAM (Sec. V-B) of an accelerator = twice the weight bytes (weights and gradients) of every layer with an operation
    there, during the whole iteration, plus the input activation of ``FP(l, b)`` on its accelerator from its start, and
    the loss at the output of ``l`` on the accelerator that produces it (the consumer's BP, or ``FP(l, b)`` in a layer
    without consumers) from the start of the producer, both until ``WU(l, b)`` ends. Intervals are half-open. Demands
    are rounded up to memory units, capacities down. Tensors that no WU needs are transient and not counted.
8.  Shares are interchangeable, hence only partitions of ``B`` into at most ``N`` parts matter: 33, 30 and 374 for
    (64, 2), (16, 3) and (64, 3). The paper counts 33, 33 and 385, the partitions of ``B + 1``.
9.  Work (for throughput) is 2 operations per multiply-accumulate of FP, BP and WU: ``flops`` of the instance.
10. *Medium* (not in the paper, whose pairs of FPGAs have a link each). Under ``links`` transfers never meet. Under
    ``ports`` a transfer of at least a tick holds the way out of its sender and the way into its receiver, under
    ``shared`` the one medium. It keeps the time of rule 6, is not interrupted, and begins as soon as all that it needs
    is free: of those that wait, first the one that has waited longest, then the one whose operation lies on the
    accelerator of the smaller number. One that cannot begin holds nothing up. An operation receives by the number of
    the sender, of one sender the longest transfer first; it computes; it sends dW by the number of the receiver. From
    its start, which is still that of rule 5, to its end it holds its accelerator, also while it waits. What takes no
    time ends in the same tick, after all has begun that could. No rule reads the number of a share, so rule 8 holds.
    Delays change what is stored at one time: with a binding DRAM a plan may fit under one medium alone.
11. *Latency* (not in the paper): a transfer from i to j takes ``ceil(bytes / bandwidth + latency_ns[i][j])`` in ticks.
    Every tensor that rule 5 moves is one message, so a fused layer that gathers k shares from elsewhere waits k times
    and a WU sends one message of dW to each of the others; what a BP reads of its own FP, weights and loss, is one. No
    bytes are no message. The latency is part of the time for which the transfer holds its accelerator, its ports or
    the medium: nothing overlaps with it. (Alternative: a delay that holds nothing, so that messages follow each other
    on their way.)
"""

from typing import TYPE_CHECKING

from mapgap.core import Problem, lazily

if TYPE_CHECKING:
    from mapgap.problems.suboperation_mapping.instance import (
        Accelerator,
        Edge,
        Instance,
        Layer,
        Medium,
        Plan,
        operation_name,
        parse_operation,
    )

_HERE = "mapgap.problems.suboperation_mapping"
PROBLEM = Problem(
    name="suboperation_mapping",
    title="Sub-operation mapping of CNN training onto heterogeneous FPGAs",
    paper="MTrain (Tang et al.)",
    sense="min",
    unit=lambda instance: f"ticks of {instance.tick_ns} ns",
    instance_type=f"{_HERE}.instance:Instance",
    plan_type=f"{_HERE}.instance:Plan",
    evaluate=f"{_HERE}.evaluate:evaluate",
    gantt=f"{_HERE}.evaluate:gantt",
    diagnose=f"{_HERE}.evaluate:diagnose",
    describe=f"{_HERE}.describe:describe",
    explain=f"{_HERE}.explain:EXPLAINER",
    clock=f"{_HERE}.clock:CLOCK",
    media=("links", "ports", "shared"),
)

__all__ = ["PROBLEM", "Accelerator", "Edge", "Instance", "Layer", "Medium", "Plan", "operation_name", "parse_operation"]
__getattr__ = lazily(__name__, "instance")
