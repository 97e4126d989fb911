#!/usr/bin/env python3
"""Times the parts of transformer encoders that are no products: attention and normalisations.

    bench/encoder_parts.py [--onemodel PATH ...] [--runs N] [--only PATTERN] [--half] [--torch]

Makes one model with a node (or the operators of an attention) for each case, gives it seeded
inputs, and times each dispatch on its own between two timestamps of the device
(ONEMODEL_GPU_PROFILE), the barrier before it included: the median of N runs, in fast mode without
and with matrix hardware and in exact mode. The error is the largest difference from float64,
divided by the largest value. --torch times PyTorch's own functions beside it: CUDA graphs of 50,
divided by 50. --half makes the model of float16. Prints a Markdown table for bench/RESULTS.md. Needs python3-onnx and numpy.
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
from onnx import TensorProto, helper

ATTENTIONS = [   # name, batch, positions, keys, heads, size of a head, masked
    ("minilm_1", 1, 128, 128, 12, 32, True),
    ("minilm_8", 8, 128, 128, 12, 32, True),
    ("bert_1", 1, 128, 128, 12, 64, True),
    ("bert_8", 8, 128, 128, 12, 64, True),
    ("speech_1", 1, 1500, 1500, 12, 64, False),
    ("speech_4", 4, 1500, 1500, 12, 64, False),
    ("cross", 1, 64, 1500, 12, 64, False),
    ("odd", 2, 77, 203, 3, 40, True),
    ("head_128", 1, 512, 512, 8, 128, False),
]
NORMS = [(128, 384), (1024, 384), (128, 768), (1024, 768), (1500, 768), (6000, 768), (512, 4096)]
MODES = {"fast": ["--mode", "fast", "--no-matrix-hardware"], "matrix": ["--mode", "fast"], "exact": ["--mode", "exact"]}
LINE = re.compile(r"([\d.]+) us +(\S+) .*'(\w+?)(?:\.\w+)?'")


def add_attention(parts, name, batch, rows, keys, heads, size, masked):
    nodes, constants, outputs, feeds, rng, element = parts
    width = heads * size
    for part, length in (("q", rows), ("k", keys), ("v", keys)):
        feeds[f"{name}_{part}"] = rng.standard_normal((batch, length, width), np.float32).astype(element)
        nodes.append(helper.make_node("Reshape", [f"{name}_{part}", f"{name}_shape"], [f"{name}_{part}_heads"]))
        perm = [0, 2, 3, 1] if part == "k" else [0, 2, 1, 3]
        nodes.append(helper.make_node("Transpose", [f"{name}_{part}_heads"], [f"{name}_{part}_turned"], perm=perm))
    constants.append(helper.make_tensor(f"{name}_shape", TensorProto.INT64, [4], [batch, -1, heads, size]))
    constants.append(onnx.numpy_helper.from_array(np.array(size ** 0.5, element), f"{name}_root"))
    nodes.append(helper.make_node("MatMul", [f"{name}_q_turned", f"{name}_k_turned"], [f"{name}_products"]))
    nodes.append(helper.make_node("Div", [f"{name}_products", f"{name}_root"], [f"{name}_scores"]))
    if masked:
        mask = np.zeros((batch, 1, 1, keys), element)
        mask[..., keys * 3 // 4:] = np.finfo(element).min
        feeds[f"{name}_mask"] = mask
        nodes.append(helper.make_node("Add", [f"{name}_scores", f"{name}_mask"], [f"{name}_masked"]))
    nodes.append(helper.make_node("Softmax", [f"{name}_masked" if masked else f"{name}_scores"],
                                  [f"{name}_probabilities"], axis=-1))
    nodes.append(helper.make_node("MatMul", [f"{name}_probabilities", f"{name}_v_turned"], [f"{name}_heads"]))
    nodes.append(helper.make_node("Transpose", [f"{name}_heads"], [f"{name}_y"], name, perm=[0, 2, 1, 3]))
    outputs.append((f"{name}_y", [batch, rows, heads, size]))


def add_norm(parts, rows, width):
    nodes, constants, outputs, feeds, rng, element = parts
    name = f"norm_{rows}_{width}"
    feeds[f"{name}_x"] = (rng.standard_normal((rows, width), np.float32) * 3 + 1).astype(element)
    for part in ("scale", "bias"):
        values = rng.standard_normal(width).astype(element)
        constants.append(onnx.numpy_helper.from_array(values, f"{name}_{part}"))
    nodes.append(helper.make_node("LayerNormalization", [f"{name}_x", f"{name}_scale", f"{name}_bias"], [f"{name}_y"],
                                  name, epsilon=1e-5))
    outputs.append((f"{name}_y", [rows, width]))


def make_model(folder, only, element=np.float32):
    parts = [], [], [], {}, np.random.default_rng(1), element
    nodes, constants, outputs, feeds, _, _ = parts
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(element))
    cases = []
    for case in ATTENTIONS:
        if re.search(only, case[0]):
            add_attention(parts, *case)
            cases.append(case[0])
    for rows, width in NORMS:
        if re.search(only, f"norm_{rows}_{width}"):
            add_norm(parts, rows, width)
            cases.append(f"norm_{rows}_{width}")
    inputs = [helper.make_tensor_value_info(name, kind, value.shape) for name, value in feeds.items()]
    outputs = [helper.make_tensor_value_info(name, kind, shape) for name, shape in outputs]
    graph = helper.make_graph(nodes, "parts", inputs, outputs, constants)
    path = os.path.join(folder, "parts.onnx")
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    with open(path, "wb") as file:
        file.write(model.SerializeToString())
    for name, value in feeds.items():
        np.save(os.path.join(folder, name + ".npy"), value)
    weights = {c.name: onnx.numpy_helper.to_array(c) for c in constants}
    return path, feeds, weights, cases


def references(feeds, weights, cases):
    """The same in float64."""
    try:
        import torch
        device = "cuda" if torch.cuda.is_available() else "cpu"
        def wide(x): return torch.from_numpy(np.array(x, np.float64)).to(device)
        def softmax(x): return torch.softmax(x, -1)
        def back(x): return x.cpu().numpy()
    except ImportError:
        def wide(x): return np.array(x, np.float64)
        def softmax(x):
            e = np.exp(x - x.max(-1, keepdims=True))
            return e / e.sum(-1, keepdims=True)
        def back(x): return x
    results = {}
    sizes = {case[0]: case[4:6] for case in ATTENTIONS}
    for case in cases:
        if case in sizes:
            heads, size = sizes[case]
            q, k, v = (wide(feeds[f"{case}_{part}"]) for part in "qkv")
            q, k, v = (x.reshape(x.shape[0], x.shape[1], heads, size).swapaxes(1, 2) for x in (q, k, v))
            scores = q @ k.swapaxes(2, 3) / size ** 0.5
            if f"{case}_mask" in feeds:
                scores = scores + wide(feeds[f"{case}_mask"])
            results[case] = back((softmax(scores) @ v).swapaxes(1, 2))
        else:
            x = np.float64(feeds[f"{case}_x"])
            centered = x - x.mean(-1, keepdims=True)
            y = centered / np.sqrt((centered ** 2).mean(-1, keepdims=True) + 1e-5)
            results[case] = y * np.float64(weights[f"{case}_scale"]) + np.float64(weights[f"{case}_bias"])
    return results


def measure(command, path, feeds, expected, mode, runs, cases):
    """(microseconds, kernels, error) by case."""
    folder = os.path.dirname(path)
    common = [path, "--device", "gpu", "--require-gpu", *MODES[mode]]
    for name in feeds:
        common += ["--input", f"{name}={folder}/{name}.npy"]
    done = subprocess.run([command, "bench", *common, "--runs", str(runs), "--warmup", "2", "--json"],
                          capture_output=True, text=True, env=dict(os.environ, ONEMODEL_GPU_PROFILE="1"))
    if done.returncode:
        sys.exit(f"{command}: exit {done.returncode}: {done.stderr[-500:]}")
    seen = {}
    for us, kernel, case in LINE.findall(done.stderr):
        seen.setdefault(case, {}).setdefault(kernel, []).append(float(us))
    out = os.path.join(folder, "y.npz")
    subprocess.run([command, "run", *common, "--out", out], check=True, stdout=subprocess.DEVNULL)
    results = np.load(out)
    figures = {}
    for case in cases:
        y, right = results[f"{case}_y"].astype(np.float64), expected[case]
        error = float(np.abs(y - right).max() / np.abs(right).max())
        kernels = seen.get(case, {})
        us = sum(statistics.median(times) * len(times) / done.stderr.count(" uploads") for times in kernels.values())
        figures[case] = us, " + ".join(kernels), error
    return figures


def time_torch(feeds, cases, uses_tf32, as_half):
    import torch
    import torch.nn.functional as F

    torch.backends.cuda.matmul.allow_tf32 = uses_tf32
    times = {}
    sizes = {case[0]: case[4:6] for case in ATTENTIONS}
    for case in cases:
        def on_device(name):
            x = torch.from_numpy(feeds[name]).cuda()
            return x.half() if as_half else x
        if case in sizes:
            heads, size = sizes[case]
            q, k, v = (on_device(f"{case}_{part}") for part in "qkv")
            q, k, v = (x.view(x.shape[0], x.shape[1], heads, size).transpose(1, 2) for x in (q, k, v))
            mask = on_device(f"{case}_mask") if f"{case}_mask" in feeds else None
            def work(): return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        else:
            x = on_device(f"{case}_x")
            w = torch.ones(x.shape[-1], device="cuda", dtype=x.dtype)
            def work(): return F.layer_norm(x, x.shape[-1:], w, w)
        work()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(50):
                work()
        results = []
        for _ in range(5):
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            graph.replay()
            end.record()
            end.synchronize()
            results.append(begin.elapsed_time(end) / 50 * 1e3)
        times[case] = statistics.median(results)
    return times


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--onemodel", default="onemodel")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--only", default="", help="a regular expression for the cases' names")
    parser.add_argument("--modes", nargs="*", default=list(MODES))
    parser.add_argument("--half", action="store_true")
    parser.add_argument("--torch", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path, feeds, weights, cases = make_model(folder, options.only, np.float16 if options.half else np.float32)
        expected = references(feeds, weights, cases)
        sides = [measure(options.onemodel, path, feeds, expected, mode, options.runs, cases) for mode in options.modes]
        torch = [time_torch(feeds, cases, *how) for how in ((False, False), (True, False), (False, True))] \
            if options.torch else []
    names = options.modes + ["PyTorch float32 us", "PyTorch TF32 us", "PyTorch float16 us"][:len(torch)]
    print("| case | " + " | ".join(names) + " |")
    print("| --- " * (len(names) + 1) + "|")
    for case in cases:
        cells = [f"{us:.1f} ({kernel}, {error:.1e})" for us, kernel, error in (side[case] for side in sides)]
        cells += [f"{t[case]:.1f}" for t in torch]
        print(f"| {case} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
