"""What the six scripts share: read a CSV file, fill a table of times, round demands up."""

import csv

import numpy as np


def read(path):
    with open(path, newline="") as stream:
        return list(csv.DictReader(stream))


def table(points, width):
    """Ticks of 1 … width samples from measured ``{samples: microseconds}``; measure 1, width and some in between."""
    measured = sorted(points)
    line = np.interp(range(1, width + 1), measured, [points[samples] for samples in measured])
    return tuple(int(ticks) for ticks in np.maximum.accumulate(np.rint(line)))  # more samples never take less


def units(size, unit):
    return -(-int(size) // unit)  # rounded up
