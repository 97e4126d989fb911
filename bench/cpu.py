#!/usr/bin/env python3
"""Times models on the CPU, beside ONNX Runtime in the same run, and their memory and load time.

    bench/cpu.py [--onemodel PATH] [--threads N...] [--rounds N] [--runs N] [--modes fast exact] [--processor-time]
                 MODEL:INPUT=SHAPE... ...

A MODEL is a path; behind it, separated by colons, the shapes of inputs that are not fixed, as
x=1x3x48x320. Each round starts a process for either side in turn, which loads the model, warms up and
runs it N times: other work on the machine meets both sides alike, and the least of all runs counts. The
spread is that of the rounds' ratios. Peak memory is a process's most resident memory, less that of the
same process with the smallest model. Load is from the file to a session whose first run is done, which is
where either side packs its weights, less the time of a run. --processor-time takes the processor's time (user
and system) in place of wall time, for machines where other work runs: ours of processes with one run and with
N+1, less that of one with the smallest model. Needs Debian's python3-onnxruntime. Prints a Markdown table for
bench/RESULTS.md.
"""
import argparse
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time


def shapes_of(texts):
    return {name: [int(n) for n in shape.split("x")] for name, shape in (text.rsplit("=", 1) for text in texts)}


def worker(path, threads, runs, is_processor_time, texts):
    """ONNX Runtime, in this process."""
    clock = time.process_time if is_processor_time else time.perf_counter
    import numpy as np
    import onnxruntime as ort

    given = shapes_of(texts)
    random = np.random.default_rng(1)
    start = clock()
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    load = clock() - start
    feed = {}
    for x in session.get_inputs():
        shape = given.get(x.name, x.shape)
        if x.type == "tensor(float)":
            feed[x.name] = random.uniform(-1, 1, shape).astype(np.float32)
        else:
            feed[x.name] = np.ones(shape, {"tensor(int64)": np.int64, "tensor(int32)": np.int32}[x.type])
    times = []
    for _ in range(1 + runs):
        begin = clock()
        session.run(None, feed)
        times.append((clock() - begin) * 1e3)
    run = min(times[1:])
    print(json.dumps({"run": run, "load": load * 1e3 + times[0] - run,
                      "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6}))


def run_json(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: exit {done.returncode}: {done.stderr.strip()}")
    return json.loads(done.stdout.splitlines()[-1])


def bench(options, path, mode, threads, texts, runs):
    """What the command prints, and the processor's time of its process in ms."""
    command = [options.onemodel, "bench", path, "--device", "cpu", "--mode", mode, "--threads", str(threads),
               "--runs", str(runs), "--warmup", "0", "--json"]
    for text in texts:
        command += ["--shape", text]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    printed = run_json(command)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return printed, (after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime) * 1e3


def run_ours(options, path, mode, threads, texts, idle=0):
    """idle: the processor's time of a process with the smallest model."""
    r, whole = bench(options, path, mode, threads, texts, 1 + options.runs)
    if options.processor_time:
        _, first = bench(options, path, mode, threads, texts, 1)
        run = (whole - first) / options.runs
        return {"run": run, "load": first - run - idle, "peak": r["peak_rss_mb"]}
    run = r["wall_ms"]["min"]
    return {"run": run, "load": r["create_ms"] + r["first_run_ms"] - run, "peak": r["peak_rss_mb"]}


def run_theirs(options, path, threads, texts):
    return run_json([sys.executable, __file__, "--worker", path, str(threads), str(options.runs),
                     str(int(options.processor_time)), *texts])


def smallest_model(folder):
    """Relu of one element, in the wire format: no writer is needed."""
    def field(number, data):
        return bytes([number << 3 | 2, len(data)]) + data

    def value(name):
        shape = field(1, b"\x08\x01")
        return field(1, name) + field(2, field(1, b"\x08\x01" + field(2, shape)))
    graph = field(1, field(1, b"x") + field(2, b"y") + field(4, b"Relu")) + field(2, b"g")
    graph += field(11, value(b"x")) + field(12, value(b"y"))
    path = os.path.join(folder, "smallest.onnx")
    with open(path, "wb") as file:
        file.write(b"\x08\x08" + field(7, graph) + field(8, b"\x10\x0d"))
    return path


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("models", nargs="*")
    parser.add_argument("--onemodel", default="build/release/onemodel")
    parser.add_argument("--threads", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--modes", nargs="*", choices=["fast", "exact"], default=["fast", "exact"])
    parser.add_argument("--processor-time", action="store_true")
    parser.add_argument("--worker", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        path, threads, runs, is_processor_time, *texts = options.worker
        worker(path, int(threads), int(runs), is_processor_time == "1", texts)
        return
    if not options.models:
        parser.error("name models")
    print("| model | threads | mode | ms | ONNX Runtime ms | ratio | spread | load ms | theirs | ratio | peak MB | theirs | "
          "ratio |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        smallest = smallest_model(folder)
        base = run_ours(options, smallest, "fast", 1, [])["peak"], run_theirs(options, smallest, 1, [])["peak"]
        idle = min(bench(options, smallest, "fast", 1, [], 1)[1] for _ in range(3))
    for model in options.models:
        path, *texts = re.split(r":(?=[^/]*=)", model)
        for threads in options.threads:
            ours, theirs = {mode: [] for mode in options.modes}, []
            for _ in range(options.rounds):
                theirs.append(run_theirs(options, path, threads, texts))
                for mode in options.modes:
                    ours[mode].append(run_ours(options, path, mode, threads, texts, idle))
            for mode in options.modes:
                a = {key: min(r[key] for r in ours[mode]) for key in ("run", "load", "peak")}
                b = {key: min(r[key] for r in theirs) for key in ("run", "load", "peak")}
                ratios = [x["run"] / y["run"] for x, y in zip(ours[mode], theirs)]
                peaks = a["peak"] - base[0], b["peak"] - base[1]
                print(f"| {os.path.basename(path)} | {threads} | {mode} | {a['run']:.2f} | {b['run']:.2f} | "
                      f"{a['run'] / b['run']:.2f} | {min(ratios):.2f}..{max(ratios):.2f} | "
                      f"{a['load']:.1f} | {b['load']:.1f} | {a['load'] / b['load']:.2f} | "
                      f"{peaks[0]:.1f} | {peaks[1]:.1f} | {peaks[0] / peaks[1]:.2f} |", flush=True)


if __name__ == "__main__":
    main()
