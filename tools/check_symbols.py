#!/usr/bin/env python3
"""The shared library exports what its headers mark OM_API, and nothing else; what the static library
defines for all begins with om_.

    tools/check_symbols.py build/release/libonemodel.so build/release/libonemodel.a
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
DECLARATION = re.compile(r"^OM_API\b[^;(]*?\b(om_\w+)\s*\(", re.MULTILINE)


def defined_names(library, *options):
    table = subprocess.run(["nm", *options, "--defined-only", library], check=True, text=True,
                           capture_output=True).stdout
    return {line.split()[-1] for line in table.splitlines() if len(line.split()) == 3}


def main():
    if len(sys.argv) != 3:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    declared = set()
    for path in sorted((ROOT / "include").rglob("*.h")):
        declared |= set(DECLARATION.findall(path.read_text(encoding="utf-8")))
    exported = defined_names(sys.argv[1], "-D") - {"_init", "_fini"}
    foreign = {name for name in defined_names(sys.argv[2], "-g") if not name.startswith("om_")}
    for name in sorted(declared - exported):
        print(f"{name} is declared, but not exported")
    for name in sorted(exported - declared):
        print(f"{name} is exported, but no header marks it OM_API")
    for name in sorted(foreign):
        print(f"{name} is defined for all in the static library, but does not begin with om_")
    return 0 if declared == exported and not foreign else 1


if __name__ == "__main__":
    sys.exit(main())
