"""Parameters of the exact methods of sub-operation mapping."""

from dataclasses import dataclass

from mapgap.core import Params
from mapgap.heuristics.suboperation_mapping.params import Annealing


@dataclass(frozen=True)
class Sweep(Params):
    """Questions to one engine, ratio by ratio.

    Attributes
    ----------
    question_s : float
        Seconds of a ratio in the first pass over all of them.
    growth : float
        Every pass gives each ratio so many times what the one before gave.
    few : int
        CP-SAT only: operations up to which the model in which nothing waits is asked alone where the DRAM can bind.
    """

    question_s: float = 0.5
    growth: float = 2.0
    few: int = 16


@dataclass(frozen=True)
class MipSweep(Sweep):
    """The same for a MIP engine, which answers nothing in a short question: a longer one, so that small ratios are
    settled in the first and a run of tiny instances does not depend on the clock."""

    question_s: float = 20.0


@dataclass(frozen=True)
class Boxes(Params):
    """Boxes of ratios.

    Attributes
    ----------
    columns : int
        Accelerators up to which one ratio is bounded by the stage model with columns.
    places : bool
        Divide boxes by the places of fused operations before they are divided by ratios.
    singles : int
        Ratios of a box that are bounded one by one rather than together, where that is so.
    width : float
        When a box is cut, the weight of the width of an interval against the error of the envelopes on it.
    configurations : int
        Of one layer, above which the stage model has pairwise variables in the place of columns.
    stage_columns : int
        Columns of one stage, above which only one fused predecessor, or none, enters them.
    windows : int
        Fusion points before another one from which the load up to it is a row.
    """

    columns: int = 3
    places: bool = True
    singles: int = 10
    width: float = 0.05
    configurations: int = 256
    stage_columns: int = 3000
    windows: int = 4


@dataclass(frozen=True)
class Chains(Params):
    """Bounds of single ratios along a chain of layers.

    Attributes
    ----------
    widest : int
        Moves of a step between fused layers, above which shares are made alike or left out of the chain of a box.
    widest_alone : int
        The same of a ratio alone, and of the chain of its tree where shares are counted.
    remembered : int
        Moves of a step with all told apart, times both places that are remembered, above which there are no shortcuts.
    spreads : int
        Where nothing is fused, ways to place the shares of two layers, above which there is no chain.
    told_apart : int
        Accelerators up to which all are told apart along a chain; above, shares are counted for the first weights. And
        up to which a climb takes the program of one ratio in the place of that of its box, and none of a box with a
        chain.
    labels : int
        Moves of labels, above which a leaf is not bounded by labels; a step has as many where a plan is made.
    rounds : int
        Shortest paths for the weights of a leaf; twice as many for the first ones.
    outermost : int
        Places of fused BP that are tried to part the mixture of a leaf.
    tried : int
        Other ways to part it that are tried where these gain nothing.
    moves : int
        Moves of all leaves of the tree of a ratio together, above which none is divided: what a check has to do.
    apart : float
        A step above the bound of a chain, as a part of the goal; of a plan's labels, what makes them alike; and what is
        missing of a ratio when shaving does not aim at half of it.
    """

    widest: int = 80_000
    widest_alone: int = 340_000
    remembered: int = 600_000
    spreads: int = 243
    told_apart: int = 3
    labels: int = 10_000
    rounds: int = 12
    outermost: int = 2
    tried: int = 4
    moves: int = 500_000_000
    apart: float = 0.001


@dataclass(frozen=True)
class Stage(Boxes, Chains):
    """The stage-configuration MIP.

    Attributes
    ----------
    boxes : bool
        Bound ratios in boxes; without, each by the LP of its own.
    rounding : bool
        Improve the mappings that the relaxation suggests.
    beam : int
        Labels of a state that are kept where a plan is made along a chain; twice as many each time that it was better.
    destructive : bool
        Ask the MIP for mappings below a target.
    complete : int
        Operations up to which the complete model of a ratio is asked.
    staged : bool
        Also with the rows of the relaxation beside it.
    step : float
        First target above the bound of a ratio, as a share of it.
    question_s : float
        Seconds of the first question about a ratio.
    growth : float
        One that was not answered is asked again, for so many times as long.
    """

    boxes: bool = True
    rounding: bool = True
    beam: int = 30
    destructive: bool = True
    complete: int = 250
    staged: bool = True
    step: float = 0.002
    question_s: float = 5.0
    growth: float = 1.6


@dataclass(frozen=True)
class Portfolio(Stage, Annealing):
    """The portfolio: the parameters of its members, and how they share the time.

    Attributes
    ----------
    alone : int
        Steps of annealing before anybody else has a turn.
    eager, lazy : float
        Shares of the annealing, that of the stage MIP being 1: while it finds better plans, and after that. Until all
        ratios are bounded in boxes the stage MIP has the larger share as well, and neighbourhoods have the smaller one.
    window : int
        Operations of the first neighbourhood that CP-SAT decides anew, in ``question_s``; 0 for none.
    """

    alone: int = 2_000_000
    eager: float = 4.0
    lazy: float = 0.4
    window: int = 16


@dataclass(frozen=True)
class Certificate(Chains):
    """The search for a proof that no plan is better.

    Attributes
    ----------
    boxes : int
        Boxes of places of one ratio, and of a tree that refutes the goal where a relaxation does not.
    places : int
        Boxes of places after which any other box of ratios is divided.
    configurations : int
        Ways to place the shares of a layer, above which the program of one ratio is not written.
    asked : int
        Relaxations, and tries along chains, after which a climb ends.
    cut : int
        No less than this part of the bound is cut off the range of a start.
    enough : float
        Part of the work that a chain has at least of a box, or its program is asked as well.
    labels, widest, widest_alone : int
        As those of :class:`Chains`, but a climb has the time for more.
    """

    boxes: int = 300
    places: int = 15
    configurations: int = 256
    asked: int = 1_000_000
    cut: int = 50
    enough: float = 0.8
    labels: int = 500_000
    widest: int = 340_000
    widest_alone: int = 1_400_000


@dataclass(frozen=True)
class Enumeration(Params):
    """Brute force.

    Attributes
    ----------
    limit : int
        Most pairs of a mapping and a sequence that are tried; a table of sequences may have a tenth as many entries.
    """

    limit: int = 100_000_000
