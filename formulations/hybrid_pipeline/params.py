"""Parameters of the exact methods of hybrid pipelines, and of the searches along orders of the devices."""

from dataclasses import dataclass

from mapgap.core import Params


@dataclass(frozen=True)
class OrderSearch(Params):
    """Label searches along orders of the devices.

    Attributes
    ----------
    work, share : int
        Moves and places looked at, and stages priced, after the first order: at most ``work``, or ``N^3 L^2 / share``
        of N devices and L layers, if that is more; Algorithm 2 of Asteroid takes N^3 L^2 steps.
    """

    work: int = 1_000_000
    share: int = 20


@dataclass(frozen=True)
class LabelSearch(Params):
    """The label search over all groups, and its relaxations.

    Attributes
    ----------
    moves, cells, pairs : int
        Most moves (a group in front of the devices used behind it), pairs of a group and a layer, and pairs of groups
        where transfers are parallel, that a search or a relaxation holds; of moves and pairs with layers no more than
        what a quarter of the memory of the run has room for.
    growth : int
        Least factor of moves from one relaxation to the next, and to the search that takes its sums in front of cuts.
    steps : int
        A search begins with this part of what is between the bound known and the plan.
    """

    moves: int = 2**26
    cells: int = 2**24
    pairs: int = 2**26
    growth: int = 6
    steps: int = 8


@dataclass(frozen=True)
class Ideals(Params):
    """The search over the ideals of a graph.

    Attributes
    ----------
    ideals : int
        Most ideals that are enumerated; of a graph with more, plans come from orders of its layers.
    orders : int
        Orders that are searched where there are too many ideals; else one, for a first plan.
    gaps : tuple of float
        Upper bounds of the searches one after the other, as shares of the bound that is proven, above it.
    """

    ideals: int = 200_000
    orders: int = 60
    gaps: tuple[float, ...] = (0.001, 0.004, 0.016, 0.064, 0.256, 1.0, 4.0)


@dataclass(frozen=True)
class Columns(Params):
    """Models over columns.

    Attributes
    ----------
    columns : int
        Most columns of a model.
    cells : int
        Most pairs of a group and a layer that columns are looked for in.
    """

    columns: int = 400_000
    cells: int = 150_000


@dataclass(frozen=True)
class Portfolio(LabelSearch, OrderSearch):
    """The portfolio: those of its members.

    Attributes
    ----------
    orders : float
        Share of the time of the search along neighbours of the best order, that of the label search being 1.
    """

    orders: float = 0.5
