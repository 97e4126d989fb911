#!/usr/bin/env python3
"""Writes example.onnx beside this file: y = Relu(x) * 2, x of [batch, 4]. Needs python3-onnx."""
import pathlib

import onnx
from onnx import TensorProto, helper

x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 4])
y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 4])
two = helper.make_tensor("two", TensorProto.FLOAT, [], [2.0])
nodes = [helper.make_node("Relu", ["x"], ["r"]), helper.make_node("Mul", ["r", "two"], ["y"])]
graph = helper.make_graph(nodes, "example", [x], [y], [two])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8,
                          producer_name="make_example.py")
onnx.checker.check_model(model)
onnx.save(model, str(pathlib.Path(__file__).with_name("example.onnx")))
