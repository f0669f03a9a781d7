"""Charts show every bar where it belongs, and equal plans make equal files."""

import pytest
from cli_support import tiny
from matplotlib.colors import to_rgba

from mapgap.catalogue import registry
from mapgap.core import GanttBar, GanttLane, InputError
from mapgap.problems.suboperation_mapping import Plan
from mapgap.reporting.gantt import chart, plan_chart, save

LANES = [
    GanttLane("A", (GanttBar(0.0, 0.4, "FP/conv", "FP"), GanttBar(0.5, 1.0, "BP/conv", "BP", transfer=0.2))),
    GanttLane("B", (GanttBar(0.4, 0.4005, "FP/thin", "FP"),)),
]


def bars(figure):
    """``(left, right, row, colour)`` of every rectangle."""
    return [
        (p.get_x(), p.get_x() + p.get_width(), round(p.get_y() + p.get_height() / 2), p.get_facecolor())
        for p in figure.axes[0].patches
    ]


def test_bars_stand_at_their_times_and_transfers_come_first():
    found = bars(chart(LANES))
    assert len(found) == 4  # three bars, one with a transfer part
    spans = sorted((round(left, 4), round(right, 4), row) for left, right, row, _ in found)
    assert spans == [(0.0, 0.4, 0), (0.4, 0.4005, 1), (0.5, 0.7, 0), (0.7, 1.0, 0)]


def test_the_axis_is_in_readable_units():
    assert chart(LANES).axes[0].get_xlabel() == "time (s)"  # exactly one second
    milli = [GanttLane("A", (GanttBar(0.0, 0.02, "x", "g"),))]
    assert chart(milli).axes[0].get_xlabel() == "time (ms)"
    assert chart(milli).axes[0].get_xlim() == (0, 20)
    assert chart([]).axes[0].get_xlim() == (0, 1)


def test_labels_stand_only_where_they_fit():
    assert {text.get_text() for text in chart(LANES).axes[0].texts} == {"conv"}  # "thin" has no room


def test_groups_have_one_colour_each_in_the_legend():
    figure = chart(LANES)
    legend = figure.axes[0].get_legend()
    assert [text.get_text() for text in legend.get_texts()] == ["BP", "FP", "data transfer"]
    colours = {colour for left, _, _, colour in bars(figure) if left in (0.0, 0.4)}
    assert len(colours) == 1
    assert colours <= {to_rgba(patch.get_facecolor()) for patch in legend.get_patches()}


def test_two_plans_agree_in_their_colours():
    def colours(*groups):
        figure = chart([GanttLane("A", tuple(GanttBar(t, t + 1.0, "", g) for t, g in enumerate(groups)))])
        legend = figure.axes[0].get_legend()
        patches = zip(legend.get_texts(), legend.get_patches(), strict=True)
        return {text.get_text(): patch.get_facecolor() for text, patch in patches}

    assert colours("a", "b", "c") == colours("c", "a", "b")


@pytest.mark.in_turn
@pytest.mark.parametrize("suffix", ["svg", "png", "pdf"])
def test_files_are_reproducible(tmp_path, suffix):
    first, second = (save(chart(LANES, "t"), tmp_path / f"{i}.{suffix}").read_bytes() for i in range(2))
    assert first == second
    assert len(first) > 1000


def test_what_cannot_be_drawn_is_an_input_error(tmp_path):
    with pytest.raises(InputError, match="expected a file name in"):
        save(chart(LANES), tmp_path / "x.gif")
    problem = registry.problems()["suboperation_mapping"]
    # fc before BN: BN waits for FP of conv, FP of fc for BN
    stuck = Plan(ratio=(4, 0), order=(("FP/fc/0", "FP/bn", "FP/conv/0"), ()))
    with pytest.raises(InputError, match="timetable"):
        plan_chart(problem, tiny(), stuck)
