"""Single operators with random types, shapes, attributes and values, for compare_operators.py.

A function of KINDS makes a Case of one operator, or raises Misfit where what was drawn cannot be. What it makes is
valid: indices are in range, divisors are not 0. Values are drawn by a manner (Draw.values), which says what may be
asked of results other than equal bits.
"""
import math

import numpy as np

F32, F16, I32, I64, BOOL = np.float32, np.float16, np.int32, np.int64, np.bool_
FLOATS = (F32, F32, F16)
NUMBERS = (F32, F32, F16, I32, I64)
ALL = (F32, F16, I32, I64, BOOL, np.uint8, np.int8, np.uint16, np.int16, np.float64)
EXTENTS = (1, 1, 2, 3, 4, 5, 7, 8, 16, 17, 33, 65, 127)
MOST_ELEMENTS = 20000
EDGES = (0.0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 0.5, -0.5, 1.5, 2.5, -2.5, 3.1415927, 1e-7, -1e-7, 88.7, 89, -87.3,
         -104, 0.625, 0.921875, 3.95, 9.0, 255.5, 256.5, 65504, 65520, 1e10, -1e10, 2.0**31, -2.0**31, 2.0**63, 8388609.0,
         16777217.0, 1e30, -1e30, 3.4028235e38, -3.4028235e38)
INT_EDGES = (0, 1, -1, 2, -2, 127, -128, 255, 256, 65535, 2**24 + 1, 2**31 - 1, -2**31, 2**31, 2**32, -2**33 + 1, 2**53 + 1,
             2**63 - 1, -2**63)


class Misfit(Exception):
    """What was drawn does not go together."""


class Case:
    """One node: inputs are arrays, or None where one is absent. is_constant says which are in the model."""

    def __init__(self, kind, inputs, outputs=1, domain="", is_sum=False, **attributes):
        self.kind, self.inputs, self.outputs, self.domain, self.is_sum = kind, inputs, outputs, domain, is_sum
        self.attributes = {k: v for k, v in attributes.items() if v is not None}
        self.is_constant = [False] * len(inputs)
        self.manner = "tame"
        self.chain = [] # (operator, operand or None): elementwise operators behind it

    def constant(self, *places):
        for place in places:
            if place < len(self.inputs):
                self.is_constant[place] = True
        return self

    def __str__(self):
        shown = [None if a is None else f"{a.dtype}{list(a.shape)}{'!' if c else ''}"
                 for a, c in zip(self.inputs, self.is_constant)]
        chain = [k if y is None else f"{k}({list(y.shape)})" for k, y in self.chain]
        return f"{self.kind} {shown} {self.attributes} {self.manner} then {chain}"


class Draw:
    """Random choices for one case."""

    def __init__(self, random, opset, has_subnormals):
        self.random, self.opset, self.has_subnormals = random, opset, has_subnormals
        self.manner = self.one_of("tame", "tame", "ties", "zeros", "mixed", "edges", "wide")

    def pick(self, low, high):
        return int(self.random.integers(low, high + 1))

    def one_of(self, *items):
        return items[self.random.integers(len(items))]

    def chance(self, parts):
        return self.random.integers(parts) == 0

    def shape(self, least=0, most=8, empty=True, extents=EXTENTS, limit=MOST_ELEMENTS):
        rank = self.pick(least, min(most, self.one_of(2, 3, 4, 4, 8)) if most > least else most)
        dims = [self.one_of(*extents) for _ in range(rank)]
        while math.prod(dims) > limit:
            dims[self.random.integers(rank)] = self.one_of(1, 2, 3)
        if empty and rank and self.chance(40):
            dims[self.random.integers(rank)] = 0
        return dims

    def part(self, shape):
        """A shape that broadcasts to this one."""
        return [1 if self.chance(3) else e for e in shape[self.one_of(0, 0, self.pick(0, len(shape))):]]

    def axis(self, rank):
        return self.pick(-rank, rank - 1)

    def axes(self, rank, least=1):
        some = self.random.permutation(rank)[:self.pick(least, rank)].tolist()
        return [a - rank if self.chance(2) else a for a in some]

    def values(self, shape, dtype=F32, manner=None, low=None, high=None):
        dtype, manner = np.dtype(dtype), manner or self.manner
        if dtype == BOOL:
            return np.asarray(self.random.integers(0, 2, shape), BOOL)
        if low is not None:
            return np.asarray(self.random.integers(low, high + 1, shape), dtype)
        if dtype.kind in "iu":
            info = np.iinfo(dtype)
            few = np.asarray(self.random.integers(max(info.min, -9), 10, shape), dtype)
            if manner in ("tame", "ties", "zeros"):
                return few
            edges = np.array([e for e in INT_EDGES if info.min <= e <= info.max], dtype)
            return np.where(self.random.integers(0, 2, shape) == 0, edges[self.random.integers(0, len(edges), shape)], few)
        return self.floats(shape, manner).astype(dtype)

    def floats(self, shape, manner):
        x = np.asarray(self.random.standard_normal(shape), np.float64)
        if manner == "ties":
            return np.round(x * 4) / 2
        if manner == "zeros": # the signs of zeros: a sum that begins with 0 is never -0
            return np.array([0.0, -0.0, 0.0, -0.0, 1.0, -1.0])[self.random.integers(0, 6, shape)]
        if manner == "wide":
            most = 20 if self.has_subnormals else 6
            return x * 10.0**self.random.uniform(-most, most, shape)
        if manner == "mixed":
            some = np.array([np.inf, -np.inf, np.nan, 0.0, -0.0])[self.random.integers(0, 5, shape)]
            return np.where(self.random.integers(0, 20, shape) == 0, some, x)
        if manner == "edges":
            small = (1.17549435e-38, -1e-40, 6e-8, 2e-38) if self.has_subnormals else ()
            edges = np.array(EDGES + small)
            return np.where(self.random.integers(0, 4, shape) == 0, x, edges[self.random.integers(0, len(edges), shape)])
        return x


