#!/usr/bin/env python3
"""Writes small models in the shapes of well-known ones, seeded random weights, with ONNX Runtime's results.

    write_shapes.py OUT_FOLDER

Each is a folder in the layout of the ONNX backend suite (model.onnx, test_data_set_N):

crnn          text recognition: convolutions, two bidirectional LSTMs, LogSoftmax; two widths
gru           key words: a convolution, two GRUs, the last step's Softmax; two batches
llama         a decoder with rotary embedding, grouped heads and a key/value cache: a prompt, then a token
whisper       a speech encoder, and a decoder that reads it, in one graph
vocoder       transposed convolutions and dilated blocks with LeakyRelu, Tanh
ssd           boxes decoded from offsets, scores, NonMaxSuppression, what it chose gathered
two_stage     proposals by TopK and NonMaxSuppression, RoiAlign, a head, boxes again
dynamic_int8  products of integers, quantized as they come
qdq           a convolution and a product between QuantizeLinear and DequantizeLinear
four_bits     MatMulNBits and blocks of uint4

Exit code 77: there is no python3-onnx or no onnxruntime here.
"""
import pathlib
import sys

try:
    import numpy as np
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper, save, save_tensor
except ImportError as error:
    print(error)
    sys.exit(77)

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64


class Graph:
    def __init__(self, name, opset=17):
        self.name, self.opset = name, opset
        self.nodes, self.weights, self.inputs, self.count = [], [], [], 0
        self.random = np.random.default_rng(sum(name.encode()))

    def input(self, name, shape, dtype=FLOAT):
        self.inputs.append(helper.make_tensor_value_info(name, dtype, shape))
        return name

    def add(self, kind, *inputs, outputs=1, domain="", **attributes):
        self.count += 1
        names = [f"{kind}_{self.count}.{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(kind, list(inputs), names, name=f"{kind}_{self.count}", domain=domain,
                                           **attributes))
        return names[0] if outputs == 1 else names

    def weight(self, array):
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(array, order="C"), name))
        return name

    def f32(self, *values):
        return self.weight(np.array(values if len(values) > 1 else values[0], np.float32))

    def ints(self, *values):
        return self.weight(np.array(values, np.int64))

    def int0(self, value):
        return self.weight(np.array(value, np.int64))

    def uniform(self, *shape, fan=None):
        scale = 1 / np.sqrt(fan or shape[-1])
        return self.weight((self.random.uniform(-1, 1, shape) * scale).astype(np.float32))

    # ---- parts ----

    def linear(self, x, inputs, outputs):
        return self.add("Add", self.add("MatMul", x, self.uniform(inputs, outputs, fan=inputs)),
                        self.uniform(outputs))

    def conv(self, x, inputs, outputs, kernel, **attributes):
        shape = [outputs, inputs, *kernel]
        return self.add("Conv", x, self.uniform(*shape, fan=inputs * int(np.prod(kernel))),
                        self.uniform(outputs), kernel_shape=kernel, **attributes)

    def norm(self, x, width):
        scale = self.weight((1 + 0.1 * self.random.standard_normal(width)).astype(np.float32))
        return self.add("LayerNormalization", x, scale, self.uniform(width), epsilon=1e-5)

    def gelu(self, x):
        erf = self.add("Erf", self.add("Div", x, self.f32(np.sqrt(2))))
        return self.add("Mul", self.add("Mul", x, self.add("Add", erf, self.f32(1))), self.f32(0.5))

    def heads(self, x, heads, size):
        shape = self.ints(0, -1, heads, size)
        return self.add("Transpose", self.add("Reshape", x, shape), perm=[0, 2, 1, 3])

    def attend(self, q, k, v, size, width, mask=None):
        scores = self.add("MatMul", q, self.add("Transpose", k, perm=[0, 1, 3, 2]))
        scores = self.add("Div", scores, self.f32(np.sqrt(size)))
        if mask:
            scores = self.add("Add", scores, mask)
        y = self.add("MatMul", self.add("Softmax", scores, axis=-1), v)
        return self.add("Reshape", self.add("Transpose", y, perm=[0, 2, 1, 3]), self.ints(0, -1, width))

    def attention(self, x, width, heads, memory=None, mask=None):
        memory, size = memory or x, width // heads
        q, k, v = (self.heads(self.linear(t, width, width), heads, size) for t in (x, memory, memory))
        return self.linear(self.attend(q, k, v, size, width, mask), width, width)

    def block(self, x, width):
        return self.linear(self.gelu(self.linear(x, width, 4 * width)), 4 * width, width)

    def extent(self, x, axis):
        return self.add("Gather", self.add("Shape", x), self.int0(axis))

    def causal(self, rows, keys, past):
        """0 where a key stands at or before its row, far below elsewhere: [rows, keys]."""
        row = self.add("Add", self.add("Range", self.int0(0), rows, self.int0(1)), past)
        key = self.add("Range", self.int0(0), keys, self.int0(1))
        seen = self.add("LessOrEqual", key, self.add("Unsqueeze", row, self.ints(1)))
        return self.add("Where", seen, self.f32(0), self.f32(-1e9))

    # ---- the end ----

    def finish(self, folder, outputs, sets):
        """outputs: {name: (value, type)}; sets: lists of arrays in the order of the inputs."""
        for name, (value, _) in outputs.items():
            self.nodes.append(helper.make_node("Identity", [value], [name], name=name))
        results = [helper.make_empty_tensor_value_info(name) for name in outputs]
        for result, (_, dtype) in zip(results, outputs.values()):
            result.type.tensor_type.elem_type = dtype
        graph = helper.make_graph(self.nodes, self.name, self.inputs, results, self.weights)
        opsets = [helper.make_opsetid("", self.opset), helper.make_opsetid("com.microsoft", 1)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=8 if self.opset < 21 else 10)
        write_folder(folder / self.name, model, sets)


