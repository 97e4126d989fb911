#!/usr/bin/env python3
"""Random single operators: a device against the CPU, and the CPU against ONNX Runtime, for as long as wanted.

    compare_operators.py LIBRARY SECONDS [FIRST_SEED [LAST_SEED]] [--only KIND] [--manner MANNER]

LIBRARY is build/release/libonemodel.so; the device is the first there is. A seed makes a dozen nodes that do not
depend on each other (operators.py), some with elementwise operators behind them, and runs them as one model: in exact
mode on CPU and device, whose bits must be equal; in fast mode on both, within 1e-5 (scaled error; float16 2e-3) of exact;
and each alone by ONNX Runtime. The last two ask for tame values: of values that overflow or cancel, the order of
operations decides. What differs is printed with its seed, and the exit code is 1; 77: no python3-onnx or onnxruntime.
At the end there is a line for each operator: how often it ran, and how often on the device.
"""
import argparse
import collections
import sys
import time

try:
    import numpy as np
    import onnxruntime
    from onnx import helper, numpy_helper

    import operators
    from onemodel import DEVICE, NUMBERS, Device, Library, Session
except ImportError as error:
    print(error)
    sys.exit(77)

NODES = 12
OPSETS = (10, 11, 13, 17, 18, 20, 22, 22, 24)
NEWEST_OF_OTHERS = 22 # what ONNX Runtime 1.21 knows
LEAST_NORMAL = 2.0**-126


class Batch:
    """Cases as one model."""

    def __init__(self, cases, opset):
        self.cases, self.opset = cases, opset
        self.nodes, self.weights, self.feed, self.names = [], [], {}, []
        self.ends = []
        for index, case in enumerate(cases):
            self.add(index, case)

    def add(self, index, case):
        names = []
        for place, array in enumerate(case.inputs):
            names.append("" if array is None else self.operand(f"{index}.x{place}", array, case.is_constant[place]))
        results = [f"{index}.y{i}" for i in range(case.outputs)]
        self.nodes.append(helper.make_node(case.kind, names, list(results), f"{index}", domain=case.domain, **case.attributes))
        for turn, (kind, array) in enumerate(case.chain):
            more = [] if array is None else [self.operand(f"{index}.c{turn}", array, True)]
            self.nodes.append(helper.make_node(kind, [results[0]] + more, [f"{index}.z{turn}"], f"{index}.{turn}"))
            results[0] = f"{index}.z{turn}"
        self.ends.append((len(self.names), len(results)))
        self.names += results

    def operand(self, name, array, is_constant):
        if is_constant:
            self.weights.append(numpy_helper.from_array(np.asarray(array, order="C"), name))
        else:
            self.feed[name] = np.array(array, order="C")
        return name

    def bytes(self):
        inputs = [helper.make_tensor_value_info(n, NUMBERS[a.dtype], a.shape) for n, a in self.feed.items()]
        outputs = [helper.make_empty_tensor_value_info(n) for n in self.names]
        graph = helper.make_graph(self.nodes, "operators", inputs, outputs, self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=8)
        return model.SerializeToString()


# ---- Comparing ----


def flat(array):
    """Bits, with all NaNs alike and subnormals as zeros."""
    array = np.ascontiguousarray(array)
    if array.dtype.kind != "f":
        return array
    array = np.where(np.isnan(array), np.array(np.nan, array.dtype), array)
    if array.dtype == np.float32:
        array = np.where(np.abs(array) < LEAST_NORMAL, np.copysign(np.float32(0), array), array)
    return array.view({2: np.uint16, 4: np.uint32, 8: np.uint64}[array.dtype.itemsize])


def different_bits(a, b):
    if a.shape != b.shape or a.dtype != b.dtype:
        return f"{a.dtype}{a.shape}, not {b.dtype}{b.shape}"
    wrong = np.flatnonzero(flat(a).ravel() != flat(b).ravel())
    if not wrong.size:
        return None
    at = wrong[0]
    return f"{wrong.size} of {a.size} differ, at {at}: {a.ravel()[at]!r}, not {b.ravel()[at]!r}"


