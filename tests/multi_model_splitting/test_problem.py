"""The evaluator of multi-model splitting against plans evaluated by hand, sharing, and devices that come and go."""

import pytest
from pydantic import ValidationError

from mapgap.instances.multi_model_splitting import LIBRARY
from mapgap.problems.multi_model_splitting import (
    PROBLEM,
    Boundary,
    Deployed,
    Device,
    Instance,
    Layer,
    Pipeline,
    PipelinePlan,
    Plan,
    Requirement,
    Segment,
    after,
    churn,
    part,
)
from mapgap.problems.multi_model_splitting.diagnose import diagnose
from mapgap.problems.multi_model_splitting.evaluate import evaluate
from mapgap.problems.multi_model_splitting.gantt import gantt

BYTES = (10, 40, 20, 5)
"""Boundaries of the three-layer model below; a byte takes one tick to send and two to receive."""


def pipeline(name, source, target, signal="", model="m", n=2):
    return Pipeline(
        name=name,
        source=source,
        target=target,
        signal=signal,
        model=model,
        sensing=(7,) * n,
        layers=tuple(
            Layer(
                name=f"l{i}", weights=100, bias=10, output_bytes=BYTES[i + 1], inference=tuple(3 + d for d in range(n))
            )
            for i in range(3)
        ),
        boundaries=tuple(
            Boundary(
                bytes=size,
                load=(1,) * n if b < 3 else (),
                unload=(2,) * n if b > 0 else (),
                transmit=(size,) * n,
                receive=(2 * size,) * n,
            )
            for b, size in enumerate(BYTES)
        ),
    )


def on(name):
    return Requirement(device=name)


def instance(pipelines, weights=(1000, 1000), bias=100, layers=10, **changes):
    devices = tuple(
        Device(
            name=f"d{d}",
            weights=w,
            bias=bias,
            layers=layers,
            sensors=("camera",) if d == 0 else (),
            interfaces=("haptic",) if d == 1 else (),
        )
        for d, w in enumerate(weights)
    )
    return Instance(name="hand", tick_ns=1000, devices=devices, pipelines=tuple(pipelines), **changes)


def plan(*pipelines):
    """Each as ``(source, target, (device, first, last), ...)``."""
    return Plan(
        pipelines=tuple(
            PipelinePlan(source=s, target=t, segments=tuple(Segment(device=d, first=i, last=j) for d, i, j in segments))
            for s, t, *segments in pipelines
        )
    )


ONE = instance([pipeline("p", on("d0"), on("d0"))])


def test_everything_on_the_device_of_source_and_target():
    # Sensing 7; load 1 and unload 2 on the MCU; 3 layers of 3 ticks on the accelerator; nothing is moved.
    result = evaluate(ONE, plan((0, 0, (0, 0, 3))))
    assert result.feasible
    assert result.objective == 9
    assert result.terms["load_ticks"] == {
        "d0": {"sensor": 7, "mcu": 3, "accelerator": 9, "radio": 0},
        "d1": {"sensor": 0, "mcu": 0, "accelerator": 0, "radio": 0},
    }
    assert result.terms["latency_ticks"] == 7 + 3 + 9
    assert result.terms["bottleneck"] == "d0 accelerator"
    assert result.terms["throughput_per_s"] == pytest.approx(1 / 9e-6)


def test_a_cut_is_sent_received_loaded_and_unloaded():
    # Cut at boundary 2 (20 bytes): d0 sends 20 and receives the output 2 * 5; d1 receives 40 and sends 5.
    # MCU 3 on each; accelerators 2 * 3 and 1 * 4. Latency 7 + 3 + 6 + 60 + 3 + 4 + 15.
    result = evaluate(ONE, plan((0, 0, (0, 0, 2), (1, 2, 3))))
    assert result.feasible
    assert result.terms["load_ticks"]["d0"] == {"sensor": 7, "mcu": 3, "accelerator": 6, "radio": 30}
    assert result.terms["load_ticks"]["d1"] == {"sensor": 0, "mcu": 3, "accelerator": 4, "radio": 45}
    assert result.objective == 45
    assert result.terms["latency_ticks"] == 98
    assert result.terms["transfers"] == 2
    assert evaluate(ONE.model_copy(update={"objective": "latency"}), plan((0, 0, (0, 0, 2), (1, 2, 3)))).objective == 98


def test_input_and_output_move_when_the_model_runs_elsewhere():
    # d0 sends the input (10) and receives the output (2 * 5); d1 receives 20 and sends 5.
    result = evaluate(ONE, plan((0, 0, (1, 0, 3))))
    assert [result.terms["load_ticks"][d]["radio"] for d in ("d0", "d1")] == [20, 25]


