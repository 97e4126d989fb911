#!/usr/bin/env python3
"""Writes ISNet for small pictures, an input, and ONNX Runtime's result.

    write_background.py MODELS_FOLDER OUT_FOLDER

The published model takes 1024x1024; the sizes that follow from that are in its Resizes. Divided by 8 they
make the same network of 128x128, 64 times less to compute. Writes isnet.onnx (of float16 weights), and
isnet_1.x and isnet_1.y0 as write_vision.py does.

Exit code 77: there is no python3-onnx or no onnxruntime here.
"""
import pathlib
import sys

from write_references import PICTURE, read_png, resize, write

import numpy
import onnxruntime

try:
    import onnx
    import onnx.numpy_helper
except ImportError as error:
    print(error)
    sys.exit(77)

SHRINKS_BY, SIDE = 8, 128


def shrink(graph):
    """Of the inputs, the outputs, and the constants of two integers: heights and widths."""
    del graph.value_info[:]
    for value in list(graph.input) + list(graph.output):
        for dim in value.type.tensor_type.shape.dim[2:]:
            dim.dim_value //= SHRINKS_BY
    for node in graph.node:
        if node.op_type != "Constant":
            continue
        value = onnx.numpy_helper.to_array(node.attribute[0].t)
        if value.shape == (2,) and value.dtype == numpy.int64:
            node.attribute[0].t.CopyFrom(onnx.numpy_helper.from_array(value // SHRINKS_BY))


def main():
    models, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    out.mkdir(parents=True, exist_ok=True)
    model = onnx.load(str(models / "medium.onnx"))
    graph = model.graph
    shrink(graph)
    onnx.save(model, str(out / "isnet.onnx"))
    picture = resize(read_png(PICTURE)[160:600, 40:660], SIDE, SIDE)
    x = ((picture - 128) / 256).transpose(2, 0, 1)[None].astype(numpy.float32)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(out / "isnet.onnx"), options, providers=["CPUExecutionProvider"])
    write(out / "isnet_1.x", x)
    write(out / "isnet_1.y0", session.run([graph.output[0].name], {graph.input[0].name: x})[0])


if __name__ == "__main__":
    main()
