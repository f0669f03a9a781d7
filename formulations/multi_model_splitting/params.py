"""What the exact methods of this room can be tuned by; without effect on what is proven to be true."""

from __future__ import annotations

from dataclasses import dataclass

from mapgap.core import Params
from mapgap.heuristics.multi_model_splitting.params import Neighbourhood


@dataclass(frozen=True)
class Questions(Params):
    """How long an engine is asked.

    Attributes
    ----------
    slice_s : float
        Seconds of the first question that may stay open.
    growth : float
        Factor from one round of questions to the next.
    """

    slice_s: float = 1.0
    growth: float = 2.0


@dataclass(frozen=True)
class Joint(Questions):
    """Bounds by column generation (:mod:`.column_bound`) and by patterns (:mod:`.pattern_bound`), and questions.

    Attributes
    ----------
    bounds : float
        Time of bounds once there is a plan, in times of that of a question.
    programs : int
        Linear programs of one limit, after which the limit counts as not refuted.
    roundings : int
        Parameters of the dual feasible function u^(k) that are tried.
    fine : int
        A limit is not looked for more closely than to this part of it.
    pattern_ends : int
        An end of a pipeline counts if its transfers take more than this part of a limit.
    nodes, few : int
        Of one search for the heaviest pattern, beyond which nothing is proven; and after which a pattern worth more
        than is paid for is enough.
    """

    bounds: float = 4.0
    programs: int = 150
    roundings: int = 8
    fine: int = 4000
    pattern_ends: int = 50
    nodes: int = 1_000_000
    few: int = 5_000


@dataclass(frozen=True)
class Portfolio(Joint, Neighbourhood):
    """Of all members."""
