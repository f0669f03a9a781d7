"""A model in parts computes what the whole computes: any cut, shared weights, skips, Loop and If, and on boards."""

import random
import secrets

import numpy as np
import pytest

from mapgap.clock import manifest
from mapgap.clock.run import Host, Parts, execute
from mapgap.core import InputError, Move, PlannedStage, Script, Task
from mapgap.core.workload import Settings
from mapgap.importing.source import Source

onnx = pytest.importorskip("onnx")
ort = pytest.importorskip("onnxruntime")
helper, numpy_helper = onnx.helper, onnx.numpy_helper
models = pytest.importorskip("mapgap.importing.models")
onnx_model = pytest.importorskip("mapgap.importing.formats.onnx_model")
cut = pytest.importorskip("mapgap.importing.onnx_files.cut").cut
FLOAT, INT64, BOOL = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64, onnx.TensorProto.BOOL


def everything():
    """A skip over all stages, a weight that three layers share, shapes that make numbers, a Loop and an If that capture
    tensors and weights, an output in the middle, and weights that a folded node makes."""
    rng = np.random.default_rng(1)

    def info(name, kind=FLOAT, shape=(None, None)):
        return helper.make_tensor_value_info(name, kind, shape)

    def weight(name, values):
        return numpy_helper.from_array(np.asarray(values), name)

    loop = helper.make_graph(
        [
            helper.make_node("MatMul", ["state", "shared"], ["l1"], name="in_loop"),
            helper.make_node("Add", ["l1", "first"], ["next"], name="in_loop2"),  # captures a tensor of stage 0
            helper.make_node("Identity", ["go"], ["on"], name="in_loop3"),
        ],
        "loop_body",
        [info("k", INT64, []), info("go", BOOL, []), info("state")],
        [info("on", BOOL, []), info("next")],
    )
    yes, no = (
        helper.make_graph([helper.make_node(kind, ["looped", other], [out], name=out)], out, [], [info(out)])
        for kind, other, out in (("Add", "made", "yes"), ("Mul", "shared_row", "no"))
    )
    nodes = [
        helper.make_node("MatMul", ["x", "shared"], ["first"], name="first"),
        helper.make_node("Relu", ["first"], ["relu"], name="relu"),
        helper.make_node("Shape", ["relu"], ["shape"], name="shape"),
        helper.make_node("Neg", ["raw"], ["made"], name="made"),
        helper.make_node("MatMul", ["relu", "shared"], ["second"], name="second"),
        helper.make_node("Transpose", ["second"], ["turned"], name="turned", perm=[1, 0]),
        helper.make_node("Reshape", ["turned", "shape"], ["again"], name="again"),
        helper.make_node("Loop", ["turns", "", "again"], ["looped"], name="loop", body=loop),
        helper.make_node("ReduceSum", ["looped"], ["sum"], name="sum", keepdims=0),
        helper.make_node("Greater", ["sum", "zero"], ["positive"], name="positive"),
        helper.make_node("If", ["positive"], ["chosen"], name="if", then_branch=yes, else_branch=no),
        helper.make_node("Add", ["chosen", "first"], ["skipped"], name="skip"),
        helper.make_node("Mul", ["skipped", "x"], ["out"], name="last"),
    ]
    weights = [
        weight("shared", rng.normal(0, 0.5, (4, 4)).astype(np.float32)),
        weight("shared_row", rng.normal(size=(1, 4)).astype(np.float32)),
        weight("raw", rng.normal(size=(1, 4)).astype(np.float32)),
        weight("turns", np.int64(3)),
        weight("zero", np.float32(0)),
    ]
    graph = helper.make_graph(
        nodes, "everything", [info("x", shape=[3, 4])], [info("out"), info("sum", shape=[])], weights
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    made.ir_version = 8
    onnx.checker.check_model(made)
    return made.SerializeToString()


MODELS = {**{name: (lambda name=name: models.build(name)) for name in models.MODELS}, "everything": everything}


@pytest.fixture(params=MODELS)
def path(request, tmp_path):
    path = tmp_path / f"{request.param}.onnx"
    path.write_bytes(MODELS[request.param]())
    return path


def batch_of(path):
    return 3 if path.stem == "everything" else 2  # the former is fixed to rows of 3


def graph_of(path):
    return onnx_model.describe(Source.open(path), Settings()).graph


def staged(groups, shares=None):
    """Stages of names, each on a board of its own or on several."""
    return [
        PlannedStage(tuple(names), tuple((f"b{p}{k}", share) for k, share in enumerate((shares or {}).get(p, (9,)))))
        for p, names in enumerate(groups)
    ]


def session(data):
    return ort.InferenceSession(data, providers=["CPUExecutionProvider"])


def chained(parts, feed):
    """Outputs of the parts, one after the other, each told only of what the one in front of it passes on."""
    outputs, here = {}, dict(feed)
    for k, part in enumerate(parts):
        assert set(part.receives) == set(here), k
        onnx.checker.check_model(part.model, full_check=True)
        made = session(part.model.SerializeToString()).run(part.makes, {name: here[name] for name in part.reads})
        here |= dict(zip(part.makes, made, strict=True))
        outputs |= {name: here[name] for name in part.outputs}
        here = {name: here[name] for name in part.sends}
    assert not here
    return outputs


def cut_at_random(names, rng):
    places = sorted(rng.sample(range(1, len(names)), min(len(names) - 1, rng.randint(1, 4))))
    return [names[a:b] for a, b in zip([0, *places], [*places, len(names)], strict=True)]


def extension(graph, rng):
    """A random order in which no layer stands before one that it reads."""
    waiting, found = list(graph.graph), []
    while waiting:
        name = rng.choice([each for each in waiting if not set(graph.inputs(each)) & set(waiting)])
        waiting.remove(name)
        found.append(name)
    return found


@pytest.mark.parametrize("form", ["chain", "graph"])
def test_the_parts_of_any_cut_make_what_the_whole_makes(path, form):
    seed = secrets.randbits(32)
    rng, graph = random.Random(seed), graph_of(path)
    for _ in range(4):
        names = graph.order() if form == "chain" else extension(graph, rng)
        groups = cut_at_random(names, rng)
        parts, tensors = cut(path, batch_of(path), staged(groups), Settings())
        assert [set(part.layers) for part in parts] == list(map(set, groups)), seed
        feed = {name: np.random.default_rng(seed).random(tensors[name].shape, "float32") for name in parts[0].receives}
        whole = session(path.read_bytes())
        expected = dict(zip([each.name for each in whole.get_outputs()], whole.run(None, feed), strict=True))
        found = chained(parts, feed)
        assert found.keys() == expected.keys()
        for name, value in expected.items():
            np.testing.assert_allclose(found[name], value, rtol=1e-4, atol=1e-5, err_msg=f"{name}, seed {seed}")


def test_what_crosses_is_passed_on_and_shared_weights_are_in_every_part(tmp_path):
    path = tmp_path / "everything.onnx"
    path.write_bytes(everything())
    groups = [["first", "relu"], ["second", "turned", "again"], ["loop", "sum", "positive"], ["if"], ["skip", "last"]]
    parts, _ = cut(path, 3, staged(groups), Settings())
    assert [part.sends for part in parts] == [
        ["x", "first", "relu"],  # x and first for the last stage; the Loop captures first
        ["x", "first", "again"],
        ["x", "first", "looped", "positive"],
        ["x", "first", "chosen"],
        [],
    ]
    assert parts[3].reads == ["looped", "positive"]
    assert [part.outputs for part in parts] == [[], [], ["sum"], [], ["out"]]
    held = [{each.name for each in part.model.graph.initializer} for part in parts]
    assert ["shared" in names for names in held] == [True, True, True, False, False]
    assert "shape" in held[1]  # a number by now
    assert "raw" in held[3]
    assert "made" in {node.name for node in parts[3].model.graph.node}


def test_layers_that_an_import_took_together_are_ranges(tmp_path):
    path = tmp_path / "mobile_tiny.onnx"
    path.write_bytes(models.build("mobile_tiny"))
    order = graph_of(path).order()
    parts, _ = cut(path, 2, staged([[f"{order[0]} … {order[5]}"], [f"{order[6]} … {order[-1]}"]]), Settings())
    assert [part.layers for part in parts] == [order[:6], order[6:]]


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        ([["relu1", "elsewhere"]], "found 'elsewhere'"),
        ([["conv1"], ["conv1"]], "found 'conv1'"),
        ([["conv1"]], "found none for relu1"),
    ],
)
def test_a_plan_of_other_layers_is_refused_by_name(tmp_path, groups, words):
    path = tmp_path / "lenet5.onnx"
    path.write_bytes(models.build("lenet5"))
    with pytest.raises(InputError, match=words):
        cut(path, 1, staged(groups), Settings())


