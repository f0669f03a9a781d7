"""ONNX models with control flow, quantised, in half precision, with weights beside them; and nothing of them lost."""

import json
import random
import sys

import foreign
import pytest
from cli_support import inside

from mapgap.contract.seeds import seeds
from mapgap.core import InputError
from mapgap.core.workload import Settings
from mapgap.importing.conservation import check, shares
from mapgap.importing.recognise import read

onnx = pytest.importorskip("onnx")
np = pytest.importorskip("numpy")
make, FLOAT, INT64, BOOL, HALF = onnx.helper, 1, 7, 9, 10


def tensor(name, values):
    return onnx.numpy_helper.from_array(np.asarray(values), name)


def weight(name, *shape, kind=np.float32):
    return tensor(name, np.linspace(-1, 1, int(np.prod(shape))).reshape(shape).astype(kind))


def value(name, *dims, kind=FLOAT):
    return make.make_tensor_value_info(name, kind, list(dims))


def unshaped(name, kind=FLOAT):
    return make.make_tensor_value_info(name, kind, None)


def model(nodes, inputs, outputs, weights=(), *, domains=(), functions=()):
    graph = make.make_graph(nodes, "made", inputs, outputs, list(weights))
    opsets = [make.make_opsetid("", 17), *(make.make_opsetid(name, 1) for name in domains)]
    made = make.make_model(graph, opset_imports=opsets, functions=list(functions))
    made.ir_version = 8
    return made


def graph_of(path, made, **settings):
    path.write_bytes(made.SerializeToString())
    return read([path], Settings(settings))


def held(graph):
    """Quantity to what the layers hold of it, and what there is."""
    return {share.total.quantity: (share.held, share.total.amount) for share in shares(graph)}


def refused(path, made, **settings):
    with pytest.raises(InputError) as caught:
        graph_of(path, made, **settings)
    return "\n".join(caught.value.problems)


def branches(name, weights):
    """Two bodies: one multiplies what it captures, the other hands it on."""
    then = make.make_graph([make.make_node("MatMul", [name, weights], ["t"], name="m")], "then", [], [unshaped("t")])
    other = make.make_graph([make.make_node("Identity", [name], ["e"], name="i")], "other", [], [unshaped("e")])
    return {"then_branch": then, "else_branch": other}


def captured_if():
    """Relu, If with a constant condition whose branches capture the Relu, MatMul, Relu; two 2048 x 2048 matrices."""
    nodes = [
        make.make_node("Relu", ["x"], ["r"], name="relu1"),
        make.make_node("If", ["yes"], ["y"], name="if", **branches("r", "a")),
        make.make_node("MatMul", ["y", "b"], ["z"], name="matmul"),
        make.make_node("Relu", ["z"], ["out"], name="relu2"),
    ]
    weights = [tensor("yes", True), weight("a", 2048, 2048), weight("b", 2048, 2048)]
    return model(nodes, [value("x", "batch", 2048)], [unshaped("out")], weights)


@pytest.mark.in_turn
def test_a_node_that_captures_a_tensor_is_no_constant(tmp_path):
    pytest.importorskip("onnxruntime")
    graph = graph_of(tmp_path / "if.onnx", captured_if())
    assert list(graph.graph.edges) == [("relu1", "if"), ("if", "matmul"), ("matmul", "relu2")]
    # Each matrix has 2048 x 2048 values of four bytes, and as many products for a sample.
    assert graph.layer("if").weight_bytes == 2048 * 2048 * 4 + 1  # and the condition
    assert graph.layer("matmul").weight_bytes == 2048 * 2048 * 4
    assert [graph.layer(name).macs for name in graph.order()] == [0, 2048**2, 2048**2, 0]
    assert held(graph)["weights"] == (2 * 2048 * 2048 * 4 + 1,) * 2
    assert graph.readers == {"relu1"}


