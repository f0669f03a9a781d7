"""What the searches of this room can be tuned by."""

from __future__ import annotations

from dataclasses import dataclass

from mapgap.core import Params


@dataclass(frozen=True)
class Neighbourhood(Params):
    """The neighbourhood search (:mod:`.search.neighbourhood`), and the quick planner (:mod:`.ruin_and_recreate`).

    Attributes
    ----------
    spread : float
        What the square of a load costs, as a part of what the same load above the goal costs: it evens loads out.
    missing : float
        What a pipeline costs that is not placed, in goals.
    heavier : float
        Factor by which that grows with every step in which it is still not placed.
    hot : float
        Temperature of a walk, in goals.
    steps : int
        Of one walk below one goal.
    work : int
        Segments looked at in one piece: for the first plans, and by the quick planner after Synergy's.
    quiet : int
        Walks without a better plan, or any, after which the search is settled.
    """

    spread: float = 0.02
    missing: float = 3.0
    heavier: float = 1.01
    hot: float = 0.05
    steps: int = 1000
    work: int = 120_000
    quiet: int = 16
