#!/usr/bin/env python3
"""Times single matrix products on this machine's GPU, beside PyTorch in the same run.

    bench/products.py --make FOLDER                      writes products_*.onnx; needs python3-onnx
    bench/products.py --models FOLDER [--half] [--onemodel PATH ...] [--runs N]

A model holds a product of each of CASES, in float32 or (--half) float16, with weights in a file beside
it that the second form fills with seeded values. Each product is timed on its own between two
timestamps of the device (ONEMODEL_GPU_PROFILE), the median of N runs. PyTorch's are a CUDA graph of
50 products with weights that take turns, its time divided by 50, in float32 and TF32, or in float16.
Several --onemodel are timed in turn. Prints a Markdown table for bench/RESULTS.md.
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


def file_of(folder, is_half, ending):
    return os.path.join(folder, f"products_{'float16' if is_half else 'float32'}.{ending}")


def make_model(folder, is_half):
    from onnx import TensorProto, helper

    dtype, elem_bytes = (TensorProto.FLOAT16, 2) if is_half else (TensorProto.FLOAT, 4)
    weights, offset = [], 0
    for k, n in WEIGHTS:
        tensor = TensorProto(name=f"w_{k}_{n}", data_type=dtype, dims=[k, n], data_location=TensorProto.EXTERNAL)
        location = os.path.basename(file_of(folder, is_half, "bin"))
        for key, value in (("location", location), ("offset", offset), ("length", elem_bytes * k * n)):
            tensor.external_data.add(key=key, value=str(value))
        offset += elem_bytes * k * n
        weights.append(tensor)
    nodes = [helper.make_node("MatMul", [f"x_{m}_{k}", f"w_{k}_{n}"], [f"y_{m}_{k}_{n}"], f"product_{m}_{k}_{n}")
             for m, k, n in CASES]
    # A row of each result is all that leaves the device.
    nodes += [helper.make_node("Slice", [f"y_{m}_{k}_{n}", "zero", "one", "zero"], [f"row_{m}_{k}_{n}"])
              for m, k, n in CASES]
    weights += [helper.make_tensor(name, TensorProto.INT64, [1], [value]) for name, value in (("zero", 0), ("one", 1))]
    inputs = [helper.make_tensor_value_info(f"x_{m}_{k}", dtype, [m, k])
              for m, k in sorted({(m, k) for m, k, _ in CASES})]
    outputs = [helper.make_tensor_value_info(f"row_{m}_{k}_{n}", dtype, [1, n]) for m, k, n in CASES]
    graph = helper.make_graph(nodes, "products", inputs, outputs, weights)
    with open(file_of(folder, is_half, "onnx"), "wb") as file:
        file.write(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)]).SerializeToString())


def fill_weights(folder, is_half):
    import numpy as np

    count = sum(k * n for k, n in WEIGHTS)
    values = np.random.default_rng(1).standard_normal(count, np.float32)
    values.astype(np.float16 if is_half else np.float32).tofile(file_of(folder, is_half, "bin"))


def time_onemodel(command, folder, is_half, runs):
    """Microseconds and kernels by case; a product of two passes is the sum of both."""
    done = subprocess.run([command, "bench", file_of(folder, is_half, "onnx"), "--device", "gpu", "--require-gpu",
                           "--runs", str(runs), "--json"], capture_output=True, text=True,
                          env=dict(os.environ, ONEMODEL_GPU_PROFILE="1"))
    if done.returncode:
        sys.exit(f"{command}: exit {done.returncode}: {done.stderr[-500:]}")
    seen = {}
    for us, kernel, *case in LINE.findall(done.stderr):
        seen.setdefault(tuple(map(int, case)), {}).setdefault(kernel, []).append(float(us))
    return {case: (sum(statistics.median(t[-runs:]) for t in kernels.values()), " + ".join(kernels))
            for case, kernels in seen.items()}


def time_torch(is_half, uses_tf32):
    import torch

    count, most_bytes = 50, 200_000_000   # of weights: more than the card's caches hold
    torch.backends.cuda.matmul.allow_tf32 = uses_tf32
    dtype = torch.float16 if is_half else torch.float32
    times = {}
    for m, k, n in CASES:
        x = torch.randn(m, k, device="cuda", dtype=dtype)
        kinds = min(count, most_bytes // (k * n * x.element_size()))
        weights = [torch.randn(k, n, device="cuda", dtype=dtype) for _ in range(kinds)]
        y = torch.empty(m, n, device="cuda", dtype=dtype)
        torch.mm(x, weights[0], out=y)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for i in range(count):
                torch.mm(x, weights[i % kinds], out=y)
        results = []
        for _ in range(5):
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            graph.replay()
            end.record()
            end.synchronize()
            results.append(begin.elapsed_time(end) / count * 1e3)
        times[m, k, n] = statistics.median(results)
    return times


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--make")
    parser.add_argument("--models")
    parser.add_argument("--onemodel", nargs="*", default=["onemodel"])
    parser.add_argument("--half", action="store_true")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--no-torch", action="store_true")
    options = parser.parse_args()
    if options.make:
        for is_half in (False, True):
            make_model(options.make, is_half)
        return
    fill_weights(options.models, options.half)
    sides = [time_onemodel(command, options.models, options.half, options.runs) for command in options.onemodel]
    kinds = ("float16",) if options.half else ("float32", "TF32")
    torch = [] if options.no_torch else [time_torch(options.half, kind == "TF32") for kind in kinds]
    names = [f"{os.path.basename(command)} us (kernel)" for command in options.onemodel]
    names += [f"PyTorch {kind} us" for kind in kinds[:len(torch)]]
    print("| rows x depth x columns | " + " | ".join(names) + " |")
    print("| --- " * (len(names) + 1) + "|")
    for case in CASES:
        cells = [f"{side[case][0]:.1f} ({side[case][1]})" for side in sides] + [f"{t[case]:.1f}" for t in torch]
        print(f"| {case[0]}x{case[1]}x{case[2]} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
