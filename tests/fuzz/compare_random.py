#!/usr/bin/env python3
"""Random small models, exact and fast mode against ONNX Runtime, for as long as wanted.

    compare_random.py LIBRARY SECONDS [FIRST_SEED [LAST_SEED]]

LIBRARY is build/release/libonemodel.so. A model is made of up to ten nodes on values of known shapes, so that it is
valid; ONNX Runtime runs it without rewrites. Shapes, types and integers must be equal, floats within 1e-5 (scaled
error; 1e-4 behind long chains); where they are not, the same model in float64 (by onnx's reference evaluator) says
whose error it is, and how far the result moves where each element does by half a step of float32: a mean of values
that cancel is small, the sine of a large one uncertain, and float32 has no more of it. Exact mode must have the same
bits on 1 and 3 threads. What decides by a threshold (Floor, ArgMax, Cast to integers ...) reads inputs alone, or
rounding would decide. A model that differs is kept as random_SEED.onnx in the working directory, and the exit code
is 1; 77: no python3-onnx or onnxruntime.
"""
import math
import sys
import time

try:
    import numpy as np
    from onnx import ModelProto, TensorProto, helper, numpy_helper
    from onnx.reference import ReferenceEvaluator  # before onnxruntime, which else has its way with protobuf
    import onnxruntime

    from onemodel import Library
except ImportError as error:
    print(error)
    sys.exit(77)

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
HALF_STEP = 2.0**-24   # of float32, of a value in 1..2
DRAWS, MOVES = 8, 4    # a sum rounds at each of its terms, not once: 2.7 was the most of 14,000 models
LEAST_SLACK = 1e-12    # what float64 itself leaves of values that cancel
MOST_NOISE = 1e-6      # what float32 leaves of values near 1 that cancel

# ---- Models ----


class Misfit(Exception):
    """No value has the shape that a node needs."""


class Value:
    def __init__(self, name, shape, dtype=FLOAT, depth=0):
        self.name, self.shape, self.dtype, self.depth = name, list(shape), dtype, depth


