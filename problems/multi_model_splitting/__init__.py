"""Multi-model splitting: several end-to-end pipelines on devices with tiny AI accelerators (Synergy).

Source: Gong, Jang, Acer, Kawsar, Min, "Collaborative Inference via Dynamic Composition of Tiny AI Accelerators on
MCUs", arXiv 2401.08637, Sections 3.4, 4.2, 5 and 7.

**Given** pipelines (source requirement, model with layers ``0..L-1``, target requirement) and devices with the weight
memory, bias memory and layer limit of their accelerator. **Decide** for every pipeline a source device, a target
device, and contiguous segments of its layers on distinct devices. **Minimise** the cycle time, which is the largest
load of any computation unit of any device (``throughput``), or the sum of the end-to-end latencies (``latency``).

Tasks of a pipeline (Sec. 5.4.1)
--------------------------------
Boundary ``b = 0..L`` of a model is the tensor before layer ``b``; 0 is the input and ``L`` the output.

====================  =====================================================  ===========
task                  when                                                   unit
====================  =====================================================  ===========
(1) sensing           once, on the source device                             sensor
(2) reception         of a boundary from another device                      radio
(3) loading           of the first boundary of a segment                     mcu
(4) inference         of the layers of a segment                             accelerator
(5) unloading         of the last boundary of a segment                      mcu
(6) transmission      of a boundary to another device                        radio
====================  =====================================================  ===========

Every task has an integer duration per (pipeline, layer or boundary, device), so measured profiles can be brought.

Interpretation
--------------
What the paper leaves open is pinned here, and nowhere else.

1.  *Segments* of one pipeline lie on distinct devices: a pipeline never returns to a device it left, and two adjacent
    segments on one device are one segment. Every segment has at least one layer. (Alternative: revisits.)
2.  *Loading and unloading* happen for every segment, also when the data come from a sensor of the same device: "we add
    the task of data loading to and unloading from the input memory of an AI accelerator when the model task is
    involved" (Sec. 5.1).
3.  *Transfers* occur exactly where consecutive tasks (sensing, segments, target) lie on different devices (Sec. 5.1),
    one transmission and one reception each. The target task itself costs nothing; it is none of the six types.
4.  *Units*: each device has a sensor, an MCU, an accelerator and a radio, "all tasks in parallel across independent
    computation units" (Sec. 5.4.2). The radio is half duplex: transmissions and receptions add up on one unit.
    (Alternatives: sensing on the MCU; two radios.) The durations of one segment are the sums over its layers.
5.  *Throughput*: one execution cycle finishes every pipeline once; its time is the largest load of a unit and
    throughput is pipelines / cycle time (Sec. 5.4.2). The integer objective is the cycle time in ticks.
6.  *Latency*: of one pipeline the sum of its tasks, transmission and reception both counted, without waiting for other
    pipelines; the objective is the *sum* over pipelines in ticks, the term ``mean_latency_s`` the average of Fig. 10.
7.  *Limits* (Sec. 5.2): "total weight memory, bias memory, and number of layers" over *all* pipelines' segments on a
    device must not exceed its capacity; the paper's "below" is read as "at most". Every layer counts as one. Each
    exceeded limit is one violation (out of resource, OOR), named ``weights``, ``bias`` or ``layers``, at the device.
8.  *Requirements* (Sec. 4.2): a designated device or a type of sensor (interface); a requirement without either accepts
    every device ("any" in Sec. 7.3.3). A designated device that is absent leaves the pipeline without a plan.
9.  *Operation sharing* (Sec. 5.2) is an option of the instance, off by default. If on, equal tasks are merged into one:
    tasks are equal if they do the same on the same device and all their inputs are equal tasks. Sensing is equal on
    the same device for pipelines of the same ``signal`` (empty: never). A transfer of equal data is equal only
    between the same two devices. Loading, inference and unloading are equal for the same segment of the same ``model``
    on equal data; the layers of a merged segment occupy memory once. A merged task loads its unit once and still
    counts in the latency of each pipeline. (Alternative: also share the weights of equal segments on different data,
    or segments of which one is a part of the other.)
10. *Bytes of a boundary*: what the instance says. The paper's Out of the last layer, or all live tensors at the cut if
    residual branches cross it, is a choice of whoever builds the instance.
11. *Dynamics* (Sec. 5: "or detects changes in the availability of devices"): planning starts anew with the devices and
    pipelines that are there. An instance may say what is ``deployed``; a layer that stays on its device need not be
    written again. ``churn`` counts the others. It is reported and, by methods that care, a second objective; the
    paper does not price it.
12. Devices are *numbered* by their position; methods that break ties by number are deterministic.
13. *Medium*: what transmissions share. With ``links``, the default, and with ``ports`` only their radios (rule 4),
    which are the ports of the devices, half duplex. One ``shared`` medium (a radio channel) is one more unit, which
    every transmission loads for its ticks, merged ones once; a cycle is no shorter than its load. Receptions load
    radios only: a receiver has what was sent, and takes its own time to hand it on. Latency does not change, since it
    counts no waiting (rule 6). Who waits for whom inside a cycle is not modelled, as for any unit.
14. *Latency*: a message from i to j takes ``latency_ns[i][j]``, in ticks rounded up, beside its bytes. Each transfer of
    rule 3 is one message, unless its boundary has no bytes. The time is part of the *transmission*: it loads the radio
    of the sender, counts once in the latency of the pipeline (rule 6), and takes the one medium where there is one.
    Transfers are merged between the same two devices only (rule 9), and with them their latency. (Alternatives: both
    radios are taken; or none, so that only the latency objective sees it.)
"""

from typing import TYPE_CHECKING

from mapgap.core import Problem, lazily

if TYPE_CHECKING:
    from mapgap.problems.multi_model_splitting.dynamic import Churn, after, churn, late_between, on_devices, part
    from mapgap.problems.multi_model_splitting.instance import (
        OBJECTIVES,
        RESOURCES,
        UNITS,
        Boundary,
        Deployed,
        Device,
        Instance,
        Layer,
        Pipeline,
        PipelinePlan,
        Plan,
        Requirement,
        Segment,
    )

_HERE = "mapgap.problems.multi_model_splitting"
PROBLEM = Problem(
    name="multi_model_splitting",
    title="Joint splitting of several models over tiny AI accelerators",
    paper="Synergy (Gong et al.)",
    sense="min",
    unit=lambda instance: f"ticks of {instance.tick_ns} ns",
    instance_type=f"{_HERE}.instance:Instance",
    plan_type=f"{_HERE}.instance:Plan",
    evaluate=f"{_HERE}.evaluate:evaluate",
    gantt=f"{_HERE}.gantt:gantt",
    diagnose=f"{_HERE}.diagnose:diagnose",
    describe=f"{_HERE}.describe:describe",
    explain=f"{_HERE}.explain:EXPLAINER",
    clock=f"{_HERE}.clock:CLOCK",
    objectives=f"{_HERE}.instance:OBJECTIVES",
    media=("links", "ports", "shared"),
)

__all__ = [
    "OBJECTIVES",
    "PROBLEM",
    "RESOURCES",
    "UNITS",
    "Boundary",
    "Churn",
    "Deployed",
    "Device",
    "Instance",
    "Layer",
    "Pipeline",
    "PipelinePlan",
    "Plan",
    "Requirement",
    "Segment",
    "after",
    "churn",
    "late_between",
    "on_devices",
    "part",
]
__getattr__ = lazily(__name__, "instance", "dynamic")
