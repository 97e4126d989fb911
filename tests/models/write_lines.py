#!/usr/bin/env python3
"""Writes a picture for M-LSD, the example's notice, and what ONNX Runtime finds in it.

    write_lines.py MODEL OUT_FOLDER

lines.x is the picture, lines.y ONNX Runtime's result, and lines.plain its result without its rewrites: how far it is
from itself, as the order of sums changes, is how far another runtime may be. Exit code 77: no onnxruntime here.
"""
import pathlib
import sys

import write_references
from write_references import numpy, onnxruntime


def main():
    model, out = sys.argv[1], pathlib.Path(sys.argv[2])
    out.mkdir(parents=True, exist_ok=True)
    levels = onnxruntime.GraphOptimizationLevel
    for name, level in (("y", levels.ORT_ENABLE_ALL), ("plain", levels.ORT_DISABLE_ALL)):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.log_severity_level = 3
        options.graph_optimization_level = level
        session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        x = session.get_inputs()[0]
        _, height, width, _ = x.shape
        colours = write_references.resize(write_references.read_png(write_references.PICTURE), height, width)
        picture = numpy.concatenate([colours, numpy.ones((height, width, 1))], -1)[None].astype(numpy.float32)
        write_references.write(out / "lines.x", picture)
        write_references.write(out / f"lines.{name}", session.run(None, {x.name: picture})[0])


if __name__ == "__main__":
    main()
