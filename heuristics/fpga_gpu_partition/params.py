"""Parameters of the heuristics of the FPGA-GPU partition."""

from dataclasses import dataclass

from mapgap.core import Params


@dataclass(frozen=True)
class Additive(Params):
    """The knapsack greedy on estimates that add up.

    Attributes
    ----------
    passes : int
        From the start, each but the first with the transfers of the plan before.
    damped : float
        Part of those transfers that is subtracted.
    flat : float
        Savings are divided by the share of the fabric to this power.
    """

    passes: int = 3
    damped: float = 0.5
    flat: float = 0.6


@dataclass(frozen=True)
class Annealing(Params):
    """Simulated annealing of the options of all layers.

    Attributes
    ----------
    work, per_option : int
        Layers timed, at most; and so many per option of the instance, if that is less.
    hot, cold : float
        First and last temperature, as parts of what a module contributes to the objective on average.
    patience : int
        Steps between two changes of the prices of what leaves the limits.
    swing : float
        Factor by which prices rise outside of the limits and fall inside.
    """

    work: int = 60_000
    per_option: int = 600
    hot: float = 0.1
    cold: float = 0.001
    patience: int = 16
    swing: float = 1.15
