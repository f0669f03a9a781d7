"""Design of the training experiment: what was fixed before its test runs were started.

Seeds
-----
pilot
    0 to 4 of every fleet, all schemes but asynchronous learning. These runs had been looked at before anything here was
    fixed; they give the spread of differences, from which the number of test seeds follows, and no claim.
tuning
    100 to 104 of every fleet: they choose the mixing weight of asynchronous learning, one per fleet.
test
    ``1000 + 100 k`` to ``1000 + 100 k + 13`` for fleet number k (from 0) of ``SETTINGS``: 84 seeds. All claims rest on
    them alone. No two fleets share a seed, hence neither a split of the images nor an initial model: differences are
    independent over fleets, too. (With equal seeds all fleets of four devices would share their test images.)

Number of test seeds
--------------------
The least for which every equivalence test of the primary measure has power ``POWER`` when the true difference is a
quarter of the margin, at the level of the first step of Holm's correction. The spread is that of the pilot, pooled over
the fleets with equally distributed data; the computation is a table of the report.

Rivals
------
What others than ELFISH do about stragglers, and ELFISH and synchronous learning once more, on fresh seeds: ``2000 +
100 k`` to ``2000 + 100 k + 13`` for fleet number k, which nothing else uses. Written down before any of these runs:
primary is the mean accuracy over the simulated time as an integral, final the one over its last quarter; differences
ELFISH minus rival on equal seeds, pooled over the fleets with equally distributed data, errors corrected for shared
images, Holm's correction over all rows of the table; no other claim. The pull of FedProx is the best of ``PULLS`` per
fleet on seeds 200 to 204. Where all devices are stragglers none is dropped, so that rival has four fleets.

Measures
--------
Primary: mean accuracy over the simulated time. Secondary: mean accuracy over its last quarter. Changed after the test
runs: both were registered as means over the whole cycle times, and are now integrals over the time. ELFISH aggregates
every 0.9966 cycle times, just before a whole one, so that the registered form read it at its best moment; a table has
both forms. Also changed after the runs: errors are corrected for the images that runs share (``OVERLAP``), which makes
every interval wider. Fleets with equally distributed data are pooled; the one with unequally distributed data stands
apart, as asynchronous learning suffers far more there.

Margin of equivalence
---------------------
One percentage point. A quarter of the 4 % by which the paper says that ELFISH improves accuracy: a better mask that
gives less is no reason to solve for it. It is also below the error of a single accuracy: 359 test images at 95 % have
a standard error of 1.15 points.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Setting:
    """A fleet and how its data are distributed.

    Attributes
    ----------
    fleet : str
        Stragglers of devices: ``2of4``.
    iid : bool
        Equal distributions on all devices; otherwise two shards of the images sorted by digit per device.
    """

    fleet: str
    iid: bool = True

    @property
    def label(self) -> str:
        """``2 of 4 devices are stragglers``."""
        stragglers, devices = self.fleet.split("of")
        return f"{stragglers} of {devices} devices are stragglers" + ("" if self.iid else ", non-IID")


SETTINGS = (*(Setting(fleet) for fleet in ("1of4", "2of4", "3of4", "4of4", "3of6")), Setting("1of4", iid=False))
ALL_STRAGGLERS = Setting("4of4")
CYCLES = 30
"""Simulated time, in cycle times of a capable device."""

PILOT_SEEDS = tuple(range(5))
TUNING_SEEDS = tuple(range(100, 105))
TEST_SEEDS = 14
"""Per fleet; see :func:`seeds_for_tests`."""
FIRST_TEST_SEED = 1000

MIXINGS = (1 / 8, 1 / 4, 1 / 2, 1.0)
"""Tried on the tuning seeds. With 1 the model of a device replaces the global one."""
REPLACING = 1.0
UNTUNED = 0.5
"""What runs of schemes say that do not use it."""
TUNED = {setting: 1 / 2 if setting.iid else 1 / 4 for setting in SETTINGS}
"""Mixing weight of largest mean accuracy on the tuning seeds; a test recomputes it."""

RIVAL_TUNING_SEEDS = tuple(range(200, 205))
FIRST_RIVAL_SEED = 2000
PULLS = (0.001, 0.01, 0.1, 1.0)
"""Of FedProx, those that its paper tries."""
PULLED = dict(zip(SETTINGS, (0.001, 0.01, 0.01, 0.01, 0.001, 0.001), strict=True))
"""Pull of largest mean accuracy on the tuning seeds; a table of the study has all."""

OVERLAP = 359 / 1438
"""Images for test by images for training: every run splits the same 1,797 images."""
MARGIN = 1.0
"""Of equivalence, in percentage points of accuracy."""
POWER = 0.9
TRUE_DIFFERENCE = MARGIN / 4
"""For which the power is computed."""


def seeds_for_tests(setting: Setting) -> tuple[int, ...]:
    """Seeds of a setting's test runs."""
    first = FIRST_TEST_SEED + 100 * SETTINGS.index(setting)
    return tuple(range(first, first + TEST_SEEDS))


def seeds_for_rivals(setting: Setting) -> tuple[int, ...]:
    """Seeds of a setting's runs of ELFISH against what others do."""
    first = FIRST_RIVAL_SEED + 100 * SETTINGS.index(setting)
    return tuple(range(first, first + TEST_SEEDS))