def looped(turns):
    """A Loop that multiplies its state, and a captured tensor with a matrix of its own body."""
    body = make.make_graph(
        [
            make.make_node("MatMul", ["state", "outer"], ["s1"], name="inner1"),
            make.make_node("MatMul", ["x", "own"], ["s2"], name="inner2"),
            make.make_node("Add", ["s1", "s2"], ["next"], name="inner3"),
            make.make_node("Identity", ["go"], ["on"], name="inner4"),
        ],
        "body",
        [value("k", kind=INT64), value("go", kind=BOOL), unshaped("state")],
        [value("on", kind=BOOL), unshaped("next")],
        [weight("own", 6, 5)],
    )
    nodes = [
        make.make_node("MatMul", ["x", "w"], ["start"], name="before"),
        make.make_node("Loop", ["turns", "", "start"], ["end"], name="loop", body=body),
        make.make_node("Relu", ["end"], ["out"], name="after"),
    ]
    weights = [tensor("turns", np.int64(turns)), weight("w", 6, 5), weight("outer", 5, 5)]
    return model(nodes, [value("x", 1, 6)], [unshaped("out")], weights)


@pytest.mark.parametrize("turns", [0, 1, 7])
def test_a_loop_is_one_layer_that_counts_every_turn(tmp_path, turns):
    pytest.importorskip("onnxruntime")
    graph = graph_of(tmp_path / "loop.onnx", looped(turns))
    assert graph.order() == ["before", "loop", "after"]
    assert graph.inputs("loop") == ["before"]
    assert graph.reads_input("loop")  # its body captures x
    assert graph.layer("loop").macs == turns * (25 + 30)
    assert graph.layer("loop").weight_bytes == 4 * (25 + 30) + 8
    assert graph.layer("loop").output_bytes == 20


def test_a_loop_that_does_not_end_is_ended(tmp_path, monkeypatch):
    runner = pytest.importorskip("mapgap.importing.onnx_files.run")
    monkeypatch.setattr(runner, "LONGEST", 0.3)
    said = refused(tmp_path / "endless.onnx", looped(2**62))
    assert "found none for end, out (2 in all); and expected a run of at most 0.3 seconds" in said


def test_a_scan_is_one_layer_that_counts_every_element(tmp_path):
    pytest.importorskip("onnxruntime")
    body = make.make_graph(
        [
            make.make_node("MatMul", ["element", "w"], ["m"], name="step"),
            make.make_node("Add", ["state", "m"], ["next"], name="sum"),
            make.make_node("Identity", ["next"], ["seen"], name="same"),
        ],
        "body",
        [value("state", 2, 3), value("element", 2, 4)],
        [value("next", 2, 3), value("seen", 2, 3)],
    )
    nodes = [make.make_node("Scan", ["s", "x"], ["last", "all"], name="scan", body=body, num_scan_inputs=1)]
    graph = graph_of(
        tmp_path / "scan.onnx",
        model(nodes, [value("x", 9, 2, 4), value("s", 2, 3)], [unshaped("last"), unshaped("all")], [weight("w", 4, 3)]),
    )
    # Nine elements of 2 x 4 times 4 x 3; the first dimension of x counts as the batch of nine.
    assert graph.layer("scan").macs == 2 * 4 * 3
    assert graph.layer("scan").weight_bytes == 48
    assert held(graph)["outputs"] == (2, 2)


def float_convolution():
    nodes = [
        make.make_node("Conv", ["x", "w", "b"], ["c"], name="conv", kernel_shape=[3, 3]),
        make.make_node("Relu", ["c"], ["r"], name="relu"),
        make.make_node("Flatten", ["r"], ["f"], name="flatten"),
        make.make_node("MatMul", ["f", "v"], ["out"], name="dense"),
    ]
    weights = [weight("w", 8, 3, 3, 3), weight("b", 8), weight("v", 8 * 36, 10)]
    return model(nodes, [value("x", 1, 3, 8, 8)], [value("out", 1, 10)], weights)


def calibration(**feed):
    """A reader of one sample for quantisation."""

    class Reader:
        def __init__(self):
            self.left = [feed]

        def get_next(self):
            return self.left.pop() if self.left else None

    return Reader()


