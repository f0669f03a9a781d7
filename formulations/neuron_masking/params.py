"""Parameters of the exact methods of neuron masking."""

from dataclasses import dataclass

from mapgap.core import Params


@dataclass(frozen=True)
class Fleet(Params):
    """A fleet as a series of single problems.

    Attributes
    ----------
    first_s : float
        Seconds of the first question to an engine about one device and cycle time, where several are open; those that
        are still open are asked again for twice as long.
    """

    first_s: float = 4.0


@dataclass(frozen=True)
class Lagrangian(Fleet):
    """Branch and bound on the Lagrangian.

    Attributes
    ----------
    steps : int
        Steps of the enumeration per box.
    """

    steps: int = 20_000_000
