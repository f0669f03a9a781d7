"""The library of neuron masking: MAC counts, Table 3's times, rounding, and what cannot be expanded."""

from fractions import Fraction

import pytest

from mapgap.catalogue.files import find_instances, load_instance
from mapgap.core import InputError
from mapgap.instances.facts import load_devices, load_network
from mapgap.instances.neuron_masking.compact import Compact, expand, layers_of, rate_above, totals
from mapgap.instances.published_numbers import load_published
from mapgap.problems.neuron_masking import Mask, Plan, costs
from mapgap.problems.neuron_masking.evaluate import diagnose, evaluate

NAMES = sorted(find_instances("elfish_*"))


def compact(**fields):
    base = {"name": "x", "network": "lenet5", "devices": ("straggler1",), "cycle_min": (1.0,)}
    return Compact.model_validate({"problem": "neuron_masking", **base, **fields})


@pytest.mark.parametrize("name", NAMES)
def test_every_instance_has_a_plan_and_binds(name):
    # A straggler that could train the whole model would be none.
    instance = load_instance(name)
    assert diagnose(instance) == []
    whole = [layer.neurons for layer in instance.layers]
    shortest = instance.cycle_ms[0]
    for device in instance.devices:
        cost = costs(instance, device, whole)
        if device.name.startswith(("straggler", "deeplens", "raspberry")):
            assert cost.time > device.time_limit[0], (device.name, shortest)
        elif len(instance.cycle_ms) == 1:
            assert cost.time <= device.time_limit[0], device.name


@pytest.mark.parametrize(
    ("network", "macs"),
    [  # LeCun et al. 1998 and Simonyan, Zisserman 2015 by shape arithmetic; Table 3 implies 86 to 92 million
        ("lenet5", 416_520),
        ("vgg11_cifar", 152_769_536),
        ("vgg13_cifar", 228_267_008),
        ("alexnet_elfish", 85_377_024),
        ("digits_cnn", 26_592),
    ],
)
def test_work_units_of_the_whole_model_are_its_macs(network, macs):
    table = load_network(network)
    layers = layers_of(table, 128, 10.0)
    work, memory = totals(table.input_chw[0], layers)
    assert work == macs == table.macs
    # Eq. (2): 8 bytes per weight (no biases), 4 bytes per element of a layer's map and sample.
    biases = sum(layer.neurons for layer in layers)
    maps = sum(row.out for row in table.rows if row.type in ("conv", "fc"))
    assert 8 * memory == 8 * (table.params - biases) + 4 * 128 * maps


@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_times_of_table_3(number):
    # Minutes for the whole AlexNet at O_T = 0; the level agrees by the choice of the network, the scaling by itself.
    instance = load_instance(f"elfish_alexnet_cifar_straggler{number}")
    spilling = instance.model_copy(update={"memory_mode": "spill"})
    plan = Plan(masks=(Mask(kept=tuple(layer.neurons for layer in instance.layers)),))
    seconds = evaluate(spilling, plan).terms["devices"][f"straggler{number}"]["time_s"]
    printed = load_published("elfish")
    assert seconds / 60 == pytest.approx(printed[f"t3_s{number}_t"], rel=0.05)
    by_hand = 85_377_024 * 2 * 391 * 128 / (printed[f"t3_s{number}_w"] * 1e9)
    # Eq. (4): 391 batches of 228.2 MB from main memory, what exceeds b_M from secondary memory.
    moved = 391 * (228.2e6 / 25e9 + max(0.0, 228.2e6 - printed[f"t3_s{number}_m"] * 1e6) / 870e6)
    assert seconds == pytest.approx(by_hand + moved, rel=1e-3)


def test_devices_are_those_of_table_3():
    printed, table = load_published("elfish"), load_devices("elfish")
    for number in (1, 2, 3, 4):
        facts = table.of(f"straggler{number}")
        assert facts["compute"].value == printed[f"t3_s{number}_w"]
        assert facts["memory"].value == printed[f"t3_s{number}_m"]


def test_rates_round_up_and_stay_small():
    memory = 25_000_000
    exact = Fraction(175, 696)
    rate = rate_above(exact, memory)
    assert exact <= Fraction(rate.ticks, rate.per) <= exact * Fraction(101, 100)
    assert rate.ticks * memory < 2**30
    assert rate_above(Fraction(7, 800), 1000).per == 800  # an exact fraction stays exact


def test_floors_and_whole_layers():
    layers = expand(compact(floor_percent=50.0)).layers
    assert [layer.least for layer in layers] == [3, 8, 60, 42, 10]
    assert [layer.least for layer in expand(compact(floor_percent=0.0)).layers] == [1, 1, 1, 1, 10]


def test_overhead_rounds_up_and_limits_down():
    device = expand(compact(overhead_min=0.01, cycle_min=(0.5,))).devices[0]
    per_second = Fraction(7_000_000_000, 2 * 391 * 128)
    assert 0 <= device.overhead - per_second * Fraction(6, 10) < 1
    assert 0 <= per_second * 30 - device.time_limit[0] < 1


def test_all_findings_are_listed():
    with pytest.raises(InputError) as error:
        expand(compact(network="lenet6", devices=("capable 2", "straggler9"), cycle_min=None))
    found = error.value.findings
    assert [finding.location for finding in found] == [("network",), ("devices", 1), ("cycle_min",)]
    assert "did you mean 'lenet5'" in found[0].text


def test_every_unknown_device_is_a_finding():
    with pytest.raises(InputError) as error:
        expand(compact(devices=("nobody", "capable", "capable x")))
    assert [finding.location for finding in error.value.findings] == [("devices", 0), ("devices", 2)]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"network": "resnet18"}, "network: expected a chain"),
        ({"devices": ()}, "devices: expected at least one"),
        ({"cycle_min": (0.0,)}, "cycle_min: expected positive"),
        ({"reference": "capable"}, "expected either cycle_min or reference, found both"),
        ({"cycle_min": None, "reference": "nobody"}, "reference: expected one of"),
    ],
)
def test_what_cannot_be_expanded(fields, message):
    with pytest.raises(InputError, match=message):
        expand(compact(**fields))
