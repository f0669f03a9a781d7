"""Run records for tests: only what a test is about has to be said."""

from dataclasses import replace

from mapgap.records.record import RunRecord, relative


def record(instance="i", method="m", objective=None, bound=None, status=None, **more):
    """A finished run of 10 s; FEASIBLE with an objective, OPTIMAL if the bound meets it, else UNKNOWN.

    The instance's name is its content hash as well.
    """
    if status is None:
        status = "UNKNOWN" if objective is None else "OPTIMAL" if objective == bound else "FEASIBLE"
    values = {
        "instance_hash": instance,
        "problem": "p",
        "sense": "min",
        "kind": "baseline",
        "stop": "done",
        "time_limit_s": 10.0,
        "wall_s": 1.0,
        "violations": [],
        "gap": relative(objective, bound, -1 if more.get("sense") == "max" else 1),
        **more,
    }
    return RunRecord(instance=instance, method=method, objective=objective, bound=bound, status=status, **values)


def changed(run, **changes):
    """The record with other values of some fields."""
    return replace(run, **changes)
