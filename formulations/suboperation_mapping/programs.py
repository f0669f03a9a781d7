"""Programs that a certificate names (:mod:`mapgap.problems.suboperation_mapping.certificate`), and what to branch on.

One has all ratios, one those of a box, one a single ratio, with or without the orders of its operations. In those of
boxes equal accelerators share variables, or are told apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from mapgap.core import Budget
from mapgap.evidence.check import Box, Program
from mapgap.formulations.suboperation_mapping.located_frame import WHOLE
from mapgap.formulations.suboperation_mapping.located_frame import Box as Groups
from mapgap.formulations.suboperation_mapping.params import Certificate as Params
from mapgap.problems.suboperation_mapping.certificate import APART, ORDER
from mapgap.problems.suboperation_mapping.certificate.lengths import box
from mapgap.problems.suboperation_mapping.certificate.located import Located
from mapgap.problems.suboperation_mapping.certificate.times import Writer
from mapgap.solvers.refute import FRACTION
from mapgap.solvers.shave import Shaving

OVERLAP = 1e-3  #: ticks that count as the same time in a point in floating point


def shaving(model: Writer, budget: Budget, params: Params = Params()) -> Shaving:
    """The search for steps that refute the program of a ratio."""
    program, least = model.program, model.most // params.cut + 1
    return Shaving(program, Box(program.lower[:], program.upper[:], []), budget, partial(promising, model), least)


def flat(instance: dict[str, Any]) -> bool:
    """Whether nothing is fused, so that nothing of a box has a place."""
    return all(layer["kind"] == "split" for layer in instance["layers"])


def named(groups: Groups) -> str:
    """The name of the tree of a box."""
    return ",".join(f"{g.low}-{g.high}x{g.number}" for g in groups)


def written(instance: dict[str, Any], bound: int, name: str) -> Writer:
    """The program whose tree has this name."""
    if "x" in name:
        return Located(instance, bound, Program(), box(name), name.endswith(APART))
    ratio = None if name == "all" else tuple(map(int, name.removesuffix(ORDER).split(",")))
    return Writer(instance, bound, Program(), ratio, name.endswith(ORDER))


def promising(model: Writer, box: Box, point: Sequence[float]) -> list[int]:
    """Open choices, the one to branch on first: places, then orders of operations that overlap."""
    places = [j for x in model.x.values() for j in x]
    if not point:
        orders = {j for pair in model.orders.values() for j in pair}
        return [j for j in (*places, *sorted(orders)) if box.lower[j] < box.upper[j]]
    if isinstance(model, Located):
        return _loose(model, box, point)
    away = {j: abs(point[j] - round(point[j])) for j in places if box.lower[j] < box.upper[j]}
    split = [j for j in away if away[j] > FRACTION]
    return sorted(split, key=lambda j: -away[j]) if split else _overlapping(model, box, point)


def _loose(written: Located, box: Box, point: Sequence[float]) -> list[int]:
    """The place of a fused operation that lies here and there, as far as can be from those that have one."""
    listed = list(written.x.values())
    placed = [k for k, x in enumerate(listed) if any(box.lower[j] for j in x)] or [-1, len(listed)]
    open_ones = {k: max(x, key=lambda j: point[j]) for k, x in enumerate(listed)}
    split = [k for k, j in open_ones.items() if point[j] < WHOLE and box.lower[j] < box.upper[j]]
    far = max(split, key=lambda k: (min(abs(k - p) for p in placed), -point[open_ones[k]]), default=None)
    return [] if far is None else [open_ones[far]]


def _overlapping(written: Writer, box: Box, point: Sequence[float]) -> list[int]:
    """Open orders of operations that run on one accelerator at one time, the longest time first."""
    place = {o: max(written.places, key=lambda a: point[x[a]]) for o, x in written.x.items()}
    begin = {o: point[j] for o, j in written.start.items()}
    end = {o: begin[o] + sum(point[j] for j in written.load[o]) for o in begin}
    found = []
    for (o, p), (first, _) in written.orders.items():  # the second one follows from the first
        time = min(end[o], end[p]) - max(begin[o], begin[p])
        if place[o] == place[p] and time > OVERLAP and box.lower[first] < box.upper[first]:
            found.append((-time, first))
    return [j for _, j in sorted(found)]
