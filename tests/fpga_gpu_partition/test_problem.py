"""The evaluator of the FPGA-GPU partition on plans timed by hand, and the rules an instance must keep."""

import pytest
from pydantic import ValidationError

from mapgap.problems.fpga_gpu_partition import PROBLEM, Fabric, Instance, Layer, Link, Module, Option, Plan, Read


def gpu(ticks, energy=0):
    return Option(name="gpu", kind="gpu", home="gpu", gpu_ticks=ticks, gpu_energy=energy)


def fpga(ticks, energy=0, multipliers=1, m20k=1):
    return Option(
        name="fpga", kind="fpga", home="fpga", fpga_ticks=ticks, fpga_energy=energy, multipliers=multipliers, m20k=m20k
    )


def split(home="gpu", reads=(500, 500), makes=(600, 400), ticks=(4, 3)):
    return Option(
        name="split",
        kind="split",
        home=home,
        gpu_ticks=ticks[0],
        fpga_ticks=ticks[1],
        gpu_energy=2,
        fpga_energy=1,
        gpu_reads=(reads[0],),
        fpga_reads=(reads[1],),
        gpu_makes=makes[0],
        fpga_makes=makes[1],
        multipliers=3,
        m20k=2,
    )


def layer(name, *options, reads=((-1, 0),), outputs=(1000,)):
    return Layer(
        name=name,
        operation="conv",
        reads=tuple(Read(source=s, part=p) for s, p in reads),
        outputs=outputs,
        options=options,
    )


def network(*modules, **changes):
    """One byte per nanosecond, so 1,000 bytes take one tick of 1 µs; a transfer has a set-up of one tick."""
    fields = {
        "name": "x",
        "tick_ns": 1000,
        "energy_unit_nj": 1000,
        "input_bytes": 1000,
        "fabric": Fabric(multipliers=10, m20k=10),
        "link": Link(bytes_per_second=10**9, setup_ticks=1, setup_energy=5, energy_per_mb=2000),
        "modules": tuple(Module(name=f"m{i}", kind="", layers=layers) for i, layers in enumerate(modules)),
    }
    return Instance(**(fields | changes))


def evaluate(instance, *names):
    return PROBLEM.evaluate(instance, Plan(options=names))


def test_a_chain_on_the_gpu_moves_nothing():
    instance = network((layer("a", gpu(5, 7)), layer("b", gpu(6, 8), reads=((0, 0),))))
    terms = evaluate(instance, "gpu", "gpu").terms
    assert (terms["latency"], terms["energy"], terms["transfers"]) == (11, 15, 0)


def test_the_input_comes_from_the_gpu_and_the_output_returns_there():
    # 1 + 1 ticks there, 3 on the FPGA, 1 + 2 back (2,000 bytes); energy 5 + 2, 4, 5 + 4.
    instance = network((layer("a", gpu(9), fpga(3, 4), outputs=(2000,)),))
    terms = evaluate(instance, "fpga").terms
    assert (terms["latency"], terms["energy"], terms["link_bytes"]) == (2 + 3 + 3, 7 + 4 + 9, 3000)


def test_fused_layers_keep_their_tensor_on_the_chip():
    # Two layers on the FPGA pay the link for the first input and the last output only.
    instance = network((layer("a", fpga(3)), layer("b", fpga(4), reads=((0, 0),))))
    terms = evaluate(instance, "fpga", "fpga").terms
    assert (terms["latency"], terms["transfers"]) == (2 + 3 + 4 + 2, 2)


def test_a_fused_run_continues_across_modules():
    # The same two layers in two modules: homes are kept at the border, only the clock is synchronised.
    instance = network((layer("a", fpga(3)),), (layer("b", fpga(4), reads=((0, 0),)),))
    terms = evaluate(instance, "fpga", "fpga").terms
    assert terms["module_latency"] == [2 + 3, 4 + 2]
    assert terms["transfers"] == 2