def distance(a, b, case):
    """None where a is near enough to b."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return f"{a.dtype}{a.shape}, not {b.dtype}{b.shape}"
    if a.dtype.kind != "f":
        return None if case.chain or np.array_equal(a, b) else f"integers: {different_bits(a, b)}"
    x, y = a.astype(np.float64), b.astype(np.float64)
    limit = 2e-3 if any(i is not None and i.dtype == np.float16 for i in case.inputs) else 1e-5
    finite = np.isfinite(x) & np.isfinite(y)
    with np.errstate(invalid="ignore"):
        same = np.isnan(x) & np.isnan(y) | (x == y)
    wrong = np.flatnonzero(~(finite | same).ravel())
    if wrong.size:
        return f"at {wrong[0]}: {x.ravel()[wrong[0]]}, not {y.ravel()[wrong[0]]}"
    error = np.abs(x[finite] - y[finite]).max(initial=0) / (np.abs(y[finite]).max(initial=0) or 1)
    return f"the scaled error is {error:.3g}" if error > limit else None


def is_tame(case):
    """Whether every order of operations gives nearly the same."""
    return case.manner in ("tame", "ties", "zeros", "mixed")


def is_agreed(case):
    """Whether ONNX Runtime means the same. It has other answers for NaN, its Erf among them, and for a mean's
    padding."""
    if case.kind == "AveragePool" and case.attributes["count_include_pad"]: # from opset 19 on it counts others
        return False
    if case.kind in ("Pow", "Log", "Sqrt", "ReduceLogSum") and case.chain:
        return False
    return case.manner in ("tame", "ties", "zeros") or all(a is None or a.dtype.kind != "f" for a in case.inputs)


def by_onnxruntime(case, opset):
    """The results, or None where ONNX Runtime does not run it."""
    batch = Batch([case], opset)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        session = onnxruntime.InferenceSession(batch.bytes(), options, providers=["CPUExecutionProvider"])
        return session.run(batch.names, batch.feed)
    except Exception: # it has a class for each reason, and none in common
        return None


class Campaign:
    def __init__(self, library, only, manner):
        self.library, self.only, self.manner = library, only, manner
        self.ran, self.on_device, self.reasons = collections.Counter(), collections.Counter(), {}
        self.others, self.cases = collections.Counter(), 0
        with Session(library, Batch([operators.Case("Relu", [np.zeros(3, np.float32)])], 13).bytes(), Library.EXACT, 1,
                     Device()) as session:
            info = session.device()
            self.has_subnormals = not info.keeps_subnormals
            print(f"{info.name.decode()}: {'flushes' if self.has_subnormals else 'keeps'} subnormals", flush=True)

    def draw(self, seed):
        random = np.random.default_rng(seed)
        opset = OPSETS[random.integers(len(OPSETS))]
        cases = []
        while len(cases) < NODES:
            case, d = operators.make(random, opset, self.has_subnormals, self.manner)
            if self.only and case.kind not in self.only:
                continue
            if d.chance(3):
                result = self.on_cpu([case], opset)[0]
                if isinstance(result, list) and result[0].dtype in (np.float32, np.float16):
                    case.chain = operators.chain_of(d, result[0].shape, result[0].dtype)
            cases.append(case)
        options = {0: dict(no_fusion=True), 1: dict(max_binding_bytes=65536), 2: dict(no_fused_attention=True)}
        return cases, opset, options.get(int(random.integers(8)), {})

    def on_cpu(self, cases, opset):
        """For each case its results, or the error in words."""
        return self.run(cases, opset, Library.EXACT, None, 1)

    def run(self, cases, opset, mode, device, threads):
        batch = Batch(cases, opset)
        try:
            results = self.library.run(batch.bytes(), batch.feed, batch.names, mode, threads, device)
        except RuntimeError as error:
            if len(cases) == 1:
                return [str(error)]
            return [self.run([case], opset, mode, device, threads)[0] for case in cases]
        return [results[a:a + n] for a, n in batch.ends]

    def count(self, cases, opset, device):
        batch = Batch(cases, opset)
        try:
            with Session(self.library, batch.bytes(), Library.EXACT, 1, device) as session:
                nodes = session.nodes(batch.feed)
        except RuntimeError:
            return
        for kind, place, reason in nodes:
            self.ran[kind] += place != 2
            self.on_device[kind] += place == DEVICE
            if place == 0:
                self.reasons.setdefault(kind, collections.Counter())[reason] += 1

    def try_seed(self, seed):
        cases, opset, options = self.draw(seed)
        exact = self.on_cpu(cases, opset)
        runs = {"exact device": self.run(cases, opset, Library.EXACT, Device(**options), 1),
                "fast device": self.run(cases, opset, Library.FAST, Device(**options), 1),
                "exact CPU, 3 threads": self.run(cases, opset, Library.EXACT, None, 3),
                "fast CPU": self.run(cases, opset, Library.FAST, None, 2)}
        self.count(cases, opset, Device(**options))
        self.cases += len(cases)
        found = []
        for index, case in enumerate(cases):
            problems = self.problems(case, opset, exact[index], {k: r[index] for k, r in runs.items()})
            found += [f"seed {seed} node {index} opset {opset} {options or ''}: {case}: {p}" for p in problems]
        return found

    def problems(self, case, opset, right, runs):
        other = by_onnxruntime(case, opset) if opset <= NEWEST_OF_OTHERS and is_agreed(case) else None
        if isinstance(right, str):
            wrong = [f"exact CPU: {right}"] if other is not None else []
            return wrong + [f"{what}: runs, or fails otherwise" for what, r in runs.items() if r != right]
        found = []
        for what, results in runs.items():
            if isinstance(results, str):
                found.append(f"{what}: {results}")
                continue
            for i, (a, b) in enumerate(zip(results, right)):
                near = None
                if what.startswith("exact"): near = different_bits(a, b)
                elif is_tame(case) or not case.is_sum and not case.chain: near = distance(a, b, case)
                if near: found.append(f"{what}, result {i}: {near}")
        if other is not None:
            self.others[case.kind] += 1
            for i, (a, b) in enumerate(zip(right, other)):
                near = distance(a, np.asarray(b), case)
                if near: found.append(f"exact CPU against ONNX Runtime, result {i}: {near}")
        return found

    def table(self):
        for kind in sorted(self.ran):
            reasons = "; ".join(f"{n} {r}" for r, n in self.reasons.get(kind, collections.Counter()).most_common(4))
            print(f"{kind:24} {self.ran[kind]:6} {self.on_device[kind]:6} on the device, {self.others[kind]:6} by ONNX "
                  f"Runtime  {reasons}")


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("library")
    parser.add_argument("seconds", type=float)
    parser.add_argument("first", type=int, nargs="?", default=1)
    parser.add_argument("last", type=int, nargs="?", default=sys.maxsize)
    parser.add_argument("--only", action="append")
    parser.add_argument("--manner")
    args = parser.parse_args()
    onnxruntime.set_default_logger_severity(4)
    campaign, end = Campaign(Library(args.library), args.only, args.manner), time.monotonic() + args.seconds
    seed, failed = args.first, 0
    while seed <= args.last and time.monotonic() < end:
        found = campaign.try_seed(seed)
        failed += len(found)
        for line in found:
            print(line, flush=True)
        seed += 1
    campaign.table()
    print(f"{campaign.cases} operators compared, {failed} findings; the next seed is {seed}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
