"""Foreign files for tests: those of the library, those of other tools in small, and ways to break them."""

import json
import random
import re
from pathlib import Path

import pytest

from mapgap.catalogue import registry

FOLDER = registry.folder("instances") / "foreign"

EVENTS = [
    {"cat": "Session", "name": "model_loading_array", "ph": "X", "dur": 400, "ts": 1, "args": {}},
    *(
        {
            "cat": "Node",
            "name": f"{name}_kernel_time",
            "ph": "X",
            "ts": 10 * run,
            "dur": time + run,
            "args": {
                "op_name": operation,
                "output_size": str(size),
                "parameter_size": str(weights),
                "activation_size": "1600",
                "input_type_shape": [{"float": [4, 100]}],
                "output_type_shape": [{"float": [4, size // 16]}],
            },
        }
        for run in range(3)
        for name, operation, time, size, weights in (
            ("first", "Gemm", 90, 800, 20200),
            ("relu", "Relu", 10, 800, 0),
            ("second", "Gemm", 40, 160, 2040),
        )
    ),
]
"""An ONNX Runtime profile: three operators, three runs of batch 4."""

TRT_PROFILE = [
    {"count": 100},
    {"name": "conv1 + relu1", "timeMs": 20.0, "averageMs": 0.2, "medianMs": 0.19, "percentage": 80.0},
    {"name": "fc", "timeMs": 5.0, "averageMs": 0.05, "medianMs": 0.05, "percentage": 20.0},
]


def _tensor(name, *dimensions):
    return {
        "Name": name,
        "Location": "Device",
        "Dimensions": list(dimensions),
        "Format/Datatype": "Row major linear FP16",
    }


TRT_LAYERS = {
    "Layers": [
        {
            "Name": "conv1 + relu1",
            "LayerType": "CaskConvolution",
            "Inputs": [_tensor("data", 1, 3, 8, 8)],
            "Outputs": [_tensor("hidden", 1, 16, 8, 8)],
            "ParameterType": "Convolution",
            "Weights": {"Type": "Half", "Count": 432},
            "Bias": {"Type": "Half", "Count": 16},
        },
        {
            "Name": "fc",
            "LayerType": "CaskGemm",
            "Inputs": [_tensor("hidden", 1, 16, 8, 8)],
            "Outputs": [_tensor("scores", 1, 10)],
            "ParameterType": "Gemm",
            "Weights": {"Type": "Half", "Count": 10240},
        },
    ],
    "Bindings": ["data", "scores"],
}
"""A TensorRT engine with two layers."""

SMALL = (
    "node1 -- Input0 -- forward_compute_time=0.0, backward_compute_time=0.0, activation_size=0.0, parameter_size=0.0\n"
    "node2 -- Linear -- forward_compute_time=3.0, backward_compute_time=6.0, activation_size=32, parameter_size=256\n"
    "node3 -- ReLU -- forward_compute_time=1.0, backward_compute_time=1.0, activation_size=32.0, parameter_size=0.0\n"
    "\tnode1 -- node2\n\tnode2 -- node3\n"
)
"""A PipeDream graph of three layers."""


def small_onnx() -> bytes:
    """Two dense layers with few weights: most of its bytes say something."""
    onnx = pytest.importorskip("onnx")
    make, kind = onnx.helper, onnx.TensorProto.FLOAT
    weights = [
        make.make_tensor(name, kind, dims, [0.5] * (dims[0] * dims[1])) for name, dims in (("a", (4, 3)), ("b", (2, 4)))
    ]
    nodes = [
        make.make_node("Gemm", ["x", "a"], ["h"], name="first", transB=1),
        make.make_node("Relu", ["h"], ["r"], name="relu"),
        make.make_node("Gemm", ["r", "b"], ["y"], name="second", transB=1),
    ]
    ends = [make.make_tensor_value_info(name, kind, ["batch", width]) for name, width in (("x", 3), ("y", 2))]
    graph = make.make_graph(nodes, "dense", ends[:1], ends[1:], weights)
    return make.make_model(graph, opset_imports=[make.make_opsetid("", 17)]).SerializeToString(deterministic=True)


def write_json(path, data):
    """The data as a file; the path."""
    path.write_text(json.dumps(data))
    return path


def mutated(data: bytes, rng: random.Random) -> bytes:
    """A file with one to three things broken: bytes flipped or cut, words doubled, numbers made absurd."""
    for _ in range(rng.randint(1, 3)):
        kind = rng.randrange(6)
        at = rng.randrange(len(data)) if data else 0
        if kind == 0:
            data = data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :]
        elif kind == 1:
            data = data[:at]
        elif kind == 2:
            data = data[:at] + data[at + rng.randint(1, 40) :]
        elif kind == 3:
            data = data[:at] + data[max(0, at - rng.randint(1, 60)) : at] + data[at:]
        else:
            numbers = list(re.finditer(rb"-?\d+(\.\d+)?([eE][+-]?\d+)?", data))
            if numbers:
                match = rng.choice(numbers)
                absurd = rng.choice(
                    (b"-1", b"0", b"1e400", b"NaN", b"null", b'"x"', b"[]", b"{}", b"1e15", b"0.5", b"9" * 30)
                )
                data = data[: match.start()] + absurd + data[match.end() :]
    return data


def files(path: Path):
    """The files of a folder, or the file itself."""
    return sorted(path.glob("*")) if path.is_dir() else [path]
