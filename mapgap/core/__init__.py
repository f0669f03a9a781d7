"""The central types: what a problem, a plan, a method and the result of a run are.

Everything an optimiser sees is an integer in units that the instance states; a model's objective and the
evaluator's are therefore *equal*, never merely close. Nothing here knows any particular
problem or imports a solver library.

What is proven (:class:`Status`) and why a run ended (:class:`Stop`) are separate facts: a run that hits its
time limit is never OPTIMAL, and a missing plan or bound is ``None``, never ``inf`` or 0.
"""

from mapgap.core.clock import Clock, Move, PlannedModel, PlannedStage, Quarters, Script, Task
from mapgap.core.data import (
    ACTIVITY_LIMIT,
    BACKWARD_ASSUMED,
    LARGEST,
    MOST_DEVICES,
    MOST_SAMPLES,
    SUM_LIMIT,
    Case,
    CompactBase,
    Frozen,
    InstanceBase,
    PlanBase,
    latency_findings,
)
from mapgap.core.declarations import Kind, Library, Method, Problem, Relation, Sense, methods_of
from mapgap.core.errors import Finding, InputError, Location, MapgapError, PlanError, dotted, printable, short, suggest
from mapgap.core.explaining import (
    Binding,
    Exchange,
    Explainer,
    GanttBar,
    GanttLane,
    PlanTable,
    Preferred,
    plainly,
    quantity,
    relaxed,
)
from mapgap.core.params import Params
from mapgap.core.references import CallablePackage, Reference, Referred, lazily, resolve
from mapgap.core.results import (
    CONFIRMED,
    DISTRUSTED,
    RECOMPUTED,
    UNCONFIRMED,
    Budget,
    Certificate,
    Evaluation,
    OutOfTime,
    SolveResult,
    Status,
    Stop,
    TracePoint,
    Violation,
)
from mapgap.core.start import read_start

__all__ = [
    "ACTIVITY_LIMIT",
    "BACKWARD_ASSUMED",
    "CONFIRMED",
    "DISTRUSTED",
    "LARGEST",
    "MOST_DEVICES",
    "MOST_SAMPLES",
    "RECOMPUTED",
    "SUM_LIMIT",
    "UNCONFIRMED",
    "Binding",
    "Budget",
    "CallablePackage",
    "Case",
    "Certificate",
    "Clock",
    "CompactBase",
    "Evaluation",
    "Exchange",
    "Explainer",
    "Finding",
    "Frozen",
    "GanttBar",
    "GanttLane",
    "InputError",
    "InstanceBase",
    "Kind",
    "Library",
    "Location",
    "MapgapError",
    "Method",
    "Move",
    "OutOfTime",
    "Params",
    "PlanBase",
    "PlanError",
    "PlanTable",
    "PlannedModel",
    "PlannedStage",
    "Preferred",
    "Problem",
    "Quarters",
    "Reference",
    "Referred",
    "Relation",
    "Script",
    "Sense",
    "SolveResult",
    "Status",
    "Stop",
    "Task",
    "TracePoint",
    "Violation",
    "dotted",
    "latency_findings",
    "lazily",
    "methods_of",
    "plainly",
    "printable",
    "quantity",
    "read_start",
    "relaxed",
    "resolve",
    "short",
    "suggest",
]
