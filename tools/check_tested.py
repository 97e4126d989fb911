#!/usr/bin/env python3
"""Each entry of an operator table is named by a test: src/ops and src/gpu against tests/ops.

An operator counts as tested where its type stands in quotes in a file of tests/ops. The lines of
src/ops/elementwise.def are tested by the file that includes it, whole.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TYPE = re.compile(r'\.type\s*=\s*"(\w+)"')
LINE = re.compile(r"^OM_(?:UNARY|BINARY)\(\d+, (\w+),", re.MULTILINE)


def main():
    tests = "\n".join(p.read_text(encoding="utf-8") for p in sorted((ROOT / "tests/ops").glob("*.c")))
    tested = set(re.findall(r'"(\w+)"', tests))
    if "elementwise.def" in tests:
        tested |= set(LINE.findall((ROOT / "src/ops/elementwise.def").read_text(encoding="utf-8")))
    failed = 0
    for path in sorted((ROOT / "src/ops").glob("*.c")) + sorted((ROOT / "src/gpu").glob("gpu_ops_*.c")):
        for name in sorted(set(TYPE.findall(path.read_text(encoding="utf-8")))):
            if name not in tested:
                print(f"{path.relative_to(ROOT)}: {name} is in no file of tests/ops")
                failed += 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
