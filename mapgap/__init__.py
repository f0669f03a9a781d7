"""mapgap: how far from optimal are the published mappings of neural networks onto heterogeneous edge devices?

>>> import mapgap
>>> mapgap.problems()                                        # six problems; then methods(problem), instances(problem)
>>> instance = mapgap.load("asteroid_b_mobilenetv2_100mbps")  # a library name, or the path of a file of your own
>>> result = mapgap.solve(instance)                          # the strongest exact method, in a process of its own
>>> result.objective, result.bound, result.gap, result.plan  # every plan is verified, every bound is an integer
>>> mapgap.solve(instance, "asteroid", time_limit=10).gap    # to the best bound that any method has proven
>>> mapgap.compare(instance, ["asteroid", "label_dp"])       # a table in a notebook; .best, .bound, .to_frame()
>>> mapgap.check(instance, result.plan)                      # every rule that a plan breaks
>>> mapgap.explain(instance)                                 # what binds a plan, and which decisions cost how much
>>> mapgap.export(instance, "model.lp")                      # the integer program, for another solver

The guide is docs/python.md. Importing the package is cheap: what a name needs is imported when the name is used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mapgap.core import (
        Budget,
        Evaluation,
        InputError,
        MapgapError,
        Method,
        PlanError,
        SolveResult,
        Status,
        Stop,
        Violation,
    )
    from mapgap.interface.comparison import Comparison, Interrupted
    from mapgap.interface.explaining import Explained, explain
    from mapgap.interface.functions import (
        check,
        compare,
        evaluate,
        export,
        instances,
        load,
        methods,
        problems,
        read_solution,
        solve,
    )
    from mapgap.interface.results import (
        Check,
        ContradictionWarning,
        FailedRunWarning,
        Result,
        RunError,
    )

__version__ = "1.0.0"

#: Where each public name lives. ``problems`` and ``instances`` are packages that can be called.
_HOMES = {
    "mapgap.core": (
        *("Budget", "Evaluation", "InputError", "MapgapError", "Method", "PlanError", "SolveResult", "Status", "Stop"),
        "Violation",
    ),
    "mapgap.interface.comparison": ("Comparison", "Interrupted"),
    "mapgap.interface.explaining": ("Explained", "explain"),
    "mapgap.interface.functions": (
        "check",
        "compare",
        "evaluate",
        "export",
        "load",
        "methods",
        "read_solution",
        "solve",
    ),
    "mapgap.interface.results": (*("Check", "ContradictionWarning", "FailedRunWarning", "Result", "RunError"),),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Budget",
    "Check",
    "Comparison",
    "ContradictionWarning",
    "Evaluation",
    "Explained",
    "FailedRunWarning",
    "InputError",
    "Interrupted",
    "MapgapError",
    "Method",
    "PlanError",
    "Result",
    "RunError",
    "SolveResult",
    "Status",
    "Stop",
    "Violation",
    "__version__",
    "check",
    "compare",
    "evaluate",
    "explain",
    "export",
    "instances",
    "load",
    "methods",
    "problems",
    "read_solution",
    "solve",
]


def __getattr__(name: str) -> Any:
    if name in ("problems", "instances"):
        return import_module(f"mapgap.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'mapgap' has no attribute {name!r}")
    found = getattr(import_module(_HOME[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*__all__, *globals()})
