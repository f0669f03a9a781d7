"""Least sums over the moves of all states of a step, of a chain; part of the writer, standard library only.

There are millions of them for each leaf of a proof, so none is taken alone: of states with as many moves all first
moves are summed up, then all second ones, and so on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import add, itemgetter
from typing import Any

from .chain_costs import Label

Pick = Callable[[Sequence[int]], Sequence[int]]


def picked(those: list[int]) -> Pick:
    """The entries of a list with these numbers."""
    if len(those) == 1:
        return lambda row: (row[those[0]],)
    found: Any = itemgetter(*those)
    return found  # type: ignore[no-any-return]


class Sums:
    """``moves`` has those of each state: which one comes after it, and what it adds."""

    def __init__(self, moves: Sequence[Sequence[tuple[int, Label]]]) -> None:
        numbers: dict[Label, int] = {}
        alike: dict[int, list[int]] = {}
        for state, those in enumerate(moves):
            alike.setdefault(len(those), []).append(state)
        self.count = len(moves)
        self.columns: list[tuple[list[int], list[tuple[Pick, Pick]]]] = []
        for count, states in alike.items():
            columns = [[moves[state][j] for state in states] for j in range(count)]
            costs = [[numbers.setdefault(cost, len(numbers)) for _, cost in column] for column in columns]
            to = [picked([after for after, _ in column]) for column in columns]
            self.columns.append((states, [*zip(to, map(picked, costs), strict=True)]))
        self.different = len(numbers)
        self.costs = [*zip(*numbers, strict=True)]  # each number of all of them

    def least(self, weights: Label, after: Sequence[int], none: int) -> list[int]:
        """Of each state what is least of its moves, by weights, and of what comes after; ``none`` without a move."""
        prices = [0] * self.different
        for w, numbers in zip(weights, self.costs, strict=False):
            if w:
                prices = [*map(add, prices, map(w.__mul__, numbers))]
        found = [none] * self.count
        for states, columns in self.columns:
            sums = [map(add, to(after), cost(prices)) for to, cost in columns]
            if sums:
                for state, value in zip(states, map(min, *sums) if len(sums) > 1 else sums[0], strict=True):
                    found[state] = value
        return found
