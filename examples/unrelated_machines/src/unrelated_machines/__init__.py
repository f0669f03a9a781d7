"""Jobs on unrelated machines, R||Cmax: which machine does which job, so that all are done early.

**Given** jobs j, machines i, and the time ``p[i, j]`` of every job on every machine; a machine may be unable to do a
job. **Decide** the machine of every job. **Minimise** the makespan, the largest total time of a machine.

Source: Graham, Lawler, Lenstra, Rinnooy Kan, "Optimization and approximation in deterministic sequencing and
scheduling: a survey", Annals of Discrete Mathematics 5 (1979), 287-326. The problem is NP-hard for two equal machines.
"""

from mapgap.core import Method, Problem
from unrelated_machines.evaluate import diagnose, evaluate, gantt
from unrelated_machines.instance import Instance, Plan

PROBLEM = Problem(
    name="unrelated_machines",
    title="Jobs on unrelated machines",
    paper="R||Cmax (Graham et al.)",
    sense="min",
    unit=lambda instance: f"ticks of {instance.tick_ns} ns",
    instance_type=Instance,
    plan_type=Plan,
    evaluate=evaluate,
    gantt=gantt,
    diagnose=diagnose,
    library="unrelated_machines.library:LIBRARY",
)

METHODS = [
    Method(
        "cpsat",
        "unrelated_machines",
        kind="exact",
        reference="assignment model, CP-SAT",
        run="unrelated_machines.cpsat:run",
        summary="one Boolean per machine and job",
        rank=1,
        engines=("CP-SAT",),
        models="unrelated_machines.cpsat:models",
    ),
    Method(
        "mip",
        "unrelated_machines",
        kind="exact",
        reference="assignment model, HiGHS",
        run="unrelated_machines.mip:run",
        summary="one binary per machine and job",
        engines=("HiGHS",),
        models="unrelated_machines.mip:models",
    ),
    Method(
        "enumerate",
        "unrelated_machines",
        kind="exact",
        reference="brute force",
        run="unrelated_machines.enumerate:run",
        summary="every plan of a tiny instance",
        rank=-1,
        engines=("enumeration",),
    ),
    Method(
        "load_bound",
        "unrelated_machines",
        kind="bound",
        reference="longest job and mean load, every job where it is fastest",
        run="unrelated_machines.load_bound:run",
        summary="two sums; no solver",
    ),
    Method(
        "min_min",
        "unrelated_machines",
        kind="published",
        reference="Ibarra and Kim, J. ACM 24 (1977), 280-289",
        run="unrelated_machines.min_min:run",
        summary="next is the job that can end first",
    ),
    Method(
        "fastest_machine",
        "unrelated_machines",
        kind="baseline",
        reference="every job for itself",
        run="unrelated_machines.fastest_machine:run",
        summary="every job on the machine that is fastest for it",
    ),
]
