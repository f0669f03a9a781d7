"""Parameters of the exact methods of the FPGA-GPU partition."""

from dataclasses import dataclass

from mapgap.core import Params


@dataclass(frozen=True)
class LabelSetting(Params):
    """Label setting over the chain of modules.

    Attributes
    ----------
    widths : tuple of int
        Labels kept behind a module, pass by pass.
    strips : int
        Rectangles that cover a level set of a product or a weighted sum.
    """

    widths: tuple[int, ...] = (64, 1024, 16_384, 262_144, 4_194_304)
    strips: int = 200
