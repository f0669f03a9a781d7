"""``mapgap import … --front``: the plans of a language model that are best for some length of the answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import mapgap
from mapgap.catalogue import registry
from mapgap.cli.output import print_json, table
from mapgap.core import InputError, InstanceBase, PlanBase, Status, quantity
from mapgap.core.workload import Settings
from mapgap.importing.cluster import Cluster
from mapgap.importing.front import Piece, front

PROBLEM = "hybrid_pipeline"


def show(
    read: Sequence[Path],
    files: Sequence[Path],
    boards: Cluster | None,
    given: Mapping[str, Any],
    time_limit: float,
    confined: Callable[[Sequence[Path], Callable[[], Any]], Any],
    *,
    as_json: bool,
) -> None:
    """Solve for all lengths that matter and print the pieces.

    Parameters
    ----------
    read, files : sequence of Path
        Everything that is read, and the model.
    time_limit : float
        Seconds of one solution.
    confined : callable
        Does work on foreign files in a process with limits.

    Raises
    ------
    InputError
        What is wrong with a file or a setting, or what was not proven in time.
    """
    for name in ("phase", "tokens"):
        if name in given:
            raise InputError(f"--set {name}: expected no such setting beside --front, which goes over all of them")
    problem = registry.problems()[PROBLEM]

    @cache
    def make(tokens: int | None) -> InstanceBase:
        phase = {None: {"phase": "decode"}, 0: {"phase": "prefill"}}.get(tokens, {"phase": "request", "tokens": tokens})
        made: InstanceBase = problem.instance_type.model_validate_json(confined(read, lambda: _json(phase)))
        return made

    def _json(phase: Mapping[str, Any]) -> str:
        from mapgap.importing.assemble import assemble
        from mapgap.importing.recognise import read as read_files

        settings = Settings({**(boards.settings if boards else {}), **given, **phase})
        workload = assemble(read_files(files, settings), boards, settings).workload
        return registry.library(PROBLEM).imported(workload, settings).model_dump_json(by_alias=True)

    def solve(instance: InstanceBase) -> PlanBase | None:
        found = mapgap.solve(instance, time_limit=time_limit)
        if found.status not in (Status.OPTIMAL, Status.INFEASIBLE):
            raise InputError(f"{instance.name}: expected a proof within {time_limit:g} s, found {found.status}")
        return found.plan

    def value(instance: Any, plan: PlanBase) -> int:
        ticks = problem.evaluate(instance, plan).objective
        assert ticks is not None
        return int(ticks) * int(instance.tick_ns)

    _print(front(make, solve, value), make(None), as_json=as_json)


def _print(pieces: Sequence[Piece], instance: InstanceBase, *, as_json: bool) -> None:
    if as_json:
        rows = [{"first": p.first, "last": p.last, **_data(p)} for p in pieces]
        print_json({"instance": instance.name, "front": rows})
        return
    problem = registry.problems()[PROBLEM]
    lines = []
    for piece in pieces:
        assert problem.describe is not None
        plan = problem.describe(instance, piece.point.plan)
        boards, layers = plan.columns.index("boards (samples)"), plan.columns.index("layers")
        told = "; ".join(f"{row[boards]}: {row[layers]}" for row in plan.rows)
        span = f"{piece.first:,}" + (
            "" if piece.last == piece.first else f" to {piece.last:,}" if piece.last else " on"
        )
        times = (quantity(1e-9 * each, "s") for each in (piece.point.prefill, piece.point.decode))
        lines.append((span, *times, told))
    columns = ("tokens of the answer", "prompt", "token", "plan")
    table("best for an answer of so many tokens", columns, lines, right=columns[1:3])


def _data(piece: Piece) -> dict[str, Any]:
    point = piece.point
    return {"prefill_ns": point.prefill, "token_ns": point.decode, "plan": point.plan.to_json()}
