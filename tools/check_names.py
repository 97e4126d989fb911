#!/usr/bin/env python3
"""File names are unique in the repository, sources are prefixed like their symbols, and headers
guard themselves with their own name."""
import collections
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PREFIXES = ("om_", "op_", "ops_", "gpu_ops_", "exact_", "onnx", "elementwise")


def main():
    failed = []
    names = collections.defaultdict(list)
    for folder in ("src", "tests", "tools", "include"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".c", ".h", ".comp", ".glsl", ".def"):
                names[path.name].append(path.relative_to(ROOT).as_posix())
    for name, paths in names.items():
        if len(paths) > 1:
            failed.append(f"{name} is there {len(paths)} times: {', '.join(paths)}")
    for path in sorted((ROOT / "src").rglob("*.c")):
        # kernels have their families' names, as shaders do
        if not path.name.startswith(PREFIXES) and path.parent.name != "sm90":
            failed.append(f"{path.relative_to(ROOT)}: the name does not begin with {' or '.join(PREFIXES)}")
    for path in sorted((ROOT / "src").rglob("*.h")):
        text = path.read_text(encoding="utf-8")
        guard = path.stem.upper() + "_H"
        if "shaders" in path.parts or not re.search(r"#ifndef ", text):
            continue                    # texts that are read several times
        if not re.search(rf"#ifndef {guard}\n#define {guard}\n", text):
            failed.append(f"{path.relative_to(ROOT)}: the include guard is not {guard}")
    print("\n".join(failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