def test_branches_overlap_and_the_longer_side_decides():
    # GPU: 0-8. Link: input 0-2. FPGA: 2-5. Link: its output back 5-7. The concatenation waits for the GPU: max(8, 7).
    branches = (layer("a", gpu(8)), layer("b", fpga(3)), layer("cat", gpu(0), reads=((0, 0), (1, 0))))
    assert evaluate(network(branches), "gpu", "fpga", "gpu").terms["latency"] == 8


def test_split_by_input_channels_moves_half_the_input_and_all_partial_sums():
    # FPGA part: 500 bytes arrive at 1 + 1 (rounded up), it runs 2-5, its 1,000 bytes of sums return 5-7; GPU part 0-4.
    instance = network((layer("a", split(makes=(1000, 1000))),))
    terms = evaluate(instance, "split").terms
    assert (terms["latency"], terms["link_bytes"]) == (7, 1500)
    assert terms["energy"] == 3 + (5 + 1) + (5 + 2)
    assert (terms["multipliers"], terms["m20k"]) == (3, 2)


def test_split_joined_on_the_fpga_moves_the_gpu_part():
    # FPGA part as above until 5; the GPU's 600 bytes cross 4-6; then the output of 1,000 bytes returns 6-8.
    instance = network((layer("a", split(home="fpga")),))
    assert evaluate(instance, "split").terms["latency"] == 8


def test_a_tensor_moves_once_per_module_and_then_only_what_is_missing():
    # b takes 400 of 1,000 bytes to the FPGA, c needs the whole there: 600 more. d reads it there for nothing.
    part = split(reads=(600, 400), makes=(600, 400))
    layers = (layer("a", gpu(1)), layer("b", part, reads=((0, 0),)), layer("c", fpga(1), reads=((0, 0),)))
    layers += (layer("d", fpga(1), reads=((0, 0),)),)
    terms = evaluate(network(layers), "gpu", "split", "fpga", "fpga").terms
    moved_there, returned = 400 + 600, 400 + 1000 + 1000
    assert terms["link_bytes"] == moved_there + returned


def test_a_later_module_moves_the_tensor_again():
    first = (layer("a", gpu(1)), layer("b", fpga(1), reads=((0, 0),)))
    again = (layer("c", fpga(1), reads=((0, 0), (1, 0))),)
    # a there, b stays and is read by c on the chip; a there again for c; c back.
    assert evaluate(network(first, again), "gpu", "fpga", "fpga").terms["transfers"] == 3


def test_parts_of_an_output_move_separately():
    # Channel split: the left half stays on the GPU, only the right half crosses and comes back.
    halves = (layer("a", gpu(1), outputs=(300, 700)),)
    unit = (layer("r", fpga(2), reads=((0, 1),), outputs=(700,)), layer("cat", gpu(0), reads=((0, 0), (1, 0))))
    assert evaluate(network(halves, unit), "gpu", "fpga", "gpu").terms["link_bytes"] == 700 + 700


def test_standby_energy_is_rounded_up_per_module():
    # 300 mW for 5 ticks of 1 µs are 1.5 µJ, for 2 ticks 0.6 µJ: two units and one.
    instance = network((layer("a", gpu(5)),), (layer("b", gpu(2), reads=((0, 0),)),), standby_mw=300)
    assert evaluate(instance, "gpu", "gpu").terms["module_energy"] == [2, 1]


@pytest.mark.parametrize(("objective", "value"), [("energy", 15), ("latency", 11), ("edp", 165), ("weighted", 63)])
def test_objectives(objective, value):
    instance = network((layer("a", gpu(11, 15)),), energy_weight=2, latency_weight=3)
    assert evaluate(PROBLEM.retarget(instance, objective), "gpu").objective == value


def test_every_limit_is_checked_and_the_value_is_kept():
    # A study shows by how much a plan exceeds what it exceeds.
    instance = network((layer("a", fpga(3, 4, multipliers=12, m20k=11)),), latency_limit=1, energy_limit=2)
    found = evaluate(instance, "fpga")
    assert {v.rule for v in found.violations} == {"multipliers", "M20K", "latency limit", "energy limit"}
    assert {v.rule: v.amount for v in found.violations}["multipliers"] == 2
    assert found.objective is not None
    assert not found.feasible


