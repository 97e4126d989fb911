#!/usr/bin/env python3
"""No function of vectors wider than 128 bits calls one of SSE instructions with the upper halves in
use: Intel's processors then take hundreds of cycles to set them aside. The compiler clears them in
front of calls, but not where it sees that a function of the same file leaves them as they are; there
the small one is to be inlined.

    tools/check_uppers.py build/release/libonemodel.a

Exit code 77: another processor.
"""
import platform
import re
import subprocess
import sys

FUNCTION = re.compile(r"^[0-9a-f]+ <([^>]+)>:\n((?:.+\n?)*)", re.MULTILINE)
CALL = re.compile(r"\t(?:call|jmp)\s+[0-9a-f]+ <([^>+]+)>")
NEAR = 6  # instructions in front of a call in which the upper halves are cleared


def has_sse(lines):
    instructions = (line.split("\t")[1].strip() for line in lines if "\t" in line)
    return any("%xmm" in i and not i.startswith("v") for i in instructions)


def calls_of(functions):
    """Pairs (caller, callee) with the upper halves in use."""
    for name, lines in functions.items():
        if not any("%ymm" in line or "%zmm" in line for line in lines):
            continue
        for at, line in enumerate(lines):
            call = CALL.search(line)
            if not call or call[1] == name or call[1] not in functions:
                continue
            is_clear = any("vzeroupper" in before for before in lines[max(0, at - NEAR):at])
            if not is_clear and has_sse(functions[call[1]]):
                yield name, call[1]


def main():
    if len(sys.argv) != 2:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    if platform.machine() != "x86_64":
        print("not x86-64; not checked")
        return 77
    text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", sys.argv[1]], check=True, text=True,
                          capture_output=True).stdout
    found = set()
    for part in re.split(r"\n(?=\S+\.o:\s+file format)", text):
        functions = {name: body.splitlines() for name, body in FUNCTION.findall(part)}
        found |= {f"{part.split(':')[0].strip()}: {a} calls {b}" for a, b in calls_of(functions)}
    for line in sorted(found):
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
