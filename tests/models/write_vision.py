#!/usr/bin/env python3
"""Writes vision models as exporters write them, with seeded random weights, and ONNX Runtime's results.

    write_vision.py OUT_FOLDER

resnet50       the classifier of 50 layers
mobilenet_v2   inverted residuals, Clip to 0..6
mobilenet_v3   the large one: squeeze-and-excite, HardSwish spelled as exporters do before opset 14
vit            a vision transformer: patches of 16, a class token, 12 layers of width 192
lraspp         segmentation on mobilenet_v3, dilated at its end; height and width are dynamic
ssdlite        detection on mobilenet_v3: six maps, anchors, boxes and scores, then NonMaxSuppression

Widths and depths are the published ones; pictures are small. Each is there in float32 and float16
(NAME_half). For each model and case: NAME_CASE.x, the input, and NAME_CASE.y, what ONNX Runtime makes of
it; both are files of a rank, the extents (int64) and float32 elements.

Exit code 77: there is no python3-onnx or no onnxruntime here.
"""
import math
import pathlib
import sys

from write_encoders import Graph

import numpy as np
from onnx import TensorProto, checker, helper, save

try:
    import onnxruntime
except ImportError as error:
    print(error)
    sys.exit(77)

from write_references import write

CLASSES = 100
SSD_SIDE, SSD_CLASSES, SSD_BOXES = 96, 11, 6