def test_resources_add_up_over_modules():
    # Nothing is reconfigured between modules: 6 + 6 multipliers do not fit into 10.
    one, two = layer("a", fpga(1, multipliers=6)), layer("b", fpga(1, multipliers=6), reads=((0, 0),))
    assert [v.rule for v in evaluate(network((one,), (two,)), "fpga", "fpga").violations] == ["multipliers"]


def test_broken_plans_are_named():
    instance = network((layer("a", gpu(1)),))
    assert [v.rule for v in evaluate(instance).violations] == ["options"]
    assert [v.rule for v in evaluate(instance, "fpga").violations] == ["unknown option"]
    assert PROBLEM.gantt(instance, Plan(options=("fpga",))) == []


def test_gantt_has_a_lane_per_queue():
    instance = network((layer("a", fpga(3)),))
    lanes = PROBLEM.gantt(instance, Plan(options=("fpga",)))
    assert [(lane.name, len(lane.bars)) for lane in lanes] == [("GPU", 0), ("FPGA", 1), ("link", 2)]
    assert lanes[1].bars[0].end == pytest.approx(5e-6)


def test_diagnose_names_what_cannot_fit():
    stuck = network((layer("a", fpga(3, multipliers=12)),), (layer("b", fpga(3, m20k=12), reads=((0, 0),)),))
    text = "\n".join(PROBLEM.diagnose(stuck))
    assert "layer a needs at least 12 multipliers" in text
    assert "layer b needs at least 12 M20K" in text
    assert "latency" not in text
    late = network((layer("a", gpu(5, 5)),), latency_limit=4, energy_limit=4)
    assert len(PROBLEM.diagnose(late)) == 2
    assert PROBLEM.diagnose(network((layer("a", gpu(5)),), latency_limit=5)) == []


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: network((layer("a", gpu(1)), layer("a", gpu(1)))),
            r"modules\[0\].layers\[1\] \(a\): expected a distinct name",
        ),
        (
            lambda: network((layer("a", gpu(1), reads=((0, 0),)),)),
            r"reads\[0\].source \(a\): expected a layer before layer 0 \(no cycles\), found 0",
        ),
        (lambda: network((layer("a", gpu(1)), layer("b", gpu(1), reads=((0, 1),)))), "one of 1 parts"),
        (lambda: network((layer("a", gpu(1), gpu(2)),)), "distinct names"),
        (lambda: network((layer("a", split(reads=(500, 2000))),)), r"fpga_reads \(a, split\): expected at most"),
        (
            lambda: network((layer("a", gpu(1).model_copy(update={"home": "fpga"})),)),
            r"options\[0\].home \(a, gpu\): expected gpu",
        ),
        (lambda: network((layer("a", gpu(1).model_copy(update={"m20k": 1})),)), "nothing on the FPGA"),
        (lambda: network((layer("a", gpu(2**30)),)), "tick_ns"),
        (lambda: network((layer("a", gpu(1, 2**30)),)), "energy_unit_nj"),
        (lambda: network((layer("a", gpu(1)),), latency_weight=2**30), "latency_weight"),
        (lambda: network((layer("a", fpga(1, multipliers=2**30)),)), "multipliers"),
        (
            lambda: network(
                (Layer(name="a", operation="", reads=(Read(source=-1, bytes=1001),), outputs=(1,), options=(gpu(1),)),)
            ),
            "at most the output of layer",
        ),
    ],
)
def test_an_instance_that_breaks_a_rule_is_refused(make, message):
    with pytest.raises(ValidationError, match=message):
        make()


def test_a_copy_forgets_what_was_derived():
    # Layers are cached; a copy with other modules must not answer from the old ones.
    instance = network((layer("a", gpu(1)),))
    assert len(instance.layers) == 1
    other = instance.model_copy(update={"modules": network((layer("a", gpu(1)), layer("b", gpu(1)))).modules})
    assert len(other.layers) == 2
    assert other.outputs == {0, 1}