def test_out_of_resource_names_device_and_resource():
    two = instance([pipeline("p", on("d0"), on("d0")), pipeline("q", on("d1"), on("d1"))], (550, 1000), 50, 5)
    result = evaluate(two, plan((0, 0, (0, 0, 3)), (1, 1, (0, 0, 3))))
    # Six layers: 600 bytes of weights, 60 of bias on d0, which has 550, 50 and 5 layers.
    assert {(v.rule, v.where, v.amount) for v in result.violations} == {
        ("weights", "d0", 50),
        ("bias", "d0", 10),
        ("layers", "d0", 1),
    }
    assert result.objective is not None
    assert not result.feasible
    assert evaluate(two, plan((0, 0, (0, 0, 3)), (1, 1, (1, 0, 3)))).feasible


@pytest.mark.parametrize(
    ("decisions", "rule", "valued"),
    [
        ((1, 0, (0, 0, 3)), "source", True),
        ((0, 1, (0, 0, 3)), "target", True),
        ((0, 0, (0, 0, 1), (1, 1, 2), (0, 2, 3)), "one segment per device", True),
        ((0, 0, (0, 0, 1), (0, 1, 3)), "one segment per device", True),
        ((0, 0, (0, 0, 2)), "contiguous segments", False),
        ((0, 0, (0, 0, 2), (1, 1, 3)), "contiguous segments", False),
        ((0, 0, (0, 0, 0), (1, 0, 3)), "contiguous segments", False),
        ((0, 0), "contiguous segments", False),
        ((0, 0, (2, 0, 3)), "device number", False),
    ],
)
def test_broken_rules_are_named(decisions, rule, valued):
    result = evaluate(ONE, plan(decisions))
    assert [v.rule for v in result.violations] == [rule]
    assert (result.objective is not None) == valued


def test_every_pipeline_needs_a_plan():
    assert evaluate(ONE, plan()).violations[0].rule == "one plan per pipeline"


def test_requirements_by_type():
    typed = instance([pipeline("p", Requirement(type="camera"), Requirement(type="haptic"))])
    assert (typed.sources(0), typed.targets(0)) == ([0], [1])
    anything = instance([pipeline("p", Requirement(), Requirement())])
    assert (anything.sources(0), anything.targets(0)) == ([0, 1], [0, 1])
    with pytest.raises(ValidationError, match="found both"):
        Requirement(device="d0", type="camera")


def shared(first, second, **kinds):
    twins = [pipeline("p", on("d0"), on("d0"), "video"), pipeline("q", on("d0"), on("d1"), "video", **kinds)]
    return [evaluate(instance(twins, sharing=on_off), plan(first, second)) for on_off in (False, True)]


def test_equal_pipelines_up_to_the_target_are_merged():
    # q only adds the transfer of the output: d0 sends 5, d1 receives 10. Memory is occupied once.
    apart, merged = shared((0, 0, (0, 0, 3)), (0, 1, (0, 0, 3)))
    assert apart.terms["load_ticks"]["d0"] == {"sensor": 14, "mcu": 6, "accelerator": 18, "radio": 5}
    assert merged.terms["load_ticks"]["d0"] == {"sensor": 7, "mcu": 3, "accelerator": 9, "radio": 5}
    assert (apart.terms["used"]["d0"]["weights"], merged.terms["used"]["d0"]["weights"]) == (600, 300)
    assert apart.terms["latency_ticks"] == merged.terms["latency_ticks"]


def test_a_segment_merges_only_with_the_same_segment():
    # 0:2 and 0:3 on d0 are different segments: only the sensing is merged.
    _, merged = shared((0, 0, (0, 0, 3)), (0, 1, (0, 0, 2), (1, 2, 3)))
    assert merged.terms["load_ticks"]["d0"] == {"sensor": 7, "mcu": 6, "accelerator": 15, "radio": 20}


def test_equal_transfers_are_merged():
    # Both send boundary 2 from d0 to d1 and run layer 2 there; p also returns the output to d0.
    _, merged = shared((0, 0, (0, 0, 2), (1, 2, 3)), (0, 1, (0, 0, 2), (1, 2, 3)))
    assert merged.terms["load_ticks"]["d0"]["radio"] == 20 + 10
    assert merged.terms["load_ticks"]["d1"] == {"sensor": 0, "mcu": 3, "accelerator": 4, "radio": 40 + 5}


