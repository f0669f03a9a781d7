"""Figures in prose: what a placeholder stands for, which texts are wrong, and which figures nothing supports."""

import pytest

from mapgap.core import InputError
from mapgap.reporting.prose import faults, figures, filled, unsupported, value, word

ROWS = [
    {"network": "LeNet", "gap": 12.5, "method": "greedy", "proven": True},
    {"network": "VGG-11", "gap": 0.0, "method": "greedy", "proven": True},
    {"network": "VGG-11", "gap": 3.25, "method": "soft", "proven": False},
    {"network": "AlexNet", "gap": None, "method": "soft", "proven": False},
]


def tables(name):
    if name != "study/losses":
        raise InputError(f"table {name!r}: there is none")
    return ROWS


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ("study/losses[network=LeNet].gap | .1f", "12.5"),
        (r"study/losses[network=LeNet].gap \| .1f", "12.5"),  # in a cell of a table
        ("study/losses.gap max", "12.5"),
        ("study/losses[method=greedy].gap min | .2f", "0.00"),
        ("study/losses.gap mean | .2f", "5.25"),  # (12.5 + 0 + 3.25) / 3: a blank is no value
        ("study/losses.gap median", "3.25"),
        ("study/losses.gap sum", "15.75"),
        ("study/losses count", "4"),
        ("study/losses.gap count", "3"),
        ("study/losses[gap>0] count", "2"),
        ("study/losses[gap<=3.25, method=soft].gap", "3.25"),
        ("study/losses[network!=VGG-11] count", "2"),
        ("study/losses[proven=True] count", "2"),
    ],
)
def test_a_specification_stands_for_a_value(spec, text):
    assert value(spec, tables) == text
    page = f"It loses <!-- fig: {spec} -->?<!-- /fig --> % here."
    assert filled(page, tables) == f"It loses <!-- fig: {spec} -->{text}<!-- /fig --> % here."


@pytest.mark.parametrize(
    ("spec", "chosen"),
    [
        ("study/losses[method=soft].gap max < study/losses[method=greedy].gap max ? shorter : longer", "shorter"),
        ("study/losses.gap min > 0 ? always worse : not always worse", "not always worse"),
        ("study/losses[gap>0] count = 2 ? two : more or fewer", "two"),
    ],
)
def test_a_word_that_compares_follows_the_data(spec, chosen, tmp_path):
    assert word(spec, tables) == chosen
    page = f"It is <!-- word: {spec} -->wrong<!-- /word --> here."
    right = f"It is <!-- word: {spec} -->{chosen}<!-- /word --> here."
    assert filled(page, tables) == right
    file = tmp_path / "page.md"
    for text, count in ((page, 1), (right, 0)):
        file.write_text(text)
        assert len(list(faults([file], tables))) == count


def test_a_word_that_cannot_be_chosen_says_why():
    with pytest.raises(InputError, match=r"expected SPEC < SPEC \? WORD : WORD"):
        word("study/losses.gap max ? a : b", tables)
    with pytest.raises(InputError, match="there is none"):
        word("study/other.gap max > 0 ? a : b", tables)


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("study/losses.gap", "expected one value, found 3"),
        ("study/losses[network=Nothing].gap max", "expected values, found 0"),
        ("study/losses.gop max", "found 'gop'; did you mean 'gap'"),
        ("study/losses.gap maximum", "found 'maximum'"),
        ("study/other.gap max", "there is none"),
        ("study/losses[gap>much] count", "expected a number, found 'much'"),
        ("study/losses[gap] count", "expected COLUMN = VALUE, found 'gap'"),
        ("study/losses max", "expected a column"),
        ("study/losses.gap max | .1q", "expected a format"),
        ("study losses?", "expected TABLE"),
    ],
)
def test_a_specification_that_stands_for_nothing_is_an_error_and_a_fault(spec, words, tmp_path):
    with pytest.raises(InputError) as caught:
        value(spec, tables)
    page = tmp_path / "page.md"
    page.write_text(f"\nIt loses <!-- fig: {spec} -->1<!-- /fig --> %.")
    found = list(faults([page], tables))
    assert [fault.place for fault in found] == [f"{page}:2"]
    assert words in found[0].words
    assert words in str(caught.value)


def test_a_wrong_figure_is_found_with_its_line(tmp_path):
    page = tmp_path / "page.md"
    right, wrong = (f"<!-- fig: study/losses.gap max -->{text}<!-- /fig -->" for text in ("12.5", "12.4"))
    page.write_text(f"One {right}.\n\nTwo {wrong}.\n")
    assert [figure.line for figure in figures(page.read_text())] == [1, 3]
    (fault,) = faults([page], tables)
    assert (fault.place, fault.kind) == (f"{page}:3", "figure")
    assert "says 12.4, the data say 12.5" in fault.words


def test_an_example_in_a_block_of_code_is_no_figure():
    page = "```markdown\nIt is <!-- fig: study/losses.gap max -->?<!-- /fig -->.\n```\n"
    assert figures(page) == []
    assert filled(page, tables) == page


@pytest.mark.parametrize(
    ("page", "found"),
    [
        ("It loses 38.5 % there.", [(1, "38.5 %")]),
        ("Text.\n\nIt is 6.6 times slower and wins 22 of 33.", [(3, "6.6 times"), (3, "22 of 3")]),
        ("It loses <!-- fig: study/losses.gap max -->12.5<!-- /fig --> % there.", []),
        ("The paper prints 1.3× (Table 4). <!-- source: Asteroid, Table 4 -->", []),
        ("The paper prints 1.3×. <!-- source: Asteroid -->\n\nHere it is 1.4×.", [(3, "1.4×")]),
        ("| network | gap |\n|---|---|\n| LeNet | 12.5 % |", [(3, "12.5 %")]),
        ("Run `mapgap solve --time-limit 60 s`.\n\n```console\ntook 3 s\n```\n", []),
        ("See [the page](reports/60%.html), section 3, Fig. 15, Python 3.11.", []),
    ],
)
def test_measured_figures_without_support_are_found(page, found):
    assert unsupported(page) == found