# ---- Elementwise ----

PLAIN = ("Abs", "Ceil", "Cos", "Erf", "Exp", "Floor", "HardSwish", "Log", "Mish", "Neg", "Reciprocal", "Relu", "Round",
         "Sigmoid", "Sign", "Sin", "Softplus", "Softsign", "Sqrt", "Tanh")
OF_INTEGERS = ("Abs", "Neg", "Relu", "Sign")
SINCE = {"HardSwish": 14, "Mish": 18, "Round": 11, "Celu": 12, "Gelu": 20, "Swish": 24}
WITH_SCALARS = {"Elu": ("alpha",), "Selu": ("alpha", "gamma"), "Celu": ("alpha",), "LeakyRelu": ("alpha",),
                "HardSigmoid": ("alpha", "beta"), "ThresholdedRelu": ("alpha",), "Shrink": ("bias", "lambd"),
                "Gelu": (), "Swish": ("alpha",)}


def unary(d):
    kind = d.one_of(*PLAIN)
    since(d, SINCE.get(kind, 9))
    dtype = d.one_of(*NUMBERS) if kind in OF_INTEGERS and d.opset >= 14 else d.one_of(*FLOATS)
    return Case(kind, [d.values(d.shape(), dtype)])


def unary_of_scalars(d):
    kind = d.one_of(*WITH_SCALARS)
    since(d, SINCE.get(kind, 10))
    attributes = {n: float(np.float32(d.random.uniform(0.1, 2))) for n in WITH_SCALARS[kind] if d.pick(0, 1)}
    if kind == "Gelu" and d.pick(0, 1):
        attributes["approximate"] = "tanh"
    return Case(kind, [d.values(d.shape(), d.one_of(*FLOATS))], **attributes)


def clip(d):
    x = d.values(d.shape(), d.one_of(*FLOATS))
    low, high = np.array(d.random.uniform(-1, 0.5), x.dtype), np.array(d.random.uniform(0, 1), x.dtype)
    if d.opset < 11:
        if x.dtype == F16: raise Misfit()
        return Case("Clip", [x], min=float(low), max=float(high))
    return Case("Clip", [x] + [None if d.chance(4) else b for b in (low, high)][:d.pick(0, 2)]).constant(1, 2)


def is_kind(d):
    x = d.values(d.shape(), d.one_of(F32, F16) if d.opset >= 20 else F32)
    if d.pick(0, 1):
        return Case("IsNaN", [x])
    since(d, 10)
    return Case("IsInf", [x], detect_negative=d.pick(0, 1), detect_positive=d.pick(0, 1))


def two(d, dtype):
    shape = d.shape()
    a, b = d.values(d.part(shape), dtype), d.values(d.part(shape), dtype)
    case = [a, b] if d.pick(0, 1) else [d.values(shape, dtype), b]
    return case if d.pick(0, 1) else case[::-1]


def binary(d):
    kind = d.one_of("Add", "Sub", "Mul", "Div", "Pow", "Max", "Min", "Mod", "PRelu")
    if kind == "PRelu":
        x = d.values(d.shape(1), d.one_of(*FLOATS))
        return Case(kind, [x, d.values(d.part(x.shape), x.dtype)])
    dtype = d.one_of(F32, F16) if kind == "Pow" else d.one_of(I32, I64) if kind == "Mod" else d.one_of(*NUMBERS)
    if kind in ("Max", "Min"): since(d, 13)
    if kind == "Pow": since(d, 12)
    if kind == "Mod": since(d, 10)
    a, b = two(d, dtype)
    if kind in ("Div", "Mod") and b.dtype.kind == "i":
        b = np.where(b == 0, 3, b).astype(dtype)
    return Case(kind, [a, b], fmod=d.pick(0, 1) if kind == "Mod" else None)


