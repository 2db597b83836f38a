"""Writes linear.onnx, the model of the examples: python linear.py (package onnx 1.19.1)."""
import onnx
from onnx import TensorProto as T, helper as h

graph = h.make_graph(
    [h.make_node("MatMul", ["x", "w"], ["h"], name="matmul"), h.make_node("Add", ["h", "b"], ["y"], name="add")],
    "linear",
    [h.make_tensor_value_info("x", T.FLOAT, ["n", 2])],
    [h.make_tensor_value_info("y", T.FLOAT, ["n", 1])],
    [h.make_tensor("w", T.FLOAT, [2, 1], [2.0, -0.5]), h.make_tensor("b", T.FLOAT, [1], [0.5])],
)
model = h.make_model(graph, opset_imports=[h.make_opsetid("", 21)], ir_version=10)
onnx.checker.check_model(model)
with open("linear.onnx", "wb") as f:
    f.write(model.SerializeToString(deterministic=True))
