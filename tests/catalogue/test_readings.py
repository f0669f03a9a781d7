"""Readings of the papers as data: no dead names, nothing that a docstring pins left out; and the papers' numbers."""

import ast
import re
from importlib.util import find_spec
from itertools import combinations, product
from pathlib import Path

import pytest
import yaml

from mapgap.catalogue import registry
from mapgap.core import InputError
from mapgap.instances.published_numbers import papers, published_rows
from mapgap.instances.readings import Reading, covering, problems, readings_of
from mapgap.studies import readings as study

SECOND = yaml.safe_load((Path(__file__).parents[1] / "data" / "second_transcription.yaml").read_text())


@pytest.mark.parametrize("problem", problems())
def test_every_switch_is_one_of_the_product(problem):
    own, methods = readings_of(problem), registry.methods(problem)
    declared = {key: value for crossed in own.crossed for key, value in methods[crossed.method].options.items()}
    fields = registry.library(problem).compact_type.model_fields
    for each in own.readings:
        if each.option is not None:
            assert each.option in declared, each.name
            assert declared[each.option] == each.values[0], f"{each.name}: the first value is the default"
        if each.field is not None:
            assert each.field in fields, each.name
            if each.switchable:
                assert fields[each.field].get_default(call_default_factory=True) == each.values[0], each.name
        if each.rule is not None:
            part, _, name = each.rule.partition(".")
            rules = registry.problems()[problem].instance_type.model_fields[part].annotation.model_fields
            assert rules[name].default == each.values[0], each.name
    assert len({each.name for each in own.readings}) == len(own.readings)


@pytest.mark.parametrize("problem", problems())
def test_what_docstrings_pin_is_listed_and_nothing_else(problem):
    own, numbered = readings_of(problem), set()
    for pin, module in own.pins.items():
        told = ast.get_docstring(ast.parse(Path(find_spec(module).origin).read_text())).partition("Interpretation\n")[2]
        numbers = re.findall(r"^\s*(\d+)\.\s", told.partition("\nReferences\n")[0], re.MULTILINE)
        assert numbers == [str(k) for k in range(1, len(numbers) + 1)]
        numbered |= {f"{pin} {number}" for number in numbers}
    assert {pin for each in own.readings for pin in each.pinned} == numbered


def test_problems_of_papers_have_readings():
    house = {name for name, each in registry.problems().items() if each.plan_type.__module__.startswith("mapgap.")}
    assert set(problems()) == house
    assert study.unranged() == []


def test_a_switch_that_no_headline_ranges_over_is_a_fault(monkeypatch):
    own = readings_of("neuron_masking")
    more = Reading(name="new", source="", says="", option="nobody", values=(1, 2))
    longer = own.model_copy(update={"readings": (*own.readings, more)})
    monkeypatch.setattr(study, "readings_of", lambda name: longer if name == own.problem else readings_of(name))
    assert study.unranged() == ["neuron_masking: no headline ranges over 'new'"]


def test_combinations_hold_every_pair_of_values():
    readings = [
        Reading(name=str(k), source="", says="", option=f"o{k}", values=tuple(range(size)), fixed=None)
        for k, size in enumerate((3, 2, 2, 4))
    ]
    rows = covering(readings)
    assert rows[0] == (0, 0, 0, 0)
    assert len(rows) < 3 * 2 * 2 * 4
    for i, j in combinations(range(4), 2):
        wanted = set(product(readings[i].values, readings[j].values))
        assert {(row[i], row[j]) for row in rows} == wanted
    some = covering(readings, "o0")
    assert {(row[0], row[3]) for row in some} == set(product(range(3), range(4)))
    assert {row[1] for row in some} == {0, 1}
    assert len(some) <= len(rows)


def test_a_reading_without_a_reason_or_with_two_switches_is_refused():
    for wrong in (
        {"option": "a", "values": (1,)},
        {"option": "a", "field": "b", "values": (1, 2)},
        {},
        {"option": "a"},
    ):
        with pytest.raises((InputError, ValueError), match="expected"):
            Reading(name="x", source="", says="", **wrong)


def test_a_reading_makes_the_instance_that_it_names():
    (synergy,) = (each for each in study.every() if each[0].crossed.method == "synergy")
    name = study.names(synergy[0].crossed)[0]
    made = {each.number: each.instance(name) for each in synergy}
    assert made[0].name == name
    for each in synergy:
        said = {r.name: value for r, value in each.values}
        instance = made[each.number]
        assert instance.sharing == said["operation sharing"]
        sensed = {tick for pipeline in instance.pipelines for tick in pipeline.sensing}
        assert sensed == ({170_000_000 // instance.tick_ns} if said["sensing"] else {0})


@pytest.mark.parametrize("paper", papers())
def test_two_transcriptions_of_a_paper_agree(paper):
    first = {row["id"]: row for row in published_rows(paper)}
    second = SECOND[paper]
    assert second == {key: first[key]["value"] for key in second}
    numbers = {key for key, row in first.items() if row["status"] == "published" and not isinstance(row["value"], str)}
    assert set(second) == numbers
