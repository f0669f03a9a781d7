"""Accelerators as machines of a ratio's program: part of the writer, standard library only.

Operations of an accelerator do not overlap, each takes its load there, and ends before what reads from it starts.
"""

from __future__ import annotations

from typing import Any


def machines(writer: Any) -> list[tuple[int, list[Any]]]:
    """By accelerator the makespan and the tasks, as a program of the checker has them."""
    listed = writer.operations
    after = {o: [writer.start[v] for v in listed if o in dict(writer.before[v])] for o in listed}
    return [
        (
            writer.last,
            [(writer.start[o], writer.load[o][a], writer.x[o][a], writer.compute(o, a), after[o]) for o in listed],
        )
        for a in writer.places
    ]
