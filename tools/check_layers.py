#!/usr/bin/env python3
"""Folders are layers: what a file of src/ may include. docs/design.md has the picture.

Headers of the library are included by their path from src/ or include/; generated ones stand in
GENERATED with the layer that owns them.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PUBLIC = {"onemodel/onemodel.h"}
TABLES = {"ops/elementwise.def", "gpu/om_gpu_selftest.def"}  # data that every layer may read
# layer: the layers it may include beside itself. What is not listed may not.
LAYERS = {
    "base": set(),
    "graph": {"base"},
    "onnx": {"base", "graph"},
    "cpu": {"base"},
    "ops": {"base", "graph", "cpu"},
    "rewrite": {"base", "graph", "ops", "cpu"},
    "session": {"base", "graph", "onnx", "ops", "rewrite", "cpu"},
    "gpu/hal": {"base"},
    "gpu/hal/null": {"base", "gpu/hal"},
    "gpu/hal/vulkan": {"base", "gpu/hal"},
    "gpu/hal/webgpu": {"base", "gpu/hal"},
    "gpu/shaders": {"cpu", "ops"},      # the texts that both sides read
    "gpu/sm90": {"cpu", "ops", "gpu/shaders"},
    "gpu": {"base", "graph", "ops", "cpu", "gpu/hal", "gpu/shaders"},
}
GENERATED = {"om_shaders.h": "gpu", "onnx.pb.h": "onnx",
             "om_op_families.def": "ops", "om_gpu_op_families.def": "gpu"}
GPU_HEADERS = {"onemodel/gpu.h", "onemodel/provider.h"}
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


def layer_of(path):
    """The longest layer that is a prefix of the path's folder."""
    folder = path.parent.as_posix()
    found = [name for name in LAYERS if folder == name or folder.startswith(name + "/")]
    return max(found, key=len) if found else None


def target_layer(name):
    if name in GENERATED:
        return GENERATED[name]
    for base in ("src", "src/gpu/shaders"):
        if (ROOT / base / name).exists():
            return layer_of((ROOT / base / name).relative_to(ROOT / "src"))
    return None


def errors_of(path):
    own = layer_of(path.relative_to(ROOT / "src"))
    if own is None:
        yield "is in no layer"
        return
    for name in INCLUDE.findall(path.read_text(encoding="utf-8")):
        if name in PUBLIC or name in TABLES:
            continue
        if name in GPU_HEADERS:
            if name.endswith("gpu.h") and not own.startswith("gpu"):
                yield f'the core must not name the GPU package: "{name}"'
            continue
        layer = target_layer(name)
        if layer is None:
            yield f'"{name}" is neither the library\'s nor generated'
        elif layer != own and layer not in LAYERS[own]:
            yield f'layer {own} must not include "{name}" of layer {layer}'


def main():
    failed = 0
    files = [p for p in sorted((ROOT / "src").rglob("*")) if p.suffix in (".c", ".h", ".def")]
    for path in files:
        for text in errors_of(path):
            print(f"{path.relative_to(ROOT)}: {text}")
            failed += 1
    for path in sorted((ROOT / "examples").rglob("*.[ch]")):
        for name in INCLUDE.findall(path.read_text(encoding="utf-8")):
            is_own = (path.parent / name).exists() or (ROOT / "examples" / name).exists()
            if not is_own and not name.startswith("onemodel/"):
                print(f'{path.relative_to(ROOT)}: examples see the public headers alone: "{name}"')
                failed += 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
