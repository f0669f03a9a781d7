"""Layer flow: which layers of a language model every node of a cluster holds, such that most tokens flow (Helix).

Source: Mei, Zhuang, Miao, Yang, Jia, Vinayak, "Helix: Serving Large Language Models over Heterogeneous GPUs and Network
via Max-Flow", ASPLOS 2025, Section 4; code, integer programs and placements: github.com/Thesys-lab/Helix-ASPLOS25.

**Given** a model of ``L`` equal layers, nodes with a throughput ``T_i(k)`` when they hold ``k`` layers, and
capacities of the links from the source to nodes, between nodes, and from nodes to the sink. **Decide** the interval
``[s_i, e_i)`` of layers that every node holds. **Maximise** the flow of tokens from source to sink.

A link carries flow only where intervals join:

    source to i    s_i = 0
    i to j         e_i = s_j,  or with partial inference  s_j <= e_i < e_j
    i to sink      e_i = L

A node passes on all that it receives, at most ``T_i(e_i - s_i)``. The value of a placement is the maximum flow of this
network. With partial inference a node that receives tokens in the middle of its interval runs only the rest of it.

Interpretation
--------------
1.  Every node holds at least one layer ("sum of b over k is 1", Table 5); a node that is of no use holds some and gets
    no flow.
2.  ``T_i(k)`` is a table and may be any: the published ones are measured, and that of the L4 for LLaMA 30B rises from
    9 to 10 layers. Holding ``k`` layers always means ``T_i(k)``, never the throughput of fewer or more.
    (Alternative: the field ``table: monotone`` of a compact file, which replaces ``T(k)`` by the least of
    ``T(1..k)``.)
3.  A node of throughput ``T_i(k)`` has it for all tokens alike, with partial inference too: a token that runs a part of
    the interval costs as much as one that runs all of it, as in the program (Table 5).
4.  Flows are whole numbers of units; a unit is the ``scale``-th part of a token per second. Throughputs and capacities
    are rounded to the nearest unit. With whole capacities a whole maximum flow exists, so nothing else is rounded.
5.  Cycles do not occur: along every link with flow ``e`` grows. That the two directions of a link share its bandwidth
    is not asked; no flow needs both (as in the program).
6.  The capacity of a link is bandwidth over bytes per token: of activations between nodes, of a token id at source and
    sink. The limit of a network card is inside ``T_i`` (as in the program).
"""

from typing import TYPE_CHECKING

from mapgap.core import Problem, lazily

if TYPE_CHECKING:
    from mapgap.problems.layer_flow.evaluate import joins
    from mapgap.problems.layer_flow.instance import Instance, Node, Plan

_HERE = "mapgap.problems.layer_flow"

PROBLEM = Problem(
    name="layer_flow",
    title="Layers of a language model on unequal nodes",
    paper="Helix (Mei et al.)",
    sense="max",
    unit=lambda instance: f"1/{instance.scale} token/s",
    instance_type=f"{_HERE}.instance:Instance",
    plan_type=f"{_HERE}.instance:Plan",
    evaluate=f"{_HERE}.evaluate:evaluate",
    gantt=f"{_HERE}.evaluate:gantt",
    diagnose=f"{_HERE}.evaluate:diagnose",
    describe=f"{_HERE}.describe:describe",
    explain=f"{_HERE}.explain:EXPLAINER",
    always_feasible=True,
)

__all__ = ["PROBLEM", "Instance", "Node", "Plan", "joins"]
__getattr__ = lazily(__name__, "instance", "evaluate")
