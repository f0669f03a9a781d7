"""The study of the ladder of bounds: its tables by hand."""

import pytest

from mapgap.records.record import RunRecord
from mapgap.records.runs import Runs
from mapgap.studies.bound_ladder import RUNGS, each, page, phases, rungs


def record(instance, objective, ladder=()):
    """A run that knows these bounds; without any, what the ledger knows."""
    return RunRecord(
        instance=instance,
        instance_hash=instance,
        problem="suboperation_mapping",
        sense="min",
        method="stage_mip" if ladder else "ledger",
        kind="exact" if ladder else "reference",
        objective=objective,
        bound=ladder[-1][1] if ladder else None,
        notes={"ladder": ladder} if ladder else {},
    )


def runs():
    """One whose best plan is proven by boxes, and one that the last rung leaves 25 % open."""
    return Runs(
        [
            record("one", 110, [["path", 50], ["boxes", 100]]),
            record("two", 110, [["path", 40], ["flow", 64], ["destructive", 80]]),
            record("one", 100),
            record("two", 100),
        ]
    )


def test_rungs_by_hand():
    path, flow, boxes, *_, destructive, complete = rungs(runs()).rows
    assert (path["raised"], path["last"], path["mean"], path["worst"]) == (2, 0, pytest.approx(125), pytest.approx(150))
    assert (flow["raised"], flow["mean"]) == (1, pytest.approx((100 + 56.25) / 2))  # the first stays at 50
    assert (boxes["raised"], boxes["last"], boxes["closed"], boxes["far"]) == (1, 1, 1, 1)
    assert (destructive["last"], destructive["close"], destructive["worst"]) == (1, 1, pytest.approx(25))
    assert (complete["raised"], complete["last"]) == (0, 0)


def test_every_instance_says_how_far_each_rung_came():
    one, two = each(runs()).rows
    assert one == {"instance": "one", "path": pytest.approx(100), "boxes": 0}
    assert two["destructive"] == pytest.approx(25)
    assert "boxes" not in two


def test_design_and_page():
    assert len(phases(False)[0].jobs) * phases(False)[0].jobs[0].time_s / phases(False)[0].parallel < 600
    assert len(phases(True)[0].jobs) == 2
    assert [row["rung"] for row in page(runs(), False).sections[0].tables[0].rows] == list(RUNGS)
