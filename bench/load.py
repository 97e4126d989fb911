#!/usr/bin/env python3
"""Peak memory and time of loading models, against the size of their files.

    bench/load.py [--onemodel PATH] [MODEL...] [--megabytes N ...]

Makes models of matrix products with N MB of weights (and takes MODELs as they are), then measures
`onemodel info` (the graph alone) and `onemodel placement --device cpu` (a session with its plan)
in processes of their own: peak resident memory less that of the smallest model, over the file's
size. Needs Debian's python3-onnx. Prints a Markdown table for bench/RESULTS.md.
"""
import argparse
import os
import subprocess
import sys
import tempfile
import time


def make_model(path, megabytes):
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    width = 1024
    count = max(1, round(megabytes * 1e6 / (4 * width * width)))
    if megabytes == 0:
        width, count = 4, 1
    generator = np.random.default_rng(1)
    weights = [numpy_helper.from_array(generator.standard_normal((width, width), dtype=np.float32), f"w{i}")
               for i in range(count)]
    nodes = [helper.make_node("MatMul", [f"y{i}" if i else "x", f"w{i}"], [f"y{i + 1}"]) for i in range(count)]
    graph = helper.make_graph(nodes, "products",
                              [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, width])],
                              [helper.make_tensor_value_info(f"y{count}", TensorProto.FLOAT, [1, width])], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)]), path)


def measure(command):
    """Peak resident bytes and seconds of a child."""
    start = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    if status:
        raise SystemExit(f"{' '.join(command)} failed")
    return usage.ru_maxrss * 1024, time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("models", nargs="*")
    parser.add_argument("--onemodel", default="build/release/onemodel")
    parser.add_argument("--megabytes", type=int, nargs="*", default=[100, 1000])
    parser.add_argument("--make", nargs=2, metavar=("PATH", "MB"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.make:
        make_model(options.make[0], int(options.make[1]))
        return

    def make(path, megabytes):   # in a child: what a measured child inherits from here must stay small
        subprocess.run([sys.executable, __file__, "--make", path, str(megabytes)], check=True)

    print("| model | file MB | info: peak / file | info s | session: peak / file | session s |")
    print("| --- | --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        smallest = os.path.join(folder, "smallest.onnx")
        make(smallest, 0)
        commands = {"info": ["info"], "session": ["placement", "--device", "cpu"]}
        base = {key: measure([options.onemodel, *words, smallest])[0] for key, words in commands.items()}
        paths = list(options.models)
        for megabytes in options.megabytes:
            paths.append(os.path.join(folder, f"products_{megabytes}_mb.onnx"))
            make(paths[-1], megabytes)
        for path in paths:
            size = os.path.getsize(path)
            row = [os.path.basename(path), f"{size / 1e6:.1f}"]
            for key, words in commands.items():
                shapes = ["--shape", "x=1x3x48x320"] if path in options.models and key == "session" else []
                peak, seconds = measure([options.onemodel, *words, path, *shapes])
                row += [f"{(peak - base[key]) / size:.3f}", f"{seconds:.3f}"]
            print("| " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    main()