@pytest.mark.parametrize("form", ["QDQ", "QOperator", "dynamic"])
def test_quantised_models_count_the_same_products_and_a_quarter_of_the_weights(tmp_path, form):
    quantization = pytest.importorskip("onnxruntime.quantization")
    plain = tmp_path / "plain.onnx"
    whole = graph_of(plain, float_convolution())
    path = tmp_path / "small.onnx"
    if form == "dynamic":
        quantization.quantize_dynamic(plain, path)
    else:
        reader = calibration(x=np.random.default_rng(1).random((1, 3, 8, 8), dtype=np.float32))
        quantization.quantize_static(plain, path, reader, quant_format=getattr(quantization.QuantFormat, form))
    graph = read([path])
    macs = [sum(each.layer(name).macs for name in each.graph) for each in (whole, graph)]
    assert macs == [36 * 8 * 27 + 8 * 36 * 10] * 2  # 6 x 6 pixels, 8 filters of 3 x 3 x 3; a dense layer
    # 216 and 2880 weights of one byte each; what is added are scales, zero points and a bias of 32 bits.
    weights = sum(graph.layer(name).weight_bytes for name in graph.graph)
    assert 216 + 2880 < weights < 216 + 2880 + 200
    assert held(graph)["weights"][0] == held(graph)["weights"][1]


def test_a_dynamically_quantised_recurrent_layer_counts_as_the_plain_one(tmp_path):
    quantization = pytest.importorskip("onnxruntime.quantization")
    nodes = [
        make.make_node("LSTM", ["x", "w", "r"], ["y", "", ""], name="lstm", hidden_size=16),
        make.make_node("Relu", ["y"], ["out"], name="relu"),
    ]
    weights = [weight("w", 1, 64, 12), weight("r", 1, 64, 16)]
    plain = tmp_path / "plain.onnx"
    whole = graph_of(plain, model(nodes, [value("x", 5, 2, 12)], [unshaped("out")], weights))
    quantization.quantize_dynamic(plain, tmp_path / "small.onnx", op_types_to_quantize=["LSTM"])
    graph = read([tmp_path / "small.onnx"])
    (name,) = [each for each in graph.graph if graph.layer(each).operation == "DynamicQuantizeLSTM"]
    # Five elements of two samples: 64 x (12 + 16) products each; the first dimension of x counts as the batch.
    assert graph.layer(name).macs == whole.layer("lstm").macs == 2 * 64 * 28
    assert 64 * 28 < graph.layer(name).weight_bytes < 64 * 28 + 100 < whole.layer("lstm").weight_bytes


def test_half_precision_has_half_the_bytes_and_its_casts_belong_to_layers(tmp_path):
    pytest.importorskip("onnxruntime")
    from mapgap.importing.measure import measure

    nodes = [
        make.make_node("MatMul", ["x", "w"], ["m"], name="dense"),
        make.make_node("Relu", ["m"], ["out"], name="relu"),
    ]
    made = model(
        nodes, [value("x", 1, 64, kind=HALF)], [value("out", 1, 32, kind=HALF)], [weight("w", 64, 32, kind="e")]
    )
    path = tmp_path / "half.onnx"
    graph = graph_of(path, made)
    assert (graph.layer("dense").weight_bytes, graph.layer("dense").output_bytes) == (64 * 32 * 2, 64)
    how = {"repetitions": 3, "warm_up": 1, "provider": "CPUExecutionProvider", "settings": Settings(), "tell": print}
    measured, _, _ = measure(path, None, [1], level="none", **how)
    (kernels,) = [total for total in measured.totals if total.quantity == "kernels"]
    assert kernels.lost == {}


def test_weights_may_lie_beside_the_model(tmp_path):
    pytest.importorskip("onnxruntime")
    made = captured_if()
    path = tmp_path / "beside.onnx"
    onnx.save(made, path, save_as_external_data=True, location="beside.bin", size_threshold=1024)
    assert path.stat().st_size < 10_000
    graph = read([path])
    assert held(graph)["weights"] == (2 * 2048 * 2048 * 4 + 1,) * 2
    assert graph.layer("if").macs == 2048**2
    (tmp_path / "beside.bin").unlink()
    # Shapes do not need the weights; what runs in the If then nobody counts.
    assert read([path]).layer("if").macs is None


