#!/usr/bin/env python3
"""Writes small transformer encoders as exporters write them, with seeded random weights.

    write_encoders.py OUT_FOLDER

bert_old      opset 11: the mask as (1 - mask) * -10000, LayerNormalization and Gelu in parts, shapes of
              Reshape computed from Shape, position ids cut out of a constant
bert_new      opset 18: a mask made of Range, comparisons, Gather of the padding mask, And, Expand and Where,
              Q and K scaled each, a Softmax whose NaN become 0
bert_causal   the same with the causal triangle
minilm        opset 14: the mask expanded, inverted and filled with the lowest float
speech        opset 17: two convolutions, no mask, layers that normalise first
distil        opset 11: Where puts the lowest float into scores, its condition expanded to their shape
relative      opset 15: a bias of positions and a mask, added one after the other
keras         opset 13: products of rows (rank 2), heads from constants, keys narrower than values
gpt           opset 13: Gemm of rows that makes Q, K and V, a Split, a causal triangle by Where
gpt_padded    the same, whose triangle is followed by an added mask, with a scale computed from shapes
roberta       opset 17: positions counted from the tokens by CumSum, types expanded to a computed shape, Casts
              that change nothing, Q and K scaled by the root of an extent of the turned Q
packed        opset 17: the sequence in front of the batch; Q, K and V cut out of one projection by Reshape,
              Transpose and Gather, heads in the batch
microsoft     opset 17: EmbedLayerNormalization, whose mask counts keys, Attention, SkipLayerNormalization
decoder       opset 14: a triangle by Trilu, Q scaled before the heads, K without a bias; then the same over
              an encoder's states
batched       opset 17: the heads are part of the batch, and scores get axes for them for each of two masks

Exit code 77: there is no python3-onnx here.
"""
import math
import pathlib
import sys

try:
    import numpy as np
    from onnx import TensorProto, checker, helper, numpy_helper, save
except ImportError as error:
    print(error)
    sys.exit(77)

WORDS, POSITIONS, LAYERS = 200, 64, 2
LOWEST = float(np.finfo(np.float32).min)
FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


