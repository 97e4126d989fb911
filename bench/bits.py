#!/usr/bin/env python3
"""Compares image models on this machine's GPU with the CPU, bit for bit, and with float64.

    bench/bits.py [--onemodel PATH] [--models NAME...] [--jobs N] [--keep FOLDER] [--no-float64]

For each model, type and size: whether exact mode on the device has the bits of exact mode on the CPU, in all
elements of all outputs and with every operator on the device; and the scaled error of fast mode and of exact
mode on the device against the same graph in float64. The classifiers, the transformer, the segmenter and the
detector are tests/models/write_vision.py's, of the published widths and sizes, with seeded random weights; text
recognition, lines, faces and background are published models (scripts/models), of float16 with their weights
rounded. A model that cannot be fetched is named and left out. N jobs run beside each other. Prints a Markdown
table for bench/RESULTS.md; the exit code is 1 if any bit differs or an operator leaves the device that should
not. Needs python3-onnx and ONNX Runtime, which write_vision.py imports.
"""
import argparse
import concurrent.futures
import functools
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/models"))
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
import write_background
import write_vision
from write_references import PICTURE, read_png, resize

FETCHED = {  # the package of scripts/models, the file
    "detector": ("ocr", "ch_PP-OCRv4_det_infer.onnx"),
    "recogniser": ("ocr", "ch_PP-OCRv4_rec_infer.onnx"),
    "angle classifier": ("ocr", "ch_ppocr_mobile_v2.0_cls_infer.onnx"),
    "faces, near": ("faces", "face_detection_front_128x128_barracuda.onnx"),
    "faces, far": ("faces", "face_detection_back_256x256_barracuda.onnx"),
    "lines": ("lines", "mlsd_320x320_tiny.onnx"),
    "lines, large": ("lines", "mlsd_512x512_large.onnx"),
    "background": ("background", "medium.onnx"),
}
MADE = {"ResNet-50": write_vision.resnet50, "MobileNetV2": write_vision.mobilenet_v2,
        "MobileNetV3-large": write_vision.mobilenet_v3, "ViT": lambda half: write_vision.vit(half, 224),
        "LRASPP": write_vision.lraspp, "SSDLite": lambda half: write_vision.ssdlite(half, 320)}
SIZES = {  # batch, height, width
    "ResNet-50": ((1, 224, 224), (8, 224, 224)),
    "MobileNetV2": ((1, 224, 224), (8, 224, 224)),
    "MobileNetV3-large": ((1, 224, 224), (8, 224, 224)),
    "ViT": ((1, 224, 224), (8, 224, 224)),
    "LRASPP": ((1, 320, 320), (1, 225, 401), (8, 160, 224)),
    "SSDLite": ((1, 320, 320), (8, 320, 320)),
    "detector": ((1, 640, 640), (1, 736, 992), (1, 320, 1280), (1, 96, 96), (8, 160, 224)),
    "recogniser": ((1, 48, 320), (1, 48, 32), (1, 48, 101), (1, 48, 500), (1, 48, 813), (8, 48, 320)),
    "angle classifier": ((1, 48, 192), (8, 48, 192)),
    "faces, near": ((1, 128, 128), (8, 128, 128)),
    "faces, far": ((1, 256, 256), (8, 256, 256)),
    "lines": ((1, 320, 320), (8, 320, 320)),
    "lines, large": ((1, 512, 512), (8, 512, 512)),
    "background": ((1, 1024, 1024), (1, 128, 128), (8, 128, 128)),
}
RANGES = {"lines": (0, 255), "lines, large": (0, 255), "background": (-0.5, 0.5)}  # else -1 to 1
LAST = ("faces, near", "faces, far", "lines", "lines, large")  # their channels stay last
TOO_LARGE = {("background", 1, 1024), ("lines, large", 8, 512)}  # for float64, which takes minutes there
SEPARATE = {"SSDLite": 2}  # regions; its NonMaxSuppression stays on the CPU


# ---- Models ----


def constants(graph):
    """Tensors of the initializers and Constant nodes, by name."""
    found = {tensor.name: tensor for tensor in graph.initializer}
    for node in graph.node:
        if node.op_type == "Constant" and node.attribute[0].name == "value":
            found[node.output[0]] = node.attribute[0].t
    return found


