"""Integers that leave 64 bits, alone or in a product that some method forms, are refused and their field is named."""

import json
from itertools import cycle

import pytest
from mutants import at, leaves, replaced

from mapgap.catalogue import registry
from mapgap.catalogue.files import load_instance
from mapgap.core import LARGEST, InputError

LABELS = ("macs",)
"""Fields that no method reads."""


def integers(data):
    """Every whole number of an instance; of a list of numbers the last one."""
    for path in leaves(data):
        value = at(data, path)
        last = not isinstance(path[-1] if path else "", int) or path[-1] == len(at(data, path[:-1])) - 1
        if type(value) is int and last and path[0] != "schema":
            yield path


def load(tmp_path, data):
    path = tmp_path / "instance.json"
    path.write_text(json.dumps(data))
    return load_instance(path)


@pytest.mark.parametrize("problem", registry.house())
def test_no_field_takes_what_64_bits_do_not_hold(problem, tmp_path):
    data = registry.library(problem).generate("tiny", 3).to_json()
    values = cycle((2**63, 2**64 + 1, -(2**63) - 1, 10**30))
    for path, value in zip(integers(data), values, strict=False):
        if path[-1] in LABELS:
            continue
        with pytest.raises(InputError) as caught:
            load(tmp_path, replaced(data, path, value))
        names = [part for part in path if isinstance(part, str)]
        text = str(caught.value)
        assert any(name in text for name in (*names, "tick_ns", "memory_unit_bytes", "energy_unit_nj")), text


@pytest.mark.parametrize(
    ("problem", "path"),
    [
        ("multi_model_splitting", ("devices", 0, "weights")),
        ("multi_model_splitting", ("devices", 0, "bias")),
        ("multi_model_splitting", ("pipelines", 0, "boundaries", 0, "bytes")),
        ("hybrid_pipeline", ("types", 0, "memory")),
        ("suboperation_mapping", ("accelerators", 0, "memory")),
        ("neuron_masking", ("devices", 0, "memory_limit")),
        ("fpga_gpu_partition", ("fabric", "multipliers")),
    ],
)
def test_capacities_reach_as_far_as_a_float_is_exact(problem, path, tmp_path):
    data = registry.library(problem).generate("tiny", 3).to_json()
    assert at(load(tmp_path, replaced(data, path, LARGEST)).to_json(), path) == LARGEST
    with pytest.raises(InputError, match=rf"{path[-1]}: expected at most {LARGEST}, found {LARGEST + 1}"):
        load(tmp_path, replaced(data, path, LARGEST + 1))


def test_bytes_times_a_fraction_of_bandwidth_and_tick_stay_in_64_bits(tmp_path):
    # One layer of 2^50 bytes over 2^52 - 1 bytes per second (odd, so that nothing cancels): 2 * 10^9 * 2^50 > 2^62,
    # although the AllReduce takes a quarter of a second.
    found = (registry.library("hybrid_pipeline").generate("tiny", seed) for seed in range(50))
    data = next(each.to_json() for each in found if len(each.devices) == 2 and each.replanning is None)
    n = len(data["devices"])
    data |= {"tick_ns": 1, "bandwidth": [[2**52 - 1] * n for _ in range(n)]}
    load(tmp_path, data)
    data["layers"][0]["weight_bytes"] = 2**50
    with pytest.raises(InputError, match=r"layers \(4503599627370495 bytes .*: expected weight_bytes that sum"):
        load(tmp_path, data)
