#!/usr/bin/env python3
"""Runs a build's test programs and counts their cases.

    tools/run_tests.py build/release [--labels unit,ops] [--without models] [--name REGEX]
                       [--jobs N] [--totals FILE] [--verbose] [-- OPTIONS FOR THE ops PROGRAMS]

The programs and their labels are CTest's. A program that speaks TAP counts by its lines, another
as one case. A line for each program; the lines of failed cases; at the end why cases were skipped:
what stands behind "# SKIP", or in a line "# skipped: REASON" before. The programs' whole output is
in BUILD/test-logs. With --totals the numbers are added to those in FILE: "passed failed skipped".
"""
import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import time

TAP = re.compile(r"^(not )?ok\b(?: (\d+))?(?: - )?(.*)$")
SKIP = re.compile(r"# *skip\b *(.*)", re.IGNORECASE)
SKIP_REASON = "# skipped: "
SKIP_CODE = 77


class Result:
    def __init__(self, name):
        self.name = name
        self.passed = self.failed = self.skipped = 0
        self.seconds = 0.0
        self.complaints = []            # lines that tell what failed
        self.reasons = collections.Counter()    # of skipped cases

    def count(self, output, code):
        lines = output.splitlines()
        reason = ""
        for number, line in enumerate(lines):
            if line.startswith(SKIP_REASON):
                reason = line.removeprefix(SKIP_REASON)
            match = TAP.match(line)
            if not match:
                continue
            skip = SKIP.search(match.group(3))
            if match.group(1):
                self.failed += 1
                self.complaints.append(line)
                for more in lines[number + 1:number + 9]:
                    if not more.startswith("#"):
                        break
                    self.complaints.append(more)
            elif skip:
                self.skipped += 1
                self.reasons[reason or skip.group(1)] += 1
            else:
                self.passed += 1
            reason = ""
        self.add_exit(lines, code)

    def add_exit(self, lines, code):
        has_cases = self.passed + self.failed + self.skipped > 0
        if code == 0 or (code == SKIP_CODE and not self.failed):
            if not has_cases:
                self.passed += code == 0
                self.skipped += code == SKIP_CODE
                if code == SKIP_CODE and lines:
                    self.reasons[lines[-1]] += 1
        elif self.failed == 0 or code not in range(1, 128):
            self.failed += 1
            self.complaints += lines[-40:]
            self.complaints.append(f"exit code {code}" if code is not None else "ran out of time")


def find_tests(build):
    text = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"], check=True,
                          capture_output=True, text=True).stdout
    for test in json.loads(text)["tests"]:
        properties = {p["name"]: p["value"] for p in test.get("properties", [])}
        yield {"name": test["name"], "command": test.get("command", []),
               "labels": set(properties.get("LABELS", [])),
               "timeout": float(properties.get("TIMEOUT", 900)),
               "folder": properties.get("WORKING_DIRECTORY", build)}


def run_test(test, extra, logs):
    result = Result(test["name"])
    command = test["command"] + (extra if "ops" in test["labels"] else [])
    environment = dict(os.environ, CMOCKA_MESSAGE_OUTPUT="TAP")
    environment.setdefault("OMP_WAIT_POLICY", "passive")  # programs run side by side
    environment.setdefault("ONEMODEL_GPU_IN_TURN", "0")   # a software device takes a real one's kernels
    log = logs / (test["name"].replace("/", "_") + ".log")
    begin = time.monotonic()
    with open(log, "wb") as file:
        try:
            code = subprocess.run(command, stdout=file, stderr=subprocess.STDOUT, env=environment,
                                  cwd=test["folder"], timeout=test["timeout"], check=False,
                                  stdin=subprocess.DEVNULL).returncode
        except subprocess.TimeoutExpired:
            code = None
        except OSError as error:
            file.write(f"{error}\n".encode())
            code = 127
    result.seconds = time.monotonic() - begin
    result.count(log.read_text(encoding="utf-8", errors="replace"), code)
    return result


def add_totals(path, numbers):
    old = [0, 0, 0]
    if path.exists():
        old = [int(word) for word in path.read_text(encoding="ascii").split()]
    path.write_text(" ".join(str(a + b) for a, b in zip(old, numbers)) + "\n", encoding="ascii")


def read_arguments():
    own, extra = sys.argv[1:], []
    if "--" in own:
        extra = own[own.index("--") + 1:]
        own = own[:own.index("--")]
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--labels", default="")
    parser.add_argument("--without", default="")
    parser.add_argument("--name", default="")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--totals", type=pathlib.Path)
    parser.add_argument("--verbose", action="store_true")
    return parser.parse_args(own), extra


def main():
    args, extra = read_arguments()
    labels, without = set(filter(None, args.labels.split(","))), set(args.without.split(","))
    tests = [t for t in find_tests(str(args.build))
             if (not labels or t["labels"] & labels) and not t["labels"] & without
             and re.search(args.name, t["name"])]
    logs = args.build / "test-logs"
    logs.mkdir(exist_ok=True)
    totals = [0, 0, 0]
    reasons = collections.Counter()
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        futures = [pool.submit(run_test, test, extra, logs) for test in tests]
        for future in concurrent.futures.as_completed(futures):
            r = future.result()
            totals = [a + b for a, b in zip(totals, (r.passed, r.failed, r.skipped))]
            reasons += r.reasons
            print(f"{'FAIL' if r.failed else ' ok '} {r.name:44} {r.passed:5} passed {r.failed:4} failed "
                  f"{r.skipped:4} skipped {r.seconds:7.1f} s", flush=True)
            for line in r.complaints if args.verbose else r.complaints[:60]:
                print("     " + line, flush=True)
    if args.totals:
        add_totals(args.totals, totals)
    for reason, count in reasons.most_common():
        print(f"{count:5} skipped: {reason}", flush=True)
    print(f"{args.build}: {totals[0]} passed, {totals[1]} failed, {totals[2]} skipped", flush=True)
    return 1 if totals[1] else 0


if __name__ == "__main__":
    sys.exit(main())
