#!/usr/bin/env python3
"""Times single matrix products on this machine's GPU, beside PyTorch in the same run.

    bench/products.py --make FOLDER                      writes products.onnx; needs python3-onnx
    bench/products.py --models FOLDER [--onemodel PATH ...] [--runs N]

The model holds a product of each of CASES, with weights in a file beside it that the second form
fills with seeded values. Each product is timed on its own between two timestamps of the device
(ONEMODEL_GPU_PROFILE), the median of N runs. PyTorch's are a CUDA graph of 50 of the same product,
its time divided by 50, in float32 and TF32. Several --onemodel are timed in turn. Prints a
Markdown table for bench/RESULTS.md.
"""
import argparse
import os
import re
import statistics
import subprocess
import sys

ROWS = (128, 1024, 1500, 6000)
WEIGHTS = ((384, 384), (384, 1536), (1536, 384), (768, 768), (768, 2304), (768, 3072), (3072, 768))
CASES = [(m, k, n) for m in ROWS for k, n in WEIGHTS]
LINE = re.compile(r"([\d.]+) us +(\S+) .*'product_(\d+)_(\d+)_(\d+)'")


def make_model(folder):
    import onnx
    from onnx import TensorProto, helper

    weights, offset = [], 0
    for k, n in WEIGHTS:
        tensor = TensorProto(name=f"w_{k}_{n}", data_type=TensorProto.FLOAT, dims=[k, n],
                             data_location=TensorProto.EXTERNAL)
        for key, value in (("location", "products.bin"), ("offset", offset), ("length", 4 * k * n)):
            tensor.external_data.add(key=key, value=str(value))
        offset += 4 * k * n
        weights.append(tensor)
    nodes = [helper.make_node("MatMul", [f"x_{m}_{k}", f"w_{k}_{n}"], [f"y_{m}_{k}_{n}"], f"product_{m}_{k}_{n}")
             for m, k, n in CASES]
    # A row of each result is all that leaves the device.
    nodes += [helper.make_node("Slice", [f"y_{m}_{k}_{n}", "zero", "one", "zero"], [f"row_{m}_{k}_{n}"])
              for m, k, n in CASES]
    weights += [helper.make_tensor(name, TensorProto.INT64, [1], [value]) for name, value in (("zero", 0), ("one", 1))]
    inputs = [helper.make_tensor_value_info(f"x_{m}_{k}", TensorProto.FLOAT, [m, k])
              for m, k in sorted({(m, k) for m, k, _ in CASES})]
    outputs = [helper.make_tensor_value_info(f"row_{m}_{k}_{n}", TensorProto.FLOAT, [1, n]) for m, k, n in CASES]
    graph = helper.make_graph(nodes, "products", inputs, outputs, weights)
    with open(os.path.join(folder, "products.onnx"), "wb") as file:
        file.write(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)]).SerializeToString())


def fill_weights(folder):
    import numpy as np

    count = sum(k * n for k, n in WEIGHTS)
    np.random.default_rng(1).standard_normal(count, np.float32).tofile(os.path.join(folder, "products.bin"))


def time_onemodel(command, folder, runs):
    """Microseconds and kernels by case; a product of two passes is the sum of both."""
    done = subprocess.run([command, "bench", os.path.join(folder, "products.onnx"), "--device", "gpu", "--require-gpu",
                           "--runs", str(runs), "--json"], capture_output=True, text=True,
                          env=dict(os.environ, ONEMODEL_GPU_PROFILE="1"))
    if done.returncode:
        sys.exit(f"{command}: exit {done.returncode}: {done.stderr[-500:]}")
    seen = {}
    for us, kernel, *case in LINE.findall(done.stderr):
        seen.setdefault(tuple(map(int, case)), {}).setdefault(kernel, []).append(float(us))
    return {case: (sum(statistics.median(t[-runs:]) for t in kernels.values()), " + ".join(kernels))
            for case, kernels in seen.items()}


def time_torch(uses_tf32):
    import torch

    torch.backends.cuda.matmul.allow_tf32 = uses_tf32
    times = {}
    for m, k, n in CASES:
        x, w = torch.randn(m, k, device="cuda"), torch.randn(k, n, device="cuda")
        y = torch.empty(m, n, device="cuda")
        torch.mm(x, w, out=y)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(50):
                torch.mm(x, w, out=y)
        results = []
        for _ in range(5):
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            graph.replay()
            end.record()
            end.synchronize()
            results.append(begin.elapsed_time(end) / 50 * 1e3)
        times[m, k, n] = statistics.median(results)
    return times


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--make")
    parser.add_argument("--models")
    parser.add_argument("--onemodel", nargs="*", default=["onemodel"])
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--no-torch", action="store_true")
    options = parser.parse_args()
    if options.make:
        make_model(options.make)
        return
    fill_weights(options.models)
    sides = [time_onemodel(command, options.models, options.runs) for command in options.onemodel]
    torch = [] if options.no_torch else [time_torch(False), time_torch(True)]
    names = [f"{os.path.basename(command)} us (kernel)" for command in options.onemodel]
    names += ["PyTorch float32 us", "PyTorch TF32 us"][:len(torch)]
    print("| rows x depth x columns | " + " | ".join(names) + " |")
    print("| --- " * (len(names) + 1) + "|")
    for case in CASES:
        cells = [f"{side[case][0]:.1f} ({side[case][1]})" for side in sides] + [f"{t[case]:.1f}" for t in torch]
        print(f"| {case[0]}x{case[1]}x{case[2]} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
