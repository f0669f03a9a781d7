"""What the searches of this room can be tuned by."""

from __future__ import annotations

from dataclasses import dataclass

from mapgap.core import Params


@dataclass(frozen=True)
class Neighbourhood(Params):
    """The neighbourhood search (:mod:`.search.neighbourhood`).

    Attributes
    ----------
    spread : float
        What the square of a load costs, as a part of what the same load above the goal costs: it evens loads out.
    missing : float
        What a pipeline costs that is not placed, in goals.
    heavier : float
        Factor by which that grows with every step in which it is still not placed.
    hot, cold : float
        Temperatures of the first and the last step of a walk, in goals.
    steps : int
        Of one walk below one goal.
    first : int
        Segments looked at in one piece of work, and for the first plans.
    patience : int
        Times ``first`` that are spent while there is no plan.
    quiet : int
        Walks without a better plan after which the search is settled.
    """

    spread: float = 0.02
    missing: float = 3.0
    heavier: float = 1.01
    hot: float = 0.05
    cold: float = 0.002
    steps: int = 1000
    first: int = 120_000
    patience: int = 20
    quiet: int = 16


@dataclass(frozen=True)
class RuinAndRecreate(Neighbourhood):
    """The quick planner (:mod:`.ruin_and_recreate`).

    Attributes
    ----------
    work : int
        Segments looked at after the first plans and Synergy's.
    """

    work: int = 75_000
