#!/usr/bin/env python3
"""Writes the first inputs of corpus/onnx_load: small models with something of everything that the
loader reads. Needs the onnx package. What a fuzzer finds is added beside them by hand."""
import pathlib

import numpy as np
from onnx import TensorProto, helper, numpy_helper

OUT = pathlib.Path(__file__).resolve().parent / "corpus/onnx_load"
X = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 4])
Y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
W = numpy_helper.from_array(np.arange(8, dtype=np.float32).reshape(4, 2), "w")


def save(name, nodes, inputs=(X,), initializers=(), sparse=(), values=(), **model):
    graph = helper.make_graph(nodes, "g", list(inputs), [Y], list(initializers),
                              value_info=list(values))
    graph.sparse_initializer.extend(sparse)
    model.setdefault("opset_imports", [helper.make_opsetid("", 13)])
    made = helper.make_model(graph, producer_name="seed", **model)
    (OUT / f"{name}.onnx").write_bytes(made.SerializeToString())


def sparse_tensor(indices, shape, dims):
    values = helper.make_tensor("w", TensorProto.FLOAT, [2], [1, 2])
    return helper.make_sparse_tensor(
        values, helper.make_tensor("i", TensorProto.INT64, shape, indices), dims)


def constants():
    node = lambda name, **value: helper.make_node("Constant", [], [name], **value)
    save("constants", [
        node("c1", value=W), node("c2", value_float=1.5), node("c3", value_ints=[1, 2, 3]),
        node("c4", value_strings=["a", "bc"]), node("c5", value_floats=[1.0, 2.0]),
        node("c6", sparse_value=sparse_tensor([0, 3], [2], [2, 2])),
        helper.make_node("Add", ["x", "c2"], ["y"])],
        values=[helper.make_tensor_value_info("c2", TensorProto.FLOAT, [])])


def typed():
    make = helper.make_tensor
    save("typed", [helper.make_node("Add", ["x", "f"], ["y"])], initializers=[
        make("f", TensorProto.FLOAT, [2], [1, 2]), make("d", TensorProto.DOUBLE, [1], [1]),
        make("i8", TensorProto.INT8, [2], [-1, 1]), make("b", TensorProto.BOOL, [2], [True, False]),
        make("h", TensorProto.FLOAT16, [1], [1.0]), make("u64", TensorProto.UINT64, [1], [7]),
        make("s", TensorProto.STRING, [2], [b"a", b"b"]), make("i64", TensorProto.INT64, [0], [])])


def external():
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[2],
                         data_location=TensorProto.EXTERNAL)
    for key, value in (("location", "weights.bin"), ("offset", "0"), ("length", "8")):
        tensor.external_data.add(key=key, value=value)
    save("external", [helper.make_node("Add", ["x", "w"], ["y"])], initializers=[tensor])


def nested():
    condition = helper.make_tensor_value_info("c", TensorProto.BOOL, [])
    result = helper.make_tensor_value_info("z", TensorProto.FLOAT, None)
    body = helper.make_graph([helper.make_node("Identity", ["x"], ["z"])], "b", [], [result])
    deep = helper.make_graph(
        [helper.make_node("If", ["c"], ["z"], then_branch=body, else_branch=body)], "d", [], [result])
    save("if_in_if", [helper.make_node("If", ["c"], ["y"], then_branch=deep, else_branch=body)],
         inputs=[X, condition])
    state = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, None)
    turn = helper.make_graph(
        [helper.make_node("Add", ["s", "w"], ["t"]), helper.make_node("Identity", ["k"], ["k2"])],
        "l", [helper.make_tensor_value_info("i", TensorProto.INT64, []),
              helper.make_tensor_value_info("k", TensorProto.BOOL, []), state("s")],
        [helper.make_tensor_value_info("k2", TensorProto.BOOL, []), state("t"), state("t")])
    save("loop", [helper.make_node("Loop", ["", "c", "x"], ["y", "ys"], body=turn)],
         inputs=[X, condition], initializers=[W])
    save("if", [helper.make_node("If", ["c"], ["y"], then_branch=body, else_branch=body)],
         inputs=[X, condition])


def function():
    opsets = [helper.make_opsetid("", 13), helper.make_opsetid("own", 1)]
    twice = helper.make_function("own", "Twice", ["a"], ["b"],
                                 [helper.make_node("Add", ["a", "a"], ["b"])], opsets[:1])
    save("function", [helper.make_node("Twice", ["x"], ["y"], domain="own")],
         opset_imports=opsets, functions=[twice])


def function_of_attributes():
    opsets = [helper.make_opsetid("", 13), helper.make_opsetid("own", 1)]
    value = helper.make_node("Constant", [], ["k"])
    value.attribute.add(name="value_float", ref_attr_name="by", type=1)
    condition = helper.make_tensor_value_info("e", TensorProto.FLOAT, None)
    body = helper.make_graph([value, helper.make_node("Mul", ["a", "k"], ["e"])], "b", [], [condition])
    times = helper.make_function(
        "own", "Times", ["a", "c"], ["b"],
        [helper.make_node("If", ["c"], ["b"], then_branch=body, else_branch=body)], opsets[:1],
        attributes=["by"])
    save("function_of_attributes",
         [helper.make_node("Times", ["x", "c"], ["y"], domain="own", by=2.0)],
         inputs=[X, helper.make_tensor_value_info("c", TensorProto.BOOL, [])],
         opset_imports=opsets, functions=[times])


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    save("matmul", [helper.make_node("MatMul", ["x", "w"], ["a"]),
                    helper.make_node("Softmax", ["a"], ["y"], axis=-1)], initializers=[W])
    save("sparse", [helper.make_node("Conv", ["x", "w", ""], ["y"], strides=[1, 1],
                                     auto_pad="SAME_UPPER", group=1)],
         sparse=[sparse_tensor([0, 1, 1, 0], [2, 2], [2, 4])])
    sequence = helper.make_tensor_sequence_value_info("q", TensorProto.FLOAT, None)
    save("sequence", [helper.make_node("SequenceAt", ["q", "x"], ["y"])], inputs=[sequence, X])
    constants()
    typed()
    external()
    nested()
    function()
    function_of_attributes()
    (OUT / "tensor.pb").write_bytes(W.SerializeToString())


if __name__ == "__main__":
    main()