def normalise_plainly(graph):
    """BatchNormalizations get a mean of 0 and a variance of 1: there are variances beyond float16's range."""
    known = constants(graph)
    for node in graph.node:
        if node.op_type != "BatchNormalization":
            continue
        tensors = [known[name] for name in node.input[1:]]
        scale, bias, mean, variance = (numpy_helper.to_array(tensor).astype(np.float64) for tensor in tensors)
        for attribute in node.attribute:
            if attribute.name == "epsilon":
                variance = variance + attribute.f
                attribute.f = 0
        scale = scale / np.sqrt(variance)
        plain = scale, bias - mean * scale, np.zeros_like(mean), np.ones_like(mean)
        for tensor, values in zip(tensors, plain):
            tensor.CopyFrom(numpy_helper.from_array(values.astype(np.float32), tensor.name))


def of_half(model):
    """Every float32 tensor becomes float16, but for the scales of a Resize, which ONNX wants as they are."""
    graph = model.graph
    normalise_plainly(graph)
    kept = {name for node in graph.node if node.op_type == "Resize" for name in node.input[2:3]}
    for name, tensor in constants(graph).items():
        if tensor.data_type == TensorProto.FLOAT and name not in kept:
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float16), tensor.name))
    for node in graph.node:
        if node.op_type == "ConstantOfShape" and not node.attribute:
            node.attribute.append(helper.make_attribute("value", numpy_helper.from_array(np.zeros(1, np.float16))))
        for attribute in node.attribute:
            if node.op_type == "Cast" and attribute.i == TensorProto.FLOAT:
                attribute.i = TensorProto.FLOAT16
            elif node.op_type == "ConstantOfShape" and attribute.t.data_type == TensorProto.FLOAT:
                attribute.t.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(attribute.t).astype(np.float16)))
    for value in list(graph.input) + list(graph.output):
        if value.type.tensor_type.elem_type == TensorProto.FLOAT:
            value.type.tensor_type.elem_type = TensorProto.FLOAT16
    del graph.value_info[:]


def of_batch(model, batch):
    """For a model made for one picture: also where its shapes are constants."""
    graph, known = model.graph, constants(model.graph)
    for value in list(graph.input) + list(graph.output):
        value.type.tensor_type.shape.dim[0].dim_value = batch
    for node in graph.node:
        at = {"Reshape": 1, "ConstantOfShape": 0}.get(node.op_type)
        tensor = known.get(node.input[at]) if at is not None else None
        if tensor is None:
            continue
        shape = numpy_helper.to_array(tensor).copy()
        shape[0] = batch
        tensor.CopyFrom(numpy_helper.from_array(shape, tensor.name))
    del graph.value_info[:]


def fetch(name, folders):
    package, file = FETCHED[name]
    if package not in folders:
        done = subprocess.run([ROOT / "scripts/models", package], capture_output=True, text=True)
        folders[package] = pathlib.Path(done.stdout.strip()) if done.returncode == 0 else None
    return folders[package] and folders[package] / file


def write_model(name, half, size, source, path):
    batch, height, _ = size
    if name in MADE:
        graph, results = MADE[name](half)
        graph.write(path.parent, path.stem, *results)
        if half:
            path.with_name(path.stem + "_half.onnx").rename(path)
        return
    model = onnx.load(str(source))
    if name == "background" and height == write_background.SIDE:
        write_background.shrink(model.graph)
    if batch > 1 and (name in LAST or name == "background"):
        of_batch(model, batch)
    if half and name != "background":  # whose weights are float16 as it is
        of_half(model)
    onnx.save(model, str(path))


@functools.cache
def read_picture():
    return read_png(PICTURE)


def make_input(name, half, size):
    """The example's picture, scaled and, of each further picture, turned round by some rows."""
    batch, height, width = size
    low, high = RANGES.get(name, (-1, 1))
    picture = low + (high - low) / 255 * resize(read_picture(), height, width)
    if name in ("lines", "lines, large"):
        picture = np.concatenate([picture, np.full((height, width, 1), 255.0)], axis=2)
    x = np.stack([np.roll(picture, 7 * i, axis=0) for i in range(batch)])
    if name not in LAST:
        x = x.transpose(0, 3, 1, 2)
    return np.ascontiguousarray(x, np.float16 if half and name != "background" else np.float32)


# ---- Runs ----


