"""Writes the forward pass of multilingual-e5-small as a graph for ONNX Runtime, with the weights of the file.

The inputs are tokens of several texts, one after the other. Only the attention needs the texts apart: its inputs are
padded to the longest text, and its outputs are put one after the other again. So the other layers compute no padding.

A matrix product has integers on both sides, because this takes a quarter of the time of float32:

    x W ≈ s (q (V·c)),   q = round(x / s) + z,   V = round(W / c)

`s` is a number for each token, from the token's largest value in x. So the vector of a text does not depend on the
other texts. A common `s` for all tokens of a text would lose precision: some tokens have values of 40, others of 2.
`c` is a number for each column. V has 7 bits, because processors without VNNI add two products in 16 bits. q has 8
bits without sign, and z = 128. After GELU, which is never below −0.17, z = 0 and x + 0.17 is multiplied instead. The
bias contains the difference, −0.17 times the sum of each column.

The ops of the domain `com.microsoft` are described in
https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from streams.models.embedding import protobuf_writer as proto
from streams.models.embedding.e5_file import HEADS, INNER, LAYERS, WIDTH, E5File, Floats

#: The inputs of the graph: `embedded` is float32[tokens, 384]. `padded` is int64[texts, longest]: the row of each
#: text's tokens, with any row in place of a missing token. `lengths` is int32[texts]. `places` is int64[tokens]: the
#: index of each token in a flat `padded`. `lowest` and `middles` are uint8[tokens] of zeros and of 128: z for each
#: token.
INPUTS: Final = ("embedded", "padded", "lengths", "places", "lowest", "middles")
#: The output: the vectors of the tokens, float32[tokens, 384].
OUTPUT: Final = "hidden"

#: The last version of the ops whose definitions are used here, and the version of the file format.
_OPSET, _CONTRIB_OPSET, _IR = 18, 1, 8
_CONTRIB: Final = "com.microsoft"
#: The type numbers of ONNX.
_TYPES: Final = {"float32": 1, "uint8": 2, "int8": 3, "int32": 6, "int64": 7}
_INPUT_TYPES: Final = ("float32", "int64", "int32", "int64", "uint8", "uint8")
#: The largest amount in V and the largest amounts in q.
_TOP_WEIGHT, _TOP_MIDDLE, _TOP_LOWEST = 64, 127, 255
_GELU_BELOW: Final = 0.17
_EPSILON: Final = 1e-12


class _Graph:
    """A graph in the making. Its methods return the names of values."""

    def __init__(self) -> None:
        self._nodes: list[bytes] = []
        self._constants: list[bytes] = []
        self._known: set[str] = set()

    def constant(self, name: str, array: Any) -> str:
        if name not in self._known:
            self._known.add(name)
            array = np.asarray(array)
            shape = [proto.integer(1, size) for size in array.shape]
            kind = proto.integer(2, _TYPES[array.dtype.name])
            self._constants.append(
                proto.message(5, *shape, kind, proto.string(8, name), proto.message(9, array.tobytes()))
            )
        return name

    def op(self, kind: str, *inputs: str, to: str | Sequence[str], domain: str = "", **attributes: float) -> str:
        """Add an op. Return the name of its first output."""
        outputs = [to] if isinstance(to, str) else to
        self._nodes.append(
            proto.message(
                1,
                *(proto.string(1, name) for name in inputs),
                *(proto.string(2, name) for name in outputs),
                proto.string(4, kind),
                *(_attribute(name, value) for name, value in attributes.items()),
                proto.string(7, domain),
            )
        )
        return outputs[0]

    def model(self) -> bytes:
        """Return the ONNX model: https://github.com/onnx/onnx/blob/main/onnx/onnx.proto."""
        graph = (
            *self._nodes,
            proto.string(2, "multilingual-e5-small"),
            *self._constants,
            *(_value(11, name, kind) for name, kind in zip(INPUTS, _INPUT_TYPES, strict=True)),
            _value(12, OUTPUT, "float32"),
        )
        opsets = [
            proto.message(8, proto.string(1, domain), proto.integer(2, version))
            for domain, version in (("", _OPSET), (_CONTRIB, _CONTRIB_OPSET))
        ]
        return b"".join((proto.integer(1, _IR), proto.message(7, *graph), *opsets))


def model(file: E5File) -> bytes:
    """Return the ONNX model, 22 MB."""
    graph = _Graph()
    x = _normalised(graph, "embedded", file, "emb.ln", "embeddings")
    for layer in range(LAYERS):
        name = f"l{layer}"
        attended = _attention(graph, x, file, name)
        product, _ = _product(graph, attended, file.matrix(f"{name}.ao.w", WIDTH), f"{name}.ao")
        x = _added(graph, x, product, file.vector(f"{name}.ao.b"), file, f"{name}.aln", f"{name}.attended")
        inner, _ = _product(graph, x, file.matrix(f"{name}.fi.w", INNER), f"{name}.fi")
        bias = graph.constant(f"{name}.fi.b", file.vector(f"{name}.fi.b"))
        gelu = graph.op("BiasGelu", inner, bias, to=f"{name}.gelu", domain=_CONTRIB)
        product, sums = _product(graph, gelu, file.matrix(f"{name}.fo.w", WIDTH), f"{name}.fo", below=_GELU_BELOW)
        shifted = file.vector(f"{name}.fo.b") - np.float32(_GELU_BELOW) * sums
        to = OUTPUT if layer == LAYERS - 1 else f"{name}.hidden"
        x = _added(graph, x, product, shifted, file, f"{name}.oln", to)
    return graph.model()