class Model:
    """Nodes are added at random; each keeps the shape that its result has."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.nodes, self.weights, self.feed = [], [], {}
        self.values = [self.input(i) for i in range(self.pick(1, 3))]
        for _ in range(self.pick(2, 10)):
            kind = KINDS[self.random.integers(len(KINDS))]
            try:
                self.values.append(kind(self))
            except Misfit:
                continue

    def pick(self, low, high):
        return int(self.random.integers(low, high + 1))

    def one_of(self, *items):
        return items[self.random.integers(len(items))]

    def input(self, index):
        shape = [self.pick(1, 7) for _ in range(self.pick(0, 5))]
        array = np.asarray(self.random.standard_normal(shape), np.float32)
        self.feed[f"x{index}"] = array
        return Value(f"x{index}", shape)

    def value(self, least_rank=0, most_rank=5, is_input=False):
        fitting = [v for v in self.values if v.dtype == FLOAT and least_rank <= len(v.shape) <= most_rank and
                   (not is_input or v.depth == 0) and math.prod(v.shape) > 0]
        if not fitting:
            raise Misfit()
        return fitting[self.random.integers(len(fitting))]

    def weight(self, array):
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(array, order="C"), name))
        return name

    def floats(self, *shape):
        return self.weight(np.asarray(self.random.uniform(-1, 1, shape), np.float32))

    def ints(self, *values):
        return self.weight(np.array(values, np.int64))

    def node(self, kind, inputs, shape, sources, dtype=FLOAT, outputs=1, **attributes):
        names = [f"n{len(self.nodes)}.{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(kind, inputs, names, **attributes))
        return Value(names[0], shape, dtype, 1 + max(v.depth for v in sources))

    def finish(self):
        used = {name for node in self.nodes for name in node.input}
        ends = [v for v in self.values if v.name not in used and v.name not in self.feed]
        results = [helper.make_tensor_value_info(v.name, v.dtype, v.shape) for v in ends]
        inputs = [helper.make_tensor_value_info(n, FLOAT, a.shape) for n, a in self.feed.items()]
        graph = helper.make_graph(self.nodes, "random", inputs, results, self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
        return model.SerializeToString(), ends


def unary(m):
    x = m.value()
    kind = m.one_of("Relu", "Sigmoid", "Tanh", "Neg", "Abs", "Erf", "Softplus", "HardSwish", "Elu", "LeakyRelu", "Sin",
                    "Cos", "Softsign", "HardSigmoid", "Selu", "Atan", "Celu", "Identity")
    return m.node(kind, [x.name], x.shape, [x])


def step(m):
    x = m.value(is_input=True)
    return m.node(m.one_of("Floor", "Ceil", "Round", "Sign"), [x.name], x.shape, [x])


def binary(m):
    x = m.value()
    shape = [e if m.pick(0, 2) else 1 for e in x.shape[m.pick(0, len(x.shape)):]]
    y = m.floats(*shape)
    operands = [x.name, y] if m.pick(0, 1) else [y, x.name]
    return m.node(m.one_of("Add", "Sub", "Mul", "Max", "Min"), operands, x.shape, [x])


def pair(m):
    x, y = m.value(), m.value()
    try:
        shape = list(np.broadcast_shapes(tuple(x.shape), tuple(y.shape)))
    except ValueError:
        raise Misfit() from None
    return m.node(m.one_of("Add", "Sub", "Mul", "Max"), [x.name, y.name], shape, [x, y])


def select(m):
    x = m.value()
    condition = m.weight(m.random.integers(0, 2, x.shape).astype(bool))
    return m.node("Where", [condition, x.name, m.floats()], x.shape, [x])


def product(m):
    x = m.value(1)
    columns = m.pick(1, 40)
    return m.node("MatMul", [x.name, m.floats(x.shape[-1], columns)], x.shape[:-1] + [columns], [x])


def gemm(m):
    x = m.value(2, 2)
    columns, turns = m.pick(1, 40), m.pick(0, 1)
    rows, depth = (x.shape[1], x.shape[0]) if turns else x.shape
    return m.node("Gemm", [x.name, m.floats(depth, columns), m.floats(m.one_of(1, columns))], [rows, columns], [x],
                  transA=turns, alpha=0.5, beta=2.0)


def conv(m):
    x = m.value(3, 5)
    channels = x.shape[1]
    group = m.one_of(1, 1, channels)
    outputs = group * m.pick(1, 5)
    kernel = [m.pick(1, 3) for _ in x.shape[2:]]
    strides, dilations = [m.pick(1, 2) for _ in kernel], [m.pick(1, 2) for _ in kernel]
    pads = [m.pick(0, 2) for _ in kernel * 2]
    space = []
    for i, extent in enumerate(x.shape[2:]):
        room = extent + pads[i] + pads[i + len(kernel)] - (kernel[i] - 1) * dilations[i] - 1
        if room < 0:
            raise Misfit()
        space.append(room // strides[i] + 1)
    return m.node("Conv", [x.name, m.floats(outputs, channels // group, *kernel), m.floats(outputs)],
                  [x.shape[0], outputs] + space, [x], kernel_shape=kernel, strides=strides, dilations=dilations,
                  pads=pads, group=group)


def conv_transpose(m):
    x = m.value(3, 4)
    outputs, kernel = m.pick(1, 5), [m.pick(1, 3) for _ in x.shape[2:]]
    strides = [m.pick(1, 3) for _ in kernel]
    space = [(e - 1) * s + k for e, s, k in zip(x.shape[2:], strides, kernel)]
    return m.node("ConvTranspose", [x.name, m.floats(x.shape[1], outputs, *kernel)], [x.shape[0], outputs] + space,
                  [x], kernel_shape=kernel, strides=strides)


def pool(m):
    x = m.value(3, 5)
    kernel = [m.pick(1, min(3, e)) for e in x.shape[2:]]
    strides = [m.pick(1, 2) for _ in kernel]
    space = [(e - k) // s + 1 for e, k, s in zip(x.shape[2:], kernel, strides)]
    return m.node(m.one_of("MaxPool", "AveragePool"), [x.name], x.shape[:2] + space, [x], kernel_shape=kernel,
                  strides=strides)


def norm(m):
    x = m.value(1)
    if x.shape[-1] < 3: # of two values the deviation may be next to 0
        raise Misfit()
    return m.node("LayerNormalization", [x.name, m.floats(x.shape[-1]), m.floats(x.shape[-1])], x.shape, [x],
                  epsilon=0.1)


def softmax(m):
    x = m.value(1)
    return m.node(m.one_of("Softmax", "LogSoftmax"), [x.name], x.shape, [x], axis=m.pick(-len(x.shape), -1))


def reduce(m):
    x = m.value(1)
    axes = sorted(m.random.permutation(len(x.shape))[:m.pick(1, len(x.shape))].tolist())
    keeps = m.pick(0, 1)
    shape = [1 if i in axes else e for i, e in enumerate(x.shape) if keeps or i not in axes]
    kind = m.one_of("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2", "ReduceSumSquare",
                    "ReduceLogSumExp")
    return m.node(kind, [x.name, m.ints(*axes)], shape, [x], keepdims=keeps)


def transpose(m):
    x = m.value(1)
    perm = m.random.permutation(len(x.shape)).tolist()
    return m.node("Transpose", [x.name], [x.shape[i] for i in perm], [x], perm=perm)


def reshape(m):
    x = m.value(1)
    at = m.pick(1, len(x.shape))
    shape = [math.prod(x.shape[:at])] + x.shape[at:]
    return m.node("Reshape", [x.name, m.ints(-1, *x.shape[at:])], shape, [x])


def slice_(m):
    x = m.value(1)
    axis = m.pick(0, len(x.shape) - 1)
    extent = x.shape[axis]
    step = m.one_of(1, 2, -1, -2)
    begin, end = (m.pick(0, extent - 1), extent) if step > 0 else (m.pick(0, extent - 1), -extent - 1)
    count = len(range(extent)[slice(begin, None, step)])
    shape = x.shape[:axis] + [count] + x.shape[axis + 1:]
    return m.node("Slice", [x.name, m.ints(begin), m.ints(end), m.ints(axis), m.ints(step)], shape, [x])


def gather(m):
    x = m.value(1)
    axis = m.pick(0, len(x.shape) - 1)
    places = m.random.integers(-x.shape[axis], x.shape[axis], [m.pick(1, 4) for _ in range(m.pick(0, 2))])
    shape = x.shape[:axis] + list(places.shape) + x.shape[axis + 1:]
    if len(shape) > 6:
        raise Misfit()
    return m.node("Gather", [x.name, m.weight(np.asarray(places, np.int64))], shape, [x], axis=axis)


def concat(m):
    x = m.value(1)
    axis = m.pick(0, len(x.shape) - 1)
    more = m.pick(1, 3)
    other = m.floats(*x.shape[:axis], more, *x.shape[axis + 1:])
    return m.node("Concat", [x.name, other, x.name], x.shape[:axis] + [2 * x.shape[axis] + more] + x.shape[axis + 1:],
                  [x], axis=axis)


def pad(m):
    x = m.value(1)
    mode = m.one_of("constant", "edge", "reflect")
    most = [min(2, e - 1) if mode == "reflect" else 2 for e in x.shape]
    pads = [m.pick(0, e) for e in most * 2]
    shape = [e + pads[i] + pads[i + len(x.shape)] for i, e in enumerate(x.shape)]
    operands = [x.name, m.ints(*pads)] + ([m.floats()] if mode == "constant" else [])
    return m.node("Pad", operands, shape, [x], mode=mode)


def resize(m):
    x = m.value(4, 4)
    mode = m.one_of("nearest", "linear")
    # Nearest by whole factors: elsewhere ONNX Runtime's quotient of floats may fall short of a whole number.
    space = [e * m.pick(1, 3) for e in x.shape[2:]] if mode == "nearest" else [m.pick(1, 9), m.pick(1, 9)]
    sizes = x.shape[:2] + space
    return m.node("Resize", [x.name, "", "", m.ints(*sizes)], sizes, [x], mode=mode,
                  coordinate_transformation_mode=m.one_of("half_pixel", "asymmetric"), nearest_mode="floor")


def position(m):
    x = m.value(1, is_input=True)
    axis = m.pick(0, len(x.shape) - 1)
    shape = x.shape[:axis] + [1] + x.shape[axis + 1:]
    return m.node(m.one_of("ArgMax", "ArgMin"), [x.name], shape, [x], dtype=INT64, axis=axis)


def best(m):
    x = m.value(1, is_input=True)
    axis = m.pick(0, len(x.shape) - 1)
    count = m.pick(1, x.shape[axis])
    return m.node("TopK", [x.name, m.ints(count)], x.shape[:axis] + [count] + x.shape[axis + 1:], [x], outputs=2,
                  axis=axis, largest=m.pick(0, 1))


def cumulated(m):
    x = m.value(1)
    return m.node("CumSum", [x.name, m.ints(m.pick(0, len(x.shape) - 1))], x.shape, [x], exclusive=m.pick(0, 1),
                  reverse=m.pick(0, 1))


def quantized(m):
    x = m.value(is_input=True)
    zero = m.weight(np.asarray(m.pick(0, 200), np.uint8))
    return m.node("QuantizeLinear", [x.name, m.weight(np.asarray(0.017, np.float32)), zero], x.shape, [x],
                  dtype=TensorProto.UINT8)


def cast(m):
    x = m.value(is_input=True)
    to = m.one_of(TensorProto.FLOAT16, TensorProto.INT32, TensorProto.INT8, BOOL, TensorProto.DOUBLE)
    return m.node("Cast", [x.name], x.shape, [x], dtype=to, to=to)


def recurrent(m):
    x = m.value(3, 3)
    # The evaluator in float64 has no two directions, so a gate must not be near 1, where 1 less it loses all its bits.
    x = m.node("Tanh", [x.name], x.shape, [x])
    kind, both, hidden = m.one_of("LSTM", "GRU", "RNN"), m.pick(1, 2), m.pick(1, 6)
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[kind]
    weights = [m.floats(both, gates * hidden, x.shape[2]), m.floats(both, gates * hidden, hidden),
               m.floats(both, 2 * gates * hidden)]
    return m.node(kind, [x.name] + weights, [x.shape[0], both, x.shape[1], hidden], [x], hidden_size=hidden,
                  direction="bidirectional" if both == 2 else "forward")


KINDS = [unary, unary, unary, step, binary, binary, pair, select, product, product, gemm, conv, conv, conv_transpose,
         pool, norm, softmax, reduce, reduce, transpose, reshape, slice_, gather, concat, pad, resize, position, best,
         cumulated, quantized, cast, recurrent]

# ---- Comparing ----


def problem(got, right, depth, slack=0):
    if got.shape != right.shape or got.dtype != right.dtype:
        return f"{got.dtype} {got.shape}, right is {right.dtype} {right.shape}"
    if right.dtype.kind != "f":
        return None if np.array_equal(got, right) else f"{np.count_nonzero(got != right)} integers differ"
    a, b = got.astype(np.float64), right.astype(np.float64)
    if not np.array_equal(np.isfinite(a), np.isfinite(b)):
        return "infinities or NaN differ"
    a, b = a[np.isfinite(b)], b[np.isfinite(b)]
    error = max(np.abs(a - b).max(initial=0) - slack, 0) / (np.abs(b).max(initial=0) or 1)
    return f"the scaled error is {error:.3g}" if error > (1e-5 if depth < 4 else 1e-4) else None


def move_results(graph, floats, random):
    """Behind each node whose result is among floats: factors next to 1, one for each element."""
    nodes = list(graph.node)
    del graph.node[:]
    for node in nodes:
        name = node.output[0]
        graph.node.append(node)
        if name in floats:
            graph.node[-1].output[0] = f"{name}.right"
            graph.initializer.append(numpy_helper.from_array(moved(np.ones(floats[name]), random), f"{name}.factor"))
            graph.node.append(helper.make_node("Mul", [f"{name}.right", f"{name}.factor"], [name]))


def keep_ancestors(graph, name):
    """Leaves out the nodes that do not lead to a value, and the other results."""
    wanted, kept = {name}, []
    for node in reversed(list(graph.node)):
        if wanted.intersection(node.output):
            wanted.update(node.input)
            kept.insert(0, node)
    results = [value for value in graph.output if value.name == name]
    del graph.node[:], graph.output[:]
    graph.node.extend(kept)
    graph.output.extend(results)


def in_float64(model, feed, name, floats=(), random=None):
    """A result of the model where each float is a double; with random all of them a little moved, also the results
    named in floats. None where the evaluator cannot tell."""
    wide = ModelProto.FromString(model)
    keep_ancestors(wide.graph, name)
    for value in list(wide.graph.input) + list(wide.graph.output):
        if value.type.tensor_type.elem_type == FLOAT:
            value.type.tensor_type.elem_type = TensorProto.DOUBLE
    for weight in wide.graph.initializer:
        if weight.data_type == FLOAT:
            array = numpy_helper.to_array(weight).astype(np.float64)
            weight.CopyFrom(numpy_helper.from_array(moved(array, random) if random else array, weight.name))
    arrays = {name: array.astype(np.float64) for name, array in feed.items()}
    if random:
        move_results(wide.graph, floats, random)
        arrays = {name: moved(array, random) for name, array in arrays.items()}
    try:
        return ReferenceEvaluator(wide).run([name], arrays)[0]
    except Exception:  # it lacks some operators, and some types of others
        return None


def moved(array, random):
    """Floats moved by up to half a step of float32."""
    if array.dtype.kind != "f":
        return array
    return np.asarray(array * (1 + random.uniform(-HALF_STEP, HALF_STEP, array.shape)))


class Judge:
    """Problems of results beside ONNX Runtime's, less those that float64 has an answer to."""

    def __init__(self, model, m, ends, theirs):
        self.model, self.feed, self.ends, self.theirs = model, m.feed, ends, theirs
        self.floats = {v.name: v.shape for v in m.values if v.dtype == FLOAT}
        self.answers = {}

    def answer(self, name):
        """What float64 has for a result, and how far float32 may be from that."""
        if name not in self.answers:
            right, slack = in_float64(self.model, self.feed, name), LEAST_SLACK
            for seed in range(DRAWS if right is not None and np.isfinite(right).all() else 0):
                other = in_float64(self.model, self.feed, name, self.floats, np.random.default_rng(seed))
                slack = max(slack, MOVES * np.abs(right - other).max(initial=0))
            self.answers[name] = right, slack
        return self.answers[name]

    def problems(self, got):
        found = []
        for v, a, b in zip(self.ends, got, self.theirs):
            p = problem(a, b, v.depth)
            if p and b.dtype.kind == "f":
                right, slack = self.answer(v.name)
                if right is not None and right.shape == b.shape:
                    right = right.astype(b.dtype)
                    # Where values cancel inside an operator, ONNX Runtime's own distance says what float32 leaves.
                    distance = np.abs(b.astype(np.float64) - right)
                    noise = distance[distance < MOST_NOISE].max(initial=0)
                    p = problem(a, right, v.depth, max(slack, MOVES * noise))
            if p:
                found.append(f"{v.name}: {p}")
        return found