def write_folder(target, model, sets):
    """A folder of the suite's layout: the model, and ONNX Runtime's results for each set of inputs."""
    target.mkdir(parents=True, exist_ok=True)
    save(model, str(target / "model.onnx"))
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(str(target / "model.onnx"), options, providers=["CPUExecutionProvider"])
    for i, arrays in enumerate(sets):
        data = target / f"test_data_set_{i}"
        data.mkdir(exist_ok=True)
        feed = {value.name: array for value, array in zip(model.graph.input, arrays)}
        for kind, all_arrays in (("input", arrays), ("output", session.run(None, feed))):
            for k, array in enumerate(all_arrays):
                save_tensor(numpy_helper.from_array(np.asarray(array, order="C")), str(data / f"{kind}_{k}.pb"))


def normal(g, *shape):
    return g.random.standard_normal(shape).astype(np.float32)


# ---- Models ----


def crnn(folder, classes=23, hidden=24):
    g = Graph("crnn")
    x, inputs = g.input("x", ["N", 1, 16, "W"]), 1
    for outputs, pool in ((8, [2, 2]), (16, [2, 2]), (24, [2, 1]), (32, [2, 1])):
        x = g.conv(x, inputs, outputs, [3, 3], pads=[1, 1, 1, 1])
        statistics = [g.weight(a.astype(np.float32)) for a in (
            1 + 0.1 * g.random.standard_normal(outputs), 0.1 * g.random.standard_normal(outputs),
            0.1 * g.random.standard_normal(outputs), 0.5 + g.random.random(outputs))]
        x = g.add("MaxPool", g.add("Relu", g.add("BatchNormalization", x, *statistics)), kernel_shape=pool,
                  strides=pool)
        inputs = outputs
    x = g.add("Transpose", g.add("Squeeze", x, g.ints(2)), perm=[2, 0, 1])
    for _ in range(2):
        y = g.add("LSTM", x, g.uniform(2, 4 * hidden, inputs), g.uniform(2, 4 * hidden, hidden),
                  g.uniform(2, 8 * hidden), direction="bidirectional", hidden_size=hidden, outputs=3)[0]
        x = g.add("Reshape", g.add("Transpose", y, perm=[0, 2, 1, 3]), g.ints(0, 0, -1))
        inputs = 2 * hidden
    y = g.add("LogSoftmax", g.linear(x, inputs, classes), axis=-1)
    g.finish(folder, {"logp": (y, FLOAT)}, [[normal(g, 1, 1, 16, 64)], [normal(g, 3, 1, 16, 100)]])


