#!/usr/bin/env python3
"""Copies the small models of ONNX's node tests (Debian: libonnx-testdata) into a folder, as seeds.

    seeds.py OUT_FOLDER [MOST_BYTES]
"""
import pathlib
import shutil
import sys

DATA = pathlib.Path("/usr/share/libonnx-testdata/data")


def main():
    folder, most = pathlib.Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 2048
    folder.mkdir(parents=True, exist_ok=True)
    count = 0
    for group in ("node", "simple", "pytorch-operator"):
        for model in sorted((DATA / group).glob("*/model.onnx")):
            if model.stat().st_size <= most:
                shutil.copy(model, folder / f"{model.parent.name}.onnx")
                count += 1
    print(f"{count} models")
    return 0 if count else 77


if __name__ == "__main__":
    sys.exit(main())
