"""Six ways to break an instance file of each problem: each is one finding that names place, expected and found."""

import copy
import re

import pytest
import yaml

from mapgap.catalogue import files as loading
from mapgap.catalogue import registry
from mapgap.core import InputError

FINDING = re.compile(r"(?P<path>.*?):(?P<line>\d+):(?P<column>\d+): (?P<text>.*)", re.DOTALL)

#: Per problem: a library file, and in an expanded instance of the family ``small`` the paths of a time, of a table that
#: may lose its last entry, of a whole number, and of an index of a device, type or layer.
PLACES = {
    "suboperation_mapping": (
        "mtrain_c1_alexnet_3gbs",
        ("layers", 0, "fp", 0, 0),
        ("layers", 0, "fp", 0),
        ("layers", 0, "weight_bytes"),
        None,
    ),
    "hybrid_pipeline": (
        "asteroid_a_bert_small_1000mbps",
        ("types", 0, "forward", 0, 0),
        ("types", 0, "forward", 0),
        ("layers", 0, "output_bytes"),
        ("devices", 0, "type"),
    ),
    "multi_model_splitting": (
        "synergy_w1_distributed",
        ("pipelines", 0, "layers", 0, "inference", 0),
        ("pipelines", 0, "layers", 0, "inference"),
        ("pipelines", 0, "layers", 0, "weights"),
        None,
    ),
    "fpga_gpu_partition": (
        "dhm_squeezenet_fold1",
        ("modules", 0, "layers", 0, "options", 0, "gpu_ticks"),
        ("modules", 0, "layers", 0, "outputs"),
        ("modules", 0, "layers", 0, "options", 0, "gpu_energy"),
        ("modules", 0, "layers", 0, "reads", 0, "source"),
    ),
    "neuron_masking": (
        "elfish_alexnet_cifar_deeplens",
        ("devices", 0, "time_limit", 0),
        ("devices", 0, "contributions", 0),
        ("layers", 0, "work"),
        None,
    ),
}
#: Per problem: changes of the compact file that name something that the library does not have.
STRANGERS = {
    "suboperation_mapping": [("cluster", 7), ("network", "alexnett")],
    "hybrid_pipeline": [("cluster", "Z"), ("network", "bert_smal")],
    "multi_model_splitting": [
        ("devices", 0, "type", "MAX78003"),
        ("pipelines", 1, "source", "device", "d9"),
        ("pipelines", 0, "target", "device", "d9"),
        ("pipelines", 0, "model", "convnet6"),
    ],
    "fpga_gpu_partition": [("cost_model", "fit9"), ("network", "squeezenet")],
    "neuron_masking": [("devices", 0, "deeplense"), ("network", "alexnett")],
}
problems = pytest.mark.parametrize("problem", PLACES)


def small(problem):
    """Plain data of an expanded instance that has a plan, as far as is easily seen."""
    found = (registry.library(problem).generate("small", seed) for seed in range(20))
    return next(instance for instance in found if not loading.diagnosed(instance)).to_json()


def changed(data, path, value):
    data = copy.deepcopy(data)
    holder = data
    for step in path[:-1]:
        holder = holder[step]
    holder[path[-1]] = value
    return data


def value_at(data, path):
    for step in path:
        data = data[step]
    return data


def findings(tmp_path, text):
    """``(line of text, message)`` of every finding; all of them are about the file and say what was expected."""
    path = tmp_path / "broken.yaml"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        loading.check_file(path)
    found = []
    for problem in caught.value.problems:
        matched = FINDING.fullmatch(problem)
        assert matched is not None, problem
        assert matched["path"] == str(path)
        assert "expected " in matched["text"], problem
        found.append((text.splitlines()[int(matched["line"]) - 1], matched["text"]))
    return found


def the_one(found):
    assert len(found) == 1, found
    return found[0]


@problems
def test_syntax(problem, tmp_path):
    text = loading.library_files()[PLACES[problem][0]].read_text().replace("tags: [", "tags: [[", 1)
    _, message = the_one(findings(tmp_path, text))
    assert "expected valid YAML" in message


@problems
def test_unknown_field_on_top_and_below(problem, tmp_path):
    data, inner = small(problem), PLACES[problem][3]
    for path in (("colour",), (*inner[:-1], "colour")):
        line, message = the_one(findings(tmp_path, loading.dump(changed(data, path, 3))))
        assert "colour: 3" in line
        assert "colour: expected a known field" in message
    text = loading.library_files()[PLACES[problem][0]].read_text() + "colour: 3\n"
    assert the_one(findings(tmp_path, text))[0] == "colour: 3"


@problems
def test_wrong_type(problem, tmp_path):
    path = PLACES[problem][3]
    line, message = the_one(findings(tmp_path, loading.dump(changed(small(problem), path, "many"))))
    assert f"{path[-1]}: many" in line
    assert message.endswith(f"{path[-1]}: expected an integer, found 'many'")


@problems
def test_negative_time(problem, tmp_path):
    line, message = the_one(findings(tmp_path, loading.dump(changed(small(problem), PLACES[problem][1], -5))))
    assert "-5" in line
    assert "0" in message.partition("expected")[2]  # at least 0, from 0 on


@problems
def test_inconsistent_lengths(problem, tmp_path):
    data, path = small(problem), PLACES[problem][2]
    shorter = value_at(data, path)[:-1]
    line, message = the_one(findings(tmp_path, loading.dump(changed(data, path, shorter))))
    assert str(shorter).strip("[]")[:12] in line
    assert message.rpartition("found ")[2].startswith(("a list of", "[", str(len(shorter))))


@pytest.mark.parametrize(
    ("problem", "change"), [(problem, change) for problem, changes in STRANGERS.items() for change in changes]
)
def test_what_the_library_does_not_have(problem, change, tmp_path):
    *path, name = change
    data = yaml.safe_load(loading.library_files()[PLACES[problem][0]].read_text())
    line, message = the_one(findings(tmp_path, loading.dump(changed(data, path, name))))
    assert str(name) in line
    assert re.search(rf"expected (one of )?.*found '?{name}'?", message)


@pytest.mark.parametrize("problem", [problem for problem, places in PLACES.items() if places[4]])
def test_index_that_is_none(problem, tmp_path):
    line, message = the_one(findings(tmp_path, loading.dump(changed(small(problem), PLACES[problem][4], 77))))
    assert "77" in line
    assert message.endswith("found 77")


def test_a_union_is_one_finding(tmp_path):
    data = yaml.safe_load(loading.library_files()["mtrain_c1_alexnet_3gbs"].read_text())
    _, message = the_one(findings(tmp_path, loading.dump(data | {"bandwidth_gbs": "wide"})))
    assert message == "bandwidth_gbs: expected a number or a list, found 'wide'"


def test_a_list_with_a_broken_item_is_not_called_short_as_well(tmp_path):
    data = small("neuron_masking")
    _, message = the_one(findings(tmp_path, loading.dump(changed(data, ("devices", 0, "overhead"), -5))))
    assert message == "devices[0].overhead: expected at least 0, found -5"