def several():
    nodes = [
        make.make_node("Add", ["a", "b"], ["s"], name="sum"),
        make.make_node("Split", ["s"], ["left", "right"], name="split", axis=1),
        make.make_node("Dropout", ["left"], ["kept", "mask"], name="dropout"),
        make.make_node("Shape", ["c"], ["dims"], name="dims"),
        make.make_node("Reshape", ["right", "dims"], ["turned"], name="reshape"),
    ]
    inputs = [value("a", "n", 8), value("b", "n", 8), value("c", "n", 2, 2)]
    return model(nodes, inputs, [value("kept", "n", 4), value("turned", "n", 2, 2)])


def test_several_inputs_and_outputs_are_all_there(tmp_path):
    graph = graph_of(tmp_path / "several.onnx", several())
    assert graph.order() == ["sum", "split", "dropout", "reshape"]
    # Nobody reads the mask; c is read for its shape alone.
    assert graph.layer("dropout").output_bytes == 16
    assert held(graph)["inputs"] == (2, 2)
    assert held(graph)["outputs"] == (2, 2)
    assert graph.input_bytes == 4 * (8 + 8 + 4)


def test_an_output_that_depends_on_nothing_is_refused_by_name(tmp_path):
    nodes = [make.make_node("Relu", ["x"], ["y"], name="relu"), make.make_node("Neg", ["w"], ["out"], name="neg")]
    made = model(nodes, [value("x", 1, 4)], [value("y", 1, 4), value("out", 64)], [weight("w", 64)])
    said = refused(tmp_path / "constant.onnx", made)
    assert "expected all weights of the model in its layers, found 0 of 256 bytes; no layer holds w" in said
    assert "expected all outputs of the model in its layers, found 1 of 2; no layer holds out" in said


def test_constants_count_for_the_layer_that_reads_what_is_made_of_them(tmp_path):
    nodes = [
        make.make_node("Constant", [], ["k"], name="constant", value=weight("", 4, 6)),
        make.make_node("Transpose", ["k"], ["t"], name="turn", perm=[1, 0]),
        make.make_node("Add", ["t", "w"], ["u"], name="sum"),
        make.make_node("MatMul", ["x", "u"], ["y"], name="dense"),
        make.make_node("MatMul", ["y", "t"], ["out"], name="other"),
    ]
    made = model(nodes, [value("x", "b", 6)], [unshaped("out")], [weight("w", 6, 4), weight("idle", 100)])
    made.graph.node[4].input[1] = "k"
    graph = graph_of(tmp_path / "constants.onnx", made)
    assert graph.order() == ["dense", "other"]
    # Both constants of 24 values for the first that reads them; nobody reads the third.
    assert [graph.layer(name).weight_bytes for name in graph.order()] == [192, 0]


def test_functions_of_the_model_become_their_operators(tmp_path):
    twice = make.make_function(
        "own", "Twice", ["i"], ["o"],
        [make.make_node("Add", ["i", "i"], ["s"], name="add"), make.make_node("Relu", ["s"], ["o"], name="relu")],
        [make.make_opsetid("", 17)],
    )  # fmt: skip
    nodes = [make.make_node("Twice", ["x"], ["y"], domain="own"), make.make_node("Twice", ["y"], ["z"], domain="own")]
    made = model(nodes, [value("x", 1, 4)], [unshaped("z")], domains=["own"], functions=[twice])
    graph = graph_of(tmp_path / "functions.onnx", made)
    assert [graph.layer(name).operation for name in graph.order()] == ["Add", "Relu", "Add", "Relu"]


