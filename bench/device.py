#!/usr/bin/env python3
"""Times models on this machine's GPU, beside ONNX Runtime in the same run.

    bench/device.py --models FOLDER [--onemodel PATH] [--runs N] [--profile]

Both sides get the same inputs and are timed in turn: wall time of a run with its inputs and
outputs in host memory, the median of N runs after a warm-up. ONNX Runtime runs on whatever
providers it has here (its CPU provider in Debian's package); it is left out where it is missing.
Prints a Markdown table for bench/RESULTS.md; with --profile also each model's slowest steps. FOLDER
holds the PP-OCRv4 models (scripts/models).
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

CASES = [
    ("recogniser", "ch_PP-OCRv4_rec_infer.onnx", (1, 3, 48, 320)),
    ("detector", "ch_PP-OCRv4_det_infer.onnx", (1, 3, 640, 640)),
    ("angle classifier", "ch_ppocr_mobile_v2.0_cls_infer.onnx", (1, 3, 48, 192)),
]


def run_json(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: exit {done.returncode}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def time_onnxruntime(path, x, runs):
    """The best median over one thread, half the cores and all of them, with the provider's name."""
    try:
        import onnxruntime as ort
    except ImportError:
        return None
    best = None
    cores = os.cpu_count() or 1
    for threads in sorted({1, max(1, cores // 2), cores}):
        options = ort.SessionOptions()
        options.intra_op_num_threads = threads
        options.log_severity_level = 3
        session = ort.InferenceSession(path, options, providers=ort.get_available_providers())
        feed = {session.get_inputs()[0].name: x}
        for _ in range(5):
            session.run(None, feed)
        times = []
        for _ in range(runs):
            start = time.perf_counter()
            session.run(None, feed)
            times.append((time.perf_counter() - start) * 1e3)
        median = statistics.median(times)
        if best is None or median < best[0]:
            best = (median, f"{session.get_providers()[0]}, {threads} threads")
    return best


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--models", required=True)
    parser.add_argument("--onemodel", default="onemodel")
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args()
    import numpy as np

    print("| model | mode | wall ms (10 %..90 %) | device ms | host ms | dispatches | "
          "allocations after warm-up | first run ms | ONNX Runtime ms | ratio |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    device, profiles = None, []
    for name, file, shape in CASES:
        path = os.path.join(options.models, file)
        x = np.random.default_rng(1).uniform(-1, 1, shape).astype(np.float32)
        with tempfile.TemporaryDirectory() as folder:
            feed = os.path.join(folder, "x.npy")
            np.save(feed, x)
            other = time_onnxruntime(path, x, options.runs)
            for mode in ("fast", "exact"):
                f = run_json([options.onemodel, "bench", path, "--device", "gpu", "--mode", mode,
                              "--require-gpu", "--input", f"x={feed}", "--runs", str(options.runs), "--json"])
                device = (f["device"], f["driver"])
                if options.profile:
                    done = subprocess.run([options.onemodel, "bench", path, "--device", "gpu", "--mode", mode, "--input",
                                           f"x={feed}", "--runs", "10", "--profile"], capture_output=True, text=True)
                    profiles.append(f"{name}, {mode}\n\n{done.stdout}{done.stderr}")
                wall = f["wall_ms"]
                beside = f"{other[0]:.2f} ({other[1]}) | {wall['median'] / other[0]:.3f}" if other else "- | -"
                size = "x".join(map(str, shape))
                print(f"| {name} {size} | {mode} | {wall['median']:.3f} ({wall['p10']:.3f}..{wall['p90']:.3f}) | "
                      f"{f['device_ms']:.3f} | {f['host_ms']:.3f} | {f['dispatches']} | {f['allocations']} | "
                      f"{f['first_run_ms']:.0f} | {beside} |")
    print(f"\nDevice: {device[0]}, {device[1]}.", *profiles, sep="\n\n")


if __name__ == "__main__":
    main()
