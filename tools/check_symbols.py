#!/usr/bin/env python3
"""The shared library exports what its headers mark OM_API, and nothing else.

    tools/check_symbols.py build/release/libonemodel.so
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
DECLARATION = re.compile(r"^OM_API\b[^;(]*?\b(om_\w+)\s*\(", re.MULTILINE)


def main():
    if len(sys.argv) != 2:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    declared = set()
    for path in sorted((ROOT / "include").rglob("*.h")):
        declared |= set(DECLARATION.findall(path.read_text(encoding="utf-8")))
    table = subprocess.run(["nm", "-D", "--defined-only", sys.argv[1]], check=True, text=True,
                           capture_output=True).stdout
    exported = {line.split()[-1] for line in table.splitlines()}
    exported -= {"_init", "_fini"}
    for name in sorted(declared - exported):
        print(f"{name} is declared, but not exported")
    for name in sorted(exported - declared):
        print(f"{name} is exported, but no header marks it OM_API")
    return 0 if declared == exported else 1


if __name__ == "__main__":
    sys.exit(main())
