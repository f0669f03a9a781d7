"""Hybrid pipeline parallelism: training on heterogeneous edge devices as a pipeline of data-parallel groups (Asteroid).

Source: Ye, Zeng, Chu, Xing, Chen, "Asteroid: Resource-Efficient Hybrid Pipeline Parallelism for Collaborative DNN
Training on Heterogeneous Edge Devices", MobiCom 2024, Sections 3.2-3.4 and 5.

**Given** a sequence of ``L`` layers (bytes ``a_l`` behind each, weights ``w_l``), ``N`` devices with time tables
``t_f[d][l](beta)``, ``t_b[d][l](beta)``, memories ``u_d`` and bandwidths ``b_{d,d'}``, and a mini-batch of ``M``
micro-batches of ``B`` samples. **Decide** the stages (intervals of layers), a group of devices per stage and the
shares ``y_d`` of a micro-batch inside each group. **Minimise** the HPP-round latency, Eqs. (4)-(6), under the memory
of Eq. (3).

Closed form
-----------
Steps alternate execution and communication. With ``E_i = Ef_i + Eb_i``, Eqs. (4)-(6) are equal to

    latency = max_i (M E_i + sum_{j<i} E_j) + max_s (Ta_s - sum_{j<s} Eb_j)

because ``Te_s`` is the first term less ``sum_{j<s} E_j`` (docs/methods/hybrid_pipeline.md derives it). The evaluator
computes Eqs. (4)-(6) as printed; the exact methods use the closed form.

Interpretation
--------------
What the paper leaves open is pinned here, and nowhere else.

1.  The dominant step, "with the fewest bubbles", is the one of largest ``M E_i + sum_{j<i} E_j`` (Eq. 11 compares
    exactly these). Ties do not matter: ``Te`` is the same. (Alternative: largest ``E_i`` without alignment.)
2.  Links are half-duplex: a communication step has ``Ef = Eb = ceil(B a_l / b)``, one after the other, with ``b`` the
    smallest bandwidth between the two groups. ``a_l`` counts everything that crosses the cut, residuals included. One
    link carries it, as Eqs. (5) and (6) have no number of links; Sec. 4 ("Stage Replication") sends equal parts from
    every member in front to every member behind. (Alternatives: ``execution.transfers: parallel``, rule 12, which is
    Sec. 4 on a switch: min(members) links carry equal parts; full duplex, which the simulator has besides.)
3.  ``Ta`` of a communication step is 0. AllReduce follows Eq. (5) with the smallest bandwidth inside the group.
4.  Memory (Eq. 3): every member holds weights, gradients and optimizer state of its stage once, and activations of
    its share for ``K_p = min(2 (P - p) - 1, M)`` micro-batches. Demands are rounded up to memory units, capacities
    down; what the operating system takes is not in ``u_d``.
5.  A member with share 0 still holds the weights and joins the AllReduce.
6.  Shares inside a group solve Eq. (7), *nested* in the plan's objective and not free in it: among the minimisers of
    ``max_d (F_d + B_d)`` those of smallest ``Ef + Eb``, then of smallest ``Ef``. This matters because Eq. (6) rewards
    a larger ``Eb`` before an AllReduce: a group that wastes time would look better. A plan with other shares is
    therefore never credited for them: its latency is the larger one of Eqs. (4)-(6) with its own shares and with those
    of Eq. (7) for its cuts and groups (``literal_ticks`` and ``nested_ticks`` in the terms).
    (Alternative: free shares, whose optimum may lie below by this artefact.)
7.  Time tables never fall with more samples; measured ones are made isotone when they are imported. 0 samples take 0.
8.  Algorithm 2 uses every device; ``all_devices`` of the instance says whether that is a rule of the problem or
    whether devices may stay idle.
9.  The micro-batch size is fixed (``micro_batch_sizes`` has one entry) unless the instance allows several; then it is
    a decision, ``M B`` being constant, and every method searches the allowed sizes one after the other.
10. The tick is chosen by the instance; times of layers are rounded once, in the tables, transfers up.
11. Re-planning after a failure (Sec. 3.4): the instance lists the survivors, the layers whose weights each one holds
    (its old stage; the backup of a single-device stage on the first device of the next stage, of the last one on the
    first stage) and the number ``R`` of rounds to come; the objective is ``T_migration + R latency``. Every member of a
    new stage fetches each layer it lacks from the holder with the fastest link to it (lowest index on ties); transfers
    between different pairs of devices are concurrent, those of one pair sequential, and ``T_migration`` is the longest
    of them. Only weights move. Detection of the failure and the time to plan are not part of the objective.
12. ``execution`` says where a plan is executed otherwise, as other planners assume; the defaults are the rules above.
    An AllReduce ``micro_batch`` or ``rotating`` is part of ``E_b``, and ``Ta`` is 0. ``communication: load`` adds c to
    ``Ef`` (and ``Eb``) of the stages on both sides of a cut, whose step then takes no time; all links must be equal.
    ``transfers: parallel`` divides the bytes of a cut among min(members) links of the smallest bandwidth. An AllReduce
    on a shared medium takes m times as long as one whose links all carry bytes at once.
13. Inference: a step has ``E = Ef`` only, and begins a micro-batch when the step in front has finished it, so that the
    latency of M micro-batches is ``sum_i E_i + (M - 1) max_i E_i``. Every member stores one micro-batch. Training with
    ``latency: flow_shop`` counts so, too, with ``E = Ef + Eb``, as Alpa does (Zheng et al., OSDI 2022, Eq. 2); an
    AllReduce at the end of the round has no place in it.
14. The objective ``bottleneck`` is the largest ``Ef + Eb`` of a step, communication included, what a full pipeline
    takes per micro-batch. An AllReduce at the end of the round is no part of a step. Shares are those of rule 6.
15. With a ``graph`` the layers form a graph without cycles, and stages are differences of ideals: sets of layers, each
    layer in one stage, no layer in front of one that it reads. Co-location classes lie in one stage. Layers that a
    type does not support are on no device of it. What is said of layers ``[i, j)`` above holds for sets.
16. The output of a layer is one tensor, whoever reads it. ``a_l`` of a cut is the sum of all tensors that layers on
    both sides know, each once; a tensor crosses every cut between its maker and its last reader, as stages pass on
    what others behind them need. ``communication: tensors`` is the rule of Tarnawski et al. (NeurIPS 2020): every
    stage pays, as part of its load, for each tensor that it makes for other stages or reads from them, once, and for
    none that passes by; stages on ``hosts``, to whose memory tensors go, pay nothing. (Alternative: per edge, so that
    a tensor with several readers costs several times.)
17. Along a topological order a graph is a chain, whose plans are plans of the graph. A method that knows chains only
    plans along one order, and its proofs are about this order.
18. ``medium`` says what transfers share, ``links`` (the default) nothing. On one ``shared`` medium what an AllReduce
    moves goes one after the other (m times as long, rule 12), and the medium is one more step of the pipeline: a
    micro-batch takes it for W, the sum of all E of communication steps (whoever they are charged to) and of every
    AllReduce with every micro-batch. It begins when the first stage has passed its first micro-batch forward and is
    done before that stage's last backward pass, so its aligned step is ``M W + E_0``, and the largest one dominates
    (``(M - 1) W`` beside ``max_i E_i`` in a flow shop, W a step of the bottleneck). AllReduces at the end of the round
    take turns, those of later stages first, as they may begin first. Who waits for whom within a round is not modelled:
    the replay says what that costs. ``ports`` changes nothing: a device's way out carries ``c`` of the cut behind and
    ``c'`` of the one in front per micro-batch, its way in as much, and a half-duplex step already takes the larger of
    2 c and 2 c'; in a ring of an AllReduce every device sends to one and receives from one. (Alternative: an order of
    transfers, event by event, which has no closed form and no bound.)
19. ``latency_ns``: a message takes so long beside its bytes. Between groups it is the largest latency of any pair,
    beside the smallest bandwidth of any pair, once for every transfer (also of parallel ones); an AllReduce of m
    members passes on m-ths of the weights ``factor (m - 1)`` times, each a message. No bytes are no message. Weights
    that move after a failure are long: their latency does not count. On one medium the latency is part of the time
    that it is taken.
"""

