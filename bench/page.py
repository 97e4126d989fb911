#!/usr/bin/env python3
"""Times the text of a page, read by examples/ocr, beside the same with ONNX Runtime on the CPU.

    bench/page.py --models FOLDER [--ocr PATH] [--times N] [--size WIDTHxHEIGHT] [-- OPTION OF ocr...]

The page is the example's notice, side by side until WIDTHxHEIGHT is full. examples/ocr reads it N times in
one process; the first is left out. A picture's time is what examples/ocr takes from its pixels to the texts:
all runs of the three models and what lies between them. ONNX Runtime runs the same models on inputs of the
same sizes in the same order, with as many threads as are fastest; its pipeline is that, and what lies
between the runs as examples/ocr took it. Prints a Markdown table for bench/RESULTS.md. FOLDER holds the
PP-OCRv4 models (scripts/models).
"""
import argparse
import collections
import os
import pathlib
import re
import statistics
import struct
import subprocess
import sys
import tempfile
import time
import zlib

import numpy as np
import onnxruntime

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests/models"))
from write_references import PICTURE, read_png

TIME = re.compile(r"^  ([0-9.]+) ms  (\S+) (\d+)x(\d+)$")


def write_png(path, picture):
    chunk = lambda kind, body: struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
    rows = b"".join(b"\0" + row.tobytes() for row in picture)
    head = struct.pack(">IIBBBBB", picture.shape[1], picture.shape[0], 8, 2, 0, 0, 0)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows, 1)) +
                     chunk(b"IEND", b""))


def make_page(path, width, height):
    notice = read_png(PICTURE)
    down, across = -(-height // notice.shape[0]), -(-width // notice.shape[1])
    write_png(path, np.tile(notice, (down, across, 1))[:height, :width].astype(np.uint8))


def read_page(options, page, folder):
    """The pictures' milliseconds, and each picture's runs: (milliseconds, model, width, height)."""
    command = [options.ocr, "--models", options.models, "--times", *options.rest] + [str(page)] * (options.times + 1)
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: exit {done.returncode}: {done.stderr.strip()}")
    pictures, runs = [], [[]]
    for line in done.stdout.splitlines():
        found = TIME.match(line)
        if found and found[2] == "picture":
            pictures.append(float(found[1]))
            runs.append([])
        elif found:
            runs[-1].append((float(found[1]), found[2], int(found[3]), int(found[4])))
    device = re.search(r"^ran on (.*)$", done.stdout, re.M)[1]
    return pictures[1:], runs[1:-1], device


def time_onnxruntime(options, runs, threads):
    """Median milliseconds of all runs together, and of each model's."""
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = threads
    settings.log_severity_level = 3
    random, sessions, inputs = np.random.default_rng(1), {}, {}
    for _, name, width, height in runs:
        if name not in sessions:
            sessions[name] = onnxruntime.InferenceSession(os.path.join(options.models, name), settings,
                                                          providers=["CPUExecutionProvider"])
        inputs[width, height] = random.uniform(-1, 1, (1, 3, height, width)).astype(np.float32)
    totals, parts = [], collections.defaultdict(list)
    for repeat in range(options.times + 1):
        spent = collections.Counter()
        for _, name, width, height in runs:
            session = sessions[name]
            feed = {session.get_inputs()[0].name: inputs[width, height]}
            start = time.perf_counter()
            session.run(None, feed)
            spent[name] += (time.perf_counter() - start) * 1e3
        if repeat == 0:
            continue
        totals.append(sum(spent.values()))
        for name, ms in spent.items():
            parts[name].append(ms)
    return statistics.median(totals), {name: statistics.median(values) for name, values in parts.items()}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--models", required=True)
    parser.add_argument("--ocr", default="build/release/examples/ocr/ocr")
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--size", default="1600x1200")
    parser.add_argument("rest", nargs="*", help="options of examples/ocr, behind --")
    options = parser.parse_args()
    options.ocr, options.models = os.path.abspath(options.ocr), os.path.abspath(options.models)
    width, height = map(int, options.size.split("x"))
    with tempfile.TemporaryDirectory() as folder:
        page = pathlib.Path(folder) / "page.png"
        make_page(page, width, height)
        pictures, runs, device = read_page(options, page, folder)
    cores = os.cpu_count() or 1
    total, parts, threads = min(((*time_onnxruntime(options, runs[0], t), t)
                                 for t in sorted({max(1, cores // 4), max(1, cores // 2), cores})), key=lambda found: found[0])
    ours = statistics.median(pictures)
    between = statistics.median(p - sum(run[0] for run in r) for p, r in zip(pictures, runs))
    print("| part | runs | onemodel ms | ONNX Runtime ms | ratio |")
    print("| --- | --- | --- | --- | --- |")
    for name in parts:
        mine = statistics.median(sum(run[0] for run in r if run[1] == name) for r in runs)
        count = sum(run[1] == name for run in runs[0])
        print(f"| {name} | {count} | {mine:.2f} | {parts[name]:.2f} | {mine / parts[name]:.3f} |")
    print(f"| between the runs | | {between:.2f} | {between:.2f} | |")
    print(f"| the page, {width}x{height} | {len(runs[0])} | {ours:.2f} | {between + total:.2f} | "
          f"{ours / (between + total):.3f} |")
    print(f"\n{device}; ONNX Runtime {onnxruntime.__version__}, CPU, {threads} of {cores} threads; "
          f"the median of {options.times} readings.")


if __name__ == "__main__":
    main()
