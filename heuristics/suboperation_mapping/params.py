"""Parameters of the heuristics of sub-operation mapping."""

from dataclasses import dataclass

from mapgap.core import Params


@dataclass(frozen=True)
class ShortRounds(Params):
    """A pool of solutions, and the few short rounds of annealing that every search begins with.

    Attributes
    ----------
    every_subset : int
        Accelerators up to which step-aligned ratios are made for every set of them; of more for sets of the fastest.
    quick : int
        Prefixes of a ready set that MTrain-Mapping looks at for a start.
    pool : int
        Solutions that are kept, one of each ratio.
    hot : tuple of float
        First temperatures that rounds take in turn, as shares of the makespan.
    cold : float
        Last temperature of a round, as a share of the makespan.
    few : int
        With fewer operations one move matters more, and the first temperature rises in proportion.
    prices : tuple of float
        Makespans that DRAM above capacity costs, for one capacity; the first in short rounds, then in turn.
    large : int
        Work of one MTrain-Mapping, operations times squared accelerators, from which an instance is large.
    work : int
        Steps of all short rounds times operations; half of it on large instances.
    steps : int
        Most steps of all short rounds.
    finalists : int
        Solutions that are annealed first.
    round : int
        Steps of a short round, if there are enough for more rounds than finalists.
    """

    every_subset: int = 4
    quick: int = 1000
    pool: int = 12
    hot: tuple[float, ...] = (0.003, 0.01, 0.001, 0.0003)
    cold: float = 1e-5
    few: int = 100
    prices: tuple[float, ...] = (1.0, 10.0)
    large: int = 3_000
    work: int = 1_600_000
    steps: int = 30_000
    finalists: int = 3
    round: int = 4_000


@dataclass(frozen=True)
class QuickPlanner(ShortRounds):
    """The quick planner.

    Attributes
    ----------
    mappings : int
        Work after which MTrain-Converting stops on large instances, in units of ``large``.
    """

    mappings: int = 185_000


@dataclass(frozen=True)
class Annealing(ShortRounds):
    """The long search.

    Attributes
    ----------
    first_work : int
        Steps of a first round times operations.
    per_operation : int
        Most steps of a first round per operation.
    patience : int
        Rounds per operation, or per solution that the pool may hold where these are more, without a better plan after
        which the search gives up.
    """

    first_work: int = 24_000_000
    per_operation: int = 500
    patience: int = 4


@dataclass(frozen=True)
class TwoRatios(Params):
    """Two ratios, each mapped and annealed for some steps.

    Attributes
    ----------
    quick : int
        Prefixes of a ready set that MTrain-Mapping looks at.
    steps : int
        Of the annealing of a ratio.
    hot, cold : float
        First and last temperature, as shares of the makespan.
    """

    quick: int = 1000
    steps: int = 200
    hot: float = 0.6
    cold: float = 1e-3
