#!/usr/bin/env python3
"""Writes inputs and ONNX Runtime's results for the text-recognition models.

    write_references.py MODELS_FOLDER OUT_FOLDER

For each case NAME: NAME.x and NAME.y, files of a rank, the extents (int64) and float32 elements.
Exit code 77: there is no onnxruntime here.
"""
import pathlib
import sys

try:
    import numpy
    import onnxruntime
except ImportError as error:
    print(error)
    sys.exit(77)

DETECTOR = "ch_PP-OCRv4_det_infer.onnx"
RECOGNISER = "ch_PP-OCRv4_rec_infer.onnx"
CLASSIFIER = "ch_ppocr_mobile_v2.0_cls_infer.onnx"
CASES = [                               # the same names as in test_ocr_models.c
    ("detector_64x96", DETECTOR, (1, 3, 64, 96)),
    ("detector_160x224", DETECTOR, (1, 3, 160, 224)),
    ("recogniser_48x320", RECOGNISER, (1, 3, 48, 320)),
    ("recogniser_48x100", RECOGNISER, (1, 3, 48, 100)),
    ("recogniser_batch_3", RECOGNISER, (3, 3, 48, 64)),
    ("classifier_48x192", CLASSIFIER, (1, 3, 48, 192)),
    ("classifier_batch_2", CLASSIFIER, (2, 3, 48, 192)),
]


# Five columns of seven dots: enough letters for a word that the models see as text.
LETTERS = {
    "O": "01110 10001 10001 10001 10001 10001 01110", "N": "10001 11001 10101 10011 10001 10001 10001",
    "E": "11111 10000 10000 11110 10000 10000 11111", "M": "10001 11011 10101 10101 10001 10001 10001",
    "D": "11110 10001 10001 10001 10001 10001 11110", "L": "10000 10000 10000 10000 10000 10000 11111",
}


def picture(shape, generator):
    """Lines of dark letters on a light ground with some noise, in the range the models want."""
    n, _, h, w = shape
    dot = 3
    image = numpy.full(shape, 0.9, numpy.float32)
    for number in range(n):
        for top in range(12, h - 7 * dot - 2, 12 * dot):
            word = "ONEMODEL"[number:] + "MODEL"
            for place, letter in enumerate(word[:(w - 16) // (6 * dot)]):
                rows = [[int(c) for c in row] for row in LETTERS[letter].split()]
                dots = numpy.kron(numpy.array(rows), numpy.ones((dot, dot)))
                left = 8 + place * 6 * dot
                image[number, :, top:top + 7 * dot, left:left + 5 * dot] -= 1.8 * dots
    return (image + generator.normal(0, 0.05, shape)).astype(numpy.float32)


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
    for number, (name, model, shape) in enumerate(CASES):
        if model not in sessions:
            sessions[model] = onnxruntime.InferenceSession(str(models / model), options,
                                                           providers=["CPUExecutionProvider"])
        session = sessions[model]
        x = picture(shape, numpy.random.default_rng(number))
        y = session.run(None, {session.get_inputs()[0].name: x})[0]
        write(out / f"{name}.x", x)
        write(out / f"{name}.y", y)


if __name__ == "__main__":
    main()
