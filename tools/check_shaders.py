#!/usr/bin/env python3
"""Each kernel that the head of a shader, or of a text for PTX, declares is named in src/gpu, and each
head says what its kernels compute."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
KERNEL = re.compile(r"^//! kernel (\w+)", re.MULTILINE)


def main():
    sources = "\n".join(p.read_text(encoding="utf-8") for p in sorted((ROOT / "src/gpu").glob("*.[ch]")))
    used = set(re.findall(r"\bOM_SHADER_(\w+)", sources))
    # These two stand for all forms of a kernel.
    for name in re.findall(r"\bOM_GPU_(?:FORMS\(|KERNEL\(\w+,\s*)(\w+)", sources):
        used |= {name, f"{name}_HALF"}
    for name in re.findall(r"\bOM_GPU_ROW_FORMS\((\w+)", sources):
        used |= {name, f"{name}_HALF", f"{name}_ALONE", f"{name}_ALONE_HALF"}
    failed = 0
    texts = sorted((ROOT / "src/gpu/shaders").glob("*.comp")) + sorted((ROOT / "src/gpu/sm90").glob("*.c"))
    for path in texts:
        text = path.read_text(encoding="utf-8")
        names = KERNEL.findall(text)
        if not text.startswith(("//", "/*")) or text.startswith("//!"):
            print(f"{path.relative_to(ROOT)}: the head does not say what the kernels compute")
            failed += 1
        if not names:
            print(f"{path.relative_to(ROOT)}: declares no kernel")
            failed += 1
        for name in names:
            key = name.upper()
            # A binder that picks the fast kernel takes the exact one on the next line in exact mode.
            if key.removesuffix("_EXACT") not in used and key not in used:
                print(f"{path.relative_to(ROOT)}: nothing in src/gpu names OM_SHADER_{key}")
                failed += 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
