"""Neuron masking: how many neurons of each layer a federated-learning straggler trains (ELFISH).

Source: Xu, Yang, Xiong, Yang, Chen, "ELFISH: Resource-Aware Federated Learning on Heterogeneous Edge Devices",
Sections 3 and 4.

**Given** a chain of layers with ``N_i`` neurons (filters), and for a straggler a time limit ``b_T``, a memory limit
``b_M``, a work limit ``b_W`` and a contribution ``U^{ij}`` of every neuron. **Decide** how many neurons ``n_i`` every
layer keeps, and which. **Maximise** one of the objectives below.

Costs of a mask
---------------
With ``n_0`` the channels of the input, all sums over the layers i = 1..I:

    W = sum_i work_i n_{i-1} n_i                                              work units,   Eq. (1)
    M = sum_i (weights_i n_{i-1} n_i + features_i n_i)                        memory units, Eq. (2)
    S = max(0, M - b_M)                                                       memory units
    T = W + ceil(transfer M) + ceil(spill S) + overhead                       ticks,        Eqs. (3), (4)

    W <= b_W,   T <= b_T,   and M <= b_M unless memory_mode is "spill"                      Eq. (5)

Both neighbours of a layer are masked, so W and M are **bilinear**: a uniform share p costs about p^2, which is what
Table 2 shows (98 to 22 minutes from 100% to 50% of the neurons). Every cost grows with every ``n_i``.

Objectives
----------
``neurons``         sum_i n_i, over all devices
``contribution``    sum of ``U`` over all kept neurons, over all devices
``smallest_share``  min_i of ``10000 n_i // N_i``, over all devices
``rate``            ``3600000 * contribution // cycle_ms``: contribution per hour of the whole fleet

A *fleet* is an instance with several devices and several cycle times; all devices work under one of the cycle times,
which the plan chooses. Given the cycle time the devices are independent (:meth:`Instance.single`). A straggler of the
paper is a fleet of one device and one cycle time.

Interpretation
--------------
What the paper leaves open or contradicts is pinned here, and nowhere else.

1.  The cost of layer i counts the *kept* neurons of layer i - 1, as ``n^{i-1}`` in Eqs. (1) and (2) says.
    (Alternative: Eq. (6) read literally, with constant costs ``T^i`` per neuron: linear in the shares, off Table 2 by
    more than 190%.)
2.  "W = n_i sum W^i" and "M = n_i sum M^i" are sum_i n_i W^i and sum_i n_i M^i. The sums of Eq. (5) over neurons are
    the model's W, M and T of Eqs. (1)-(4), with the constant parts of T in them.
3.  Symbols: ``C_mc`` of Eq. (3) is ``C_cpu``, ``V_cpu`` is ``V_mc`` (text and Table 1 say so). ``b_M`` of Eq. (4) is
    the memory capacity ``M_c`` and the same number as ``b_M`` of Eq. (5).
4.  "GFLOPS" counts multiply-accumulates: W of Eq. (1) is a number of MACs and is divided by ``C_cpu`` directly.
    (Alternative: two operations per MAC; Tables 2 and 3 contradict it.)
5.  Memory is in bytes: weights and gradients of 4 bytes each, hence 8 bytes per weight and 4 bytes per feature-map
    element and sample (``B_f = B_a = 32`` *bits*).
6.  ``M - b_M`` of Eq. (4) is meant when positive. Eq. (5) asks for ``M <= b_M`` at the same time, so that the spill
    never occurs: ``memory_mode`` "hard" (default). "spill" drops the memory limit and pays Eq. (4)'s last term.
7.  ``W`` and ``h, w`` count the layer's output map, as MACs of a convolution do. A fully connected layer behind a
    feature map has one pair coefficient per map element.
8.  The input and the output layer are not masked. Every other layer keeps at least ``least >= 1`` neurons: a layer
    without neurons cuts the network, and the paper states no floor. Without a floor the counts starve the widest
    layers. The objectives count all layers, whole ones too.
9.  Which neurons (Sec. 4.1): ``ceil(P_s n_i)`` of the kept neurons of a layer are those of largest contribution, the
    others may be any ("random" in the paper). A plan states the indices; where it does not, it keeps the ``n_i``
    largest, which is legal under every ``P_s`` and best for every objective. Exact methods therefore decide counts
    only. Equal contributions are interchangeable.
10. U of Eq. (7) is a difference of weight tensors; a number is needed: its norm, scaled to an integer of at least 0.
11. "b_W" is C_cpu b_T where the paper gives no other number; that is a matter of the instance. With it the work limit
    follows from the time limit.
12. Rounding is against the plan: coefficients and overhead up, limits down, transfers up to whole ticks. A tick is the
    time of one work unit on the device, so that work costs no rounding. Units are chosen so that paper instances need
    no rounding of W and M (8 bytes per memory unit; one MAC per sample, ``2 N_b m_b`` MACs per cycle, per work unit).
13. The fleet's choice of one cycle time ("the training time cost of normal devices", Sec. 4.1, in the paper) is
    among the instance's candidates, and its objective is contribution per time: a longer cycle masks less and
    happens less often. (Alternative: the shortest cycle under which every device keeps a share p of every layer; it is
    the largest T of the masks n_i = ceil(p N_i) and needs no search.)
"""

from typing import TYPE_CHECKING

from mapgap.core import Problem, lazily

if TYPE_CHECKING:
    from mapgap.problems.neuron_masking.evaluate import costs
    from mapgap.problems.neuron_masking.instance import (
        MS_PER_HOUR,
        SHARE,
        Device,
        Instance,
        Layer,
        Mask,
        Plan,
        Rate,
    )

_HERE = "mapgap.problems.neuron_masking"
_UNITS = {
    "neurons": "neurons",
    "contribution": "units of contribution",
    "smallest_share": "1/10000",
    "rate": "units of contribution per hour",
}

PROBLEM = Problem(
    name="neuron_masking",
    title="Neurons that stragglers of federated learning keep",
    paper="ELFISH (Xu et al.)",
    sense="max",
    unit=lambda instance: _UNITS[instance.objective],
    instance_type=f"{_HERE}.instance:Instance",
    plan_type=f"{_HERE}.instance:Plan",
    evaluate=f"{_HERE}.evaluate:evaluate",
    gantt=f"{_HERE}.evaluate:gantt",
    diagnose=f"{_HERE}.evaluate:diagnose",
    describe=f"{_HERE}.describe:describe",
    explain=f"{_HERE}.explain:EXPLAINER",
    objectives=("neurons", "contribution", "smallest_share", "rate"),
)

__all__ = [
    "MS_PER_HOUR",
    "PROBLEM",
    "SHARE",
    "Device",
    "Instance",
    "Layer",
    "Mask",
    "Plan",
    "Rate",
    "costs",
]
__getattr__ = lazily(__name__, "instance", "evaluate")