from typing import TYPE_CHECKING

from mapgap.core import Problem, lazily

if TYPE_CHECKING:
    from mapgap.problems.hybrid_pipeline.instance import (
        Device,
        DeviceType,
        Execution,
        Graph,
        Instance,
        Layer,
        OldStage,
        Plan,
        Quartiles,
        Replanning,
        Stage,
        Tensor,
    )

_HERE = "mapgap.problems.hybrid_pipeline"
PROBLEM = Problem(
    name="hybrid_pipeline",
    title="Hybrid pipeline parallelism of DNN training on heterogeneous edge devices",
    paper="Asteroid (Ye et al., MobiCom 2024)",
    sense="min",
    unit=lambda instance: f"ticks of {instance.tick_ns} ns",
    instance_type=f"{_HERE}.instance:Instance",
    plan_type=f"{_HERE}.instance:Plan",
    evaluate=f"{_HERE}.evaluate:evaluate",
    describe=f"{_HERE}.describe:describe",
    explain=f"{_HERE}.explain:EXPLAINER",
    clock=f"{_HERE}.clock:CLOCK",
    gantt=f"{_HERE}.gantt:gantt",
    diagnose=f"{_HERE}.evaluate:diagnose",
    interval=f"{_HERE}.measured:interval",
    objectives=f"{_HERE}.instance:OBJECTIVES",
    media=("links", "ports", "shared"),
)

__all__ = [
    "PROBLEM",
    "Device",
    "DeviceType",
    "Execution",
    "Graph",
    "Instance",
    "Layer",
    "OldStage",
    "Plan",
    "Quartiles",
    "Replanning",
    "Stage",
    "Tensor",
]
__getattr__ = lazily(__name__, "instance")