def test_without_onnxruntime_shapes_come_from_inference_and_what_lacks_is_said(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    monkeypatch.delitem(sys.modules, "mapgap.importing.onnx_files.run", raising=False)
    assert len(graph_of(tmp_path / "plain.onnx", float_convolution()).graph) == 4
    graph = graph_of(tmp_path / "several.onnx", several())
    assert graph.layer("split").output_bytes == 32
    nodes = [
        make.make_node("NonZero", ["x"], ["places"], name="places"),
        make.make_node("Relu", ["x"], ["y"], name="relu"),
        make.make_node("Cast", ["places"], ["out"], name="cast", to=FLOAT),
    ]
    made = model(nodes, [value("x", 1, 4)], [unshaped("out"), unshaped("y")])
    said = refused(tmp_path / "places.onnx", made)
    assert "expected a shape for every tensor, found none for places, out (2 in all)" in said
    assert "expected the package onnxruntime, install it by: pip install 'mapgap[onnx]'" in said


def test_a_model_that_onnxruntime_refuses_is_refused_with_its_reason(tmp_path):
    pytest.importorskip("onnxruntime")
    nodes = [make.make_node("Unheard", ["x"], ["y"], name="own", domain="nobody")]
    made = model(nodes, [value("x", 1, 4), value("ids", 1, 4, kind=INT64)], [unshaped("y")], domains=["nobody"])
    said = refused(tmp_path / "own.onnx", made)
    assert "found none for y (1 in all); and expected a model that ONNX Runtime can run, found:" in said
    assert "the run gives 1 to ids (--set NAME=VALUE); the first dimension of x is a batch of 1" in said


def test_values_of_a_run_can_be_set(tmp_path):
    pytest.importorskip("onnxruntime")
    nodes = [make.make_node("Range", ["zero", "n", "one"], ["y"], name="range")]
    ends = [tensor("zero", np.int64(0)), tensor("one", np.int64(1))]
    made = model(nodes, [value("n", kind=INT64)], [unshaped("y", INT64)], ends)
    assert graph_of(tmp_path / "range.onnx", made).layer("range").output_bytes == 8
    assert graph_of(tmp_path / "range.onnx", made, n=50).layer("range").output_bytes == 400


def opened(*dims, **further):
    inputs = [value("x", *dims), *(value(name, *each) for name, each in further.items())]
    nodes = [make.make_node("Relu", [each.name], [f"{each.name}_out"], name=f"relu_{each.name}") for each in inputs]
    return model(nodes, inputs, [unshaped(f"{each.name}_out") for each in inputs])


def test_every_open_dimension_is_asked_for_once_and_can_be_told_by_itself(tmp_path):
    path = tmp_path / "open.onnx"
    said = refused(path, opened("b", "length", 3, y=("b", "length")))
    assert said == "missing: length: expected dimension 1 of the inputs 'x', 'y' (--set length=…)"
    # A name that stands twice in one input means one size, unless each is told.
    said = refused(path, opened("b", 3, "side", "side"))
    assert "side: expected dimension 2 of the input 'x' and dimension 3 of the input 'x'; each by itself as" in said
    graph = graph_of(path, opened("b", 3, "side", "side"), x_dim2=4, x_dim3=5)
    assert graph.input_bytes == 4 * 3 * 4 * 5
    assert graph_of(path, opened("b", 3, "side", "side"), side=7).input_bytes == 4 * 3 * 49
    # "?" is no name.
    said = refused(path, opened("?", 3, "?", "?"))
    assert "missing: x_dim2: expected" in said
    assert "missing: x_dim3: expected" in said
    assert graph_of(path, opened("?", 3, "?", "?"), x_dim2=2, x_dim3=3).input_bytes == 4 * 18


def test_a_dimension_called_batch_is_the_batch_wherever_it_stands(tmp_path):
    made = opened("batch", 6, state=(2, "batch", 8))
    assert graph_of(tmp_path / "state.onnx", made).input_bytes == 4 * (6 + 16)
    # The first dimension is none then, and a product of the batch is no batch.
    said = refused(tmp_path / "state.onnx", opened("time", "batch_size", heads=("batch * 4", 3)))
    assert "missing: time: expected dimension 0 of the input 'x'" in said
    assert "missing: batch * 4: expected dimension 0 of the input 'heads'" in said
    # A first dimension that is told is no batch.
    assert graph_of(tmp_path / "state.onnx", opened("time", 4), time=10).layer("relu_x").output_bytes == 16


def random_model(rng):
    """Nodes of any kind over earlier tensors, constants among them; an If captures one."""
    nodes, names = [], ["x", "w0", "w1"]
    for k in range(rng.randint(4, 14)):
        kind = rng.choice(("Add", "Mul", "Relu", "If", "Constant", "Shaped"))
        out, name = f"t{k}", f"node{k}"
        if kind in ("Add", "Mul"):
            nodes.append(make.make_node(kind, [rng.choice(names), rng.choice(names)], [out], name=name))
        elif kind == "Relu":
            nodes.append(make.make_node(kind, [rng.choice(names)], [out], name=name))
        elif kind == "If":
            nodes.append(make.make_node("If", ["yes"], [out], name=name, **branches(rng.choice(names), "square")))
        elif kind == "Constant":
            nodes.append(make.make_node("Constant", [], [out], name=name, value=weight("", 3, 3)))
        else:
            nodes.append(make.make_node("Shape", [rng.choice(names)], [f"{out}s"], name=f"{name}s"))
            nodes.append(make.make_node("ConstantOfShape", [f"{out}s"], [out], name=name, value=weight("", 1)))
        names.append(out)
    nodes.append(make.make_node("Sum", names, ["out"], name="last"))
    weights = [weight("w0", 3, 3), weight("w1", 3, 3), weight("square", 3, 3), tensor("yes", True)]
    return model(nodes, [value("x", 3, 3)], [value("out", 3, 3)], weights)


@pytest.mark.parametrize("seed", seeds(20, 400))
def test_what_changes_with_the_input_is_a_layer(seed, tmp_path):
    # Whoever computes something else for another input is no constant: ONNX's own evaluator says who that is.
    from mapgap.importing.formats.onnx_model import read as unchecked  # products of constants alone may be many here
    from mapgap.importing.source import Source

    made = random_model(random.Random(seed))
    path = tmp_path / "random.onnx"
    path.write_bytes(made.SerializeToString())
    graph = unchecked([Source.open(path)], Settings())
    wanted = onnx.ModelProto()
    wanted.CopyFrom(made)
    del wanted.graph.output[:]
    computed = [(node.name, name) for node in made.graph.node for name in node.output]
    wanted.graph.output.extend(onnx.ValueInfoProto(name=name) for _, name in computed)
    evaluator = pytest.importorskip("onnx.reference").ReferenceEvaluator(wanted)
    drawn = np.random.default_rng(seed)
    first, second = (evaluator.run(None, {"x": drawn.uniform(-2, 2, (3, 3)).astype(np.float32)}) for _ in range(2))
    pairs = zip(computed, first, second, strict=True)
    changed = {name for (name, _), a, b in pairs if not np.array_equal(a, b, equal_nan=True)}
    assert changed <= set(graph.graph)
    # A layer that reads no layer reads the input, so nothing constant is one.
    assert all(graph.inputs(name) or graph.reads_input(name) for name in graph.graph)


def test_what_a_layer_graph_loses_is_an_error(tmp_path):
    from mapgap.importing.formats import layer_graph
    from mapgap.importing.graph import Time, Total

    graph = graph_of(tmp_path / "plain.onnx", float_convolution())
    graph.times["one"] = {name: {1: Time(1000.0)} for name in graph.graph}
    graph.totals += [Total("kernels", 4000.0, {}, "one", 1), Total("run", 8000.0, {}, "one", 1, 2.5)]
    data = layer_graph.write(graph, {}, "note")
    path = foreign.write_json(tmp_path / "graph.json", data)
    again = read([path])
    assert again.totals == graph.totals
    (run,) = [share for share in check(again) if share.apart]
    assert "the operators add up to 50 % of the whole run at a load of 2.50 per core" in run.warning()
    data["layers"] = [entry for entry in data["layers"] if entry["name"] != "dense"]
    del data["times"]["one"]["dense"]
    with pytest.raises(InputError) as caught:
        read([foreign.write_json(path, data)])
    said = "\n".join(caught.value.problems)
    assert "expected all weights of the model in its layers, found 896 of 12,416 bytes" in said
    assert "expected all multiply-accumulates of the model in its layers, found 7,776 of 10,656" in said
    assert "expected all time of operators of the model in its layers, found 3,000 of 4,000 ns" in said


def test_nodes_inside_a_loop_do_not_count_twice(tmp_path):
    # The Loop lasts from 100 to 200; its two turns of one node end before it and stand before it in the file.
    def event(name, operation, start, length):
        return {
            "cat": "Node", "ph": "X", "name": f"{name}_kernel_time", "ts": start, "dur": length,
            "args": {"op_name": operation, "output_size": "16"},
        }  # fmt: skip

    events = [
        {"cat": "Session", "ph": "X", "name": "model_run", "ts": 0, "dur": 320, "args": {}},
        event("before", "Relu", 0, 90),
        event("step", "MatMul", 110, 30),
        event("step", "MatMul", 150, 40),
        event("loop", "Loop", 100, 100),
        event("after", "Relu", 210, 10),
    ]
    graph = read([foreign.write_json(tmp_path / "loop.json", events)])
    assert graph.order() == ["before", "loop", "after"]
    assert [graph.times["profiled"][name][1].forward for name in graph.order()] == [90_000, 100_000, 10_000]
    (run,) = shares(graph)
    assert run.held / run.total.amount == pytest.approx(200 / 320)


def test_a_profile_of_other_operators_is_refused_beyond_one_percent(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "500")
    (tmp_path / "dense.onnx").write_bytes(foreign.small_onnx())
    (tmp_path / "one.yaml").write_text(
        "schema: 1\nform: cluster\nlink_mbps: 10\nboards:\n  here: {memory_gb: 1}\n  there: {memory_gb: 1}\n"
        "settings: {training: false}\n"
    )

    def imported(**times):
        events = [
            {"cat": "Node", "ph": "X", "name": f"{name}_kernel_time", "dur": time, "args": {}}
            for name, time in times.items()
        ]
        foreign.write_json(tmp_path / "ort.json", events)
        flags = ("--profile", "here=ort.json", "--profile", "there=ort.json", "--problem", "hybrid_pipeline", "--json")
        return inside("import", "dense.onnx", "--cluster", "one.yaml", *flags)

    # What goes on from the name of a layer is part of it.
    done = imported(first=500, first_nchwc=300, second=200)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["boards"]["here"]["seconds"] == pytest.approx(1000e-6)
    assert imported(first=500, second=496, ReorderInput=4).returncode == 0
    done = imported(first=500, second=480, ReorderInput=20)
    assert done.returncode == 2
    assert "found 'ReorderInput'; 2% of the time is in layers of other names" in done.stderr


PRODUCTS = {
    "Conv": ({"group": 2}, [(1, 4, 8, 8), (6, 2, 3, 3)], [(1, 6, 6, 6)], 6 * 36 * 18),
    "QLinearConv": ({}, [(1, 4, 8, 8), (), (), (6, 4, 3, 3)], [(1, 6, 6, 6)], 6 * 36 * 36),
    "ConvTranspose": ({}, [(1, 4, 5, 5), (4, 3, 2, 2)], [(1, 3, 6, 6)], 100 * 12),
    "Gemm": ({"transA": 1}, [(7, 2), (7, 5)], [(2, 5)], 70),
    "MatMulInteger": ({}, [(3, 2, 7), (7, 5)], [(3, 2, 5)], 210),
    "QLinearMatMul": ({}, [(2, 7), (), (), (7, 5)], [(2, 5)], 70),
    "MatMulNBits": ({"K": 64, "N": 5}, [(2, 64), (5, 1, 32)], [(2, 5)], 640),
    "GRU": ({}, [(9, 2, 4), (2, 9, 4), (2, 9, 3)], [(9, 2, 2, 3)], 9 * 2 * 2 * 9 * (4 + 3)),
    "Einsum": ({"equation": b"bij,bjk->bik"}, [(2, 3, 4), (2, 4, 5)], [(2, 3, 5)], 120),
    # x is 2 samples of 3 tokens, width 4; queries, keys and values of width 4: projections, scores, mixtures.
    "Attention": ({}, [(2, 3, 4), (4, 12)], [(2, 3, 4)], 2 * 3 * 48 + 2 * 2 * 3 * 3 * 4),
    "Relu": ({}, [(2, 3)], [(2, 3)], 0),
}


@pytest.mark.parametrize("operation", PRODUCTS)
def test_products_by_hand(operation):
    from mapgap.importing.onnx_files.products import multiply_accumulates

    attributes, inputs, outputs, expected = PRODUCTS[operation]
    assert multiply_accumulates(operation, attributes, inputs, outputs) == expected
    assert multiply_accumulates(operation, attributes, [()] * len(inputs), [()]) == 0  # shapes that nobody knows


def test_profile_measures_the_batches_that_fit(tmp_path, monkeypatch):
    pytest.importorskip("onnxruntime")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "500")
    (tmp_path / "fixed.onnx").write_bytes(float_convolution().SerializeToString())
    (tmp_path / "loop.onnx").write_bytes(looped(40).SerializeToString())
    few = ("--repetitions", 3, "--warm-up", 1, "-o", "out.json")
    done = inside("profile", "fixed.onnx", *few)
    assert done.returncode == 0, done.stderr
    assert "conserved: weights 100 %, multiply-accumulates 100 %, inputs 1 of 1, outputs 1 of 1, time" in done.stdout
    assert "whole run" in done.stdout
    data = json.loads((tmp_path / "out.json").read_text())
    assert set(data["times"]["threads1"]["conv"]) == {"1"}
    assert {total["quantity"] for total in data["totals"]} >= {"weights", "products", "kernels", "run"}
    done = inside("profile", "fixed.onnx", "--batch", "1,4", *few)
    assert done.returncode == 2
    assert "--batch 4: fixed.onnx is fixed to a batch of 1; expected --batch 1" in done.stderr
    # A loop takes the time of its turns; they are no layers, and none of their time is lost.
    told = json.loads(inside("profile", "loop.onnx", *few, "--json").stdout)["conserved"]
    shown = {each["quantity"]: each for each in told}
    assert shown["products"]["held"] == shown["products"]["total"] == 30 + 40 * 55
    assert shown["kernels"]["held"] == pytest.approx(shown["kernels"]["total"], rel=0.01)
    assert set(json.loads((tmp_path / "out.json").read_text())["times"]["threads1"]) == {"before", "loop", "after"}


