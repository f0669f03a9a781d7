"""scikit-learn's handwritten digits (1,797 images of 8 x 8 pixels, shipped with the package), split among devices."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits

Labels = NDArray[np.int64]
Images = NDArray[np.float64]
TEST_SHARE = 0.2
SHARDS_PER_DEVICE = 2


@dataclass(frozen=True)
class Split:
    """Images (samples, 8, 8, 1) in 0..1 and labels: of every device, and of the test."""

    parts: tuple[tuple[Images, Labels], ...]
    test: tuple[Images, Labels]


def split_digits(devices: int, seed: int, *, iid: bool = True) -> Split:
    """A fifth for the test, the rest in equal parts.

    Parameters
    ----------
    devices : int
    seed : int
        Of the shuffles; the test images depend on it, too.
    iid : bool
        Otherwise the images are sorted by digit, cut into two shards per device, and the shards are dealt at random,
        so that most devices see two to four digits (McMahan et al. 2017).
    """
    rng = np.random.default_rng([seed, devices, int(iid)])
    digits = load_digits()
    images = np.asarray(digits.images, dtype=np.float64)[..., None] / 16.0
    labels = np.asarray(digits.target, dtype=np.int64)
    order = rng.permutation(len(labels))
    tests = round(TEST_SHARE * len(labels))
    test, rest = order[:tests], order[tests:]
    if iid:
        parts = [rest[d::devices] for d in range(devices)]
    else:
        shards = np.array_split(rest[np.argsort(labels[rest], kind="stable")], SHARDS_PER_DEVICE * devices)
        dealt = rng.permutation(len(shards)).reshape(devices, SHARDS_PER_DEVICE)
        parts = [np.concatenate([shards[s] for s in row]) for row in dealt]
    return Split(tuple((images[part], labels[part]) for part in parts), (images[test], labels[test]))
