#!/usr/bin/env python3
"""Times depthwise convolutions on this machine's GPU, beside a copy of such data in the same run.

    bench/depthwise.py [--onemodel PATH ...] [--runs N]

Each of CASES is a model of two dispatches, an elementwise one (Abs), which reads the input and writes as much,
and the convolution of what that wrote. Both stand between timestamps of the device (ONEMODEL_GPU_PROFILE); the
median of N runs. What a dispatch moves is its input once and its result once; the rate is that by its time, and
the share is the convolution's rate by the copy's. Several --onemodel are timed in turn. Prints a Markdown table
for bench/RESULTS.md. Needs python3-onnx.
"""
import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

CASES = [  # batch, channels, height and width, kernel, stride
    (8, 96, 112, 3, 1), (32, 144, 112, 3, 1), (32, 144, 112, 3, 2), (32, 144, 112, 5, 1), (64, 480, 28, 5, 1),
]
LINE = re.compile(r"([\d.]+) us +(\S+) .*'(copy|conv)'")


def make_model(path, case, is_half):
    batch, channels, side, kernel, stride = case
    dtype = np.float16 if is_half else np.float32
    kind = TensorProto.FLOAT16 if is_half else TensorProto.FLOAT
    random = np.random.default_rng(1)
    weights = {"w": random.standard_normal((channels, 1, kernel, kernel)).astype(dtype),
               "b": random.standard_normal(channels).astype(dtype),
               "zero": np.array([0], np.int64), "one": np.array([1], np.int64)}
    nodes = [helper.make_node("Abs", ["x"], ["copied"], "copy"),
             helper.make_node("Conv", ["copied", "w", "b"], ["sums"], "conv", pads=[kernel // 2] * 4,
                              strides=[stride, stride], group=channels),
             helper.make_node("Relu", ["sums"], ["y"]),
             # A plane of each picture is all that leaves the device.
             helper.make_node("Slice", ["y", "zero", "one", "one"], ["plane"])]
    out = (side + stride - 1) // stride
    graph = helper.make_graph(
        nodes, "depthwise", [helper.make_tensor_value_info("x", kind, [batch, channels, side, side])],
        [helper.make_tensor_value_info("plane", kind, [batch, 1, out, out])],
        [numpy_helper.from_array(values, name) for name, values in weights.items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)


def time_case(command, path, runs):
    """Microseconds of the copy and of the convolution, and the latter's kernel."""
    done = subprocess.run([command, "bench", path, "--device", "gpu", "--require-gpu", "--runs", str(runs), "--json"],
                          capture_output=True, text=True, env=dict(os.environ, ONEMODEL_GPU_PROFILE="1"))
    if done.returncode:
        sys.exit(f"{command}: exit {done.returncode}: {done.stderr[-500:]}")
    times, kernels = {}, {}
    for us, kernel, part in LINE.findall(done.stderr):
        times.setdefault(part, []).append(float(us))
        kernels[part] = kernel
    return *(statistics.median(times[part][-runs:]) for part in ("copy", "conv")), kernels["conv"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--onemodel", nargs="*", default=["onemodel"])
    parser.add_argument("--runs", type=int, default=7)
    options = parser.parse_args()
    print("| input, kernel / stride | type | kernel | MB | us | TB/s | copy: MB, us, TB/s | share |")
    print("| --- " * 8 + "|")
    with tempfile.TemporaryDirectory() as folder:
        for case in CASES:
            batch, channels, side, kernel, stride = case
            for is_half in (False, True):
                path = os.path.join(folder, "depthwise.onnx")
                make_model(path, case, is_half)
                out = (side + stride - 1) // stride
                planes = batch * channels * (2 if is_half else 4) / 1e6
                bytes_of = planes * 2 * side * side, planes * (side * side + out * out)
                for command in options.onemodel:
                    copy_us, conv_us, name = time_case(command, path, options.runs)
                    rates = bytes_of[0] / copy_us, bytes_of[1] / conv_us
                    print(f"| {batch}x{channels}x{side}x{side}, {kernel}x{kernel} / {stride} | "
                          f"{'float16' if is_half else 'float32'} | {name} | {bytes_of[1]:.1f} | {conv_us:.1f} | "
                          f"{rates[1]:.2f} | {bytes_of[0]:.1f}, {copy_us:.1f}, {rates[0]:.2f} | "
                          f"{rates[1] / rates[0]:.2f} |", flush=True)


if __name__ == "__main__":
    main()
