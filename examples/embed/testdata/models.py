#!/usr/bin/env python3
"""Writes small ONNX models of three kinds, and what onnxruntime computes with them.

    pip install onnx onnxruntime numpy
    python3 testdata/models.py testdata/models

resnet has convolutions, batch normalisation and pooling; bert the single ops that newer
exporters write for layer norm and GELU, and two outputs; lstm one layer of both
directions. Weights are random, of a fixed seed. Each model runs at several sizes.
"""

import json
import math
import os
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from model import Graph


def resnet():
    g = Graph(2)

    def conv(name, x, n, m, size, stride):
        w = g.normal(name + ".weight", m, n, size, size, scale=1 / math.sqrt(n * size * size))
        x = g.op("Conv", x, w, kernel_shape=[size] * 2, strides=[stride] * 2, pads=[size // 2] * 4)
        scale, shift, mean = (g.normal(f"{name}.{part}", m, scale=0.3) for part in ("scale", "shift", "mean"))
        g.weights[scale] += 1
        variance = g.weight(name + ".variance", 0.5 + g.random.random(m).astype(np.float32))
        return g.op("BatchNormalization", x, scale, shift, mean, variance, epsilon=1e-5)

    def block(name, x, n, m, stride):
        y = g.op("Relu", conv(name + ".a", x, n, m, 3, stride))
        y = conv(name + ".b", y, m, m, 3, 1)
        if stride > 1:
            x = conv(name + ".skip", x, n, m, 1, stride)
        return g.op("Relu", g.op("Add", x, y))

    x = g.op("Relu", conv("stem", "pixels", 3, 8, 7, 2))
    x = g.op("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    x = block("block1", block("block0", x, 8, 8, 1), 8, 16, 2)
    x = g.op("Flatten", g.op("GlobalAveragePool", x), axis=1)
    g.op("Gemm", x, g.normal("classes.weight", 10, 16, scale=0.5), g.normal("classes.bias", 10, scale=0.1), transB=1)
    inputs = {"pixels": (TensorProto.FLOAT, ["batch", 3, 24, 24])}
    return g, inputs, [(["batch", 10], g.nodes[-1])], [(1,), (3,), (2,)]


def bert():
    g, hidden, heads, words, places = Graph(3), 24, 3, 50, 20

    def norm(name, x):
        w = g.weight(name + ".weight", 1 + g.random.standard_normal(hidden).astype(np.float32) / 10)
        return g.op("LayerNormalization", x, w, g.normal(name + ".bias", hidden, scale=0.1), axis=-1, epsilon=1e-12)

    position = g.op("Slice", g.weight("numbers", np.arange(places, dtype=np.int64)), g.ints(0), g.size("input_ids", 1), g.ints(0))
    x = g.op("Gather", g.normal("words", words, hidden, scale=0.5), "input_ids")
    x = norm("embeddings", g.op("Add", x, g.op("Gather", g.normal("places", places, hidden, scale=0.5), position)))
    seen = g.op("Cast", g.op("Unsqueeze", "attention_mask", g.ints(1, 2)), to=TensorProto.BOOL)
    mask = g.op("Where", seen, g.scalar("near", 0), g.scalar("far", np.finfo(np.float32).min))
    apart, together = g.ints(0, 0, heads, hidden // heads), g.ints(0, 0, hidden)
    for i in range(2):
        name = f"layer{i}"
        rows = g.op("Split", g.linear(name + ".qkv", x, hidden, 3 * hidden), axis=2, num_outputs=3)
        g.nodes[-1].output[:] = rows = [rows + part for part in "qkv"]
        q, k, v = (g.op("Transpose", g.op("Reshape", r, apart), perm=p) for r, p in zip(rows, ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3])))
        scores = g.op("Mul", g.op("MatMul", q, k), g.scalar("root", (hidden // heads) ** -0.5))
        mixed = g.op("MatMul", g.op("Softmax", g.op("Add", scores, mask), axis=-1), v)
        mixed = g.op("Reshape", g.op("Transpose", mixed, perm=[0, 2, 1, 3]), together)
        x = norm(name + ".norm1", g.op("Add", x, g.linear(name + ".out", mixed, hidden, hidden)))
        inner = g.op("Gelu", g.linear(name + ".inner", x, hidden, 2 * hidden))
        x = norm(name + ".norm2", g.op("Add", x, g.linear(name + ".outer", inner, 2 * hidden, hidden)))
    tokens = g.nodes[-1]
    first = g.op("Gather", x, g.index(0), axis=1)
    g.op("Tanh", g.op("Gemm", first, g.normal("pooler.weight", hidden, hidden, scale=0.2), g.normal("pooler.bias", hidden, scale=0.1)))
    inputs = {n: (TensorProto.INT64, ["batch", "length"]) for n in ("input_ids", "attention_mask")}
    return g, inputs, [(["batch", "length", hidden], tokens), (["batch", hidden], g.nodes[-1])], [(1, 7), (3, 12), (2, 5)]


def lstm():
    g, n, m = Graph(4), 6, 10
    x = g.op("Transpose", "series", perm=[1, 0, 2])
    w = [g.normal(p, *shape, scale=0.4) for p, shape in (("w", (2, 4 * m, n)), ("r", (2, 4 * m, m)), ("b", (2, 8 * m)))]
    y = g.op("LSTM", x, *w, hidden_size=m, direction="bidirectional")
    y = g.op("Transpose", y, perm=[2, 0, 1, 3])
    y = g.op("Reshape", y, g.ints(0, 0, 2 * m))
    g.op("Sigmoid", g.linear("out", y, 2 * m, 3))
    inputs = {"series": (TensorProto.FLOAT, ["batch", "length", n])}
    return g, inputs, [(["batch", "length", 3], g.nodes[-1])], [(1, 9), (4, 5), (2, 14)]


def numbers(a):
    # A float32's own text is the shortest that is read as that number.
    return {"shape": list(a.shape), "values": [float(str(v)) if a.dtype == np.float32 else int(v) for v in a.ravel()]}


def main():
    os.makedirs(sys.argv[1], exist_ok=True)
    for build in (resnet, bert, lstm):
        g, inputs, outputs, sizes = build()
        path = os.path.join(sys.argv[1], build.__name__)
        graph = helper.make_graph(
            g.nodes, build.__name__,
            [helper.make_tensor_value_info(n, dt, shape) for n, (dt, shape) in inputs.items()],
            [helper.make_tensor_value_info(node.output[0], TensorProto.FLOAT, shape) for shape, node in outputs],
            [numpy_helper.from_array(v, n) for n, v in g.weights.items()],
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
        onnx.checker.check_model(model, full_check=True)
        onnx.save(model, path + ".onnx")
        session = onnxruntime.InferenceSession(path + ".onnx", providers=["CPUExecutionProvider"])
        runs = []
        for size in sizes:
            feed = {}
            for name, (dt, shape) in inputs.items():
                free = iter(size)
                shape = [d if isinstance(d, int) else next(free) for d in shape]
                if dt == TensorProto.FLOAT:
                    # Of few decimals, which are short to write.
                    feed[name] = g.random.standard_normal(shape).round(2).astype(np.float32)
                elif name == "attention_mask":
                    lengths = g.random.integers(1, shape[1], shape[0], endpoint=True)
                    feed[name] = (np.arange(shape[1]) < lengths[:, None]).astype(np.int64)
                else:
                    feed[name] = g.random.integers(0, 50, shape)
            got = session.run(None, feed)
            runs.append({"inputs": {n: numbers(v) for n, v in feed.items()}, "outputs": [numbers(v) for v in got]})
        with open(path + ".json", "w") as f:
            want = {"onnxruntime": onnxruntime.__version__, "outputs": [n.output[0] for _, n in outputs], "runs": runs}
            f.write(json.dumps(want, separators=(",", ":")).replace('{"inputs"', '\n{"inputs"') + "\n")


main()
