"""What bench/transformers.py and bench/vision.py share: timing a model on both sides, and the table's rows.

PyTorch replays a CUDA graph, with inputs copied to the device and results back inside the measured
time; onemodel runs in fast and in exact mode. The error is onemodel's scaled error against the same
model in float64 on PyTorch.
"""
import argparse
import json
import os
import statistics
import subprocess
import time

import numpy as np
import torch

NOT_MEASURED = [float("nan")] * 3


def parse_options(models):
    parser = argparse.ArgumentParser()
    parser.add_argument("--onemodel", default="onemodel")
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--models", nargs="*", default=list(models))
    parser.add_argument("--keep", help="a folder for the models; else they are deleted")
    parser.add_argument("--no-torch-times", action="store_true")
    parser.add_argument("--profile", action="store_true", help="also prints each model's slowest steps")
    return parser.parse_args()


def time_graph(model, inputs, runs):
    """Median milliseconds of: inputs to the device, a replay, the result back."""
    static = [v.cuda() for v in inputs.values()]
    pinned = [v.pin_memory() for v in inputs.values()]
    with torch.no_grad():
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            for _ in range(3):
                model(*static)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = model(*static)
        back = torch.empty(y.shape, dtype=y.dtype, pin_memory=True)
        times = []
        for i in range(runs + 10):
            start = time.perf_counter()
            for target, source in zip(static, pinned):
                target.copy_(source, non_blocking=True)
            graph.replay()
            back.copy_(y, non_blocking=True)
            torch.cuda.synchronize()
            if i >= 10:
                times.append((time.perf_counter() - start) * 1e3)
    return statistics.median(times)


def torch_times(model, half, inputs, halves, runs, time_one=time_graph):
    """float32, TF32, float16."""
    model.cuda(), half.cuda()
    times = []
    for allows_tf32 in (False, True):
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = allows_tf32
        times.append(time_one(model, inputs, runs))
    times.append(time_one(half, halves, runs))
    model.cpu(), half.cpu()
    return times


def run_json(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        return {"problem": (done.stderr.strip().splitlines() or ["?"])[-1][:300]}
    return json.loads(done.stdout)


def measure(options, path, inputs, mode, folder, reference):
    feeds = []
    for name, value in inputs.items():
        file = os.path.join(folder, f"{name}.npy")
        np.save(file, value.numpy())
        feeds += ["--input", f"{name}={file}"]
    common = ["--device", "gpu", "--mode", mode, "--require-gpu", *feeds]
    figures = run_json([options.onemodel, "bench", path, "--runs", str(options.runs), "--json", *common])
    if "problem" in figures:
        return figures
    out = os.path.join(folder, "y.npz")
    subprocess.run([options.onemodel, "run", path, "--out", out, *common], check=True)
    y = np.load(out)["y"].astype(np.float64)
    figures["error"] = float(np.abs(y - reference).max() / np.abs(reference).max())
    if options.profile:
        done = subprocess.run([options.onemodel, "bench", path, "--runs", "10", "--profile", *common],
                              capture_output=True, text=True)
        figures["profile"] = done.stdout + done.stderr
    return figures


def print_header():
    print("| model | batch | type | mode | wall ms | device ms | host ms | dispatches | first run ms | scaled error | "
          "PyTorch float32 / TF32 / float16 ms | ratios |")
    print("| --- " * 12 + "|")


def print_rows(options, name, batch, paths, inputs, halves, references, times, folder):
    """paths, references: by 'float32' and 'float16'."""
    beside = " / ".join(f"{t:.3f}" for t in times)
    profiles = []
    for kind, mode in (("float32", "fast"), ("float32", "exact"), ("float16", "fast")):
        f = measure(options, paths[kind], inputs if kind == "float32" else halves, mode, folder,
                    references[kind])
        row = f"| {name} | {batch} | {kind} | {mode} | "
        if "problem" in f:
            print(f"{row}{f['problem']} | | | | | | {beside} | |", flush=True)
            continue
        wall = f["wall_ms"]["median"]
        ratios = " / ".join(f"{wall / t:.2f}" for t in times)
        print(f"{row}{wall:.3f} | {f['device_ms']:.3f} | {f['host_ms']:.3f} | {f['dispatches']} | "
              f"{f['first_run_ms']:.0f} | {f['error']:.1e} | {beside} | {ratios} |", flush=True)
        profiles.append((f"{name}, batch {batch}, {kind}, {mode}", f.get("profile")))
    for title, profile in profiles:
        if profile:
            print(f"\n{title}\n\n{profile}", flush=True)
