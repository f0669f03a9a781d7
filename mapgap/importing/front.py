"""Prompt or token: the plans of a language model of which each is best for some length of the answer.

A request takes ``prefill + N decode`` for an answer of N tokens. The plans that are best for some N are the corners of
the lower hull of all pairs (prefill, decode): the supported part of their Pareto front. Plans that are best for no N,
but are not worse in both than another one, are not looked for.

Two plans P and Q, best for less and for more tokens, are equal at N* = (p_Q - p_P) / (d_P - d_Q). What a third one
gains on the better of the two is concave in N with its largest value at N*, so it gains nothing at any whole N if it
gains nothing at the whole numbers around N*. Both are asked for, until nothing is gained; every answer is a proven
optimum, to the tick of its instance.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mapgap.core import InstanceBase

Make = Callable[[int | None], InstanceBase]
"""The instance of a request of so many tokens; 0: the prompt alone, ``None``: a token alone."""
Solve = Callable[[InstanceBase], Any]
"""A proven optimal plan; ``None`` where there is no plan. Raises where nothing is proven."""
Value = Callable[[InstanceBase, Any], int]
"""What a plan takes on an instance, nanoseconds."""


@dataclass(frozen=True)
class Point:
    """A plan of the front.

    Attributes
    ----------
    prefill, decode : int
        Nanoseconds of the prompt, and of a token.
    plan : PlanBase
    """

    prefill: int
    decode: int
    plan: Any

    def request(self, tokens: int) -> int:
        """Nanoseconds of the prompt and of so many tokens."""
        return self.prefill + tokens * self.decode


@dataclass(frozen=True)
class Piece:
    """The whole numbers of tokens for which a plan is best; ``last`` is ``None`` where there is no end."""

    first: int
    last: int | None
    point: Point


def front(make: Make, solve: Solve, value: Value) -> list[Piece]:
    """All plans that are best for some whole number of tokens, from 0 on; empty where there is no plan."""
    prompt, token = make(0), make(None)

    def point(instance: InstanceBase) -> Point | None:
        plan = solve(instance)
        return None if plan is None else Point(value(prompt, plan), value(token, plan), plan)

    short, long = point(prompt), point(token)
    if short is None or long is None:
        return []
    found = [short, *_between(short, long, make, point), long]
    return _pieces(found)


def _between(one: Point, other: Point, make: Make, point: Callable[[InstanceBase], Point | None]) -> list[Point]:
    """Points beyond the line of two, by falling time of a token."""
    if one.decode <= other.decode or one.prefill >= other.prefill:
        return []
    near = (other.prefill - one.prefill) // (one.decode - other.decode)
    for tokens in (near, near + 1):
        if tokens == 0:
            continue
        made = point(make(tokens))
        if made is not None and made.request(tokens) < min(one.request(tokens), other.request(tokens)):
            return [*_between(one, made, make, point), made, *_between(made, other, make, point)]
    return []


def _pieces(points: list[Point]) -> list[Piece]:
    """Where each is best; where two are equal, the one of the shorter token."""
    found = list[Piece]()
    for each in sorted(set(points), key=lambda each: (-each.decode, each.prefill)):
        while found:
            last = found[-1]
            if each.decode == last.point.decode:
                break
            first = max(0, -((last.point.prefill - each.prefill) // (last.point.decode - each.decode)))
            if first > last.first:
                found[-1] = Piece(last.first, first - 1, last.point)
                found.append(Piece(first, None, each))
                break
            found.pop()
        else:
            found.append(Piece(0, None, each))
    return found