class Picture(Graph):
    """A graph of pictures; `half`: of float16, with the same weights, rounded."""

    def __init__(self, opset, half, width=0, heads=1):
        super().__init__(opset, width, heads)
        self.half = half

    def weight(self, array, stem="w"):
        array = np.asarray(array)
        if self.half and array.dtype == np.float32 and stem != "scales":
            array = array.astype(np.float16)
        return super().weight(array, stem)

    def normal(self, scale, *shape):
        return self.weight((scale * self.random.standard_normal(shape)).astype(np.float32))

    def conv(self, x, inputs, outputs, kernel=1, stride=1, group=1, dilation=1, bias=True, gain=2.0):
        fan = inputs // group * kernel * kernel
        weights = self.normal(math.sqrt(gain / fan), outputs, inputs // group, kernel, kernel)
        edge = dilation * (kernel // 2)
        operands = [x, weights] + ([self.normal(0.1, outputs)] if bias else [])
        return self.add("Conv", *operands, kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[edge] * 4,
                        group=group, dilations=[dilation] * 2)

    def unit(self, x, inputs, outputs, kernel=1, act=None, gain=2.0, **options):
        """A convolution, its batch normalisation, an activation."""
        x = self.conv(x, inputs, outputs, kernel, bias=False, gain=gain, **options)
        spread = lambda low, high: self.weight(self.random.uniform(low, high, outputs).astype(np.float32))
        x = self.add("BatchNormalization", x, spread(0.8, 1.2), spread(-0.1, 0.1), spread(-0.1, 0.1),
                     spread(0.8, 1.2), epsilon=1e-5)
        return act(x) if act else x

    def relu(self, x):
        return self.add("Relu", x)

    def relu6(self, x):
        return self.add("Clip", x, self.f32(0), self.f32(6))

    def hard_swish(self, x):
        if self.opset >= 14:
            return self.add("HardSwish", x)
        inner = self.add("Clip", self.add("Add", x, self.f32(3)), self.f32(0), self.f32(6))
        return self.add("Div", self.add("Mul", x, inner), self.f32(6))

    def classify(self, x, width):
        x = self.add("Flatten", self.add("GlobalAveragePool", x), axis=1)
        return self.add("Gemm", x, self.normal(1 / math.sqrt(width), CLASSES, width), self.normal(0.1, CLASSES),
                        transB=1)

    def picture(self, *dims):
        self.inputs = [helper.make_tensor_value_info("x", self.kind(), ["batch", 3, *dims])]
        return "x"

    def kind(self):
        return TensorProto.FLOAT16 if self.half else TensorProto.FLOAT

    def write(self, folder, name, *results):
        """Results are (value, rank) or (value, rank, type)."""
        outputs = []
        for i, (value, rank, *kind) in enumerate(results):
            self.nodes.append(helper.make_node("Identity", [value], [f"y{i}"], name=f"result{i}"))
            dims = [f"y{i}_{d}" for d in range(rank)]
            outputs.append(helper.make_tensor_value_info(f"y{i}", kind[0] if kind else self.kind(), dims))
        graph = helper.make_graph(self.nodes, name, self.inputs, outputs, self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=8)
        checker.check_model(model)
        save(model, str(folder / f"{name}{'_half' if self.half else ''}.onnx"))


# ---- Models ----


def resnet50(half):
    g = Picture(13, half)
    x = g.unit(g.picture("height", "width"), 3, 64, 7, g.relu, stride=2)
    x = g.add("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    inputs = 64
    for width, count, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for i in range(count):
            step = stride if i == 0 else 1
            y = g.unit(x, inputs, width, 1, g.relu)
            y = g.unit(y, width, width, 3, g.relu, stride=step)
            y = g.unit(y, width, 4 * width, 1, gain=0.5)
            if i == 0:
                x = g.unit(x, inputs, 4 * width, 1, stride=step, gain=1.0)
            inputs = 4 * width
            x = g.relu(g.add("Add", y, x))
    return g, [(g.classify(x, inputs), 2)]


def mobilenet_v2(half):
    g = Picture(13, half)
    x, inputs = g.unit(g.picture("height", "width"), 3, 32, 3, g.relu6, stride=2), 32
    for expand, outputs, count, stride in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2),
                                           (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)):
        for i in range(count):
            step, width = stride if i == 0 else 1, inputs * expand
            y = g.unit(x, inputs, width, 1, g.relu6) if expand > 1 else x
            y = g.unit(y, width, width, 3, g.relu6, stride=step, group=width)
            y = g.unit(y, width, outputs, gain=1.0)
            x = g.add("Add", x, y) if step == 1 and inputs == outputs else y
            inputs = outputs
    x = g.unit(x, inputs, 1280, 1, g.relu6)
    return g, [(g.classify(x, 1280), 2)]


# kernel, width, outputs, squeeze-and-excite, HardSwish, stride
BLOCKS = ((3, 16, 16, False, False, 1), (3, 64, 24, False, False, 2), (3, 72, 24, False, False, 1),
          (5, 72, 40, True, False, 2), (5, 120, 40, True, False, 1), (5, 120, 40, True, False, 1),
          (3, 240, 80, False, True, 2), (3, 200, 80, False, True, 1), (3, 184, 80, False, True, 1),
          (3, 184, 80, False, True, 1), (3, 480, 112, True, True, 1), (3, 672, 112, True, True, 1),
          (5, 672, 160, True, True, 2), (5, 960, 160, True, True, 1), (5, 960, 160, True, True, 1))


def excite(g, x, width):
    squeezed = max(8, int(width / 4 + 4) // 8 * 8)
    y = g.relu(g.conv(g.add("GlobalAveragePool", x), width, squeezed))
    y = g.add("HardSigmoid", g.conv(y, squeezed, width), alpha=1 / 6)
    return g.add("Mul", y, x)


def mobilenet_v3_body(g, x, kept, dilates):
    """The convolutions; `kept` gets the map that each block leaves, and the expanded one of block 12."""
    x, inputs = g.unit(x, 3, 16, 3, g.hard_swish, stride=2), 16
    for i, (kernel, width, outputs, excites, is_hard, stride) in enumerate(BLOCKS):
        act = g.hard_swish if is_hard else g.relu
        dilation = 2 if dilates and i >= 12 else 1
        y = g.unit(x, inputs, width, 1, act) if width != inputs else x
        if i == 12:
            kept["expanded"] = y
        y = g.unit(y, width, width, kernel, act, stride=1 if dilation > 1 else stride, group=width, dilation=dilation)
        y = g.unit(excite(g, y, width) if excites else y, width, outputs, gain=1.0)
        x = g.add("Add", x, y) if stride == 1 and inputs == outputs else y
        kept[i], inputs = x, outputs
    return g.unit(x, inputs, 960, 1, g.hard_swish)


def mobilenet_v3(half):
    g = Picture(13, half)
    x = mobilenet_v3_body(g, g.picture("height", "width"), {}, False)
    x = g.add("Flatten", g.add("GlobalAveragePool", x), axis=1)
    x = g.hard_swish(g.add("Gemm", x, g.normal(1 / math.sqrt(960), 1280, 960), g.normal(0.1, 1280), transB=1))
    return g, [(g.add("Gemm", x, g.normal(1 / math.sqrt(1280), CLASSES, 1280), g.normal(0.1, CLASSES), transB=1), 2)]


def vit(half, side=64):
    width, layers = 192, 12
    g = Picture(17, half, width, 3)
    x = g.add("Conv", g.picture(side, side), g.normal(1 / math.sqrt(768), width, 3, 16, 16), g.normal(0.1, width),
              kernel_shape=[16, 16], strides=[16, 16])
    x = g.add("Transpose", g.add("Reshape", x, g.ints(0, width, -1)), perm=[0, 2, 1])
    token = g.add("Expand", g.normal(1, 1, 1, width), g.dims(g.extent("x", 0), 1, width))
    x = g.add("Concat", token, x, axis=1)
    x = g.add("Add", x, g.normal(0.3, 1, (side // 16) ** 2 + 1, width))
    for _ in range(layers):
        x = g.add("Add", x, g.attention(g.norm(x), None, False))
        x = g.add("Add", x, g.block(g.norm(x)))
    x = g.add("Gather", g.norm(x), g.int0(0), axis=1)
    return g, [(g.linear(x, CLASSES), 2)]


def lraspp(half):
    g, kept = Picture(13, half), {}
    high = mobilenet_v3_body(g, g.picture("height", "width"), kept, True)
    low = kept[5]
    y = g.unit(high, 960, 128, 1, g.relu)
    scale = g.add("Sigmoid", g.conv(g.add("GlobalAveragePool", high), 960, 128, bias=False))
    y = resized(g, g.add("Mul", y, scale), low)
    y = g.add("Add", g.conv(low, 40, 21), g.conv(y, 128, 21))
    return g, [(resized(g, y, "x"), 4)]


def resized(g, x, like):
    """Linearly, to the height and width of another map."""
    batch = g.add("Slice", g.add("Shape", x), g.ints(0), g.ints(2), g.ints(0))
    sizes = g.add("Slice", g.add("Shape", like), g.ints(2), g.ints(4), g.ints(0))
    scales = g.weight(np.zeros(0, np.float32), "scales")
    return g.add("Resize", x, "", scales, g.add("Concat", batch, sizes, axis=0), mode="linear",
                 coordinate_transformation_mode="pytorch_half_pixel")


def ssdlite(half, side=SSD_SIDE):
    g, kept = Picture(13, half), {}
    x = mobilenet_v3_body(g, g.picture(side, side), kept, False)
    maps = [(kept["expanded"], 672), (x, 960)]
    for outputs in (512, 256, 256, 128):
        inputs, width = maps[-1][1], outputs // 2
        y = g.unit(maps[-1][0], inputs, width, 1, g.relu6)
        y = g.unit(y, width, width, 3, g.relu6, stride=2, group=width)
        maps.append((g.unit(y, width, outputs, 1, g.relu6), outputs))
    boxes, scores = head(g, maps, 4), g.add("Softmax", head(g, maps, SSD_CLASSES), axis=-1)
    boxes = decode(g, boxes, anchors(side))
    by_class = g.add("Transpose", scores, perm=[0, 2, 1])
    # NonMaxSuppression takes float32 alone.
    to = (lambda v: g.add("Cast", v, to=TensorProto.FLOAT)) if half else (lambda v: v)
    threshold = lambda v: g.weight(np.array([v], np.float32), "scales")
    chosen = g.add("NonMaxSuppression", to(boxes), to(by_class), g.ints(20), threshold(0.55), threshold(0.2))
    return g, [(boxes, 3), (scores, 3), (chosen, 2, TensorProto.INT64)]


def head(g, maps, columns):
    """[batch, boxes, columns] of all maps."""
    parts = []
    for x, width in maps:
        y = g.unit(x, width, width, 3, g.relu6, group=width)
        y = g.conv(y, width, SSD_BOXES * columns, gain=1.0)
        shape = g.dims(g.extent(y, 0), SSD_BOXES, columns, g.extent(y, 2), g.extent(y, 3))
        y = g.add("Transpose", g.add("Reshape", y, shape), perm=[0, 3, 4, 1, 2])
        parts.append(g.add("Reshape", y, g.dims(g.extent(y, 0), -1, columns)))
    return g.add("Concat", *parts, axis=1)


def anchors(picture_side):
    """Centre, width and height of each box, in parts of the picture."""
    rows, side = [], picture_side // 16
    for level in range(6):
        scale = 0.2 + 0.15 * level
        for y in range(side):
            for x in range(side):
                for ratio in (1, 1.2, 2, 0.5, 3, 1 / 3):
                    rows.append([(x + 0.5) / side, (y + 0.5) / side,
                                 scale * math.sqrt(ratio), scale / math.sqrt(ratio)])
        side = (side + 1) // 2
    return np.array(rows, np.float32)


def decode(g, boxes, at):
    part = lambda first, last: g.add("Slice", boxes, g.ints(first), g.ints(last), g.ints(2))
    centre = g.add("Div", part(0, 2), g.f32(10))
    centre = g.add("Add", g.add("Mul", centre, g.weight(at[:, 2:])), g.weight(at[:, :2]))
    extent = g.add("Mul", g.add("Exp", g.add("Div", part(2, 4), g.f32(5))), g.weight(at[:, 2:]))
    half_extent = g.add("Mul", extent, g.f32(0.5))
    return g.add("Concat", g.add("Sub", centre, half_extent), g.add("Add", centre, half_extent), axis=2)


# ---- All of them ----

MODELS = {  # and the inputs: batch, height, width
    resnet50: ((1, 64, 64), (8, 32, 32)),
    mobilenet_v2: ((1, 64, 64), (8, 32, 32)),
    mobilenet_v3: ((1, 64, 64), (8, 32, 32)),
    vit: ((1, 64, 64), (8, 64, 64)),
    lraspp: ((1, 64, 96), (2, 65, 47)),
    ssdlite: ((1, SSD_SIDE, SSD_SIDE),),
}


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    for make, cases in MODELS.items():
        for half in (False, True):
            graph, results = make(half)
            name = make.__name__
            graph.write(folder, name, *results)
            name += "_half" if half else ""
            session = onnxruntime.InferenceSession(str(folder / f"{name}.onnx"), options,
                                                   providers=["CPUExecutionProvider"])
            for batch, height, width in cases:
                x = np.random.default_rng(batch).standard_normal((batch, 3, height, width))
                x = x.astype(np.float16 if half else np.float32)
                y = session.run(None, {"x": x})
                write(folder / f"{name}_{batch}.x", x)
                for i, result in enumerate(y):
                    write(folder / f"{name}_{batch}.y{i}", result)


if __name__ == "__main__":
    main()