class Graph:
    def __init__(self, opset, width, heads):
        self.opset, self.width, self.heads = opset, width, heads
        self.nodes, self.weights, self.known, self.count = [], [], {}, 0
        self.random = np.random.default_rng(7)

    def add(self, kind, *inputs, **attributes):
        self.count += 1
        name = f"{kind}_{self.count}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name + ".out"], name=name, **attributes))
        return name + ".out"

    def weight(self, array, stem="w"):
        array = np.asarray(array)
        key = (array.dtype, array.shape, array.tobytes())
        if key not in self.known:
            self.known[key] = f"{stem}_{len(self.weights)}"
            self.weights.append(numpy_helper.from_array(array, self.known[key]))
        return self.known[key]

    def f32(self, value):
        return self.weight(np.float32(value), "c")

    def ints(self, *values):
        return self.weight(np.array(values, np.int64), "i")

    def int0(self, value):
        return self.weight(np.array(value, np.int64), "i")

    def uniform(self, *shape, fan):
        return self.weight(self.random.uniform(-1, 1, shape).astype(np.float32) / np.float32(math.sqrt(fan)))

    # ---- spelled as the opset has them ----

    def unsqueeze(self, x, *axes):
        if self.opset < 13:
            return self.add("Unsqueeze", x, axes=list(axes))
        return self.add("Unsqueeze", x, self.ints(*axes))

    def extent(self, x, axis):
        return self.add("Gather", self.add("Shape", x), self.int0(axis), axis=0)

    def dims(self, *parts):
        """A shape of numbers and of scalars that the graph computes."""
        parts = [self.ints(p) if isinstance(p, int) else self.unsqueeze(p, 0) for p in parts]
        return self.add("Concat", *parts, axis=0)

    def mean(self, x):
        if self.opset < 18:
            return self.add("ReduceMean", x, axes=[-1])
        return self.add("ReduceMean", x, self.ints(-1))

    def norm(self, x):
        scale = self.weight((1 + 0.1 * self.random.standard_normal(self.width)).astype(np.float32))
        bias = self.weight((0.1 * self.random.standard_normal(self.width)).astype(np.float32))
        if self.opset >= 17:
            return self.add("LayerNormalization", x, scale, bias, epsilon=1e-5)
        centred = self.add("Sub", x, self.mean(x))
        variance = self.mean(self.add("Pow", centred, self.f32(2)))
        deviation = self.add("Sqrt", self.add("Add", variance, self.f32(1e-12)))
        return self.add("Add", self.add("Mul", self.add("Div", centred, deviation), scale), bias)

    def gelu(self, x):
        erf = self.add("Erf", self.add("Div", x, self.f32(math.sqrt(2))))
        return self.add("Mul", self.add("Mul", x, self.add("Add", erf, self.f32(1))), self.f32(0.5))

    def linear(self, x, out, inner=None):
        inner = inner or self.width
        bias = self.uniform(out, fan=inner)
        return self.add("Add", self.add("MatMul", x, self.uniform(inner, out, fan=inner)), bias)

    # ---- the parts of an encoder ----

    def heads_of(self, x, like, perm):
        size = self.width // self.heads
        shape = self.dims(self.extent(like, 0), self.extent(like, 1), self.heads, size)
        return self.add("Transpose", self.add("Reshape", self.linear(x, self.width), shape), perm=perm)

    def attention(self, x, mask, scales_each):
        size = self.width // self.heads
        q, k = self.heads_of(x, x, [0, 2, 1, 3]), self.heads_of(x, x, [0, 2, 3, 1])
        v = self.heads_of(x, x, [0, 2, 1, 3])
        if scales_each:
            root = self.f32(size ** -0.25)
            scores = self.add("MatMul", self.add("Mul", q, root), self.add("Mul", k, root))
        else:
            scores = self.add("Div", self.add("MatMul", q, k), self.f32(math.sqrt(size)))
        if mask:
            scores = self.add("Add", scores, mask)
        weights = self.add("Softmax", scores, axis=-1 if self.opset >= 13 else 3)
        if scales_each:
            weights = self.add("Where", self.add("IsNaN", weights), self.f32(0), weights)
        y = self.add("Transpose", self.add("MatMul", weights, v), perm=[0, 2, 1, 3])
        shape = self.dims(self.extent(x, 0), self.extent(x, 1), self.width)
        return self.linear(self.add("Reshape", y, shape), self.width)

    # ---- other exporters' attention ----

    def turned(self, x, shape, perm):
        return self.add("Transpose", self.add("Reshape", x, shape), perm=perm)

    def scores_to_values(self, scores, v):
        y = self.add("MatMul", self.add("Softmax", scores, axis=-1 if self.opset >= 13 else 3), v)
        return self.add("Transpose", y, perm=[0, 2, 1, 3])

    def merged(self, x, y):
        return self.add("Reshape", y, self.dims(self.extent(x, 0), self.extent(x, 1), self.width))

    def split_of(self, x):
        return self.dims(self.extent(x, 0), -1, self.heads, self.width // self.heads)

    def filled_attention(self, x, mask):
        """DistilBERT: masked_fill; the mask is [batch, 1, 1, keys]."""
        q = self.turned(self.linear(x, self.width), self.split_of(x), [0, 2, 1, 3])
        q = self.add("Div", q, self.f32(math.sqrt(self.width // self.heads)))
        scores = self.add("MatMul", q, self.heads_of(x, x, [0, 2, 3, 1]))
        hidden = self.add("Expand", mask, self.add("Shape", scores))
        scores = self.add("Where", hidden, self.f32(LOWEST), scores)
        y = self.scores_to_values(scores, self.heads_of(x, x, [0, 2, 1, 3]))
        return self.linear(self.merged(x, y), self.width)

    def biased_attention(self, x, masks):
        size = self.width // self.heads
        scores = self.add("MatMul", self.heads_of(x, x, [0, 2, 1, 3]), self.heads_of(x, x, [0, 2, 3, 1]))
        scores = self.add("Div", scores, self.f32(math.sqrt(size)))
        for mask in masks:
            scores = self.add("Add", scores, mask)
        y = self.scores_to_values(scores, self.heads_of(x, x, [0, 2, 1, 3]))
        return self.linear(self.merged(x, y), self.width)

    def rows_attention(self, x, mask):
        """Keras: [batch * length, width] all the way; 24 columns a head for keys, 48 for values."""
        rows = self.add("Reshape", x, self.ints(-1, self.width))
        batch, length = self.extent(x, 0), self.extent(x, 1)
        shape = lambda size: self.dims(batch, length, self.heads, size)
        q = self.turned(self.linear(rows, 24 * self.heads), shape(24), [0, 2, 1, 3])
        k = self.turned(self.linear(rows, 24 * self.heads), shape(24), [0, 2, 3, 1])
        v = self.turned(self.linear(rows, 48 * self.heads), shape(48), [0, 2, 1, 3])
        scores = self.add("Mul", self.add("MatMul", q, k), self.f32(24 ** -0.5))
        y = self.scores_to_values(self.add("Add", scores, mask), v)
        y = self.add("Reshape", y, self.ints(-1, 48 * self.heads))
        return self.add("Reshape", self.linear(y, self.width, 48 * self.heads), self.add("Shape", x))

    def gpt_attention(self, x, shown, mask):
        rows = self.add("Reshape", x, self.ints(-1, self.width))
        w, b = self.uniform(self.width, 3 * self.width, fan=self.width), self.uniform(3 * self.width, fan=9)
        y = self.add("Gemm", rows, w, b)
        y = self.add("Reshape", y, self.dims(self.extent(x, 0), self.extent(x, 1), 3 * self.width))
        self.count += 1
        names = [f"Split_{self.count}.{part}" for part in "qkv"]
        self.nodes.append(helper.make_node("Split", [y, self.ints(*[self.width] * 3)], names,
                                           name=f"Split_{self.count}", axis=2))
        q, k, v = (self.turned(n, self.split_of(x), p) for n, p in
                   zip(names, ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3])))
        scores = self.add("MatMul", q, k)
        if mask:
            size = self.add("Cast", self.add("Squeeze", self.last_extent(v), self.ints(0)), to=FLOAT)
            zero = self.add("ConstantOfShape", self.weight(np.zeros(0, np.int64), "i"))
            root = self.add("Add", zero, self.add("Pow", size, self.f32(0.5)))
            scores = self.add("Cast", self.add("Div", scores, root), to=FLOAT)
            scores = self.add("Add", self.add("Where", shown, scores, self.f32(LOWEST)), mask)
        else:
            scores = self.add("Div", scores, self.f32(math.sqrt(self.width // self.heads)))
            scores = self.add("Where", shown, scores, self.f32(-10000))
        rows = self.add("Reshape", self.scores_to_values(scores, v), self.ints(-1, self.width))
        w, b = self.uniform(self.width, self.width, fan=self.width), self.uniform(self.width, fan=9)
        return self.add("Reshape", self.add("Gemm", rows, w, b, transB=1), self.add("Shape", x))

    def last_extent(self, x):
        return self.add("Slice", self.add("Shape", x), self.ints(-1), self.ints(2 ** 63 - 1))

    def rooted_attention(self, x, mask):
        """torch's scaled_dot_product_attention: each side times the root of the scale."""
        q, k = self.heads_of(x, x, [0, 2, 1, 3]), self.heads_of(x, x, [0, 2, 3, 1])
        size = self.add("Cast", self.last_extent(q), to=FLOAT)
        scale = self.add("Cast", self.add("Div", self.f32(1), self.add("Sqrt", size)), to=FLOAT)
        q, k = (self.add("Mul", y, self.add("Sqrt", scale)) for y in (q, k))
        scores = self.add("Add", self.add("MatMul", q, k), mask)
        y = self.add("Softmax", scores, axis=-1)
        y = self.add("MatMul", self.add("Cast", y, to=FLOAT), self.heads_of(x, x, [0, 2, 1, 3]))
        return self.linear(self.merged(x, self.add("Transpose", y, perm=[0, 2, 1, 3])), self.width)

    def packed_attention(self, x):
        """torch's MultiheadAttention, with the batch first outside of it."""
        x = self.add("Transpose", x, perm=[1, 0, 2])
        length, batch = self.extent(x, 0), self.extent(x, 1)
        size, heads_and_batch = self.width // self.heads, self.add("Mul", batch, self.int0(self.heads))
        y = self.linear(x, 3 * self.width)
        front = self.add("Slice", self.add("Shape", y), self.ints(0), self.ints(2))
        y = self.add("Reshape", y, self.add("Concat", front, self.ints(3), self.ints(self.width), axis=0))
        y = self.add("Transpose", self.unsqueeze(y, 0), perm=[3, 1, 2, 0, 4])
        y = self.add("Squeeze", y, self.ints(3))
        parts = []
        for part in range(3):
            z = self.add("Gather", y, self.int0(part), axis=0)
            z = self.turned(z, self.dims(length, heads_and_batch, size), [1, 0, 2])
            parts.append(self.add("Reshape", z, self.dims(batch, self.heads, length, size)))
        q, k, v = parts
        q = self.add("Mul", q, self.f32(size ** -0.25))
        k = self.add("Mul", self.add("Transpose", k, perm=[0, 1, 3, 2]), self.f32(size ** -0.25))
        y = self.add("MatMul", self.add("Softmax", self.add("MatMul", q, k), axis=-1), v)
        y = self.add("Transpose", y, perm=[2, 0, 1, 3])
        y = self.add("Reshape", y, self.dims(self.add("Mul", batch, length), self.width))
        w, b = self.uniform(self.width, self.width, fan=self.width), self.uniform(self.width, fan=9)
        y = self.add("Gemm", y, w, b, transB=1)
        y = self.add("Reshape", y, self.dims(length, batch, self.extent(y, 1)))
        return self.add("Transpose", y, perm=[1, 0, 2])

    def batched_attention(self, x, masks):
        """CLIP, BART and their kin: products of [batch * heads, length, size]."""
        batch, length = self.extent(x, 0), self.extent(x, 1)
        size, rows = self.width // self.heads, self.add("Mul", batch, self.int0(self.heads))

        def side(y, extent):
            y = self.turned(y, self.dims(batch, extent, self.heads, size), [0, 2, 1, 3])
            return self.add("Reshape", y, self.dims(rows, -1, size))
        q = side(self.add("Mul", self.linear(x, self.width), self.f32(size ** -0.5)), length)
        k, v = side(self.linear(x, self.width), -1), side(self.linear(x, self.width), -1)
        keys = self.extent(k, 1)
        scores = self.add("MatMul", q, self.add("Transpose", k, perm=[0, 2, 1]))
        for mask in masks:
            scores = self.add("Reshape", scores, self.dims(batch, self.heads, length, keys))
            scores = self.add("Reshape", self.add("Add", scores, mask), self.dims(rows, length, keys))
        y = self.add("MatMul", self.add("Softmax", scores, axis=-1), v)
        y = self.add("Reshape", y, self.dims(batch, self.heads, length, size))
        return self.linear(self.merged(x, self.add("Transpose", y, perm=[0, 2, 1, 3])), self.width)

    def decoder_attention(self, x, states, mask):
        size = self.width // self.heads
        q = self.add("Mul", self.linear(x, self.width), self.f32(size ** -0.5))
        q = self.turned(q, self.split_of(x), [0, 2, 1, 3])
        k = self.add("MatMul", states, self.uniform(self.width, self.width, fan=self.width))
        k = self.turned(k, self.split_of(states), [0, 2, 1, 3])
        v = self.turned(self.linear(states, self.width), self.split_of(states), [0, 2, 1, 3])
        scores = self.add("MatMul", q, self.add("Transpose", k, perm=[0, 1, 3, 2]))
        if mask:
            scores = self.add("Add", scores, mask)
        return self.linear(self.merged(x, self.scores_to_values(scores, v)), self.width)

    def block(self, x):
        return self.linear(self.gelu(self.linear(x, 4 * self.width)), self.width, 4 * self.width)

    def embeddings(self):
        table = lambda rows: self.weight(self.random.standard_normal((rows, self.width)).astype(np.float32))
        words = self.add("Gather", table(WORDS), "input_ids", axis=0)
        kinds = self.add("Gather", table(2), "token_type_ids", axis=0)
        length = self.extent("input_ids", 1)
        positions = self.weight(np.arange(POSITIONS, dtype=np.int64)[None])
        at = self.add("Slice", positions, self.ints(0), self.unsqueeze(length, 0), self.ints(1), self.ints(1))
        places = self.add("Gather", table(POSITIONS), at, axis=0)
        return self.norm(self.add("Add", self.add("Add", words, kinds), places))

    def counted_embeddings(self):
        """RoBERTa: a position counts the tokens so far that are no padding (token 1)."""
        table = lambda rows: self.weight(self.random.standard_normal((rows, self.width)).astype(np.float32))
        shape = self.dims(self.extent("input_ids", 0), self.extent("input_ids", 1))
        length = self.unsqueeze(self.extent("input_ids", 1), 0)
        kinds = self.weight(np.zeros((1, POSITIONS), np.int64))
        kinds = self.add("Slice", kinds, self.ints(0), length, self.ints(1), self.ints(1))
        kinds = self.add("Expand", kinds, expanded_shape(self, shape))
        is_word = self.add("Cast", self.add("Not", self.add("Equal", "input_ids", self.int0(1))), to=INT64)
        counted = self.add("Mul", self.add("CumSum", is_word, self.int0(1)), is_word)
        places = self.add("Add", self.add("Cast", counted, to=INT64), self.int0(1))
        x = self.add("Add", self.add("Gather", table(WORDS), "input_ids", axis=0),
                     self.add("Gather", table(2), kinds, axis=0))
        return self.norm(self.add("Add", x, self.add("Gather", table(POSITIONS), places, axis=0)))

    def words(self):
        table = self.weight(self.random.standard_normal((WORDS, self.width)).astype(np.float32))
        return self.norm(self.add("Gather", table, "input_ids", axis=0))

    def save(self, folder, name, inputs, y):
        opsets = [helper.make_opsetid("", self.opset)]
        if any(node.domain for node in self.nodes):
            opsets.append(helper.make_opsetid("com.microsoft", 1))
        self.nodes.append(helper.make_node("Identity", [y], ["last_hidden_state"], name="result"))
        result = helper.make_tensor_value_info("last_hidden_state", FLOAT, ["batch", "length", self.width])
        graph = helper.make_graph(self.nodes, name, inputs, [result], self.weights)
        model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
        checker.check_model(model, full_check=len(opsets) == 1)
        save(model, str(folder / f"{name}.onnx"))


# ---- Masks ----


def subtracted_mask(g):
    hidden = g.add("Cast", g.unsqueeze(g.unsqueeze("attention_mask", 1), 2), to=FLOAT)
    return g.add("Mul", g.add("Sub", g.f32(1), hidden), g.f32(-10000))


def expanded_shape(g, wanted):
    """As torch exports expand(): an extent of -1 would stay."""
    wanted = g.add("Reshape", wanted, g.ints(-1))
    ones = g.add("ConstantOfShape", g.add("Shape", wanted), value=helper.make_tensor("v", INT64, [1], [1]))
    stays = g.add("Equal", wanted, g.add("Mul", ones, g.int0(-1)))
    return g.add("Where", stays, ones, wanted)


def inverted_mask(g):
    batch, length = g.extent("attention_mask", 0), g.extent("attention_mask", 1)
    shape = expanded_shape(g, g.dims(batch, 1, length, length))
    hidden = g.add("Cast", g.add("Expand", g.unsqueeze(g.unsqueeze("attention_mask", 1), 2), shape), to=FLOAT)
    inverse = g.add("Sub", g.f32(1), hidden)
    return g.add("Where", g.add("Cast", inverse, to=BOOL), g.f32(LOWEST), inverse)


def built_mask(g, is_causal):
    """Positions of rows and keys are compared, and the padding is gathered by batch and key."""
    batch, length = g.extent("attention_mask", 0), g.extent("attention_mask", 1)
    count = lambda limit: g.add("Range", g.int0(0), limit, g.int0(1))
    keys, rows = g.unsqueeze(count(length), 0, 1, 2), g.unsqueeze(count(length), 0, 1, 3)
    items = g.unsqueeze(count(batch), 1, 2, 3)
    seen = g.add("Cast", g.add("ConstantOfShape", g.ints(1, 1, 1, 1),
                               value=helper.make_tensor("v", INT64, [1], [1])), to=BOOL)
    if is_causal:
        seen = g.add("And", seen, g.add("LessOrEqual", keys, rows))
    flat = g.add("Reshape", g.add("Cast", "attention_mask", to=BOOL), g.ints(-1))
    padding = g.add("Gather", flat, g.add("Add", g.add("Mul", items, length), keys), axis=0)
    seen = g.add("Expand", g.add("And", seen, padding), g.dims(batch, 1, length, length))
    return g.add("Where", seen, g.f32(0), g.f32(LOWEST))


# ---- Models ----


def bert(folder, name, opset, width, heads, make_mask, scales_each=False):
    g = Graph(opset, width, heads)
    mask = make_mask(g)
    x = g.embeddings()
    for _ in range(LAYERS):
        x = g.norm(g.add("Add", g.attention(x, mask, scales_each), x))
        x = g.norm(g.add("Add", g.block(x), x))
    inputs = [helper.make_tensor_value_info(n, INT64, ["batch", "length"])
              for n in ("input_ids", "attention_mask", "token_type_ids")]
    g.save(folder, name, inputs, x)


def encoder(folder, name, opset, width, heads, attention, inputs, start=Graph.words):
    """attention(g): what makes a layer's attention of its input."""
    g = Graph(opset, width, heads)
    attend = attention(g)
    x = start(g)
    for _ in range(LAYERS):
        x = g.norm(g.add("Add", attend(x), x))
        x = g.norm(g.add("Add", g.block(x), x))
    g.save(folder, name, [helper.make_tensor_value_info(
        n, FLOAT if n == "states" else INT64,
        ["batch", "frames", width] if n == "states" else ["batch", "length"]) for n in inputs], x)


def distil(g):
    none = g.add("Equal", "attention_mask", g.int0(0))
    hidden = g.add("Reshape", none, g.dims(g.extent("input_ids", 0), 1, 1, g.extent("input_ids", 1)))
    return lambda x: g.filled_attention(x, hidden)


def relative(g):
    length = g.unsqueeze(g.extent("input_ids", 1), 0)
    table = g.weight(g.random.standard_normal((1, g.heads, POSITIONS, POSITIONS)).astype(np.float32))
    for axis in (2, 3):
        table = g.add("Slice", table, g.ints(0), length, g.ints(axis))
    masks = table, subtracted_mask(g)
    return lambda x: g.biased_attention(x, masks)


def keras(g):
    mask = subtracted_mask(g)
    return lambda x: g.rows_attention(x, mask)


def gpt(g, mask=None):
    length = g.unsqueeze(g.extent("input_ids", 1), 0)
    shown = g.weight(np.tril(np.ones((1, 1, POSITIONS, POSITIONS), bool)))
    for axis in (2, 3):
        shown = g.add("Slice", shown, g.ints(0), length, g.ints(axis))
    return lambda x: g.gpt_attention(x, shown, mask)


def gpt_padded(g):
    hidden = g.add("Cast", g.unsqueeze(g.unsqueeze("attention_mask", 1), 2), to=FLOAT)
    return gpt(g, g.add("Mul", g.add("Sub", g.f32(1), hidden), g.f32(LOWEST)))


def batched(g):
    length = g.extent("input_ids", 1)
    full = g.add("ConstantOfShape", g.dims(length, length), value=helper.make_tensor("v", FLOAT, [1], [LOWEST]))
    causal = g.unsqueeze(g.add("Trilu", full, g.int0(1), upper=1), 0, 1)
    causal = g.add("Expand", causal, expanded_shape(g, g.dims(g.extent("input_ids", 0), 1, length, length)))
    masks = causal, inverted_mask(g)
    return lambda x: g.batched_attention(x, masks)


def roberta(g):
    mask = subtracted_mask(g)
    return lambda x: g.rooted_attention(x, mask)


def decoder(g):
    length = g.unsqueeze(g.extent("input_ids", 1), 0)
    size = g.add("Concat", length, length, axis=0)
    full = g.add("ConstantOfShape", size, value=helper.make_tensor("v", FLOAT, [1], [LOWEST]))
    mask = g.unsqueeze(g.add("Trilu", full, g.int0(1), upper=1), 0, 1)

    def attend(x):
        x = g.norm(g.add("Add", g.decoder_attention(x, x, mask), x))
        return g.decoder_attention(x, "states", None)
    return attend


def microsoft(folder, name, width=128, heads=2):
    """What ONNX Runtime's optimizer makes of a BERT."""
    g = Graph(17, width, heads)
    fused = lambda kind, *inputs, **attributes: g.add(kind, *inputs, domain="com.microsoft", **attributes)
    table = lambda rows: g.weight(g.random.standard_normal((rows, width)).astype(np.float32))
    vector = lambda: g.weight((1 + 0.1 * g.random.standard_normal(width)).astype(np.float32))
    cast = lambda x: g.add("Cast", x, to=TensorProto.INT32)
    x = fused("EmbedLayerNormalization", cast("input_ids"), cast("token_type_ids"), table(WORDS), table(POSITIONS),
              table(2), vector(), vector(), cast("attention_mask"), epsilon=1e-12)
    lengths = x.replace(".out", ".lengths")
    g.nodes[-1].output.append(lengths)
    for _ in range(LAYERS):
        y = fused("Attention", x, g.uniform(width, 3 * width, fan=width), g.uniform(3 * width, fan=9), lengths,
                  num_heads=heads)
        y = g.add("MatMul", y, g.uniform(width, width, fan=width))
        x = fused("SkipLayerNormalization", y, x, vector(), vector(), vector())
        y = fused("BiasGelu", g.add("MatMul", x, g.uniform(width, 4 * width, fan=width)), g.uniform(4 * width, fan=9))
        y = g.add("MatMul", y, g.uniform(4 * width, width, fan=4 * width))
        x = fused("SkipLayerNormalization", y, x, vector(), vector(), vector())
    inputs = [helper.make_tensor_value_info(n, INT64, ["batch", "length"])
              for n in ("input_ids", "attention_mask", "token_type_ids")]
    g.save(folder, name, inputs, x)


def speech(folder, name, width=96, heads=3, bands=16):
    g = Graph(17, width, heads)
    conv = lambda x, inner, stride: g.add(
        "Conv", x, g.uniform(width, inner, 3, fan=3 * inner), g.uniform(width, fan=3 * inner),
        kernel_shape=[3], pads=[1, 1], strides=[stride], dilations=[1], group=1)
    x = g.add("Transpose", g.gelu(conv(g.gelu(conv("mel", bands, 1)), width, 2)), perm=[0, 2, 1])
    table = g.weight((0.1 * g.random.standard_normal((POSITIONS, width))).astype(np.float32))
    x = g.add("Add", x, g.add("Slice", table, g.ints(0), g.unsqueeze(g.extent(x, 1), 0), g.ints(0)))
    for _ in range(LAYERS):
        x = g.add("Add", x, g.attention(g.norm(x), None, False))
        x = g.add("Add", x, g.block(g.norm(x)))
    g.save(folder, name, [helper.make_tensor_value_info("mel", FLOAT, ["batch", bands, "frames"])], g.norm(x))


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    bert(folder, "bert_old", 11, 128, 2, subtracted_mask)
    bert(folder, "bert_new", 18, 128, 2, lambda g: built_mask(g, False), scales_each=True)
    bert(folder, "bert_causal", 18, 128, 2, lambda g: built_mask(g, True), scales_each=True)
    bert(folder, "minilm", 14, 96, 3, inverted_mask)
    speech(folder, "speech")
    masked = ["input_ids", "attention_mask", "token_type_ids"]
    encoder(folder, "distil", 11, 128, 2, distil, masked, Graph.embeddings)
    encoder(folder, "relative", 15, 128, 4, relative, masked, Graph.embeddings)
    encoder(folder, "keras", 13, 96, 2, keras, masked, Graph.embeddings)
    encoder(folder, "gpt", 13, 128, 2, gpt, ["input_ids"])
    encoder(folder, "gpt_padded", 13, 128, 2, gpt_padded, ["input_ids", "attention_mask"])
    encoder(folder, "roberta", 17, 128, 2, roberta, ["input_ids", "attention_mask"],
            Graph.counted_embeddings)
    encoder(folder, "packed", 17, 96, 3, lambda g: g.packed_attention, ["input_ids"])
    microsoft(folder, "microsoft")
    encoder(folder, "batched", 17, 128, 2, batched, ["input_ids", "attention_mask"])
    encoder(folder, "decoder", 14, 128, 2, decoder, ["input_ids", "states"])


if __name__ == "__main__":
    main()