def comparison(d):
    kind = d.one_of("Equal", "Greater", "Less", "GreaterOrEqual", "LessOrEqual")
    since(d, 13)
    types = (F32, F16, I32, I64, np.uint8, np.int8) + ((BOOL,) if kind == "Equal" else ())
    return Case(kind, two(d, d.one_of(*types)))


def logic(d):
    if d.chance(4):
        return Case("Not", [d.values(d.shape(), BOOL)])
    return Case(d.one_of("And", "Or", "Xor"), two(d, BOOL))


def where(d):
    dtype = d.one_of(*ALL)
    shape = d.shape()
    inputs = [d.values(d.part(shape), t) for t in (BOOL, dtype, dtype)]
    return Case("Where", inputs)


def cast(d):
    to = d.one_of(1, 2, 3, 6, 7, 9, 10)
    return Case("Cast", [d.values(d.shape(), d.one_of(F32, F16, I32, I64, BOOL, np.uint8, np.int8))], to=to)


# ---- Products ----


def matmul(d):
    rows, depth, columns = (d.one_of(1, 1, 2, 3, 7, 8, 9, 16, 33, 65, 127) for _ in range(3))
    if d.chance(4): depth = d.one_of(128, 129, 257, 1000, 2048, 2049)
    batch = d.shape(0, 3, False, (1, 2, 3), 6)
    dtype = d.one_of(*FLOATS)
    a, b = d.part(batch) + [rows, depth], d.part(batch) + [depth, columns]
    if d.chance(8): a = [depth]
    elif d.chance(8): b = [depth]
    case = Case("MatMul", [d.values(a, dtype), d.values(b, dtype)], is_sum=True)
    return case.constant(1) if d.pick(0, 1) else case


def gemm(d):
    since(d, 11)
    m, k, n = (d.one_of(1, 2, 3, 7, 8, 9, 16, 33, 65, 127, 300) for _ in range(3))
    turns_a, turns_b, dtype = d.pick(0, 1), d.pick(0, 1), d.one_of(*FLOATS)
    inputs = [d.values([k, m] if turns_a else [m, k], dtype), d.values([n, k] if turns_b else [k, n], dtype)]
    if d.pick(0, 2):
        inputs.append(d.values(d.one_of([], [1], [n], [1, n], [m, 1], [m, n], [1, 1]), dtype))
    case = Case("Gemm", inputs, transA=turns_a, transB=turns_b, alpha=d.one_of(1.0, 0.5, -1.25), is_sum=True,
                beta=d.one_of(1.0, 0.5, 2.0, 0.0))
    return case.constant(1, *([2] if d.pick(0, 1) else [])) if d.pick(0, 1) else case


def einsum(d):
    since(d, 12)
    equation = d.one_of("ij,jk->ik", "bij,bjk->bik", "bhid,bhjd->bhij", "bhij,bhjd->bhid", "ij,kj->ik", "bid,hde->bhie",
                        "ij,ij->i", "i,j->ij", "...ij,...jk->...ik", "abc,cd->abd", "ab,abc->c")
    extents = {c: d.one_of(1, 2, 3, 5, 8, 17) for c in "abcdeijkh"}
    dots = d.shape(0, 2, False, (1, 2, 3))
    shapes = [(dots if "..." in t else []) + [extents[c] for c in t if c != "."]
              for t in equation.split("->")[0].split(",")]
    dtype = d.one_of(*FLOATS)
    return Case("Einsum", [d.values(s, dtype) for s in shapes], equation=equation, is_sum=True)


# ---- Rows ----


def softmax(d):
    x = d.values(d.shape(1), d.one_of(*FLOATS))
    kind = d.one_of("Softmax", "LogSoftmax")
    axis = d.axis(x.ndim) if d.opset >= 11 else d.pick(0, x.ndim - 1)
    return Case(kind, [x], axis=axis, is_sum=True)


def long_row(d):
    x = d.values([d.pick(1, 3), d.one_of(255, 256, 257, 1023, 1025, 4097)], d.one_of(*FLOATS))
    if d.pick(0, 1):
        return Case("Softmax", [x], axis=-1 if d.opset >= 11 else 1, is_sum=True)
    since(d, 17)
    w = [d.values(x.shape[1:], x.dtype, "tame") for _ in range(2)]
    return Case("LayerNormalization", [x] + w, axis=-1, epsilon=1e-3, is_sum=True)