def _attention(graph: _Graph, x: str, file: E5File, name: str) -> str:
    weights = np.concatenate([file.matrix(f"{name}.{part}.w", WIDTH) for part in "qkv"])
    bias = graph.constant(f"{name}.qkv.b", np.concatenate([file.vector(f"{name}.{part}.b") for part in "qkv"]))
    product, _ = _product(graph, x, weights, f"{name}.qkv")
    padded = graph.op("Gather", product, "padded", to=f"{name}.padded", axis=0)
    parts = [f"{name}.{part}" for part in "qkv"]
    graph.op("Split", padded, graph.constant("widths", np.full(3, WIDTH, np.int64)), to=parts, axis=2)
    heads = graph.op(
        "MultiHeadAttention", *parts, bias, "lengths", to=f"{name}.heads", domain=_CONTRIB, num_heads=HEADS
    )
    rows = graph.op("Reshape", heads, graph.constant("rows", np.array([-1, WIDTH])), to=f"{name}.rows")
    return graph.op("Gather", rows, "places", to=f"{name}.tokens", axis=0)


def _product(graph: _Graph, x: str, weights: Floats, name: str, below: float = 0.0) -> tuple[str, Floats]:
    """Multiply x with weights, float32[outputs, inputs]. If x is never less than −`below`, this is added to it first.

    Return the name of the product, and the sums of each output's weights, float32[outputs].
    """
    columns = graph.constant("columns", np.array([1]))
    if below:
        constant = graph.constant("below", np.float32(below))
        largest = graph.op("ReduceMax", x, columns, to=f"{name}.largest")
        largest = graph.op("Add", largest, constant, to=f"{name}.range")
        x = graph.op("Add", x, constant, to=f"{name}.raised")
        top, zeros, zero = _TOP_LOWEST, "lowest", graph.constant("zero", np.uint8(0))
    else:
        amounts = graph.op("Abs", x, to=f"{name}.amounts")
        largest = graph.op("ReduceMax", amounts, columns, to=f"{name}.largest")
        top, zeros, zero = _TOP_MIDDLE, "middles", graph.constant("middle", np.uint8(128))
    scales = graph.op("Mul", largest, graph.constant(f"step{top}", np.float32(1 / top)), to=f"{name}.scales")
    flat = graph.op("Reshape", scales, graph.constant("flat", np.array([-1])), to=f"{name}.flat")
    integers = graph.op("QuantizeLinear", x, flat, zeros, to=f"{name}.integers", axis=0)
    steps = (np.abs(weights).max(axis=1) / np.float32(_TOP_WEIGHT)).astype(np.float32)
    rounded = np.rint(weights / steps[:, None]).astype(np.int8)
    product = graph.op(
        "MatMulIntegerToFloat",
        integers,
        graph.constant(f"{name}.weights", np.ascontiguousarray(rounded.T)),
        graph.constant("one", np.float32(1)),
        graph.constant(f"{name}.steps", steps),
        zero,
        to=f"{name}.unscaled",
        domain=_CONTRIB,
    )
    sums: Floats = rounded.sum(axis=1, dtype=np.int32).astype(np.float32) * steps
    return graph.op("Mul", product, scales, to=f"{name}.product"), sums


def _added(graph: _Graph, x: str, product: str, bias: Floats, file: E5File, norm: str, to: str) -> str:
    """Add a product and its bias to x, and normalise the sum."""
    biased = graph.op("Add", product, graph.constant(f"{to}.bias", bias), to=f"{to}.biased")
    return _normalised(graph, graph.op("Add", x, biased, to=f"{to}.sum"), file, norm, to)


def _normalised(graph: _Graph, x: str, file: E5File, norm: str, to: str) -> str:
    """Apply the layer normalisation with the weights `norm`."""
    weights = [graph.constant(f"{norm}.{part}", file.vector(f"{norm}.{part}")) for part in "wb"]
    return graph.op("LayerNormalization", x, *weights, to=to, axis=-1, epsilon=_EPSILON)


def _attribute(name: str, value: float) -> bytes:
    if isinstance(value, int):
        return proto.message(5, proto.string(1, name), proto.integer(3, value % 2**64), proto.integer(20, 2))
    return proto.message(5, proto.string(1, name), proto.float32(2, value), proto.integer(20, 1))


def _value(field: int, name: str, kind: str) -> bytes:
    """Return an input or an output of a graph, with a shape that is not known before a call."""
    return proto.message(
        field, proto.string(1, name), proto.message(2, proto.message(1, proto.integer(1, _TYPES[kind])))
    )
