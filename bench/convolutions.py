#!/usr/bin/env python3
"""Times single convolutions on this machine's GPU, beside PyTorch in the same run.

    bench/convolutions.py [--onemodel PATH ...] [--runs N] [--batch N] [--half] [--no-torch]

Each of CASES (those of ResNet-50, some of MobileNetV3 and of the text detector) is timed on its own
between two timestamps of the device (ONEMODEL_GPU_PROFILE), the median of N runs. PyTorch's
are a CUDA graph of 20 of the same convolution, channels last, with cudnn.benchmark, its time divided by
20. Several --onemodel are timed in turn. Prints a Markdown table for bench/RESULTS.md. Needs
python3-onnx, and PyTorch with CUDA unless --no-torch is given.
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

CASES = [  # channels, height and width, results' channels, kernel, stride
    (3, 224, 64, 7, 2), (64, 56, 64, 1, 1), (64, 56, 64, 3, 1), (64, 56, 256, 1, 1), (256, 56, 64, 1, 1),
    (128, 56, 128, 3, 2), (256, 56, 512, 1, 2), (128, 28, 128, 3, 1), (128, 28, 512, 1, 1), (512, 28, 128, 1, 1),
    (256, 28, 256, 3, 2), (256, 14, 256, 3, 1), (256, 14, 1024, 1, 1), (1024, 14, 256, 1, 1), (1024, 14, 2048, 1, 2),
    (512, 7, 512, 3, 1), (512, 7, 2048, 1, 1), (2048, 7, 512, 1, 1),
    (3, 224, 16, 3, 2), (16, 112, 64, 1, 1), (72, 56, 24, 1, 1), (40, 28, 120, 1, 1), (80, 14, 480, 1, 1),
    (672, 14, 112, 1, 1), (160, 7, 960, 1, 1), (960, 7, 160, 1, 1),
    (96, 160, 24, 3, 1), (24, 160, 96, 1, 1), (384, 20, 384, 1, 1),
]
LINE = re.compile(r"([\d.]+) us +(\S+) .*'conv_(\d+)'")


def make_model(path, batch, is_half):
    dtype = np.float16 if is_half else np.float32
    kind = TensorProto.FLOAT16 if is_half else TensorProto.FLOAT
    random = np.random.default_rng(1)
    most = max(batch * c * size * size for c, size, *_ in CASES)
    nodes, constants, outputs = [], [], []

    def constant(name, values):
        constants.append(numpy_helper.from_array(values, name))

    for name, values in (("zero", [0]), ("one", [1])):
        constant(name, np.array(values, np.int64))
    for i, (c, size, m, kernel, stride) in enumerate(CASES):
        constant(f"w_{i}", (random.standard_normal((m, c, kernel, kernel)) * (c * kernel * kernel) ** -0.5).astype(dtype))
        constant(f"b_{i}", random.standard_normal(m).astype(dtype))
        constant(f"size_{i}", np.array([batch * c * size * size], np.int64))
        constant(f"shape_{i}", np.array([batch, c, size, size], np.int64))
        nodes += [helper.make_node("Slice", ["x", "zero", f"size_{i}", "zero"], [f"flat_{i}"], f"part_{i}"),
                  helper.make_node("Reshape", [f"flat_{i}", f"shape_{i}"], [f"x_{i}"]),
                  helper.make_node("Conv", [f"x_{i}", f"w_{i}", f"b_{i}"], [f"sums_{i}"], f"conv_{i}",
                                   pads=[kernel // 2] * 4, strides=[stride, stride]),
                  helper.make_node("Relu", [f"sums_{i}"], [f"y_{i}"]),
                  # A plane of each result is all that leaves the device.
                  helper.make_node("Slice", [f"y_{i}", "zero", "one", "one"], [f"plane_{i}"])]
        out = (size + stride - 1) // stride
        outputs.append(helper.make_tensor_value_info(f"plane_{i}", kind, [batch, 1, out, out]))
    graph = helper.make_graph(nodes, "convolutions", [helper.make_tensor_value_info("x", kind, [most])], outputs, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.save(model, path)


def time_onemodel(command, path, runs):
    """Microseconds and kernels by case; a convolution of two passes is the sum of both."""
    done = subprocess.run([command, "bench", path, "--device", "gpu", "--require-gpu", "--runs", str(runs), "--json"],
                          capture_output=True, text=True, env=dict(os.environ, ONEMODEL_GPU_PROFILE="1"))
    if done.returncode:
        sys.exit(f"{command}: exit {done.returncode}: {done.stderr[-500:]}")
    seen = {}
    for us, kernel, case in LINE.findall(done.stderr):
        seen.setdefault(int(case), {}).setdefault(kernel, []).append(float(us))
    return {case: (sum(statistics.median(t[-runs:]) for t in kernels.values()), " + ".join(kernels))
            for case, kernels in seen.items()}


def time_torch(batch, dtype, uses_tf32):
    import torch

    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.allow_tf32 = uses_tf32
    times = {}
    for i, (c, size, m, kernel, stride) in enumerate(CASES):
        x = torch.randn(batch, c, size, size, device="cuda", dtype=dtype).to(memory_format=torch.channels_last)
        w = torch.randn(m, c, kernel, kernel, device="cuda", dtype=dtype).to(memory_format=torch.channels_last)
        for _ in range(3):
            torch.nn.functional.conv2d(x, w, None, stride, kernel // 2)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(20):
                torch.nn.functional.conv2d(x, w, None, stride, kernel // 2)
        results = []
        for _ in range(5):
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            graph.replay()
            end.record()
            end.synchronize()
            results.append(begin.elapsed_time(end) / 20 * 1e3)
        times[i] = statistics.median(results)
    return times


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--onemodel", nargs="*", default=["onemodel"])
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--half", action="store_true")
    parser.add_argument("--no-torch", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "convolutions.onnx")
        make_model(path, options.batch, options.half)
        sides = [time_onemodel(command, path, options.runs) for command in options.onemodel]
    names = [f"{os.path.basename(command)} us (kernel)" for command in options.onemodel]
    beside = []
    if not options.no_torch:
        import torch

        kinds = [(torch.float16, True, "float16")] if options.half else [(torch.float32, False, "float32"),
                                                                         (torch.float32, True, "TF32")]
        for dtype, uses_tf32, name in kinds:
            beside.append(time_torch(options.batch, dtype, uses_tf32))
            names.append(f"PyTorch {name} us")
    print("| input, results' channels, kernel / stride | " + " | ".join(names) + " |")
    print("| --- " * (len(names) + 1) + "|")
    for i, (c, size, m, kernel, stride) in enumerate(CASES):
        cells = [f"{side[i][0]:.1f} ({side[i][1]})" for side in sides] + [f"{t[i]:.1f}" for t in beside]
        title = f"{options.batch}x{c}x{size}x{size}, {m}, {kernel}x{kernel} / {stride}"
        print(f"| {title} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