def test_another_model_shares_sensing_and_input_transfer_only():
    _, merged = shared((0, 0, (1, 0, 3)), (0, 1, (1, 0, 3)), model="other")
    assert merged.terms["load_ticks"]["d0"] == {"sensor": 7, "mcu": 0, "accelerator": 0, "radio": 10 + 10}
    assert merged.terms["load_ticks"]["d1"] == {"sensor": 0, "mcu": 6, "accelerator": 24, "radio": 20 + 5}
    assert merged.terms["used"]["d1"]["layers"] == 6


def test_equal_signals_must_be_equal_data():
    other = pipeline("q", on("d0"), on("d1"), "video", "m2").model_copy(update={"sensing": (8, 8)})
    with pytest.raises(ValidationError, match="expected sensing and input as in p"):
        instance([pipeline("p", on("d0"), on("d0"), "video"), other], sharing=True)


def test_lanes_are_loads_of_one_cycle_and_the_bottleneck_is_marked():
    lanes = gantt(ONE, plan((0, 0, (0, 0, 2), (1, 2, 3))))
    assert [lane.name for lane in lanes] == [
        "d0 sensor",
        "d0 mcu",
        "d0 accelerator",
        "d0 radio",
        "d1 mcu",
        "d1 accelerator",
        "d1 radio (bottleneck)",
    ]
    assert lanes[-1].bars[-1].end == pytest.approx(45e-6)
    assert [bar.label for bar in lanes[2].bars] == ["p 0:2"]


def test_diagnosis_names_what_is_missing():
    assert diagnose(ONE) == []
    assert diagnose(instance([pipeline("p", on("d9"), Requirement(type="haptic"))])) == ["source of p: no device is d9"]
    assert "bias: all layers need 30, all accelerators together have 20" in diagnose(instance(ONE.pipelines, bias=10))
    assert any("fits into no accelerator" in reason for reason in diagnose(instance(ONE.pipelines, (50, 99))))


def test_findings_are_listed_at_once():
    broken = pipeline("p", on("d0"), on("d0"), n=3)
    with pytest.raises(ValidationError) as caught:
        instance([broken, broken])
    (raised,) = caught.value.errors()
    found = {finding.location: str(finding) for finding in raised["ctx"]["error"].findings}
    assert found["pipelines",] == "pipelines: expected distinct names"
    receive = found["pipelines", 1, "boundaries", 3, "receive"]
    assert receive == "pipelines[1].boundaries[3].receive (p): expected 2 ticks, one per device, found 3"
    assert all(finding[0] == "pipelines" for finding in found)
    slow = pipeline("p", on("d0"), on("d0")).model_copy(update={"sensing": (2**30, 1)})
    with pytest.raises(ValidationError, match="tick so coarse"):
        instance([slow])


def test_part_keeps_the_columns_of_the_devices_that_stay():
    whole = LIBRARY.generate("small", 1)
    names = [device.name for device in whole.devices]
    smaller = part(whole, names[1:], [whole.pipelines[0].name])
    assert [d.name for d in smaller.devices] == names[1:]
    assert smaller.pipelines[0].boundaries[1].transmit == whole.pipelines[0].boundaries[1].transmit[1:]
    assert part(whole, names, [p.name for p in whole.pipelines]) == whole
    with pytest.raises(ValueError, match="nobody"):
        part(whole, [*names, "nobody"], ["p1"])


def test_churn_counts_what_is_written_again():
    before = plan((0, 0, (0, 0, 2), (1, 2, 3)))
    new = after(ONE, before, instance([*ONE.pipelines, pipeline("q", on("d1"), on("d1"))]))
    assert [(old.device, old.first, old.last) for old in new.deployed] == [("d0", 0, 2), ("d1", 2, 3)]
    # p's layer 1 moves from d0 to d1: 110 bytes; q is new: 330 bytes.
    result = churn(new, plan((0, 0, (0, 0, 1), (1, 1, 3)), (1, 1, (1, 0, 3))))
    assert (result.moved_layers, result.moved_weights, result.moved_pipelines, result.new_weights) == (1, 110, 1, 330)
    terms = evaluate(new, plan((0, 0, (0, 0, 2), (1, 2, 3)), (1, 1, (1, 0, 3)))).terms
    assert terms["churn"]["moved_layers"] == 0
    assert new.content_hash != ONE.content_hash
    with pytest.raises(ValidationError, match="expected layers of a pipeline"):
        instance(ONE.pipelines, deployed=(Deployed(pipeline="p", device="gone", first=2, last=4),))


def test_objectives_are_part_of_the_hash():
    assert PROBLEM.retarget(ONE, "latency").content_hash != ONE.content_hash