def test_a_fixed_batch_and_rows_that_are_none_are_refused(tmp_path):
    path = tmp_path / "everything.onnx"
    path.write_bytes(everything())
    names = graph_of(path).order()
    with pytest.raises(InputError, match="micro-batches of 3, to which the model is fixed, found 8"):
        cut(path, 8, staged([names]), Settings())
    with pytest.raises(InputError, match="expected one board per stage"):
        cut(path, 3, staged([names], {0: (2, 1)}), Settings())


def scripted(stages, micro_batches, rounds=1):
    """A pipeline as tasks, as problems make them, without times."""
    tasks, ends = [], [()]
    for r in range(rounds):
        for m in range(micro_batches):
            for p, stage in enumerate(stages):
                about = {"round": r, "stage": p, "micro_batch": m}
                before = (*ends[-1], *((f"{r}/link{p - 1}/{m}",) if p else ()))
                for name, share in stage.boards:
                    told = about | {"share": share}
                    tasks.append(Task(f"{r}/{name}/{m}", name, "FP", 0.0, name, None, before, told))
                if p + 1 < len(stages):
                    after = tuple(f"{r}/{name}/{m}" for name, _ in stage.boards)
                    move = Move(stage.boards[0][0], stages[p + 1].boards[0][0], 0)
                    tasks.append(Task(f"{r}/link{p}/{m}", f"link{p}", "FP", 0.0, "", move, after, about))
        ends.append(tuple(f"{r}/{name}/{m}" for m in range(micro_batches) for name, _ in stages[-1].boards))
    return Script(tuple(tasks), tuple(ends[1:]), 1.0)


