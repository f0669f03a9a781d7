"""The evaluator of sub-operation mapping against hand-solved plans, and the compiled timing against the evaluator."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mtrain_example import SPLIT, figure5
from pydantic import ValidationError

from mapgap.problems.suboperation_mapping import PROBLEM, Accelerator, Edge, Instance, Layer, Plan
from mapgap.problems.suboperation_mapping.evaluate import diagnose, evaluate, predecessors
from mapgap.problems.suboperation_mapping.instance import operations
from mapgap.problems.suboperation_mapping.lowered.arrays import lower


def test_figure_5_has_twelve_operations():
    # Sec. IV: "There are 12 operations, i.e. l1-l12, after conversion": FP 2 + 1 + 2, BP of fc 2 and of BN 1, WU 2 + 2.
    assert len(operations(figure5(), (1, 1))) == 12
    assert len(operations(figure5(), (2, 0))) == 7


def test_one_accelerator_adds_up_compute_only():
    everything = tuple(
        f"{p}/{layer}" + ("" if layer == "bn" else "/0")
        for p, layer in (
            ("FP", "conv"),
            ("FP", "bn"),
            ("FP", "fc"),
            ("BP", "fc"),
            ("BP", "bn"),
            ("WU", "conv"),
            ("WU", "fc"),
        )
    )
    plan = Plan(ratio=(2, 0), order=(everything, ()))
    # Batch 2 on A: conv 20 + 20, BN 4 + 4, fc 14 + 14 + 14 = 90; nothing is moved.
    result = evaluate(figure5(), plan)
    assert result.feasible
    assert result.objective == 90
    assert result.terms["transfer_ticks"] == {"A": 0, "B": 0}


def test_split_plan_by_hand():
    # A: FP conv/0 0-10. B: FP conv/1 0-15. BN on A waits for B (15) and gathers 5 bytes of share 1: 15-(5+4)-24.
    # FP fc/0 on A 24-31, BP fc/0 31-38. FP fc/1 on B reads 5 bytes from BN: 24-(5+9)-38, BP fc/1 38-47 (weights local).
    # BP BN on A waits for B (47), gathers the loss of share 1 (5 bytes): 47-(5+4)-56.
    # WU conv/0 on A: 10 + dW of 3 bytes to B: 56-69. WU fc/0 on A: 7 + 2 bytes to B: 69-78.
    # WU conv/1 on B waits for BN (56): loss 5 + 15 + dW 3: 56-79. WU fc/1 on B: 9 + 2: 79-90.
    result = evaluate(figure5(), SPLIT)
    assert result.feasible
    assert result.objective == 90
    assert result.terms["transfer_ticks"] == {"A": 5 + 5 + 3 + 2, "B": 5 + 5 + 3 + 2}
    assert result.terms["throughput_gflops"] == pytest.approx(100 / 90e-9 / 1e9)


def test_dram_by_hand_and_flip():
    # Weights and gradients: 2 * (3 + 0 + 2) = 10 on both (B holds no BN: its weight is 0 anyway).
    # A: input of conv/0 (8) from 0 to 69; input of fc/0 (5) from 24 and its loss (1) from 24 to 78; loss of conv/0 and
    # conv/1 are made by BP BN on A at 47: 5 until 69 and 5 until 79. Peak at 47: 10 + 8 + 6 + 5 + 5 = 34.
    # B: input of conv/1 (8) from 0 to 79, input of fc/1 (5) and loss (1) from 24 to 90: 10 + 8 + 6 = 24.
    terms = evaluate(figure5(), SPLIT).terms
    assert terms["peak_memory"] == {"A": 34, "B": 24}
    assert evaluate(figure5(memory=(34, 24)), SPLIT).feasible
    tight = evaluate(figure5(memory=(33, 22)), SPLIT)
    assert [(v.rule, v.where, v.amount) for v in tight.violations] == [("DRAM", "A", 1), ("DRAM", "B", 2)]
    assert tight.objective == 90  # a plan that only exceeds a limit still has a value


def test_weights_travel_to_a_backward_pass_elsewhere():
    instance = figure5()
    # BP of fc needs the loss made from the output of FP fc (1 byte per sample) and the weights (2 bytes).
    assert predecessors(instance, (1, 1), ("BP", 2, 0)) == [(("FP", 2, 0), 2 + 1)]
    # WU of fc: stored input activation (5) and the loss (1). WU of conv: loss from BN's BP (5), own input (8).
    assert predecessors(instance, (1, 1), ("WU", 2, 1)) == [(("FP", 2, 1), 6)]
    assert predecessors(instance, (1, 1), ("WU", 0, 1)) == [(("BP", 1, -1), 5), (("FP", 0, 1), 8)]


@pytest.mark.parametrize(
    ("plan", "rule"),
    [
        (SPLIT.model_copy(update={"ratio": (1, 2)}), "ratio"),
        (SPLIT.model_copy(update={"ratio": (3, -1)}), "ratio"),
        (SPLIT.model_copy(update={"order": (SPLIT.order[0], SPLIT.order[1][:-1])}), "assigned once"),
        (SPLIT.model_copy(update={"order": (SPLIT.order[0], (*SPLIT.order[1], "FP/bn"))}), "assigned once"),
        (SPLIT.model_copy(update={"order": (SPLIT.order[0], (*SPLIT.order[1], "FP/bn/7"))}), "unknown operation"),
        (SPLIT.model_copy(update={"order": (SPLIT.order[0], (*SPLIT.order[1], "nonsense"))}), "unknown operation"),
        (SPLIT.model_copy(update={"order": (SPLIT.order[0],)}), "order"),
        (SPLIT.model_copy(update={"order": (SPLIT.order[0][::-1], SPLIT.order[1])}), "acyclic order"),
    ],
)
def test_every_broken_rule_is_named(plan, rule):
    result = evaluate(figure5(), plan)
    assert not result.feasible
    assert result.objective is None
    assert {v.rule for v in result.violations} == {rule}


def test_more_bandwidth_or_identical_accelerators_swapped():
    assert evaluate(figure5(bandwidth=2 * 10**9), SPLIT).objective <= evaluate(figure5(), SPLIT).objective
    instance = figure5()
    same = tuple(
        layer.model_copy(update={p: getattr(layer, p)[:1] * len(getattr(layer, p)) for p in ("fp", "bp", "wu")})
        for layer in instance.layers
    )
    symmetric = instance.model_copy(update={"layers": same})
    swapped = SPLIT.model_copy(update={"order": SPLIT.order[::-1]})
    assert evaluate(symmetric, SPLIT).objective == evaluate(symmetric, swapped).objective


def test_scaling_all_times_scales_the_makespan():
    instance = figure5()

    def tripled(layer):
        tables = {p: tuple(tuple(3 * t for t in row) for row in getattr(layer, p)) for p in ("fp", "bp", "wu")}
        return layer.model_copy(update=tables)

    slow = instance.model_copy(
        update={"layers": tuple(map(tripled, instance.layers)), "bandwidth": ((1, 10**9), (10**9, 1)), "tick_ns": 1}
    )
    third = {"bandwidth": ((1, 10**9 // 3), (10**9 // 3, 1))}
    moved = evaluate(instance, SPLIT).objective
    # 10^9 // 3 bytes/s make ceil(3.000000003 * bytes) ticks: one tick more than three times, per transfer.
    result = evaluate(slow.model_copy(update=third), SPLIT).objective
    assert 3 * moved <= result <= 3 * moved + 14


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"batch": 3}, "expected 2 rows of 3 ticks"),
        ({"bandwidth": ((1, 2),)}, "expected a 2 x 2 matrix"),
        ({"bandwidth": ((1, 0), (1, 1))}, "bandwidth[0][1]: expected a positive"),
        ({"tick_ns": 1, "memory_unit_bytes": 1, "bandwidth": ((1, 1), (1, 1))}, "tick_ns"),
        ({"accelerators": (Accelerator(name="A", memory=1, pes=1),) * 2}, "distinct names"),
    ],
)
def test_instance_refuses_bad_data(change, text):
    data = figure5().model_dump(by_alias=True) | {
        k: tuple(v.model_dump() for v in value) if k == "accelerators" else value for k, value in change.items()
    }
    with pytest.raises(ValidationError) as caught:
        Instance.model_validate(data)
    assert text in str(caught.value)


def test_cyclic_graph_is_refused():
    data = figure5().model_dump(by_alias=True)
    data["layers"][0]["inputs"] = ({"source": 2, "bytes": 1},)
    with pytest.raises(ValidationError, match="expected a layer before it"):
        Instance.model_validate(data)


def test_diagnose_names_the_layer_that_fits_nowhere():
    # conv needs 2 * 3 units; 5 are too few on both. All layers together need 10.
    assert "layer conv need 6 units" in diagnose(figure5(memory=(5, 5)))[0]
    assert diagnose(figure5(memory=(6, 4))) == []
    assert "all layers need 10 units" in diagnose(figure5(memory=(6, 3)))[0]


@st.composite
def cases(draw):
    """A random network of up to five layers on up to three accelerators with a random mapping and order."""
    batch, count = draw(st.integers(1, 4)), draw(st.integers(1, 3))
    ticks = st.integers(0, 9)
    layers = []
    for index in range(draw(st.integers(1, 5))):
        kind = draw(st.sampled_from(["split", "split", "fused"]))
        sources = sorted(draw(st.sets(st.integers(0, index - 1), max_size=2))) if index else []
        entries = batch if kind == "split" else 1
        rows = st.tuples(*[st.tuples(*[ticks] * entries)] * count)
        layers.append(
            Layer(
                name=f"l{index}",
                kind=kind,
                inputs=tuple(Edge(source=s, bytes=draw(ticks)) for s in sources),
                network_input_bytes=0 if sources else draw(ticks),
                output_bytes=draw(ticks),
                weight_bytes=draw(ticks),
                fp=draw(rows),
                bp=draw(rows) if sources else (),
                wu=draw(rows) if kind == "split" else (),
            )
        )
    speed = st.integers(3 * 10**8, 3 * 10**9)
    instance = Instance(
        name="random",
        batch=batch,
        tick_ns=1,
        memory_unit_bytes=draw(st.integers(1, 3)),
        flops=1,
        accelerators=tuple(Accelerator(name=f"a{i}", memory=draw(st.integers(0, 60)), pes=1) for i in range(count)),
        bandwidth=tuple(tuple(draw(speed) for _ in range(count)) for _ in range(count)),
        layers=tuple(layers),
    )
    cuts = sorted(draw(st.lists(st.integers(0, batch), min_size=count - 1, max_size=count - 1)))
    ratio = tuple(b - a for a, b in zip([0, *cuts], [*cuts, batch], strict=True))
    return instance, ratio, draw(st.integers(0, 2**32 - 1))


@pytest.mark.in_turn
@settings(max_examples=300, deadline=None)
@given(cases())
def test_compiled_timing_and_memory_equal_the_evaluator(case):
    instance, ratio, seed = case
    lowered = lower(instance, ratio)
    rng = np.random.default_rng(seed)
    location = rng.integers(0, lowered.accelerators, lowered.n)
    waiting, sequence = list(range(lowered.n)), []
    while waiting:  # a random topological sequence
        ready = [o for o in waiting if all(p in sequence for p in lowered.predecessors(o))]
        sequence.append(ready[rng.integers(len(ready))])
        waiting.remove(sequence[-1])
    sequence = np.array(sequence, np.int64)
    plan = lowered.plan(location, sequence)
    result = evaluate(instance, plan)
    start, end = lowered.timetable(location, sequence)
    assert end.max() == result.objective
    excess = sum(v.amount for v in result.violations if v.rule == "DRAM")
    assert lowered.memory_excess(location, start, end) == excess
    again = lowered.mapping(plan)
    assert np.array_equal(again[0], location)
    assert lowered.makespan(*again) == result.objective
    assert lowered.makespan(location, lowered.topological) > 0 or result.objective == 0
    assert Plan.model_validate_json(plan.model_dump_json()) == plan


def test_problem_states_unit_and_gantt():
    lanes = PROBLEM.gantt(figure5(), SPLIT)
    assert [lane.name for lane in lanes] == ["A", "B"]
    assert max(bar.end for lane in lanes for bar in lane.bars) == pytest.approx(90e-9)
    assert PROBLEM.unit(figure5()) == "ticks of 1 ns"
