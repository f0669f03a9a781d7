"""Multiply-accumulates of one ONNX operator, from the shapes of its inputs and outputs.

Counted are convolutions, matrix products, attention and recurrent layers, also quantised ones (``QLinear…``,
``…Integer``, ``DynamicQuantize…``) and those of ONNX Runtime (``com.microsoft``); all other operators count as none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

Dims = tuple[int, ...]
Shapes = Sequence[Dims]
"""Of the inputs, or of the outputs, by place; empty where a place is not taken or not known."""
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1, "DynamicQuantizeLSTM": 4}
WEIGHTS = {"QLinearConv": 3, "QLinearMatMul": 3, "QGemm": 3}
"""The place of the weights, where it is not the second."""


def multiply_accumulates(operation: str, attributes: Mapping[str, Any], inputs: Shapes, outputs: Shapes) -> int:
    """Products of one run of an operator; 0 for one that has none, or whose shapes are not known."""
    count = COUNTED.get(operation)
    first, weights, output = _at(inputs, 0), _at(inputs, WEIGHTS.get(operation, 1)), _at(outputs, 0)
    return 0 if count is None else count(attributes, first, weights, output, inputs)


def _at(shapes: Shapes, k: int) -> Dims:
    return shapes[k] if k < len(shapes) else ()


def _convolution(_: Mapping[str, Any], first: Dims, weights: Dims, output: Dims, inputs: Shapes) -> int:
    return math.prod(output) * math.prod(weights[1:]) if len(weights) > 1 and output else 0


def _transposed(_: Mapping[str, Any], first: Dims, weights: Dims, output: Dims, inputs: Shapes) -> int:
    return math.prod(first) * math.prod(weights[1:]) if len(weights) > 1 and first else 0


def _matrices(_: Mapping[str, Any], first: Dims, weights: Dims, output: Dims, inputs: Shapes) -> int:
    return math.prod(output) * first[-1] if first else 0


def _gemm(attributes: Mapping[str, Any], first: Dims, weights: Dims, output: Dims, inputs: Shapes) -> int:
    return math.prod(output) * (first[0] if attributes.get("transA") else first[1]) if len(first) == 2 else 0


def _blocks(attributes: Mapping[str, Any], first: Dims, weights: Dims, output: Dims, inputs: Shapes) -> int:
    return math.prod(output) * int(attributes.get("K", 0)) if output else 0


def _recurrent(gates: int, turned: bool) -> Callable[[Mapping[str, Any], Dims, Dims, Dims, Shapes], int]:
    """W is (directions, gates x hidden, input); ``turned``: the last two the other way round."""

    def count(_: Mapping[str, Any], first: Dims, weights: Dims, output: Dims, inputs: Shapes) -> int:
        if len(weights) != 3 or len(first) != 3:
            return 0
        directions, wide, size = (weights[0], weights[2], weights[1]) if turned else weights
        return first[0] * first[1] * directions * wide * (size + wide // gates)

    return count


def _einsum(attributes: Mapping[str, Any], first: Dims, weights: Dims, output: Dims, inputs: Shapes) -> int:
    """One product for every value of all indices, of two or more factors."""
    equation = attributes.get("equation", b"")
    terms = (equation.decode() if isinstance(equation, bytes) else equation).replace(" ", "").partition("->")[0]
    named = terms.split(",")
    if len(named) < 2 or [len(term) for term in named] != [len(dims) for dims in inputs]:
        return 0
    sizes = {index: size for pair in zip(named, inputs, strict=True) for index, size in zip(*pair, strict=True)}
    return math.prod(sizes.values())


def _attention(_: Mapping[str, Any], first: Dims, weights: Dims, output: Dims, inputs: Shapes) -> int:
    """``Attention`` of ONNX (Q, K, V of 3 or 4 dimensions) or of ONNX Runtime (x, weights of 2)."""
    values = _at(inputs, 2)
    if len(first) == 3 and len(weights) == 2:
        return math.prod(first[:2]) * (math.prod(weights) + 2 * first[1] * weights[1] // 3)
    if len(first) == len(weights) == len(values) and len(first) in (3, 4):
        return math.prod(first) * weights[-2] + math.prod(first[:-1]) * weights[-2] * values[-1]
    return 0


COUNTED: dict[str, Callable[[Mapping[str, Any], Dims, Dims, Dims, Shapes], int]] = {
    **dict.fromkeys(("Conv", "FusedConv", "ConvInteger", "QLinearConv"), _convolution),
    "ConvTranspose": _transposed,
    **dict.fromkeys(
        ("MatMul", "FusedMatMul", "MatMulInteger", "MatMulIntegerToFloat", "QLinearMatMul", "DynamicQuantizeMatMul"),
        _matrices,
    ),
    **dict.fromkeys(("Gemm", "QGemm"), _gemm),
    "MatMulNBits": _blocks,
    **{name: _recurrent(gates, name.startswith("Dynamic")) for name, gates in GATES.items()},
    "Einsum": _einsum,
    **dict.fromkeys(("Attention", "QAttention", "MultiHeadAttention"), _attention),
}
