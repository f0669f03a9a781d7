"""Proofs for :mod:`mapgap.problems.suboperation_mapping.certificate`.

One tree for all ratios; or one for each box of ratios, which is divided where it has none, and for each ratio that is
left alone. In a box the tree branches on the places of fused operations, as :mod:`box_search` does. Programs in which
equal accelerators share variables are small: they are asked first and of every box, those that tell some apart only of
boxes of few ratios.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from itertools import islice
from typing import Any

from mapgap.core import Budget
from mapgap.evidence.check import Box, Program
from mapgap.formulations.suboperation_mapping.boxes import Cutter, few_ratios, roots, single
from mapgap.formulations.suboperation_mapping.located_frame import WHOLE, Frame
from mapgap.formulations.suboperation_mapping.located_frame import Box as Groups
from mapgap.formulations.suboperation_mapping.params import Certificate as Params
from mapgap.problems.suboperation_mapping import Instance
from mapgap.problems.suboperation_mapping.certificate import APART, ORDER, partitions
from mapgap.problems.suboperation_mapping.certificate.lengths import box
from mapgap.problems.suboperation_mapping.certificate.located import Located
from mapgap.problems.suboperation_mapping.certificate.times import Writer
from mapgap.solvers.refute import refute
from mapgap.solvers.shave import Shaving

FRACTION, OVERLAP = 1e-6, 1e-3  #: what counts as whole, and as the same time, in a point in floating point


def prove(
    instance: dict[str, Any], bound: int, budget: Budget, params: Params = Params()
) -> dict[str, list[Any]] | None:
    """The proof that no plan has a makespan below ``bound``; ``None`` if none is found within the budget."""
    tree = _refuted(written(instance, bound, "all"), budget, 1)
    if tree is not None:
        return {"all": tree}
    batch, parts = instance["batch"], len(instance["accelerators"])
    if flat(instance):
        ratios = list(islice(partitions(batch, batch, parts), params.ratios + 1))
        return _alone(instance, bound, budget, params, ratios) if len(ratios) <= params.ratios else None
    cutter = Cutter(Frame(Instance.model_validate_json(json.dumps(instance))))
    proof: dict[str, list[Any]] = {}
    waiting = roots(batch, parts)[::-1]
    while waiting:
        groups = waiting.pop()
        name, few = named(groups), few_ratios(groups, batch, parts, params.narrow)
        model = written(instance, bound, name)
        alike = max(model.members) > 1
        tree = _refuted(model, budget, 1 if alike else params.places if few is None else params.boxes)
        if tree is None and alike and few is not None:
            name += APART
            tree = _refuted(written(instance, bound, name), budget, params.boxes)
        if tree is not None:
            proof[name] = tree
        elif not single(groups):
            waiting += cutter.split(groups)
        elif own := _alone(instance, bound, budget, params, [tuple(g.low for g in groups for _ in range(g.number))]):
            proof |= own
        else:
            return None
    return proof


def _alone(
    instance: dict[str, Any], bound: int, budget: Budget, params: Params, ratios: Sequence[tuple[int, ...]]
) -> dict[str, list[Any]] | None:
    """A tree for every ratio; ``None`` if there is none for some."""
    proof: dict[str, list[Any]] = {}
    for ratio in ratios:
        if len(instance["accelerators"]) ** len(ratio) > params.configurations:
            return None
        for order in ("", ORDER):
            name = ",".join(map(str, ratio)) + order
            tree = _refuted(written(instance, bound, name), budget, 1 << 30 if order else params.boxes)
            if tree is not None:
                proof[name] = tree
                break
        else:
            return None
    return proof or None


def _refuted(model: Writer, budget: Budget, boxes: int) -> list[list[Any]] | None:
    """A tree that branches on places, then on orders of operations that overlap."""
    program = model.program
    whole, scaled = Box(program.lower[:], program.upper[:], []), isinstance(model, Located)
    orders = {j for pair in model.orders.values() for j in pair}
    return refute(program, whole, budget, partial(promising, model), boxes, scaled=scaled, late=orders).proof


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