@pytest.mark.in_turn
@pytest.mark.parametrize("shares", [{}, {0: (2, 2), 1: (3, 1), 2: (1, 0, 3)}], ids=["one board each", "groups"])
def test_boards_over_sockets_make_what_the_whole_makes(tmp_path, shares):
    path, batch, seed = tmp_path / "mobile_tiny.onnx", 4, secrets.randbits(32)
    path.write_bytes(models.build("mobile_tiny"))
    order = graph_of(path).order()
    stages = staged([order[:5], order[5:14], order[14:]], shares or dict.fromkeys(range(3), (batch,)))
    parts, _ = cut(path, batch, stages, Settings())
    told = [
        {
            "boards": [{"name": name, "samples": share} for name, share in stage.boards],
            **{kind: getattr(part, kind) for kind in ("reads", "makes", "sends", "outputs")},
        }
        for part, stage in zip(parts, stages, strict=True)
    ]

    def inputs(k):
        return {"input": np.random.default_rng(seed + k).random((batch, 3, 64, 64), "float32")}

    files = [part.model.SerializeToString() for part in parts]
    work = Parts(told, files, inputs, lambda first, second: None)
    script = scripted(stages, micro_batches=3, rounds=2)
    records = execute(script, {name: Host() for stage in stages for name, _ in stage.boards}, parts=work)
    assert {each["task"] for each in records} == {task.name for task in script.tasks}
    assert sorted(work.results) == [0, 1, 2]
    for k, found in work.results.items():
        (expected,) = session(path.read_bytes()).run(None, inputs(3 + k))  # of the last round
        np.testing.assert_allclose(found["classifier"], expected, rtol=1e-4, atol=1e-5, err_msg=f"seed {seed}")


def test_a_folder_without_its_manifest_or_with_another_part_is_not_believed(tmp_path):
    manifest.write(tmp_path, {"plan": {}}, [{"boards": []}, {"boards": []}], [b"one", b"two"])
    told, files = manifest.read(tmp_path)
    assert files == [b"one", b"two"]
    assert [each["file"] for each in told["stages"]] == ["stage0.onnx", "stage1.onnx"]
    (tmp_path / "stage1.onnx").write_bytes(b"twO")
    with pytest.raises(InputError, match=r"stage1.onnx: expected the part that manifest.json names"):
        manifest.read(tmp_path)
    text = (tmp_path / manifest.NAME).read_text()
    for bad in ("{", "[]", text.replace("stage1.onnx", "../stage1.onnx"), text.replace('"parts"', '"other"')):
        (tmp_path / manifest.NAME).write_text(bad)
        with pytest.raises(InputError, match="expected a manifest of mapgap split"):
            manifest.read(tmp_path)
    (tmp_path / manifest.NAME).unlink()
    with pytest.raises(InputError, match="found no manifest"):
        manifest.read(tmp_path)
