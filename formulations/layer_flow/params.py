"""Parameters of layer flow's bound and of its search over stages."""

from dataclasses import dataclass

from mapgap.core import Params


@dataclass(frozen=True)
class Covers(Params):
    """The bound by weights of holdings.

    Attributes
    ----------
    grid : int
        Weights are multiples of one ``grid``-th.
    rounds : int
        Most covers that are added for one flow.
    """

    grid: int = 2520
    rounds: int = 400


@dataclass(frozen=True)
class Stages(Params):
    """Stages of nodes side by side.

    Attributes
    ----------
    wide : int
        Most nodes of a stage.
    work : float
        Deterministic time of CP-SAT for one choice of stages.
    steps : int
        Exchanges that are tried when stages are given to nodes, per attempt.
    fewer : float
        Of a flow, the next one that is tried, from the largest one for which stages exist.
    """

    wide: int = 6
    work: float = 2.0
    steps: int = 20_000
    fewer: float = 0.98