def try_seed(library, seed):
    """None: the model could not be compared. Else a list of problems."""
    m = Model(seed)
    model, ends = m.finish()
    if not ends:
        return None, model
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    names = [v.name for v in ends]
    right = session.run(names, m.feed)
    found, exact, judge = [], {}, Judge(model, m, ends, right)
    for what, mode, threads in (("exact", library.EXACT, 1), ("exact, 3 threads", library.EXACT, 3),
                                ("fast", library.FAST, 2)):
        try:
            got = library.run(model, m.feed, names, mode, threads)
        except RuntimeError as error:
            found.append(f"{what}: {error}")
            continue
        exact[what] = got
        found += [f"{what}: {p}" for p in judge.problems(got)]
    if len(exact) == 3 and any(a.tobytes() != b.tobytes() for a, b in zip(exact["exact"], exact["exact, 3 threads"])):
        found.append("exact: the bits depend on the threads")
    return found, model


def main():
    if len(sys.argv) < 3:
        print(__doc__.strip())
        return 2
    library, end = Library(sys.argv[1]), time.monotonic() + float(sys.argv[2])
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    last = int(sys.argv[4]) if len(sys.argv) > 4 else sys.maxsize
    compared = failed = 0
    onnxruntime.set_default_logger_severity(4)
    while seed <= last and time.monotonic() < end:
        found, model = try_seed(library, seed)
        compared += found is not None
        if found:
            failed += 1
            with open(f"random_{seed}.onnx", "wb") as file:
                file.write(model)
            print(f"seed {seed}: " + "; ".join(found[:3]), flush=True)
        seed += 1
    print(f"{compared} models compared, {failed} differ; the next seed is {seed}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