def reduce(d):
    kind = d.one_of("Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "SumSquare", "LogSum", "LogSumExp")
    x = d.values(d.shape(0), d.one_of(*FLOATS))
    axes, keeps = d.axes(x.ndim, 0) if x.ndim else [], d.pick(0, 1)
    if 0 in x.shape and d.opset < 18: raise Misfit()
    axes_are_inputs = d.opset >= (13 if kind == "Sum" else 18)
    if d.opset < 11: axes = [a % x.ndim for a in axes]
    if axes_are_inputs:
        inputs = [x, np.array(axes, I64)] if axes or d.pick(0, 1) else [x]
        return Case("Reduce" + kind, inputs, keepdims=keeps, is_sum=True,
                    noop_with_empty_axes=d.one_of(None, 0, 1)).constant(1)
    return Case("Reduce" + kind, [x], keepdims=keeps, axes=axes or None, is_sum=True)


def layer_norm(d):
    since(d, 17)
    x = d.values(d.shape(1), d.one_of(*FLOATS))
    axis = d.axis(x.ndim)
    inputs = [x, d.values(x.shape[axis % x.ndim:], x.dtype, "tame")]
    if d.opset >= 23 and d.pick(0, 1):
        return Case("RMSNormalization", inputs, axis=axis, epsilon=d.one_of(1e-5, 1e-2), is_sum=True)
    if d.pick(0, 1): inputs.append(d.values(inputs[1].shape, x.dtype, "tame"))
    return Case("LayerNormalization", inputs, axis=axis, epsilon=d.one_of(1e-5, 1e-2), is_sum=True)


def channel_norm(d):
    kind = d.one_of("InstanceNormalization", "BatchNormalization", "LRN", "GroupNormalization")
    x = d.values([d.pick(1, 3), d.one_of(1, 2, 4, 6, 33)] + d.shape(1, 3, False, limit=400), d.one_of(*FLOATS))
    channels = x.shape[1]
    if kind == "LRN":
        return Case(kind, [x], size=d.pick(1, 6), alpha=0.3, beta=d.one_of(0.75, 0.5), bias=1.5, is_sum=True)
    if kind == "BatchNormalization":
        since(d, 15)
        w = [d.values([channels], x.dtype, "tame") for _ in range(4)]
        w[3] = np.abs(w[3])
        return Case(kind, [x] + w, epsilon=1e-3, is_sum=True).constant(*([1, 2, 3, 4] if d.pick(0, 1) else []))
    w = [d.values([channels], x.dtype, "tame") for _ in range(2)]
    if kind == "GroupNormalization":
        since(d, 21)
        return Case(kind, [x] + w, num_groups=d.one_of(*[g for g in (1, 2, 3, channels) if channels % g == 0]),
                    epsilon=1e-2, is_sum=True)
    return Case(kind, [x] + w, epsilon=1e-2, is_sum=True)


def cumsum(d):
    since(d, 14)
    x = d.values(d.shape(1), d.one_of(*NUMBERS))
    return Case("CumSum", [x, np.array(d.axis(x.ndim), d.one_of(I32, I64))], exclusive=d.pick(0, 1), is_sum=True,
                reverse=d.pick(0, 1)).constant(1)


def position(d):
    since(d, 13)
    x = d.values(d.shape(1, empty=False), d.one_of(*NUMBERS))
    return Case(d.one_of("ArgMax", "ArgMin"), [x], axis=d.axis(x.ndim), keepdims=d.pick(0, 1),
                select_last_index=d.pick(0, 1))


def topk(d):
    since(d, 11)
    x = d.values(d.shape(1, empty=False), d.one_of(*NUMBERS))
    axis = d.axis(x.ndim)
    return Case("TopK", [x, np.array([d.pick(0, x.shape[axis])], I64)], 2, axis=axis, largest=d.pick(0, 1),
                sorted=1).constant(1)


# ---- Layout and lookup ----


def transpose(d):
    x = d.values(d.shape(0), d.one_of(*ALL))
    return Case("Transpose", [x], perm=d.random.permutation(x.ndim).tolist() if x.ndim and d.pick(0, 4) else None)


def view(d):
    x = d.values(d.shape(0), d.one_of(*ALL))
    kind = d.one_of("Reshape", "Flatten", "Unsqueeze", "Squeeze", "Identity", "Expand")
    if kind == "Reshape":
        at = d.pick(0, x.ndim)
        shape = [-1 if math.prod(x.shape) else math.prod(x.shape[:at])] + list(x.shape[at:])
        return Case(kind, [x, np.array(shape, I64)], allowzero=1 if 0 in x.shape and d.opset >= 14 else None).constant(1)
    if kind == "Flatten":
        return Case(kind, [x], axis=d.pick(-x.ndim, x.ndim) if d.opset >= 11 else d.pick(0, x.ndim))
    if kind == "Expand":
        y = d.values(d.part(d.shape(0)), x.dtype)
        whole = [d.one_of(1, 2, 3)] * d.pick(0, 8 - y.ndim) + [d.one_of(2, 5) if e == 1 else e for e in y.shape]
        if math.prod(whole) > MOST_ELEMENTS: raise Misfit()
        return Case(kind, [y, np.array(whole, I64)]).constant(1)
    if kind == "Identity":
        return Case(kind, [x])
    since(d, 13)
    if kind == "Unsqueeze":
        if x.ndim > 6: raise Misfit()
        return Case(kind, [x, np.array(d.axes(x.ndim + d.pick(1, 2))[:1], I64)]).constant(1) if d.pick(0, 1) else \
            Case(kind, [x, np.array([0, -1], I64)]).constant(1)
    ones = [i for i, e in enumerate(x.shape) if e == 1]
    return Case(kind, [x, np.array(ones, I64)]).constant(1) if ones else Case(kind, [x])


def concat(d):
    shape, dtype = d.shape(1, empty=False, limit=4000), d.one_of(*ALL)
    axis = d.axis(len(shape))
    parts = []
    for _ in range(d.one_of(1, 2, 3, 4, 5, 9)):
        part = list(shape)
        part[axis] = d.one_of(0, 1, 2, 3, 5)
        parts.append(d.values(part, dtype))
    case = Case("Concat", parts, axis=axis if d.opset >= 11 else axis % len(shape))
    return case.constant(d.pick(0, len(parts) - 1)) if len(parts) > 1 and d.pick(0, 1) else case


def split(d):
    x = d.values(d.shape(1, empty=False), d.one_of(*ALL))
    axis, parts = d.axis(x.ndim), d.pick(1, 5)
    if d.opset >= 18 and d.pick(0, 1):
        count = -(-x.shape[axis] // parts)
        if count * (parts - 1) > x.shape[axis]: raise Misfit()
        return Case("Split", [x], parts, axis=axis, num_outputs=parts)
    since(d, 13)
    ends = sorted(d.random.integers(0, x.shape[axis] + 1, parts - 1).tolist())
    sizes = np.diff([0] + ends + [x.shape[axis]])
    return Case("Split", [x, np.array(sizes, I64)], parts, axis=axis).constant(1)


def slice_(d):
    since(d, 10)
    x = d.values(d.shape(1), d.one_of(*ALL))
    axes = d.axes(x.ndim)
    starts, ends, steps = [], [], []
    for a in axes:
        e = x.shape[a] + 2
        starts.append(d.pick(-e, e))
        ends.append(d.one_of(d.pick(-e, e), 2**62, -2**62))
        steps.append(d.one_of(1, 1, 2, 3, -1, -2))
    kind = d.one_of(I32, I64)
    if kind == I32: ends = [max(-2**30, min(2**30, e)) for e in ends] # its largest is a sign to others
    return Case("Slice", [x] + [np.array(v, kind) for v in (starts, ends, axes, steps)]).constant(1, 2, 3, 4)


def pad(d):
    since(d, 13)
    x = d.values(d.shape(1, empty=False, limit=3000), d.one_of(*ALL))
    mode = d.one_of(*(("constant", "edge", "reflect") + (("wrap",) if d.opset >= 19 else ())))
    least = -1 if mode == "constant" else 0
    most = [min(3, e - 1) if mode == "reflect" else min(3, e) if mode == "wrap" else 3 for e in x.shape]
    pads = [d.pick(max(least, 1 - e if e < 3 else least), m) if m > 0 else 0 for e, m in zip(list(x.shape) * 2, most * 2)]
    if math.prod(e + pads[i] + pads[i + x.ndim] for i, e in enumerate(x.shape)) > 4 * MOST_ELEMENTS: raise Misfit()
    inputs = [x, np.array(pads, I64)]
    if mode == "constant" and d.pick(0, 1): inputs.append(d.values([], x.dtype))
    return Case("Pad", inputs, mode=mode).constant(1, 2)


def tile(d):
    x = d.values(d.shape(1, limit=2000), d.one_of(*ALL))
    repeats = [d.one_of(1, 1, 2, 3, 0 if d.chance(10) else 1) for _ in x.shape]
    if math.prod(repeats) * x.size > MOST_ELEMENTS * 3: raise Misfit()
    return Case("Tile", [x, np.array(repeats, I64)]).constant(1)


def trilu(d):
    since(d, 14)
    x = d.values(d.shape(2), d.one_of(*ALL))
    return Case("Trilu", [x] + ([np.array(d.pick(-9, 9), I64)] if d.pick(0, 2) else []), upper=d.pick(0, 1)).constant(1)


def blocks(d):
    n, c, h, w, b = d.pick(1, 2), d.pick(1, 5), d.pick(1, 9), d.pick(1, 9), d.pick(1, 3)
    if d.pick(0, 1):
        return Case("SpaceToDepth", [d.values([n, c, h * b, w * b], d.one_of(F32, F16) if d.opset >= 13 else F32)], blocksize=b)
    return Case("DepthToSpace", [d.values([n, c * b * b, h, w], F32)], blocksize=b,
                mode=d.one_of("DCR", "CRD") if d.opset >= 11 else None)


def indices(d, shape, extent, negative=True):
    return d.values(shape, d.one_of(I32, I64), low=-extent if negative else 0, high=extent - 1)


def gather(d):
    x = d.values(d.shape(1, 6, empty=False), d.one_of(*ALL))
    axis = d.axis(x.ndim)
    at = indices(d, d.shape(0, 2, extents=(1, 2, 3, 5, 17)), x.shape[axis], d.opset >= 11)
    if x.size // x.shape[axis] * at.size > 5 * MOST_ELEMENTS: raise Misfit()
    case = Case("Gather", [x, at], axis=axis)
    return case.constant(d.pick(0, 1)) if d.pick(0, 1) else case


def gather_elements(d):
    since(d, 11)
    x = d.values(d.shape(1, empty=False), d.one_of(*ALL))
    axis = d.axis(x.ndim)
    shape = [d.pick(1, e) for e in x.shape]
    shape[axis] = d.pick(1, 9)
    return Case("GatherElements", [x, indices(d, shape, x.shape[axis])], axis=axis)


def nd_indices(d, shape, batch, index_shape):
    tuple_size = d.pick(1, len(shape) - batch)
    columns = [d.values(index_shape + [1], I64, low=-e, high=e - 1) for e in shape[batch:batch + tuple_size]]
    return np.concatenate(columns, -1), tuple_size


def gather_nd(d):
    since(d, 12)
    x = d.values(d.shape(1, 6, empty=False), d.one_of(*ALL))
    batch = d.pick(0, min(2, x.ndim - 1))
    at, _ = nd_indices(d, x.shape, batch, list(x.shape[:batch]) + d.shape(0, 2, False, (1, 2, 5)))
    if at.size * x.size > 40 * MOST_ELEMENTS: raise Misfit()
    return Case("GatherND", [x, at], batch_dims=batch)


def scatter(d):
    since(d, 16)
    dtype = d.one_of(*ALL)
    x = d.values(d.shape(1, 6, empty=False, limit=3000), dtype)
    how = d.one_of("none", "none", "add", "mul") if d.opset < 18 else d.one_of("none", "none", "add", "mul", "max", "min")
    if np.dtype(dtype).kind not in "fi" or np.dtype(dtype).itemsize == 1: how = "none"
    if d.pick(0, 1):
        axis = d.axis(x.ndim)
        shape = [d.pick(1, min(e, 4)) for e in x.shape]
        at = indices(d, shape, x.shape[axis])
        return Case("ScatterElements", [x, at, d.values(shape, dtype)], axis=axis, reduction=how, is_sum=True)
    at, count = nd_indices(d, x.shape, 0, d.shape(0, 2, False, (1, 2, 5)))
    if at.size * x.size > 40 * MOST_ELEMENTS: raise Misfit()
    return Case("ScatterND", [x, at, d.values(list(at.shape[:-1]) + list(x.shape[count:]), dtype)], reduction=how, is_sum=True)


def one_hot(d):
    since(d, 11)
    at = d.values(d.shape(0, 4, limit=300), d.one_of(I32, I64), low=-9, high=9)
    dtype = d.one_of(F32, I32, I64, F16)
    return Case("OneHot", [at, np.array(d.one_of(1, 3, 8), I64), d.values([2], dtype)], axis=d.pick(-at.ndim - 1, at.ndim)).constant(1)


# ---- Windows ----


def conv(d):
    axes = d.one_of(1, 2, 2, 2, 3)
    group = d.one_of(1, 1, 1, 2, 3, 8)
    inner, outer = d.one_of(1, 2, 3, 4, 8, 16, 17), d.one_of(1, 2, 4, 8, 9, 33)
    if group == 8 and d.pick(0, 1): inner = outer = 1
    kernel = [d.one_of(1, 1, 2, 3, 3, 5) for _ in range(axes)]
    strides, dilations = [d.one_of(1, 1, 2, 3) for _ in kernel], [d.one_of(1, 1, 2) for _ in kernel]
    transposed = d.chance(3)
    most = {1: (1, 3, 9, 33, 127), 2: (1, 3, 7, 9, 17), 3: (1, 3, 5)}[axes]
    space = [d.one_of(*most) for _ in kernel]
    dtype = d.one_of(*FLOATS)
    attributes = dict(kernel_shape=kernel if d.pick(0, 1) else None, strides=strides, dilations=dilations, group=group)
    padding = d.pick(0, 3)
    if padding == 0: attributes["pads"] = [d.pick(0, k - 1) for k in kernel * 2]
    elif padding == 1: attributes["auto_pad"] = d.one_of("SAME_UPPER", "SAME_LOWER", "VALID")
    pads = attributes.get("pads", [0] * 2 * axes)
    for i in range(axes):
        reach = (kernel[i] - 1) * dilations[i] + 1
        if transposed and (space[i] - 1) * strides[i] + reach - pads[i] - pads[i + axes] < 1: raise Misfit()
        if not transposed and attributes.get("auto_pad", "")[:4] != "SAME" and space[i] + pads[i] + pads[i + axes] < reach:
            raise Misfit()
        if transposed and attributes.get("auto_pad", "")[:4] == "SAME" and reach < strides[i]: raise Misfit()
    x = d.values([d.pick(1, 3), inner * group] + space, dtype)
    shape = [inner * group, outer] + kernel if transposed else [outer * group, inner] + kernel
    inputs = [x, d.values(shape, dtype)] + ([d.values([outer * group], dtype)] if d.pick(0, 1) else [])
    if transposed and d.chance(3) and "auto_pad" not in attributes:
        attributes["output_padding"] = [d.pick(0, max(s, l) - 1) for s, l in zip(strides, dilations)]
    case = Case("ConvTranspose" if transposed else "Conv", inputs, is_sum=True, **attributes)
    return case.constant(1, 2) if d.pick(0, 2) else case


def pool(d):
    kind = d.one_of("MaxPool", "AveragePool", "LpPool", "GlobalMaxPool", "GlobalAveragePool", "GlobalLpPool")
    axes = d.one_of(1, 2, 2, 3)
    space = [d.one_of(1, 3, 7, 9, 17) for _ in range(axes)]
    x = d.values([d.pick(1, 3), d.pick(1, 5)] + space, d.one_of(*FLOATS))
    if kind.startswith("Global"):
        return Case(kind, [x], is_sum=True, p=d.one_of(1, 2, 3) if kind == "GlobalLpPool" else None)
    kernel = [d.pick(1, min(5, e)) for e in space]
    attributes = dict(kernel_shape=kernel, strides=[d.pick(1, 3) for _ in kernel])
    if d.pick(0, 1): attributes["pads"] = [d.pick(0, (k - 1) // 2) for k in kernel * 2]
    elif d.chance(3): attributes["auto_pad"] = d.one_of("SAME_UPPER", "SAME_LOWER", "VALID")
    if kind == "LpPool":
        since(d, 18)
        attributes["p"] = d.one_of(1, 2, 3)
    elif d.opset >= 10: attributes["ceil_mode"] = d.pick(0, 1)
    if kind == "AveragePool": attributes["count_include_pad"] = d.pick(0, 1)
    if kind == "MaxPool" and d.opset >= 10:
        reach = [2 if k * 2 - 1 <= e and d.chance(2) else 1 for k, e in zip(kernel, space)]
        attributes["dilations"] = reach
    return Case(kind, [x], d.pick(1, 2) if kind == "MaxPool" else 1, is_sum=True, **attributes)


def resize(d):
    since(d, 13)
    x = d.values([d.pick(1, 2), d.pick(1, 4)] + [d.one_of(1, 2, 3, 5, 9, 17) for _ in range(d.pick(1, 3))], d.one_of(*FLOATS))
    mode = d.one_of("nearest", "linear", "cubic")
    if mode == "cubic" and x.ndim != 4: raise Misfit()
    attributes = dict(mode=mode, coordinate_transformation_mode=d.one_of("half_pixel", "asymmetric", "align_corners",
                                                                          "pytorch_half_pixel"))
    if mode == "nearest":
        attributes["nearest_mode"] = d.one_of("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
    if mode == "cubic":
        attributes.update(exclude_outside=d.pick(0, 1), cubic_coeff_a=d.one_of(-0.75, -0.5))
    if d.opset >= 18 and mode != "nearest" and x.ndim == 4: attributes["antialias"] = d.pick(0, 1)
    if d.pick(0, 1):
        sizes = list(x.shape[:2]) + [d.pick(1, 19) for _ in x.shape[2:]]
        return Case("Resize", [x, None, None, np.array(sizes, I64)], is_sum=True, **attributes).constant(3)
    scales = [1.0, 1.0] + [d.one_of(0.5, 1.5, 2.0, 3.0, 0.37, 1.0) for _ in x.shape[2:]]
    if any(int(e * s) < 1 for e, s in zip(x.shape, scales)): raise Misfit()
    return Case("Resize", [x, None, np.array(scales, F32)], is_sum=True, **attributes).constant(2)


def grid_sample(d):
    since(d, 20)
    axes = d.one_of(2, 2, 3)
    x = d.values([d.pick(1, 2), d.pick(1, 4)] + [d.pick(1, 9) for _ in range(axes)], d.one_of(*FLOATS))
    grid = d.values([x.shape[0]] + [d.pick(1, 7) for _ in range(axes)] + [axes], x.dtype)
    mode = d.one_of("linear", "nearest", "cubic") if axes == 2 else d.one_of("linear", "nearest")
    return Case("GridSample", [x, grid], mode=mode, padding_mode=d.one_of("zeros", "border", "reflection"),
                align_corners=d.pick(0, 1), is_sum=True)


def roi_align(d):
    since(d, 16)
    x = d.values([2, d.pick(1, 4), d.pick(1, 17), d.pick(1, 17)], d.one_of(*FLOATS))
    rois = np.sort(np.abs(d.values([d.pick(1, 5), 2, 2], F32, "tame")) * 9, 1).reshape(-1, 4).astype(x.dtype)
    return Case("RoiAlign", [x, rois, d.values([len(rois)], I64, low=0, high=1)], output_height=d.pick(1, 5),
                output_width=d.pick(1, 5), sampling_ratio=d.pick(0, 3), spatial_scale=d.one_of(1.0, 0.5), is_sum=True,
                mode=d.one_of("avg", "max"), coordinate_transformation_mode=d.one_of("half_pixel", "output_half_pixel"))


# ---- Attention ----


def attention(d):
    since(d, 23)
    heads, shared, size, keys, rows = d.one_of(1, 2, 4), d.one_of(1, 2), d.one_of(1, 8, 16, 33, 64), d.one_of(1, 3, 17, 65, 127), d.one_of(1, 2, 7, 33)
    batch, dtype = d.pick(1, 2), d.one_of(*FLOATS)
    value_size = d.one_of(size, 8, 24)
    inputs = [d.values([batch, heads * shared, rows, size], dtype), d.values([batch, heads, keys, size], dtype),
              d.values([batch, heads, keys, value_size], dtype)]
    mask = d.pick(0, 2)
    if mask: inputs.append(d.values(d.one_of([rows, keys], [batch, 1, rows, keys], [1, 1, rows, keys]), BOOL if mask == 1 else dtype,
                                    "tame"))
    return Case("Attention", inputs, is_causal=d.pick(0, 1), softcap=d.one_of(0.0, 0.0, 5.0), is_sum=True,
                scale=d.one_of(None, 0.3))


def rotary(d):
    since(d, 23)
    batch, heads, rows, half = d.pick(1, 2), d.pick(1, 3), d.pick(1, 9), d.one_of(1, 2, 8, 17)
    dtype = d.one_of(*FLOATS)
    x = d.values([batch, heads, rows, 2 * half], dtype)
    table = [d.values([12, half], dtype) for _ in range(2)]
    return Case("RotaryEmbedding", [x] + table + [d.values([batch, rows], I64, low=0, high=11)], interleaved=d.pick(0, 1))


KINDS = [unary, unary, unary_of_scalars, clip, is_kind, binary, binary, comparison, logic, where, cast, matmul, matmul, gemm,
         einsum, softmax, long_row, reduce, reduce, layer_norm, channel_norm, cumsum, position, topk, transpose, view,
         concat, split, slice_, pad, tile, trilu, blocks, gather, gather_elements, gather_nd, scatter, one_hot, conv, conv,
         pool, resize, grid_sample, roi_align, attention, rotary]


def since(d, opset):
    if d.opset < opset:
        raise Misfit()


CHAIN = ("Relu", "Sigmoid", "Tanh", "Neg", "Abs", "Erf", "Add", "Sub", "Mul", "Max", "Div")


def chain_of(d, shape, dtype):
    """Elementwise operators behind a result of this shape: a device applies them where it stores it."""
    chain = []
    for _ in range(d.pick(1, 3)):
        kind = d.one_of(*CHAIN)
        is_binary = kind in ("Add", "Sub", "Mul", "Max", "Div")
        chain.append((kind, d.values(d.part(shape), dtype, "tame") if is_binary else None))
    return chain


def make(random, opset, has_subnormals, manner=None):
    while True:
        d = Draw(random, opset, has_subnormals)
        d.manner = manner or d.manner
        try:
            case = d.one_of(*KINDS)(d)
        except Misfit:
            continue
        case.manner = d.manner
        return case, d
