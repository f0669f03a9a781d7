"""What heuristics lose, by hand; and what a heat map says of it."""

import itertools
import re
import xml.etree.ElementTree as ElementTree

import pytest
from records import record

from mapgap.records.runs import Runs
from mapgap.reporting.cards import cards
from mapgap.reporting.classes import Class, classify
from mapgap.reporting.heat import heat_map
from mapgap.reporting.losses import interval, losses
from mapgap.reporting.overview import overview
from mapgap.reporting.strips import Dot, Strip, StripChart

ALL = Class("", "")
RUNS = Runs(
    [
        record("i1", "exact", 100, 100, kind="exact"),
        record("i1", "greedy", 120, kind="published"),
        record("i2", "exact", 210, 190, kind="exact"),
        record("i2", "greedy", 200, kind="published"),
        record("i3", "greedy", 50, kind="published"),
        record("i3", "exact", kind="exact"),
    ]
)


def by_method(runs):
    records = Runs(runs)
    return {each.method: each for each in losses(records, dict.fromkeys((r.instance_hash for r in records), ALL))}


def test_a_loss_is_an_interval_from_the_best_plan_to_the_bound():
    known = RUNS.where(lambda r: r.instance != "i3")
    greedy = by_method(known)["greedy"]
    # i1: 20 % above 100 (plan and bound); i2: the best plan, 200 over the bound 190.
    assert (greedy.state, greedy.instances, greedy.applies, greedy.plans, greedy.optimal) == ("loss", 2, 2, 2, 0)
    assert greedy.at_least == pytest.approx((20 + 0) / 2)
    assert greedy.at_most == pytest.approx((20 + 100 * 10 / 190) / 2)
    assert (greedy.worst, greedy.worst_instance, greedy.exact) == (pytest.approx(20.0), "i1", False)
    assert by_method(RUNS)["greedy"].at_most is None  # i3 has no bound
    assert interval(greedy.at_least, None) == "at least 10.0 %"


def test_who_fails_is_not_averaged_and_hides_no_instance_from_the_others():
    """The lazy one has a plan where everybody is optimal, and would look best."""
    runs = [*RUNS, record("i1", "lazy", 100), record("i2", "lazy"), record("i3", "lazy", error="no")]
    found = by_method(runs)
    assert (found["lazy"].state, found["lazy"].plans, found["lazy"].applies) == ("fails", 1, 3)
    assert found["lazy"].at_least is None
    assert found["greedy"].over == 3


def test_an_instance_that_a_compared_method_lacks_counts_for_nobody():
    runs = [record(f"i{k}", "best", 100, 100, kind="exact") for k in range(10)]
    runs += [record(f"i{k}", "greedy", 200 if k == 0 else 110, kind="published") for k in range(10)]
    runs += [record(f"i{k}", "nine", None if k == 0 else 120) for k in range(10)]
    found = by_method(runs)
    assert (found["greedy"].over, found["greedy"].at_least) == (9, pytest.approx(10.0))
    assert (found["nine"].over, found["nine"].at_least) == (9, pytest.approx(20.0))
    assert found["greedy"].worst == pytest.approx(100.0)  # the worst case is one of all plans


def test_what_does_not_apply_has_not_failed():
    reason = "the instance has no failure, so no old plan"
    runs = [*RUNS, *(record(name, "recut", reason=reason) for name in ("i1", "i2", "i3"))]
    assert by_method(runs)["recut"].state == "none"
    assert by_method([*runs[:-1], record("i3", "recut", 60)])["recut"].applies == 1
    (panel,) = heat_map(Runs(runs))
    looks = {line.method: line.cells[0].look for line in panel.lines}
    assert looks == {"greedy": "l3 open", "recut": "no"}  # 20, 0 and 0 % above the best, and one has no bound
    text = overview(Runs(runs)).sections[0].text
    assert text == ["To none of these instances applies: recut."]


def test_two_objectives_are_never_in_one_class():
    names = ["dhm_squeezenet_fire2", "dhm_squeezenet_fire2@latency", "dhm_vgg16_fold1", "dhm_vgg16_fold1@edp"]
    found = classify(record(name, problem="fpga_gpu_partition") for name in names)
    assert [found[name].objective for name in names] == ["energy", "latency", "energy", "edp"]
    runs = [record(name, "m", 200 + 10 * k, 200, problem="fpga_gpu_partition") for k, name in enumerate(names)]
    (panel,) = heat_map(Runs(runs))
    assert [title for title, _ in panel.columns] == ["energy", "latency", "edp"]


def test_tags_of_the_library_are_classes_where_they_are_few():
    names = [f"mtrain_c{k}_{net}_3gbs" for k in (1, 2) for net in ("alexnet", "vgg16")]
    found = classify(record(name, problem="suboperation_mapping") for name in names)
    assert [found[name].title for name in names] == ["cluster1", "cluster1", "cluster2", "cluster2"]
    alone = classify(record(name, problem="suboperation_mapping") for name in ("mtrain_c1_vgg16_3gbs", "unknown"))
    assert {each.title for each in alone.values()} == {"all"}


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (None, None, "nothing known"),
        (0.0, 0.0, "0 %"),
        (0.01, 0.02, "under 0.1 %"),
        (3.14, 3.14, "3.1 %"),
        (0.0, 4.2, "0 to 4.2 %"),
    ],
)
def test_an_interval_in_words(low, high, words):
    assert interval(low, high) == words


def test_the_first_screen_says_what_is_lost_and_what_is_proven():
    page = overview(RUNS)
    (answer,) = page.answers
    assert answer.title == "p"
    low = (20 + 0 + 0) / 3
    assert answer.sentence.startswith(
        f"In the mean plans of greedy are worse than optimal by at least {low:.1f} % (at worst "
    )
    words = "Arithmetic mean over 3 of 3 instances, in the default reading. The optimum is proven for 1 of 3 instances"
    assert words in answer.sentence
    assert "the best plans of 1 others are within 5.3 % of a bound" in answer.sentence  # 200 over 190
    dots = [dot for strip in answer.chart.strips for dot in strip.dots]
    assert len(dots) == 3
    html = page.html()
    assert (
        html.index(f"at least {low:.1f} %</b> worse than optimal in the arithmetic mean")
        < html.index('class="heat"')
        < html.index('<h2 id="s1"')
    )


def test_a_card_shows_its_answer_and_a_dot_for_every_plan_in_both_looks():
    (answer,) = overview(RUNS).answers
    light, dark = cards([answer])
    assert (light.name, dark.name) == ("card_p", "card_p_dark")
    for card in (light, dark):
        drawn = ElementTree.fromstring(card.alone)
        texts = [each.text for each in drawn.iter("{http://www.w3.org/2000/svg}text")]
        assert f"{answer.losses[0][1]} worse than optimal" in texts
        assert "The optimum is proven for 1 of 3 instances" in texts
        assert len(list(drawn.iter("{http://www.w3.org/2000/svg}circle"))) == 3
    assert light.alone != dark.alone


def test_marks_of_an_axis_do_not_touch():
    """Each is at least nine percent of the width from the one before, however far the values reach."""
    for most in (0.4, 3.0, 35.0, 700.0, 4e4, 2e7):
        chart = StripChart([Strip("a", [Dot(0.0, ""), Dot(most, "")])], "loss", 1.0)
        places = [float(x) for x in re.findall(r'<text x="([\d.]+)%"[^>]*font-size="10"', chart.page)]
        assert places[0] == 0.0
        assert all(b - a >= 9.0 for a, b in itertools.pairwise(places)), (most, places)
