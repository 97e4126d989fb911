#!/usr/bin/env python3
"""Writes small models that ONNX Runtime's own tools quantized, with ONNX Runtime's results.

    write_quantized.py OUT_FOLDER

Each is a folder in the layout of the ONNX backend suite, as those of write_shapes.py are. Seeded random weights in two
shapes, an encoder (embeddings, attention, Gelu) and a picture classifier (depthwise convolutions, residuals, Clip):

encoder_dynamic_int8      products of integers, quantized as they come
encoder_dynamic_uint8     the same, with unsigned weights and a scale for each column
encoder_qdq               between QuantizeLinear and DequantizeLinear
encoder_four_bits         MatMulNBits; encoder_four_bits_zeros: with zero points
classifier_qdq_int8       signed values
classifier_qdq_uint8      unsigned ones, and a scale for each channel of the weights
classifier_qoperator      QLinearConv and its like, with Microsoft's

Exit code 77: there is no python3-onnx or no onnxruntime here, or one without its tools.
"""
import pathlib
import sys
import tempfile

try:
    import onnx.reference  # before onnxruntime, whose tools need it and would register operators twice
    from onnxruntime import quantization as q
    from onnxruntime.quantization.matmul_4bits_quantizer import MatMul4BitsQuantizer
except ImportError as error:
    print(error)
    sys.exit(77)

from write_shapes import FLOAT, INT64, Graph, normal, write_folder

TESTED_SETS = 2


class Samples(q.CalibrationDataReader):
    """What ranges of values are taken from."""

    def __init__(self, sets, name):
        self.rest = iter([{name: arrays[0]} for arrays in sets])

    def get_next(self):
        return next(self.rest, None)


def encoder(folder, width=64, heads=4, words=50):
    g = Graph("encoder")
    ids = g.input("ids", ["N", "T"], INT64)
    x = g.norm(g.add("Gather", g.uniform(words, width, fan=1), ids), width)
    for _ in range(2):
        x = g.norm(g.add("Add", x, g.attention(x, width, heads)), width)
        x = g.norm(g.add("Add", x, g.block(x, width)), width)
    sets = [[g.random.integers(0, words, (n, t))] for n, t in ((1, 12), (2, 7), (1, 16), (3, 5))]
    g.finish(folder, {"hidden": (x, FLOAT)}, sets)
    return folder / g.name / "model.onnx", sets


def classifier(folder):
    g = Graph("classifier")

    def step(x, inputs, outputs, kernel, group=1, stride=1, has_clip=True):
        weights = g.uniform(outputs, inputs // group, kernel, kernel, fan=inputs // group * kernel * kernel / 3)
        x = g.add("Conv", x, weights, g.uniform(outputs), kernel_shape=[kernel] * 2, group=group,
                  strides=[stride] * 2, pads=[kernel // 2] * 4)
        return g.add("Clip", x, g.f32(0), g.f32(6)) if has_clip else x

    x, channels = step(g.input("picture", ["N", 3, 24, 24]), 3, 16, 3, stride=2), 16
    for outputs, stride in ((24, 1), (24, 1), (32, 2), (32, 1)):
        y = step(x, channels, 4 * channels, 1)
        y = step(y, 4 * channels, 4 * channels, 3, group=4 * channels, stride=stride)
        y = step(y, 4 * channels, outputs, 1, has_clip=False)
        x, channels = g.add("Add", x, y) if outputs == channels else y, outputs
    x = g.add("Flatten", g.add("GlobalAveragePool", step(x, channels, 64, 1)))
    y = g.add("Gemm", x, g.uniform(10, 64), g.uniform(10), transB=1)
    sets = [[normal(g, n, 3, 24, 24)] for n in (1, 2, 4, 4)]
    g.finish(folder, {"logits": (y, FLOAT)}, sets)
    return folder / g.name / "model.onnx", sets


def quantized(folder, name, source, sets, make):
    """make(path, path): quantizes a model."""
    with tempfile.TemporaryDirectory() as work:
        path = pathlib.Path(work) / "model.onnx"
        make(str(source), str(path))
        model = onnx.load(str(path))
    # Ranges were taken from all sets; the last ones are large, and serve for that alone.
    write_folder(folder / name, model, sets[:TESTED_SETS])


def dynamic(**options):
    return lambda source, target: q.quantize_dynamic(source, target, **options)


def static(sets, name, **options):
    return lambda source, target: q.quantize_static(source, target, Samples(sets, name), **options)


def four_bits(is_symmetric):
    def make(source, target):
        quantizer = MatMul4BitsQuantizer(onnx.load(source), 32, is_symmetric)
        quantizer.process()
        quantizer.model.save_model_to_file(target)
    return make


def main():
    folder = pathlib.Path(sys.argv[1])
    s8, u8 = q.QuantType.QInt8, q.QuantType.QUInt8
    qdq, qoperator = q.QuantFormat.QDQ, q.QuantFormat.QOperator
    with tempfile.TemporaryDirectory() as work:
        (text, ids), (picture, pictures) = encoder(pathlib.Path(work)), classifier(pathlib.Path(work))
        for name, source, sets, make in (
                ("encoder_dynamic_int8", text, ids, dynamic(weight_type=s8)),
                ("encoder_dynamic_uint8", text, ids, dynamic(weight_type=u8, per_channel=True)),
                ("encoder_qdq", text, ids, static(ids, "ids", quant_format=qdq, weight_type=s8, activation_type=u8)),
                ("encoder_four_bits", text, ids, four_bits(True)),
                ("encoder_four_bits_zeros", text, ids, four_bits(False)),
                ("classifier_qdq_int8", picture, pictures,
                 static(pictures, "picture", quant_format=qdq, weight_type=s8, activation_type=s8)),
                ("classifier_qdq_uint8", picture, pictures,
                 static(pictures, "picture", quant_format=qdq, weight_type=s8, activation_type=u8, per_channel=True)),
                ("classifier_qoperator", picture, pictures,
                 static(pictures, "picture", quant_format=qoperator, weight_type=s8, activation_type=u8))):
            quantized(folder, name, source, sets, make)


if __name__ == "__main__":
    main()