def gru(folder, hidden=20):
    g = Graph("gru")
    x = g.add("Relu", g.conv(g.input("mfcc", ["N", 10, "T"]), 10, 16, [5], pads=[2, 2], strides=[2]))
    x, inputs = g.add("Transpose", x, perm=[2, 0, 1]), 16
    for _ in range(2):
        y = g.add("GRU", x, g.uniform(1, 3 * hidden, inputs), g.uniform(1, 3 * hidden, hidden),
                  g.uniform(1, 6 * hidden), hidden_size=hidden, linear_before_reset=1, outputs=2)[0]
        x, inputs = g.add("Squeeze", y, g.ints(1)), hidden
    p = g.add("Softmax", g.linear(g.add("Gather", x, g.int0(-1)), hidden, 12), axis=-1)
    g.finish(folder, {"p": (p, FLOAT)}, [[normal(g, 1, 10, 49)], [normal(g, 4, 10, 30)]])


def llama(folder, width=48, heads=4, groups=2, words=60, layers=2):
    g, size = Graph("llama"), width // heads
    ids, positions = g.input("ids", ["B", "T"], INT64), g.input("positions", ["B", "T"], INT64)
    past = [g.input(f"past.{i}.{c}", ["B", groups, "P", size]) for i in range(layers) for c in "kv"]
    table = g.uniform(words, width, fan=1)
    frequencies = g.weight((1 / 10000 ** (np.arange(0, size, 2) / size)).astype(np.float32))
    angles = g.add("Mul", g.add("Unsqueeze", g.add("Cast", positions, to=FLOAT), g.ints(1, 3)), frequencies)
    angles = g.add("Concat", angles, angles, axis=-1)
    cos, sin = g.add("Cos", angles), g.add("Sin", angles)
    held = g.extent(past[0], 2)
    rows = g.extent(ids, 1)
    mask = g.causal(rows, g.add("Add", rows, held), held)

    def rms(x):
        mean = g.add("ReduceMean", g.add("Mul", x, x), axes=[-1], keepdims=1)
        return g.add("Mul", g.add("Div", x, g.add("Sqrt", g.add("Add", mean, g.f32(1e-5)))),
                     g.weight((1 + 0.1 * g.random.standard_normal(width)).astype(np.float32)))

    def rope(x):
        low, high = g.add("Split", x, g.ints(size // 2, size // 2), axis=-1, outputs=2)
        turned = g.add("Concat", g.add("Neg", high), low, axis=-1)
        return g.add("Add", g.add("Mul", x, cos), g.add("Mul", turned, sin))

    def repeated(x):
        x = g.add("Expand", g.add("Unsqueeze", x, g.ints(2)), g.ints(1, 1, heads // groups, 1, 1))
        return g.add("Reshape", x, g.ints(0, heads, -1, size))

    product = lambda x, a, b: g.add("MatMul", x, g.uniform(a, b, fan=a))
    x, outputs = g.add("Gather", table, ids), {}
    for i in range(layers):
        y = rms(x)
        q = rope(g.heads(product(y, width, width), heads, size))
        k = rope(g.heads(product(y, width, groups * size), groups, size))
        v = g.heads(product(y, width, groups * size), groups, size)
        k, v = g.add("Concat", past[2 * i], k, axis=2), g.add("Concat", past[2 * i + 1], v, axis=2)
        outputs[f"present.{i}.k"], outputs[f"present.{i}.v"] = (k, FLOAT), (v, FLOAT)
        x = g.add("Add", x, product(g.attend(q, repeated(k), repeated(v), size, width, mask), width, width))
        y = rms(x)
        gate = product(y, width, 2 * width)
        gate = g.add("Mul", gate, g.add("Sigmoid", gate))
        x = g.add("Add", x, product(g.add("Mul", gate, product(y, width, 2 * width)), 2 * width, width))
    logits = g.add("MatMul", rms(x), g.add("Transpose", table, perm=[1, 0]))
    sets = []
    for batch, length, before in ((1, 7, 0), (1, 1, 7), (2, 3, 4)):
        tokens = g.random.integers(0, words, (batch, length))
        places = np.tile(np.arange(before, before + length), (batch, 1))
        sets.append([tokens, places] + [normal(g, batch, groups, before, size) for _ in past])
    g.finish(folder, {"logits": (logits, FLOAT), **outputs}, sets)


def whisper(folder, width=48, heads=3, bands=16, words=70, frames=30):
    g = Graph("whisper")
    x = g.gelu(g.conv(g.input("mel", ["N", bands, 2 * frames]), bands, width, [3], pads=[1, 1]))
    x = g.gelu(g.conv(x, width, width, [3], pads=[1, 1], strides=[2]))
    x = g.add("Add", g.add("Transpose", x, perm=[0, 2, 1]), g.uniform(frames, width))
    for _ in range(2):
        x = g.add("Add", x, g.attention(g.norm(x, width), width, heads))
        x = g.add("Add", x, g.block(g.norm(x, width), width))
    memory = g.norm(x, width)
    ids, table = g.input("ids", ["N", "T"], INT64), g.uniform(words, width, fan=1)
    length = g.extent(ids, 1)
    places = g.add("Slice", g.uniform(32, width), g.ints(0), g.add("Unsqueeze", length, g.ints(0)), g.ints(0))
    y = g.add("Add", g.add("Gather", table, ids), places)
    mask = g.causal(length, length, g.int0(0))
    for _ in range(2):
        y = g.add("Add", y, g.attention(g.norm(y, width), width, heads, mask=mask))
        y = g.add("Add", y, g.attention(g.norm(y, width), width, heads, memory=memory))
        y = g.add("Add", y, g.block(g.norm(y, width), width))
    logits = g.add("MatMul", g.norm(y, width), g.add("Transpose", table, perm=[1, 0]))
    sets = [[normal(g, n, bands, 2 * frames), g.random.integers(0, words, (n, t))] for n, t in ((1, 5), (2, 9))]
    g.finish(folder, {"logits": (logits, FLOAT), "hidden": (memory, FLOAT)}, sets)


def vocoder(folder, bands=12, channels=32):
    g = Graph("vocoder")
    leaky = lambda x: g.add("LeakyRelu", x, alpha=0.1)
    x = g.conv(g.input("mel", ["N", bands, "T"]), bands, channels, [7], pads=[3, 3])
    for rate, kernel in ((4, 8), (2, 4)):
        pad = (kernel - rate) // 2
        x = g.add("ConvTranspose", leaky(x), g.uniform(channels, channels // 2, kernel, fan=channels),
                  g.uniform(channels // 2), kernel_shape=[kernel], strides=[rate], pads=[pad, pad])
        channels //= 2
        for d in (1, 3, 5):
            x = g.add("Add", x, g.conv(leaky(x), channels, channels, [3], pads=[d, d], dilations=[d]))
    wave = g.add("Tanh", g.conv(leaky(x), channels, 1, [7], pads=[3, 3]))
    g.finish(folder, {"wave": (wave, FLOAT)}, [[normal(g, 1, bands, 20)], [normal(g, 2, bands, 13)]])


def decoded(g, anchors, offsets):
    """Boxes y0 x0 y1 x1 from anchors cy cx h w and offsets, both [..., 4]."""
    centre, size = g.add("Split", anchors, g.ints(2, 2), axis=-1, outputs=2)
    move, grow = g.add("Split", offsets, g.ints(2, 2), axis=-1, outputs=2)
    middle = g.add("Add", g.add("Mul", g.add("Mul", move, g.f32(0.1)), size), centre)
    half = g.add("Mul", g.add("Mul", g.add("Exp", g.add("Mul", grow, g.f32(0.2))), size), g.f32(0.5))
    box = g.add("Concat", g.add("Sub", middle, half), g.add("Add", middle, half), axis=-1)
    return g.add("Clip", box, g.f32(0), g.f32(1))


def grid_anchors(side, size):
    at = (np.arange(side) + 0.5) / side
    y, x = np.meshgrid(at, at, indexing="ij")
    return np.stack([y, x, np.full_like(y, size), np.full_like(x, size)], -1).reshape(-1, 4).astype(np.float32)


def chosen(g, boxes, scores, most, overlap, least):
    """The chosen boxes, their scores and classes; boxes [1, n, 4], scores [1, classes, n]."""
    picks = g.add("NonMaxSuppression", boxes, scores, g.ints(most), g.f32(np.float32(overlap)),
                  g.f32(np.float32(least)))
    classes = g.add("Gather", picks, g.int0(1), axis=1)
    places = g.add("Gather", picks, g.int0(2), axis=1)
    values = g.add("GatherND", scores, picks)
    return g.add("Gather", g.add("Squeeze", boxes, g.ints(0)), places), values, classes


def ssd(folder, classes=5):
    g = Graph("ssd")
    x = g.add("HardSwish", g.conv(g.input("image", [1, 3, 32, 32]), 3, 12, [3, 3], pads=[1] * 4, strides=[2, 2]))
    boxes, scores = [], []
    for side, inputs in ((8, 12), (4, 16)):
        x = g.add("HardSwish", g.conv(x, inputs, 16, [3, 3], pads=[1] * 4, strides=[2, 2]))
        flat = lambda t, last: g.add("Reshape", g.add("Transpose", t, perm=[0, 2, 3, 1]), g.ints(1, -1, last))
        anchors = g.weight(grid_anchors(side, 1.5 / side)[None])
        boxes.append(decoded(g, anchors, flat(g.conv(x, 16, 4, [3, 3], pads=[1] * 4), 4)))
        scores.append(g.add("Mul", flat(g.conv(x, 16, classes, [3, 3], pads=[1] * 4), classes), g.f32(8)))
    scores = g.add("Transpose", g.add("Softmax", g.add("Concat", *scores, axis=1), axis=-1), perm=[0, 2, 1])
    found = chosen(g, g.add("Concat", *boxes, axis=1), scores, 6, 0.5, 0.2)
    g.finish(folder, {"boxes": (found[0], FLOAT), "scores": (found[1], FLOAT), "labels": (found[2], INT64)},
             [[normal(g, 1, 3, 32, 32)] for _ in range(2)])


def two_stage(folder, side=8, classes=4):
    g = Graph("two_stage")
    x = g.add("Relu", g.conv(g.input("image", [1, 3, 32, 32]), 3, 16, [5, 5], pads=[2] * 4, strides=[4, 4]))
    flat = lambda t, last: g.add("Reshape", g.add("Transpose", t, perm=[0, 2, 3, 1]), g.ints(-1, last))
    objectness = g.add("Reshape", flat(g.conv(x, 16, 1, [1, 1]), 1), g.ints(-1))
    best, places = g.add("TopK", objectness, g.ints(30), outputs=2)
    anchors = g.add("Gather", g.weight(grid_anchors(side, 0.3)), places)
    boxes = decoded(g, anchors, g.add("Gather", flat(g.conv(x, 16, 4, [1, 1]), 4), places))
    batched = g.add("Unsqueeze", boxes, g.ints(0))
    scores = g.add("Unsqueeze", best, g.ints(0, 1))
    proposals = chosen(g, batched, scores, 10, 0.4, -100)[0]
    corners = g.add("Gather", proposals, g.ints(1, 0, 3, 2), axis=1)
    images = g.add("ConstantOfShape", g.add("Unsqueeze", g.extent(corners, 0), g.ints(0)),
                   value=helper.make_tensor("v", INT64, [1], [0]))
    regions = g.add("RoiAlign", x, g.add("Mul", corners, g.f32(32)), images, output_height=4, output_width=4,
                    sampling_ratio=2, spatial_scale=0.25)
    y = g.add("Relu", g.linear(g.add("Flatten", regions), 256, 32))
    chances = g.add("Softmax", g.add("Mul", g.linear(y, 32, classes), g.f32(4)), axis=-1)
    final = decoded(g, anchor_of(g, proposals), g.linear(y, 32, 4))
    found = chosen(g, g.add("Unsqueeze", final, g.ints(0)),
                   g.add("Unsqueeze", g.add("Transpose", chances, perm=[1, 0]), g.ints(0)), 4, 0.5, 0.1)
    g.finish(folder, {"boxes": (found[0], FLOAT), "scores": (found[1], FLOAT), "labels": (found[2], INT64)},
             [[normal(g, 1, 3, 32, 32)] for _ in range(2)])


def anchor_of(g, boxes):
    low, high = g.add("Split", boxes, g.ints(2, 2), axis=-1, outputs=2)
    return g.add("Concat", g.add("Mul", g.add("Add", low, high), g.f32(0.5)), g.add("Sub", high, low), axis=-1)


# ---- Quantized ----


def quantized_weight(g, inputs, outputs, unsigned):
    dtype, low, high = (np.uint8, 0, 255) if unsigned else (np.int8, -127, 127)
    return g.weight(g.random.integers(low, high + 1, (inputs, outputs)).astype(dtype))


def dynamic_int8(folder, width=32):
    g = Graph("dynamic_int8")
    x = g.input("x", ["N", "T", width])
    for unsigned in (False, True):
        q, scale, zero = g.add("DynamicQuantizeLinear", x, outputs=3)
        zeros = g.weight(np.full(width, 7 if unsigned else 0, np.uint8 if unsigned else np.int8))
        sums = g.add("MatMulInteger", q, quantized_weight(g, width, width, unsigned), zero, zeros)
        scales = g.weight((0.001 + 0.001 * g.random.random(width)).astype(np.float32))
        y = g.add("Mul", g.add("Cast", sums, to=FLOAT), g.add("Mul", scale, scales))
        x = g.add("Relu", g.add("Add", y, g.uniform(width)))
    g.finish(folder, {"y": (x, FLOAT)}, [[normal(g, 1, 9, width)], [normal(g, 2, 4, width)]])


def qdq(folder):
    g = Graph("qdq")

    def through(x, scale, zero, **attributes):
        operands = (g.weight(np.asarray(scale, np.float32)), g.weight(np.asarray(zero)))
        return g.add("DequantizeLinear", g.add("QuantizeLinear", x, *operands, **attributes), *operands, **attributes)

    def stored(array, scale):
        zeros = g.weight(np.zeros(len(scale), np.int8))
        return g.add("DequantizeLinear", g.weight(array), g.weight(scale.astype(np.float32)), zeros, axis=0)

    x = through(g.input("x", ["N", 3, 12, 12]), 0.03, np.uint8(128))
    weights = stored(g.random.integers(-127, 128, (8, 3, 3, 3)).astype(np.int8), 0.002 + 0.002 * g.random.random(8))
    bias = g.add("DequantizeLinear", g.weight(g.random.integers(-2000, 2000, 8).astype(np.int32)), g.f32(0.0001))
    x = through(g.add("Relu", g.add("Conv", x, weights, bias, kernel_shape=[3, 3], pads=[1] * 4)), 0.02, np.uint8(0))
    x = through(g.add("GlobalAveragePool", x), 0.01, np.int8(-128))
    weights = stored(g.random.integers(-127, 128, (5, 8)).astype(np.int8), 0.01 + 0.01 * g.random.random(5))
    y = through(g.add("Gemm", g.add("Flatten", x), weights, transB=1), 0.05, np.int8(3))
    g.finish(folder, {"y": (y, FLOAT)}, [[normal(g, 1, 3, 12, 12)], [normal(g, 3, 3, 12, 12)]])


def four_bits(folder, width=64, outputs=24, block=32):
    g = Graph("four_bits", opset=21)
    x = g.input("x", ["N", width])
    blocks = width // block
    packed = g.weight(g.random.integers(0, 256, (outputs, blocks, block // 2)).astype(np.uint8))
    scales = g.weight((0.02 * g.random.random((outputs * blocks))).astype(np.float32))
    zeros = g.weight(g.random.integers(0, 256, (outputs * ((blocks + 1) // 2))).astype(np.uint8))
    a = g.add("MatMulNBits", x, packed, scales, zeros, domain="com.microsoft", K=width, N=outputs, bits=4,
              block_size=block)
    name = f"w{len(g.weights)}"
    values = g.random.integers(0, 16, width * outputs).tolist()
    g.weights.append(helper.make_tensor(name, TensorProto.UINT4, [width, outputs], values))
    scales = g.weight((0.02 * g.random.random((blocks, outputs))).astype(np.float32))
    b = g.add("MatMul", x, g.add("DequantizeLinear", name, scales, axis=0, block_size=block))
    g.finish(folder, {"a": (a, FLOAT), "b": (b, FLOAT)}, [[normal(g, 1, width)], [normal(g, 6, width)]])


def main():
    folder = pathlib.Path(sys.argv[1])
    for write in (crnn, gru, llama, whisper, vocoder, ssd, two_stage, dynamic_int8, qdq, four_bits):
        write(folder)


if __name__ == "__main__":
    main()
