"""Interpolation, places to cut, and what merging keeps."""

import random
from typing import Literal

import pytest

from mapgap.contract.seeds import rotation
from mapgap.core import Frozen, InputError
from mapgap.core.workload import EXTERNAL, Settings, WorkBoard, WorkLayer, Workload, at
from mapgap.instances.imported import further_fields


def workload(*layers):
    """Layers given as (name, inputs, output bytes); each takes 10 ns a sample."""
    made = tuple(WorkLayer(name, "op", inputs, size, 1, 2, size) for name, inputs, size in layers)
    board = WorkBoard("b", "b", 1, tuple(((1, 10.0),) for _ in layers))
    return Workload("w", "", 8, made, (board,), ((0,),), (1,))


def test_times_lie_on_lines():
    curve = ((1, 10.0), (4, 40.0), (8, 60.0))
    assert [at(curve, samples) for samples in (1, 2, 4, 6, 8, 10)] == [10, 20, 40, 50, 60, 70]
    assert at(((4, 40.0),), 1) == 10  # one point: in proportion
    assert at(((2, 30.0), (4, 40.0)), 1) == 25  # below the first point the line goes on
    assert at(((2, 40.0), (4, 30.0)), 8) == 60  # a falling line says nothing: in proportion to the last point
    assert at(((2, 1.0), (4, 40.0)), 1) == 0  # and no time is negative


def test_a_residual_connection_forbids_the_cuts_under_it():
    # input -> a -> b -> c, and a -> c: behind a one tensor crosses, behind b two.
    found = workload(("a", (EXTERNAL,), 4), ("b", (0,), 5), ("c", (0, 1), 6), ("d", (2,), 7))
    assert found.cuts() == [0, 2, 3]
    assert found.crossing() == [4, 9, 6, 0]
    chain = found.chain()
    assert [layer.name for layer in chain.layers] == ["a", "b … c", "d"]
    assert chain.layers[1].inputs == (0,)
    assert [layer.output_bytes for layer in chain.layers] == [4, 6, 7]
    assert chain.layers[1].weight_bytes == 2
    assert chain.boards[0].forward[1] == ((1, 20.0),)


def test_an_input_that_is_read_late_crosses_every_cut_before():
    found = workload(("a", (EXTERNAL,), 4), ("b", (0,), 5), ("c", (1, EXTERNAL), 6))
    assert found.crossing() == [12, 13, 0]
    assert found.cuts() == [2]


def test_tensors_of_no_bytes_do_not_count():
    found = workload(("a", (EXTERNAL,), 0), ("b", (0,), 5), ("c", (0, 1), 6))
    assert found.cuts() == [0, 1, 2]


def test_merging_adds_points_at_all_batch_sizes():
    layers = tuple(WorkLayer(name, "op", (i - 1,), 4, 0) for i, name in enumerate("ab"))
    board = WorkBoard("b", "b", 1, (((1, 10.0), (4, 40.0)), ((2, 10.0),)))
    merged = Workload("w", "", 8, layers, (board,), ((0,),), (1,)).merged([range(2)])
    assert merged.boards[0].forward[0] == ((1, 15.0), (2, 30.0), (4, 60.0))


def test_all_that_is_missing_or_wrong_is_said_at_once():
    settings = Settings({"share": "much", "count": -1, "strange": 1})
    settings.whole("count", "how many")
    settings.number("share", "a share")
    settings.text("model", "a name")
    with pytest.raises(InputError) as caught:
        settings.check(complete=True)
    said = "\n".join(caught.value.problems)
    assert "missing: model: expected a name (--set model=…)" in said
    assert "--set count=-1: expected an integer from 0 on: how many" in said
    assert "--set share=much: expected a number" in said


def test_settings_that_nobody_knows_are_refused_with_a_hint():
    settings = Settings({"micro_bach": 4})
    settings.whole("micro_batch", "samples", 1)
    with pytest.raises(InputError, match="found 'micro_bach'; did you mean 'micro_batch'"):
        settings.check(complete=True)


def test_what_crosses_is_what_somebody_behind_still_reads():
    random_ = random.Random(rotation())
    for _ in range(50):
        count = random_.randrange(1, 12)
        layers = [
            (f"l{i}", tuple(s for s in range(EXTERNAL, i) if random_.random() < 0.3), random_.randrange(5))
            for i in range(count)
        ]
        found = workload(*layers)
        sizes = [size for *_, size in layers]
        for i, crossing in enumerate(found.crossing()):
            read = {s for _, inputs, _ in layers[i + 1 :] for s in inputs if s <= i}
            assert crossing == sum(8 if s == EXTERNAL else sizes[s] for s in read), (layers, i)


class Running(Frozen):
    """How something runs."""

    training: bool = True
    link: Literal["one", "many"] = "one"


class Made(Frozen):
    """An instance of which an import makes the name."""

    name: str
    running: Running = Running()
    sizes: tuple[int, ...] = ()


def test_fields_with_a_default_are_settings_and_so_are_those_inside_them():
    settings = Settings({"training": False, "sizes": [1, 2]})
    assert further_fields(Made, {"name"}, settings) == {"running": Running(training=False), "sizes": (1, 2)}
    settings.check(complete=True)
    assert further_fields(Made, {"name"}, Settings()) == {}
    with pytest.raises(InputError, match="--set link=two: expected another value: Input should be 'one' or 'many'"):
        further_fields(Made, {"name"}, Settings({"link": "two"}))
