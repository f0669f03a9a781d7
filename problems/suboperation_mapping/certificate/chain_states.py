"""The states of a chain that can be reached; see :mod:`~.chain`. Part of the writer, standard library only."""

from __future__ import annotations

from typing import Any

from .chain_costs import State
from .chain_moves import Moves
from .chain_shares import CHAIN, Limits, Sizes
from .chain_sums import Sums


class States(Moves):
    """Lists of states, and least sums over the moves from one to another."""

    def __init__(
        self, instance: dict[str, Any], ratio: Sizes, kind: str = CHAIN, most: Sizes = (), out: Limits = ()
    ) -> None:
        super().__init__(instance, ratio, kind, most, out)
        self.lists: list[tuple[State, ...]] = [(self.origin,)]
        self.listed = {self.lists[0]: 0}  # their numbers
        self.reached, self.summed = dict[Any, int](), dict[Any, Sums]()

    def sums(self, k: int, before: int, after: int) -> Sums:
        """Of the costs of moves, from one list of states to another."""
        key = self.twin(k), self.chosen.get(k), before, after
        if key not in self.summed:
            place = {state: j for j, state in enumerate(self.lists[after])}
            every = (self.moves(k, state) for state in self.lists[before])
            tail = self.inner(k + 1)
            self.summed[key] = Sums(
                [[(place[to], self.cost(k, added) if tail else added) for to, added, _ in those] for those in every]
            )
            for state in self.lists[before] if self.counted else ():  # their sums are all that is asked for
                del self.known[self.twin(k), state], self.numbers[self.twin(k), state]
        return self.summed[key]

    def reachable(self) -> list[int]:
        """The numbers of the lists of states that can be reached, before each step and in the end."""
        found = [0]
        for k in range(len(self.steps)):
            key = self.twin(k), self.chosen.get(k), found[-1]
            if key not in self.reached:
                those = (after for state in self.lists[found[-1]] for after, *_ in self.moves(k, state))
                reached = (*dict.fromkeys(those),)
                self.reached[key] = self.listed.setdefault(reached, len(self.lists))
                if len(self.lists) < len(self.listed):
                    self.lists.append(reached)
                if self.counted:
                    self.sums(k, found[-1], self.reached[key])
            found.append(self.reached[key])
        return found

    def states(self) -> list[tuple[State, ...]]:
        return [self.lists[number] for number in self.reachable()]
