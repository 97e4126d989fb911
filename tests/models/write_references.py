#!/usr/bin/env python3
"""Writes inputs and ONNX Runtime's results for the text-recognition models.

The inputs are cut out of the example's sample picture and scaled as the example does it.

    write_references.py MODELS_FOLDER OUT_FOLDER

For each case NAME: NAME.x and NAME.y, files of a rank, the extents (int64) and float32 elements.
Exit code 77: there is no onnxruntime here.
"""
import pathlib
import struct
import sys
import zlib

try:
    import numpy
    import onnxruntime
except ImportError as error:
    print(error)
    sys.exit(77)

DETECTOR = "ch_PP-OCRv4_det_infer.onnx"
RECOGNISER = "ch_PP-OCRv4_rec_infer.onnx"
CLASSIFIER = "ch_ppocr_mobile_v2.0_cls_infer.onnx"
PICTURE = pathlib.Path(__file__).resolve().parents[2] / "examples/ocr/samples/notice.png"


def read_png(path):
    """An 8-bit RGB PNG without interlacing, as [height, width, 3]."""
    data = path.read_bytes()
    at, packed = 8, b""
    while at < len(data):
        (length,) = struct.unpack(">I", data[at:at + 4])
        kind, body = data[at + 4:at + 8], data[at + 8:at + 8 + length]
        if kind == b"IHDR":
            width, height, bits, colour, _, _, interlace = struct.unpack(">IIBBBBB", body)
            assert (bits, colour, interlace) == (8, 2, 0), "an 8-bit RGB picture is needed"
        elif kind == b"IDAT":
            packed += body
        at += 12 + length
    rows = numpy.frombuffer(zlib.decompress(packed), numpy.uint8).reshape(height, 1 + 3 * width)
    above, lines = [0] * (3 * width), []
    for row in rows.tolist():
        above = unfilter(row[0], row[1:], above)
        lines.append(above)
    return numpy.array(lines, numpy.uint8).reshape(height, width, 3)


def unfilter(kind, line, above):
    for i, value in enumerate(line):
        left = line[i - 3] if i >= 3 else 0
        corner = above[i - 3] if i >= 3 else 0
        up = above[i]
        if kind == 0:
            guess = 0
        elif kind == 1:
            guess = left
        elif kind == 2:
            guess = up
        elif kind == 3:
            guess = (left + up) // 2
        else:
            a, b, c = abs(up - corner), abs(left - corner), abs(left + up - 2 * corner)
            guess = left if a <= b and a <= c else up if b <= c else corner
        line[i] = (value + guess) & 255
    return line


def planes(image, mean, deviation):
    scaled = (image.astype(numpy.float32) / 255 - numpy.float32(mean)) / numpy.float32(deviation)
    return numpy.ascontiguousarray(scaled.transpose(2, 0, 1)[::-1][None], numpy.float32)


def resize(image, height, width):
    """Bilinear, as the example does it."""
    def weights(out, extent):
        at = numpy.clip((numpy.arange(out) + 0.5) * extent / out - 0.5, 0, extent - 1)
        low = numpy.floor(at).astype(int)
        return low, numpy.minimum(low + 1, extent - 1), at - low

    y0, y1, fy = weights(height, image.shape[0])
    x0, x1, fx = weights(width, image.shape[1])
    rows = image[y0] * (1 - fy)[:, None, None] + image[y1] * fy[:, None, None]
    return rows[:, x0] * (1 - fx)[None, :, None] + rows[:, x1] * fx[None, :, None]


def cases():
    """The same names as in test_ocr_models.c: name, model, input."""
    picture = read_png(PICTURE)

    def page(y, x, h, w):
        return planes(picture[y:y + h, x:x + w], (0.485, 0.456, 0.406), (0.229, 0.224, 0.225))

    def line(y, x, h, w, padded):
        cut = planes(resize(picture[y:y + h, x:x + w], 48, round(w * 48 / h)), 0.5, 0.5)
        return numpy.pad(cut, ((0, 0), (0, 0), (0, 0), (0, padded - cut.shape[3])))

    lines = [line(352, 54, 42, 250, 320), line(472, 54, 44, 254, 320), line(532, 54, 46, 270, 320)]
    turn = line(352, 54, 42, 168, 192)
    yield "detector_64x192", DETECTOR, page(256, 272, 64, 192)
    yield "detector_160x224", DETECTOR, page(176, 48, 160, 224)
    yield "detector_32x320", DETECTOR, page(352, 32, 32, 320)
    yield "detector_224x96", DETECTOR, page(176, 48, 224, 96)
    yield "detector_96x96", DETECTOR, page(460, 40, 96, 96)
    yield "recogniser_48x32", RECOGNISER, line(352, 54, 42, 28, 32)
    yield "recogniser_48x101", RECOGNISER, line(472, 54, 44, 90, 101)
    yield "recogniser_48x192", RECOGNISER, line(532, 54, 46, 180, 192)
    yield "recogniser_48x320", RECOGNISER, lines[0]
    yield "recogniser_48x500", RECOGNISER, line(192, 54, 54, 560, 500)
    yield "recogniser_batch_3", RECOGNISER, numpy.concatenate(lines)
    yield "classifier_48x192", CLASSIFIER, turn
    yield "classifier_batch_2", CLASSIFIER, numpy.concatenate([turn, turn[:, :, ::-1, ::-1]])


def write(path, array):
    with open(path, "wb") as file:
        numpy.array([array.ndim, *array.shape], numpy.int64).tofile(file)
        numpy.ascontiguousarray(array, numpy.float32).tofile(file)


def main():
    models, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    out.mkdir(parents=True, exist_ok=True)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    sessions = {}
    for name, model, x in cases():
        if model not in sessions:
            sessions[model] = onnxruntime.InferenceSession(str(models / model), options,
                                                           providers=["CPUExecutionProvider"])
        session = sessions[model]
        y = session.run(None, {session.get_inputs()[0].name: x})[0]
        write(out / f"{name}.x", x)
        write(out / f"{name}.y", y)


if __name__ == "__main__":
    main()