def test_import_suggests_problems_with_reasons(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "500")
    (tmp_path / "small.onnx").write_bytes(float_convolution().SerializeToString())
    (tmp_path / "boards.yaml").write_text(
        "schema: 1\nform: cluster\nlink_mbps: 100\nsettings: {training: true}\nboards:\n"
        "  nx: {board: NX}\n  mine: {memory_gb: 4, gflops: 200, memory_gbps: 25.6, launch_us: 40}\n"
    )
    told = inside("import", "small.onnx", "--cluster", "boards.yaml")
    assert told.returncode == 0, told.stderr
    assert "conserved" in told.stdout
    assert "multi_model_splitting, which fits too" in told.stdout
    assert "neuron_masking would need: samples: expected samples of a training cycle" in told.stdout
    assert "fpga_gpu_partition would need: boards: expected two" in told.stdout
    chosen = inside("import", "small.onnx", "--cluster", "boards.yaml", "--problem", "hybrid_pipeline", "--json")
    assert "other_problems" not in json.loads(chosen.stdout)


@pytest.mark.parametrize("command", [["show"], ["import", "--devices", "2"]])
def test_a_file_of_no_format_is_told_apart(tmp_path, command):
    path = foreign.write_json(tmp_path / "metis.json", {"costs": [1, 2], "groups": {}})
    done = inside(command[0], path, *command[1:])
    assert done.returncode == 2
    said = " ".join(done.stderr.split())
    assert "none of the formats that are read" in said
    assert "PipeDream graph.txt" in said
    assert "found none of them, but a mapping with the fields 'costs', 'groups'" in said