def run_json(command):
    """What the command prints, or its last line if that is no JSON; compare ends with 1 above its tolerance."""
    done = subprocess.run(command, capture_output=True, text=True)
    try:
        return json.loads(done.stdout)
    except ValueError:
        return (done.stderr.strip().splitlines() or [f"exit {done.returncode}"])[-1]


def worst(rows, outputs, executor):
    return max(e["so_far"] for row in rows if row["value"] in outputs for e in row["errors"] if e["executor"] == executor)


def compare(options, folder, name, half, size, source):
    """The table's row, and whether all is as it should be."""
    stem = f"{name}_{'half' if half else 'float'}_{'x'.join(map(str, size))}".replace(", ", "_").replace(" ", "_")
    model, feed = folder / f"{stem}.onnx", folder / f"{stem}.npy"
    write_model(name, half, size, source, model)
    np.save(feed, make_input(name, half, size))
    graph = onnx.load(str(model)).graph
    floats = {v.name for v in graph.output if v.type.tensor_type.elem_type != TensorProto.INT64}
    common = [model, "--input", f"{graph.input[0].name}={feed}", "--device", "gpu", "--threads", str(options.threads)]
    whole = [] if name in SEPARATE else ["--require-gpu"]
    kind = "float16" if half else "float32"
    row = f"| {name} | {'x'.join(map(str, size))} | {kind} | "
    places = run_json([options.onemodel, "placement", *common, "--mode", "exact", "--json"])
    bits = run_json([options.onemodel, "compare", *common, "--mode", "exact", "--json", *whole])
    for found in (places, bits):
        if isinstance(found, str):
            return f"{row}{found} | | | | |", False
    nodes = [node for node in places["nodes"] if node["place"] != "folded"]
    regions = len({node["region"] for node in nodes if node["place"] == "device"})
    on_cpu = {node["type"] for node in nodes if node["place"] == "cpu"}
    elements, differ = (sum(value[key] for value in bits) for key in ("elements", "different_bits"))
    is_right = differ == 0 and regions <= SEPARATE.get(name, 1) and on_cpu <= {"NonMaxSuppression"}
    errors = "| |"
    if not options.no_float64 and (name, *size[:2]) not in TOO_LARGE:
        rows = run_json([options.onemodel, "compare", *common, "--attribute", "--json"])
        errors = f"{rows} | |" if isinstance(rows, str) else (
            f"{worst(rows, floats, 'device fast'):.1e} | {worst(rows, floats, 'device exact'):.1e} |")
    where = f"{regions}" + (f", and {', '.join(sorted(on_cpu))} on the CPU" if on_cpu else "")
    if not options.keep:
        model.unlink()
    return f"{row}{where} | {differ} of {elements} | {errors}", is_right


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--onemodel", default="onemodel")
    parser.add_argument("--models", nargs="*", default=list(SIZES), choices=list(SIZES))
    parser.add_argument("--jobs", type=int, default=max(1, (os.cpu_count() or 1) // 2))
    parser.add_argument("--keep", help="a folder for the models; else they are deleted")
    parser.add_argument("--no-float64", action="store_true", help="compares bits alone")
    options = parser.parse_args()
    options.threads = max(1, (os.cpu_count() or 1) // options.jobs)
    all_right, folders, cases = True, {}, []
    for name in options.models:
        source = fetch(name, folders) if name in FETCHED else None
        if name in FETCHED and not source:
            print(f"{name}: scripts/models {FETCHED[name][0]} cannot fetch it", file=sys.stderr)
            continue
        kinds = (True,) if name == "background" else (False, True)
        cases += [(name, half, size, source) for half in kinds for size in SIZES[name]]
    read_picture()  # before the jobs share it
    print("| model | size | type | regions | elements whose bits differ | fast: error from float64 | exact: the same |")
    print("| --- " * 7 + "|")
    with tempfile.TemporaryDirectory() as temporary, \
            concurrent.futures.ThreadPoolExecutor(options.jobs) as jobs:
        folder = pathlib.Path(options.keep or temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for row, is_right in jobs.map(lambda case: compare(options, folder, *case), cases):
            print(row, flush=True)
            all_right = all_right and is_right
    device = run_json([options.onemodel, "devices", "--json"])
    print(f"\nDevice: {device}.")
    return 0 if all_right else 1


if __name__ == "__main__":
    sys.exit(main())
