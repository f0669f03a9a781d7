"""Three small real models, built with ``onnx.helper``: deterministic weights, nothing is downloaded.

``lenet5`` (LeCun et al. 1998, with ReLU and max pooling), ``mobile_tiny`` (three inverted residual blocks as
MobileNetV2 has them, on 64 x 64 pixels) and ``attention_tiny`` (one transformer encoder layer of width 64). Weights are
drawn from a normal distribution with a seed of the name: their values do not matter for times, but they are real.

``python -m mapgap.importing.models FOLDER`` writes them as files.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET, IR = 17, 8


class _Builder:
    """Collects nodes and weights of a model."""

    def __init__(self, name: str, shape: tuple[int, ...]) -> None:
        self.name = name
        self.shape = shape
        self.random = np.random.default_rng(zlib.crc32(name.encode()))
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []

    def weight(self, name: str, *shape: int) -> str:
        """A weight of normal values with the deviation of He's initialisation."""
        deviation = np.sqrt(2 / max(1, int(np.prod(shape[1:]))))
        values = self.random.normal(0, deviation, shape).astype(np.float32)
        self.weights.append(numpy_helper.from_array(values, name))
        return name

    def constant(self, name: str, values: list[int] | list[float]) -> str:
        kind = np.int64 if isinstance(values[0], int) else np.float32
        self.weights.append(numpy_helper.from_array(np.array(values, dtype=kind), name))
        return name

    def add(self, operation: str, name: str, *inputs: str, **attributes: object) -> str:
        """A node whose output carries its name."""
        self.nodes.append(helper.make_node(operation, list(inputs), [name], name=name, **attributes))
        return name

    def conv(self, name: str, source: str, into: int, out: int, kernel: int, stride: int = 1, groups: int = 1) -> str:
        pad = kernel // 2
        weights = self.weight(f"{name}.w", out, into // groups, kernel, kernel), self.weight(f"{name}.b", out)
        shape = {"kernel_shape": [kernel] * 2, "strides": [stride] * 2, "pads": [pad] * 4}
        return self.add("Conv", name, source, *weights, group=groups, **shape)

    def dense(self, name: str, source: str, into: int, out: int) -> str:
        return self.add(
            "Gemm", name, source, self.weight(f"{name}.w", out, into), self.weight(f"{name}.b", out), transB=1
        )

    def model(self, output: str, shape: tuple[int, ...]) -> onnx.ModelProto:
        first = helper.make_tensor_value_info("input", TensorProto.FLOAT, ["batch", *self.shape])
        last = helper.make_tensor_value_info(output, TensorProto.FLOAT, ["batch", *shape])
        graph = helper.make_graph(self.nodes, self.name, [first], [last], self.weights)
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], producer_name="mapgap")
        made.ir_version = IR
        onnx.checker.check_model(made, full_check=True)
        return made


def lenet5() -> onnx.ModelProto:
    """Two convolutions and three dense layers on 28 x 28 pixels."""
    b = _Builder("lenet5", (1, 28, 28))
    x = b.add("Relu", "relu1", b.conv("conv1", "input", 1, 6, 5))
    x = b.add("MaxPool", "pool1", x, kernel_shape=[2, 2], strides=[2, 2])
    x = b.add("Relu", "relu2", b.conv("conv2", x, 6, 16, 5))
    x = b.add("MaxPool", "pool2", x, kernel_shape=[2, 2], strides=[2, 2])
    x = b.add("Flatten", "flatten", x)
    x = b.add("Relu", "relu3", b.dense("fc1", x, 16 * 7 * 7, 120))
    x = b.add("Relu", "relu4", b.dense("fc2", x, 120, 84))
    return b.model(b.dense("fc3", x, 84, 10), (10,))


def mobile_tiny() -> onnx.ModelProto:
    """A stem, three inverted residual blocks (one with a residual connection) and a classifier on 64 x 64 pixels."""
    b = _Builder("mobile_tiny", (3, 64, 64))
    x, channels = b.add("Relu", "stem_relu", b.conv("stem", "input", 3, 16, 3, 2)), 16
    for k, (out, stride) in enumerate(((24, 2), (24, 1), (40, 2)), 1):
        wide, before = 4 * channels, x
        x = b.add("Relu", f"block{k}_relu1", b.conv(f"block{k}_expand", x, channels, wide, 1))
        x = b.add("Relu", f"block{k}_relu2", b.conv(f"block{k}_depthwise", x, wide, wide, 3, stride, wide))
        x = b.conv(f"block{k}_project", x, wide, out, 1)
        x = b.add("Add", f"block{k}_add", x, before) if stride == 1 and channels == out else x
        channels = out
    x = b.add("GlobalAveragePool", "pool", x)
    x = b.add("Flatten", "flatten", x)
    return b.model(b.dense("classifier", x, channels, 10), (10,))


def attention_tiny() -> onnx.ModelProto:
    """One encoder layer of a transformer: 32 tokens of width 64, four heads."""
    tokens, width, heads = 32, 64, 4
    b = _Builder("attention_tiny", (tokens, width))
    split = b.constant("split_shape", [0, tokens, heads, width // heads])
    join = b.constant("join_shape", [0, tokens, width])
    parts = {}
    for part, turn in (("query", [0, 2, 1, 3]), ("key", [0, 2, 3, 1]), ("value", [0, 2, 1, 3])):
        x = b.add("MatMul", part, "input", b.weight(f"{part}.w", width, width))
        x = b.add("Reshape", f"{part}_heads", x, split)
        parts[part] = b.add("Transpose", f"{part}_turned", x, perm=turn)
    x = b.add("MatMul", "scores", parts["query"], parts["key"])
    x = b.add("Mul", "scaled", x, b.constant("scale", [0.25]))
    x = b.add("MatMul", "mixed", b.add("Softmax", "shares", x, axis=-1), parts["value"])
    x = b.add("Reshape", "joined", b.add("Transpose", "mixed_turned", x, perm=[0, 2, 1, 3]), join)
    x = b.add("Add", "residual1", b.add("MatMul", "projection", x, b.weight("projection.w", width, width)), "input")
    y = b.add("Relu", "feed_relu", b.add("MatMul", "feed1", x, b.weight("feed1.w", width, 4 * width)))
    return b.model(
        b.add("Add", "residual2", b.add("MatMul", "feed2", y, b.weight("feed2.w", 4 * width, width)), x),
        (tokens, width),
    )


MODELS: dict[str, Callable[[], onnx.ModelProto]] = {
    "lenet5": lenet5,
    "mobile_tiny": mobile_tiny,
    "attention_tiny": attention_tiny,
}
"""The models by name."""


def build(name: str) -> bytes:
    """A model as the bytes of a file."""
    data: bytes = MODELS[name]().SerializeToString(deterministic=True)
    return data


def write(folder: Path) -> list[Path]:
    """Every model as a file ``<name>.onnx``; the files."""
    paths = [folder / f"{name}.onnx" for name in MODELS]
    for path in paths:
        path.write_bytes(build(path.stem))
    return paths


if __name__ == "__main__":
    print(*write(Path(*sys.argv[1:2])), sep="\n")
